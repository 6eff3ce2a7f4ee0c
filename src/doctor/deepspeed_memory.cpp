// Memory of a GPU under DeepSpeed; deepspeed_host.cpp has that of the host.

#include "doctor/deepspeed_memory.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "doctor/deepspeed_host.h"
#include "doctor/deepspeed_window.h"

namespace underkeel::doctor {
namespace {

// One all-reduce of stage 0 flattens at most this many elements.
constexpr double stage0_flatten_elements = 5e8;
// The norm of a gradient is taken of so many elements at a time, in double.
constexpr double norm_piece_elements = 2.5e8;
// An element of a gradient, in double, for its norm.
constexpr double norm_bytes = 8;

class Model {
 public:
  explicit Model(const DeepspeedRun& run)
      : run_(run),
        s_(run.settings),
        psi_(run.sizes.trainable),
        share_(share_of(run)),
        element_(s_.is_16_bit ? 2 : 4),
        sent_(sent_bytes(s_)),
        many_(run.ranks > 1) {}

  Forecast forecast() const {
    Forecast forecast;
    const auto device = [&](Phase phase, Holding holding) {
      forecast.at(phase, Space::device) = with_process(run_, std::move(holding));
    };
    device(Phase::load, loaded());
    device(Phase::first_step, passes(false));
    const Holding later = passes(true);  // a walk over all parameters at stage 3: once
    device(Phase::step, later);
    device(Phase::update, update());
    if (run_.evaluates) device(Phase::evaluate, evaluation());
    if (run_.saves) {
      device(Phase::save, saving());
      device(Phase::after_save, later);
    }
    device(Phase::resume, later);
    add_host_memory(run_, forecast);
    return forecast;
  }

  double state_bytes() const {
    if (s_.optimizer != Offload::none) return 0;
    if (s_.stage == 0) return (s_.is_16_bit ? 12 : 8) * psi_;
    return (s_.master_bytes + s_.moments_bytes) * share_;
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
    holding.add("master", s_.master_bytes * share_);
    if (has_moments) holding.add("moments", s_.moments_bytes * share_);
  }

  /// Of stage 3: there from the start to the end.
  void add_resident_gradients(Holding& holding) const {
    if (s_.stage != 3) return;
    if (s_.optimizer == Offload::none) holding.add("gradients", s_.gradient_bytes * share_);
    if (s_.contiguous_gradients) holding.add("bucket", sent_ * s_.reduce_bucket);
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
    if (s_.stage == 3) {
      const double buffers = stage3_buffers();
      const double built = element_ * run_.sizes.largest_tensor;
      // A tensor is built whole, in f32 first unless that is not torch's type by default.
      holding.add("set_up", std::max(buffers, built),
                  std::max(buffers, built + 4 * run_.sizes.largest_tensor));
    } else if (s_.stage > 0) {
      // Weights a second time, while they are made flat; master, zeros for gradients, or staging come after.
      const bool offloads = s_.optimizer != Offload::none;
      const double master = s_.master_bytes * share_;
      const double after = offloads ? element_ * run_.sizes.largest_trainable : master;
      const double flat = flattens_on_device(run_) ? element_ * psi_ - after : 0;
      holding.add("set_up", std::max(offloads ? 0 : master, flat));
    } else if (s_.is_16_bit) {
      holding.add("set_up", 4 * psi_);  // gradients of zero, for the step that makes the moments
    }
    return holding;
  }

  /// What set-up of stage 3 holds beside weights and master: f32 zeros as large as a sub-group for a moment, and then the
  /// buffers of gradients, which are there to the end, while each parameter is gathered once, alone.
  double stage3_buffers() const {
    const bool offloads = s_.optimizer != Offload::none;
    const double gradients = offloads ? 0 : s_.gradient_bytes * share_;
    const double bucket = s_.contiguous_gradients ? sent_ * s_.reduce_bucket : 0;
    // Received from the host, and copied once more.
    const double alone =
        (s_.parameters != Offload::none ? 2 : 1) * element_ * run_.sizes.largest_tensor;
    return std::max(offloads ? 0 : s_.master_bytes * largest_sub_group(run_),
                    gradients + bucket + alone);
  }

  /// Forward and backward: the worst of their moments.
  Holding passes(bool has_moments) const {
    if (s_.stage == 3) return sharded_passes(has_moments);
    // Stage 1 reduces once the backward pass is over, when no activations are left, unless it overlaps.
    const bool reduces_after = s_.stage == 1 && !s_.overlap_comm && !s_.uses_bf16_optimizer;
    Holding worst = at_loss(has_moments);
    Holding layers = worst_before_reduction(has_moments);
    consider(worst, layers);
    Holding turn = resting(has_moments);
    add_gradients(turn, !reduces_after);
    if (!reduces_after && s_.stage == 1 && !s_.uses_bf16_optimizer) {
      add_copies(
          turn,
          {.elements = s_.reduce_bucket, .largest = run_.sizes.largest_trainable, .count = 2});
    }
    add_activations(turn, 0);
    // The gradient of the embedding is the last one, when no activations are left.
    turn.add("gradient_in_work", 0, element_ * gradient_in_work());
    consider(worst, turn);
    if (s_.uses_bf16_optimizer) {
      // A group of its f32 gradients is sent at a time, once the backward pass is over; all may be one.
      Holding sending = resting(has_moments);
      add_gradients(sending, true);
      sending.add("bucket_copy", 0, sent_ == 4 ? 0 : sent_ * psi_);
      consider(worst, sending);
    }
    if (reduces_after) consider_reductions_of_stage1(worst, has_moments);
    if (s_.stage == 0 && many_) {
      Holding reduction = resting(has_moments);
      add_gradients(reduction, true);
      const double flat = std::min(psi_, stage0_flatten_elements);
      reduction.add("bucket_copy", element_ * flat);
      if (casts()) reduction.add("bucket_cast", sent_ * flat);
      consider(worst, reduction);
    }
    if (s_.stage == 2)
      for (const Reduction& reduction : window_of(run_).reductions) {
        Holding holding = resting(has_moments);
        add_gradients(holding, true);
        add_reduction(holding, reduction);
        consider(worst, holding);
      }
    return worst;
  }

  /// Where the backward pass begins: its gradients are not there yet, and releases differ in when they make the bucket.
  Holding at_loss(bool has_moments) const {
    Holding holding = before_gradients(has_moments);
    if (run_.activations.loss.high > 0)
      holding.add("activations", run_.activations.loss.low, run_.activations.loss.high);
    return holding;
  }

  /// At the last layer: the head's gradient, the first, is there.
  Holding worst_before_reduction(bool has_moments) const {
    Holding holding = before_gradients(has_moments);
    holding.add("gradient_in_work", 0, element_ * run_.sizes.largest_trainable);
    add_activations(holding, 1);
    return holding;
  }

  Holding before_gradients(bool has_moments) const {
    Holding holding = resting(has_moments);
    const bool accumulates = run_.accumulation_steps > 1;
    if (s_.uses_bf16_optimizer || (accumulates && s_.stage < 2))
      add_own_gradients(holding, false);
    else if (s_.stage == 1 && s_.gradient_bytes > element_)
      holding.add("gradients", 4 * psi_);
    else if (s_.stage == 2 && s_.optimizer == Offload::none && accumulates)
      holding.add("gradients", element_ * share_);
    if ((s_.stage == 1 || s_.stage == 2) && !s_.uses_bf16_optimizer)
      holding.add("bucket", 0, bucket_bytes());
    return holding;
  }

  bool is_state_alone() const { return run_.activations.loss.high <= 0; }

  /// Of state alone there is no moment when activations meet it: each term is then at its most.
  void consider(Holding& worst, const Holding& holding) const {
    if (!is_state_alone()) {
      if (holding.high() > worst.high()) worst = holding;
      return;
    }
    for (const Term& term : holding.terms) {
      if (term.name == "gradient_in_work") continue;  // work, as activations are
      const auto same = [&](const Term& other) { return other.name == term.name; };
      const auto found = std::find_if(worst.terms.begin(), worst.terms.end(), same);
      if (found == worst.terms.end())
        worst.terms.push_back(term);
      else
        *found = {term.name, std::max(term.low_bytes, found->low_bytes),
                  std::max(term.high_bytes, found->high_bytes)};
    }
  }

  Holding resting(bool has_moments) const {
    Holding holding;
    add_weights(holding);
    add_state(holding, has_moments);
    add_resident_gradients(holding);
    return holding;
  }

  /// Elements of gradients that are not yet where gradients are kept. Of a matrix with two uses there is one of each, and
  /// their sum.
  double gradient_in_work() const {
    if (s_.stage == 2)
      return run_.sizes.tied > 0 ? 3 * run_.sizes.tied : run_.sizes.largest_trainable;
    return (s_.stage == 3 ? 3 : 2) * run_.sizes.tied;
  }

  /// While the backward pass goes through the layers, with a fraction of them before it.
  void add_activations(Holding& holding, double fraction) const {
    const BackwardActivations& all = run_.activations;
    if (!is_state_alone())
      holding.add("activations", fraction * all.layers.low + all.work.low,
                  fraction * all.layers.high + all.work.high);
  }

  /// Of stage 1, after the backward pass. A gradient that was copied to the bucket has given its own memory back.
  void consider_reductions_of_stage1(Holding& worst, bool has_moments) const {
    const double own = s_.optimizer == Offload::none ? element_ * owned_elements(run_) : 0;
    double left = stage1_gradients();
    for (const Reduction& reduction : reductions_in_order(run_)) {
      Holding holding = resting(has_moments);
      const bool has_moved =
          s_.contiguous_gradients && !is_state_alone() && reduction.elements <= s_.reduce_bucket;
      const double moved = has_moved ? element_ * reduction.elements : 0;
      holding.add("gradients", left - moved + own);
      add_bucket(holding);
      add_copies(holding, reduction);
      consider(worst, holding);
      left -= element_ * reduction.elements;
    }
  }

  // --- forward and backward at stage 3 ---

  /// The turn, each reduction of gradients, the end.
  Holding sharded_passes(bool has_moments) const {
    DeepspeedRun run = run_;
    // Before the first update none is persistent: those that will be pass through the window with the others.
    if (!has_moments) run.settings.param_persistence = 0;
    const Window window = window_of(run);
    // The first pass through the modules records their order: it fetches nothing ahead and keeps nothing gathered.
    const bool records = !has_moments && run_.accumulation_steps == 1;
    const double alone = gathers(run) ? element_ * run_.sizes.largest_tensor : 0;
    const double received = records ? 0 : received_bytes(run, element_ * window.most);
    const auto at = [&](double gathered, bool at_loss = false) {
      Holding holding = resting(has_moments);
      if (has_moments) add_persistent(holding);
      const double live = gathers(run) ? element_ * gathered : 0;
      // Between the head's two passes it may be released.
      const double least = at_loss ? 0 : std::min(live, alone);
      holding.add("live", least, records ? least : live + received);
      return holding;
    };
    Holding worst = at(window.most, true), layers = at(window.most);
    if (run_.activations.loss.high > 0)
      worst.add("activations", run_.activations.loss.low, run_.activations.loss.high);
    add_activations(layers, 1);
    consider(worst, layers);
    for (const Reduction& reduction : window.reductions) {
      Holding holding = at(reduction.gathered);
      add_reduction(holding, reduction);
      consider(worst, holding);
    }
    Holding end = at(std::min(window.most, run_.sizes.largest_tensor));
    end.add("gradient_in_work", 0, element_ * gradient_in_work());
    consider(worst, end);
    return worst;
  }

  // --- reductions ---

  /// During a backward pass that has come to it.
  void add_reduction(Holding& holding, const Reduction& reduction) const {
    double in_work = reduction.next + (reduction.next > 0 ? run_.sizes.tied : 0);
    if (reduction.elements > s_.reduce_bucket) in_work += reduction.elements;  // in no bucket
    holding.add("gradient_in_work", 0, element_ * in_work);
    add_copies(holding, reduction);
    add_activations(holding, reduction.left);
  }

  /// What is held twice while gradients are reduced, and what looks them through where they leave for the host.
  void add_copies(Holding& holding, const Reduction& reduction) const {
    // Of state alone all that a bucket may hold.
    const double elements = is_state_alone() ? s_.reduce_bucket : reduction.elements;
    const double copy = (s_.stage == 3 ? sent_ : element_) * std::min(elements, s_.reduce_bucket);
    const double largest = std::ceil(reduction.largest / (s_.stage == 3 ? run_.ranks : 1));
    if (s_.stage == 3) {
      // One gradient that divides evenly is reduced from where it is.
      const bool is_alone = reduction.count == 1 && std::fmod(reduction.elements, run_.ranks) == 0;
      const bool is_copied = !is_alone && (many_ || s_.reduce_scatter);
      holding.add("bucket_copy", 0, is_copied ? copy : 0);
    } else if (many_ && s_.reduce_scatter) {
      holding.add("bucket_copy", 0, copy);
    }
    // The bucket of stage 3 is of the type that is sent; what goes alone and what comes back is not.
    if (casts()) holding.add("bucket_cast", 0, (s_.stage == 3 ? element_ : sent_) * elements);
    if (s_.optimizer == Offload::none) return;
    // At stage 3 the gradient is there once more, and its norm is taken piece by piece.
    holding.add("gradient_checks", 0,
                s_.stage == 3 ? s_.gradient_bytes * largest +
                                    norm_bytes * std::min(largest, norm_piece_elements)
                              : norm_bytes * largest);
  }

  /// Whether gradients are sent in a type that is not theirs.
  bool casts() const { return sent_ != element_; }

  // --- gradients ---

  /// Whole gradients of stage 1, and their accumulators where those are wider.
  double stage1_gradients() const {
    return element_ * psi_ + (s_.gradient_bytes > element_ ? 4 * psi_ : 0);
  }

  void add_gradients(Holding& holding, bool reduces) const {
    add_own_gradients(holding, reduces);
    if ((s_.stage == 1 || s_.stage == 2) && !s_.uses_bf16_optimizer) add_bucket(holding);
  }

  void add_own_gradients(Holding& holding, bool reduces) const {
    const bool offloads = s_.optimizer != Offload::none;
    if (s_.stage == 0) holding.add("gradients", element_ * psi_);
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
  }

  /// Of stages 1 and 2.
  double bucket_bytes() const { return element_ * s_.reduce_bucket * (s_.overlap_comm ? 2 : 1); }
  void add_bucket(Holding& holding) const {
    const double bucket = bucket_bytes();
    if (s_.contiguous_gradients)
      holding.add("bucket", bucket);
    else
      holding.add("bucket", 0, std::min(bucket, element_ * psi_));
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
      holding.add("update_copies", copied_bytes(element_) * share_);
    } else {
      add_resident_gradients(holding);
      holding.add("update_copies", copied_bytes(s_.gradient_bytes) * largest_sub_group(run_));
    }
    return holding;
  }

  /// What an update makes of an element of a gradient: one flat, and that once more where the master has another type.
  double copied_bytes(double gradient) const {
    return gradient + (gradient == s_.master_bytes ? 0 : s_.master_bytes);
  }

  Holding evaluation() const {
    Holding holding;
    add_weights(holding);
    add_persistent(holding);
    add_state(holding, true);
    add_resident_gradients(holding);
    if (s_.stage == 3) {
      const double gathered = gathered_bytes(run_);
      holding.add("live", std::min(gathered, element_ * run_.sizes.largest_tensor),
                  gathered + received_bytes(run_, gathered));
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

  const DeepspeedRun& run_;
  const DeepspeedSettings& s_;
  double psi_, share_, element_, sent_;
  bool many_;
};

}  // namespace

Holding with_process(const DeepspeedRun& run, Holding holding) {
  if (!run.has_process) return holding;
  const double held = holding.high();
  holding.add("context", context_bytes.low, context_bytes.high);
  holding.add("allocator", 0, allocator_waste * held);
  return holding;
}

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

}  // namespace underkeel::doctor
