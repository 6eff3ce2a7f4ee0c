#pragma once
// Memory limits of control groups. Private to spec.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace underkeel::spec {

/// The content of a file, or nullopt when it cannot be read.
using FileReader = std::function<std::optional<std::string>(const std::filesystem::path&)>;

/// The smallest memory limit of the process's control group and all that contain it, of version 2
/// (memory.max) and version 1 (memory.limit_in_bytes); nullopt when none is set.
/// `groups` and `mounts` are the texts of /proc/self/cgroup and /proc/self/mountinfo.
std::optional<std::int64_t> tightest_memory_limit_bytes(std::string_view groups,
                                                        std::string_view mounts,
                                                        const FileReader& read);

}  // namespace underkeel::spec
