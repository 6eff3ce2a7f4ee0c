// The collectives over MPI: all-to-all of pieces, then our own sum in rank order. Not here: how a
// wait ends (mpi_wait.cpp).

#include "comm/mpi/mpi_communicator.h"

#include <algorithm>
#include <cstring>

#include "comm/arguments.h"
#include "comm/mpi/runtime.h"
#include "comm/ordered_sum.h"

namespace underkeel::comm {

namespace {

// Large enough to reach a link's rate; small enough that a finished piece shows within
// milliseconds that a peer is alive, even on a slow network.
constexpr std::int64_t most_message_bytes = 4 * mebibyte;

// Below are tags of control messages. Calls that differ between ranks do not match by accident
// until so many calls later.
constexpr int first_data_tag = 64;
constexpr int data_tags = 30'000;  // MPI promises tags up to 32,767

/// Piece `round` of a range that is cut into pieces of `piece_size`.
ShardRange piece_of(ShardRange range, std::int64_t round, std::int64_t piece_size) {
  const std::int64_t begin = std::min(range.end, range.begin + round * piece_size);
  return {begin, std::min(range.end, begin + piece_size)};
}

/// Receives and sends of two rounds are on their way at a time.
template <class Post, class Complete>
Result<void> run_rounds(std::int64_t round_count, int rounds_ahead, Post post, Complete complete) {
  std::int64_t posted = 0;
  for (std::int64_t round = 0; round < round_count; ++round) {
    for (; posted < std::min(round_count, round + rounds_ahead); ++posted)
      UK_TRY_VOID(post(posted));
    UK_TRY_VOID(complete(round));
  }
  return {};
}

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm comm, int rank, int world_size)
    : comm_(comm),
      rank_(rank),
      world_size_(world_size),
      rounds_{Pending(world_size), Pending(world_size)},
      sources_(static_cast<std::size_t>(world_size)),
      control_(comm, rank, world_size),
      peers_(static_cast<std::size_t>(world_size)) {}

Result<void> MpiCommunicator::begin(std::string_view call) {
  call_ = call;
  tag_ = (tag_ + 1) % data_tags;
  {
    const std::lock_guard lock(mpi_mutex());
    take_news();
  }
  if (auto reason = failure()) return tl::unexpected(std::move(*reason));
  return {};
}

Result<void> MpiCommunicator::send(Pending& pending, int peer, const void* data,
                                   std::int64_t size_bytes) {
  const std::lock_guard lock(mpi_mutex());
  const int code = pending.send(comm_, peer, first_data_tag + tag_, data, size_bytes);
  if (code != MPI_SUCCESS) return mpi_failed(code);
  return {};
}

Result<void> MpiCommunicator::receive(Pending& pending, int peer, void* data,
                                      std::int64_t size_bytes) {
  const std::lock_guard lock(mpi_mutex());
  const int code = pending.receive(comm_, peer, first_data_tag + tag_, data, size_bytes);
  if (code != MPI_SUCCESS) return mpi_failed(code);
  return {};
}

Result<void> MpiCommunicator::gather_shards(TensorView full) {
  const auto bytes_of_range = [&](int rank) {
    const ShardRange range = range_of(full, rank);
    return ShardRange{bytes_of(full.type, range.begin), bytes_of(full.type, range.end)};
  };
  auto* data = full.as<std::byte>();
  const auto post = [&](std::int64_t round) -> Result<void> {
    Pending& pending = rounds_[static_cast<std::size_t>(round % 2)];
    for (int step = 1; step < world_size_; ++step) {
      const int from = peer_before(step);
      const ShardRange theirs = piece_of(bytes_of_range(from), round, most_message_bytes);
      if (!theirs.empty()) UK_TRY_VOID(receive(pending, from, data + theirs.begin, theirs.size()));
    }
    const ShardRange own = piece_of(bytes_of_range(rank_), round, most_message_bytes);
    for (int step = 1; step < world_size_ && !own.empty(); ++step)
      UK_TRY_VOID(send(pending, peer_after(step), data + own.begin, own.size()));
    return {};
  };
  return run_rounds(
      ceil_div(bytes_of_range(0).size(), most_message_bytes), 2, post,
      [&](std::int64_t round) { return wait_for(rounds_[static_cast<std::size_t>(round % 2)]); });
}

Result<void> MpiCommunicator::all_gather(TensorView shard, TensorView full) {
  check_all_gather(shard, full, rank_, world_size_);
  UK_TRY_VOID(begin("all_gather"));
  std::byte* own = element_at(full, range_of(full, rank_).begin);
  if (shard.data != own && size_bytes(shard) > 0)
    std::memcpy(own, shard.data, static_cast<std::size_t>(size_bytes(shard)));
  return gather_shards(full);
}

Result<void> MpiCommunicator::reduce_own_range(TensorView full, TensorView staging) {
  const std::int64_t peer_count = world_size_ - 1;
  if (peer_count == 0 || full.element_count() == 0) return {};
  const std::int64_t element_bytes = bytes_of(full.type, 1);
  const std::int64_t room = size_bytes(staging) / element_bytes;
  // Two rounds share the staging, so that the next one's data come while this one's are added.
  const int rounds_ahead = room >= 2 * peer_count ? 2 : 1;
  std::int64_t piece =
      std::min(room / (rounds_ahead * peer_count), most_message_bytes / element_bytes);
  constexpr std::int64_t line_elements = 32;  // whole cache lines, also of 16-bit elements
  if (piece > line_elements) piece -= piece % line_elements;
  const ShardRange own = range_of(full, rank_);
  const auto slot = [&](std::int64_t round, int step) {
    return staging.as<std::byte>() +
           ((round % rounds_ahead) * peer_count + step - 1) * piece * element_bytes;
  };
  const auto post = [&](std::int64_t round) -> Result<void> {
    Pending& pending = rounds_[static_cast<std::size_t>(round % 2)];
    const ShardRange mine = piece_of(own, round, piece);
    for (int step = 1; step < world_size_ && !mine.empty(); ++step)
      UK_TRY_VOID(
          receive(pending, peer_before(step), slot(round, step), mine.size() * element_bytes));
    for (int step = 1; step < world_size_; ++step) {
      const int to = peer_after(step);
      const ShardRange theirs = piece_of(range_of(full, to), round, piece);
      if (!theirs.empty())
        UK_TRY_VOID(
            send(pending, to, element_at(full, theirs.begin), theirs.size() * element_bytes));
    }
    return {};
  };
  const auto add = [&](std::int64_t round) -> Result<void> {
    UK_TRY_VOID(wait_for(rounds_[static_cast<std::size_t>(round % 2)]));
    const ShardRange mine = piece_of(own, round, piece);
    std::byte* into = element_at(full, mine.begin);
    sources_[static_cast<std::size_t>(rank_)] = into;
    for (int step = 1; step < world_size_; ++step)
      sources_[static_cast<std::size_t>(peer_before(step))] = slot(round, step);
    sum_in_rank_order(sources_, into, full.type, mine.size());
    return {};
  };
  return run_rounds(ceil_div(shard_elements(full.element_count(), world_size_), piece),
                    rounds_ahead, post, add);
}

Result<void> MpiCommunicator::reduce_scatter(TensorView full, TensorView staging) {
  check_reduce(full, staging, world_size_);
  UK_TRY_VOID(begin("reduce_scatter"));
  return reduce_own_range(full, staging);
}

Result<void> MpiCommunicator::all_reduce(TensorView full, TensorView staging) {
  check_reduce(full, staging, world_size_);
  UK_TRY_VOID(begin("all_reduce"));
  UK_TRY_VOID(reduce_own_range(full, staging));
  return gather_shards(full);
}

template <class SizeOf, class Into>
Result<void> MpiCommunicator::exchange(const void* own, std::int64_t own_bytes, SizeOf size_of,
                                       Into into) {
  for (int step = 1; step < world_size_; ++step) {
    const int from = peer_before(step);
    UK_TRY_VOID(receive(rounds_[0], from, into(from), size_of(from)));
  }
  for (int step = 1; step < world_size_; ++step)
    UK_TRY_VOID(send(rounds_[0], peer_after(step), own, own_bytes));
  return wait_for(rounds_[0]);
}

Result<void> MpiCommunicator::all_gather_values(std::span<const double> own,
                                                std::span<double> all) {
  UK_CHECK(all.size() == own.size() * peers_.size(), "`all` holds every rank's values");
  UK_TRY_VOID(begin("all_gather_values"));
  const auto values_of = [&](int rank) {
    return all.data() + own.size() * static_cast<std::size_t>(rank);
  };
  std::copy(own.begin(), own.end(), values_of(rank_));
  const auto own_bytes = static_cast<std::int64_t>(own.size_bytes());
  return exchange(
      own.data(), own_bytes, [&](int) { return own_bytes; }, values_of);
}

Result<std::vector<std::string>> MpiCommunicator::all_gather_text(std::string_view own) {
  UK_TRY_VOID(begin("all_gather_text"));
  std::vector<std::int64_t> sizes(peers_.size());
  const auto own_bytes = static_cast<std::int64_t>(own.size());
  sizes[static_cast<std::size_t>(rank_)] = own_bytes;
  UK_TRY_VOID(exchange(
      &own_bytes, sizeof own_bytes, [](int) { return sizeof(std::int64_t); },
      [&](int rank) { return &sizes[static_cast<std::size_t>(rank)]; }));
  std::vector<std::string> texts(peers_.size());
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    texts[rank].resize(static_cast<std::size_t>(sizes[rank]));
  texts[static_cast<std::size_t>(rank_)] = own;
  UK_TRY_VOID(exchange(
      own.data(), own_bytes, [&](int rank) { return sizes[static_cast<std::size_t>(rank)]; },
      [&](int rank) { return texts[static_cast<std::size_t>(rank)].data(); }));
  return texts;
}

// A message from everyone to everyone costs more than a tree, but says who is missing.
Result<void> MpiCommunicator::barrier() {
  UK_TRY_VOID(begin("barrier"));
  return exchange(
      nullptr, 0, [](int) { return 0; }, [](int) { return nullptr; });
}

}  // namespace underkeel::comm
