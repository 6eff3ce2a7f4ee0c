#include "train/checkpoint_writer.h"

#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace underkeel::train {

namespace {

std::string error_text(const Error& error) {
  return nlohmann::json{{"code", static_cast<int>(error.code)},
                        {"what", error.what},
                        {"where", error.where},
                        {"fix", error.fix}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Error parse_error_text(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return {static_cast<ErrorCode>(json["code"].get<int>()), json["what"], json["where"],
          json["fix"]};
}

}  // namespace

Result<void> agree(comm::Communicator& control, Result<void> own) {
  UK_TRY(texts, control.all_gather_text(own ? "" : error_text(own.error())));
  if (!own) return own;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].empty()) continue;
    Error error = parse_error_text(texts[rank]);
    error.what = fmt::format("rank {}: {}", rank, error.what);
    return tl::unexpected(std::move(error));
  }
  return {};
}

Result<void> on_rank_0(comm::Communicator& control, const std::function<Result<void>()>& body) {
  return agree(control, control.rank() == 0 ? body() : Result<void>{});
}

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
  control.set_phase(fmt::format("save at step {}", request.step));
  std::unique_ptr<CheckpointWriter> writer(new CheckpointWriter(files, layout, std::move(request)));
  writer->parts_.rank = control.rank();
  const SaveRequest& r = writer->request_;
  const std::string folder = io::temporary_checkpoint_path(r.output, r.step);
  UK_TRY_VOID(on_rank_0(control, [&]() -> Result<void> {
    UK_TRY_VOID(io::begin_checkpoint(files, r.output, r.step));
    for (const LaidOutFile& file : layout.files)
      UK_TRY_VOID(io::create_safetensors(files, folder + "/" + file.name, file.layout));
    for (const ExtraFile& extra : r.extra)
      UK_TRY_VOID(files.write_text_durably(folder + "/" + extra.name, extra.text));
    if (!layout.weight_index.empty())
      UK_TRY_VOID(files.write_text_durably(folder + "/" + std::string(io::weight_index_file),
                                           layout.weight_index));
    return {};
  }));
  const auto open_all = [&]() -> Result<void> {
    for (const LaidOutFile& file : layout.files) {
      UK_TRY(opened, files.open_for_update(folder + "/" + file.name));
      writer->open_.push_back(std::move(opened));
    }
    return {};
  };
  UK_TRY_VOID(agree(control, open_all()));
  return writer;
}

Result<void> CheckpointWriter::write(const plan::UnitTensor& tensor, plan::StatePart part,
                                     std::int64_t begin, std::int64_t end, DType type,
                                     const void* from) {
  const std::string name = stored_name(part, tensor.name);
  const auto found = places_.find(name);
  if (found == places_.end()) return {};
  const io::TensorEntry& entry = *found->second.entry;
  UK_CHECK(entry.type == type, "a save writes the type that was laid out: " + name);
  const std::span bytes(static_cast<const std::byte*>(from),
                        static_cast<std::size_t>(bytes_of(type, end - begin)));
  io::PartWriter out(open_[found->second.file_index], entry.begin + bytes_of(type, begin));
  UK_TRY_VOID(out.write(bytes));
  parts_.entries.push_back({name, out.part()});
  written_bytes_ += static_cast<std::int64_t>(bytes.size());
  return {};
}

Result<void> CheckpointWriter::commit(comm::Communicator& control) {
  control.set_phase(fmt::format("end of the save at step {}", request_.step));
  const auto sync_all = [&]() -> Result<std::string> {
    for (io::File& file : open_) {
      UK_TRY_VOID(file.sync());
      UK_TRY_VOID(file.close());
    }
    return io::to_json(parts_);
  };
  Result<std::string> own = sync_all();
  UK_TRY_VOID(agree(control, own ? Result<void>{} : tl::unexpected(own.error())));
  UK_TRY(texts, control.all_gather_text(*own));
  return on_rank_0(control, [&] { return finish_on_rank_0(texts); });
}

Result<void> CheckpointWriter::finish_on_rank_0(const std::vector<std::string>& part_texts) {
  io::Manifest manifest{
      .step = request_.step, .plan_hash = request_.plan_hash, .state = request_.state};
  const std::string folder = io::temporary_checkpoint_path(request_.output, request_.step);
  std::vector<std::byte> buffer(64 * 1024);
  for (const LaidOutFile& file : layout_.files) {
    UK_TRY(described, io::describe_file(files_, folder, file.name));
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
    UK_TRY(described, io::describe_file(files_, folder, name, buffer));
    manifest.files.push_back(std::move(described));
  }
  std::vector<io::RankParts> ranks;
  for (std::size_t rank = 0; rank < part_texts.size(); ++rank) {
    UK_TRY(parts, io::parse_rank_parts(part_texts[rank], fmt::format("rank {}", rank)));
    ranks.push_back(std::move(parts));
  }
  UK_TRY_VOID(io::merge_parts(manifest, ranks));
  return io::finish_checkpoint(files_, request_.output, manifest);
}

void CheckpointWriter::abandon(comm::Communicator& control) {
  open_.clear();
  // What cannot be removed is ignored by every reader and swept away by the next save.
  if (control.rank() == 0) (void)io::abandon_checkpoint(files_, request_.output, request_.step);
}

}  // namespace underkeel::train
