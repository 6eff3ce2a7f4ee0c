#include "comm/cuda/nccl_library.h"

#include <cstdlib>
#include <mutex>
#include <optional>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace underkeel::comm::nccl {

namespace {

template <class Function>
bool find(void* handle, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
  return function != nullptr;
}

Result<Library> load() {
  std::vector<std::string> places;
  if (const char* named = std::getenv("UNDERKEEL_NCCL"); named != nullptr && *named != '\0')
    places = {named};
  else
    places = {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"};
  void* handle = nullptr;
  Library library;
  std::vector<std::string> reasons;
  for (const std::string& place : places) {
    handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    library.path = place;
    if (handle != nullptr) break;
    reasons.emplace_back(dlerror());
  }
  constexpr const char* fix =
      "install NCCL 2, or let UNDERKEEL_NCCL name its libnccl.so.2 (PyTorch's folder "
      "nvidia/nccl/lib holds one)";
  if (handle == nullptr)
    return fail(
        ErrorCode::unsupported,
        fmt::format("several GPUs need NCCL, which cannot be loaded: {}", fmt::join(reasons, "; ")),
        "libnccl.so.2", fix);
  const bool is_whole = find(handle, "ncclGetVersion", library.get_version) &&
                        find(handle, "ncclGetUniqueId", library.get_unique_id) &&
                        find(handle, "ncclCommInitRank", library.init_rank) &&
                        find(handle, "ncclCommDestroy", library.destroy) &&
                        find(handle, "ncclCommAbort", library.abort) &&
                        find(handle, "ncclCommGetAsyncError", library.async_error) &&
                        find(handle, "ncclGetErrorString", library.error_text) &&
                        find(handle, "ncclGroupStart", library.group_start) &&
                        find(handle, "ncclGroupEnd", library.group_end) &&
                        find(handle, "ncclSend", library.send) &&
                        find(handle, "ncclRecv", library.receive) &&
                        find(handle, "ncclAllGather", library.all_gather) &&
                        find(handle, "ncclBroadcast", library.broadcast);
  int version = 0;
  if (!is_whole || library.get_version(&version) != success || version < 20'700)
    return fail(ErrorCode::unsupported,
                fmt::format("NCCL {} is too old: 2.7 brought what is used",
                            version == 0 ? std::string("of this file")
                                         : fmt::format("version {}", version)),
                library.path, fix);
  return library;
}

}  // namespace

Result<const Library*> load_library() {
  static std::once_flag once;
  static std::optional<Result<Library>> loaded;
  std::call_once(once, [] { loaded = load(); });
  if (!*loaded) return tl::unexpected(loaded->error());
  return &**loaded;
}

}  // namespace underkeel::comm::nccl
