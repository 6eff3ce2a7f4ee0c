#include "tensor/dtype.h"

#include <array>

#include <fmt/format.h>
#include <immintrin.h>

namespace underkeel {

namespace {
struct Spelling {
  DType type;
  std::string_view name;
};
constexpr std::array spellings = {Spelling{DType::f32, "f32"}, Spelling{DType::bf16, "bf16"},
                                  Spelling{DType::f16, "f16"}, Spelling{DType::f64, "f64"},
                                  Spelling{DType::i64, "i64"}, Spelling{DType::i32, "i32"},
                                  Spelling{DType::u8, "u8"},   Spelling{DType::nf4, "nf4"}};
}  // namespace

std::string_view name_of(DType type) {
  for (const Spelling& spelling : spellings)
    if (spelling.type == type) return spelling.name;
  return "?";
}

Result<DType> parse_dtype(std::string_view text, std::string_view key) {
  if (text == "float32" || text == "fp32") return DType::f32;
  if (text == "bfloat16") return DType::bf16;
  if (text == "float16" || text == "fp16" || text == "half") return DType::f16;
  for (const Spelling& spelling : spellings)
    if (spelling.name == text) return spelling.type;
  return fail(ErrorCode::bad_config, fmt::format("unknown element type `{}`", text),
              std::string(key), "write float32, bfloat16 or float16");
}

float to_f32(Float16 value) {
  return _cvtsh_ss(value.bits);
}

Float16 to_f16(float value) {
  return {static_cast<std::uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT))};
}

}  // namespace underkeel
