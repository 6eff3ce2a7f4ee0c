#include "train/text_file.h"

#include <cstddef>
#include <span>

namespace underkeel::train {

Result<void> write_in_pieces(io::FileSystem& files, const std::string& path,
                             const std::function<Result<void>(const TextSink&)>& write) {
  const std::string temporary = path + ".tmp";
  UK_TRY(file, files.create(temporary));
  std::int64_t end_bytes = 0;
  UK_TRY_VOID(write([&](std::string_view piece) -> Result<void> {
    UK_TRY_VOID(file.write(std::as_bytes(std::span(piece)), end_bytes));
    end_bytes += static_cast<std::int64_t>(piece.size());
    return {};
  }));
  UK_TRY_VOID(file.sync());
  UK_TRY_VOID(file.close());
  UK_TRY_VOID(files.rename(temporary, path));
  return files.sync_folder(io::folder_of(path));
}

}  // namespace underkeel::train
