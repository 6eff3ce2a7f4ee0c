#pragma once
// A short run of a small model with awkward batches, for tests that compare bits of whole runs.

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "spec/model_spec.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/value_of.h"
#include "train/model_source.h"

namespace underkeel::test {

/// What a short run leaves behind: losses and norms of its steps, and the final weights of every tensor.
struct Trace {
  std::vector<double> losses;
  std::vector<float> norms;
  std::map<std::string, std::vector<float>> weights;

  bool operator==(const Trace&) const = default;
};

/// Keeps what a save writes, as f32.
class MemorySink : public exec::StateSink {
 public:
  MemorySink(std::map<std::string, std::vector<float>>& into, std::mutex& mutex)
      : into_(into), mutex_(mutex) {}
  Result<void> write(const plan::UnitTensor& tensor, plan::StatePart part, std::int64_t begin,
                     std::int64_t end, DType type, const void* from) override {
    const std::lock_guard lock(mutex_);
    auto& values = into_[tensor.name + "." + std::string(plan::name_of(part))];
    values.resize(static_cast<std::size_t>(tensor.element_count));
    train::widen(static_cast<const std::byte*>(from), type, end - begin, values.data() + begin);
    return {};
  }

 private:
  std::map<std::string, std::vector<float>>& into_;
  std::mutex& mutex_;
};

inline spec::ModelSpec small_model() {
  spec::ModelSpec model;
  model.architecture = "LlamaForCausalLM";
  model.vocabulary = 259;
  model.width = 64;
  model.feed_forward = 172;
  model.layers = 3;
  model.query_heads = 4;
  model.key_heads = 2;
  model.head_width = 16;
  model.windows = {0, 0, 0};
  model.initializer_range = 0.05;
  return model;
}

/// Micro-batch `number` of `rank`: lengths differ by rank and number, one is empty. Every window repeats
/// them, so that the loss falls.
inline FlatBatch batch_of(int rank, int number, std::int64_t max_rows) {
  FlatBatch batch;
  const auto word = [&](std::uint64_t i) {
    return random_word(11, static_cast<std::uint32_t>(rank * 97 + number), i);
  };
  const std::int64_t rows = (rank == 1 && number == 2) ? 0 : 8 + word(0) % (max_rows - 7);
  batch.sequence_starts = {0};
  std::int32_t position = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    batch.tokens.push_back(static_cast<std::int32_t>(word(1 + row) % 259));
    const bool last = row + 1 == rows || word(5000 + row) % 29 == 0;
    batch.positions.push_back(position);
    batch.targets.push_back(last ? -100 : static_cast<std::int32_t>(word(1 + row + 1) % 259));
    position = last ? 0 : position + 1;
    if (last) batch.sequence_starts.push_back(static_cast<std::int32_t>(row + 1));
  }
  return batch;
}

constexpr std::int64_t rows_for_test = 96;
constexpr int windows_for_test = 3;

inline planner::Request base_request(std::int64_t world) {
  planner::Request request = request_for(small_model(), rows_for_test);
  request.world_size = world;
  request.accumulation_steps = 3;
  request.optimizer.learning_rate = 0.01;
  request.optimizer.weight_decay = 0.1;
  request.optimizer.max_grad_norm = 0.5;
  return request;
}

/// On the CPU's kernels unless `options` name others.
inline Trace run(const plan::Plan& plan, EngineOptions options, bool save_between = false) {
  if (options.kernels == nullptr) options.kernels = &kernels::cpu_kernels();
  Trace trace;
  std::mutex mutex;
  run_ranks(plan, options, [&](Rank& rank) {
    const spec::ModelSpec model = small_model();
    train::FreshSource source(model, 5);
    exec::Inputs load;
    load.source = &source;
    value_of(rank.executor.run(plan::SegmentKind::load, load));
    std::map<std::string, std::vector<float>> discarded;
    MemorySink discard(discarded, mutex);
    for (int window = 0; window < windows_for_test; ++window) {
      const std::vector<plan::SegmentKind> kinds =
          window == 1 ? std::vector{plan::SegmentKind::micro_only}
                      : std::vector{plan::SegmentKind::micro_first, plan::SegmentKind::micro_middle,
                                    plan::SegmentKind::micro_last};
      std::vector<FlatBatch> batches;
      double targets = 0;
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        batches.push_back(batch_of(rank.rank, static_cast<int>(i), rows_for_test));
        targets += static_cast<double>(batches.back().trained_count());
      }
      std::vector<double> all(static_cast<std::size_t>(plan.world_size));
      value_of(rank.control.all_gather_values(std::span(&targets, 1), all));
      double sum = 0;
      for (const double count : all) sum += count;
      exec::Inputs update;
      // Of f16 alone: the update takes it out again.
      if (plan.schedule.buffer(plan.schedule.units.front().weights).type == DType::f16)
        update.loss_scale = 4096;
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        exec::Inputs inputs = inputs_of(batches[i], static_cast<std::int64_t>(sum));
        inputs.gradient_scale *= update.loss_scale;
        value_of(rank.executor.run(kinds[i], inputs));
      }
      const double t = window + 1;
      update.step_values = {0.01f, static_cast<float>(1 - std::pow(0.9, t)),
                            static_cast<float>(std::sqrt(1 - std::pow(0.999, t))),
                            std::bit_cast<float>(static_cast<std::uint32_t>(window + 1))};
      const exec::Outputs outputs = value_of(rank.executor.run(plan::SegmentKind::update, update));
      double loss = 0;
      for (std::int64_t r = 0; r < plan.world_size; ++r)
        loss += outputs.totals[static_cast<std::size_t>(r * plan::total_count)];
      if (rank.rank == 0) {
        trace.losses.push_back(loss / sum);
        trace.norms.push_back(outputs.clip[0]);
      }
      if (save_between) {
        exec::Inputs save;
        save.sink = &discard;
        value_of(rank.executor.run(plan::SegmentKind::save, save));
      }
    }
    MemorySink sink(trace.weights, mutex);
    exec::Inputs save;
    save.sink = &sink;
    value_of(rank.executor.run(plan::SegmentKind::save, save));
    value_of(rank.executor.drain());
    value_of(rank.executor.check_guards());
  });
  return trace;
}

inline void expect_equal(const Trace& actual, const Trace& expected) {
  EXPECT_EQ(actual.losses, expected.losses);
  EXPECT_EQ(actual.norms, expected.norms);
  ASSERT_EQ(actual.weights.size(), expected.weights.size());
  for (const auto& [name, values] : expected.weights) {
    const auto& other = actual.weights.at(name);
    ASSERT_EQ(other.size(), values.size()) << name;
    EXPECT_EQ(std::memcmp(other.data(), values.data(), values.size() * 4), 0) << name;
  }
}

}  // namespace underkeel::test
