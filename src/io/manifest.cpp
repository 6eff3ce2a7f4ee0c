#include "io/manifest.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/units.h"
#include "io/json_fields.h"
#include "io/plain_name.h"
#include "io/safetensors_types.h"
#include "io/strict_json.h"

namespace underkeel::io {

namespace {

constexpr std::string_view format_name = "underkeel-checkpoint";
constexpr std::uint64_t format_version = 1;

std::string part_json(const FilePart& part) {
  return fmt::format(R"({{"begin": {}, "end": {}, "xxh3_64": "{}"}})", part.begin, part.end,
                     checksum_text(part.xxh3_64));
}

class ManifestVisitor final : public FieldVisitor {
 public:
  ManifestVisitor(Manifest& manifest, const std::string& path)
      : FieldVisitor(path), manifest_(manifest) {}

  /// What the text as a whole must have said.
  Result<void> finish() {
    if (format_ != format_name)
      return fail(ErrorCode::bad_file, fmt::format("not an {} manifest", format_name), source_);
    if (version_ != static_cast<std::int64_t>(format_version))
      return fail(ErrorCode::unsupported,
                  version_ ? fmt::format("checkpoint format {}; this program reads {}", *version_,
                                         format_version)
                           : "the checkpoint format has no version",
                  source_, "use the version of the program that wrote it");
    if (!complete_) return fail(ErrorCode::bad_file, "the save was not completed", source_);
    if (!step_ || !plan_hash_ || !state_)
      return fail(ErrorCode::bad_file, "the manifest lacks one of step, plan_hash, state", source_);
    if (!has_files_ || !has_tensors_)
      return fail(ErrorCode::bad_file, "the manifest lacks one of files, tensors", source_);
    manifest_.step = *step_;
    manifest_.plan_hash = std::move(*plan_hash_);
    manifest_.state = std::move(*state_);
    return {};
  }

  Result<void> begin_object(JsonPath path) override {
    if (path.empty()) return {};
    if (path.size() == 2 && is_in(path, "files")) file_ = {};
    if (path.size() == 2 && is_in(path, "tensors")) tensor_ = {};
    if (path.size() == 4 && is_in(path, "tensors", "parts")) part_ = {};
    if (path.size() == 4 && is_in(path, "tensors", "shape"))
      return bad(path, "is not a whole number");
    if (path.size() == 1 && (path[0].key == "files" || path[0].key == "tensors"))
      return bad(path, "is not a list");
    return {};
  }

  Result<void> begin_array(JsonPath path) override {
    if (path.empty()) return fail(ErrorCode::bad_file, "not a JSON object", source_);
    if (path.size() == 1 && path[0].key == "files") has_files_ = true;
    if (path.size() == 1 && path[0].key == "tensors") has_tensors_ = true;
    if (path.size() == 2 && (is_in(path, "files") || is_in(path, "tensors")))
      return bad(path, "is not an object");
    if (path.size() == 3 && is_in(path, "tensors", "shape")) tensor_.has_shape = true;
    if (path.size() == 3 && is_in(path, "tensors", "parts")) tensor_.has_parts = true;
    if (path.size() == 4 && (is_in(path, "tensors", "parts") || is_in(path, "tensors", "shape")))
      return bad(path, "is a list in a list");
    return {};
  }

  Result<void> scalar(JsonPath path, const JsonScalar& value) override {
    if (path.empty()) return fail(ErrorCode::bad_file, "not a JSON object", source_);
    if (path.size() == 1) return take_top(path, value);
    if (path.size() == 2 && (is_in(path, "files") || is_in(path, "tensors")))
      return bad(path, "is not an object");
    if (path.size() == 3 && is_in(path, "files")) return take_file_field(path, value);
    if (path.size() == 3 && is_in(path, "tensors")) return take_tensor_field(path, value);
    if (path.size() == 4 && is_in(path, "tensors", "shape")) {
      std::optional<std::int64_t> size;
      UK_TRY_VOID(take(path, value, size));
      if (tensor_.shape.size() == most_dimensions) return bad(path, "is one dimension too many");
      tensor_.shape.push_back(*size);
    }
    if (path.size() == 4 && is_in(path, "tensors", "parts")) return bad(path, "is not an object");
    if (path.size() == 5 && is_in(path, "tensors", "parts"))
      return take_part_field(path, value, part_);
    return {};
  }

  Result<void> end(JsonPath path) override {
    if (path.size() == 2 && is_in(path, "files")) {
      if (!file_.name || !file_.size_bytes) return bad(path, "lacks one of name, size_bytes");
      manifest_.files.push_back({std::move(*file_.name), *file_.size_bytes, file_.xxh3_64});
    }
    if (path.size() == 2 && is_in(path, "tensors")) {
      if (!tensor_.name || !tensor_.type || !tensor_.file || !tensor_.begin || !tensor_.end ||
          !tensor_.has_shape || !tensor_.has_parts)
        return bad(path, "lacks one of name, dtype, shape, file, begin, end, parts");
      manifest_.tensors.push_back({std::move(*tensor_.name), *tensor_.type,
                                   std::move(tensor_.shape), std::move(*tensor_.file),
                                   *tensor_.begin, *tensor_.end, std::move(tensor_.parts)});
    }
    if (path.size() == 4 && is_in(path, "tensors", "parts")) {
      UK_TRY(part, finished(path, part_));
      tensor_.parts.push_back(part);
    }
    return {};
  }

 private:
  struct FileDraft {
    std::optional<std::string> name;
    std::optional<std::int64_t> size_bytes;
    std::optional<std::uint64_t> xxh3_64;
  };
  struct TensorDraft {
    std::optional<std::string> name;
    std::optional<DType> type;
    std::optional<std::string> file;
    std::optional<std::int64_t> begin;
    std::optional<std::int64_t> end;
    std::vector<std::int64_t> shape;
    std::vector<FilePart> parts;
    bool has_shape = false;
    bool has_parts = false;
  };

  /// Whether `path` leads into the list `list` of the top object, and there under `key`.
  static bool is_in(JsonPath path, std::string_view list, std::string_view key = {}) {
    return path[0].key == list && path[1].index >= 0 && (key.empty() || path[2].key == key);
  }

  Result<void> take_top(JsonPath path, const JsonScalar& value) {
    const std::string& key = path[0].key;
    if (key == "format") return take(path, value, format_);
    if (key == "version") return take(path, value, version_);
    if (key == "step") return take(path, value, step_);
    if (key == "plan_hash") return take(path, value, plan_hash_);
    if (key == "state") return take(path, value, state_);
    if (key == "complete") complete_ = value == JsonScalar(true);
    if (key == "files" || key == "tensors") return bad(path, "is not a list");
    return {};
  }

  Result<void> take_file_field(JsonPath path, const JsonScalar& value) {
    const std::string& key = path[2].key;
    if (key == "name") return take(path, value, file_.name);
    if (key == "size_bytes") return take(path, value, file_.size_bytes);
    if (key == "xxh3_64") return take_checksum(path, value, file_.xxh3_64);
    return {};
  }

  Result<void> take_tensor_field(JsonPath path, const JsonScalar& value) {
    const std::string& key = path[2].key;
    if (key == "name") return take(path, value, tensor_.name);
    if (key == "file") return take(path, value, tensor_.file);
    if (key == "begin") return take(path, value, tensor_.begin);
    if (key == "end") return take(path, value, tensor_.end);
    if (key == "dtype") {
      const auto* text = std::get_if<std::string_view>(&value);
      const auto type = parse_dtype(text == nullptr ? "" : *text, "dtype");
      if (!type) return bad(path, "is not an element type");
      tensor_.type = *type;
    }
    if (key == "shape" || key == "parts") return bad(path, "is not a list");
    return {};
  }

  Manifest& manifest_;
  std::optional<std::string> format_;
  std::optional<std::int64_t> version_;
  std::optional<std::int64_t> step_;
  std::optional<std::string> plan_hash_;
  std::optional<std::string> state_;
  bool complete_ = false;
  bool has_files_ = false;
  bool has_tensors_ = false;
  FileDraft file_;
  TensorDraft tensor_;
  PartDraft part_;
};

Result<void> check_tensor(const CheckpointTensor& tensor, std::int64_t file_size_bytes,
                          const std::string& path) {
  const auto bad = [&](std::string what) {
    return fail(ErrorCode::bad_file, std::move(what),
                fmt::format("{}, tensor {}", path, printable(tensor.name)));
  };
  std::int64_t bits = bits_of(tensor.type);
  for (const std::int64_t size : tensor.shape)
    if (size < 0 || __builtin_mul_overflow(bits, size, &bits)) return bad("shape beyond any size");
  const std::int64_t needed_bytes = bits / 8 + (bits % 8 != 0 ? 1 : 0);
  if (tensor.begin < 0 || tensor.end < tensor.begin || tensor.end > file_size_bytes)
    return bad(fmt::format("bytes {} to {} of a file of {} bytes", tensor.begin, tensor.end,
                           format_count(file_size_bytes)));
  if (tensor.end - tensor.begin != needed_bytes)
    return bad(fmt::format("covers {} bytes; its type and shape need {}",
                           format_count(tensor.end - tensor.begin), format_count(needed_bytes)));
  std::int64_t position = tensor.begin;
  for (const FilePart& part : tensor.parts) {
    if (part.begin != position || part.end <= part.begin)
      return bad(fmt::format("a part covers bytes {} to {}; expected one that begins at {}",
                             part.begin, part.end, position));
    position = part.end;
  }
  if (position != tensor.end)
    return bad(fmt::format("parts end at byte {}, the tensor at {}", position, tensor.end));
  return {};
}

}  // namespace

const CheckpointTensor* Manifest::find(std::string_view name) const {
  for (const CheckpointTensor& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

Result<std::string> to_json(const Manifest& manifest) {
  UK_TRY(plan_hash, json_quoted(manifest.plan_hash));
  UK_TRY(state, json_quoted(manifest.state));
  std::string json = fmt::format(
      "{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"complete\": true,\n  \"step\": {},\n"
      "  \"plan_hash\": {},\n  \"state\": {},\n  \"files\": [",
      format_name, format_version, manifest.step, plan_hash, state);
  std::string_view separator = "\n";
  for (const CheckpointFile& file : manifest.files) {
    UK_TRY(name, json_quoted(file.name));
    json += fmt::format(R"({}    {{"name": {}, "size_bytes": {})", std::exchange(separator, ",\n"),
                        name, file.size_bytes);
    if (file.xxh3_64) json += fmt::format(R"(, "xxh3_64": "{}")", checksum_text(*file.xxh3_64));
    json += "}";
  }
  json += "\n  ],\n  \"tensors\": [";
  separator = "\n";
  for (const CheckpointTensor& tensor : manifest.tensors) {
    UK_TRY(name, json_quoted(tensor.name));
    UK_TRY(file, json_quoted(tensor.file));
    json += fmt::format(
        R"({}    {{"name": {}, "dtype": "{}", "shape": [{}], "file": {}, "begin": {}, "end": {}, )"
        R"("parts": [)",
        std::exchange(separator, ",\n"), name, name_of(tensor.type), fmt::join(tensor.shape, ", "),
        file, tensor.begin, tensor.end);
    for (std::size_t i = 0; i < tensor.parts.size(); ++i)
      json += (i == 0 ? "" : ", ") + part_json(tensor.parts[i]);
    json += "]}";
  }
  return json + "\n  ]\n}\n";
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& path) {
  Manifest manifest;
  ManifestVisitor visitor(manifest, path);
  UK_TRY_VOID(read_strict_json(text, path, visitor));
  UK_TRY_VOID(visitor.finish());
  UK_TRY_VOID(check_manifest(manifest, path));
  return manifest;
}

Result<void> check_manifest(const Manifest& manifest, const std::string& path) {
  std::map<std::string_view, std::int64_t> size_of_file;
  for (const CheckpointFile& file : manifest.files) {
    if (!is_plain_file_name(file.name) || file.name == manifest_file)
      return fail(
          ErrorCode::bad_file,
          fmt::format("`{}` is not the name of a file in the checkpoint", printable(file.name)),
          path);
    if (!size_of_file.emplace(file.name, file.size_bytes).second)
      return fail(ErrorCode::bad_file, fmt::format("the file `{}` is listed twice", file.name),
                  path);
  }
  std::set<std::string_view> names;
  std::vector<std::tuple<std::string_view, std::int64_t, std::int64_t, std::string_view>> ranges;
  for (const CheckpointTensor& tensor : manifest.tensors) {
    if (!names.insert(tensor.name).second)
      return fail(ErrorCode::bad_file,
                  fmt::format("the tensor `{}` is listed twice", printable(tensor.name)), path);
    const auto file = size_of_file.find(tensor.file);
    if (file == size_of_file.end())
      return fail(ErrorCode::bad_file,
                  fmt::format("lies in `{}`, which is not listed", printable(tensor.file)),
                  fmt::format("{}, tensor {}", path, printable(tensor.name)));
    UK_TRY_VOID(check_tensor(tensor, file->second, path));
    if (tensor.end > tensor.begin)
      ranges.emplace_back(tensor.file, tensor.begin, tensor.end, tensor.name);
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    const auto& [file, begin, end, name] = ranges[i - 1];
    if (std::get<0>(ranges[i]) == file && std::get<1>(ranges[i]) < end)
      return fail(ErrorCode::bad_file,
                  fmt::format("the tensors `{}` and `{}` overlap in {}", printable(name),
                              printable(std::get<3>(ranges[i])), printable(file)),
                  path);
  }
  return {};
}

}  // namespace underkeel::io
