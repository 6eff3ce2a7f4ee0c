// Matrix products through cuBLASLt, with the caller's workspace. What is found out about a product (its
// descriptors and algorithm) is kept for the next one of the same shape, so that a step asks nothing.
//
// The library is column-major: our row-major c = op(a) op(b) is its c^T = op(b)^T op(a)^T, with the same
// memory read as transposed; so its first operand is b and its second a.

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <memory>
#include <mutex>

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "base/check.h"
#include "kernels/cuda/kernels.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cuda {

namespace {

void check(cublasStatus_t status, std::string_view what) {
  UK_CHECK(status == CUBLAS_STATUS_SUCCESS,
           fmt::format("cuBLASLt, {}: {}", what, cublasLtGetStatusString(status)));
}

cudaDataType_t type_of(DType type) {
  switch (type) {
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

/// The power of two, up to 256, that an address is a multiple of.
std::uint32_t alignment_of(const void* data) {
  constexpr std::uintptr_t most = 256;
  const auto address = reinterpret_cast<std::uintptr_t>(data) | most;
  return static_cast<std::uint32_t>(address & (~address + 1));
}

/// What the choice of an algorithm depends on.
struct Product {
  int device = 0;
  MatmulShape shape{};
  DType type{};
  DType c_type{};
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  bool has_bias = false;
  std::array<std::int64_t, 3> strides{};
  std::array<std::uint32_t, 3> alignments{};
  std::int64_t workspace_bytes = 0;

  auto key() const {
    return std::tuple(device, shape.m, shape.n, shape.k, type, c_type, transpose_a, transpose_b,
                      accumulate, has_bias, strides, alignments, workspace_bytes);
  }
  bool operator<(const Product& other) const { return key() < other.key(); }
};

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* handle) const {
    Destroy(handle);
  }
};
template <class Handle, auto Destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroyer<Destroy>>;

using Description = Owned<cublasLtMatmulDesc_t, &cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, &cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, &cublasLtMatmulPreferenceDestroy>;
using Library = Owned<cublasLtHandle_t, &cublasLtDestroy>;

/// A product that is ready to run but for its addresses.
struct Prepared {
  Description description;
  Layout first;   // b
  Layout second;  // a
  Layout c;
  cublasLtMatmulAlgo_t algorithm{};
};

/// A row-major view as the library sees it: columns and rows exchanged.
Layout layout_of(const TensorView& view, std::int64_t stride) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, type_of(view.type),
                                   static_cast<std::uint64_t>(view.columns),
                                   static_cast<std::uint64_t>(view.rows), stride),
        "describing a matrix");
  return Layout(layout);
}

template <class T>
void set(const Description& description, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check(cublasLtMatmulDescSetAttribute(description.get(), attribute, &value, sizeof value),
        "describing a product");
}
template <class T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const T& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
        "stating a preference");
}

std::int64_t stride_of(const TensorView& view) {
  return std::max(view.row_stride, std::max<std::int64_t>(view.columns, 1));
}

Product product_of(const MatmulArgs& args, const MatmulShape& shape, bool has_bias) {
  Product product{.shape = shape,
                  .type = args.a.type,
                  .c_type = args.c.type,
                  .transpose_a = args.transpose_a,
                  .transpose_b = args.transpose_b,
                  .accumulate = args.accumulate,
                  .has_bias = has_bias,
                  .strides = {stride_of(args.a), stride_of(args.b), stride_of(args.c)},
                  .alignments = {alignment_of(args.a.data), alignment_of(args.b.data),
                                 alignment_of(args.c.data)},
                  .workspace_bytes = bytes_of(args.scratch.type, args.scratch.element_count())};
  UK_CHECK(cudaGetDevice(&product.device) == cudaSuccess, "a queue without a device");
  return product;
}

/// All products met so far, and the library's handle for each device.
class Products {
 public:
  struct Ready {
    cublasLtHandle_t library = nullptr;
    const Prepared* product = nullptr;
  };
  Ready find(const MatmulArgs& args, const Product& product) {
    const std::lock_guard lock(mutex_);
    Library& library = libraries_[product.device];
    if (!library) {
      cublasLtHandle_t handle = nullptr;
      check(cublasLtCreate(&handle), "starting it");
      library.reset(handle);
    }
    auto [entry, is_new] = prepared_.try_emplace(product);
    if (is_new) entry->second = prepare(library.get(), args, product);
    return {library.get(), &entry->second};
  }

 private:
  static Prepared prepare(cublasLtHandle_t library, const MatmulArgs& args,
                          const Product& product) {
    Prepared prepared{.first = layout_of(args.b, product.strides[1]),
                      .second = layout_of(args.a, product.strides[0]),
                      .c = layout_of(args.c, product.strides[2])};
    cublasLtMatmulDesc_t description = nullptr;
    // f32 operands are multiplied as f32: tf32 would have to be asked for.
    check(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "describing a product");
    prepared.description.reset(description);
    const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
    set(prepared.description, CUBLASLT_MATMUL_DESC_TRANSA, operation(product.transpose_b));
    set(prepared.description, CUBLASLT_MATMUL_DESC_TRANSB, operation(product.transpose_a));
    if (product.has_bias) {
      set(prepared.description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(prepared.description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(args.bias.type));
      set(prepared.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.bias.data);
    }
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made), "stating a preference");
    const Preference preference(made);
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
        static_cast<std::uint64_t>(product.workspace_bytes));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.alignments[1]);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.alignments[0]);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.alignments[2]);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product.alignments[2]);
    // Split depth is either added in place, in any order, or rounded between: neither is wanted.
    set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        library, prepared.description.get(), prepared.first.get(), prepared.second.get(),
        prepared.c.get(), prepared.c.get(), preference.get(), 1, &best, &found);
    UK_CHECK(status == CUBLAS_STATUS_SUCCESS && found == 1,
             fmt::format("cuBLASLt has no algorithm for ({} x {} x {}), {} into {}, strides {} {} "
                         "{}, alignments {} {} {}: {}",
                         product.shape.m, product.shape.n, product.shape.k, name_of(product.type),
                         name_of(product.c_type), product.strides[0], product.strides[1],
                         product.strides[2], product.alignments[0], product.alignments[1],
                         product.alignments[2], cublasLtGetStatusString(status)));
    prepared.algorithm = best.algo;
    return prepared;
  }

  std::mutex mutex_;
  std::map<int, Library> libraries_;
  std::map<Product, Prepared> prepared_;
};

Products& products() {
  // Never destroyed: the driver may be gone before statics are.
  static Products* const all = new Products();
  return *all;
}

}  // namespace

void matmul(const MatmulArgs& args, device::Queue& queue) {
  const MatmulShape shape = check_shapes(args);
  if (shape.m == 0 || shape.n == 0) return;
  const bool has_bias = args.bias.data != nullptr;
  if (shape.k == 0) {
    if (has_bias) return add_bias(args.c, args.bias, !args.accumulate, queue);
    if (!args.accumulate) fill({.to = args.c}, queue);
    return;
  }
  // The library adds a bias of the type of c alone.
  const bool bias_inside = has_bias && args.bias.type == args.c.type;
  const auto [library, product] = products().find(args, product_of(args, shape, bias_inside));
  if (bias_inside) set(product->description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.bias.data);
  const float one = 1.0f;
  const float beta = args.accumulate ? 1.0f : 0.0f;
  check(cublasLtMatmul(
            library, product->description.get(), &one, args.b.data, product->first.get(),
            args.a.data, product->second.get(), &beta, args.c.data, product->c.get(), args.c.data,
            product->c.get(), &product->algorithm, args.scratch.data,
            static_cast<std::size_t>(bytes_of(args.scratch.type, args.scratch.element_count())),
            static_cast<cudaStream_t>(queue.stream())),
        "starting a product");
  if (has_bias && !bias_inside) add_bias(args.c, args.bias, false, queue);
}

}  // namespace underkeel::kernels::cuda
