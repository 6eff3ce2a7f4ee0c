#pragma once
// The functions of libnccl.so.2 that are used, found at run time: building needs none of it, and a machine
// without it still trains on one GPU. Declared after NCCL's documented interface, which is stable within
// version 2.

#include <cstddef>
#include <string>

#include "base/result.h"

namespace underkeel::comm::nccl {

using Status = int;  // ncclResult_t: 0 is success, 7 in progress
constexpr Status success = 0;
constexpr Status in_progress = 7;
using DataType = int;  // ncclDataType_t
constexpr DataType u8 = 1;
constexpr DataType f64 = 8;

struct UniqueId {  // ncclUniqueId
  char bytes[128];
};
struct Group;   // ncclComm
struct Stream;  // cudaStream_t

struct Library {
  Status (*get_version)(int*) = nullptr;
  Status (*get_unique_id)(UniqueId*) = nullptr;
  Status (*init_rank)(Group**, int world_size, UniqueId, int rank) = nullptr;
  Status (*destroy)(Group*) = nullptr;
  Status (*abort)(Group*) = nullptr;
  Status (*async_error)(Group*, Status*) = nullptr;
  const char* (*error_text)(Status) = nullptr;
  Status (*group_start)() = nullptr;
  Status (*group_end)() = nullptr;
  Status (*send)(const void*, std::size_t count, DataType, int peer, Group*, Stream*) = nullptr;
  Status (*receive)(void*, std::size_t count, DataType, int peer, Group*, Stream*) = nullptr;
  Status (*all_gather)(const void*, void*, std::size_t count, DataType, Group*, Stream*) = nullptr;
  Status (*broadcast)(const void*, void*, std::size_t count, DataType, int root, Group*,
                      Stream*) = nullptr;
  std::string path;
};

/// Loads it once a process; never unloaded.
/// Errors:  unsupported, with where it was looked for.
Result<const Library*> load_library();

}  // namespace underkeel::comm::nccl
