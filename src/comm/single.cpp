// A group of one: nobody to wait for, nothing to add.

#include <algorithm>
#include <cstring>
#include <mutex>

#include "comm/arguments.h"
#include "comm/communicator.h"

namespace underkeel::comm {

namespace {

class Single final : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  int ranks_on_node() const override { return 1; }
  int rank_on_node() const override { return 0; }
  std::string_view transport() const override { return "single"; }

  Result<void> all_gather(TensorView shard, TensorView full) override {
    check_all_gather(shard, full, 0, 1);
    UK_TRY_VOID(whole());
    if (shard.data != full.data && size_bytes(full) > 0)
      std::memcpy(full.data, shard.data, static_cast<std::size_t>(size_bytes(full)));
    return {};
  }
  Result<void> reduce_scatter(TensorView full, TensorView staging) override {
    check_reduce(full, staging, 1);
    return whole();
  }
  Result<void> all_reduce(TensorView full, TensorView staging) override {
    check_reduce(full, staging, 1);
    return whole();
  }
  Result<void> all_gather_values(std::span<const double> own, std::span<double> all) override {
    UK_CHECK(own.size() == all.size(), "one rank's values fill `all`");
    UK_TRY_VOID(whole());
    std::copy(own.begin(), own.end(), all.begin());
    return {};
  }
  Result<std::vector<std::string>> all_gather_text(std::string_view own) override {
    UK_TRY_VOID(whole());
    return std::vector<std::string>{std::string(own)};
  }
  Result<void> barrier() override { return whole(); }

  // Nobody waits for this rank, and it waits for nobody.
  void set_phase(std::string_view) override {}
  void set_time_limit(double) override {}
  void report_progress(std::string_view, std::int64_t, std::int64_t) override {}
  std::optional<Wait> waiting() const override { return std::nullopt; }

  Result<void> check() override { return whole(); }
  void abort(const Error& reason) override {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = reason;
  }

 private:
  Result<void> whole() {
    const std::lock_guard lock(mutex_);
    if (failure_) return tl::unexpected(*failure_);
    return {};
  }

  std::mutex mutex_;  // abort() may come from any thread
  std::optional<Error> failure_;
};

}  // namespace

std::unique_ptr<Communicator> make_single() {
  return std::make_unique<Single>();
}

}  // namespace underkeel::comm
