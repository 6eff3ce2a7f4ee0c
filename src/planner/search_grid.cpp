#include "planner/search_grid.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "planner/batch_rows.h"
#include "planner/few_layers.h"
#include "spec/model_spec.h"

namespace underkeel::planner {

namespace {

// Tokens of a micro-batch beyond which products gain nothing from more rows, and plans become long.
constexpr std::int64_t most_rows = std::int64_t{1} << 18;
// Micro-batches of one answer: each is planned beside the first, and told. A batch of 5040 has 60 divisors, and a step is
// hardly longer with a micro-batch that is half as large again.
constexpr std::size_t most_micro_batches = 16;

/// Elements of one layer's matrices: what stage 3 gathers for it.
std::int64_t layer_elements(const spec::ModelSpec& model) {
  std::int64_t elements = 0;
  for (const spec::Parameter& parameter : spec::parameters_of(with_layers(model, 1)))
    if (parameter.layer == 0 && parameter.role == spec::ParameterRole::matrix)
      elements += parameter.element_count();
  return elements;
}

}  // namespace

MicroBatches micro_batches_to_search(const FitQuestion& question) {
  const Settings now = settings_of(question.run);
  MicroBatches found;
  for (const std::int64_t micro_batch : divisors_of(now.micro_batch * now.accumulation))
    if (micro_batch <= now.micro_batch || training_rows(question.run, micro_batch) <= most_rows)
      found.tried.push_back(micro_batch);
  if (found.tried.size() <= most_micro_batches) return found;
  const auto largest = static_cast<double>(found.tried.back());
  const double factor =
      std::pow(largest / static_cast<double>(found.tried.front()), 1.0 / (most_micro_batches - 2));
  std::vector<std::int64_t> kept;
  for (const std::int64_t one : found.tried)
    if (kept.empty() || one == now.micro_batch || one == found.tried.back() ||
        static_cast<double>(one) >= factor * static_cast<double>(kept.back()))
      kept.push_back(one);
  found.passed_over = static_cast<std::int64_t>(found.tried.size() - kept.size());
  found.tried = std::move(kept);
  return found;
}

std::vector<Settings> settings_to_search(const FitQuestion& question) {
  const Settings now = settings_of(question.run);
  const std::int64_t of_rank = now.micro_batch * now.accumulation;
  const bool alone = question.placement.world_size == 1;
  std::vector<int> stages = {0, 1, 2, 3};
  if (alone) stages = {now.stage};  // a rank alone has nobody to share with
  const std::int64_t layer = layer_elements(question.model);
  std::vector<Settings> all;
  for (const std::int64_t micro_batch : micro_batches_to_search(question).tried) {
    for (const int stage : stages) {
      std::vector<std::optional<std::int64_t>> aheads = {now.prefetch_elements};
      if (stage == 3 && !alone)
        for (const std::int64_t elements : {std::int64_t{0}, 2 * layer})
          if (elements != now.prefetch_elements) aheads.emplace_back(elements);
      // What needs least comes first: where it does not fit, the others need no estimate.
      std::stable_sort(aheads.begin(), aheads.end(),
                       [](const auto& a, const auto& b) { return (a == 0) > (b == 0); });
      for (const auto& ahead : aheads)
        for (const spec::Recompute level :
             {spec::Recompute::block, spec::Recompute::cheap, spec::Recompute::none})
          all.push_back({.recompute = level,
                         .micro_batch = micro_batch,
                         .accumulation = of_rank / micro_batch,
                         .stage = stage,
                         .prefetch_elements = ahead,
                         .evaluation_batch = now.evaluation_batch});
    }
  }
  return all;
}

std::vector<std::int64_t> evaluation_batches_to_search(const FitQuestion& question) {
  std::vector<std::int64_t> batches = divisors_of(question.run.evaluation.batch_size);
  std::reverse(batches.begin(), batches.end());
  const Request request = request_of(question.model, question.run, question.placement.world_size);
  if (request.max_evaluation_rows == 0) batches.resize(1);
  return batches;
}

}  // namespace underkeel::planner
