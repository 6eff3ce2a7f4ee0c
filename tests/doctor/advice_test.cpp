// Every row of popular advice: as somebody says it, or as a config follows it; then the figures on two models and two
// machines.

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "doctor/advice_rules.h"
#include "doctor/advice_words.h"
#include "doctor/sayings.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

constexpr Saying sayings[] = {
    {"advice-gather-needed-for-checkpoint",
     "stage3_gather_16bit_weights_on_model_save must be true or the checkpoint is incomplete.",
     "false"},
    {"advice-gather-cures-first-step",
     "Turn stage3_gather_16bit_weights_on_model_save off to cure the OOM at the first step.",
     "not used before a save"},
    {"advice-persistence-threshold",
     "stage3_param_persistence_threshold: auto is right, 1e9 is bad, 1e5 releases more.",
     "1e9 keeps 13.5 GB"},
    {"advice-explicit-bucket", "Write reduce_bucket_size 5e8, explicit is safer than auto.",
     "1.0 GB instead of 33.6 MB"},
    {"advice-buckets-too-large", "The default reduce_bucket_size is too large for a 7B model.",
     "1.0 GB"},
    {"advice-smaller-bucket-no-overlap",
     "Make reduce_bucket_size smaller and switch overlap_comm off.", "2.0 GB"},
    {"advice-prefetch-is-default", "Set stage3_prefetch_bucket_size to 5e7.", "100 MB"},
    {"advice-live-is-default", "Use stage3_max_live_parameters 1e9.", "2.3 GB"},
    {"advice-sub-group-is-default", "sub_group_size 1e9 works for me.", "default"},
    {"advice-overlap-is-default", "overlap_comm: true is recommended.", "second bucket, 1.0 GB"},
    {"advice-reduce-scatter-is-default", "Set reduce_scatter explicitly.", "1.0 GB"},
    {"advice-no-such-key-opt-offload", "You need zero_force_opt_offload.", "never existed"},
    {"advice-no-such-key-cpu-offload", "Add zero_force_ds_cpu_offload: true.", "never existed"},
    {"advice-force-cpu-optimizer",
     "zero_force_ds_cpu_optimizer false avoids the hidden GPU optimizer.", "no effect on memory"},
    {"advice-no-such-key-leaf-modules", "Mark the decoder layer with zero_3_leaf_modules.",
     "never existed"},
    {"advice-no-such-key-offload-optimizer", "Use zero_offload_optimizer.", "94.3 GB"},
    {"advice-use-pin-memory-dead", "cpu_offload_use_pin_memory: true helps.", "no effect"},
    {"advice-cpu-offload-pin", "Set pin_memory of cpu_offload.", "offload_param.pin_memory"},
    {"advice-pin-memory-stage-2", "Set offload_optimizer pin_memory in stage 2.", "67.6 GB"},
    {"advice-aio", "Speed the save up with aio enabled and thread_count 8.", "torch.save"},
    {"advice-save-async", "Call save_checkpoint(..., save_async=True).", "TypeError"},
    {"advice-activation-checkpointing", "Add an activation_checkpointing block.", "does nothing"},
    {"advice-comments", "You can use // comments in the JSON.", "syntax error"},
    {"advice-trainer-py", "In src/llamafactory/train/trainer.py save_model runs an eval.",
     "does not exist"},
    {"advice-two-saves", "trainer.save_model and engine.save_checkpoint are the same.", "13.5 GB"},
    {"advice-zero-init", "Build the model under zero.Init() so that it is sharded.", "13.5 GB"},
    {"advice-device-map", "Use device_map=auto with ZeRO-3.", "ValueError"},
    {"advice-low-cpu-mem", "Pass low_cpu_mem_usage=True.", "ZeRO-3"},
    {"advice-zero-init-argument", "Use the zero_init of from_pretrained.", "no argument"},
    {"advice-tie-weights", "Set tie_weights=False.", "no key of DeepSpeed"},
    {"advice-empty-cache-diagnosis", "Print torch.cuda.memory_summary().", "diagnosis"},
    {"advice-broadcast-forward", "In the forward pass the owning GPU broadcasts the parameter.",
     "all-gather"},
    {"advice-gradients-to-owner", "Gradients are aggregated to the owner GPU.", "reduce-scatter"},
    {"advice-checkpoint-collects", "save_checkpoint collects full parameters on rank 0.",
     "gathers nothing"},
    {"advice-model-save-collects", "save_model collects them in rank 0's CPU memory.", "262 MB"},
    {"advice-checkpointing-room-for-save", "Gradient checkpointing leaves room for the save.",
     "moot"},
    {"advice-nvidia-smi", "Watch nvidia-smi to find the moment.", "reserved"},
    {"advice-optimizer-collected-at-save",
     "The optimizer state is collected at the save and redistributed.", "80.9 GB"},
    {"advice-parameter-cache", "The parameter cache is invalidated by the save.", "532"},
    {"advice-outside-zero-init", "Tensors built outside zero.Init are whole on each GPU.",
     "until initialize"},
    {"advice-save-at-boundary", "Save at the accumulation boundary.", "moot"},
    {"advice-metrics-no-grad", "A metrics forward without no_grad wastes memory.", "in general"},
    {"advice-clear-cache-after-save", "Clear the cache after each save.", "fragmentation"},
    {"advice-stage-2-no-gathers", "Going to ZeRO-2 avoids the gathers at save.", "13.5 GB"},
    {"advice-weights-on-gpu", "from_pretrained puts the weights on the GPU by default.",
     "to the CPU"},
    {"advice-meta-device", "Init on the meta device or the weights take 30 GB.", "27.0 GB of host"},
    {"advice-fp32-weights", "The fp32 weights of 7B take 14 GB.", "27.0 GB in fp32"},
    {"advice-pin-off", "Turn pin_memory off, it drags PCIe down.", "67.6 GB"},
    {"advice-pin-on-saves", "pin_memory true saves fragmentation.", "not device memory"},
    {"advice-swap", "Offload needs a large swap space.", "53.9 GB"},
    {"advice-drop-optimizer-offload",
     "Offload fails because of CPU bandwidth, disable the optimizer offload.", "does not fit"},
    {"advice-gradients-stay", "The gradients stay on the GPU though both are offloaded.",
     "bucket by bucket"},
    {"advice-stage-3-uses-more", "ZeRO-3 uses much more memory than ZeRO-2, it uses more.",
     "13.5 GB"},
    {"advice-stage-3-one-gpu", "ZeRO-3 on one GPU is pointless.", "only stage with offload_param"},
    {"advice-stage-3-fits", "Pure ZeRO-3 without offload fits.", "false"},
    {"advice-stage-2-fits", "ZeRO-2 with no offload and batch 1 fits.", "false"},
    {"advice-stage-2-offload-takes-60", "ZeRO-2 with offload takes 60-70 GB.", "15.8 GB"},
    {"advice-stage-2-offload-enough", "ZeRO-2 with offload is enough.", "true"},
    {"advice-checkpointing-beats-offload", "Activation checkpointing saves more than offload.",
     "94.3 GB"},
    {"advice-checkpointing-before-deepspeed",
     "gradient_checkpointing must be enabled before DeepSpeed.", "order"},
    {"advice-mask-replicated", "The attention mask is replicated to each card.", "not replicated"},
    {"advice-old-transformers-buffers", "Older transformers pre-allocate full gradient buffers.",
     "no trace"},
    {"advice-model-half", "Remove model.half(), let DeepSpeed cast.", "13.5 GB"},
    {"advice-qlora", "QLoRA 4-bit for 7B takes less than 10 GB.", "fits"},
    {"advice-load-bf16", "Load with torch_dtype=bfloat16.", "13.5 GB instead of 27.0 GB"},
    {"advice-model-to-cuda", "Calling model.to('cuda') before initialize doubles memory.",
     "27.0 GB"},
    {"advice-load-on-cpu-first", "Load it on CPU first and then call deepspeed.initialize.",
     "stages 0 to 2"},
    {"advice-count-temporaries", "Count the evaluation and checkpoint temporaries.",
     "almost nothing"},
    {"advice-padding", "Padding was the culprit at batch 1.", "plausible"},
    {"advice-stage-2-faster", "ZeRO-2 with offload is faster than ZeRO-3 with offload.",
     "generally the faster"},
    {"advice-version-mismatch", "A version mismatch of transformers and DeepSpeed.",
     "without versions"},
    {"advice-first-step", "The first step is where it explodes.", "53.9 GB in host memory"},
};

TEST(Advice, IsRecognisedAndAnsweredRowByRow) {
  std::set<std::string> answered;
  for (const Saying& saying : sayings) {
    Files files;
    files.write("answer.txt", saying.says);

    const std::string answer = answer_to(saying, files.diagnose());

    EXPECT_NE(answer.find(saying.answer), std::string::npos) << saying.says << "\n" << answer;
    answered.insert(saying.id);
  }
  for (const AdviceRule& rule : config_advice())
    EXPECT_TRUE(answered.count(std::string(rule.id))) << rule.id << " has no saying";
}

TEST(Advice, IsFoundInConfigsThatFollowIt) {
  Files files;
  files.write("ds_config.json", R"({"train_batch_size": 1, "zero_force_opt_offload": true,
    "zero_force_ds_cpu_offload": true, "zero_force_ds_cpu_optimizer": false,
    "zero_3_leaf_modules": [], "zero_offload_optimizer": {}, "tie_weights": false,
    "aio": {"enabled": true, "thread_count": 4}, "activation_checkpointing": {},
    "zero_optimization": {"stage": 3, "reduce_bucket_size": 5e8, "overlap_comm": true,
      "stage3_prefetch_bucket_size": 5e7, "stage3_param_persistence_threshold": 1e5,
      "stage3_max_live_parameters": 1e9, "sub_group_size": 1e9, "reduce_scatter": true,
      "cpu_offload_use_pin_memory": true,
      "offload_optimizer": {"device": "cpu", "pin_memory": true}}})");

  const Diagnosis diagnosis = files.diagnose();

  std::set<std::string_view> expected;
  for (const AdviceRule& rule : config_advice())
    if (!rule.key.empty()) expected.insert(rule.id);
  for (const std::string_view id : expected) EXPECT_FALSE(found(diagnosis, id).empty()) << id;
}

TEST(Advice, OnCheckpointingIsNotTakenForOneOfASave) {
  Files files;
  files.write("answer.txt", "Use gradient checkpointing, it saves memory.");

  EXPECT_TRUE(found(files.diagnose(), "advice-checkpointing-room-for-save").empty());
}

TEST(Advice, ThatNamesAnErrorWithoutFiguresIsNoLogOfIt) {
  Files files;
  files.write("answer.txt", "If you see CUDA out of memory, use a smaller model.");

  EXPECT_TRUE(found(files.diagnose(), "log-out-of-memory").empty());
}

TEST(Advice, OnActivationsIsAnsweredForTheBatchOfTheRun) {
  Files files;
  files.write("model.json", model_json(llama_7b));
  files.write("train.yaml",
              "stage: sft\nfinetuning_type: full\nbf16: true\ncutoff_len: 512\n"
              "per_device_train_batch_size: 4\n");
  files.write("ds_config.json",
              R"({"activation_checkpointing": {}, "zero_optimization": {"stage": 3}})");

  const std::string text = says(files.diagnose(), "advice-activation-checkpointing");

  EXPECT_NE(text.find("for 4 x 512 tokens here"), std::string::npos) << text;
}

TEST(Advice, SaysNothingOfAConfigWithoutIt) {
  Files files;
  files.write("ds_config.json", R"({"train_batch_size": 1, "zero_optimization": {"stage": 3,
    "reduce_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}})");
  for (const Finding& finding : files.diagnose().findings)
    EXPECT_NE(finding.certainty, Certainty::folklore) << finding.id;
}

/// What recomputation spares of a sequence, at least, as transformers keeps it in 16 bit
/// (bench/results/2026-12-activations.md): the values of all layers against a checkpoint of each and the more of one layer's
/// values with its gradients and the loss.
double spared_by_recomputation(const spec::ModelSpec& model, double length) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double width = number(model.width), feed_forward = number(model.feed_forward);
  const double heads = number(2 * model.query_heads + 2 * model.key_heads);
  const double layer = 16 * width + 2 * heads * number(model.head_width) +
                       4 * number(model.query_heads) + 8 * feed_forward;
  const double loss = 8 * width + 12 * number(model.vocabulary);
  const double kept = number(model.layers) * layer + loss;
  return length *
         (kept - 2 * number(model.layers) * width - std::max(layer + 2.5 * feed_forward, loss));
}

/// Slots of a wording that are no figures of the model and machine.
bool is_no_figure(std::string_view slot) {
  constexpr std::string_view names[] = {"truth", "model", "ranks"};
  return std::find(std::begin(names), std::end(names), slot) != std::end(names);
}

bool has_figure(std::string_view text) {
  for (std::size_t open = text.find('{'); open != std::string_view::npos;
       open = text.find('{', open + 1))
    if (!is_no_figure(text.substr(open + 1, text.find('}', open) - open - 1))) return true;
  return false;
}

struct Figures {
  Shape shape;
  int gpus;
  double gpu_gib;
};

TEST(Advice, IsAnsweredWithTheFiguresOfTheModelAndTheMachine) {
  const Figures situations[] = {{{32000, 4096, 32, 11008, 32, 32}, 1, 80},
                                {{32000, 4096, 32, 11008, 32, 32}, 8, 40},
                                {{151936, 896, 24, 4864, 14, 2, 64, true, true}, 1, 80},
                                {{151936, 896, 24, 4864, 14, 2, 64, true, true}, 8, 40}};
  for (const Figures& situation : situations) {
    const spec::ModelSpec model = model_of(situation.shape);
    const double psi = static_cast<double>(spec::parameter_count(model));
    const double ranks = situation.gpus;
    const double share = psi / ranks;
    const double largest = static_cast<double>(model.vocabulary * model.width);
    const double width = static_cast<double>(model.width);
    // Weights gathered besides the shards: norms (and biases); only on several ranks.
    DeepspeedSettings defaults;
    const double persistent = ranks > 1 ? 2 * persistent_elements(sizes_of(model), defaults) : 0;
    const double live_low = ranks > 1 ? 2 * largest : 0;
    const ModelSizes sizes = sizes_of(model);
    DeepspeedSettings stage_2;
    stage_2.stage = 2;
    // Gradients of parameters on a border between ranks are held whole.
    const double owned = owned_elements({.sizes = sizes, .settings = stage_2, .ranks = ranks});
    const double stage2 = std::max(2 * psi + 12 * share + 2 * owned + 1e9,
                                   2 * psi + 12 * share + 2 * owned + 6 * share);
    DeepspeedSettings stage_3;
    stage_3.stage = 3;
    const double sub_group =
        largest_sub_group({.sizes = sizes, .settings = stage_3, .ranks = ranks});
    const double stage3 = 16 * share + 1e9 + persistent + std::max(live_low, 6 * sub_group);
    // At most: staging, a gradient in double for its norm, bucket, and its copy on several ranks.
    const double stage2_offload = 2 * psi + 1e9 + 2 * largest + 8 * largest + (ranks > 1 ? 1e9 : 0);
    // Of the host's 18 bytes a parameter the moments are not page-locked.
    const double pinned = 10 * psi + 2 * largest * ranks;
    stage_3.overlap_comm = true;
    const Forecast state = deepspeed_memory({.sizes = sizes,
                                             .settings = stage_3,
                                             .ranks = ranks,
                                             .ranks_on_node = ranks,
                                             .has_process = false});
    DeepspeedSettings with_auto;
    with_auto.param_persistence = 10 * width;
    const double parameters_only =
        16 * share + 1e9 + persistent + std::max(live_low, 6 * sub_group) - 2 * share;
    const double quantised = sizes_of(model, {.quantization_bits = 4}).quantised;
    const double recompute_saves = spared_by_recomputation(model, 2048);
    const std::pair<const char*, double> expected[] = {
        {"advice-no-such-key-opt-offload", 14 * share},
        {"advice-no-such-key-cpu-offload", 14 * share},
        {"advice-no-such-key-offload-optimizer", 14 * share},
        {"advice-smaller-bucket-no-overlap", ranks > 1 ? 3e9 : 2e9},
        {"advice-smaller-bucket-no-overlap", ranks > 1 ? 2e9 : 2e9},
        {"advice-overlap-is-default", 1e9},
        {"advice-reduce-scatter-is-default", ranks > 1 ? 1e9 : 0},
        {"advice-activation-checkpointing", recompute_saves},
        {"advice-metrics-no-grad", recompute_saves},
        {"advice-padding", recompute_saves},
        {"advice-checkpointing-beats-offload", recompute_saves},
        {"advice-drop-optimizer-offload", parameters_only},
        {"advice-qlora", quantised * (0.5 + 0.127 / 8) + 2 * (psi - quantised)},
        {"advice-stage-3-uses-more",
         16 * share + 2e9 + term_bytes(state, Phase::step, Space::device, "live")},
        {"advice-stage-2-offload-takes-60", 18 * psi + 2 * largest * ranks},
        {"advice-stage-2-offload-enough", stage2_offload},
        {"advice-first-step", 8 * psi},
        {"advice-two-saves", 2 * psi},
        {"advice-load-bf16", 4 * psi},
        {"advice-meta-device", 4 * psi},
        {"advice-fp32-weights", 4 * psi},
        {"advice-model-to-cuda", 4 * psi},
        {"advice-explicit-bucket", 2 * width * width},
        {"advice-persistence-threshold", 2 * persistent_elements(sizes_of(model), defaults)},
        {"advice-first-step", 8 * share},
        {"advice-optimizer-collected-at-save", 12 * share},
        {"advice-stage-2-fits", stage2},
        {"advice-stage-3-fits", stage3},
        {"advice-stage-2-offload-takes-60", stage2_offload},
        {"advice-stage-2-offload-enough", 18 * psi + 2 * largest * ranks},
        {"advice-swap", 8 * psi},
        {"advice-model-save-collects", 2 * largest},
        {"advice-live-is-default", term_bytes(state, Phase::step, Space::device, "live")},
        {"advice-gather-needed-for-checkpoint", 2 * psi},
        {"advice-gather-cures-first-step", 2 * largest},
        {"advice-buckets-too-large", 1e9},
        {"advice-prefetch-is-default", 1e8},
        {"advice-pin-memory-stage-2", pinned},
        {"advice-pin-off", pinned},
        {"advice-pin-on-saves", pinned},
        {"advice-zero-init", 2 * psi},
        {"advice-tie-weights", 2 * largest},
        {"advice-parameter-cache", 2 * persistent_elements(sizes_of(model), with_auto)},
        {"advice-outside-zero-init", 2 * psi},
        {"advice-stage-2-no-gathers", 2 * psi},
        {"advice-weights-on-gpu", 2 * psi},
        {"advice-gradients-stay", 1e9},
        {"advice-stage-3-uses-more", 2 * psi},
        {"advice-stage-3-one-gpu", stage2_offload},
        {"advice-checkpointing-beats-offload", 14 * share},
        {"advice-model-half", 2 * psi},
        {"advice-load-on-cpu-first", 2 * psi},
        {"advice-stage-2-faster", 2 * psi},
        {"advice-clear-cache-after-save", situation.gpu_gib * 1024 * 1024 * 1024},
    };
    for (const AdviceRule& rule : config_advice()) {
      const Wording& wording = *find_wording(rule.id);
      const bool is_counted =
          std::any_of(std::begin(expected), std::end(expected),
                      [&](const auto& each) { return std::string_view(each.first) == rule.id; });
      EXPECT_TRUE(is_counted ||
                  (!has_figure(wording.message.english) && !has_figure(wording.fix.english)))
          << rule.id << " has a figure that no formula here gives";
    }
    for (const auto& [id, bytes] : expected) {
      const auto saying = std::find_if(
          std::begin(sayings), std::end(sayings),
          [&, wanted = id](const Saying& each) { return std::string_view(each.id) == wanted; });
      ASSERT_NE(saying, std::end(sayings));
      Files files;
      files.write("answer.txt", saying->says);
      files.write("model.json", model_json(situation.shape));
      files.write("ds_config.json",
                  R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
        "zero_optimization": {"stage": 3}})");
      files.write("hardware.json",
                  fmt::format(R"({{"gpus_per_node": {}, "gpu_mem_gib": {}, "host_ram_gib": 900}})",
                              situation.gpus, situation.gpu_gib));

      const Diagnosis diagnosis = files.diagnose();

      const std::string answer = answer_to(*saying, diagnosis);
      EXPECT_NE(answer.find(amount(bytes)), std::string::npos)
          << id << ", " << psi << " on " << ranks << ": " << amount(bytes) << "\n"
          << answer;
    }
    // Verdicts turn with the model and the machine.
    const bool stage3_fits = stage3 <= situation.gpu_gib * 1024 * 1024 * 1024;
    Files files;
    files.write("answer.txt", "Pure ZeRO-3 without offload fits.");
    files.write("model.json", model_json(situation.shape));
    files.write("ds_config.json",
                R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
      "zero_optimization": {"stage": 3}})");
    files.write("hardware.json",
                fmt::format(R"({{"gpus_per_node": {}, "gpu_mem_gib": {}, "host_ram_gib": 900}})",
                            situation.gpus, situation.gpu_gib));
    const auto all = found(files.diagnose(), "advice-stage-3-fits");
    ASSERT_EQ(all.size(), 1u);
    EXPECT_TRUE(message_of(all[0], Language::english).starts_with(stage3_fits ? "true" : "false"));
  }
}

struct Buckets {
  const char* size;  // of reduce_bucket_size; "" leaves it out
  const char* overlap;
  int ranks;
  double bytes, saving_3, saving_12;
  const char* source;
};

TEST(Advice, CountsBucketsAsTheConfigHasThem) {
  const double width_squared = 2 * 4096.0 * 4096;
  const Buckets configs[] = {
      {R"("reduce_bucket_size": 2e8,)", "true", 8, 4e8, 8e8, 12e8, "as the config says"},
      {R"("reduce_bucket_size": 2e8,)", "true", 1, 4e8, 8e8, 8e8, "as the config says"},
      {R"("reduce_bucket_size": 2e8,)", "false", 8, 4e8, 8e8, 8e8, "as the config says"},
      {"", "true", 8, 1e9, 2e9, 3e9, "DeepSpeed's default"},
      {R"("reduce_bucket_size": "auto",)", "true", 8, width_squared, 2 * width_squared,
       3 * width_squared, "hidden size squared"}};
  for (const Buckets& config : configs) {
    Files files;
    files.write("answer.txt",
                "Make reduce_bucket_size smaller and switch overlap_comm off.\n"
                "Set overlap_comm true.\nSet reduce_scatter explicitly.");
    files.write("model.json", model_json({32000, 4096, 32, 11008, 32, 32}));
    files.write("ds_config.json",
                fmt::format(R"({{"train_micro_batch_size_per_gpu": 1, "bf16": {{"enabled": true}},
      "zero_optimization": {{"stage": 2, {} "overlap_comm": {}}}}})",
                            config.size, config.overlap));
    files.question.ranks = config.ranks;
    const Diagnosis diagnosis = files.diagnose();
    const auto says = [&](std::string_view id) {
      const auto all = found(diagnosis, id);
      return all.empty() ? std::string("nothing") : message_of(all[0], Language::english);
    };

    const std::string smaller = says("advice-smaller-bucket-no-overlap");
    for (const std::string& part :
         {std::string(config.source), "at most " + amount(config.saving_3) + " at stage 3",
          amount(config.saving_12) + " at stages 1 and 2, on " + std::to_string(config.ranks) +
              (config.ranks == 1 ? " rank:" : " ranks:")})
      EXPECT_NE(smaller.find(part), std::string::npos) << part << "\n" << smaller;
    EXPECT_NE(
        says("advice-overlap-is-default").find("second bucket, " + amount(config.bytes) + " with"),
        std::string::npos)
        << says("advice-overlap-is-default");
    const std::string copy = amount(config.ranks == 1 ? 0 : config.bytes) + " at stages 1 and 2, " +
                             amount(config.ranks == 1 ? config.bytes : 0) + " at stage 3";
    EXPECT_NE(says("advice-reduce-scatter-is-default").find(copy), std::string::npos)
        << says("advice-reduce-scatter-is-default");
  }
}

TEST(Advice, NormalisesTheSpellingsOfStages) {
  EXPECT_EQ(normalised("ZeRO-3  and\nzero3, Stage 2; ZeRO Stage 3"), "z3 and z3, z2; z3");
  EXPECT_EQ(normalised("zero_3_leaf_modules, stage3_gather, DeepSpeed-ZeRO-1, z-2, ZeRO 2.5"),
            "zero_3_leaf_modules, stage3_gather, z1, z2, zero 2.5");
  EXPECT_EQ(normalised("ＺｅＲＯ－３：don’t **use** `it`\x1b[31m"), "z3:don't use it[31m");
}

TEST(Advice, SeeksWordsGroupByGroup) {
  const auto matches = [](std::string_view sentence, std::string_view words) {
    AdviceWords sought({words});
    sought.read(sentence);
    return sought.has(0);
  };

  EXPECT_TRUE(matches("z3 on one gpu", "z3 & one gpu|single gpu"));
  EXPECT_FALSE(matches("z3 with offload", "z3 & !offload"));
  EXPECT_FALSE(matches("anything", ""));
  EXPECT_TRUE(matches("set it to 1, then", "~to 1~"));
  EXPECT_FALSE(matches("set it to 16", "to 1~"));
  EXPECT_FALSE(matches("_fast_init=false", "~fast_init"));
}

TEST(Advice, ReadsTheBeginningOfATextOfAnyLength) {
  Files files;
  std::string text = "You should turn on gradient checkpointing to save memory.\n";
  while (text.size() < std::size_t{20} << 20) text += "and so the story goes on, line by line\n";
  files.write("thread.txt", text);

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_TRUE(found(diagnosis, "file-unreadable").empty()) << messages(diagnosis);
  EXPECT_EQ(found(diagnosis, "file-read-in-part").size(), 1u) << messages(diagnosis);
}

}  // namespace
}  // namespace underkeel::doctor
