#pragma once
// Popular advice on DeepSpeed's memory, recognised in texts of people and in configs that follow it, and answered with
// the figures of the model and machine at hand.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/doctor.h"
#include "doctor/memory_rules.h"

namespace underkeel::doctor {

enum class Truth { is_true, is_half, is_false };

struct AdviceRule {
  std::string_view id;  // of the wording, whose slots are figures
  Truth truth = Truth::is_false;
  /// What a sentence has to hold: groups cut at `&`, each of alternatives cut at `|`; `!` before a group forbids it. Lower
  /// case; "z3" and "z2" stand for all spellings of stage 3 and 2; `~` at an end of an alternative: no letter, digit or `_` beyond it.
  std::string_view words = {};
  /// A key of a config that follows the advice, and the number or truth value that it must have ("": any).
  std::string_view key = {};
  std::string_view value = {};
  /// What decides for this model and machine: the verdict of figure `NAME_truth`, or whether `NAME_fits`.
  std::string_view decided_by = {};
};

/// On keys of a config, calls, and what stages and offload do.
std::span<const AdviceRule> config_advice();
/// On the run around them: allocator, activations, batch, lengths, optimizer, method, the disk's pipeline.
std::span<const AdviceRule> run_advice();

/// Llama-2-7B, for which advice is answered where no model is given.
spec::ModelSpec default_model();

/// What the answers may name: "weights_16" -> "13.5 GB". Without a model, those of Llama-2-7B on one 80 GiB card; of
/// buckets and overlap as `config` has them, where there is one, else as DeepSpeed's defaults are.
std::map<std::string, std::string> advice_figures(const std::optional<MemoryCase>& memory,
                                                  const spec::Value* config);

/// Adds what answers of run_advice() name, of the run at hand: its activations, state, gathered parameters and what its
/// allocator holds back; where a log tells of its GPU, what the log says. Without a run, of full fine-tuning at stage 3.
/// `memory` may be of a model alone.
void add_run_figures(const std::optional<MemoryCase>& memory, const Inputs& inputs,
                     std::map<std::string, std::string>& figures);

/// Lower case, one kind of blank, "z2" and "z3" for every spelling of the stages.
std::string normalised(std::string_view text);
bool matches(std::string_view normalised_sentence, std::string_view words);

void look_at_advice(const Question& question, const Inputs& inputs, Diagnosis& diagnosis);

}  // namespace underkeel::doctor
