#include "io/faults.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/units.h"

namespace underkeel::io {

namespace {

constexpr std::array<std::pair<std::string_view, FaultAction>, 5> action_names = {{
    {"fail", FaultAction::fail},
    {"short", FaultAction::cut_short},
    {"kill", FaultAction::kill},
    {"delay", FaultAction::delay},
    {"quota", FaultAction::quota},
}};
constexpr std::array<std::pair<std::string_view, CallKind>, 8> call_names = {{
    {"read", CallKind::read},
    {"write", CallKind::write},
    {"allocate", CallKind::allocate},
    {"sync", CallKind::sync},
    {"rename", CallKind::rename},
    {"create", CallKind::create},
    {"make_folder", CallKind::make_folder},
    {"remove", CallKind::remove},
}};
constexpr std::array<std::pair<std::string_view, int>, 6> error_names = {{
    {"EIO", EIO},
    {"ENOSPC", ENOSPC},
    {"EDQUOT", EDQUOT},
    {"ESTALE", ESTALE},
    {"EACCES", EACCES},
    {"EINTR", EINTR},
}};

template <class Table>
auto look_up(const Table& table, std::string_view name)
    -> Result<typename Table::value_type::second_type> {
  std::string known;
  for (const auto& [candidate, value] : table) {
    if (candidate == name) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", candidate);
  }
  return fail(ErrorCode::bad_config, fmt::format("unknown word `{}`", name), "UNDERKEEL_IO_FAULT",
              "known are " + known);
}

Result<std::int64_t> parse_count(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0)
    return fail(ErrorCode::bad_config, fmt::format("`{}` is not a count", text),
                "UNDERKEEL_IO_FAULT");
  return value;
}

std::vector<std::string_view> pieces_of(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) pieces.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pieces;
}

/// Text before and after the first `separator`.
std::pair<std::string_view, std::string_view> cut_at(std::string_view text, char separator) {
  const std::size_t at = std::min(text.find(separator), text.size());
  return {text.substr(0, at), text.substr(std::min(at + 1, text.size()))};
}

Result<void> set_key(FaultRule& rule, std::string_view key, std::string_view value) {
  if (key == "call") {
    if (value == "change") {
      rule.calls = changing_calls();
      return {};
    }
    UK_TRY(kind, look_up(call_names, value));
    rule.calls = {kind};
  } else if (key == "path") {
    rule.path_part = value;
  } else if (key == "error") {
    UK_TRY(error, look_up(error_names, value));
    rule.error = error;
  } else if (key == "times" && value == "all") {
    rule.times = -1;
  } else if (key == "at" || key == "times" || key == "ms") {
    UK_TRY(count, parse_count(value));
    (key == "at" ? rule.at : key == "times" ? rule.times : rule.delay_ms) = count;
  } else if (key == "bytes") {
    UK_TRY(size_bytes, parse_bytes(value, "UNDERKEEL_IO_FAULT"));
    rule.size_bytes = size_bytes;
  } else {
    return fail(ErrorCode::bad_config, fmt::format("unknown key `{}`", key), "UNDERKEEL_IO_FAULT",
                "known are call, path, at, times, error, bytes, ms");
  }
  return {};
}

}  // namespace

std::vector<CallKind> changing_calls() {
  std::vector<CallKind> kinds;
  for (const auto& [name, kind] : call_names)
    if (kind != CallKind::read) kinds.push_back(kind);
  return kinds;
}

Result<std::vector<FaultRule>> parse_fault_rules(std::string_view text) {
  std::vector<FaultRule> rules;
  for (const std::string_view piece : pieces_of(text, ';')) {
    const auto [action_name, pairs] = cut_at(piece, ':');
    UK_TRY(action, look_up(action_names, action_name));
    FaultRule rule{.action = action};
    if (action == FaultAction::kill) rule.calls = changing_calls();
    if (action == FaultAction::cut_short) rule.size_bytes = 1;
    for (const std::string_view pair : pieces_of(pairs, ',')) {
      const auto [key, value] = cut_at(pair, '=');
      UK_TRY_VOID(set_key(rule, key, value));
    }
    if (action == FaultAction::quota && (rule.path_part.empty() || rule.size_bytes < 0))
      return fail(ErrorCode::bad_config, "a quota needs path=FOLDER and bytes=SIZE",
                  "UNDERKEEL_IO_FAULT");
    rules.push_back(std::move(rule));
  }
  return rules;
}

FaultyCalls::FaultyCalls(std::shared_ptr<SystemCalls> below, std::vector<FaultRule> rules)
    : below_(std::move(below)), rules_(std::move(rules)), hits_(rules_.size(), 0) {}

std::vector<SeenCall> FaultyCalls::seen_calls() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

FaultyCalls::Verdict FaultyCalls::judge(CallKind kind, const std::string& path) {
  Verdict verdict;
  std::int64_t delay_ms = 0;
  {
    const std::lock_guard lock(mutex_);
    seen_.push_back({kind, path});
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const FaultRule& rule = rules_[i];
      if (rule.action == FaultAction::quota) continue;
      if (std::find(rule.calls.begin(), rule.calls.end(), kind) == rule.calls.end()) continue;
      if (path.find(rule.path_part) == std::string::npos) continue;
      const std::int64_t hit = ++hits_[i];
      if (hit < rule.at || (rule.times >= 0 && hit >= rule.at + rule.times)) continue;
      if (rule.action == FaultAction::fail) verdict.error = rule.error;
      if (rule.action == FaultAction::delay) delay_ms += rule.delay_ms;
      if (rule.action == FaultAction::cut_short) verdict.most_bytes = rule.size_bytes;
      if (rule.action == FaultAction::kill) {
        verdict.kill_after = true;
        verdict.most_bytes = std::max<std::int64_t>(rule.size_bytes, 0);
      }
    }
  }
  if (delay_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
  if (verdict.kill_after && (kind != CallKind::write || verdict.most_bytes == 0))
    ::kill(::getpid(), SIGKILL);
  return verdict;
}

namespace {
/// Bytes of all files at and below `path`; what vanishes meanwhile counts nothing.
std::int64_t tree_bytes(SystemCalls& calls, const std::string& path) {
  FileStat stat;
  if (calls.stat(path, false, stat) < 0) return 0;
  if (stat.kind != FileKind::folder) return stat.size_bytes;
  std::vector<std::string> names;
  if (calls.list(path, names) < 0) return 0;
  std::int64_t sum = 0;
  for (const std::string& name : names) sum += tree_bytes(calls, join_path(path, name));
  return sum;
}
}  // namespace

std::int64_t FaultyCalls::quota_left(const std::string& path) {
  std::int64_t left = -1;
  for (const FaultRule& rule : rules_) {
    if (rule.action != FaultAction::quota || !path.starts_with(rule.path_part)) continue;
    const std::int64_t used = tree_bytes(*below_, rule.path_part);
    const std::int64_t here = std::max<std::int64_t>(0, rule.size_bytes - used);
    left = left < 0 ? here : std::min(left, here);
  }
  return left;
}

std::string FaultyCalls::path_of(int descriptor) const {
  const std::lock_guard lock(mutex_);
  const auto found = paths_.find(descriptor);
  return found == paths_.end() ? std::string{} : found->second;
}

int FaultyCalls::open(const std::string& path, OpenMode mode) {
  if (mode == OpenMode::create)
    if (const Verdict verdict = judge(CallKind::create, path); verdict.error != 0)
      return -verdict.error;
  const int descriptor = below_->open(path, mode);
  if (descriptor >= 0) {
    const std::lock_guard lock(mutex_);
    paths_[descriptor] = path;
  }
  return descriptor;
}

int FaultyCalls::close(int descriptor) {
  {
    const std::lock_guard lock(mutex_);
    paths_.erase(descriptor);
  }
  return below_->close(descriptor);
}

std::int64_t FaultyCalls::read(int descriptor, std::span<std::byte> into, std::int64_t offset) {
  const Verdict verdict = judge(CallKind::read, path_of(descriptor));
  if (verdict.error != 0) return -verdict.error;
  if (verdict.most_bytes >= 0)
    into = into.first(std::min<std::size_t>(into.size(), verdict.most_bytes));
  return below_->read(descriptor, into, offset);
}

std::int64_t FaultyCalls::write(int descriptor, std::span<const std::byte> from,
                                std::int64_t offset) {
  const std::string path = path_of(descriptor);
  const Verdict verdict = judge(CallKind::write, path);
  if (verdict.error != 0) return -verdict.error;
  if (verdict.most_bytes >= 0)
    from = from.first(std::min<std::size_t>(from.size(), verdict.most_bytes));

  if (const std::int64_t left = quota_left(path); left >= 0) {
    FileStat stat;
    if (const int result = below_->stat_open(descriptor, stat); result < 0) return result;
    const std::int64_t room = std::max<std::int64_t>(0, stat.size_bytes + left - offset);
    if (room == 0 && !from.empty()) return -ENOSPC;
    from = from.first(std::min<std::size_t>(from.size(), room));
  }
  const std::int64_t count = below_->write(descriptor, from, offset);
  if (verdict.kill_after) ::kill(::getpid(), SIGKILL);
  return count;
}

int FaultyCalls::allocate(int descriptor, std::int64_t size_bytes) {
  const std::string path = path_of(descriptor);
  if (const Verdict verdict = judge(CallKind::allocate, path); verdict.error != 0)
    return -verdict.error;
  if (const std::int64_t left = quota_left(path); left >= 0) {
    FileStat stat;
    if (const int result = below_->stat_open(descriptor, stat); result < 0) return result;
    if (size_bytes - stat.size_bytes > left) return -ENOSPC;
  }
  return below_->allocate(descriptor, size_bytes);
}

int FaultyCalls::sync(int descriptor) {
  const Verdict verdict = judge(CallKind::sync, path_of(descriptor));
  return verdict.error != 0 ? -verdict.error : below_->sync(descriptor);
}

int FaultyCalls::stat_open(int descriptor, FileStat& stat) {
  return below_->stat_open(descriptor, stat);
}
int FaultyCalls::stat(const std::string& path, bool follow_links, FileStat& stat) {
  return below_->stat(path, follow_links, stat);
}

int FaultyCalls::rename(const std::string& from, const std::string& to) {
  const Verdict verdict = judge(CallKind::rename, to);
  return verdict.error != 0 ? -verdict.error : below_->rename(from, to);
}
int FaultyCalls::exchange(const std::string& first, const std::string& second) {
  const Verdict verdict = judge(CallKind::rename, second);
  return verdict.error != 0 ? -verdict.error : below_->exchange(first, second);
}
int FaultyCalls::make_folder(const std::string& path) {
  const Verdict verdict = judge(CallKind::make_folder, path);
  return verdict.error != 0 ? -verdict.error : below_->make_folder(path);
}
int FaultyCalls::remove_file(const std::string& path) {
  const Verdict verdict = judge(CallKind::remove, path);
  return verdict.error != 0 ? -verdict.error : below_->remove_file(path);
}
int FaultyCalls::remove_folder(const std::string& path) {
  const Verdict verdict = judge(CallKind::remove, path);
  return verdict.error != 0 ? -verdict.error : below_->remove_folder(path);
}

int FaultyCalls::list(const std::string& path, std::vector<std::string>& names) {
  return below_->list(path, names);
}
int FaultyCalls::free_bytes(const std::string& path, std::int64_t& size_bytes) {
  const int result = below_->free_bytes(path, size_bytes);
  if (const std::int64_t left = quota_left(path); result >= 0 && left >= 0)
    size_bytes = std::min(size_bytes, left);
  return result;
}

Result<std::unique_ptr<FileSystem>> file_system_from_environment() {
  const char* text = std::getenv("UNDERKEEL_IO_FAULT");
  if (text == nullptr || *text == '\0') return std::make_unique<FileSystem>();
  UK_TRY(rules, parse_fault_rules(text));
  return std::make_unique<FileSystem>(
      std::make_shared<FaultyCalls>(posix_calls(), std::move(rules)));
}

}  // namespace underkeel::io
