#pragma once
// Work on batches by several threads, with results taken in the order in which batches were made.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"

namespace underkeel::data {

/// fill() makes the next batch (false: there is none), work() changes it, take() ends it. fill and
/// take are called by this thread, take in the order of fill; work by `thread_count` threads, each
/// batch by one. At most thread_count + 4 batches are alive, and they are used again.
/// Errors: the first of fill and take; work keeps its own inside the batch.
template <class Batch>
Result<void> work_in_order(int thread_count, const std::function<Result<bool>(Batch&)>& fill,
                           const std::function<void(Batch&)>& work,
                           const std::function<Result<void>(Batch&)>& take) {
  if (thread_count <= 1) {
    Batch batch;
    while (true) {
      UK_TRY(filled, fill(batch));
      if (!filled) return {};
      work(batch);
      UK_TRY_VOID(take(batch));
    }
  }

  struct Place {
    Batch batch;
    bool done = false;
  };
  std::mutex mutex;
  std::condition_variable to_work;
  std::condition_variable to_take;
  std::deque<Place*> waiting;
  bool closed = false;
  std::vector<std::unique_ptr<Place>> places;
  std::vector<Place*> free_places;
  std::deque<Place*> in_order;  // filled and not yet taken
  for (int i = 0; i < thread_count + 4; ++i) {
    places.push_back(std::make_unique<Place>());
    free_places.push_back(places.back().get());
  }

  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i)
    threads.emplace_back([&] {
      std::unique_lock lock(mutex);
      while (true) {
        to_work.wait(lock, [&] { return closed || !waiting.empty(); });
        if (waiting.empty()) return;
        Place* place = waiting.front();
        waiting.pop_front();
        lock.unlock();
        work(place->batch);
        lock.lock();
        place->done = true;
        to_take.notify_one();
      }
    });

  const auto take_first = [&]() -> Result<void> {
    Place* place = in_order.front();
    {
      std::unique_lock lock(mutex);
      to_take.wait(lock, [&] { return place->done; });
      place->done = false;
    }
    in_order.pop_front();
    UK_TRY_VOID(take(place->batch));
    free_places.push_back(place);
    return {};
  };
  const auto run = [&]() -> Result<void> {
    while (true) {
      if (free_places.empty()) UK_TRY_VOID(take_first());
      Place* place = free_places.back();
      UK_TRY(filled, fill(place->batch));
      if (!filled) break;
      free_places.pop_back();
      in_order.push_back(place);
      const std::lock_guard lock(mutex);
      waiting.push_back(place);
      to_work.notify_one();
    }
    while (!in_order.empty()) UK_TRY_VOID(take_first());
    return {};
  };
  const Result<void> result = run();
  {
    const std::lock_guard lock(mutex);
    closed = true;
    waiting.clear();
    to_work.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

}  // namespace underkeel::data
