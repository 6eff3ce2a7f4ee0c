// Matrix products through cuBLASLt, with the caller's workspace. What is found out about a product (its
// descriptors and algorithm) is kept for the next one of the same shape, so that a step asks nothing.
//
// The library is column-major: our row-major c = op(a) op(b) is its c^T = op(b)^T op(a)^T, with the same
// memory read as transposed; so its first operand is b and its second a.

#include <algorithm>
#include <array>
#include <charconv>
#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "base/check.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/matmul_timing.h"
#include "kernels/matmul_choice.h"
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
  bool has_addend = false;
  std::array<std::int64_t, 4> strides{};  // a, b, c, addend (else that of c)
  std::array<std::uint32_t, 4> alignments{};
  std::int64_t workspace_bytes = 0;

  auto key() const {
    return std::tuple(device, shape.m, shape.n, shape.k, type, c_type, transpose_a, transpose_b,
                      accumulate, has_bias, has_addend, strides, alignments, workspace_bytes);
  }
  bool operator<(const Product& other) const { return key() < other.key(); }
  /// Says the same but for the device.
  std::string text() const {
    return fmt::format("{}x{}x{} {}>{} a{}{} b{}{} c{} {}{}{}aligned {}, {} bytes", shape.m,
                       shape.n, shape.k, name_of(type), name_of(c_type), strides[0],
                       transpose_a ? "t" : "", strides[1], transpose_b ? "t" : "", strides[2],
                       accumulate ? "added " : "", has_bias ? "bias " : "",
                       has_addend ? fmt::format("addend{} ", strides[3]) : "",
                       fmt::join(alignments, " "), workspace_bytes);
  }
  double flops() const {
    return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
           static_cast<double>(shape.k);
  }
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
  Layout addend;  // the library's C; our c is its D
  cublasLtMatmulAlgo_t algorithm{};
};

/// An algorithm as text and back; the library's own bytes.
std::string text_of(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&algorithm);
  for (std::size_t i = 0; i < sizeof algorithm; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}
std::optional<cublasLtMatmulAlgo_t> algorithm_of(const std::string& text) {
  cublasLtMatmulAlgo_t algorithm{};
  if (text.size() != 2 * sizeof algorithm) return std::nullopt;
  auto* bytes = reinterpret_cast<std::uint8_t*>(&algorithm);
  for (std::size_t i = 0; i < sizeof algorithm; ++i) {
    const char* const begin = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(begin, begin + 2, bytes[i], 16);
    if (error != std::errc{} || end != begin + 2) return std::nullopt;
  }
  return algorithm;
}

/// The library's version and the kind of GPU.
std::string made_on(int device) {
  cudaDeviceProp facts{};
  UK_CHECK(cudaGetDeviceProperties(&facts, device) == cudaSuccess, "a queue without a device");
  return fmt::format("cuBLASLt {} on {} with {} multiprocessors", cublasLtGetVersion(), facts.name,
                     facts.multiProcessorCount);
}

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
  const TensorView& addend = args.addend.data != nullptr ? args.addend : args.c;
  Product product{
      .shape = shape,
      .type = args.a.type,
      .c_type = args.c.type,
      .transpose_a = args.transpose_a,
      .transpose_b = args.transpose_b,
      .accumulate = args.accumulate,
      .has_bias = has_bias,
      .has_addend = args.addend.data != nullptr,
      .strides = {stride_of(args.a), stride_of(args.b), stride_of(args.c), stride_of(addend)},
      .alignments = {alignment_of(args.a.data), alignment_of(args.b.data),
                     alignment_of(args.c.data), alignment_of(addend.data)},
      .workspace_bytes = bytes_of(args.scratch.type, args.scratch.element_count())};
  UK_CHECK(cudaGetDevice(&product.device) == cudaSuccess, "a queue without a device");
  return product;
}

/// What a call adds to a prepared product.
cublasStatus_t start(cublasLtHandle_t library, const Prepared& product,
                     const cublasLtMatmulAlgo_t& algorithm, const MatmulArgs& args,
                     cudaStream_t stream) {
  const float one = 1.0f;
  const bool adds = args.addend.data != nullptr;
  const float beta = args.accumulate || adds ? 1.0f : 0.0f;
  return cublasLtMatmul(
      library, product.description.get(), &one, args.b.data, product.first.get(), args.a.data,
      product.second.get(), &beta, adds ? args.addend.data : args.c.data, product.addend.get(),
      args.c.data, product.c.get(), &algorithm, args.scratch.data,
      static_cast<std::size_t>(bytes_of(args.scratch.type, args.scratch.element_count())), stream);
}

/// All products met so far, and the library's handle for each device.
class Products {
 public:
  struct Ready {
    cublasLtHandle_t library = nullptr;
    const Prepared* product = nullptr;
  };
  Ready find(const MatmulArgs& args, const Product& product, cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    Library& library = libraries_[product.device];
    if (!library) {
      cublasLtHandle_t handle = nullptr;
      check(cublasLtCreate(&handle), "starting it");
      library.reset(handle);
    }
    auto [entry, is_new] = prepared_.try_emplace(product);
    if (is_new) {
      entry->second = describe(args, product);
      choose(library.get(), args, product, stream, entry->second);
    }
    return {library.get(), &entry->second};
  }
  void take(const MatmulChoices& choices) {
    const std::lock_guard lock(mutex_);
    for (const auto& [product, algorithm] : choices.algorithms)
      given_[choices.made_on][product] = algorithm;
  }
  void time(double seconds) {
    const std::lock_guard lock(mutex_);
    seconds_left_ = seconds;
  }
  MatmulChoices choices() {
    const std::lock_guard lock(mutex_);
    MatmulChoices all;
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return all;
    all.made_on = made_on(device);
    for (const auto& [product, prepared] : prepared_)
      if (product.device == device) all.algorithms[product.text()] = text_of(prepared.algorithm);
    return all;
  }

 private:
  static Prepared describe(const MatmulArgs& args, const Product& product) {
    Prepared prepared{.first = layout_of(args.b, product.strides[1]),
                      .second = layout_of(args.a, product.strides[0]),
                      .c = layout_of(args.c, product.strides[2]),
                      .addend = layout_of(args.c, product.strides[3])};
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
    return prepared;
  }

  /// What the library proposes, its favourite first.
  static std::vector<cublasLtMatmulAlgo_t> candidates(cublasLtHandle_t library,
                                                      const Product& product,
                                                      const Prepared& prepared, int most) {
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made), "stating a preference");
    const Preference preference(made);
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
        static_cast<std::uint64_t>(product.workspace_bytes));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.alignments[1]);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.alignments[0]);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.alignments[3]);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product.alignments[2]);
    // Split depth is either added in place, in any order, or rounded between: neither is wanted.
    set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
    std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(most));
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        library, prepared.description.get(), prepared.first.get(), prepared.second.get(),
        prepared.addend.get(), prepared.c.get(), preference.get(), most, found.data(), &count);
    UK_CHECK(status == CUBLAS_STATUS_SUCCESS && count >= 1,
             fmt::format("cuBLASLt has no algorithm for {}: {}", product.text(),
                         cublasLtGetStatusString(status)));
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    for (int i = 0; i < count; ++i) algorithms.push_back(found[static_cast<std::size_t>(i)].algo);
    return algorithms;
  }

  /// The same algorithms with other shapes of clusters, which the library proposes few of.
  static void add_cluster_shapes(cublasLtHandle_t library, const Product& product,
                                 const Prepared& prepared,
                                 std::vector<cublasLtMatmulAlgo_t>& algorithms) {
    const std::size_t proposed = algorithms.size();
    for (std::size_t i = 0; i < proposed; ++i) {
      std::uint16_t own = 0;
      std::size_t written = 0;
      if (cublasLtMatmulAlgoConfigGetAttribute(&algorithms[i],
                                               CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, &own,
                                               sizeof own, &written) != CUBLAS_STATUS_SUCCESS)
        continue;
      for (std::uint16_t shape = CUBLASLT_CLUSTER_SHAPE_1x1x1; shape < CUBLASLT_CLUSTER_SHAPE_END;
           ++shape) {
        cublasLtMatmulAlgo_t algorithm = algorithms[i];
        if (shape != own &&
            cublasLtMatmulAlgoConfigSetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID,
                                                 &shape, sizeof shape) == CUBLAS_STATUS_SUCCESS &&
            is_accepted(library, product, prepared, algorithm))
          algorithms.push_back(algorithm);
      }
    }
  }

  static bool is_accepted(cublasLtHandle_t library, const Product& product,
                          const Prepared& prepared, const cublasLtMatmulAlgo_t& algorithm) {
    cublasLtMatmulHeuristicResult_t checked{};
    return cublasLtMatmulAlgoCheck(library, prepared.description.get(), prepared.first.get(),
                                   prepared.second.get(), prepared.addend.get(), prepared.c.get(),
                                   &algorithm, &checked) == CUBLAS_STATUS_SUCCESS &&
           checked.workspaceSize <= static_cast<std::size_t>(product.workspace_bytes);
  }

  /// The algorithm that was given for the product, if the library takes it here.
  std::optional<cublasLtMatmulAlgo_t> given(cublasLtHandle_t library, const Product& product,
                                            const Prepared& prepared) const {
    const auto kind = given_.find(made_on(product.device));
    if (kind == given_.end()) return std::nullopt;
    const auto known = kind->second.find(product.text());
    if (known == kind->second.end()) return std::nullopt;
    const auto algorithm = algorithm_of(known->second);
    if (!algorithm || !is_accepted(library, product, prepared, *algorithm)) return std::nullopt;
    return algorithm;
  }

  void choose(cublasLtHandle_t library, const MatmulArgs& args, const Product& product,
              cudaStream_t stream, Prepared& prepared) {
    if (const auto algorithm = given(library, product, prepared)) {
      prepared.algorithm = *algorithm;
      return;
    }
    const bool times = seconds_left_ > 0 && product.flops() >= least_timed_flops;
    auto proposed = candidates(library, product, prepared, times ? most_candidates : 1);
    prepared.algorithm = proposed.front();
    if (!times) return;
    add_cluster_shapes(library, product, prepared, proposed);
    const Timing timing =
        time_candidates(static_cast<int>(proposed.size()), stream, [&](int candidate) {
          return start(library, prepared, proposed[static_cast<std::size_t>(candidate)], args,
                       stream) == CUBLAS_STATUS_SUCCESS;
        });
    seconds_left_ -= timing.seconds;
    prepared.algorithm = proposed[static_cast<std::size_t>(timing.best)];
  }

  /// A product of less takes no longer than its launch.
  static constexpr double least_timed_flops = 1e10;
  static constexpr int most_candidates = 16;

  double seconds_left_ = 0;
  std::map<std::string, std::map<std::string, std::string>> given_;  // by what it was made on
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
    if (args.addend.data != nullptr) copy({.from = args.addend, .to = args.c}, queue);
    const bool stays = args.accumulate || args.addend.data != nullptr;
    if (has_bias) return add_bias(args.c, args.bias, !stays, queue);
    if (!stays) fill({.to = args.c}, queue);
    return;
  }
  // The library adds a bias of the type of c alone.
  const bool bias_inside = has_bias && args.bias.type == args.c.type;
  const auto [library, product] = products().find(args, product_of(args, shape, bias_inside),
                                                  static_cast<cudaStream_t>(queue.stream()));
  if (bias_inside) set(product->description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.bias.data);
  check(
      start(library, *product, product->algorithm, args, static_cast<cudaStream_t>(queue.stream())),
      "starting a product");
  if (has_bias && !bias_inside) add_bias(args.c, args.bias, false, queue);
}

}  // namespace underkeel::kernels::cuda

namespace underkeel::kernels {

void cuda_take_matmul_choices(const MatmulChoices& choices) {
  cuda::products().take(choices);
}
void cuda_time_matmuls(double seconds) {
  cuda::products().time(seconds);
}
MatmulChoices cuda_matmul_choices() {
  return cuda::products().choices();
}

}  // namespace underkeel::kernels
