#pragma once
// Sentences of the readers below (spec, data, io), which speak English, in Chinese.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/wording.h"

namespace underkeel::doctor {

/// Each `{}` stands for what a reader fills in and stays as it is. The first that fits is taken, the tables in turn.
std::vector<std::span<const Text>> reader_sentences();

/// A reader's sentence, or several with "; " between them. What no pattern fits stays English.
std::string in_chinese(std::string_view english);

// The tables.
std::span<const Text> refusal_sentences();
std::span<const Text> data_sentences();
std::span<const Text> tokenizer_sentences();
std::span<const Text> file_sentences();

}  // namespace underkeel::doctor
