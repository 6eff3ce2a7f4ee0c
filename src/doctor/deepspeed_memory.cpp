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
    device(Phase::first_step, passes(false));
    device(Phase::step, passes(true));
    device(Phase::update, update());
    if (run_.evaluates) device(Phase::evaluate, evaluation());
    if (run_.saves) {
      device(Phase::save, saving());
      device(Phase::after_save, passes(true));
    }
    device(Phase::resume, passes(true));
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
  }

  /// Of stage 3: gathered at the end of each update, and released before the next one.
  void add_persistent(Holding& holding) const {
    if (s_.stage == 3 && (many_ || s_.parameters != Offload::none))
      holding.add("persistent", element_ * persistent_elements(run_.sizes, s_));
  }

 private:
  void add_state(Holding& holding, bool has_moments) const {
    if (s_.optimizer != Offload::none) {
      // Where gradients of earlier micro-steps come back to; its like is on the host.
      if (s_.stage < 3) holding.add("staging", element_ * run_.sizes.largest_trainable);
      return;
    }
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
    if (run_.sizes.quantised > 0) {
      // Not built under zero.Init: what stays in 16 bit is split only once all of it is there.
      holding.add("quantised", run_.sizes.quantised * run_.quantised_bytes);
      holding.add("weights", element_ * (run_.sizes.total() - run_.sizes.quantised));
    } else {
      add_weights(holding);
    }
    add_state(holding, false);
    if (s_.stage > 0 && s_.optimizer == Offload::none) holding.add("set_up", set_up());
    return holding;
  }

  /// What set-up holds for a moment beside weights and master: f32 zeros as large as the master or a sub-group of it,
  /// and at stages 1 and 2 the weights a second time while they are made flat. At stage 3 the buffers of gradients come
  /// after it and are there to the end.
  double set_up() const {
    if (s_.stage < 3) return std::max(4 * share_, element_ * psi_ - 4 * share_);
    const double buffers = s_.gradient_bytes * share_ + element_ * s_.reduce_bucket;
    return std::max(4 * largest_sub_group(run_), buffers);
  }

  /// Forward and backward.
  Holding passes(bool has_moments) const {
    // Stage 1 reduces once the backward pass is over, when no activations are left, unless it overlaps.
    if (s_.stage != 1 || s_.overlap_comm || s_.uses_bf16_optimizer)
      return backward(has_moments, true);
    Holding during = backward(has_moments, false);
    Holding after = reduction(has_moments);
    return during.high() > after.high() ? during : after;
  }

  Holding backward(bool has_moments, bool reduces) const {
    Holding holding;
    add_weights(holding);
    add_state(holding, has_moments);
    add_resident_gradients(holding);
    add_gradients(holding, reduces);
    if (s_.stage == 3) {
      // The first pass through the modules records their order: it fetches nothing ahead and keeps nothing gathered.
      const bool records = !has_moments && run_.accumulation_steps == 1;
      // Before the first update none is persistent: those that will be pass through the window with the others.
      DeepspeedRun run = run_;
      if (has_moments)
        add_persistent(holding);
      else
        run.settings.param_persistence = 0;
      const Range live = live_bytes(run);
      holding.add("live", live.low, records ? live.low : live.high);
      holding.add("bucket_copy", 0, element_ * s_.reduce_bucket);
    }
    if (s_.optimizer != Offload::none) add_offload_work(holding, reduces);
    if (run_.activations.high > 0)
      holding.add("activations", run_.activations.low, run_.activations.high);
    return holding;
  }

  /// Of stage 1, after the backward pass. A gradient that was copied to the bucket has given its own memory back.
  Holding reduction(bool has_moments) const {
    Holding holding;
    add_weights(holding);
    add_state(holding, has_moments);
    const double own = s_.optimizer == Offload::none ? element_ * owned_elements(run_) : 0;
    const double all = stage1_gradients() + own;
    const double bucket = element_ * s_.reduce_bucket;
    holding.add("gradients", all - std::min(bucket, element_ * psi_), all);
    if (s_.contiguous_gradients) holding.add("bucket", bucket);
    if (many_ && s_.reduce_scatter) holding.add("bucket_copy", 0, bucket);
    if (s_.optimizer != Offload::none) add_offload_work(holding, true);
    return holding;
  }

  /// Whole gradients of stage 1, and their accumulators where those are wider.
  double stage1_gradients() const {
    return element_ * psi_ + (s_.gradient_bytes > element_ ? 4 * psi_ : 0);
  }

  void add_gradients(Holding& holding, bool reduces) const {
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
      holding.add("gradients", stage1_gradients() +
                                   (reduces && !offloads ? element_ * owned_elements(run_) : 0));
    } else if (s_.stage == 2 && !offloads) {
      const double copies = run_.accumulation_steps > 1 ? 2 : 1;
      // Of two accumulations one is seen with whole parameters on the borders.
      holding.add("gradients", element_ * ((copies - 1) * share_ + owned_elements(run_)));
    }
    if (s_.stage == 1 || s_.stage == 2) {
      const double bucket = element_ * s_.reduce_bucket * (s_.overlap_comm ? 2 : 1);
      if (s_.contiguous_gradients)
        holding.add("bucket", bucket);
      else
        holding.add("bucket", 0, std::min(bucket, element_ * psi_));
      if (reduces && many_ && s_.reduce_scatter)
        holding.add("bucket_copy", 0, element_ * s_.reduce_bucket);
    }
  }

  /// Overflow test and norm of gradients that leave for the host.
  void add_offload_work(Holding& holding, bool reduces) const {
    const double largest = run_.sizes.largest_trainable;
    if (s_.stage == 3)
      holding.add("gradient_checks", 0, (s_.gradient_bytes + 8) * std::ceil(largest / run_.ranks));
    else if (reduces)
      holding.add("gradient_checks", 0, overflow_test_bytes * largest);
  }

  Holding update() const {
    Holding holding;
    add_weights(holding);
    add_state(holding, true);
    if (s_.optimizer != Offload::none) {
      add_resident_gradients(holding);
      add_persistent(holding);  // at its end
      return holding;
    }
    if (s_.stage == 0) {
      holding.add("gradients", element_ * psi_);
      if (s_.is_16_bit) holding.add("update_copies", 8 * psi_);
    } else if (s_.uses_bf16_optimizer) {
      holding.add("gradients", 2 * psi_ + 4 * psi_);
    } else if (s_.stage < 3) {
      holding.add("gradients", element_ * owned_elements(run_));
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
    add_persistent(holding);
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
    add_persistent(holding);
    add_state(holding, true);
    add_resident_gradients(holding);
    if (s_.stage == 3 && s_.gathers_on_save)
      holding.add("gathered_module", element_ * run_.sizes.largest_tensor);
    // What an evaluation left gathered is there until the save releases it.
    if (run_.evaluates && s_.stage == 3) holding.add("live", 0, gathered_bytes(run_));
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

  HostTerms host_terms(bool has_run, bool has_moments) const {
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
      if (has_run && run_.accumulation_steps > 1 && s_.stage == 2)
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
      // Shards of single parameters that train, freed once they are flat; the allocator caches the blocks.
      terms.all.add("weights_transient", 0, element_ * share_);
      terms.pinned.add("weights_transient", 0, element_ * share_);
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
      const HostTerms terms = host_terms(phase != Phase::load, has_moments);
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

  double frozen_bytes() const {
    return element_ * (run_.sizes.frozen - run_.sizes.quantised) +
           run_.quantised_bytes * run_.sizes.quantised;
  }

  Holding loading() const {
    Holding holding;
    // Adapters are made beside the base once it is there.
    const double whole = run_.saves_adapters_only ? frozen_bytes() : element_ * psi_;
    if (s_.stage == 3 && run_.built_sharded) {
      holding.add("checkpoint_shard", 0, std::min(whole, load_shard_bytes));
    } else {
      holding.add("model_per_rank", 0, run_.ranks_on_node * whole);
    }
    // Zeros as large as a sub-group, before there are buffers for gradients.
    if (s_.stage == 3 && s_.optimizer == Offload::cpu)
      holding.add("set_up", 0,
                  run_.ranks_on_node *
                      std::max(0.0, 4 * largest_sub_group(run_) - s_.gradient_bytes * share_));
    return holding;
  }

  Holding save_on_host() const {
    Holding holding;
    const double whole = element_ * (run_.sizes.total() - run_.sizes.quantised);
    const auto [narrow, wide] = adapters_on_rank_0(run_.sizes);
    // The largest storage of a rank is serialised at a time.
    const double storage = s_.stage == 3 ? 4 * largest_sub_group(run_) : 4 * share_;
    if (s_.optimizer == Offload::none)  // else it is written from where it lies
      holding.add("serialised", 0, run_.ranks_on_node * storage);
    if (s_.stage < 3)
      holding.add("weights_clone",
                  run_.ranks_on_node * (run_.saves_adapters_only ? element_ * psi_ : whole));
    else if (run_.saves_adapters_only)
      holding.add("weights_on_rank_0", narrow, wide + frozen_bytes());
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

double persistent_device_bytes(const DeepspeedRun& run) {
  const Model model(run);
  Holding holding;
  model.add_weights(holding);
  model.add_persistent(holding);
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
