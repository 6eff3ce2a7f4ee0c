// Memory of the host, of one node, under DeepSpeed.

#include "doctor/deepspeed_host.h"

#include <algorithm>
#include <cmath>

#include "doctor/deepspeed_memory.h"
#include "doctor/deepspeed_sizes.h"

namespace underkeel::doctor {
namespace {

// A checkpoint shard as Hugging Face writes them; loading holds one at a time.
constexpr double load_shard_bytes = 5e9;
// The smallest tensor that is swapped (aio.block_size).
constexpr double swap_block_bytes = 1 << 20;

class HostModel {
 public:
  explicit HostModel(const DeepspeedRun& run)
      : run_(run),
        s_(run.settings),
        psi_(run.sizes.trainable),
        share_(share_of(run)),
        element_(s_.is_16_bit ? 2 : 4) {}

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
    const double master = s_.master_bytes, moments = s_.moments_bytes;
    if (s_.optimizer == Offload::cpu && s_.stage < 3) {
      const double largest = element_ * run_.sizes.largest_trainable;
      if (s_.pins_memory) {
        terms.pin("master", master * share_, master * share_, true);
        terms.pin("gradients_f32", master * share_, master * share_, true);
        terms.pin("staging", element_ * share_ + largest, element_ * share_, true);
      } else {
        terms.all.add("master", master * share_);
        terms.all.add("gradients_f32", master * share_);
        terms.all.add("staging", element_ * share_ + largest);
      }
      if (has_moments) terms.all.add("moments", moments * share_);
      if (has_run && run_.accumulation_steps > 1 && s_.stage == 2)
        terms.pin("accumulation", element_ * share_, element_ * share_, s_.pins_memory);
    }
    if (s_.optimizer == Offload::cpu && s_.stage == 3) {
      terms.all.add("master", master * share_);
      terms.pin("gradients_f32", master * share_, master * group, s_.pins_memory);
      terms.pin("gradients", s_.gradient_bytes * share_, s_.gradient_bytes * share_,
                s_.pins_memory);
      if (has_moments) terms.all.add("moments", moments * share_);
    }
    if (s_.optimizer == Offload::nvme) {
      terms.pin("nvme_buffers", s_.buffer_count * master * group, master * group, true);
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

  void add_to(Forecast& forecast) const {
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
    if (s_.optimizer == Offload::nvme || s_.parameters == Offload::nvme)
      for (const Phase phase : {Phase::step, Phase::update, Phase::resume})
        forecast.at(phase, Space::nvme) = on_nvme();
  }

  /// Swap files of a node. Gradients are swapped beside master and moments where they do not all wait on the host.
  Holding on_nvme() const {
    Holding holding;
    const double elements = run_.ranks_on_node * share_;
    if (s_.optimizer == Offload::nvme)
      holding.add("optimizer", (s_.master_bytes + s_.moments_bytes) * elements,
                  (2 * s_.master_bytes + s_.moments_bytes) * elements);
    if (s_.parameters == Offload::nvme)
      holding.add("weights", swapped_weights(), element_ * elements);
    return holding;
  }

  /// A share that is smaller than a block of the disk's stays on the host.
  double swapped_weights() const {
    double bytes = 0;
    for (const Tensor& tensor : run_.sizes.tensors) {
      const double share = element_ * std::ceil(static_cast<double>(tensor.elements) / run_.ranks);
      if (tensor.is_trainable && share >= swap_block_bytes) bytes += run_.ranks_on_node * share;
    }
    return bytes;
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
    // The parameters and the flat tensor that they become.
    if (s_.stage > 0 && s_.stage < 3 && !flattens_on_device(run_))
      holding.add("flat_on_host", 0, run_.ranks_on_node * 2 * element_ * psi_);
    // Shards are made one flat tensor by way of the host.
    if (s_.stage == 3 && run_.built_sharded && s_.parameters == Offload::none)
      holding.add("defragmented", 0, run_.ranks_on_node * element_ * share_);
    // Zeros as large as a sub-group, before there are buffers for gradients.
    if (s_.stage == 3 && s_.optimizer == Offload::cpu)
      holding.add("set_up", 0,
                  run_.ranks_on_node * std::max(0.0, s_.master_bytes * largest_sub_group(run_) -
                                                         s_.gradient_bytes * share_));
    return holding;
  }

  Holding save_on_host() const {
    Holding holding;
    const double whole = element_ * (run_.sizes.total() - run_.sizes.quantised);
    const auto [narrow, wide] = adapters_on_rank_0(run_.sizes);
    // The largest storage of a rank is serialised at a time.
    const double storage = s_.master_bytes * (s_.stage == 3 ? largest_sub_group(run_) : share_);
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
  /// the model file too. At stage 0 the two are one file, which in f32 has no master weights. Swap files of a state on NVMe
  /// are copied back, and not read.
  Holding resume_on_host() const {
    Holding holding;
    const double ranks = run_.ranks_on_node;
    const double weights = ranks * element_ * psi_;
    if (s_.optimizer == Offload::nvme) return holding;
    holding.add("optimizer_file", ranks * optimizer_file_bytes(s_) * share_);
    if (s_.stage < 3) holding.add("model_file", s_.stage == 0 ? weights : 0, weights);
    return holding;
  }

  const DeepspeedRun& run_;
  const DeepspeedSettings& s_;
  double psi_, share_, element_;
};

}  // namespace

void add_host_memory(const DeepspeedRun& run, Forecast& forecast) {
  HostModel(run).add_to(forecast);
}

}  // namespace underkeel::doctor
