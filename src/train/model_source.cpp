#include "train/model_source.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/check.h"
#include "base/random.h"
#include "base/units.h"

namespace underkeel::train {

namespace {
constexpr std::int64_t chunk_bytes = 256 * kibibyte;
}

void widen(const std::byte* from, DType type, std::int64_t count, float* into) {
  switch (type) {
    case DType::f32:
      std::memcpy(into, from, static_cast<std::size_t>(count) * 4);
      return;
    case DType::bf16:
      for (std::int64_t i = 0; i < count; ++i) {
        BFloat16 value;
        std::memcpy(&value, from + 2 * i, 2);
        into[i] = to_f32(value);
      }
      return;
    case DType::f16:
      for (std::int64_t i = 0; i < count; ++i) {
        Float16 value;
        std::memcpy(&value, from + 2 * i, 2);
        into[i] = to_f32(value);
      }
      return;
    default:
      UK_CHECK(false, "only f32, bf16 and f16 weights are read");
  }
}

ModelFolderSource::ModelFolderSource(io::FileSystem& files, io::ModelFiles model, int thread_count)
    : files_(files),
      model_(std::move(model)),
      pool_(thread_count),
      chunks_(static_cast<std::size_t>(thread_count), std::vector<std::byte>(chunk_bytes)),
      results_(chunks_.size()) {}

Result<ModelFolderSource::Place> ModelFolderSource::find(const plan::UnitTensor& tensor,
                                                         plan::StatePart part) {
  UK_CHECK(part == plan::StatePart::weights, "a model folder holds weights only");
  const auto found = model_.find(tensor.name);
  if (!found)
    return fail(ErrorCode::bad_file, fmt::format("the folder has no tensor `{}`", tensor.name),
                model_.folder, "use a complete model folder of this architecture");
  const io::TensorEntry& entry = found->entry;
  if (entry.shape != tensor.shape)
    return fail(ErrorCode::bad_file,
                fmt::format("tensor `{}` has shape {}, the model needs {}", tensor.name,
                            io::shape_text(entry.shape), io::shape_text(tensor.shape)),
                found->path, "use the weights that belong to this config.json");
  if (entry.type != DType::f32 && entry.type != DType::bf16 && entry.type != DType::f16)
    return fail(ErrorCode::unsupported,
                fmt::format("tensor `{}` has type {}", tensor.name, entry.dtype_text), found->path,
                "store the weights as F32, BF16 or F16");
  auto file = open_.find(found->path);
  if (file == open_.end()) {
    UK_TRY(opened, files_.open(found->path));
    file = open_.emplace(found->path, std::move(opened)).first;
  }
  return Place{.file = &file->second, .entry = entry};
}

template <class Read>
Result<void> ModelFolderSource::read_in_parts(std::int64_t begin, std::int64_t end, Read&& read) {
  const auto slots = static_cast<std::int64_t>(chunks_.size());
  const std::int64_t share = (end - begin + slots - 1) / slots;
  pool_.parallel_for(slots, [&](std::int64_t slot) {
    const std::int64_t from = std::min(end, begin + slot * share);
    results_[static_cast<std::size_t>(slot)] =
        read(static_cast<std::size_t>(slot), from, std::min(end, from + share));
  });
  for (Result<void>& result : results_) UK_TRY_VOID(std::move(result));
  return {};
}

Result<void> ModelFolderSource::read(const plan::UnitTensor& tensor, plan::StatePart part,
                                     std::int64_t begin, std::int64_t end, float* into) {
  UK_TRY(place, find(tensor, part));
  bytes_read_ += bytes_of(*place.entry.type, end - begin);
  return read_in_parts(begin, end, [&](std::size_t slot, std::int64_t from, std::int64_t to) {
    return widen_range(place, from, to, into + (from - begin), slot);
  });
}

DType ModelFolderSource::held_type(const plan::UnitTensor& tensor, plan::StatePart) const {
  const auto found = model_.find(tensor.name);
  return found && found->entry.type ? *found->entry.type : DType::f32;
}

Result<void> ModelFolderSource::read_held(const plan::UnitTensor& tensor, plan::StatePart part,
                                          std::int64_t begin, std::int64_t end, std::byte* into) {
  UK_TRY(place, find(tensor, part));
  const DType type = *place.entry.type;
  bytes_read_ += bytes_of(type, end - begin);
  return read_in_parts(begin, end, [&](std::size_t, std::int64_t from, std::int64_t to) {
    const auto bytes = static_cast<std::size_t>(bytes_of(type, to - from));
    return place.file->read(std::span(into + bytes_of(type, from - begin), bytes),
                            place.entry.begin + bytes_of(type, from));
  });
}

Result<void> ModelFolderSource::widen_range(const Place& place, std::int64_t begin,
                                            std::int64_t end, float* into, std::size_t slot) {
  const DType type = *place.entry.type;
  std::vector<std::byte>& chunk = chunks_[slot];
  const std::int64_t chunk_elements = chunk_bytes * 8 / bits_of(type);
  for (std::int64_t at = begin; at < end; at += chunk_elements) {
    const std::int64_t count = std::min(chunk_elements, end - at);
    const auto bytes = static_cast<std::size_t>(bytes_of(type, count));
    UK_TRY_VOID(
        place.file->read(std::span(chunk.data(), bytes), place.entry.begin + bytes_of(type, at)));
    widen(chunk.data(), type, count, into + (at - begin));
  }
  return {};
}

FreshSource::FreshSource(const spec::ModelSpec& model, std::uint64_t seed)
    : seed_(seed), deviation_(static_cast<float>(model.initializer_range)) {
  std::uint32_t stream = 0;
  for (const spec::Parameter& parameter : spec::parameters_of(model))
    rules_[parameter.name] = {.stream = stream++, .role = parameter.role};
}

Result<void> FreshSource::read(const plan::UnitTensor& tensor, plan::StatePart part,
                               std::int64_t begin, std::int64_t end, float* into) {
  UK_CHECK(part == plan::StatePart::weights, "a new model has weights only");
  const auto rule = rules_.find(tensor.name);
  UK_CHECK(rule != rules_.end(), "no parameter " + tensor.name);
  for (std::int64_t i = begin; i < end; ++i) {
    switch (rule->second.role) {
      case spec::ParameterRole::norm:
        into[i - begin] = 1.0f;
        break;
      case spec::ParameterRole::bias:
        into[i - begin] = 0.0f;
        break;
      default:
        into[i - begin] =
            deviation_ * random_normal(seed_, rule->second.stream, static_cast<std::uint64_t>(i));
    }
  }
  return {};
}

}  // namespace underkeel::train
