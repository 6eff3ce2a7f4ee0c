// underkeel generate MODEL --prompt TEXT

#include "train/generate.h"

#include <charconv>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/units.h"
#include "command.h"
#include "spec/hardware_spec.h"

namespace underkeel::apps {

namespace {

Result<void> run(train::GenerateRequest request) {
  const spec::HardwareSpec machine = spec::this_machine();
  request.thread_count = machine.cores;
  request.check_memory = [&](std::int64_t arena_bytes) -> Result<void> {
    if (arena_bytes <= machine.host_ram_bytes) return {};
    return fail(ErrorCode::does_not_fit,
                fmt::format("the model and its activations need {}, this machine has {}",
                            format_bytes(arena_bytes), format_bytes(machine.host_ram_bytes)),
                request.model.string(), "use a machine with more memory, or a smaller model");
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
      ->add_option("MODEL", request->model, "Hugging Face folder, or hub name in the local cache")
      ->required();
  command->add_option("--prompt", request->prompt, "text to continue")->required();
  CLI::Option* chat = command->add_option("--template", request->template_name,
                                          "the chat template that the model was trained under: the "
                                          "prompt is a user's, the answer alone "
                                          "is printed, and ends where the template's do");
  command->add_option("--system", request->system, "system text, instead of the template's own")
      ->needs(chat);
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
  command->callback([request, &chosen] { chosen.run = [request] { return run(*request); }; });
}

}  // namespace underkeel::apps
