#pragma once
// The formats of instruction data, each made into a conversation. Private to records.

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "data/conversation.h"
#include "data/dataset_info.h"

namespace underkeel::data {

/// Of an entry whose records hold messages as OpenAI writes them.
constexpr std::string_view openai_tags =
    R"("tags": {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant", "system_tag": "system"})";

/// "a text", "a number", ... for messages.
std::string_view kind_of(const nlohmann::json& value);

/// A conversation, or why there is none: then the record is dropped.
struct Reading {
  Conversation talk;
  std::string fault;
};

/// Reads a record as LLaMA-Factory's converter of its format does. Where that one stops with an
/// exception (a text that is a number, a message that is no object) the record is dropped.
/// Errors: unsupported for tools, function calls and observations.
Result<Reading> read_conversation(const nlohmann::json& record, const DatasetEntry& entry);

}  // namespace underkeel::data
