#pragma once
// Faults on purpose, for tests: system calls that fail, stop short, wait, or end the process at a
// chosen call. A whole run takes them from the environment variable UNDERKEEL_IO_FAULT, so that the
// real program can be killed at each write of a save.
//
// Text form: rules joined by `;`, each ACTION[:key=value,...]
//   fail    the call answers `error` (EIO unless given: EIO ENOSPC EDQUOT ESTALE EACCES EINTR)
//   short   the call does only `bytes` of what was asked (1 unless given)
//   kill    SIGKILL to this process before the call, or after `bytes` of a write when given
//   delay   the call waits `ms` milliseconds first
//   quota   files below `path` may hold `bytes` in all; free space is reported to match
// Keys: call = read write allocate sync rename create make_folder remove change (all but read;
//       `change` unless given for kill, else `write`)
//       path = only calls on a path that holds this text (for quota: the folder)
//       at = the first matching call that is hit, from 1 (1 unless given)
//       times = how many matching calls from there on are hit, or `all` (1 unless given)
// Example: UNDERKEEL_IO_FAULT='fail:at=3,error=EIO;delay:path=state-,ms=100,times=all'

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "io/system_calls.h"

namespace underkeel::io {

enum class FaultAction { fail, cut_short, kill, delay, quota };
enum class CallKind { read, write, allocate, sync, rename, create, make_folder, remove };

struct FaultRule {
  FaultAction action = FaultAction::fail;
  std::vector<CallKind> calls = {CallKind::write};
  std::string path_part;  // empty: any
  std::int64_t at = 1;
  std::int64_t times = 1;        // -1: all from `at` on
  int error = 5;                 // EIO
  std::int64_t size_bytes = -1;  // short, kill: bytes of the call that are done; quota: the limit
  std::int64_t delay_ms = 0;
};

/// Every kind that changes the disk: all but read.
std::vector<CallKind> changing_calls();

Result<std::vector<FaultRule>> parse_fault_rules(std::string_view text);

/// One call as the faulty layer saw it, for tests that check an order.
struct SeenCall {
  CallKind kind = CallKind::read;
  std::string path;  // of the file; the new name in a rename
};

/// Passes calls on to `below`, after the rules had their say.
class FaultyCalls final : public SystemCalls {
 public:
  FaultyCalls(std::shared_ptr<SystemCalls> below, std::vector<FaultRule> rules);

  /// All calls so far that a rule could hit, in order.
  std::vector<SeenCall> seen_calls() const;

  int open(const std::string& path, OpenMode mode) override;
  int close(int descriptor) override;
  std::int64_t read(int descriptor, std::span<std::byte> into, std::int64_t offset) override;
  std::int64_t write(int descriptor, std::span<const std::byte> from, std::int64_t offset) override;
  int allocate(int descriptor, std::int64_t size_bytes) override;
  int sync(int descriptor) override;
  int stat_open(int descriptor, FileStat& stat) override;
  int stat(const std::string& path, bool follow_links, FileStat& stat) override;
  int rename(const std::string& from, const std::string& to) override;
  int exchange(const std::string& first, const std::string& second) override;
  int make_folder(const std::string& path) override;
  int remove_file(const std::string& path) override;
  int remove_folder(const std::string& path) override;
  int list(const std::string& path, std::vector<std::string>& names) override;
  int free_bytes(const std::string& path, std::int64_t& size_bytes) override;
  void pause() override {}  // tests do not wait

 private:
  struct Verdict {
    int error = 0;                 // answer -error
    std::int64_t most_bytes = -1;  // do at most this many; -1: all
    bool kill_after = false;
  };
  Verdict judge(CallKind kind, const std::string& path);
  /// Bytes that the quotas over `path` still allow; -1 without a quota.
  std::int64_t quota_left(const std::string& path);
  std::string path_of(int descriptor) const;

  std::shared_ptr<SystemCalls> below_;
  std::vector<FaultRule> rules_;
  mutable std::mutex mutex_;
  std::vector<std::int64_t> hits_;  // matching calls so far, for each rule
  std::vector<SeenCall> seen_;
  std::unordered_map<int, std::string> paths_;  // of open descriptors
};

/// The file system of this machine, with the faults that UNDERKEEL_IO_FAULT asks for.
/// Errors: bad_config when the variable cannot be read.
Result<std::unique_ptr<FileSystem>> file_system_from_environment();

}  // namespace underkeel::io
