// The run file: what its keys mean, where values come from, and every refusal with its message.

#include "spec/run_files.h"
#include "support/places.h"

namespace underkeel::spec {
namespace {

using RunFile = RunFiles;

TEST_F(RunFile, HasLlamaFactorysDefaultsWhereKeysAreLeftOut) {
  const auto run = read(minimal());

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->model, "models/tiny");
  EXPECT_EQ(run->precision, Precision::f32);
  EXPECT_EQ(run->recompute, Recompute::block);
  EXPECT_EQ(run->sequences_per_micro_batch, 8);
  EXPECT_EQ(run->accumulation_steps, 1);
  EXPECT_EQ(run->epochs, 3.0);
  EXPECT_EQ(run->max_steps, -1);
  EXPECT_EQ(run->optimizer.learning_rate, 5e-5);
  EXPECT_EQ(run->optimizer.schedule, LearningRateSchedule::linear);
  EXPECT_EQ(run->optimizer.max_grad_norm, 1.0);
  EXPECT_EQ(run->data.cutoff_tokens, 2048);
  EXPECT_TRUE(run->data.packing);  // stage pt
  EXPECT_EQ(run->data.seed, 42u);
  EXPECT_EQ(run->save.strategy, Cadence::steps);
  EXPECT_EQ(run->save.steps, 500);
  EXPECT_EQ(run->evaluation.strategy, Cadence::no);
  EXPECT_FALSE(run->evaluation.at_end);
  EXPECT_EQ(run->zero.stage, 0);
  EXPECT_FALSE(run->gradient_accumulation_type.has_value());
  EXPECT_FALSE(run->has_deepspeed);
  EXPECT_TRUE(run->resume_from.empty());
}

TEST_F(RunFile, ReadsEveryHonouredKey) {
  const auto run = read(minimal(R"(
train_from_scratch: true
bf16: true
disable_gradient_checkpointing: true
dataset_dir: my/data
cutoff_len: 512
max_samples: 100
preprocessing_batch_size: 50
template: llama3
disable_shuffling: true
dataloader_drop_last: true
per_device_train_batch_size: 2
per_device_eval_batch_size: 3
gradient_accumulation_steps: 4
learning_rate: 1e-4
adam_beta1: 0.8
adam_beta2: 0.95
adam_epsilon: 1.0e-6
weight_decay: 0.1
max_grad_norm: 0.5
lr_scheduler_type: cosine
warmup_ratio: 0.03
num_train_epochs: 1.5
max_steps: 200
seed: 7
data_seed: 8
logging_steps: 5
logging_first_step: true
plot_loss: true
save_strategy: epoch
save_steps: 50
save_total_limit: 2
save_only_model: true
eval_strategy: steps
eval_steps: 0.1
val_size: 0.05
flash_attn: fa2
)"));

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_TRUE(run->train_from_scratch);
  EXPECT_EQ(run->precision, Precision::bf16);
  EXPECT_EQ(run->recompute, Recompute::none);
  EXPECT_EQ(run->data.folder, "my/data");
  EXPECT_EQ(run->data.cutoff_tokens, 512);
  EXPECT_EQ(run->data.max_samples, 100);
  EXPECT_EQ(run->data.packing_batch_records, 50);
  EXPECT_EQ(run->data.template_name, "llama3");
  EXPECT_FALSE(run->data.shuffle);
  EXPECT_TRUE(run->data.drop_last);
  EXPECT_EQ(run->sequences_per_micro_batch, 2);
  EXPECT_EQ(run->evaluation.batch_size, 3);
  EXPECT_EQ(run->accumulation_steps, 4);
  EXPECT_EQ(run->optimizer.learning_rate, 1e-4);
  EXPECT_EQ(run->optimizer.beta1, 0.8);
  EXPECT_EQ(run->optimizer.beta2, 0.95);
  EXPECT_EQ(run->optimizer.epsilon, 1e-6);
  EXPECT_EQ(run->optimizer.weight_decay, 0.1);
  EXPECT_EQ(run->optimizer.max_grad_norm, 0.5);
  EXPECT_EQ(run->optimizer.schedule, LearningRateSchedule::cosine);
  EXPECT_EQ(run->optimizer.warmup_ratio, 0.03);
  EXPECT_EQ(run->epochs, 1.5);
  EXPECT_EQ(run->max_steps, 200);
  EXPECT_EQ(run->seed, 7u);
  EXPECT_EQ(run->data.seed, 8u);
  EXPECT_EQ(run->logging_steps, 5);
  EXPECT_TRUE(run->log_first_step);
  EXPECT_TRUE(run->plot_loss);
  EXPECT_EQ(run->save.strategy, Cadence::epoch);
  EXPECT_EQ(run->save.steps, 50);
  EXPECT_EQ(run->save.total_limit, 2);
  EXPECT_TRUE(run->save.weights_only);
  EXPECT_EQ(run->evaluation.strategy, Cadence::steps);
  EXPECT_EQ(run->evaluation.steps_fraction, 0.1);
  EXPECT_TRUE(run->evaluation.at_end);
  EXPECT_EQ(run->evaluation.validation_size, 0.05);
}

TEST_F(RunFile, ReadsTheUnderkeelMapping) {
  const auto run = read(minimal(R"(
underkeel:
  device: cpu
  ranks: 4
  threads: 2
  recompute: cheap
  collective_time_limit: 60
  resume_weights_only: true
  memory: {device: 2GiB, host: 1.5 GB}
  save: {asynchronous: "false", time_limit: 90}
)"));

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_TRUE(has_note(*run, "underkeel.save.asynchronous (line 16): \"false\" in quotes"));
  EXPECT_EQ(run->ranks, 4);
  EXPECT_EQ(run->threads_per_rank, 2);
  EXPECT_EQ(run->recompute, Recompute::cheap);
  EXPECT_EQ(run->collective_time_limit_s, 60.0);
  EXPECT_TRUE(run->resume_weights_only);
  EXPECT_EQ(run->device_budget_bytes, std::int64_t{2} << 30);
  EXPECT_EQ(run->host_budget_bytes, 1'500'000'000);
  EXPECT_FALSE(run->save.asynchronous);
  EXPECT_EQ(run->save_time_limit_s, 90.0);
}

TEST_F(RunFile, TypesWordsAsOmegaConfDoes) {
  const auto run =
      read(minimal("learning_rate: 1e-4\nbf16: yes\neval_strategy: no\n"
                   "save_strategy: \"no\"\nmax_steps: 1_000\nmax_grad_norm: \"0.5\"\n"
                   "weight_decay: .5\n"));

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->optimizer.learning_rate, 1e-4);
  EXPECT_EQ(run->precision, Precision::bf16);
  EXPECT_EQ(run->evaluation.strategy, Cadence::no);
  EXPECT_EQ(run->save.strategy, Cadence::no);
  EXPECT_EQ(run->max_steps, 1000);
  EXPECT_EQ(run->optimizer.weight_decay, 0.5);
  EXPECT_EQ(run->optimizer.max_grad_norm, 0.5);
  EXPECT_TRUE(has_note(*run, "\"0.5\" in quotes is taken as the number that it spells"));
}

TEST_F(RunFile, TakesJsonAsWell) {
  const auto run = read(R"({"model_name_or_path": "m", "output_dir": "o", "stage": "pt",
    "finetuning_type": "full", "do_train": true, "dataset": ["a", "b"]})");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->data.datasets, (std::vector<std::string>{"a", "b"}));
}

TEST_F(RunFile, SplitsListsAtCommas) {
  const auto run = read(minimal("eval_dataset: x , y,z\n"));

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->data.evaluation_datasets, (std::vector<std::string>{"x", "y", "z"}));
}

TEST_F(RunFile, TakesTheMachinesRanksWhereNothingElseNamesThem) {
  const WorldSize machine{.ranks = 64, .source = "hardware.yaml", .yields = true};
  const std::string config =
      write("ds_config.json", R"({"train_batch_size": 64, "zero_optimization": {"stage": 2}})");
  const std::string lines =
      "per_device_train_batch_size: 1\ngradient_accumulation_steps: 1\ndeepspeed: " + config + "\n";

  const auto bare = read(minimal(lines), {"learning_rate=2e-4"}, machine);
  const auto by_word = read(minimal(lines), {"underkeel.ranks=2"}, machine);
  const auto by_file = read(minimal(lines + "underkeel: {ranks: 2}\n"), {}, machine);

  ASSERT_TRUE(bare.has_value()) << text_of(bare);
  EXPECT_EQ(bare->ranks, 64);
  EXPECT_EQ(bare->changes, (std::vector<std::string>{"learning_rate=2e-4", "underkeel.ranks=64"}));
  // Theirs hold, in the batch equation too.
  for (const auto* other : {&by_word, &by_file})
    EXPECT_NE(text_of(*other).find("x ranks 2 (underkeel.ranks) = 2"), std::string::npos)
        << text_of(*other);
}

TEST_F(RunFile, LetsTheCommandLineOverrideAndSaysSo) {
  const auto run = read(minimal("learning_rate: 1e-4\n"),
                        {"learning_rate=2e-4", "underkeel.ranks=2", "underkeel.memory.device=1GiB",
                         "deepspeed.zero_optimization.stage=3", "output_dir=other/out"});

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->optimizer.learning_rate, 2e-4);
  EXPECT_EQ(run->ranks, 2);
  EXPECT_EQ(run->device_budget_bytes, std::int64_t{1} << 30);
  EXPECT_EQ(run->zero.stage, 3);
  EXPECT_EQ(run->output, "other/out");
  EXPECT_EQ(source_of_key(*run, "learning_rate"), "0.0002 from command line");
  EXPECT_EQ(source_of_key(*run, "underkeel.ranks"), "2 from command line");
  EXPECT_EQ(source_of_key(*run, "deepspeed.zero_optimization.stage"), "3 from command line");
  EXPECT_EQ(source_of_key(*run, "stage"), "pt from train.yaml");
  EXPECT_EQ(source_of_key(*run, "weight_decay"), "0 from default");
}

TEST_F(RunFile, PrintsValuesAndSourcesInColumns) {
  const auto run = read(minimal("learning_rate: 1e-4\n"));

  ASSERT_TRUE(run.has_value()) << text_of(run);
  const std::string table = provenance_table(*run);
  EXPECT_NE(table.find("\nlearning_rate                   0.0001"), std::string::npos) << table;
  EXPECT_NE(table.find("train.yaml\n"), std::string::npos) << table;
}

TEST_F(RunFile, TakesExplicitPackingForOneTokenLessAsLlamaFactoryDoes) {
  const auto run = read(minimal("packing: true\ncutoff_len: 128\n"));

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->data.cutoff_tokens, 127);
  EXPECT_TRUE(has_note(*run, "blocks of cutoff_len - 1 = 127 tokens"));
}

TEST_F(RunFile, ReadsWarmupBelowOneAsAShare) {
  EXPECT_EQ(read(minimal("warmup_steps: 0.1\n"))->optimizer.warmup_ratio, 0.1);
  const auto both = read(minimal("warmup_steps: 10\nwarmup_ratio: 0.5\n"));
  EXPECT_EQ(both->optimizer.warmup_steps, 10);
  EXPECT_EQ(both->optimizer.warmup_ratio, 0.0);
  EXPECT_TRUE(has_note(*both, "so warmup_ratio has no effect"));
}

TEST_F(RunFile, SwitchesClippingOffWhenTheNormIsNullOrNotPositive) {
  EXPECT_EQ(read(minimal("max_grad_norm: null\n"))->optimizer.max_grad_norm, 0.0);
  EXPECT_EQ(read(minimal("max_grad_norm: -1\n"))->optimizer.max_grad_norm, 0.0);
}

TEST_F(RunFile, EvaluatesAtLoggingStepsWhenNoIntervalIsGiven) {
  const auto run = read(minimal("eval_strategy: steps\nlogging_steps: 20\nval_size: 8\n"));

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->evaluation.steps, 20);
}

TEST_F(RunFile, StartsAfreshWhenTheOutputMayBeOverwritten) {
  EXPECT_EQ(read(minimal("overwrite_output_dir: true\n"))->resume_from, "none");
  EXPECT_EQ(
      read(minimal("overwrite_output_dir: true\nresume_from_checkpoint: out/c-5\n"))->resume_from,
      "out/c-5");
  EXPECT_EQ(read(minimal("resume_from_checkpoint: true\n"))->resume_from, "");
}

TEST_F(RunFile, ListsOnceWhatItAcceptsWithoutEffect) {
  const auto run =
      read(minimal("disable_tqdm: true\nlora_rank: 8\n"
                   "media_dir: m\npreprocessing_num_workers: 16\n"));

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_TRUE(has_note(*run, "accepted without effect: media_dir, lora_rank, disable_tqdm"));
  EXPECT_TRUE(has_note(*run, "preprocessing_num_workers: 16 cuts the data in as many parts"));
}

TEST_F(RunFile, TakesTheTimeLimitOfCollectivesFromEitherKey) {
  EXPECT_EQ(read(minimal("ddp_timeout: 5\n"))->collective_time_limit_s, 5.0);
  EXPECT_EQ(read(minimal("ddp_timeout: 5\nunderkeel: {collective_time_limit: 9}\n"))
                ->collective_time_limit_s,
            9.0);
  const auto years = read(minimal("ddp_timeout: 180000000\n"));
  EXPECT_EQ(years->collective_time_limit_s, 1800.0);
  EXPECT_TRUE(has_note(*years, "ddp_timeout: 180000000 s is longer than a day: 1800 s holds"));
}

TEST_F(RunFile, ReadsTheExamplesAndTheCases) {
  const std::filesystem::path source = test::in_source("");
  for (const char* example : {"finetune.yaml", "pretrain.yaml"}) {
    const auto run =
        read_run_file(source / "examples/tiny" / example,
                      {"deepspeed=" + (source / "examples/tiny/ds_config.json").string()});
    EXPECT_TRUE(run.has_value()) << example << "\n" << text_of(run);
  }
  int cases = 0;
  for (const auto& folder : std::filesystem::directory_iterator(source / "tests/cases")) {
    if (!std::filesystem::exists(folder.path() / "train.yaml")) continue;
    const auto run =
        read_run_file(folder.path() / "train.yaml", {"model_name_or_path=model", "output_dir=out"});
    EXPECT_TRUE(run.has_value()) << folder.path() << "\n" << text_of(run);
    ++cases;
  }
  EXPECT_GT(cases, 20);
}

TEST_F(RunFile, AcceptsKeysAtTheirNeutralValues) {
  EXPECT_EQ(text_of(read(minimal("neftune_noise_alpha: null\nlabel_smoothing_factor: 0.0\n"
                                 "streaming: false\nfsdp: []\nquantization_bit: null\n"
                                 "mix_strategy: concat\nlr_scheduler_kwargs: {}\n"
                                 "optim: adamw_torch_fused\n"))),
            "accepted");
}

TEST_F(RunFile, TellsAllProblemsAtOnceWithTheirLines) {
  const auto run =
      read(minimal("learning_rte: 1e-4\nper_device_train_batch_size: many\n"
                   "underkeel: {rank: 2}\n"));

  EXPECT_EQ(text_of(run),
            "error: 3 problems\n"
            "  per_device_train_batch_size (line 8): a whole number is wanted, text \"many\" was "
            "found\n"
            "  underkeel.rank (line 9): unknown key; the nearest is `ranks`\n"
            "  learning_rte (line 7): unknown key; the nearest is `learning_rate`\n"
            "where: " +
                (root_ / "train.yaml").string());
}

TEST_F(RunFile, RefusesWhatItDoesNotTrainYetAndSaysWhatItDoes) {
  const std::string now = "supported so far is finetuning_type: full";
  const std::string start = "model_name_or_path: m\noutput_dir: o\ndo_train: true\ndataset: d\n";

  const std::string nothing = text_of(read(start));
  EXPECT_NE(nothing.find("not given, which LLaMA-Factory takes as lora"), std::string::npos)
      << nothing;
  const auto lora = read(start + "stage: pt\nfinetuning_type: lora\n");
  EXPECT_EQ(lora.error().code, ErrorCode::unsupported);
  EXPECT_EQ(lora.error().what, "type `lora` is not supported yet");
  EXPECT_EQ(lora.error().fix, now);
  const auto dpo = read(start + "stage: dpo\nfinetuning_type: full\n");
  EXPECT_EQ(dpo.error().what, "stage `dpo` is not supported");
}

struct RunFileRefusal {
  std::string lines;
  std::string message;
};

TEST_F(RunFile, RefusesByNameWhatItCannotHonour) {
  const std::vector<RunFileRefusal> refusals = {
      {"bf16: true\nfp16: true", "bf16 and fp16 exclude each other"},
      {"fp16: true\npure_bf16: true", "fp16 and pure_bf16 exclude each other"},
      {"do_predict: true", "true is not honoured: prediction is not supported yet"},
      {"quantization_bit: 4", "4 is not honoured: quantised base models are not supported yet"},
      {"adapter_name_or_path: x", "\"x\" is not honoured: adapters are not supported yet"},
      {"neat_packing: true", "this belongs to stage sft"},
      {"streaming: true", "files of any size are read in little memory without it"},
      {"optim: adafactor", "optimizer `adafactor` is not supported"},
      {"use_galore: true", "optimizer GaLore is not supported"},
      {"neftune_noise_alpha: 5", "noise on embeddings is not supported"},
      {"label_smoothing_factor: 0.1", "label smoothing is not supported"},
      {"average_tokens_across_devices: false", "the loss is always the mean over the tokens"},
      {"auto_find_batch_size: true", "the batch is never changed behind the run file's back"},
      {"flash_attn: fa9", "`fa9` is no kind of attention"},
      {"do_eval: true", "neither eval_dataset nor val_size is given"},
      {"eval_strategy: epoch", "neither eval_dataset nor val_size is given"},
      {"val_size: 0.1\neval_dataset: e", "eval_dataset and val_size exclude each other"},
      {"val_size: 1", "1 is neither a share below 1 nor a number of records above 1"},
      {"val_size: 2.5", "a number of records must be whole"},
      {"eval_strategy: no\nevaluation_strategy: no", "this is the old name of eval_strategy"},
      {"gradient_checkpointing: true\ndisable_gradient_checkpointing: true",
       "true here, while disable_gradient_checkpointing turns it off"},
      {"cutoff_len: 1", "1 is out of range: 2 to 16777216 is wanted"},
      {"per_device_train_batch_size: 0", "0 is out of range"},
      {"gradient_accumulation_steps: 1.5", "a whole number is wanted, a number 1.5 was found"},
      {"learning_rate: fast", "a number is wanted"},
      {"learning_rate: .inf", "a number is wanted, text \".inf\" was found"},
      {"learning_rate: 1e999", "is wanted"},
      {"adam_beta1: 1", "1 is out of range"},
      {"num_train_epochs: 0", "more than 0"},
      {"save_steps: 1.5", "1.5 is neither whole nor a share below 1"},
      {"warmup_steps: 1.5", "1.5 is neither whole nor a share below 1"},
      {"bf16: 2", "true or false is wanted, a number 2 was found"},
      {"ranks: 2", "unknown key\nwhere: "},
      {"ranks: 2", "it belongs under `underkeel:`, as underkeel.ranks"},
      {"zero_optimization: {stage: 2}", "it belongs in the DeepSpeed config"},
      {"underkeel: 3", "a mapping is wanted, 3 was found"},
      {"underkeel: {device: tpu}", "`tpu` is no device"},
      {"underkeel: {recompute: all}", "`all` is no level of recomputation"},
      {"underkeel: {ranks: 0}", "0 is out of range: 1 to 4096 is wanted"},
      {"underkeel: {memory: {device: lots}}", "`lots` is not a size in bytes"},
      {"underkeel: {memory: {device: 24}}",
       "`24` without a unit is 24 bytes; no run takes so little"},
      {"underkeel: {memory: {host: 64}}", "write a unit: 64MiB / 64GiB"},
      {"underkeel: {memory: {device: 81920}}", "write a unit: 81920MiB / 81920GiB"},
      {"underkeel: {memory: {device: 1B}}",
       "`1B` is 1 byte, less than a page of memory; no run takes so little"},
      {"underkeel: {memory: {gpu: 1GiB}}", "underkeel.memory.gpu (line 7)"},
      {"underkeel: {save: {sync: true}}", "unknown key"},
      {"deepspeed: missing.json", "missing.json: the file is not there"},
      {"deepspeed: 3", "a path or a mapping is wanted, 3 was found"},
  };
  for (const RunFileRefusal& refusal : refusals) {
    const std::string text = text_of(read(minimal(refusal.lines + "\n")));
    EXPECT_NE(text.find(refusal.message), std::string::npos)
        << refusal.lines << "\n"
        << text << "\nwanted: " << refusal.message;
  }
}

TEST_F(RunFile, RefusesToDoNothing) {
  EXPECT_NE(text_of(read(minimal(), {"do_train=false"})).find("false leaves nothing to do"),
            std::string::npos);
}

TEST_F(RunFile, RefusesMissingKeys) {
  const std::string text = text_of(read("stage: pt\nfinetuning_type: full\ndo_train: true\n"));

  EXPECT_NE(text.find("model_name_or_path: the key is missing"), std::string::npos) << text;
  EXPECT_NE(text.find("output_dir: the key is missing"), std::string::npos) << text;
  EXPECT_NE(text.find("dataset: the key is missing"), std::string::npos) << text;
}

TEST_F(RunFile, RefusesBrokenOverrides) {
  for (const char* word : {"learning_rate", "=3", ".a=1", "a..b=1"})
    EXPECT_NE(text_of(read(minimal(), {word})).find("key=value is wanted on the command line"),
              std::string::npos)
        << word;
  EXPECT_EQ(text_of(read(minimal(), {"learning_rte=1"})),
            "error: unknown key\nwhere: " + (root_ / "train.yaml").string() +
                ", learning_rte (command line)\ntry:   the nearest is `learning_rate`");
  EXPECT_NE(text_of(read(minimal(), {"dataset.x=1"})).find("\"text\" has no keys below it"),
            std::string::npos);
}

TEST_F(RunFile, RefusesBrokenYamlWithLineAndColumn) {
  const auto wrong = [&](const std::string& yaml) { return text_of(read(yaml)); };
  EXPECT_NE(wrong("a: 1\na: 2\n").find("key `a` is given twice"), std::string::npos);
  EXPECT_NE(wrong("a: 1\na: 2\n").find("train.yaml, line 2, column 1"), std::string::npos);
  EXPECT_NE(wrong("a: [1\nb: 2\n").find("not valid YAML"), std::string::npos);
  EXPECT_NE(wrong("a: &x 1\nb: *x\n").find("anchors are not supported"), std::string::npos);
  EXPECT_NE(wrong("a: !!python/object 1\n").find("tags such as"), std::string::npos);
  EXPECT_NE(wrong("- 1\n- 2\n").find("a run file is a mapping of keys"), std::string::npos);
  EXPECT_NE(wrong("a: 1\n---\nb: 2\n").find("more than one document"), std::string::npos);
  EXPECT_NE(wrong("a: " + std::string(100, '[') + std::string(100, ']')).find("nested deeper"),
            std::string::npos);
}

TEST_F(RunFile, SaysWhenItIsNotThere) {
  EXPECT_EQ(read_run_file(root_ / "none.yaml", {}).error().code, ErrorCode::not_found);
  EXPECT_EQ(read_run_file(root_, {}).error().what, "this is not a file");
  EXPECT_EQ(read_run_file(root_, {}).error().fix, "it is a folder: name a file in it");
  std::filesystem::create_symlink("loop.yaml", root_ / "loop.yaml");
  EXPECT_EQ(read_run_file(root_ / "loop.yaml", {}).error().what,
            "the file cannot be read: Too many levels of symbolic links");
}

TEST(NearestWord, IsWithinAThirdOfTheLettersOrNone) {
  const std::vector<std::string> known = {"learning_rate", "weight_decay", "seed"};

  EXPECT_EQ(nearest_word("learning_rte", known), "learning_rate");
  EXPECT_EQ(nearest_word("sede", known), "seed");
  EXPECT_EQ(nearest_word("wieght_deacy", known), "weight_decay");
  EXPECT_EQ(nearest_word("unrelated", known), "");
  EXPECT_EQ(nearest_word(std::string(1000, 'a'), known), "");
}

}  // namespace
}  // namespace underkeel::spec
