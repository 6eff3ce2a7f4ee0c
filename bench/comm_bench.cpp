// Bytes per second of the collectives. Ranks as threads in one process:
//   bench/comm_bench
// Ranks as processes, the same sizes over MPI; rank 0 reports:
//   mpirun -n 2 bench/comm_bench
// A rate counts the bytes of `full` once per call, whatever the number of ranks.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/units.h"
#include "comm/communicator.h"

namespace underkeel::comm {
namespace {

constexpr int warm_up_calls = 2;
constexpr int timed_calls = 15;

struct Case {
  const char* call;
  DType type;
  std::int64_t full_bytes;
};

/// Median seconds of one call on this rank; every rank must take part.
double median_s(Communicator& comm, const Case& what) {
  const std::int64_t elements = what.full_bytes * 8 / bits_of(what.type);
  // The staging of a plan: chunks of 2 MiB per rank.
  const std::int64_t chunk_elements = 2 * mebibyte * 8 / bits_of(what.type);
  std::vector<std::byte> full(static_cast<std::size_t>(what.full_bytes), std::byte{1});
  std::vector<std::byte> staging(
      static_cast<std::size_t>(reduce_staging_bytes(comm.world_size(), chunk_elements, what.type)));
  const ShardRange own = shard_of(elements, comm.world_size(), comm.rank());
  const TensorView full_view = vector(full.data(), what.type, elements);
  const TensorView staging_view =
      vector(staging.data(), DType::u8, static_cast<std::int64_t>(staging.size()));
  const TensorView shard_view =
      vector(full.data() + bytes_of(what.type, own.begin), what.type, own.size());
  std::vector<double> seconds;
  for (int call = 0; call < warm_up_calls + timed_calls; ++call) {
    (void)comm.barrier();
    const auto begin = std::chrono::steady_clock::now();
    const Result<void> result = std::string_view(what.call) == "all_gather"
                                    ? comm.all_gather(shard_view, full_view)
                                    : comm.reduce_scatter(full_view, staging_view);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    if (!result) std::fprintf(stderr, "%s\n", to_text(result.error()).c_str());
    if (call >= warm_up_calls) seconds.push_back(elapsed.count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

void measure(Communicator& comm) {
  if (comm.rank() == 0)
    std::printf("%-10s %5s %-15s %5s %10s %10s %8s\n", "transport", "ranks", "call", "type", "size",
                "us", "GB/s");
  for (const std::int64_t size_bytes : {64 * kibibyte, 4 * mebibyte, 64 * mebibyte}) {
    for (const DType type : {DType::f32, DType::bf16}) {
      for (const char* call : {"all_gather", "reduce_scatter"}) {
        const double seconds = median_s(comm, {call, type, size_bytes});
        if (comm.rank() == 0)
          std::printf("%-10s %5d %-15s %5s %10s %10.1f %8.2f\n",
                      std::string(comm.transport()).c_str(), comm.world_size(), call,
                      std::string(name_of(type)).c_str(), format_bytes(size_bytes).c_str(),
                      seconds * 1e6, static_cast<double>(size_bytes) * 1e-9 / seconds);
      }
    }
  }
}

int run() {
  if (started_by_mpi()) {
    auto groups = make_mpi_groups(1);
    if (!groups) {
      std::fprintf(stderr, "%s\n", to_text(groups.error()).c_str());
      return exit_code(groups.error().code);
    }
    measure(*(*groups)[0]);
    finalize_mpi();
    return 0;
  }
  auto group = make_thread_group(2);
  std::vector<std::thread> threads;
  for (auto& comm : group) threads.emplace_back([&comm] { measure(*comm); });
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace
}  // namespace underkeel::comm

int main() {
  return underkeel::comm::run();
}
