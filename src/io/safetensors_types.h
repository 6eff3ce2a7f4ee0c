#pragma once
// Element types of the safetensors format; private to this layer.

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace underkeel::io {

/// Of a tensor. Far above any model; bounds what one entry of a file can make us keep.
constexpr std::size_t most_dimensions = 64;

struct SafetensorsType {
  std::string_view text;
  int bits = 0;
  std::optional<DType> type;
};

/// In the order in which the reference writer places them.
inline constexpr std::array safetensors_types = {
    SafetensorsType{"U64", 64, std::nullopt},
    SafetensorsType{"I64", 64, DType::i64},
    SafetensorsType{"F64", 64, DType::f64},
    SafetensorsType{"C64", 64, std::nullopt},
    SafetensorsType{"F32", 32, DType::f32},
    SafetensorsType{"U32", 32, std::nullopt},
    SafetensorsType{"I32", 32, DType::i32},
    SafetensorsType{"BF16", 16, DType::bf16},
    SafetensorsType{"F16", 16, DType::f16},
    SafetensorsType{"U16", 16, std::nullopt},
    SafetensorsType{"I16", 16, std::nullopt},
    SafetensorsType{"F8_E5M2FNUZ", 8, std::nullopt},
    SafetensorsType{"F8_E4M3FNUZ", 8, std::nullopt},
    SafetensorsType{"F8_E8M0", 8, std::nullopt},
    SafetensorsType{"F8_E4M3", 8, std::nullopt},
    SafetensorsType{"F8_E5M2", 8, std::nullopt},
    SafetensorsType{"I8", 8, std::nullopt},
    SafetensorsType{"U8", 8, DType::u8},
    SafetensorsType{"F6_E3M2", 6, std::nullopt},
    SafetensorsType{"F6_E2M3", 6, std::nullopt},
    SafetensorsType{"F4", 4, std::nullopt},
    SafetensorsType{"BOOL", 8, std::nullopt},
};

}  // namespace underkeel::io
