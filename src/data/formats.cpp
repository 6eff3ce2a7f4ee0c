#include "data/formats.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "data/json_field.h"
#include "io/file.h"

namespace underkeel::data {
namespace {

using Json = nlohmann::json;

tl::unexpected<Error> with_tools(std::string_view what) {
  return fail(ErrorCode::unsupported,
              fmt::format("the record has {}: tools are not supported", what), {},
              "leave records with tools out of the file");
}

// A text; a missing or null value is empty. Anything else is a fault.
std::string text_of(const Json& record, const std::string& column, std::string& fault) {
  if (column.empty()) return {};
  const Json* value = find_field(record, column);
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  if (fault.empty()) fault = fmt::format("`{}` is {}", column, kind_of(*value));
  return {};
}

// An empty list of tools says that there are none, but still makes a system message.
Result<void> look_for_tools(const Json& record, const DatasetEntry& entry, Conversation& talk) {
  if (entry.columns.tools.empty()) return {};
  const Json* value = find_field(record, entry.columns.tools);
  if (value == nullptr) return {};
  Json tools = *value;
  if (tools.is_string()) {
    const auto& text = tools.get_ref<const std::string&>();
    if (text.empty()) return {};
    tools = Json::parse(text, nullptr, false);
  }
  if (!tools.empty() || tools.is_discarded())
    return with_tools(fmt::format("`{}`", entry.columns.tools));
  talk.has_tools_list = value->is_string() || entry.format == RecordFormat::openai;
  return {};
}

Result<Reading> read_alpaca(const Json& record, const DatasetEntry& entry) {
  const Columns& columns = entry.columns;
  Reading reading;
  const Json* history = columns.history.empty() ? nullptr : find_field(record, columns.history);
  if (history != nullptr && history->is_array()) {
    for (const Json& pair : *history) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
        reading.fault = fmt::format("`{}` is no list of pairs of texts", columns.history);
        return reading;
      }
      reading.talk.messages.push_back({Role::user, pair[0].get<std::string>()});
      reading.talk.messages.push_back({Role::assistant, pair[1].get<std::string>()});
    }
  }
  std::string asked = text_of(record, columns.prompt, reading.fault);
  const std::string query = text_of(record, columns.query, reading.fault);
  if (!asked.empty() && !query.empty()) asked += '\n';
  asked += query;
  reading.talk.messages.push_back({Role::user, std::move(asked)});
  reading.talk.system = text_of(record, columns.system, reading.fault);
  if (!reading.fault.empty()) return reading;
  const auto response = record.find(columns.response);
  if (columns.response.empty())
    reading.fault = "the data set names no column for the answer (`response`)";
  else if (response == record.end())
    reading.fault = fmt::format("`{}` is missing", columns.response);
  else if (!response->is_string())
    reading.fault = fmt::format("`{}` is {}", columns.response, kind_of(*response));
  else
    reading.talk.messages.push_back({Role::assistant, response->get<std::string>()});
  return reading;
}

// "; it has `content`, `role`": what a tag of the description may be meant for.
std::string keys_in(const Json& message) {
  if (!message.is_object() || message.empty()) return {};
  std::string text;
  for (const auto& [key, value] : message.items()) {
    if (text.size() > 100) return text + ", ...";
    text += fmt::format("{}`{}`", text.empty() ? "; it has " : ", ", printable(key));
  }
  return text;
}

// "; that is how OpenAI ...": the tags of an entry that has none, where a message is of OpenAI's kind.
std::string tags_for(const Json& message, const DatasetEntry& entry) {
  const bool is_openai = find_field(message, "role") != nullptr && message.contains("content");
  if (!is_openai || entry.tags.role != Tags{}.role) return {};
  return fmt::format("; messages of OpenAI's kind want {} in the entry", openai_tags);
}

// One message of a list, with its place for the message about a fault.
struct Said {
  std::string role;
  const Json* message = nullptr;
};

Result<std::vector<Said>> messages_of(const Json& record, const DatasetEntry& entry,
                                      std::string& fault) {
  std::vector<Said> all;
  const std::string& column = entry.columns.messages;
  const auto list = record.find(column);
  if (column.empty()) {
    fault = "the data set names no column `messages`";
  } else if (list == record.end()) {
    fault = fmt::format("`{}` is missing", column);
  } else if (!list->is_array()) {
    fault = fmt::format("`{}` is {}, not a list", column, kind_of(*list));
  } else {
    for (const Json& message : *list) {
      const Json* role = find_field(message, entry.tags.role);
      if (role == nullptr || !role->is_string()) {
        fault = fmt::format("message {} has no text `{}`{}{}", all.size() + 1, entry.tags.role,
                            keys_in(message), tags_for(message, entry));
        break;
      }
      all.push_back({role->get<std::string>(), &message});
    }
  }
  return all;
}

// Content as text, or a fault.
std::string content_of(const Said& said, std::size_t number, const DatasetEntry& entry,
                       std::string& fault) {
  const Json* content = find_field(*said.message, entry.tags.content);
  if (content != nullptr && content->is_string()) return content->get<std::string>();
  if (!fault.empty()) return {};
  const auto there = said.message->find(entry.tags.content);
  fault = there == said.message->end()
              ? fmt::format("message {}: `{}` is missing{}", number, entry.tags.content,
                            keys_in(*said.message))
              : fmt::format("message {}: `{}` is {}", number, entry.tags.content, kind_of(*there));
  return {};
}

bool calls_tools(const Said& said) {
  const Json* calls = find_field(*said.message, "tool_calls");
  return calls != nullptr && !calls->empty();
}

// The messages after the system's: users and assistants in turn.
Result<void> take_turns(std::span<const Said> said, std::size_t first_number,
                        const DatasetEntry& entry, Reading& reading) {
  const Tags& tags = entry.tags;
  const bool openai = entry.format == RecordFormat::openai;
  bool has_tools = false;
  for (std::size_t place = 0; place < said.size(); ++place) {
    const std::string& role = said[place].role;
    const bool asks = role == tags.user;
    const bool answers = role == tags.assistant;
    const bool observes = !tags.observation.empty() && role == tags.observation;
    const bool calls = !tags.function.empty() && role == tags.function;
    const bool in_place = openai ? asks || answers || observes || calls
                                 : (place % 2 == 0 ? asks || observes : answers || calls);
    const std::size_t number = first_number + place;
    if (!in_place) {
      reading.fault = fmt::format("message {} is of `{}` where {} is due", number, role,
                                  place % 2 == 0 ? tags.user : tags.assistant);
      return {};
    }
    has_tools |= observes || calls || (openai && answers && calls_tools(said[place]));
    if (has_tools) continue;
    if (asks != (place % 2 == 0)) {
      reading.fault = fmt::format("message {} is of `{}` where {} is due", number, role,
                                  place % 2 == 0 ? tags.user : tags.assistant);
      return {};
    }
    reading.talk.messages.push_back({asks ? Role::user : Role::assistant,
                                     content_of(said[place], number, entry, reading.fault)});
  }
  if (has_tools) return with_tools("a function call or what a function returned");
  if (said.empty())
    reading.fault = "there is no message";
  else if (said.size() % 2 != 0)
    reading.fault = fmt::format("{} messages: the last one has no answer", said.size());
  return {};
}

Result<Reading> read_messages(const Json& record, const DatasetEntry& entry) {
  Reading reading;
  UK_TRY(all, messages_of(record, entry, reading.fault));
  if (!reading.fault.empty()) return reading;
  std::span<const Said> said = all;
  const bool has_system =
      !entry.tags.system.empty() && !said.empty() && said[0].role == entry.tags.system;
  if (has_system) {
    // A null says nothing, as an empty text does.
    reading.talk.system = text_of(*said[0].message, entry.tags.content, reading.fault);
    said = said.subspan(1);
  } else {
    reading.talk.system = text_of(record, entry.columns.system, reading.fault);
  }
  if (!reading.fault.empty()) return reading;
  UK_TRY_VOID(take_turns(said, has_system ? 2 : 1, entry, reading));
  return reading;
}

// What LLaMA-Factory's converter of this format does to the system text.
void edit_openai_system(Conversation& talk) {
  constexpr std::string_view off = "detailed thinking off";
  std::string& system = talk.system;
  if (talk.has_tools_list) {
    if (!system.empty()) system += '\n';
  } else if (system.empty()) {
    system = off;
  } else if (system.find("detailed thinking on") == std::string::npos &&
             system.find(off) == std::string::npos) {
    system += '\n';
    system += off;
  }
}

}  // namespace

std::string_view kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "true or false";
    case Json::value_t::string:
      return "a text";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::object:
      return "an object";
    default:
      return "a number";
  }
}

Result<Reading> read_conversation(const Json& record, const DatasetEntry& entry) {
  UK_TRY(reading, entry.format == RecordFormat::alpaca ? read_alpaca(record, entry)
                                                       : read_messages(record, entry));
  if (!reading.fault.empty()) return reading;
  UK_TRY_VOID(look_for_tools(record, entry, reading.talk));
  if (entry.format == RecordFormat::openai) edit_openai_system(reading.talk);
  return reading;
}

}  // namespace underkeel::data
