#include "support/tensor_files.h"

#include <cstring>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "support/text_files.h"

namespace underkeel::test {
namespace {

struct TypeName {
  const char* text;
  DType type;
};
constexpr TypeName type_names[] = {{"F32", DType::f32}, {"BF16", DType::bf16}, {"F16", DType::f16},
                                   {"F64", DType::f64}, {"I64", DType::i64},   {"I32", DType::i32},
                                   {"U8", DType::u8}};

DType type_of(const std::string& text) {
  for (const auto& name : type_names)
    if (text == name.text) return name.type;
  throw std::runtime_error("tensor type " + text + " is not one that tests use");
}

std::string text_of(DType type) {
  for (const auto& name : type_names)
    if (type == name.type) return name.text;
  throw std::runtime_error("this type has no safetensors name");
}

template <class Storage>
Storage element(const StoredTensor& tensor, std::int64_t index) {
  Storage value;
  std::memcpy(&value, tensor.bytes.data() + index * static_cast<std::int64_t>(sizeof value),
              sizeof value);
  return value;
}

template <class Storage>
void append(StoredTensor& tensor, Storage value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  tensor.bytes.insert(tensor.bytes.end(), begin, begin + sizeof value);
}

}  // namespace

std::int64_t StoredTensor::element_count() const {
  std::int64_t count = 1;
  for (const auto extent : shape) count *= extent;
  return count;
}

std::vector<float> StoredTensor::as_f32() const {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(element_count()));
  for (std::int64_t i = 0; i < element_count(); ++i) {
    if (type == DType::f32)
      values.push_back(element<float>(*this, i));
    else if (type == DType::bf16)
      values.push_back(to_f32(element<BFloat16>(*this, i)));
    else if (type == DType::f16)
      values.push_back(to_f32(element<Float16>(*this, i)));
    else
      throw std::runtime_error("not a tensor of floating-point numbers");
  }
  return values;
}

std::vector<std::int32_t> StoredTensor::as_i32() const {
  if (type != DType::i32) throw std::runtime_error("not a tensor of i32");
  std::vector<std::int32_t> values;
  for (std::int64_t i = 0; i < element_count(); ++i)
    values.push_back(element<std::int32_t>(*this, i));
  return values;
}

StoredTensor stored(DType type, std::vector<std::int64_t> shape, const std::vector<float>& values) {
  StoredTensor tensor{.type = type, .shape = std::move(shape), .bytes = {}};
  tensor.bytes.reserve(values.size() * static_cast<std::size_t>(bits_of(type) / 8));
  for (const float value : values) {
    if (type == DType::f32)
      append(tensor, value);
    else if (type == DType::bf16)
      append(tensor, to_bf16(value));
    else if (type == DType::f16)
      append(tensor, to_f16(value));
    else
      throw std::runtime_error("not a type of floating-point numbers");
  }
  return tensor;
}

StoredTensor stored(std::vector<std::int64_t> shape, const std::vector<std::int32_t>& values) {
  StoredTensor tensor{.type = DType::i32, .shape = std::move(shape), .bytes = {}};
  for (const auto value : values) append(tensor, value);
  return tensor;
}

StoredTensors read_tensors(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, text.data(), sizeof header_bytes);
  const auto header = nlohmann::json::parse(text.substr(sizeof header_bytes, header_bytes));
  const auto* data = reinterpret_cast<const std::byte*>(text.data()) + sizeof header_bytes +
                     static_cast<std::ptrdiff_t>(header_bytes);
  StoredTensors tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const std::ptrdiff_t begin = entry["data_offsets"][0];
    const std::ptrdiff_t end = entry["data_offsets"][1];
    tensors[name] = {.type = type_of(entry["dtype"]),
                     .shape = entry["shape"],
                     .bytes = {data + begin, data + end}};
  }
  return tensors;
}

void write_tensors(const std::filesystem::path& file, const StoredTensors& tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    header[name]["dtype"] = text_of(tensor.type);
    header[name]["shape"] = tensor.shape;
    header[name]["data_offsets"] = {offset, offset + tensor.bytes.size()};
    offset += tensor.bytes.size();
  }
  std::string json = header.dump();
  json.resize((json.size() + 7) / 8 * 8, ' ');
  const std::uint64_t header_bytes = json.size();
  std::string text(reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes);
  text += json;
  for (const auto& [name, tensor] : tensors)
    text.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  write_text(file, text);
}

}  // namespace underkeel::test
