#include "train/checkpoint_writer.h"

#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "plan/stored_name.h"

namespace underkeel::train {

CheckpointWriter::CheckpointWriter(io::FileSystem& files, const CheckpointFiles& layout,
                                   SaveRequest request)
    : files_(files), layout_(layout), request_(std::move(request)) {
  for (std::size_t i = 0; i < layout.files.size(); ++i)
    for (const io::TensorEntry& entry : layout.files[i].layout.tensors)
      places_[entry.name] = {i, &entry};
}

Result<std::unique_ptr<CheckpointWriter>> CheckpointWriter::begin(io::FileSystem& files,
                                                                  comm::Communicator& control,
                                                                  const CheckpointFiles& layout,
                                                                  SaveRequest request) {
  control.set_phase(
      fmt::format("{} at step {}", request.is_checkpoint ? "save" : "export", request.step));
  std::unique_ptr<CheckpointWriter> writer(new CheckpointWriter(files, layout, std::move(request)));
  writer->parts_.rank = control.rank();
  const Result<void> made = on_rank_0(control, [&] { return writer->make_files(); });
  if (!made) {
    writer->abandon(control);
    return tl::unexpected(made.error());
  }
  const std::string folder = writer->folder();
  const auto open_all = [&]() -> Result<void> {
    for (const LaidOutFile& file : layout.files) {
      UK_TRY(opened, files.open_for_update(folder + "/" + file.name));
      writer->open_.push_back(std::move(opened));
    }
    return {};
  };
  const Result<void> opened = agree(control, open_all());
  if (!opened) {
    writer->abandon(control);
    return tl::unexpected(opened.error());
  }
  return writer;
}

std::string CheckpointWriter::folder() const {
  return request_.is_checkpoint ? io::temporary_checkpoint_path(request_.output, request_.step)
                                : io::join_path(request_.output, "tmp-model");
}

Result<void> CheckpointWriter::make_files() {
  if (request_.is_checkpoint) {
    UK_TRY_VOID(io::begin_checkpoint(files_, request_.output, request_.step));
  } else {
    UK_TRY_VOID(files_.remove_tree(folder()));
    UK_TRY_VOID(files_.make_folders(folder()));
  }
  for (const LaidOutFile& file : layout_.files)
    UK_TRY_VOID(io::create_safetensors(files_, io::join_path(folder(), file.name), file.layout));
  for (const ExtraFile& extra : request_.extra)
    UK_TRY_VOID(extra.write
                    ? write_in_pieces(files_, io::join_path(folder(), extra.name), extra.write)
                    : files_.write_text_durably(io::join_path(folder(), extra.name), extra.text));
  if (layout_.weight_index.empty()) return {};
  return files_.write_text_durably(io::join_path(folder(), io::weight_index_file),
                                   layout_.weight_index);
}

Result<void> CheckpointWriter::write(const plan::UnitTensor& tensor, plan::StatePart part,
                                     std::int64_t begin, std::int64_t end, DType type,
                                     const void* from) {
  std::string name = plan::stored_name(part, tensor.name);
  auto found = places_.find(name);
  if (found == places_.end() && part == plan::StatePart::weights) {
    // Weights that are not exported and have no master beside them are kept as the master that they are.
    name = plan::stored_name(plan::StatePart::master, tensor.name);
    found = places_.find(name);
    if (found != places_.end() && *found->second.entry->type != type) return {};
  }
  if (found == places_.end() && part == plan::StatePart::master) {
    // Weights that are exported wider than they are trained are the master copy.
    found = places_.find(tensor.name);
    if (found != places_.end() && *found->second.entry->type != type) return {};
  }
  if (found == places_.end()) return {};
  if (write_error_) return {};
  const io::TensorEntry& entry = *found->second.entry;
  if (part == plan::StatePart::weights && type != DType::f32 && entry.type == DType::f32) return {};
  UK_CHECK(entry.type == type, "a save writes the type that was laid out: " + name);
  const std::span bytes(static_cast<const std::byte*>(from),
                        static_cast<std::size_t>(bytes_of(type, end - begin)));
  const Result<void> written = write_range(found->second, bytes_of(type, begin), bytes);
  if (!written) write_error_ = written.error();
  return {};
}

Result<void> CheckpointWriter::write_range(const CheckpointFiles::Place& place,
                                           std::int64_t first_byte,
                                           std::span<const std::byte> bytes) {
  io::PartWriter out(open_[place.file_index], place.entry->begin + first_byte);
  UK_TRY_VOID(out.write(bytes));
  parts_.entries.push_back({place.entry->name, out.part()});
  written_bytes_ += static_cast<std::int64_t>(bytes.size());
  if (request_.report) request_.report(written_bytes_);
  return {};
}

Result<void> CheckpointWriter::commit(comm::Communicator& control) {
  control.set_phase(fmt::format("end of the {} at step {}",
                                request_.is_checkpoint ? "save" : "export", request_.step));
  const auto sync_all = [&]() -> Result<std::string> {
    if (write_error_) return tl::unexpected(*write_error_);
    for (io::File& file : open_) {
      UK_TRY_VOID(file.sync());
      UK_TRY_VOID(file.close());
    }
    return io::to_json(parts_);
  };
  Result<std::string> own = sync_all();
  UK_TRY_VOID(agree(control, own));
  UK_TRY(texts, control.all_gather_text(*own));
  return on_rank_0(control, [&] { return finish_on_rank_0(texts); });
}

Result<void> CheckpointWriter::finish_on_rank_0(const std::vector<std::string>& part_texts) {
  io::Manifest manifest{
      .step = request_.step, .plan_hash = request_.plan_hash, .state = request_.state};
  std::vector<std::byte> buffer(64 * 1024);
  for (const LaidOutFile& file : layout_.files) {
    UK_TRY(described, io::describe_file(files_, folder(), file.name));
    manifest.files.push_back(std::move(described));
    for (const io::TensorEntry& entry : file.layout.tensors)
      manifest.tensors.push_back({.name = entry.name,
                                  .type = *entry.type,
                                  .shape = entry.shape,
                                  .file = file.name,
                                  .begin = entry.begin,
                                  .end = entry.end});
  }
  std::vector<std::string> small;
  for (const ExtraFile& extra : request_.extra) small.push_back(extra.name);
  if (!layout_.weight_index.empty()) small.emplace_back(io::weight_index_file);
  for (const std::string& name : small) {
    UK_TRY(described, io::describe_file(files_, folder(), name, buffer));
    manifest.files.push_back(std::move(described));
  }
  std::vector<io::RankParts> ranks;
  for (std::size_t rank = 0; rank < part_texts.size(); ++rank) {
    UK_TRY(parts, io::parse_rank_parts(part_texts[rank], fmt::format("rank {}", rank)));
    ranks.push_back(std::move(parts));
  }
  UK_TRY_VOID(io::merge_parts(manifest, ranks));
  if (request_.is_checkpoint) return io::finish_checkpoint(files_, request_.output, manifest);
  return move_into_output();
}

// Every file replaces its namesake by a rename; the index comes last, so that no reader finds it over files
// that are not there.
Result<void> CheckpointWriter::move_into_output() {
  std::vector<io::WeightShard> shards;
  for (const LaidOutFile& file : layout_.files) shards.push_back({.file = file.name});
  UK_TRY_VOID(io::remove_stale_weights(files_, request_.output, shards));
  std::vector<std::string> names;
  for (const ExtraFile& extra : request_.extra) names.push_back(extra.name);
  for (const LaidOutFile& file : layout_.files) names.push_back(file.name);
  if (!layout_.weight_index.empty()) names.emplace_back(io::weight_index_file);
  for (const std::string& name : names)
    UK_TRY_VOID(files_.rename(io::join_path(folder(), name), io::join_path(request_.output, name)));
  UK_TRY_VOID(files_.remove_tree(folder()));
  return files_.sync_folder(request_.output);
}

void CheckpointWriter::abandon(comm::Communicator& control) {
  open_.clear();
  // What cannot be removed is ignored by every reader and swept away by the next save.
  if (control.rank() != 0) return;
  if (request_.is_checkpoint) {
    (void)io::abandon_checkpoint(files_, request_.output, request_.step);
  } else {
    (void)files_.remove_tree(folder());
  }
}

}  // namespace underkeel::train
