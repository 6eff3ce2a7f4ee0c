#include "doctor/trainer_loop.h"

#include <algorithm>
#include <utility>

#include "doctor/deepspeed_host.h"
#include "doctor/deepspeed_memory.h"

namespace underkeel::doctor {
namespace {

class Loop {
 public:
  explicit Loop(const DeepspeedRun& run)
      : run_(run), bytes_(loop_bytes(run.settings)), psi_(run.sizes.trainable) {}

  Forecast forecast() const {
    Forecast forecast;
    const auto put = [&](Phase phase, Holding device, Holding host = {}) {
      forecast.at(phase, Space::device) = with_process(run_, std::move(device));
      if (run_.has_process)
        host.add("processes", run_.ranks_on_node * process_bytes.low,
                 run_.ranks_on_node * process_bytes.high);
      forecast.at(phase, Space::host) = std::move(host);
    };
    put(Phase::load, held(false), loading());
    put(Phase::first_step, passes(false));
    put(Phase::step, passes(true));
    put(Phase::update, update());
    if (run_.evaluates) put(Phase::evaluate, evaluation());
    if (run_.saves) {
      put(Phase::save, held(true), saving());
      put(Phase::after_save, passes(true));
    }
    put(Phase::resume, resumed(), resuming());
    return forecast;
  }

 private:
  double whole() const {
    const double element = run_.settings.is_16_bit ? 2 : 4;
    return bytes_.weight * psi_ + element * (run_.sizes.frozen - run_.sizes.quantised);
  }
  double gradients() const { return bytes_.gradient * psi_; }
  double moments() const { return bytes_.moments * psi_; }

  /// Between steps.
  Holding held(bool has_moments) const {
    Holding holding;
    holding.add("weights", whole());
    if (run_.sizes.quantised > 0)
      holding.add("quantised", run_.sizes.quantised * run_.quantised_bytes);
    if (has_moments) holding.add("moments", moments());
    // DDP keeps its buckets beside the gradients, unless these are views of them.
    if (run_.ranks > 1) holding.add("bucket", 0, gradients());
    return holding;
  }

  /// Where the backward pass begins, and where it ends; its worst moment holds no more than the larger of the two.
  Holding passes(bool has_moments) const {
    Holding begin = held(has_moments), end = held(has_moments);
    add_casts(begin);
    add_casts(end);
    // Those of the micro-steps before.
    if (run_.accumulation_steps > 1) begin.add("gradients", gradients());
    end.add("gradients", gradients());
    const BackwardActivations& all = run_.activations;
    const double layers = all.layers.high + all.work.high;
    if (all.loss.high > 0) {
      begin.add("activations", all.loss.low, std::max(all.loss.high, layers));
      end.add("activations", all.work.low, all.work.high);
    }
    return begin.high() > end.high() ? begin : end;
  }

  /// Autocast keeps a weight that it has cast until the pass is over, unless recomputation lets go of it.
  void add_casts(Holding& holding) const {
    if (run_.settings.is_16_bit && bytes_.weight > 2) holding.add("weights_cast", 0, 2 * psi_);
  }

  /// Not told by the run: whether torch's optimizer takes its parameters one by one or in lists, with copies of those.
  Holding update() const {
    Holding holding = held(true);
    holding.add("gradients", gradients());
    holding.add("update_copies", 0, bytes_.weight * psi_);
    return holding;
  }

  Holding evaluation() const {
    Holding holding = held(true);
    add_casts(holding);
    holding.add("activations", run_.evaluation.low, run_.evaluation.high);
    return holding;
  }

  /// A file of moments that goes to the device may be there beside them while they are filled.
  Holding resumed() const {
    Holding filled = held(true);
    if (run_.ranks > 1) filled.add("optimizer_file", 0, moments());
    Holding later = passes(true);
    return filled.high() > later.high() ? filled : later;
  }

  Holding loading() const {
    Holding holding;
    holding.add("model_per_rank", 0, run_.ranks_on_node * whole());
    return holding;
  }

  /// Rank 0 saves for all.
  Holding saving() const {
    Holding holding;
    holding.add("weights_on_rank_0", 0, run_.saves_adapters_only ? bytes_.weight * psi_ : whole());
    return holding;
  }

  /// One rank reads the moments on the host; of several each reads them, in part or whole, on its way to the device.
  Holding resuming() const {
    Holding holding;
    holding.add("optimizer_file", run_.ranks > 1 ? 0 : moments(), run_.ranks_on_node * moments());
    return holding;
  }

  const DeepspeedRun& run_;
  LoopBytes bytes_;
  double psi_;
};

}  // namespace

LoopBytes loop_bytes(const DeepspeedSettings& settings) {
  return settings.is_pure_bf16 ? LoopBytes{.weight = 2, .gradient = 2, .moments = 4} : LoopBytes{};
}

Forecast trainer_loop_memory(const DeepspeedRun& run) {
  return Loop(run).forecast();
}

}  // namespace underkeel::doctor
