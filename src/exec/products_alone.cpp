#include "exec/products_alone.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "exec/noise.h"

namespace underkeel::exec {

namespace {

bool is_product(const plan::Op& op) {
  const auto* body = std::get_if<plan::Compute>(&op.body);
  return body != nullptr &&
         (body->kernel == plan::Kernel::matmul || body->kernel == plan::Kernel::attention_forward ||
          body->kernel == plan::Kernel::attention_backward);
}

}  // namespace

Result<Executor::ProductsTime> run_products_alone(const Context& context,
                                                  const plan::Segment& segment,
                                                  std::span<const BFloat16> noise,
                                                  const Executor::ProductsHow& how,
                                                  device::Queue& queue) {
  std::vector<const plan::Op*> feeds;
  std::vector<const plan::Op*> products;
  for (const plan::Op& op : segment.ops) {
    if (is_product(op)) products.push_back(&op);
    if (std::holds_alternative<plan::Feed>(op.body)) feeds.push_back(&op);
  }
  Executor::ProductsTime took;
  const std::size_t piece = (products.size() + static_cast<std::size_t>(how.pieces) - 1) /
                            static_cast<std::size_t>(how.pieces);
  for (std::size_t begin = 0; begin < products.size(); begin += piece) {
    UK_TRY_VOID(fill_with_noise(context, noise, true, queue));
    const auto began = std::chrono::steady_clock::now();
    // Attention reads where sequences begin.
    for (const plan::Op* feed : feeds) UK_TRY_VOID(run_operation(context, *feed, queue));
    for (std::size_t i = begin; i < std::min(begin + piece, products.size()); ++i)
      UK_TRY_VOID(run_operation(context, *products[i], queue));
    UK_TRY_VOID(context.gpu->check_launches());
    UK_TRY_VOID(context.gpu->synchronize(queue));
    took.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (!how.looks_for_overflow) continue;
    UK_TRY(share, share_not_finite(context, queue));
    // Halves of f32 numbers look so once in 256.
    took.overflowed = took.overflowed || share > 0.01;
  }
  return took;
}

}  // namespace underkeel::exec
