// underkeel doctor FILE...: what will happen with the files that people already have, and what to change.

#include "doctor/doctor.h"

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/units.h"
#include "command.h"

namespace underkeel::apps {

namespace {

struct Words {
  std::vector<std::string> paths;
  std::string hardware;
  std::string memory;
  std::optional<std::int64_t> ranks;
  std::string engine = "underkeel";
  std::string language = "en";
  bool resumes = false;
  bool json = false;
};

// "device=80GiB,host=100GiB".
Result<void> read_budgets(const std::string& text, doctor::Question& question) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t sign = part.find('=');
    const std::string space = part.substr(0, sign);
    if (sign == std::string::npos || (space != "device" && space != "host"))
      return fail(ErrorCode::bad_config, fmt::format("`{}` is no budget", part), "--memory",
                  "write SPACE=SIZE[,SPACE=SIZE], such as device=80GiB,host=100GiB");
    UK_TRY(size_bytes, parse_bytes(part.substr(sign + 1), "--memory"));
    (space == "device" ? question.device_budget_bytes : question.host_budget_bytes) = size_bytes;
    begin = end + 1;
  }
  return {};
}

Result<void> run(const Words& words, int& exit_code) {
  doctor::Question question{.ranks = words.ranks, .resumes = words.resumes};
  for (const std::string& word : words.paths) {
    std::error_code status;
    const bool is_change =
        word.find('=') != std::string::npos && !std::filesystem::exists(word, status);
    if (is_change)
      question.changes.push_back(word);
    else
      question.paths.emplace_back(word);
  }
  if (!words.hardware.empty()) question.paths.emplace_back(words.hardware);
  UK_TRY_VOID(read_budgets(words.memory, question));
  const doctor::Language language =
      words.language == "zh" ? doctor::Language::chinese : doctor::Language::english;
  const doctor::Engine engine =
      words.engine == "deepspeed" ? doctor::Engine::deepspeed : doctor::Engine::underkeel;
  const doctor::Diagnosis diagnosis = doctor::diagnose(question);
  const std::string text =
      words.json ? doctor::to_json(diagnosis, language) : doctor::to_text(diagnosis, language);
  std::fputs(text.c_str(), stdout);
  exit_code = doctor::exit_code_of(diagnosis, engine);
  return {};
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
  command->add_flag("--json", words->json, "print one JSON object");
  command->footer(
      "Ends with exit code 0 when the engine would run the files or nobody can tell, 2 when it "
      "would fail.");
  command->callback([words, &chosen] {
    chosen.run = [words, &chosen] { return run(*words, chosen.exit_code); };
  });
}

}  // namespace underkeel::apps
