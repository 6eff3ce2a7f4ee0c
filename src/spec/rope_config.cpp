// Source of the rules: transformers' modeling_rope_utils.py, in which the mapping's own values
// come before top-level keys, and top-level keys before the class's defaults.

#include "spec/rope_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace underkeel::spec {
namespace {

constexpr double largest_factor = 1e6;
constexpr NumberRange theta_range = {.least = 1, .most = 1e15, .least_is_allowed = false};

struct TypeName {
  std::string_view name;
  RopeType type;
};
constexpr std::array type_names = {
    TypeName{"default", RopeType::plain}, TypeName{"linear", RopeType::linear},
    TypeName{"dynamic", RopeType::dynamic}, TypeName{"llama3", RopeType::llama3},
    TypeName{"yarn", RopeType::yarn}};

std::optional<RopeType> read_type(Fields& rope) {
  const auto legacy = rope.text("type");
  const auto current = rope.text("rope_type");
  if (legacy && current && *legacy != *current) {
    rope.problem("rope_type",
                 fmt::format("`rope_type` says {} and `type` says {}", *current, *legacy),
                 "remove one of them");
    return std::nullopt;
  }
  const std::string name = current ? *current : legacy.value_or("default");
  for (const TypeName& known : type_names)
    if (known.name == name) return known.type;
  rope.problem(current ? "rope_type" : "type", fmt::format("RoPE type `{}` is not supported", name),
               "supported are default, linear, dynamic, llama3 and yarn", ErrorCode::unsupported);
  return std::nullopt;
}

/// Keys of yarn; the attention scaling is worked out here.
void read_yarn(Fields& rope, Rope& result, bool has_factor, double implied_factor) {
  if (!has_factor) result.factor = implied_factor;
  // Python's `or` makes a 0 the default as well.
  const auto or_default = [](std::optional<double> value, double fallback) {
    return value && *value != 0 ? *value : fallback;
  };
  result.beta_fast = or_default(rope.number("beta_fast", {.most = 1e6}), 32.0);
  result.beta_slow = or_default(rope.number("beta_slow", {.most = 1e6}), 1.0);
  if (result.beta_fast < result.beta_slow)
    rope.problem("beta_fast", fmt::format("beta_fast {} is below beta_slow {}", result.beta_fast,
                                          result.beta_slow));
  result.truncate = rope.boolean("truncate").value_or(true);
  const auto magnitude = [](double scale, double coefficient) {
    return scale <= 1 ? 1.0 : 0.1 * coefficient * std::log(scale) + 1.0;
  };
  const double mscale = rope.number("mscale", {.most = 1e6}).value_or(0);
  const double mscale_all = rope.number("mscale_all_dim", {.most = 1e6}).value_or(0);
  const auto given = rope.number("attention_factor", {.most = 1e6});
  if (given)
    result.attention_scaling = *given;
  else if (mscale != 0 && mscale_all != 0)
    result.attention_scaling =
        magnitude(result.factor, mscale) / magnitude(result.factor, mscale_all);
  else
    result.attention_scaling = magnitude(result.factor, 1.0);
}

struct RopeContext {
  double top_theta = 0;  // 0: no rope_theta at the top level
  double class_theta = 0;
  std::int64_t top_original = 0;  // 0: not given
  std::int64_t max_position_embeddings = 0;
  std::int64_t head_width = 0;
};

Rope read_mapping(const Value& mapping, std::string_view key, Problems& problems,
                  const RopeContext& context) {
  Fields rope(mapping, fmt::format("{}.", key), problems);
  Rope result;
  for (const Entry& entry : mapping.entries)
    if (entry.value.kind == ValueKind::mapping) {
      rope.problem(entry.key, "a rotary embedding of its own for each layer type is not supported",
                   {}, ErrorCode::unsupported);
      return result;
    }
  const auto theta = rope.number("rope_theta", theta_range);
  result.theta = theta.value_or(context.top_theta > 0 ? context.top_theta : context.class_theta);
  if (theta && context.top_theta > 0 && *theta != context.top_theta)
    rope.problem("rope_theta",
                 fmt::format("{} here, {} at the top level of the file", *theta, context.top_theta),
                 "keep one of the two");
  const auto type = read_type(rope);
  if (!type) return result;
  result.type = *type;

  const auto factor = rope.number("factor", {.least = 1, .most = largest_factor});
  result.factor = factor.value_or(1.0);
  const auto original = rope.integer("original_max_position_embeddings", {1, INT32_MAX});
  const bool uses_original = *type == RopeType::llama3 || *type == RopeType::yarn;
  result.original_max_position_embeddings =
      uses_original && context.top_original > 0
          ? context.top_original
          : original.value_or(context.max_position_embeddings);
  const auto low = rope.number("low_freq_factor", {.most = 1e6, .least_is_allowed = false});
  const auto high = rope.number("high_freq_factor", {.most = 1e6, .least_is_allowed = false});
  const bool needs_factor =
      *type == RopeType::linear || *type == RopeType::dynamic || *type == RopeType::llama3;
  if (needs_factor && !factor && !rope.has("factor"))
    rope.problem("factor", "the key is missing; this RoPE type needs it");
  if (needs_factor && rope.is_null("factor"))
    rope.problem("factor", "a number is wanted, not null");
  if (*type == RopeType::plain && result.factor != 1.0)
    rope.problem("factor",
                 fmt::format("a factor of {} has no effect on RoPE type default", result.factor),
                 "name the RoPE type that is meant, or remove the factor");
  if (*type == RopeType::dynamic && context.head_width <= 2)
    rope.problem("rope_type", "dynamic needs a head_dim above 2");
  if (*type == RopeType::llama3) {
    if (!rope.has("low_freq_factor") || !rope.has("high_freq_factor"))
      rope.problem("rope_type", "llama3 needs low_freq_factor and high_freq_factor");
    if (low && high && *low >= *high)
      rope.problem("low_freq_factor",
                   fmt::format("{} is not below high_freq_factor {}", *low, *high));
    result.low_freq_factor = low.value_or(1.0);
    result.high_freq_factor = high.value_or(4.0);
  }
  if (*type == RopeType::yarn) {
    const double implied = static_cast<double>(context.max_position_embeddings) /
                           static_cast<double>(result.original_max_position_embeddings);
    read_yarn(rope, result, factor.has_value(), std::clamp(implied, 1.0, largest_factor));
  } else {
    // Keys of yarn do nothing for the other types, as in transformers.
    for (const char* unused :
         {"beta_fast", "beta_slow", "truncate", "mscale", "mscale_all_dim", "attention_factor"})
      rope.take(unused);
  }
  const double part = rope.number("partial_rotary_factor", {.most = 1}).value_or(1.0);
  if (part != 1.0)
    rope.problem("partial_rotary_factor",
                 fmt::format("rotating only {} of each head is not supported", part), {},
                 ErrorCode::unsupported);
  // Written by some exporters beside the values that it marks as the user's own.
  rope.take("finetuned");
  rope.refuse_unread([](const Entry&) -> Fields::Refusal {
    return {"this key of the rotary embedding is not known", {}, ErrorCode::unsupported};
  });
  return result;
}

bool same(const Rope& a, const Rope& b) {
  return a.type == b.type && a.theta == b.theta && a.factor == b.factor &&
         a.low_freq_factor == b.low_freq_factor && a.high_freq_factor == b.high_freq_factor &&
         a.beta_fast == b.beta_fast && a.beta_slow == b.beta_slow && a.truncate == b.truncate &&
         a.attention_scaling == b.attention_scaling &&
         a.original_max_position_embeddings == b.original_max_position_embeddings;
}

}  // namespace

Rope read_rope(Fields& fields, Problems& problems, const Family& family,
               std::int64_t max_position_embeddings, std::int64_t head_width) {
  const RopeContext context = {
      .top_theta = fields.number("rope_theta", theta_range).value_or(0),
      .class_theta = family.rope_theta,
      .top_original =
          fields.integer("original_max_position_embeddings", {1, INT32_MAX}).value_or(0),
      .max_position_embeddings = max_position_embeddings,
      .head_width = head_width};
  Rope plain;
  plain.theta = context.top_theta > 0 ? context.top_theta : context.class_theta;
  plain.original_max_position_embeddings = max_position_embeddings;

  std::optional<Rope> result;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Value* value = fields.take(key);
    if (value == nullptr || value->kind == ValueKind::null) continue;
    if (value->kind != ValueKind::mapping) {
      fields.problem(key, fmt::format("a mapping is wanted, {} was found", shown(*value)));
      continue;
    }
    if (value->entries.empty()) continue;
    const Rope rope = read_mapping(*value, key, problems, context);
    if (result && problems.empty() && !same(*result, rope))
      fields.problem(key, "`rope_scaling` and `rope_parameters` disagree", "keep one of the two");
    result = rope;
  }
  return result.value_or(plain);
}

}  // namespace underkeel::spec
