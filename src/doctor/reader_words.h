#pragma once
// Sentences of the readers below (spec, io), which speak English, in Chinese.

#include <span>
#include <string>
#include <string_view>

#include "doctor/wording.h"

namespace underkeel::doctor {

/// Each `{}` stands for what a reader fills in and stays as it is.
std::span<const Text> reader_sentences();

/// A reader's sentence, or several with "; " between them. What no pattern fits stays English.
std::string in_chinese(std::string_view english);

}  // namespace underkeel::doctor
