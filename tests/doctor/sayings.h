#pragma once
// A piece of advice as somebody says it, and what doctor answers to it.

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doctor/files.h"

namespace underkeel::doctor {

struct Saying {
  const char* id;
  const char* says;
  const char* answer;  // part of what doctor says, on Llama-2-7B and one 80 GiB card
};

/// Message and fix of the one finding with the id of the saying; else what was found in its place.
inline std::string answer_to(const Saying& saying, const Diagnosis& diagnosis) {
  const auto all = found(diagnosis, saying.id);
  if (all.size() != 1)
    return fmt::format("{} answers with id {}; all: {}", all.size(), saying.id,
                       messages(diagnosis));
  EXPECT_EQ(all[0].certainty, Certainty::folklore);
  return message_of(all[0], Language::english) + " / " + fix_of(all[0], Language::english);
}

}  // namespace underkeel::doctor
