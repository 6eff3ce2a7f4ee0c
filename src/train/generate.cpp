#include "train/generate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "comm/communicator.h"
#include "data/chat_encoder.h"
#include "data/template_tokens.h"
#include "data/tokenizer.h"
#include "exec/executor.h"
#include "io/checkpoint.h"
#include "io/model_files.h"
#include "kernels/kernels.h"
#include "planner/planner.h"
#include "spec/model_spec.h"
#include "train/checkpoint_source.h"
#include "train/expected_tensors.h"
#include "train/model_source.h"
#include "train/output_model.h"

namespace underkeel::train {

namespace {

using Tokens = std::vector<std::int32_t>;

constexpr std::int64_t default_new_tokens = 64;

// Token ids of `eos_token_id`: one number or a list.
Tokens ids_of(const nlohmann::json& value) {
  Tokens ids;
  if (value.is_number_integer()) ids.push_back(value.get<std::int32_t>());
  if (value.is_array())
    for (const nlohmann::json& element : value)
      if (element.is_number_integer()) ids.push_back(element.get<std::int32_t>());
  return ids;
}

Result<Tokens> end_tokens(io::FileSystem& files, const std::string& folder,
                          const spec::ModelSpec& model, const data::Tokenizer& tokenizer) {
  const std::string path = io::join_path(folder, "generation_config.json");
  if (files.exists(path)) {
    UK_TRY(text, files.read_text(path, mebibyte));
    const nlohmann::json config = nlohmann::json::parse(text, nullptr, false);
    if (!config.is_object())
      return fail(ErrorCode::bad_file, "the file is no JSON object", path,
                  "repair it, or remove it: config.json is used then");
    if (config.contains("eos_token_id")) return ids_of(config["eos_token_id"]);
  }
  if (!model.end_token_ids.empty()) {
    Tokens ids;
    for (const std::int64_t id : model.end_token_ids) ids.push_back(static_cast<std::int32_t>(id));
    return ids;
  }
  if (tokenizer.special_tokens().end) return Tokens{tokenizer.special_tokens().end->id};
  return Tokens{};
}

/// Weights of a model folder; of a checkpoint that exports none, its master copies.
Result<std::unique_ptr<exec::StateSource>> open_weights(io::FileSystem& files,
                                                        const std::string& folder,
                                                        const spec::ModelSpec& model) {
  const auto has = [&](std::string_view name) { return files.exists(io::join_path(folder, name)); };
  if (has(io::manifest_file) && !has(io::single_weights_file) && !has(io::weight_index_file)) {
    UK_TRY(manifest, io::read_manifest(files, folder));
    return std::make_unique<CheckpointSource>(files,
                                              io::FoundCheckpoint{folder, std::move(manifest)});
  }
  UK_TRY(notes, check_weights(files, folder, model));
  for (const std::string& note : notes) log(LogLevel::warning, fmt::format("{}: {}", folder, note));
  UK_TRY(weights, io::open_model_files(files, folder));
  return std::make_unique<ModelFolderSource>(files, std::move(weights));
}

struct Asked {
  data::Tokenizer tokenizer;  // with the template's changes
  Tokens prompt;
  Tokens ends;
};

Result<Asked> ask_under_template(const GenerateRequest& request, const data::Tokenizer& plain) {
  UK_TRY(style, data::find_template(request.template_name));
  UK_TRY(tokenizer, plain.with(data::template_changes(plain, *style)));
  data::ChatStyle chat = data::ChatStyle::of(*style);
  if (request.system) chat.system = *request.system;
  chat.enable_thinking = request.enable_thinking;
  const data::Conversation talk{.messages = {{data::Role::user, request.prompt}}};
  UK_TRY(prompt, data::ChatEncoder(tokenizer, chat).encode_prompt(talk));
  Tokens ends = data::stop_tokens(tokenizer, *style);
  return Asked{std::move(tokenizer), std::move(prompt), std::move(ends)};
}

Result<std::int64_t> rows_of(const GenerateRequest& request, const spec::ModelSpec& model,
                             std::int64_t prompt_tokens) {
  const std::int64_t most = model.max_position_embeddings;
  const std::int64_t left = most - prompt_tokens;
  const std::int64_t wanted = request.max_new_tokens.value_or(
      std::min(default_new_tokens, std::max<std::int64_t>(left, 1)));
  if (wanted > left)
    return fail(ErrorCode::bad_config,
                fmt::format("{} prompt tokens and {} new ones are {}, the model has {} positions",
                            prompt_tokens, wanted, prompt_tokens + wanted, most),
                "--max-new-tokens",
                left > 0 ? fmt::format("--max-new-tokens {}", left) : "shorten the prompt");
  return prompt_tokens + wanted;
}

struct Lengths {
  std::int64_t prompt = 0;
  std::int64_t all = 0;  // with the new tokens
};

plan::Plan plan_for(const GenerateRequest& request, const spec::ModelSpec& model,
                    const Lengths& lengths) {
  planner::Request wanted{.model = model};
  wanted.weight_type = model.stored_type;
  wanted.train = false;
  wanted.save = false;
  wanted.max_generation_rows = request.keeps_cache ? lengths.prompt : lengths.all;
  // The last token is never read back.
  wanted.cache_rows = request.keeps_cache ? std::max(lengths.prompt, lengths.all - 1) : 0;
  return planner::make_plan(wanted);
}

GenerationMemory memory_of(const plan::Plan& plan, const Lengths& lengths) {
  GenerationMemory memory{.device_bytes = plan.layout.size_bytes[index(plan::MemorySpace::device)],
                          .positions = lengths.all,
                          .new_tokens = lengths.all - lengths.prompt};
  for (const std::int64_t size_bytes : plan.layout.size_bytes) memory.arena_bytes += size_bytes;
  for (const plan::Buffer& buffer : plan.schedule.buffers)
    if (buffer.name.starts_with("cache.")) memory.cache_bytes += buffer.size_bytes;
  return memory;
}

}  // namespace

Result<std::string> folder_to_generate_from(const std::filesystem::path& model) {
  io::FileSystem files;
  UK_TRY(folder, spec::find_model_folder(model.string()));
  if (holds_a_model(files, folder.string())) return folder.string();
  UK_TRY(newest, io::newest_complete(files, folder.string()));
  return newest ? newest->folder : folder.string();
}

Result<GenerateReport> generate(const GenerateRequest& request,
                                const std::function<void(std::string_view)>& sink) {
  io::FileSystem files;
  UK_TRY(folder, folder_to_generate_from(request.model));
  UK_TRY(model, spec::read_model_config(folder));
  UK_TRY(tokenizer, data::Tokenizer::load(folder));
  UK_TRY(ends, end_tokens(files, folder, model, tokenizer));
  Tokens tokens;
  if (request.template_name.empty()) {
    UK_TRY(plain, tokenizer.encode(request.prompt, {.add_special_tokens = true}));
    tokens = std::move(plain);
  } else {
    UK_TRY(asked, ask_under_template(request, tokenizer));
    tokenizer = std::move(asked.tokenizer);
    tokens = std::move(asked.prompt);
    ends.insert(ends.end(), asked.ends.begin(), asked.ends.end());
  }
  if (tokens.empty())
    return fail(ErrorCode::bad_config, "the prompt has no tokens", "--prompt",
                "give at least one word");
  for (const std::int32_t token : tokens)
    if (token >= model.vocabulary)
      return fail(ErrorCode::bad_file,
                  fmt::format("token {} of the prompt is beyond the vocabulary of {}", token,
                              model.vocabulary),
                  folder, "use the tokenizer.json that belongs to this config.json");
  GenerateReport report{.prompt_tokens = static_cast<std::int64_t>(tokens.size())};
  UK_TRY(max_rows, rows_of(request, model, report.prompt_tokens));

  const plan::Plan plan = plan_for(request, model, {report.prompt_tokens, max_rows});
  report.memory = memory_of(plan, {report.prompt_tokens, max_rows});
  if (request.check_memory) UK_TRY_VOID(request.check_memory(report.memory));

  UK_TRY(source, open_weights(files, folder, model));
  const auto group = comm::make_single();
  UK_TRY(executor, exec::Executor::make(plan, kernels::cpu_kernels(), *group,
                                        {.thread_count = request.thread_count}));
  exec::Inputs loading;
  loading.source = source.get();
  UK_TRY_VOID(executor->run(plan::SegmentKind::load, loading));

  tokens.reserve(static_cast<std::size_t>(max_rows));
  Tokens positions(static_cast<std::size_t>(max_rows));
  std::iota(positions.begin(), positions.end(), 0);
  data::StreamDecoder text(tokenizer);
  const auto tell = [&](const std::string& part) {
    if (!part.empty()) sink(part);
  };
  double began_s = steady_now_s();
  while (static_cast<std::int64_t>(tokens.size()) < max_rows) {
    const bool goes_on = request.keeps_cache && !report.tokens.empty();
    const std::size_t held = goes_on ? tokens.size() - 1 : 0;
    const std::array<std::int32_t, 2> starts{0, static_cast<std::int32_t>(tokens.size())};
    exec::Inputs inputs;
    inputs.tokens = std::span(tokens).subspan(held);
    inputs.positions = std::span(positions).subspan(held, tokens.size() - held);
    inputs.sequence_starts = starts;
    UK_TRY(outputs,
           executor->run(goes_on ? plan::SegmentKind::generate_next : plan::SegmentKind::generate,
                         inputs));
    // Finite f32 values cannot overflow a sum in double.
    if (!std::isfinite(std::accumulate(outputs.logits.begin(), outputs.logits.end(), 0.0)))
      return fail(
          ErrorCode::not_finite,
          fmt::format("the logits of position {} are not all finite numbers", tokens.size()),
          folder, "`underkeel inspect --verify` names weights that are no numbers");
    const std::int32_t next =
        sample_token(outputs.logits, request.sampling, std::ssize(report.tokens));
    const double ended_s = steady_now_s();
    (report.tokens.empty() ? report.prompt_s : report.tokens_s) += ended_s - began_s;
    began_s = ended_s;
    report.ended = std::find(ends.begin(), ends.end(), next) != ends.end();
    if (report.ended) break;
    report.tokens.push_back(next);
    tokens.push_back(next);
    tell(text.push(next));
  }
  tell(text.finish());
  UK_TRY_VOID(executor->drain());
  return report;
}

}  // namespace underkeel::train
