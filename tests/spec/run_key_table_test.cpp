// Every key of LLaMA-Factory's run files for text and full training (its hparams/ and the Trainer's arguments), with
// a value that is taken and one that is not: none is passed over, none is ignored that changes samples, losses,
// gradients or weights.

#include <map>
#include <set>

#include "spec/run_files.h"

namespace underkeel::spec {
namespace {

/// What becomes of the right value.
enum class Use {
  honoured,  // it is a value in force, from the file
  listed,    // any value is accepted, and named once in the note on keys without effect
  neutral,   // the only values that are taken ask for nothing
  taken      // it is checked, and what it asks for is what happens anyway
};

struct Row {
  std::string key;
  Use use;
  std::string right;
  std::string wrong = {};  // empty: there is none
  std::string says = {};   // of the wrong one
  std::string with = {};   // what the right value needs besides
};

const std::vector<Row>& model_rows() {
  static const std::vector<Row> rows = {
      {"model_name_or_path", Use::honoured, "models/x", "''", "the key is missing"},
      {"adapter_name_or_path", Use::neutral, "null", "a,b", "adapters are not supported yet"},
      {"cache_dir", Use::neutral, "null", "x", "HF_HUB_CACHE"},
      {"model_revision", Use::neutral, "main", "v2", "only revision main"},
      {"trust_remote_code", Use::listed, "true"},
      {"use_fast_tokenizer", Use::listed, "false"},
      {"resize_vocab", Use::neutral, "false", "true", "resizing the vocabulary"},
      {"add_tokens", Use::neutral, "null", "<a>,<b>", "adding tokens"},
      {"add_special_tokens", Use::neutral, "null", "<a>", "adding tokens"},
      {"split_special_tokens", Use::neutral, "false", "true", "splitting special tokens"},
      {"rope_scaling", Use::neutral, "null", "linear", "rope_scaling in the run file"},
      {"flash_attn", Use::taken, "sdpa", "flash", "`flash` is no kind of attention"},
      {"disable_gradient_checkpointing", Use::honoured, "true", "maybe", "true or false is wanted"},
      {"use_reentrant_gc", Use::listed, "false"},
      {"upcast_layernorm", Use::neutral, "false", "true", "norm weights of another type"},
      {"upcast_lmhead_output", Use::neutral, "false", "true", "logits in f32"},
      {"use_kv_cache", Use::listed, "false"},
      {"quantization_bit", Use::neutral, "null", "4", "quantised base models"},
      {"quantization_method", Use::listed, "bnb"},
      {"quantization_type", Use::listed, "fp4"},
      {"double_quantization", Use::listed, "false"},
      {"enable_liger_kernel", Use::listed, "true"},
      {"use_unsloth", Use::listed, "true"},
      {"shift_attn", Use::neutral, "false", "true", "shifted attention"},
      {"train_from_scratch", Use::honoured, "true", "2", "true or false is wanted"},
      {"moe_aux_loss_coef", Use::neutral, "null", "0.01", "mixtures of experts"},
      {"infer_dtype", Use::listed, "float16"},
  };
  return rows;
}

const std::vector<Row>& data_rows() {
  static const std::vector<Row> rows = {
      {"template", Use::honoured, "qwen", "[a]", "text is wanted"},
      {"dataset", Use::honoured, "a,b", "''", "the key is missing"},
      {"eval_dataset", Use::honoured, "a,b", "{a: b}", "is wanted"},
      {"dataset_dir", Use::honoured, "x", "[x]", "text is wanted"},
      {"cutoff_len", Use::honoured, "64", "1", "1 is out of range"},
      {"train_on_prompt", Use::honoured, "true", "some", "true or false is wanted"},
      {"mask_history", Use::honoured, "true", "some", "true or false is wanted"},
      {"max_samples", Use::honoured, "10", "0", "0 is out of range"},
      {"val_size", Use::honoured, "0.1", "1", "neither a share below 1"},
      {"packing", Use::honoured, "true", "tight", "true or false is wanted"},
      {"neat_packing", Use::honoured, "true", "tidy", "true or false is wanted"},
      {"streaming", Use::neutral, "false", "true", "max_steps is wanted"},
      {"buffer_size", Use::listed, "1024"},
      {"mix_strategy", Use::honoured, "interleave_over", "shuffle", "no way to mix data sets"},
      {"interleave_probs", Use::honoured, "0.5,0.5", "0.5,0.6", "add up to 1.1",
       "dataset: a,b\nmix_strategy: interleave_under"},
      {"overwrite_cache", Use::honoured, "true", "old", "true or false is wanted"},
      {"preprocessing_batch_size", Use::honoured, "10", "0", "0 is out of range"},
      {"preprocessing_num_workers", Use::honoured, "4", "0", "0 is out of range"},
      {"tokenized_path", Use::honoured, "saved/tokens", "''", "a folder is wanted"},
      {"default_system", Use::honoured, "Be brief.", "[a]", "text is wanted"},
      {"enable_thinking", Use::honoured, "false", "some", "true or false is wanted"},
      {"preserve_thinking", Use::honoured, "true", "some", "true or false is wanted"},
      {"tool_format", Use::listed, "qwen"},
      {"ignore_pad_token_for_loss", Use::neutral, "true", "false", "no padding to train on"},
      {"eval_on_each_dataset", Use::neutral, "false", "true", "eval_dataset is evaluated as one"},
      {"data_shared_file_system", Use::listed, "true"},
  };
  return rows;
}

const std::vector<Row>& tuning_rows() {
  static const std::vector<Row> rows = {
      {"stage", Use::honoured, "sft", "dpo", "stage `dpo` is not supported"},
      {"finetuning_type", Use::honoured, "full", "lora", "type `lora` is not supported yet"},
      {"pure_bf16", Use::honoured, "true", "half", "true or false is wanted"},
      {"lora_rank", Use::listed, "16"},
      {"lora_alpha", Use::listed, "32"},
      {"lora_dropout", Use::listed, "0.1"},
      {"lora_target", Use::listed, "all"},
      {"additional_target", Use::listed, "embed_tokens"},
      {"use_rslora", Use::neutral, "false", "true", "belongs to LoRA"},
      {"use_dora", Use::neutral, "false", "true", "belongs to LoRA"},
      {"pissa_init", Use::neutral, "false", "true", "belongs to LoRA"},
      {"pissa_iter", Use::listed, "-1"},
      {"pissa_convert", Use::neutral, "false", "true", "belongs to LoRA"},
      {"create_new_adapter", Use::listed, "true"},
      {"loraplus_lr_ratio", Use::neutral, "null", "16", "belongs to LoRA"},
      {"loraplus_lr_embedding", Use::listed, "1e-6"},
      {"freeze_trainable_layers", Use::listed, "2"},
      {"freeze_trainable_modules", Use::listed, "all"},
      {"freeze_extra_modules", Use::listed, "lm_head"},
      {"use_llama_pro", Use::neutral, "false", "true", "expanded blocks"},
      {"disable_shuffling", Use::honoured, "true", "some", "true or false is wanted"},
      {"plot_loss", Use::honoured, "true", "png", "true or false is wanted"},
      {"compute_accuracy", Use::neutral, "false", "true", "accuracy in evaluation"},
      {"early_stopping_steps", Use::honoured, "2", "0", "0 is out of range",
       "metric_for_best_model: eval_loss\neval_strategy: steps\nval_size: 0.1"},
      {"include_effective_tokens_per_second", Use::listed, "true"},
      {"use_galore", Use::neutral, "false", "true", "GaLore"},
      {"use_apollo", Use::neutral, "false", "true", "APOLLO"},
      {"use_badam", Use::neutral, "false", "true", "BAdam"},
      {"use_adam_mini", Use::neutral, "false", "true", "Adam-mini"},
      {"use_muon", Use::neutral, "false", "true", "Muon"},
      {"use_dft_loss", Use::neutral, "false", "true", "DFT"},
      {"use_asft_loss", Use::neutral, "false", "true", "ASFT"},
      {"use_eaft_loss", Use::neutral, "false", "true", "EAFT"},
  };
  return rows;
}

const std::vector<Row>& training_rows() {
  static const std::string held_out = "val_size: 0.1";
  static const std::vector<Row> rows = {
      {"output_dir", Use::honoured, "x", "''", "the key is missing"},
      {"overwrite_output_dir", Use::honoured, "true", "some", "true or false is wanted"},
      {"do_train", Use::taken, "true", "false", "leaves nothing to do"},
      {"do_eval", Use::honoured, "true", "some", "true or false is wanted", held_out},
      {"do_predict", Use::neutral, "false", "true", "prediction is not supported"},
      {"per_device_train_batch_size", Use::honoured, "3", "0", "0 is out of range"},
      {"per_device_eval_batch_size", Use::honoured, "3", "0", "0 is out of range"},
      {"gradient_accumulation_steps", Use::honoured, "3", "1.5", "a whole number is wanted"},
      {"learning_rate", Use::honoured, "1e-4", "fast", "a number is wanted"},
      {"num_train_epochs", Use::honoured, "0.5", "0", "more than 0"},
      {"max_steps", Use::honoured, "7", "-2", "-2 is out of range"},
      {"lr_scheduler_type", Use::honoured, "cosine", "cosin", "the nearest is `cosine`"},
      {"lr_scheduler_kwargs", Use::honoured, "{num_cycles: 2}", "{cycles: 2}",
       "unknown option of this schedule", "lr_scheduler_type: cosine_with_restarts"},
      {"warmup_ratio", Use::honoured, "0.1", "1.5", "out of range"},
      {"warmup_steps", Use::honoured, "5", "1.5", "neither whole nor a share"},
      {"optim", Use::taken, "adamw_torch_fused", "sgd", "optimizer `sgd` is not supported"},
      {"weight_decay", Use::honoured, "0.1", "-1", "out of range"},
      {"adam_beta1", Use::honoured, "0.8", "1", "1 is out of range"},
      {"adam_beta2", Use::honoured, "0.8", "1", "1 is out of range"},
      {"adam_epsilon", Use::honoured, "1e-6", "0", "more than 0"},
      {"max_grad_norm", Use::honoured, "0.5", "big", "a number is wanted"},
      {"bf16", Use::honoured, "true", "2", "true or false is wanted"},
      {"fp16", Use::honoured, "true", "2", "true or false is wanted"},
      {"logging_steps", Use::honoured, "7", "0", "more than 0"},
      {"logging_first_step", Use::honoured, "true", "some", "true or false is wanted"},
      {"logging_nan_inf_filter", Use::neutral, "true", "false", "not finite stops the run"},
      {"save_strategy", Use::honoured, "epoch", "hourly",
       "supported are no, steps, epoch and best"},
      {"save_steps", Use::honoured, "7", "1.5", "neither whole nor a share"},
      {"save_total_limit", Use::honoured, "2", "-2", "out of range"},
      {"save_only_model", Use::honoured, "true", "some", "true or false is wanted"},
      {"eval_strategy", Use::honoured, "epoch", "best", "supported are no, steps and epoch",
       held_out},
      {"eval_steps", Use::honoured, "7", "1.5", "neither whole nor a share"},
      {"seed", Use::honoured, "7", "-1", "out of range"},
      {"data_seed", Use::honoured, "7", "-1", "out of range"},
      {"group_by_length", Use::neutral, "false", "true", "grouping by length"},
      {"dataloader_num_workers", Use::listed, "4"},
      {"dataloader_drop_last", Use::honoured, "true", "some", "true or false is wanted"},
      {"dataloader_pin_memory", Use::listed, "false"},
      {"ddp_timeout", Use::honoured, "60", "0", "more than 0"},
      {"resume_from_checkpoint", Use::honoured, "out/checkpoint-1", "[a]", "text is wanted"},
      {"report_to", Use::honoured, "none", "wndb", "`wndb` is no tracker"},
      {"run_name", Use::listed, "x"},
      {"neftune_noise_alpha", Use::neutral, "null", "5", "noise on embeddings"},
      {"average_tokens_across_devices", Use::neutral, "true", "false", "tokens of all ranks"},
      {"include_num_input_tokens_seen", Use::listed, "true"},
      {"label_smoothing_factor", Use::neutral, "0.0", "0.1", "label smoothing"},
      {"load_best_model_at_end", Use::honoured, "true", "some", "true or false is wanted",
       held_out + "\neval_strategy: epoch\nsave_strategy: epoch"},
      {"metric_for_best_model", Use::honoured, "eval_loss", "accuracy", "is not measured"},
      {"greater_is_better", Use::honoured, "false", "some", "true or false is wanted"},
      {"gradient_checkpointing", Use::taken, "true", "some", "true or false is wanted"},
      {"predict_with_generate", Use::neutral, "false", "true", "prediction is not supported"},
      {"disable_tqdm", Use::listed, "true"},
  };
  return rows;
}

class RunKeyTable : public RunFiles, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    RunFiles::SetUp();
    // The names of these tests have slashes: what the folder lies in goes with it.
    outermost_ = root_;
    while (outermost_.parent_path() != std::filesystem::temp_directory_path())
      outermost_ = outermost_.parent_path();
  }
  void TearDown() override { std::filesystem::remove_all(outermost_); }

  static const std::vector<Row>& rows() {
    const std::string part = GetParam();
    return part == "model"    ? model_rows()
           : part == "data"   ? data_rows()
           : part == "tuning" ? tuning_rows()
                              : training_rows();
  }

  /// A run of stage sft with one more key, which replaces one of the same name.
  static std::string with(const Row& row, const std::string& value) {
    std::map<std::string, std::string> keys = {{"model_name_or_path", "m"}, {"output_dir", "o"},
                                               {"do_train", "true"},        {"stage", "sft"},
                                               {"finetuning_type", "full"}, {"dataset", "d"}};
    std::string text;
    for (std::size_t begin = 0; begin < row.with.size();) {
      const std::size_t end = std::min(row.with.find('\n', begin), row.with.size());
      const std::string line = row.with.substr(begin, end - begin);
      keys[line.substr(0, line.find(':'))] = line.substr(line.find(':') + 2);
      begin = end + 1;
    }
    keys[row.key] = value;
    for (const auto& [key, one] : keys) text += key + ": " + one + "\n";
    return text;
  }

  std::filesystem::path outermost_;
};

TEST_P(RunKeyTable, TakesTheRightValueOfEveryKey) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.key);
    const auto run = read(with(row, row.right));

    if (!run) {
      ADD_FAILURE() << text_of(run);
      continue;
    }
    if (row.use == Use::honoured) {
      EXPECT_TRUE(source_of_key(*run, row.key).ends_with(" from train.yaml"))
          << source_of_key(*run, row.key);
    }
    bool is_listed = false;
    for (const std::string& note : run->notes)
      is_listed |= note.starts_with("accepted without effect: ") &&
                   (note + ",").find(" " + row.key + ",") != std::string::npos;
    EXPECT_EQ(is_listed, row.use == Use::listed);
  }
}

TEST_P(RunKeyTable, RefusesTheWrongValueOfEveryKeyByItsName) {
  for (const Row& row : rows()) {
    if (row.use == Use::listed) continue;
    SCOPED_TRACE(row.key + ": " + row.wrong);
    const std::string text = text_of(read(with(row, row.wrong)));

    EXPECT_NE(text.find(row.key), std::string::npos) << text;
    EXPECT_NE(text.find(row.says), std::string::npos) << text << "\nwanted: " << row.says;
  }
}

// A key cannot be half known: one letter less is an error that names the key.
TEST_P(RunKeyTable, NamesTheKeyWhereItsLastLetterIsMissing) {
  std::set<std::string> all;
  for (const auto* part : {&model_rows(), &data_rows(), &tuning_rows(), &training_rows()})
    for (const Row& row : *part) all.insert(row.key);
  for (const Row& row : rows()) {
    Row misspelt = row;
    misspelt.key.pop_back();
    if (all.contains(misspelt.key)) continue;
    SCOPED_TRACE(misspelt.key);
    const std::string text = text_of(read(with(misspelt, row.right)));

    EXPECT_NE(text.find("unknown key"), std::string::npos) << text;
    EXPECT_NE(text.find("`" + misspelt.key), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, RunKeyTable, testing::Values("model", "data", "tuning", "training"),
                         [](const auto& test) { return std::string(test.param); });

struct Conflict {
  std::string lines;
  std::string says;
};

// What LLaMA-Factory's parser refuses together (hparams/parser.py and the arguments' own checks).
const std::vector<Conflict>& conflicts() {
  static const std::vector<Conflict> all = {
      {"stage: pt\npredict_with_generate: true", "it belongs to stage: sft, not to \"pt\""},
      {"stage: pt\nneat_packing: true", "this belongs to stage sft"},
      {"stage: pt\ntrain_on_prompt: true", "this belongs to stage sft"},
      {"stage: pt\nmask_history: true", "this belongs to stage sft"},
      {"dataset: null", "names of dataset_info.json are wanted"},
      {"dataset: null\nval_size: 0.1", "names of dataset_info.json are wanted"},
      {"do_eval: true", "neither eval_dataset nor val_size is given"},
      {"do_predict: true", "prediction is not supported yet"},
      {"eval_dataset: e\nval_size: 0.1", "eval_dataset and val_size exclude each other"},
      {"streaming: true", "a stream has no end: max_steps is wanted"},
      {"streaming: true\nmax_steps: 5\nmax_samples: 5", "it excludes streaming"},
      {"streaming: true\nmax_steps: 5\nval_size: 0.1", "0.1 of a stream is unknown"},
      {"mask_history: true\ntrain_on_prompt: true", "exclude each other"},
      {"finetuning_type: freeze\nquantization_bit: 4", "it belongs to finetuning_type: lora"},
      {"quantization_bit: 4\nresize_vocab: true", "it excludes quantization_bit"},
      {"adapter_name_or_path: a", "it belongs to finetuning_type: lora, not to \"full\""},
      {"use_rslora: true", "it belongs to finetuning_type: lora, not to \"full\""},
      {"use_dora: true", "it belongs to finetuning_type: lora, not to \"full\""},
      {"loraplus_lr_ratio: 16", "it belongs to finetuning_type: lora, not to \"full\""},
      {"pissa_init: true", "it belongs to finetuning_type: lora, not to \"full\""},
      {"use_galore: true\ndeepspeed: {bf16: {}}", "it excludes deepspeed"},
      {"use_apollo: true\ndeepspeed: {bf16: {}}", "it excludes deepspeed"},
      {"interleave_probs: 0.5,0.5", "belongs to an interleaving mix_strategy"},
      {"mix_strategy: interleave_over\ninterleave_probs: 0.5,0.5",
       "2 probabilities for 1 data sets"}};
  return all;
}

class RunConflicts : public RunFiles {
 protected:
  static std::string run_of(const std::string& lines) {
    std::string text = "model_name_or_path: m\noutput_dir: o\ndo_train: true\n";
    for (const char* line : {"stage: sft", "finetuning_type: full", "dataset: d"}) {
      const std::string key = std::string(line).substr(0, std::string(line).find(':') + 1);
      if (("\n" + lines).find("\n" + key) == std::string::npos) text += line + std::string("\n");
    }
    return text + lines + "\n";
  }
};

TEST_F(RunConflicts, AreThoseOfLlamaFactory) {
  for (const Conflict& conflict : conflicts()) {
    const std::string text = text_of(read(run_of(conflict.lines)));
    EXPECT_NE(text.find(conflict.says), std::string::npos) << conflict.lines << "\n"
                                                           << text << "\nwanted: " << conflict.says;
  }
}

TEST_F(RunConflicts, ComeAllAtOnceWithMisspeltKeysAndWrongValues) {
  const std::string text = text_of(
      read(run_of("mask_history: true\ntrain_on_prompt: true\nval_size: 0.1\neval_dataset: e\n"
                  "interleave_probs: 0.5,0.5\nuse_dora: true\nleraning_rate: 1\nbf16: 3")));

  for (const char* says :
       {"mask_history and train_on_prompt exclude each other", "eval_dataset and val_size exclude",
        "belongs to an interleaving mix_strategy", "use_dora", "the nearest is `learning_rate`",
        "true or false is wanted"})
    EXPECT_NE(text.find(says), std::string::npos) << text << "\nwanted: " << says;
}

// Refused there for the sake of a launcher or a library alone: docs/guide/run-files.md has the table.
TEST_F(RunConflicts, ThatConcernOtherProgramsAloneRunHere) {
  const std::string stage3 = "deepspeed: {zero_optimization: {stage: 3}}\n";
  for (const std::string& lines :
       {stage3, stage3 + "use_unsloth: true", stage3 + "pure_bf16: true",
        stage3 + "save_only_model: true\nload_best_model_at_end: true\nval_size: 0.1\n"
                 "eval_strategy: epoch\nsave_strategy: epoch"})
    EXPECT_EQ(text_of(read(run_of(lines))), "accepted") << lines;
}

TEST_F(RunConflicts, BetweenTwoFoldersOfTokensNameBoth) {
  const auto both = read(run_of("tokenized_path: a\nunderkeel: {token_cache: b}"));
  const auto one = read(run_of("tokenized_path: a"));

  EXPECT_NE(text_of(both).find("tokenized_path names the folder of tokens too"), std::string::npos)
      << text_of(both);
  ASSERT_TRUE(one.has_value()) << text_of(one);
  EXPECT_EQ(one->data.token_cache, "a");
  EXPECT_TRUE(has_note(*one, "found there again by the same data files and keys"));
}

}  // namespace
}  // namespace underkeel::spec
