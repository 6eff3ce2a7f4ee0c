#include "exec/share_products.h"

#include <string>
#include <string_view>

#include "base/check.h"
#include "comm/agree.h"
#include "exec/warm_up.h"
#include "kernels/matmul_choice.h"

namespace underkeel::exec {

namespace {

// Lines: what they were made on, then a product and its algorithm in turn. None of them has a line's end inside.
std::string to_lines(const kernels::MatmulChoices& choices) {
  std::string text = choices.made_on + "\n";
  for (const auto& [product, algorithm] : choices.algorithms)
    text += product + "\n" + algorithm + "\n";
  return text;
}

std::string take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  UK_CHECK(end != std::string_view::npos, "choices that end inside a line");
  std::string line(text.substr(0, end));
  text.remove_prefix(end + 1);
  return line;
}

kernels::MatmulChoices from_lines(std::string_view text) {
  kernels::MatmulChoices choices{.made_on = take_line(text)};
  while (!text.empty()) {
    std::string product = take_line(text);
    choices.algorithms[std::move(product)] = take_line(text);
  }
  return choices;
}

Result<void> share_choices(comm::Communicator& ranks) {
  const bool is_first = ranks.rank() == 0;
  UK_TRY(texts, ranks.all_gather_text(is_first ? to_lines(kernels::cuda_matmul_choices()) : ""));
  if (!is_first) kernels::cuda_take_matmul_choices(from_lines(texts.front()));
  return {};
}

}  // namespace

Result<void> choose_products_for_all(const Context& context, double limit_s, device::Queue& queue) {
  if (context.plan->world_size == 1)
    return limit_s > 0 ? choose_products(context, limit_s, queue) : Result<void>{};
  // Ranks that chose for themselves would not be equally fast, nor have the bits of a resumed run.
  UK_TRY_VOID(comm::on_rank_0(*context.collectives,
                              [&] { return choose_products(context, limit_s, queue); }));
  return share_choices(*context.collectives);
}

}  // namespace underkeel::exec
