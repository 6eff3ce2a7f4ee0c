#include "data/token_cache.h"

#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/check.h"
#include "base/units.h"
#include "io/checksum.h"

namespace underkeel::data {
namespace {

/// Held until it goes, or the process does. None where the file system has no locks.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ >= 0) is_held_ = ::flock(descriptor_, LOCK_EX) == 0;
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  bool is_held() const { return is_held_; }

 private:
  int descriptor_;
  bool is_held_ = false;
};

// A data set's name as a part of a file name.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, 60)) {
    const bool keeps = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    text += keeps ? c : '_';
  }
  return text;
}

// What processes that were killed left behind. Nobody else writes while the lock is held.
Result<void> remove_leftovers(io::FileSystem& files, const std::string& folder,
                              const std::string& name) {
  UK_TRY(entries, files.list(folder));
  for (const io::FolderEntry& entry : entries)
    if (entry.name.starts_with(name + ".") && entry.name.ends_with(".tmp"))
      UK_TRY_VOID(files.remove_file(io::join_path(folder, entry.name)));
  return {};
}

}  // namespace

Result<CachedTokens> find_or_make_tokens(io::FileSystem& files, const TokenCacheRequest& request,
                                         const MakeTokens& make) {
  UK_TRY_VOID(files.make_folders(request.folder));
  const std::string name =
      fmt::format("{}-{}.tokens", plain(request.name), text_checksum(request.key));
  const std::string path = io::join_path(request.folder, name);
  const FolderLock lock(io::join_path(request.folder, ".lock"));
  if (!request.make_anew) {
    UK_TRY(found, TokenFile::open(files, path, request.key));
    if (found) return CachedTokens{.file = std::move(*found), .was_there = true};
  }
  if (lock.is_held()) UK_TRY_VOID(remove_leftovers(files, request.folder, name));
  {
    UK_TRY(writer, TokenFileWriter::create(files, path));
    UK_TRY(info, make(writer));
    info.key = request.key;
    UK_TRY_VOID(writer.finish(info));
  }
  UK_TRY(made, TokenFile::open(files, path, request.key));
  if (!made)
    return fail(ErrorCode::io, "the tokens that were just written cannot be read back", path,
                "look at the disk; underkeel.token_cache names another folder");
  return CachedTokens{.file = std::move(*made)};
}

Result<std::string> content_checksum(io::FileSystem& files, const std::string& path) {
  UK_TRY(file, files.open(path));
  UK_TRY(size_bytes, file.size_bytes());
  std::vector<std::byte> buffer(static_cast<std::size_t>(mebibyte));
  UK_TRY(sum, io::checksum_of(file, 0, size_bytes, buffer));
  return io::checksum_text(sum);
}

std::string text_checksum(std::string_view text) {
  io::Checksum checksum;
  checksum.update(std::as_bytes(std::span(text.data(), text.size())));
  return io::checksum_text(checksum.value());
}

}  // namespace underkeel::data
