#include "data/token_store.h"

#include <atomic>

#include <fmt/format.h>
#include <unistd.h>

#include "base/check.h"

namespace underkeel::data {
namespace {

constexpr std::size_t waiting_limit = std::size_t{1} << 18;  // tokens: writes of 1 MiB

}  // namespace

Result<TokenStore> TokenStore::create(io::FileSystem& files, const std::string& folder) {
  // The process id keeps ranks on one machine apart, the host name those that share a folder.
  static std::atomic<int> made{0};
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  UK_TRY_VOID(files.make_folders(folder));
  const std::string path = io::join_path(
      folder, fmt::format(".tokens-{}-{}-{}.tmp", host, static_cast<long>(getpid()), made++));
  UK_TRY(file, files.create(path));
  UK_TRY_VOID(files.remove_file(path));
  return TokenStore(std::move(file));
}

Result<void> TokenStore::append(std::span<const std::int32_t> tokens) {
  waiting_.insert(waiting_.end(), tokens.begin(), tokens.end());
  ends_.push_back(token_count() + static_cast<std::int64_t>(tokens.size()));
  return waiting_.size() < waiting_limit ? Result<void>() : flush();
}

Result<void> TokenStore::flush() {
  UK_TRY_VOID(file_.write(std::as_bytes(std::span(waiting_)),
                          written_tokens_ * static_cast<std::int64_t>(sizeof(std::int32_t))));
  written_tokens_ += static_cast<std::int64_t>(waiting_.size());
  waiting_.clear();
  return {};
}

Result<void> TokenStore::finish() {
  UK_TRY_VOID(flush());
  waiting_.shrink_to_fit();
  ends_.shrink_to_fit();
  return {};
}

Result<void> TokenStore::read(std::int64_t begin, std::span<std::int32_t> into) const {
  UK_CHECK(waiting_.empty(), "a token store is read before finish()");
  UK_CHECK(begin >= 0 && begin + static_cast<std::int64_t>(into.size()) <= written_tokens_,
           fmt::format("tokens {} to {} of {}", begin,
                       begin + static_cast<std::int64_t>(into.size()), written_tokens_));
  return file_.read(std::as_writable_bytes(into),
                    begin * static_cast<std::int64_t>(sizeof(std::int32_t)));
}

}  // namespace underkeel::data
