// Advice on the run around a config: as somebody says it, and its figures on two models and two machines, each from its
// formula.

#include <set>

#include <gtest/gtest.h>

#include "doctor/advice_rules.h"
#include "doctor/deepspeed_memory.h"
#include "doctor/sayings.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

constexpr Saying run_sayings[] = {
    {"advice-allocator-setting", "Export PYTORCH_CUDA_ALLOC_CONF.",
     "without a value changes nothing"},
    {"advice-recompute-share", "Gradient checkpointing halves memory.", "50% were said"},
    {"advice-group-by-length", "Turn on group_by_length.", "the longest samples still meet"},
    {"advice-expandable-segments", "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
     "fragmentation alone"},
    {"advice-max-split-size", "Try max_split_size_mb:128.", "without a size to guess"},
    {"advice-empty-cache-steps", "Call torch.cuda.empty_cache() every 10 steps.", "pause"},
    {"advice-lower-live", "Lower stage3_max_live_parameters and stage3_prefetch_bucket_size.",
     "at stage 3 on 1 rank 0 B as it is"},
    {"advice-recompute", "Enable gradient checkpointing.", "on already"},
    {"advice-batch-of-one", "Use per_device_train_batch_size 1 with gradient accumulation.",
     "false"},
    {"advice-lower-cutoff", "Reduce cutoff_len to 1024.", "at 1024"},
    {"advice-flash-attention", "Use flash attention (fa2).", "805 MB"},
    {"advice-lora-instead", "Use LoRA instead of full fine-tuning.", "all weights are trained"},
    {"advice-lora-fits", "LoRA fits.", "of each GPU with the activations"},
    {"advice-stage-3-offload", "Use ZeRO-3 + offload.", "true"},
    {"advice-offload-pipeline", "Set pipeline_read to true.", "buffer_count 8"},
    {"advice-fast-init", "fast_init: true speeds it up.", "takes no memory off a step"},
};

const Saying& saying_of(std::string_view id) {
  return *std::find_if(std::begin(run_sayings), std::end(run_sayings),
                       [&](const Saying& each) { return each.id == id; });
}

TEST(AdviceOnTheRun, IsRecognisedAndAnsweredRowByRow) {
  std::set<std::string_view> answered;
  for (const Saying& saying : run_sayings) {
    Files files;
    files.write("answer.txt", saying.says);

    const std::string answer = answer_to(saying, files.diagnose());

    EXPECT_NE(answer.find(saying.answer), std::string::npos) << saying.says << "\n" << answer;
    answered.insert(saying.id);
  }
  for (const AdviceRule& rule : run_advice())
    EXPECT_TRUE(answered.count(rule.id)) << rule.id << " has no saying";
}

TEST(AdviceOnTheRun, IsNotFoundWhereSomethingElseIsSaid) {
  const std::pair<const char*, const char*> others[] = {
      {"advice-stage-3-offload", "Use pure ZeRO-3 without offload."},
      {"advice-fast-init", "from_pretrained has _fast_init."},
      {"advice-lower-live", "Raise stage3_max_live_parameters; reduce_bucket_size is fine."}};
  for (const auto& [id, text] : others) {
    Files files;
    files.write("answer.txt", text);

    EXPECT_TRUE(found(files.diagnose(), id).empty()) << text;
  }
}

struct Place {
  Shape shape;
  int gpus;
  double gpu_gib;
};

constexpr Shape llama = {32000, 4096, 32, 11008, 32, 32};
constexpr Shape qwen = {151936, 896, 24, 4864, 14, 2, 64, true, true};
constexpr Place places[] = {{llama, 1, 80}, {llama, 8, 40}, {qwen, 1, 80}, {qwen, 8, 40}};
constexpr double tokens = 4096, sequences = 4;

/// One saying beside a run of full fine-tuning with micro-batch 4 and 4,096 tokens at stage 3.
Files files_with(const Place& place, std::string_view says, std::string_view zero,
                 std::string_view more = "") {
  Files files;
  files.write("answer.txt", says);
  files.write("model.json", model_json(place.shape));
  files.write("train.yaml",
              fmt::format("stage: sft\nfinetuning_type: full\nbf16: true\ncutoff_len: {:.0f}\n"
                          "per_device_train_batch_size: {:.0f}\n{}",
                          tokens, sequences, more));
  files.write("ds_config.json",
              fmt::format(R"({{"train_micro_batch_size_per_gpu": "auto", "zero_optimization":
    {{"stage": 3{}}}}})",
                          zero));
  files.write("hardware.json",
              fmt::format(R"({{"gpus_per_node": {}, "gpu_mem_gib": {}, "host_ram_gib": 900}})",
                          place.gpus, place.gpu_gib));
  return files;
}

std::string answer_at(const Place& place, std::string_view id, std::string_view zero = "",
                      std::string_view more = "") {
  const Saying& saying = saying_of(id);
  return answer_to(saying, files_with(place, saying.says, zero, more).diagnose());
}

void expect_figure(const std::string& answer, double bytes, std::string_view what) {
  EXPECT_NE(answer.find(amount(bytes)), std::string::npos) << what << ": " << amount(bytes) << "\n"
                                                           << answer;
}

/// Of a micro-batch, at least, as transformers keeps it in 16 bit (bench/results/2026-12-activations.md): a checkpoint a layer
/// and one layer's values, or the values of all layers; the last norm and the loss.
double least_held(const spec::ModelSpec& model, double rows, bool recomputes) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double width = number(model.width), layers = number(model.layers);
  const double heads = number(2 * model.query_heads + 2 * model.key_heads);
  const double attention = 2 * heads * number(model.head_width) + 4 * number(model.query_heads);
  const double layer = 16 * width + attention + 8 * number(model.feed_forward);
  const double loss = 8 * width + 12 * number(model.vocabulary);
  const double recomputed = layer + 2.5 * number(model.feed_forward);
  return rows *
         (recomputes ? 2 * layers * width + std::max(recomputed, loss) : layers * layer + loss);
}

TEST(AdviceOnTheRun, CountsActivationsOfTheModelAndTheBatchAtHand) {
  for (const Place& place : places) {
    const spec::ModelSpec model = model_of(place.shape);
    const double now = least_held(model, sequences * tokens, true);

    const std::string recompute = answer_at(place, "advice-recompute");
    expect_figure(recompute, least_held(model, sequences * tokens, false), "without recomputation");
    expect_figure(recompute, now, "with it");
    const std::string one = answer_at(place, "advice-batch-of-one");
    expect_figure(one, now, "micro-batch 4");
    expect_figure(one, least_held(model, tokens, true), "micro-batch 1");
    EXPECT_NE(one.find("gradient_accumulation_steps 4"), std::string::npos) << one;
    const std::string shorter = answer_at(place, "advice-lower-cutoff");
    expect_figure(shorter, least_held(model, sequences * 1024, true), "the length that is said");
    EXPECT_NE(shorter.find("at 1024"), std::string::npos) << shorter;
    const double scores = 6 * sequences * static_cast<double>(model.query_heads) * tokens * tokens;
    expect_figure(answer_at(place, "advice-flash-attention"), scores, "scores of one layer");
    expect_figure(
        answer_at(place, "advice-flash-attention", "", "disable_gradient_checkpointing: true\n"),
        scores * static_cast<double>(model.layers), "scores of all layers");
  }
}

TEST(AdviceOnTheRun, CountsStateOfTheModelOnTheMachine) {
  for (const Place& place : places) {
    const spec::ModelSpec model = model_of(place.shape);
    const double psi = static_cast<double>(spec::parameter_count(model)), ranks = place.gpus;

    RunFacts lora;
    const ModelSizes sizes = sizes_of(model, lora);
    DeepspeedSettings stage_3;
    stage_3.stage = 3;
    const auto state = [&](const ModelSizes& of, double base, double trained) {
      const DeepspeedRun run{.sizes = of, .settings = stage_3, .ranks = ranks};
      const double persistent = ranks > 1 ? 2 * persistent_elements(of, stage_3) : 0;
      const double alone = ranks > 1 ? 2 * of.largest_tensor : 0;
      return 2 * base / ranks + 16 * trained / ranks + 1e9 +
             std::max(persistent + alone, 6 * largest_sub_group(run));
    };
    const std::string method = answer_at(place, "advice-lora-instead");
    expect_figure(method, state(sizes_of(model), 0, psi), "full");
    expect_figure(method, state(sizes, psi, sizes.trainable), "LoRA");
    EXPECT_TRUE(method.starts_with("true")) << method;
  }
}

TEST(AdviceOnTheRun, CountsWhatTheAllocatorHoldsBack) {
  for (const Place& place : places) {
    const Saying& saying = saying_of("advice-expandable-segments");
    const Diagnosis diagnosis = files_with(place, saying.says, "").diagnose();

    const Holding& step = *diagnosis.deepspeed.at(Phase::step, Space::device);
    double held = 0, context = 0;
    for (const Term& term : step.terms)
      if (term.name != "allocator") (term.name == "context" ? context : held) += term.high_bytes;
    const std::string answer = answer_to(saying, diagnosis);
    expect_figure(answer, 0.06 * held, "6% of what is held");
    expect_figure(answer, held + context, "allocated");
    for (const char* id : {"advice-max-split-size", "advice-empty-cache-steps"})
      expect_figure(answer_at(place, id), 0.06 * held, id);
    const double card = place.gpu_gib * 1024 * 1024 * 1024;
    const bool is_short = diagnosis.deepspeed.verdict == Verdict::fails;
    EXPECT_EQ(answer.starts_with("false"), is_short) << card << "\n" << answer;
  }
}

TEST(AdviceOnTheRun, TakesFragmentsFromTheLogWhereThereIsOne) {
  Files files = files_with(places[0], saying_of("advice-expandable-segments").says, "");
  files.write("train.log",
              "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
              "total capacity of 39.39 GiB of which 1.00 GiB is free. Of the allocated memory "
              "30.00 GiB is allocated by PyTorch, and 6.00 GiB is reserved by PyTorch but "
              "unallocated.");

  const std::string answer = answer_to(saying_of("advice-expandable-segments"), files.diagnose());

  EXPECT_TRUE(answer.starts_with("true")) << answer;
  const double gib = 1024.0 * 1024 * 1024;
  expect_figure(answer, 6 * gib, "reserved and not allocated");
  expect_figure(answer, 30 * gib, "allocated");
  EXPECT_NE(answer.find("42.3 GB"), std::string::npos) << answer;
}

TEST(AdviceOnTheRun, CountsGatheredParametersWithAndWithoutTheirBounds) {
  for (const Place& place : places) {
    const spec::ModelSpec model = model_of(place.shape);
    const ModelSizes sizes = sizes_of(model);
    DeepspeedSettings least;
    least.stage = 3;
    least.overlap_comm = true;
    least.max_live = least.max_reuse_distance = least.prefetch_bucket = 0;
    const auto gathered = [&](const DeepspeedSettings& settings) {
      return term_bytes(deepspeed_memory({.sizes = sizes,
                                          .settings = settings,
                                          .ranks = static_cast<double>(place.gpus),
                                          .has_process = false}),
                        Phase::step, Space::device, "live");
    };

    const std::string answer = answer_at(place, "advice-lower-live");
    expect_figure(answer, gathered(least), "at least");
    EXPECT_EQ(answer.starts_with("false"), place.gpus == 1) << answer;
    EXPECT_NE(answer_at(place, "advice-lower-live", R"(, "stage3_max_live_parameters": 0,
      "stage3_max_reuse_distance": 0, "stage3_prefetch_bucket_size": 0)")
                  .find("false"),
              std::string::npos);
  }
}

TEST(AdviceOnTheRun, AnswersStage3WithOffloadAsItsRowOfTheTableDoes) {
  int rows = 0;
  for (const Place& place : places) {
    const Saying& saying = saying_of("advice-stage-3-offload");
    const Diagnosis diagnosis = files_with(place, saying.says, "").diagnose();
    const ModelSizes sizes = sizes_of(model_of(place.shape));
    DeepspeedSettings offloaded;
    offloaded.stage = 3;
    offloaded.overlap_comm = true;
    offloaded.optimizer = offloaded.parameters = Offload::cpu;
    const double ranks = place.gpus;
    const Forecast forecast = deepspeed_memory(
        {.sizes = sizes, .settings = offloaded, .ranks = ranks, .ranks_on_node = ranks});

    const std::string answer = answer_to(saying, diagnosis);

    expect_figure(answer, forecast.at(Phase::step, Space::host)->low(), "host memory");
    EXPECT_NE(answer.find("host memory (available: 966.4 GB"), std::string::npos) << answer;
    for (const Alternative& row : diagnosis.alternatives) {
      if (row.engine != Engine::deepspeed || row.stage != 3 || !row.recomputes ||
          row.offload_optimizer != "cpu" || row.offload_param != "cpu" || row.micro_batch != 4)
        continue;
      expect_figure(answer, row.device_bytes, "at most");
      ++rows;
    }
  }
  EXPECT_GT(rows, 0);
}

TEST(AdviceOnTheRun, CountsBuffersOfTheDisksPipeline) {
  const std::string nvme =
      R"(, "sub_group_size": 1e8, "offload_optimizer": {"device": "nvme", "nvme_path": "/n",
      "pipeline_read": true, "fast_init": true})";
  for (const Place& place : places) {
    const ModelSizes sizes = sizes_of(model_of(place.shape));
    DeepspeedSettings settings;
    settings.stage = 3;
    settings.sub_group = 1e8;
    const double buffer =
        4 * largest_sub_group(
                {.sizes = sizes, .settings = settings, .ranks = static_cast<double>(place.gpus)});

    const Diagnosis diagnosis =
        files_with(place, "Be brave and use flash attention.", nvme).diagnose();

    const std::string pipeline = says(diagnosis, "advice-offload-pipeline");
    expect_figure(pipeline, buffer, "a buffer");
    expect_figure(pipeline, 8 * buffer, "two sub-groups in flight");
    expect_figure(pipeline, 12 * buffer, "three sub-groups in flight");
    EXPECT_TRUE(says(diagnosis, "advice-fast-init").starts_with("false")) << messages(diagnosis);
  }
  const std::string on_host = answer_at(places[0], "advice-offload-pipeline",
                                        R"(, "offload_optimizer": {"device": "cpu"})");
  EXPECT_TRUE(on_host.starts_with("false")) << on_host;
}

}  // namespace
}  // namespace underkeel::doctor
