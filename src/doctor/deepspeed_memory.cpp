#include "doctor/deepspeed_memory.h"

#include <algorithm>
#include <cmath>

namespace underkeel::doctor {
namespace {

// One all-reduce of stage 0 flattens at most this many elements.
constexpr double stage0_flatten_elements = 5e8;
// A checkpoint shard as Hugging Face writes them; loading holds one at a time.
constexpr double load_shard_bytes = 5e9;
// Context, library workspaces and NCCL's buffers; general experience, not measured here.
constexpr Range context_bytes = {0.4e9, 1.5e9};
constexpr double allocator_waste = 0.06;
// Resident in a Python process with torch and CUDA.
constexpr Range process_bytes = {1.0e9, 3.0e9};
// The overflow test's temporaries for each element of a gradient: |g|, comparisons, a sum.
constexpr double overflow_test_bytes = 11;

class Model {
 public:
  explicit Model(const DeepspeedRun& run)
      : run_(run),
        s_(run.settings),
        psi_(run.sizes.trainable),
        share_(share_of(run)),
        element_(s_.is_16_bit ? 2 : 4),
        many_(run.ranks > 1) {}

  Forecast forecast() const {
    Forecast forecast;
    const auto device = [&](Phase phase, Holding holding) {
      forecast.at(phase, Space::device) = with_context(std::move(holding));
    };
    device(Phase::load, loaded());
    device(Phase::first_step, passes(false, 0));
    device(Phase::step, passes(true, 0));
    device(Phase::update, update());
    if (run_.evaluates) device(Phase::evaluate, evaluation());
    if (run_.saves) {
      device(Phase::save, saving());
      device(Phase::after_save, passes(true, 0));
    }
    device(Phase::resume, passes(true, 0));
    host(forecast);
    return forecast;
  }

  double state_bytes() const {
    if (s_.optimizer != Offload::none) return 0;
    return s_.stage == 0 ? (s_.is_16_bit ? 12 : 8) * psi_ : 12 * share_;
  }

  void add_weights(Holding& holding) const {
    const double quantised = run_.sizes.quantised * run_.quantised_bytes;
    const double frozen = element_ * (run_.sizes.frozen - run_.sizes.quantised);
    if (s_.stage < 3) {
      holding.add("weights", element_ * psi_ + frozen);
    } else if (s_.parameters == Offload::none) {
      holding.add("weights", element_ * share_ + frozen / run_.ranks);
    }
    // A quantised base is not split, whatever the stage: each rank holds it whole.
    if (quantised > 0) holding.add("quantised", quantised);
    if (s_.stage == 3 && (many_ || s_.parameters != Offload::none))
      holding.add("persistent", element_ * persistent_elements(run_.sizes, s_));
  }

 private:
  void add_state(Holding& holding, bool has_moments) const {
    if (s_.optimizer != Offload::none) return;
    if (s_.stage == 0) {
      if (s_.is_16_bit) holding.add("master", 4 * psi_);
      holding.add("moments", 8 * psi_);  // a dummy step makes them at the start
      return;
    }
    holding.add("master", 4 * share_);
    if (has_moments) holding.add("moments", 8 * share_);
  }

  /// Of stage 3: there from the start to the end.
  void add_resident_gradients(Holding& holding) const {
    if (s_.stage != 3) return;
    if (s_.optimizer == Offload::none) holding.add("gradients", s_.gradient_bytes * share_);
    if (s_.contiguous_gradients) holding.add("bucket", element_ * s_.reduce_bucket);
  }

  Holding loaded() const {
    Holding holding;
    if (s_.stage == 3 && !run_.built_sharded) {
      holding.add("whole_model", element_ * run_.sizes.total());
      return holding;
    }
    add_weights(holding);
    add_state(holding, false);
    return holding;
  }

  /// Forward and backward.
  Holding passes(bool has_moments, double left_over) const {
    Holding holding;
    add_weights(holding);
    add_state(holding, has_moments);
    add_resident_gradients(holding);
    add_gradients(holding);
    if (s_.stage == 3) {
      const Range live = live_bytes(run_);
      holding.add("live", live.low, live.high + left_over);
      holding.add("bucket_copy", 0, element_ * s_.reduce_bucket);
    }
    if (s_.optimizer != Offload::none) add_offload_work(holding);
    if (run_.activations.high > 0)
      holding.add("activations", run_.activations.low, run_.activations.high);
    return holding;
  }

  void add_gradients(Holding& holding) const {
    const bool offloads = s_.optimizer != Offload::none;
    if (s_.stage == 0) {
      holding.add("gradients", element_ * psi_);
      if (many_) holding.add("bucket_copy", element_ * std::min(psi_, stage0_flatten_elements));
    }
    if (s_.uses_bf16_optimizer) {
      holding.add("gradients", 2 * psi_ + 4 * psi_);
      return;
    }
    if (s_.stage == 1) {
      holding.add("gradients", element_ * psi_ + (s_.gradient_bytes > element_ ? 4 * psi_ : 0) +
                                   (offloads ? 0 : element_ * share_));
    } else if (s_.stage == 2 && !offloads) {
      const double copies = run_.accumulation_steps > 1 ? 2 : 1;
      holding.add("gradients", copies * element_ * share_);
    }
    if (s_.stage == 1 || s_.stage == 2) {
      const double bucket = element_ * s_.reduce_bucket * (s_.overlap_comm ? 2 : 1);
      if (s_.contiguous_gradients)
        holding.add("bucket", bucket);
      else
        holding.add("bucket", 0, std::min(bucket, element_ * psi_));
      if (many_ && s_.reduce_scatter) holding.add("bucket_copy", 0, element_ * s_.reduce_bucket);
    }
  }

  /// Staging, overflow test and norm of gradients that leave for the host.
  void add_offload_work(Holding& holding) const {
    const double largest = run_.sizes.largest_trainable;
    if (s_.stage < 3) {
      holding.add("staging", element_ * largest);
      holding.add("gradient_checks", 0, overflow_test_bytes * largest);
    } else {
      holding.add("gradient_checks", 0, (s_.gradient_bytes + 8) * std::ceil(largest / run_.ranks));
    }
  }

  Holding update() const {
    Holding holding;
    add_weights(holding);
    add_state(holding, true);
    if (s_.optimizer != Offload::none) {
      add_resident_gradients(holding);
      return holding;
    }
    if (s_.stage == 0) {
      holding.add("gradients", element_ * psi_);
      if (s_.is_16_bit) holding.add("update_copies", 8 * psi_);
    } else if (s_.uses_bf16_optimizer) {
      holding.add("gradients", 2 * psi_ + 4 * psi_);
    } else if (s_.stage < 3) {
      holding.add("gradients", element_ * share_);
      holding.add("update_copies", (element_ + 4) * share_);
    } else {
      add_resident_gradients(holding);
      holding.add("update_copies", (s_.gradient_bytes + 4) * largest_sub_group(run_));
    }
    return holding;
  }

  Holding evaluation() const {
    Holding holding;
    add_weights(holding);
    add_state(holding, true);
    add_resident_gradients(holding);
    if (s_.stage == 3) {
      const Range live = live_bytes(run_);
      holding.add("live", live.low, live.high);
    }
    holding.add("activations", run_.evaluation.low, run_.evaluation.high);
    return holding;
  }

  Holding saving() const {
    Holding holding;
    add_weights(holding);
    add_state(holding, true);
    add_resident_gradients(holding);
    if (s_.stage == 3 && s_.gathers_on_save)
      holding.add("gathered_module", element_ * run_.sizes.largest_tensor);
    return holding;
  }

  Holding with_context(Holding holding) const {
    if (!run_.has_process) return holding;
    const double held = holding.high();
    holding.add("context", context_bytes.low, context_bytes.high);
    holding.add("allocator", 0, allocator_waste * held);
    return holding;
  }

  // --- the host, of one node ---

  struct HostTerms {
    Holding all, pinned;  // of one rank
    void pin(std::string_view name, double bytes, double block_bytes, bool rounds) {
      all.add(name, bytes);
      pinned.add(name, bytes);
      if (!rounds || block_bytes <= 0) return;
      rounding += std::max(0.0, bytes / block_bytes * rounded_block(block_bytes) - bytes);
    }
    double rounding = 0;  // up to powers of two
  };

  HostTerms host_terms(bool has_moments) const {
    HostTerms terms;
    const double group = largest_sub_group(run_);
    if (s_.optimizer == Offload::cpu && s_.stage < 3) {
      const double largest = element_ * run_.sizes.largest_trainable;
      if (s_.pins_memory) {
        terms.pin("master", 4 * share_, 4 * share_, true);
        terms.pin("gradients_f32", 4 * share_, 4 * share_, true);
        terms.pin("staging", element_ * share_ + largest, element_ * share_, true);
      } else {
        terms.all.add("master", 4 * share_);
        terms.all.add("gradients_f32", 4 * share_);
        terms.all.add("staging", element_ * share_ + largest);
      }
      if (has_moments) terms.all.add("moments", 8 * share_);
      if (run_.accumulation_steps > 1 && s_.stage == 2)
        terms.pin("accumulation", element_ * share_, element_ * share_, s_.pins_memory);
    }
    if (s_.optimizer == Offload::cpu && s_.stage == 3) {
      terms.all.add("master", 4 * share_);
      terms.pin("gradients_f32", 4 * share_, 4 * group, s_.pins_memory);
      terms.pin("gradients", s_.gradient_bytes * share_, s_.gradient_bytes * share_,
                s_.pins_memory);
      if (has_moments) terms.all.add("moments", 8 * share_);
    }
    if (s_.optimizer == Offload::nvme) {
      terms.pin("nvme_buffers", s_.buffer_count * 4 * group, 4 * group, true);
      terms.pin("gradients", s_.gradient_bytes * share_, s_.gradient_bytes * share_, true);
    }
    const double frozen = element_ * (run_.sizes.frozen - run_.sizes.quantised) / run_.ranks;
    if (s_.parameters == Offload::cpu) {
      terms.pin("weights", element_ * share_ + frozen, element_ * (share_ + frozen / element_),
                true);
      // Shards of single parameters, freed once they are flat; the allocator caches the blocks.
      terms.all.add("weights_transient", 0, element_ * share_ + frozen);
      terms.pinned.add("weights_transient", 0, element_ * share_ + frozen);
    }
    if (s_.parameters == Offload::nvme)
      terms.pin("parameter_buffers", s_.parameter_buffer_count * s_.parameter_buffer * element_,
                s_.parameter_buffer * element_, true);
    if (terms.rounding > 0) {
      terms.all.add(rounding_term, 0, terms.rounding);
      terms.pinned.add(rounding_term, 0, terms.rounding);
    }
    return terms;
  }

  static Holding times(const Holding& of_rank, double ranks) {
    Holding node;
    for (const Term& term : of_rank.terms)
      node.add(term.name, ranks * term.low_bytes, ranks * term.high_bytes);
    return node;
  }

  void host(Forecast& forecast) const {
    const double ranks = run_.ranks_on_node;
    const auto put = [&](Phase phase, bool has_moments, const Holding& more) {
      const HostTerms terms = host_terms(has_moments);
      Holding all = times(terms.all, ranks);
      for (const Term& term : more.terms) all.terms.push_back(term);
      if (run_.has_process)
        all.add("processes", ranks * process_bytes.low, ranks * process_bytes.high);
      forecast.at(phase, Space::host) = all;
      if (!terms.pinned.terms.empty())
        forecast.at(phase, Space::pinned_host) = times(terms.pinned, ranks);
    };
    put(Phase::load, false, loading());
    put(Phase::first_step, false, {});
    put(Phase::step, true, {});
    put(Phase::update, true, {});
    if (run_.evaluates) put(Phase::evaluate, true, {});
    if (run_.saves) {
      put(Phase::save, true, save_on_host());
      put(Phase::after_save, true, {});
    }
    put(Phase::resume, true, resume_on_host());
    if (const double bytes = nvme_bytes(run_); bytes > 0)
      for (const Phase phase : {Phase::step, Phase::update, Phase::resume}) {
        Holding holding;
        holding.add("optimizer", 0.75 * bytes, bytes);
        forecast.at(phase, Space::nvme) = holding;
      }
  }

  Holding loading() const {
    Holding holding;
    const double whole = element_ * (run_.sizes.total() - run_.sizes.quantised) +
                         run_.quantised_bytes * run_.sizes.quantised;
    if (s_.stage == 3 && run_.built_sharded) {
      holding.add("checkpoint_shard", 0, std::min(whole, load_shard_bytes));
    } else {
      holding.add("model_per_rank", 0, run_.ranks_on_node * whole);
    }
    return holding;
  }

  Holding save_on_host() const {
    Holding holding;
    const double whole = element_ * (run_.sizes.total() - run_.sizes.quantised);
    const double adapters = element_ * psi_;
    // The largest storage of a rank is serialised at a time.
    const double storage = s_.stage == 3 ? 4 * largest_sub_group(run_) : 4 * share_;
    if (s_.optimizer == Offload::none)  // else it is written from where it lies
      holding.add("serialised", 0, run_.ranks_on_node * storage);
    if (s_.stage < 3)
      holding.add("weights_clone",
                  run_.ranks_on_node * (run_.saves_adapters_only ? adapters : whole));
    else if (run_.saves_adapters_only)
      holding.add("weights_on_rank_0", adapters, adapters + element_ * run_.sizes.frozen);
    else if (s_.gathers_on_save)
      holding.add("weights_on_rank_0", whole);
    return holding;
  }

  /// Each rank reads its own optimizer file whole, besides what lives there already; at stages 1 and 2 every rank reads
  /// the model file too.
  Holding resume_on_host() const {
    Holding holding;
    holding.add("optimizer_file", run_.ranks_on_node * 12 * share_);
    if (s_.stage < 3) holding.add("model_file", 0, run_.ranks_on_node * element_ * psi_);
    return holding;
  }

  const DeepspeedRun& run_;
  const DeepspeedSettings& s_;
  double psi_, share_, element_;
  bool many_;
};

}  // namespace

double share_of(const DeepspeedRun& run) {
  if (run.settings.stage == 0) return run.sizes.trainable;
  if (run.settings.stage < 3) return 2 * std::ceil(run.sizes.trainable / (2 * run.ranks));
  const auto ranks = static_cast<std::int64_t>(run.ranks);
  std::int64_t share = 0;
  for (const Tensor& tensor : run.sizes.tensors)
    if (tensor.is_trainable) share += (tensor.elements + ranks - 1) / ranks;
  return static_cast<double>(share);
}

double persistent_elements(const ModelSizes& sizes, const DeepspeedSettings& settings) {
  double sum = 0;
  for (const Tensor& tensor : sizes.tensors) {
    const auto elements = static_cast<double>(tensor.elements);
    if (elements <= settings.param_persistence && sum + elements <= settings.model_persistence)
      sum += elements;
  }
  return sum;
}

double largest_sub_group(const DeepspeedRun& run) {
  const double largest_share = std::ceil(run.sizes.largest_trainable / run.ranks);
  return std::min(share_of(run), run.settings.sub_group + largest_share);
}

Range live_bytes(const DeepspeedRun& run) {
  const DeepspeedSettings& s = run.settings;
  if (s.stage < 3) return {0, 0};
  // On one rank a gather is a view of the shard.
  const bool many = run.ranks > 1;
  if (!many && s.parameters == Offload::none) return {0, 0};
  const double element = s.is_16_bit ? 2 : 4;
  const double largest = run.sizes.largest_tensor;
  const double window = std::max({s.max_live, s.max_reuse_distance / 2, largest});
  const double live = element * std::min(run.sizes.total(), window + s.prefetch_bucket + largest);
  const double copies = many ? element * (s.prefetch_bucket + largest) : 0;
  return {element * largest, live + copies};
}

double rounded_block(double size_bytes) {
  return size_bytes <= 0 ? 0 : std::exp2(std::ceil(std::log2(size_bytes)));
}

double persistent_device_bytes(const DeepspeedRun& run) {
  const Model model(run);
  Holding holding;
  model.add_weights(holding);
  return holding.low() + model.state_bytes();
}

Forecast deepspeed_memory(const DeepspeedRun& run) {
  return Model(run).forecast();
}

double nvme_bytes(const DeepspeedRun& run) {
  const double ranks = run.ranks_on_node;
  double bytes = 0;
  // Master, both moments, and f32 gradients, which are swapped too.
  if (run.settings.optimizer == Offload::nvme) bytes += ranks * 16 * share_of(run);
  if (run.settings.parameters == Offload::nvme) bytes += ranks * 2 * share_of(run);
  return bytes;
}

}  // namespace underkeel::doctor
