#pragma once
// Every key that LLaMA-Factory's run files know, apart from those that run_*.cpp read by name,
// and what becomes of it here. Private to spec.

#include <span>
#include <string_view>

#include "spec/value.h"

namespace underkeel::spec {

enum class KeyUse {
  no_effect,  // any value: it steers another program's speed, logging or mode
  refused     // any value but the neutral ones would change the numbers or the outcome
};

struct RunKey {
  std::string_view key;
  KeyUse use = KeyUse::no_effect;
  std::string_view neutral;  // alternatives, cut at `|`: "null|false"
  std::string_view what;     // what the key would do, or why it has no effect
};

std::span<const RunKey> run_keys();
std::span<const RunKey> deepspeed_keys();       // of its top level
std::span<const RunKey> deepspeed_zero_keys();  // of zero_optimization

/// Whether `value` is one of the alternatives; numbers compare as numbers.
bool is_neutral(const Value& value, std::string_view alternatives);

}  // namespace underkeel::spec
