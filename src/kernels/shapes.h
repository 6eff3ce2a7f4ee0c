#pragma once
// Checks of argument structs, one overload an operation, shared by all backends: a wrong shape or
// type is the planner's mistake and ends in UK_CHECK. Each returns the sizes that the kernel needs.

#include "kernels/kernels.h"

namespace underkeel::kernels {

struct MatmulShape {
  std::int64_t m = 0;  // rows of c
  std::int64_t n = 0;  // columns of c
  std::int64_t k = 0;  // depth
};

struct AttentionShape {
  std::int64_t rows = 0;
  std::int64_t query_heads = 0;
  std::int64_t key_heads = 0;
  std::int64_t head_width = 0;
};

/// f32, bf16 or f16.
bool is_storage_type(DType type);

/// Whether the values of tokens and targets can be read here and are checked too. Those on a GPU come
/// from a loader that has held them against the vocabulary.
enum class TokenValues { here, on_device };

MatmulShape check_shapes(const MatmulArgs& args);
void check_shapes(const ColumnSumArgs& args);
void check_shapes(const EmbeddingForwardArgs& args, TokenValues tokens = TokenValues::here);
void check_shapes(const EmbeddingBackwardArgs& args, TokenValues tokens = TokenValues::here);
/// C, the elements of one group.
std::int64_t check_shapes(const RmsNormForwardArgs& args);
std::int64_t check_shapes(const RmsNormBackwardArgs& args);
void check_shapes(const RopeTableArgs& args);
void check_shapes(const RopeApplyArgs& args);
AttentionShape check_shapes(const AttentionForwardArgs& args);
AttentionShape check_shapes(const AttentionBackwardArgs& args);
AttentionShape check_shapes(const AttentionCachedArgs& args);
void check_shapes(const SwigluForwardArgs& args);
void check_shapes(const SwigluBackwardArgs& args);
void check_shapes(const CrossEntropyArgs& args, TokenValues tokens = TokenValues::here);
void check_shapes(const CopyArgs& args);
void check_shapes(const AddArgs& args);
void check_shapes(const FillArgs& args);
void check_shapes(const SumSquaresArgs& args);
void check_shapes(const ClipFactorArgs& args);
void check_shapes(const AdamwArgs& args);
void check_shapes(const AdamwAtRandomArgs& args);

}  // namespace underkeel::kernels
