// underkeel doctor FILE...: what will happen with the files that people already have, and what to change.

#include "doctor/doctor.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/units.h"
#include "command.h"
#include "data/data_report.h"
#include "data/dataset_info.h"
#include "data/sampler.h"
#include "disk_need.h"
#include "doctor/disk.h"
#include "doctor/reader_words.h"
#include "doctor/sample_rules.h"
#include "run_arguments.h"
#include "run_length.h"
#include "spec/examine_run.h"
#include "spec/text_file.h"
#include "train/run_data.h"

namespace underkeel::apps {

namespace {

struct Words {
  std::vector<std::string> paths;
  std::optional<std::string> hardware;
  std::optional<std::string> memory;
  std::optional<std::int64_t> ranks;
  std::string engine = "underkeel";
  std::string language = "en";
  bool resumes = false;
  bool after_save = false;
  bool data = false;
  bool json = false;
};

// Data sets up to this size are read without being asked for: a second or two.
constexpr std::int64_t small_data_bytes = 8 * mebibyte;

/// A folder for tokens that goes with the answer: doctor leaves nothing behind.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "underkeel-doctor-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::int64_t bytes_below(const std::filesystem::path& folder) {
  std::int64_t size_bytes = 0;
  std::error_code status;
  for (const auto& entry : std::filesystem::directory_iterator(folder, status))
    if (entry.is_regular_file(status))
      size_bytes += static_cast<std::int64_t>(entry.file_size(status));
  return size_bytes;
}

void add_cut(const data::DatasetFigures& set, doctor::CutSamples& into) {
  const data::CutFigures& cut = set.cut;
  if (cut.longest_uncut > into.longest_uncut) {
    into.longest_uncut = cut.longest_uncut;
    into.longest_prompt = cut.longest_prompt;
    into.longest_prompt_kept = cut.longest_prompt_kept;
    into.longest_answer = cut.longest_answer;
    into.longest_answer_kept = cut.longest_answer_kept;
  }
  into.samples += set.records.usable;
  into.whole += cut.whole;
  into.untrained += cut.untrained - cut.unanswered;
  into.unanswered += cut.unanswered;
  into.trained_tokens += cut.trained;
  into.answers += cut.answers;
  into.answers_cut += cut.answers_cut;
  into.answers_lost += cut.answers_lost;
  into.prompts_cut += cut.prompts_cut;
  into.prompts_lost += cut.prompts_lost;
  const auto append = [](const std::vector<std::string>& places, std::vector<std::string>& lines) {
    lines.insert(lines.end(), places.begin(), places.end());
  };
  append(set.whole, into.whole_lines);
  append(set.untrained, into.untrained_lines);
  append(set.unanswered, into.unanswered_lines);
  for (const data::CutRecord& record : set.shortened) {
    doctor::CutSample& sample = into.first_cut.emplace_back(doctor::CutSample{record.place, {}});
    for (const data::AnswerLengths& answer : record.answers)
      sample.answers.emplace_back(answer.kept, answer.uncut);
  }
}

doctor::DataFigures figures_of(const data::Datasets& datasets, const spec::RunConfig& run,
                               int world_size) {
  doctor::DataFigures figures;
  figures.samples = datasets.training->count();
  if (run.data.packing)
    figures.packs = {.records = datasets.training_figures.documents,
                     .tokens = datasets.training_figures.tokens,
                     .samples = datasets.training_figures.packs,
                     .filled = datasets.training_figures.filled};
  const data::SamplerConfig order = train::sampler_config(run, figures.samples, world_size, 0);
  if (const auto sampler = data::Sampler::make(order)) {
    figures.micro_batches = sampler->micro_batches_per_epoch();
    figures.windows = sampler->updates_per_epoch();
    const std::int64_t rest = figures.micro_batches % order.accumulation_steps;
    figures.last_window = rest == 0 ? order.accumulation_steps : rest;
    figures.untrained_windows = data::untrained_windows(datasets, order);
    figures.filled_samples = sampler->filled_samples();
    figures.left_out_samples = sampler->left_out_samples();
  }
  figures.sizes = *run.data.samples;
  figures.holds_out = run.evaluation.validation_size > 0;
  for (const data::DatasetFigures& set : datasets.sets) {
    if (set.is_evaluation && !figures.evaluation) figures.evaluation.emplace();
    add_cut(set, set.is_evaluation ? *figures.evaluation : figures.training);
  }
  return figures;
}

spec::LargestBatches sizes_of(const doctor::DescribedSamples& described) {
  return {.longest = described.longest,
          .sample_count = described.count,
          .token_count = described.count * described.longest};
}

/// Puts samples of which only the longest is known beside those that were read.
void add(const spec::LargestBatches& described, spec::LargestBatches& sizes) {
  if (sizes.sample_count == 0) {
    sizes = described;
    return;
  }
  sizes.longest = std::max(sizes.longest, described.longest);
  sizes.tokens.clear();
  sizes.sample_count += described.sample_count;
  sizes.token_count += described.token_count;
}

/// Whether a default stands in place of a value by which data are read.
bool misreads_data(const spec::Problems& problems) {
  constexpr std::string_view keys[] = {
      "cutoff_len",  "dataset",      "dataset_dir",     "eval_dataset", "mask_history",
      "max_samples", "mix_strategy", "neat_packing",    "packing",      "interleave_probs",
      "stage",       "template",     "train_on_prompt", "val_size"};
  return std::any_of(problems.all().begin(), problems.all().end(), [&](const auto& problem) {
    const std::string_view key = std::string_view(problem.key).substr(0, problem.key.find(' '));
    return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
  });
}

/// Reads the run's data into the question, where there are any that can be read, and gives what the length of the run is
/// counted from. Where they were asked for a finding says what kept them from being read.
std::optional<DataFacts> read_data(bool is_asked_for, const doctor::Inputs& inputs,
                                   doctor::Question& question,
                                   std::vector<doctor::Finding>& findings) {
  const auto leave = [&](std::string why) -> std::optional<DataFacts> {
    if (is_asked_for)
      findings.push_back({.id = "data-not-read",
                          .severity = doctor::Severity::warning,
                          .file = inputs.run ? inputs.run->file : "",
                          .key = "--data",
                          .slots = {{"why", std::move(why)}}});
    return std::nullopt;
  };
  if (!inputs.run) return leave("@unread.run");
  if (!inputs.model) return leave("@unread.model");
  if (inputs.model_folder.empty()) return leave("@unread.tokenizer");
  const auto text = spec::read_text_file(inputs.run->path);
  if (!text) return leave("@unread.run");
  auto readout = spec::examine_run_text(*text, inputs.run->path, question.changes);
  if (!readout || misreads_data(readout->problems)) return leave("@unread.refused");
  if (readout->run.data.datasets.empty()) return leave("@unread.names");
  spec::RunConfig& run = readout->run;
  const auto evaluated = doctor::described_evaluation(inputs);
  if (const auto trained = doctor::described_training(inputs)) {
    question.data = doctor::DataFigures{.samples = trained->count};
    question.data->sizes.training = sizes_of(*trained);
    if (evaluated) question.data->sizes.evaluation = sizes_of(*evaluated);
    return DataFacts{.sample_count = trained->count,
                     .evaluation_sample_count = evaluated ? evaluated->count : 0};
  }
  // Files of a set that is described are not looked for, whether they are there or not.
  std::erase_if(run.data.evaluation_datasets,
                [&](const std::string& name) { return doctor::is_described(inputs, name); });
  std::error_code status;
  const auto has = [&](const std::filesystem::path& file) {
    return std::filesystem::exists(file, status);
  };
  const bool has_tokenizer =
      has(inputs.model_folder / "tokenizer.json") || has(inputs.model_folder / "tokenizer.model");
  io::FileSystem files;
  if (!has(run.data.folder / "dataset_info.json")) {
    // A folder that is not there may lie on another machine; one that is there would stop the run.
    if (!std::filesystem::is_directory(run.data.folder, status))
      return leave("@[unread.folder] " + run.data.folder.string());
    const auto entries = data::read_dataset_info(files, run.data.folder, run.data.datasets);
    if (!entries) question.data_error = entries.error();
    return std::nullopt;
  }
  if (!has_tokenizer) return leave("@unread.tokenizer");
  if (!is_asked_for && bytes_below(run.data.folder) > small_data_bytes) return std::nullopt;
  const ScratchFolder scratch;
  if (scratch.path().empty())
    return leave("@[unread.scratch] " + std::filesystem::temp_directory_path().string());
  if (const auto usable = train::check_token_folder(files, run.data.token_cache.string());
      !usable) {
    question.data_error = usable.error();
    return std::nullopt;
  }
  run.data.token_cache = scratch.path();
  const int world_size = static_cast<int>(inputs.ranks.count);
  const auto data = train::read_run_data(files, {.run = run,
                                                 .model = *inputs.model,
                                                 .model_folder = inputs.model_folder,
                                                 .thread_count = spec::this_machine().cores,
                                                 .world_size = world_size});
  if (!data) {
    question.data_error = data.error();
    return std::nullopt;
  }
  train::take_sizes(data->datasets, {.world_size = world_size}, run);
  question.data = figures_of(data->datasets, run, world_size);
  if (evaluated) add(sizes_of(*evaluated), question.data->sizes.evaluation);
  return DataFacts{.sample_count = data->datasets.training->count(),
                   .evaluation_sample_count = question.data->sizes.evaluation.sample_count};
}

Result<void> run(const Words& words, int& exit_code) {
  doctor::Question question{
      .ranks = words.ranks, .resumes = words.resumes, .after_save = words.after_save};
  for (const std::string& word : words.paths) {
    std::error_code status;
    const bool is_change =
        word.find('=') != std::string::npos && !std::filesystem::exists(word, status);
    if (is_change)
      question.changes.push_back(word);
    else
      question.paths.emplace_back(word);
  }
  if (words.hardware) {
    if (words.hardware->empty())
      return fail(ErrorCode::bad_config, "no file is given", "--hardware",
                  "name a hardware.yaml, or leave the flag out");
    question.hardware = *words.hardware;
  }
  if (words.memory) {
    UK_TRY(budgets, parse_given_budgets(*words.memory, "--memory"));
    for (const SpaceBudget& budget : budgets)
      (budget.space == "device" ? question.device_budget_bytes : question.host_budget_bytes) =
          budget.size_bytes;
  }
  const doctor::Language language =
      words.language == "zh" ? doctor::Language::chinese : doctor::Language::english;
  const doctor::Engine engine =
      words.engine == "deepspeed" ? doctor::Engine::deepspeed : doctor::Engine::underkeel;
  std::vector<doctor::Finding> findings;
  const doctor::Inputs inputs = doctor::gather(question, findings);
  const std::optional<DataFacts> data = read_data(words.data, inputs, question, findings);
  const doctor::Diagnosis diagnosis =
      doctor::diagnose(question, inputs, std::move(findings),
                       [&](const spec::ModelSpec& model, const spec::RunConfig& run) {
                         return disk_need(model, run, length_of(run, run.ranks, data));
                       });
  const std::string text = words.json ? doctor::to_json(diagnosis, language)
                                      : doctor::to_text(diagnosis, language, engine);
  std::fputs(text.c_str(), stdout);
  exit_code = doctor::exit_code_of(diagnosis, engine);
  return {};
}

/// What ends the program before there is an answer, in the language that was asked for.
Result<void> run_in_language(const Words& words, int& exit_code) {
  Result<void> result = run(words, exit_code);
  if (result || words.language != "zh") return result;
  Error error = result.error();
  error.what = doctor::in_chinese(error.what);
  error.fix = doctor::in_chinese(error.fix);
  return tl::unexpected(std::move(error));
}

}  // namespace

void add_doctor(CLI::App& app, Chosen& chosen) {
  auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Explain the files you have: what will happen, why, and what to change, with DeepSpeed and "
      "with this engine. Starts and changes nothing.");
  command
      ->add_option("FILE", words->paths,
                   "any mix of ds_config.json, run YAML, accelerate config, model folder or "
                   "config.json, data set, checkpoint folder, log, hardware.yaml, advice as text; "
                   "and KEY=VALUE changes of the run file")
      ->required();
  command->add_option("--hardware", words->hardware,
                      "hardware.yaml of a machine that is not this one");
  command->add_option("--memory", words->memory,
                      "budgets: SPACE=SIZE[,SPACE=SIZE]; device: of one rank, host: of one node");
  command->add_option("--ranks", words->ranks, "ranks that will run")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--engine", words->engine,
                   "the engine that would run the files, which the exit code follows")
      ->check(CLI::IsMember({"underkeel", "deepspeed"}))
      ->capture_default_str();
  command->add_option("--lang", words->language, "en or zh")
      ->check(CLI::IsMember({"en", "zh"}))
      ->capture_default_str();
  command->add_flag(
      "--resume", words->resumes,
      "judge a run that goes on from a checkpoint, which reads it besides what lives");
  command->add_flag("--after-save", words->after_save,
                    "rank the causes of memory running out on the first step after a save; a log "
                    "that shows it asks by itself");
  command->add_flag("--data", words->data,
                    "read and tokenise the run's data however large they are; up to 8 MiB are read "
                    "anyway");
  command->add_flag("--json", words->json, "print one JSON object");
  command->footer(
      "Ends with exit code 0 when the engine would run the files or nobody can tell, 2 when it "
      "would fail.");
  command->callback([words, &chosen] {
    chosen.run = [words, &chosen] { return run_in_language(*words, chosen.exit_code); };
  });
}

}  // namespace underkeel::apps
