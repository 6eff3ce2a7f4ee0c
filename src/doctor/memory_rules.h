#pragma once
// DeepSpeed's memory for the files at hand: the verdict, what decides it, and what would change it.

#include <optional>
#include <vector>

#include "doctor/deepspeed_memory.h"
#include "doctor/doctor.h"
#include "doctor/uncounted.h"
#include "io/checkpoint_space.h"

namespace underkeel::doctor {

/// What one rank and one node may take; nothing where nobody said.
struct Limits {
  std::optional<double> device;
  std::optional<double> host;
  std::optional<double> page_locked;
  std::optional<double> nvme;
};
Limits limits_of(const Question& question, const Inputs& inputs);

/// Of an element of a quantised base. NF4 has half a byte a value; scales of 64 values each: f32, or 8 bits and an f32
/// scale for 256 of those.
double quantised_bytes(const RunFacts& run);

/// Model, run and settings of a question about memory; nothing without a model and a config or run file.
struct MemoryCase {
  const spec::ModelSpec* model = nullptr;
  RunFacts run;
  ModelSizes sizes;
  DeepspeedSettings settings;
  Limits limits;
  double ranks = 1;
  double ranks_on_node = 1;
  double tokens = 2048;             // of the longest training sample, padded as LLaMA-Factory does
  double evaluation_tokens = 2048;  // of the longest that is evaluated, likewise
  double evaluation_samples = 0;    // 0: not known
  const DataFigures* data = nullptr;  // of the question, where they were read
  bool is_cutoff =
      false;  // `tokens` is only what no sample exceeds: the data could be read, and were not
  bool is_alone =
      false;  // a config without a run file: how long samples are and what is saved stands nowhere
  bool resumes = false;
  std::optional<Bound>
      uncounted;  // a setting is beyond the forecast (uncounted.h); what its figures still are
  bool under_trainer = true;   // a run file or an accelerate config is there
  bool is_for_trainer = true;  // or the config has "auto": zero.Init comes by itself at stage 3
};
/// Of the frozen part of a model, as the run holds it: quantised where it is.
double frozen_bytes(const MemoryCase& memory);
/// Reads the run, its sizes and its settings from the files; what is asked of them stays as it is in `memory`.
void take_settings(const Inputs& inputs, MemoryCase& memory);
std::optional<MemoryCase> memory_case(const Question& question, const Inputs& inputs);

/// What is asked about the activations of a micro-batch of the run.
ActivationQuestion activations_of(const MemoryCase& memory);
/// The forecast with its limits and verdict. `phases` that only a resume has count when the case resumes.
Forecast forecast_of(const MemoryCase& memory);
/// Of what does not grow with the batch: without activations and the process around it. The moment of a phase that
/// holds the most of it may be another than with activations.
Forecast state_forecast_of(const MemoryCase& memory);
Verdict verdict_of(const Forecast& forecast, const Limits& limits, bool resumes);
/// What is held at least, whatever is not counted: what of the forecast is a bound from below.
Forecast least_of(const Forecast& forecast, const MemoryCase& memory);

/// Whether a run that goes on from a checkpoint of this one fits the host of a node; none where its limit is not known.
std::optional<Verdict> resume_verdict(const MemoryCase& memory, const Forecast& forecast);

/// What a rank needs on its GPU in the worst phase, at least and at most.
Range on_device(const Forecast& forecast);
/// The phase that needs most of a space, at the least; `otherwise` where none is known.
Phase worst_phase(const Forecast& forecast, Space space, Phase otherwise);

/// The space and phase that come nearest to their limit or go furthest beyond it, by what is held at least or at most.
struct Tightest {
  Phase phase = Phase::step;
  Space space = Space::device;
  const Holding* holding = nullptr;
};
std::optional<Tightest> tightest_of(const Forecast& forecast, bool resumes, bool at_least);

/// A space that is short for sure: the first phase of a run that fails there, and the one that would need the most.
struct Shortage {
  Space space = Space::device;
  Phase first = Phase::load;
  Phase most = Phase::load;
};
/// One for each space whose limit is below what is held at least, in the order of the spaces.
std::vector<Shortage> shortages_of(const Forecast& least, bool resumes);

/// "@[term.activations] 70.9 GB, @[term.weights] 29.5 GB, @[term.others] 1.2 GB": the largest first, at most `count` by
/// themselves and the rest together.
std::string largest_terms(const Holding& holding, std::size_t count);
/// "12.1 GB", or "12.1 GB - 14.0 GB" where it is a range.
std::string span_of(Range range);

/// Adds findings, fills in Diagnosis::deepspeed and its alternatives.
void look_at_memory(const Question& question, const Inputs& inputs, Diagnosis& diagnosis);

/// The table of stage x offload x recomputation x micro-batch for DeepSpeed.
std::vector<Alternative> deepspeed_alternatives(const MemoryCase& memory, const Inputs& inputs);

// Parts of look_at_memory(), by subject.
void tell_verdict(const MemoryCase& memory, Diagnosis& diagnosis, const Inputs& inputs);
void tell_phases(const MemoryCase& memory, Diagnosis& diagnosis, const Inputs& inputs);
void tell_particulars(const MemoryCase& memory, Diagnosis& diagnosis, const Inputs& inputs);
/// What a DeepSpeed run writes of its disk.
io::SpaceNeed disk_need_of(const MemoryCase& memory, const Inputs& inputs);
/// A change of what is saved, which may take less of the disk.
struct SavingChange {
  bool gathers_weights = false;  // stage3_gather_16bit_weights_on_model_save
  Saving saving = Saving::as_it_is;
};
/// Those that the run may make, the smallest first.
std::vector<SavingChange> saving_changes(const MemoryCase& memory);
MemoryCase with_saving(MemoryCase memory, const SavingChange& change);
/// Of one checkpoint and of those that stand at once, against the free disk where it is known.
void tell_disk(const MemoryCase& memory, Diagnosis& diagnosis, const Inputs& inputs);
void tell_exports(const Question& question, const Inputs& inputs, Diagnosis& diagnosis);

}  // namespace underkeel::doctor
