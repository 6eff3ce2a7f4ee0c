#pragma once
// Weights from a Hugging Face folder, or made from a seed.

#include <map>
#include <string>
#include <vector>

#include "device/thread_pool.h"
#include "exec/state_io.h"
#include "io/model_files.h"
#include "spec/model_spec.h"

namespace underkeel::train {

/// Reads ranges of tensors from safetensors files with pread: as they are stored, or as f32 through a fixed buffer for each
/// thread.
class ModelFolderSource : public exec::StateSource {
 public:
  ModelFolderSource(io::FileSystem& files, io::ModelFiles model, int thread_count = 1);
  Result<void> read(const plan::UnitTensor& tensor, plan::StatePart part, std::int64_t begin,
                    std::int64_t end, float* into) override;
  DType held_type(const plan::UnitTensor& tensor, plan::StatePart part) const override;
  Result<void> read_held(const plan::UnitTensor& tensor, plan::StatePart part, std::int64_t begin,
                         std::int64_t end, std::byte* into) override;
  /// Bytes read so far.
  std::int64_t bytes_read() const { return bytes_read_; }

 private:
  struct Place {
    const io::File* file = nullptr;
    io::TensorEntry entry;
  };
  /// Where a tensor lies, once it is what the model needs.
  Result<Place> find(const plan::UnitTensor& tensor, plan::StatePart part);
  /// Elements [begin, end) in as many parts as there are threads: read(slot, begin of the part, its end).
  template <class Read>
  Result<void> read_in_parts(std::int64_t begin, std::int64_t end, Read&& read);
  /// Elements [begin, end) through chunk `slot`.
  Result<void> widen_range(const Place& place, std::int64_t begin, std::int64_t end, float* into,
                           std::size_t slot);

  io::FileSystem& files_;
  io::ModelFiles model_;
  std::map<std::string, io::File> open_;  // by path
  device::ThreadPool pool_;
  std::vector<std::vector<std::byte>> chunks_;  // by slot
  std::vector<Result<void>> results_;
  std::int64_t bytes_read_ = 0;
};

/// Weights as a new model has them: matrices normal with the model's initializer_range, norms one, biases
/// zero. A function of (seed, tensor, element), so every rank makes its own part.
class FreshSource : public exec::StateSource {
 public:
  FreshSource(const spec::ModelSpec& model, std::uint64_t seed);
  Result<void> read(const plan::UnitTensor& tensor, plan::StatePart part, std::int64_t begin,
                    std::int64_t end, float* into) override;

 private:
  struct Rule {
    std::uint32_t stream = 0;
    spec::ParameterRole role{};
  };
  std::map<std::string, Rule> rules_;
  std::uint64_t seed_;
  float deviation_;
};

/// count elements of `type` at `from` as f32.
void widen(const std::byte* from, DType type, std::int64_t count, float* into);

}  // namespace underkeel::train
