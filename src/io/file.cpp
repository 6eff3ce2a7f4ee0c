#include "io/file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/foreign_content.h"
#include "base/units.h"

namespace underkeel::io {

namespace {

std::string text_of(int error) {
  return std::generic_category().message(error);
}

/// Errors of a network file system or a tired disk that may be gone a moment later.
bool may_pass(int error) {
  return error == EIO || error == ESTALE || error == ETIMEDOUT || error == EREMOTEIO;
}

tl::unexpected<Error> os_error(int error, std::string_view action, std::string where) {
  const ErrorCode code = error == ENOENT ? ErrorCode::not_found : ErrorCode::io;
  std::string fix;
  if (error == EACCES || error == EPERM) fix = "check the owner and the rights of the path";
  if (error == EROFS) fix = "the file system is read-only: choose another folder";
  if (error == EMFILE) fix = "raise the limit of open files (ulimit -n)";
  return fail(code, fmt::format("cannot {}: {}", action, text_of(error)), std::move(where),
              std::move(fix));
}

/// Runs `call` again after EINTR as often as needed, and once after an error that may pass.
template <class Call>
auto with_one_retry(FileSystem& files, std::string_view action, const std::string& where,
                    Call call) {
  bool retried = false;
  while (true) {
    const auto result = call();
    if (result == -EINTR) continue;
    if (result >= 0 || retried || !may_pass(static_cast<int>(-result))) return result;
    files.add_note(fmt::format("{} failed once and is tried again: {}; {}", action,
                               text_of(static_cast<int>(-result)), where));
    files.calls().pause();
    retried = true;
  }
}

/// The error of a write or a reservation of `needed_bytes`, with what is free on that disk.
tl::unexpected<Error> write_error(FileSystem& files, int error, const std::string& path,
                                  std::int64_t offset, std::int64_t needed_bytes) {
  std::string where = fmt::format("{}, offset {}", path, offset);
  if (error != ENOSPC && error != EDQUOT)
    return os_error(error, fmt::format("write {} bytes", format_count(needed_bytes)),
                    std::move(where));
  const auto free = files.free_bytes(path);
  const std::string free_text =
      free ? format_count(*free) + " bytes free on the disk" : "free space unknown";
  return fail(
      ErrorCode::io,
      fmt::format("{}: {} bytes needed, {}",
                  error == ENOSPC ? "no space left on the disk" : "the disk quota is used up",
                  format_count(needed_bytes), free_text),
      std::move(where),
      error == ENOSPC ? "free some space, lower save_total_limit, or choose another output_dir"
                      : "ask for a larger quota, lower save_total_limit, or choose another "
                        "output_dir");
}

}  // namespace

File::File(FileSystem& file_system, int descriptor, std::string path)
    : file_system_(&file_system), descriptor_(descriptor), path_(std::move(path)) {}

File::File(File&& other) noexcept
    : file_system_(other.file_system_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(file_system_, other.file_system_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) file_system_->calls().close(descriptor_);
}

Result<std::int64_t> File::size_bytes() const {
  FileStat stat;
  const int result = with_one_retry(*file_system_, "stat", path_, [&] {
    return file_system_->calls().stat_open(descriptor_, stat);
  });
  if (result < 0) return os_error(-result, "ask for the size", path_);
  return stat.size_bytes;
}

Result<void> File::read(std::span<std::byte> into, std::int64_t offset) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::int64_t position = offset + static_cast<std::int64_t>(done);
    const std::string_view path = path_;
    const auto count = with_one_retry(*file_system_, "read", path_, [&] {
      return file_system_->calls().read(descriptor_, into.subspan(done), position);
    });
    if (count < 0)
      return os_error(static_cast<int>(-count),
                      fmt::format("read {} bytes", format_count(into.size() - done)),
                      fmt::format("{}, offset {}", path, position));
    if (count == 0)
      return fail(ErrorCode::bad_file,
                  fmt::format("file is short: {} bytes expected, {} found",
                              format_count(offset + static_cast<std::int64_t>(into.size())),
                              format_count(position)),
                  fmt::format("{}, offset {}", path, offset), "copy or download the file again");
    done += static_cast<std::size_t>(count);
  }
  return {};
}

Result<void> File::write(std::span<const std::byte> from, std::int64_t offset) {
  std::size_t done = 0;
  while (done < from.size()) {
    const std::int64_t position = offset + static_cast<std::int64_t>(done);
    auto count = with_one_retry(*file_system_, "write", path_, [&] {
      return file_system_->calls().write(descriptor_, from.subspan(done), position);
    });
    // A write that stores nothing and names no reason would repeat for ever.
    if (count == 0) count = -ENOSPC;
    if (count < 0)
      return write_error(*file_system_, static_cast<int>(-count), path_, position,
                         static_cast<std::int64_t>(from.size() - done));
    done += static_cast<std::size_t>(count);
  }
  return {};
}

Result<void> File::preallocate(std::int64_t size_bytes) {
  const int result = with_one_retry(*file_system_, "preallocate", path_, [&] {
    return file_system_->calls().allocate(descriptor_, size_bytes);
  });
  if (result < 0) return write_error(*file_system_, -result, path_, 0, size_bytes);
  return {};
}

Result<void> File::sync() {
  int result = -EINTR;
  while (result == -EINTR) result = file_system_->calls().sync(descriptor_);
  if (result == -ENOSPC || result == -EDQUOT)
    return write_error(*file_system_, -result, path_, 0, 0);
  if (result < 0) return os_error(-result, "bring the content to the disk", path_);
  return {};
}

Result<void> File::close() {
  // On Linux the descriptor is gone whatever close() answers, so it is never called again.
  const int result = file_system_->calls().close(std::exchange(descriptor_, -1));
  if (result < 0 && result != -EINTR) return os_error(-result, "close", path_);
  return {};
}

FileSystem::FileSystem(std::shared_ptr<SystemCalls> calls) : calls_(std::move(calls)) {
  UK_CHECK(calls_ != nullptr, "a file system needs its calls");
}

Result<File> FileSystem::open_as(const std::string& path, OpenMode mode) {
  const std::string_view action = mode == OpenMode::create ? "create" : "open";
  const int descriptor =
      with_one_retry(*this, action, path, [&] { return calls_->open(path, mode); });
  if (descriptor == -ENOSPC || descriptor == -EDQUOT)
    return write_error(*this, -descriptor, path, 0, 0);
  if (descriptor < 0) return os_error(-descriptor, action, path);
  File file(*this, descriptor, path);
  FileStat stat;
  const int result = calls_->stat_open(descriptor, stat);
  if (result < 0) return os_error(-result, "ask for the kind of file", path);
  if (stat.kind != FileKind::file)
    return fail(ErrorCode::bad_file,
                stat.kind == FileKind::folder ? "a folder stands where a file is expected"
                                              : "not a regular file",
                path);
  return file;
}

Result<File> FileSystem::open(const std::string& path) {
  return open_as(path, OpenMode::read);
}
Result<File> FileSystem::open_for_update(const std::string& path) {
  return open_as(path, OpenMode::update);
}
Result<File> FileSystem::create(const std::string& path) {
  return open_as(path, OpenMode::create);
}

Result<std::string> FileSystem::read_text(const std::string& path, std::int64_t limit_bytes) {
  UK_TRY(file, open(path));
  UK_TRY(size, file.size_bytes());
  if (size > limit_bytes)
    return fail(ErrorCode::bad_file,
                fmt::format("file has {} bytes; at most {} are read", format_count(size),
                            format_count(limit_bytes)),
                path);
  std::string text(static_cast<std::size_t>(size), '\0');
  UK_TRY_VOID(file.read(std::as_writable_bytes(std::span(text)), 0));
  if (const auto foreign = foreign_content_of(text))
    return fail(ErrorCode::bad_file, fmt::format("the content is {}", foreign->what), path,
                foreign->fix);
  return text;
}

Result<void> FileSystem::write_text_durably(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".tmp";
  UK_TRY(file, create(temporary));
  UK_TRY_VOID(file.write(std::as_bytes(std::span(text)), 0));
  UK_TRY_VOID(file.sync());
  UK_TRY_VOID(file.close());
  UK_TRY_VOID(rename(temporary, path));
  return sync_folder(folder_of(path));
}

Result<std::optional<FileStat>> FileSystem::stat(const std::string& path) {
  FileStat stat;
  const int result =
      with_one_retry(*this, "stat", path, [&] { return calls_->stat(path, true, stat); });
  if (result == -ENOENT || result == -ENOTDIR) return std::optional<FileStat>{};
  if (result < 0) return os_error(-result, "look at the path", path);
  return std::optional<FileStat>{stat};
}

bool FileSystem::exists(const std::string& path) {
  const auto found = stat(path);
  return found && found->has_value();
}

Result<std::vector<FolderEntry>> FileSystem::list(const std::string& folder) {
  std::vector<std::string> names;
  const int result = with_one_retry(*this, "list", folder, [&] {
    names.clear();
    return calls_->list(folder, names);
  });
  if (result < 0) return os_error(-result, "list the folder", folder);
  std::sort(names.begin(), names.end());
  std::vector<FolderEntry> entries;
  for (std::string& name : names) {
    UK_TRY(found, stat(join_path(folder, name)));
    FolderEntry entry{.name = std::move(name), .kind = FileKind::link};
    if (found) entry.kind = found->kind;
    if (found) entry.size_bytes = found->size_bytes;
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<void> FileSystem::make_folders(const std::string& folder) {
  UK_TRY(found, stat(folder));
  if (found && found->kind == FileKind::folder) return {};
  if (found) return fail(ErrorCode::io, "a file stands where a folder is wanted", folder);
  const std::string above = folder_of(folder);
  if (above != folder) UK_TRY_VOID(make_folders(above));
  const int result =
      with_one_retry(*this, "make folder", folder, [&] { return calls_->make_folder(folder); });
  // Another rank may have made it in between.
  if (result < 0 && result != -EEXIST) return os_error(-result, "make the folder", folder);
  return {};
}

Result<void> FileSystem::rename(const std::string& from, const std::string& to) {
  const int result =
      with_one_retry(*this, "rename", from, [&] { return calls_->rename(from, to); });
  if (result < 0) return os_error(-result, fmt::format("rename to {}", to), from);
  return {};
}

Result<void> FileSystem::exchange(const std::string& first, const std::string& second) {
  const int result = calls_->exchange(first, second);
  if (result == -EINVAL || result == -ENOSYS || result == -ENOTSUP)
    return fail(ErrorCode::unsupported, "this file system cannot swap two names in one step",
                second);
  if (result < 0) return os_error(-result, fmt::format("swap with {}", second), first);
  return {};
}

Result<void> FileSystem::sync_folder(const std::string& folder) {
  const int descriptor =
      with_one_retry(*this, "open", folder, [&] { return calls_->open(folder, OpenMode::folder); });
  if (descriptor < 0) return os_error(-descriptor, "open the folder", folder);
  File file(*this, descriptor, folder);
  return file.sync();
}

Result<void> FileSystem::remove_file(const std::string& path) {
  const int result =
      with_one_retry(*this, "remove", path, [&] { return calls_->remove_file(path); });
  if (result < 0) return os_error(-result, "remove the file", path);
  return {};
}

Result<void> FileSystem::remove_tree(const std::string& path) {
  FileStat found;
  const int looked =
      with_one_retry(*this, "stat", path, [&] { return calls_->stat(path, false, found); });
  if (looked == -ENOENT) return {};
  if (looked < 0) return os_error(-looked, "look at the path", path);
  if (found.kind != FileKind::folder) return remove_file(path);

  std::vector<std::string> names;
  const int listed = with_one_retry(*this, "list", path, [&] {
    names.clear();
    return calls_->list(path, names);
  });
  if (listed < 0) return os_error(-listed, "list the folder", path);
  for (const std::string& name : names) UK_TRY_VOID(remove_tree(join_path(path, name)));
  const int result =
      with_one_retry(*this, "remove", path, [&] { return calls_->remove_folder(path); });
  if (result < 0) return os_error(-result, "remove the folder", path);
  return {};
}

Result<std::int64_t> FileSystem::free_bytes(const std::string& path) {
  std::string existing = path;
  while (true) {
    std::int64_t size_bytes = 0;
    const int result = with_one_retry(*this, "ask for free space", existing,
                                      [&] { return calls_->free_bytes(existing, size_bytes); });
    if (result >= 0) return size_bytes;
    const std::string above = folder_of(existing);
    if (result != -ENOENT || above == existing)
      return os_error(-result, "ask for the free space", existing);
    existing = above;
  }
}

std::vector<std::string> FileSystem::take_notes() {
  const std::lock_guard lock(notes_mutex_);
  return std::exchange(notes_, {});
}

void FileSystem::add_note(std::string note) {
  const std::lock_guard lock(notes_mutex_);
  notes_.push_back(std::move(note));
}

std::string join_path(std::string_view folder, std::string_view name) {
  if (folder.empty()) return std::string(name);
  return fmt::format("{}{}{}", folder, folder.ends_with('/') ? "" : "/", name);
}

std::string folder_of(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  path = path.substr(0, std::max<std::size_t>(slash, 1));
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

}  // namespace underkeel::io
