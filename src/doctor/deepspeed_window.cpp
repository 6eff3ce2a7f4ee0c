#include "doctor/deepspeed_window.h"

#include <algorithm>
#include <cstddef>

namespace underkeel::doctor {
namespace {

// Every module asks for parameters ahead, those without parameters too: about as many as have some.
constexpr int requests_per_tensor = 2;

class Walk {
 public:
  explicit Walk(const DeepspeedRun& run) : run_(run), s_(run.settings) {
    const std::size_t count = run.sizes.tensors.size();
    for (std::size_t tensor = 0; tensor < count; ++tensor) order_.push_back(tensor);
    // The embedding, which comes first, is the head too.
    if (run.sizes.tied > 0) order_.push_back(0);
    for (std::size_t place = order_.size(); place-- > 0;) order_.push_back(order_[place]);
    gathered_.resize(count, false);
    passed_.resize(count, 0);
    mark_persistent();
  }

  Window walk() {
    const std::size_t half = order_.size() / 2;
    for (std::size_t place = 0; place < order_.size(); ++place) {
      gather(order_[place]);
      next_ = std::max(next_, place + 1);
      for (int request = 0; request < requests_per_tensor; ++request) fetch_ahead();
      if (place >= half) reduce(place);
      if (place + 1 == order_.size() && pending_.count > 0) flush({});
      release(place);
    }
    return std::move(window_);
  }

 private:
  double elements(std::size_t tensor) const {
    return static_cast<double>(run_.sizes.tensors[tensor].elements);
  }

  void mark_persistent() {
    double sum = 0;
    is_persistent_.resize(gathered_.size(), false);
    for (std::size_t tensor = 0; tensor < gathered_.size(); ++tensor) {
      const double size = elements(tensor);
      if (size > s_.param_persistence || sum + size > s_.model_persistence) continue;
      is_persistent_[tensor] = true;
      sum += size;
    }
  }

  /// The elements that came with it.
  double gather(std::size_t tensor) {
    if (gathered_[tensor] || is_persistent_[tensor]) return 0;
    gathered_[tensor] = true;
    live_ += elements(tensor);
    window_.most = std::max(window_.most, live_);
    return elements(tensor);
  }

  void fetch_ahead() {
    const double room = std::min(s_.max_live - live_, s_.prefetch_bucket);
    for (double fetched = 0; next_ < order_.size() && fetched < room; ++next_) {
      fetched += gather(order_[next_]);
      passed_[order_[next_]] = next_;
    }
  }

  /// Unless fetching ahead has passed its next use, or that comes within the distance, counted in elements of all that is
  /// used until then.
  void release(std::size_t place) {
    const std::size_t tensor = order_[place];
    if (!gathered_[tensor] || passed_[tensor] > place) return;
    double distance = 0;
    for (std::size_t later = place + 1; later < order_.size() && distance < s_.max_reuse_distance;
         ++later) {
      if (order_[later] == tensor) return;
      distance += elements(order_[later]);
    }
    gathered_[tensor] = false;
    live_ -= elements(tensor);
  }

  void reduce(std::size_t place) {
    const std::size_t tensor = order_[place];
    const bool waits_for_its_other_use =
        run_.sizes.tied > 0 && tensor == 0 && place + 1 < order_.size();
    if (!run_.sizes.tensors[tensor].is_trainable || waits_for_its_other_use) return;
    const double size = elements(tensor);
    const auto places = static_cast<double>(order_.size());
    if (pending_.count > 0 && pending_.elements + size > s_.reduce_bucket)
      flush({.next = size, .left = 2 * (places - static_cast<double>(place)) / places});
    pending_.elements += size;
    pending_.largest = std::max(pending_.largest, size);
    ++pending_.count;
  }

  void flush(const Reduction& at) {
    pending_.gathered = live_;
    pending_.next = at.next;
    pending_.left = at.left;
    window_.reductions.push_back(pending_);
    pending_ = {};
  }

  const DeepspeedRun& run_;
  const DeepspeedSettings& s_;
  std::vector<std::size_t> order_;  // of use, forward and backward
  std::vector<bool> gathered_, is_persistent_;
  std::vector<std::size_t> passed_;  // the last place of each where it was looked for ahead
  std::size_t next_ = 0;             // of what may be fetched ahead
  double live_ = 0;
  Reduction pending_;
  Window window_;
};

}  // namespace

Window window_of(const DeepspeedRun& run) {
  return Walk(run).walk();
}

std::vector<Reduction> reductions_in_order(const DeepspeedRun& run) {
  std::vector<Reduction> reductions;
  for (const Tensor& tensor : run.sizes.tensors) {
    if (!tensor.is_trainable) continue;
    const auto size = static_cast<double>(tensor.elements);
    if (reductions.empty() || reductions.back().elements + size > run.settings.reduce_bucket)
      reductions.push_back({});
    Reduction& last = reductions.back();
    last.elements += size;
    last.largest = std::max(last.largest, size);
    ++last.count;
  }
  return reductions;
}

bool gathers(const DeepspeedRun& run) {
  return run.settings.stage == 3 && (run.ranks > 1 || run.settings.parameters != Offload::none);
}

double gathered_bytes(const DeepspeedRun& run) {
  return gathers(run) ? (run.settings.is_16_bit ? 2 : 4) * window_of(run).most : 0;
}

double received_bytes(const DeepspeedRun& run, double gathered) {
  const DeepspeedSettings& s = run.settings;
  if (!gathers(run) || run.ranks <= 1 || s.prefetch_bucket <= 0) return 0;
  const double received = std::min(s.prefetch_bucket, s.max_live) + run.sizes.largest_tensor;
  return std::min(gathered, (s.is_16_bit ? 2 : 4) * received);
}

}  // namespace underkeel::doctor
