#pragma once
// Popular advice on DeepSpeed's memory, recognised in texts of people and in configs that follow it, and answered with
// the figures of the model and machine at hand.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/advice_claims.h"
#include "doctor/advice_sheet.h"
#include "doctor/doctor.h"
#include "doctor/memory_rules.h"

namespace underkeel::doctor {

enum class Truth { is_true, is_half, is_false, is_unknown };

struct AdviceRule {
  std::string_view id;  // of the wording, whose slots are figures
  Truth truth = Truth::is_false;
  /// What a sentence has to hold, as AdviceWords reads it; the first group names what the advice is about.
  std::string_view words = {};
  /// A key of a config that follows the advice, and the number or truth value that it must have ("": any).
  std::string_view key = {};
  std::string_view value = {};
  /// What decides for this model and machine: the verdict of figure `NAME_truth`, or whether `NAME_fits`.
  std::string_view decided_by = {};
  /// It recommends a setting. A sentence that speaks against one is answered with its figures; of a statement the
  /// contrary is true where it is false.
  bool is_action = false;
  /// Of the number in a sentence: "to 512".
  Quantity number = Quantity::none;
  /// Not told of a sentence that holds this one.
  std::string_view unless = {};
  /// It says that a run fits: "放不下" denies it, where of others it is why they are recommended.
  bool claims_fit = false;
  /// Of a run as it makes one: what a number of gigabytes in the sentence is held against (advice_fit_figures.cpp).
  std::string_view amount_of = {};
  /// It says that the first of "z3|z2" has more of something than the second.
  Scale scale = Scale::none;
  std::string_view sides = {};
  /// What a run file that trains all weights, or adapters, has told in its place.
  std::string_view on_full_run = {}, on_lora_run = {};
};

/// On keys of a config, calls, and what stages and offload do.
std::span<const AdviceRule> config_advice();
/// On the run around them: allocator, activations, batch, lengths, the disk's pipeline.
std::span<const AdviceRule> run_advice();
/// On another method, precision, optimizer, stage or machine.
std::span<const AdviceRule> method_advice();
/// All of them.
std::vector<AdviceRule> all_advice();

/// Llama-2-7B, for which advice is answered where no model is given.
spec::ModelSpec default_model();

/// What the answers may name: "weights_16" -> "13.5 GB". Without a model, those of Llama-2-7B on one 80 GiB card; of
/// buckets and overlap as `config` has them, where there is one, else as DeepSpeed's defaults are.
std::map<std::string, std::string> advice_figures(const std::optional<MemoryCase>& memory,
                                                  const spec::Value* config);

/// Adds what answers of run_advice() and method_advice() name, for the number that a sentence says or a usual one; of the run at hand: its activations, state, gathered parameters and what its
/// allocator holds back; where a log tells of its GPU, what the log says. Without a run, of full fine-tuning at stage 3.
/// `memory` may be of a model alone.
void add_run_figures(const std::optional<MemoryCase>& memory, const Inputs& inputs,
                     const AskedNumber& asked, std::map<std::string, std::string>& figures);

void look_at_advice(const Question& question, const Inputs& inputs, Diagnosis& diagnosis);

}  // namespace underkeel::doctor
