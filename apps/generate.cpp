// underkeel generate MODEL --prompt TEXT

#include "train/generate.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "base/units.h"
#include "command.h"
#include "run_arguments.h"
#include "spec/hardware_spec.h"
#include "train/known_template.h"
#include "train/output_model.h"

namespace underkeel::apps {

namespace {

struct Allowed {
  std::string what;
  std::int64_t needed_bytes = 0;
  std::int64_t allowed_bytes = 0;
};

/// What would fit: fewer new tokens, if the cache of those is what is too much; else no cache.
std::string change_that_fits(const Allowed& allowed, const train::GenerationMemory& memory) {
  const std::int64_t over = allowed.needed_bytes - allowed.allowed_bytes;
  if (memory.cache_bytes > 0) {
    const std::int64_t of_position =
        memory.cache_bytes / std::max<std::int64_t>(1, memory.positions - 1);
    const std::int64_t left =
        memory.new_tokens - ceil_div(over, std::max<std::int64_t>(1, of_position)) - 1;
    if (left >= 1) return fmt::format("--max-new-tokens {}", left);
    if (over < memory.cache_bytes) return "--no-cache, which is much slower";
  }
  return "allow more memory, or use a smaller model";
}

constexpr std::string_view no_template = "none";

/// Without --template the prompt is laid out as the run that saved the folder did it.
Result<void> choose_template(train::GenerateRequest& request) {
  if (request.template_name.empty()) {
    io::FileSystem files;
    UK_TRY(folder, train::folder_to_generate_from(request.model));
    UK_TRY(trained, train::template_of_run(files, folder));
    if (trained) {
      request.template_name = trained->name;
      if (!request.system) request.system = trained->system;
      request.enable_thinking = trained->enable_thinking;
      log(LogLevel::info,
          fmt::format("template {}, under which the model was trained; --template none continues "
                      "the prompt as a text",
                      trained->name));
    } else {
      UK_TRY(jinja, train::own_chat_template(files, folder));
      const std::string likely = train::likely_template(jinja);
      if (!jinja.empty())
        log(LogLevel::info,
            fmt::format("the prompt is continued as a text; the tokenizer has a chat template{}",
                        likely.empty() ? ": --template makes the prompt a user's"
                                       : fmt::format(" like {}'s: --template {} makes the prompt a "
                                                     "user's",
                                                     likely, likely)));
    }
  } else if (request.template_name == no_template) {
    request.template_name.clear();
  }
  if (request.template_name.empty() && request.system)
    return fail(ErrorCode::bad_config, "a system text without a template", "--system",
                "name the template that the model was trained under: --template NAME");
  return {};
}

/// Where a newer checkpoint than the model of an output folder stands in it, says so.
Result<void> tell_which_model(const std::filesystem::path& model) {
  io::FileSystem files;
  UK_TRY(folder, train::folder_to_generate_from(model));
  UK_TRY(found, train::model_of_output(files, folder));
  if (!found.note.empty()) log(LogLevel::warning, found.note);
  return {};
}

Result<void> run(train::GenerateRequest request, const std::string& memory_text) {
  UK_TRY_VOID(choose_template(request));
  const spec::HardwareSpec machine = spec::this_machine();
  UK_TRY(budgets, parse_budgets(memory_text));
  request.thread_count = machine.cores;
  request.check_memory = [&](const train::GenerationMemory& memory) -> Result<void> {
    const std::string cache =
        memory.cache_bytes > 0
            ? fmt::format(", of which {} keep the keys and values of {} positions",
                          format_bytes(memory.cache_bytes), memory.positions - 1)
            : std::string();
    std::vector<Allowed> all = {{"this machine has", memory.arena_bytes, machine.host_ram_bytes}};
    for (const SpaceBudget& budget : budgets)
      all.push_back({fmt::format("--memory allows {}", budget.space),
                     budget.space == "device" ? memory.device_bytes : memory.arena_bytes,
                     budget.size_bytes});
    for (const Allowed& allowed : all)
      if (allowed.needed_bytes > allowed.allowed_bytes)
        return fail(ErrorCode::does_not_fit,
                    fmt::format("the model and its activations need {}{}; {} {}",
                                format_bytes(allowed.needed_bytes), cache, allowed.what,
                                format_bytes(allowed.allowed_bytes)),
                    request.model.string(), change_that_fits(allowed, memory));
    log(LogLevel::info, fmt::format("memory: {}{}", format_bytes(memory.arena_bytes), cache));
    return tell_which_model(request.model);
  };
  bool begun = false;
  const auto print = [&](std::string_view text) {
    if (!begun && request.template_name.empty()) std::fputs(request.prompt.c_str(), stdout);
    begun = true;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  const auto report = train::generate(request, print);
  if (report) print("");
  if (begun) std::fputs("\n", stdout);
  if (!report) return tl::unexpected(report.error());
  if (report->tokens.size() > 1)
    log(LogLevel::info,
        fmt::format("{} prompt tokens in {:.3f} s, then {:.1f} tokens/s", report->prompt_tokens,
                    report->prompt_s,
                    static_cast<double>(report->tokens.size() - 1) / report->tokens_s));
  return {};
}

// CLI::Range lets "nan" through.
CLI::Validator is_a_number() {
  return CLI::Validator(
      [](std::string& text) {
        return text.find_first_of("nN") == std::string::npos ? std::string()
                                                             : text + " is no number";
      },
      "");
}

}  // namespace

void add_generate(CLI::App& app, Chosen& chosen) {
  auto request = std::make_shared<train::GenerateRequest>();
  CLI::App* command = app.add_subcommand(
      "generate", "Continue a text with a model folder, a checkpoint or an output folder.");
  command
      ->add_option(
          "MODEL", request->model,
          "Hugging Face folder, checkpoint, output folder (the model that it holds itself, with "
          "load_best_model_at_end the best one; of a run that has not ended its newest "
          "checkpoint), or hub name in the local cache")
      ->required();
  command->add_option("--prompt", request->prompt, "text to continue")->required();
  command->add_option("--template", request->template_name,
                      "the chat template that the model was trained under: the prompt is a user's, "
                      "the answer alone "
                      "is printed, and ends where the template's do (that of the run of stage sft "
                      "that saved MODEL); "
                      "none: continue the prompt as a text");
  command->add_option("--system", request->system,
                      "with a template: system text, instead of the run's or the template's own");
  command
      ->add_option("--max-new-tokens", request->max_new_tokens,
                   "most tokens to add (64, or what the model's positions leave)")
      ->check(CLI::Range(1, 1 << 30));
  command
      ->add_option("--temperature", request->sampling.temperature,
                   "above 0: draw tokens; 0 takes the likeliest (0)")
      ->check(CLI::Range(0.0, 1000.0))
      ->check(is_a_number());
  command
      ->add_option("--top-k", request->sampling.top_k,
                   "draw among this many likeliest tokens; 0: all (0)")
      ->check(CLI::Range(0, 1 << 30));
  command
      ->add_option("--top-p", request->sampling.top_p,
                   "draw among the likeliest tokens that hold this share (1)")
      ->check(CLI::Range(0.0, 1.0))
      ->check(is_a_number());
  command->add_option("--seed", request->sampling.seed, "of the draws (42)")
      ->check(CLI::Validator(
          [](std::string& text) {
            std::uint64_t value = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), value);
            return error == std::errc() && end == text.data() + text.size()
                       ? std::string()
                       : text + " is no whole number from 0 to 18446744073709551615";
          },
          ""));
  command->add_flag("!--no-cache", request->keeps_cache,
                    "compute all keys and values again for each token: less memory, much slower");
  auto memory = std::make_shared<std::string>();
  command
      ->add_option("--memory", *memory,
                   "budgets: SPACE=SIZE[,SPACE=SIZE]; device: the model's arena, host: all of it")
      ->check(refuse_empty);
  command->callback([request, memory, &chosen] {
    chosen.run = [request, memory] { return run(*request, *memory); };
  });
}

}  // namespace underkeel::apps
