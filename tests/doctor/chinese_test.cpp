// Every key with every kind of wrong value, asked in Chinese: Files::diagnose() fails a test where English is left.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/key_tables.h"
#include "doctor/shapes.h"
#include "spec/run_keys.h"

namespace underkeel::doctor {
namespace {

constexpr const char* wrong_values[] = {"null", "true",  "-1",    "0",   "1.5", "1e30",
                                        "\"\"", "\"x\"", "\"7\"", "[1]", "{}",  "{\"a\": 1}"};

/// An object with every key at `value`.
template <class Keys>
std::string all_at(const Keys& keys, std::string_view value) {
  std::string text;
  for (const auto& key : keys)
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", key.key, value);
  return "{" + text + "}";
}

/// As a file may have it: twenty keys at a time, since of more the others are only counted.
template <class Keys, class Ask>
void in_parts(const Keys& keys, Ask ask) {
  for (std::size_t begin = 0; begin < keys.size(); begin += 20)
    ask(keys.subspan(begin, std::min<std::size_t>(20, keys.size() - begin)));
}

struct Named {
  std::string_view key;
};

TEST(Chinese, IsSaidOfTheKeysThatARunFileReadsByName) {
  constexpr Named keys[] = {{"model_name_or_path"},
                            {"stage"},
                            {"do_train"},
                            {"dataset"},
                            {"dataset_dir"},
                            {"template"},
                            {"cutoff_len"},
                            {"max_samples"},
                            {"packing"},
                            {"neat_packing"},
                            {"output_dir"},
                            {"per_device_train_batch_size"},
                            {"per_device_eval_batch_size"},
                            {"gradient_accumulation_steps"},
                            {"learning_rate"},
                            {"num_train_epochs"},
                            {"max_steps"},
                            {"lr_scheduler_type"},
                            {"lr_scheduler_kwargs"},
                            {"warmup_steps"},
                            {"warmup_ratio"},
                            {"bf16"},
                            {"fp16"},
                            {"pure_bf16"},
                            {"save_steps"},
                            {"save_strategy"},
                            {"save_total_limit"},
                            {"eval_strategy"},
                            {"eval_steps"},
                            {"eval_dataset"},
                            {"val_size"},
                            {"logging_steps"},
                            {"max_grad_norm"},
                            {"weight_decay"},
                            {"adam_beta1"},
                            {"adam_beta2"},
                            {"adam_epsilon"},
                            {"optim"},
                            {"seed"},
                            {"deepspeed"},
                            {"underkeel"},
                            {"resume_from_checkpoint"},
                            {"mix_strategy"},
                            {"interleave_probs"},
                            {"disable_gradient_checkpointing"},
                            {"train_on_prompt"},
                            {"mask_history"},
                            {"default_system"}};
  constexpr Named own[] = {{"ranks"},
                           {"threads"},
                           {"device"},
                           {"memory"},
                           {"recompute"},
                           {"guard"},
                           {"matmul_timing"},
                           {"collective_time_limit"},
                           {"packing_attention"},
                           {"skip_broken_records"},
                           {"token_cache"},
                           {"train_from_scratch"},
                           {"rank"}};
  for (const char* value : wrong_values) {
    in_parts(std::span<const Named>(keys), [&](std::span<const Named> part) {
      Files files;
      files.write("run.yaml", all_at(part, value));
      files.diagnose();
    });
    Files files;
    files.write(
        "run.yaml",
        fmt::format("{{\"stage\": \"sft\", \"finetuning_type\": \"full\", \"underkeel\": {}}}",
                    all_at(std::span<const Named>(own), value)));
    files.diagnose();
  }
}

TEST(Chinese, IsSaidOfEveryDeepspeedKey) {
  for (const char* value : wrong_values)
    for (const SectionTable& table : section_tables())
      in_parts(table.keys, [&](std::span<const KeyRule> keys) {
        std::string text = all_at(keys, value);
        std::string section(table.section.name);
        while (!section.empty()) {
          const std::size_t dot = section.rfind('.');
          text = fmt::format("{{\"{}\": {}}}",
                             section.substr(dot == std::string::npos ? 0 : dot + 1), text);
          section = dot == std::string::npos ? "" : section.substr(0, dot);
        }
        Files files;
        files.write("ds_config.json", text);
        files.diagnose();
      });
}

TEST(Chinese, IsSaidOfEveryKeyOfARunFile) {
  for (const char* value : wrong_values)
    in_parts(spec::run_keys(), [&](std::span<const spec::RunKey> keys) {
      Files files;
      files.write("config.json", model_json(llama_7b));
      const std::string text = all_at(keys, value);
      files.write("run.yaml", text.substr(0, text.size() - 1) +
                                  ", \"finetuning_type\": \"full\", \"cutoff_len\": 8}");
      files.diagnose();
    });
}

TEST(Chinese, IsSaidOfEveryKeyOfAMachineAModelAndAccelerate) {
  constexpr Named machine[] = {{"host_ram_gib"},
                               {"gpu_mem_gib"},
                               {"gpus_per_node"},
                               {"nodes"},
                               {"gpu_name"},
                               {"memlock_gib"},
                               {"swap_free_gib"},
                               {"out_free_gib"},
                               {"compute_capability"},
                               {"cores"},
                               {"link_bytes_per_s"},
                               {"link_latency_s"},
                               {"memory_bytes_per_s"},
                               {"matmul_flops_per_s"},
                               {"rates_are_measured"},
                               {"gpu_memory_gib"},
                               {"ram"}};
  constexpr Named model[] = {{"model_type"},
                             {"architectures"},
                             {"hidden_size"},
                             {"num_hidden_layers"},
                             {"num_attention_heads"},
                             {"num_key_value_heads"},
                             {"intermediate_size"},
                             {"vocab_size"},
                             {"rms_norm_eps"},
                             {"rope_theta"},
                             {"rope_scaling"},
                             {"tie_word_embeddings"},
                             {"hidden_act"},
                             {"torch_dtype"},
                             {"max_position_embeddings"},
                             {"head_dim"},
                             {"sliding_window"},
                             {"attention_bias"},
                             {"quantization_config"},
                             {"hiden_size"}};
  constexpr Named accelerate[] = {
      {"compute_environment"}, {"distributed_type"}, {"mixed_precision"},
      {"num_processes"},       {"num_machines"},     {"machine_rank"},
      {"deepspeed_config"},    {"zero_stage"},       {"num_proceses"}};
  for (const char* value : wrong_values)
    for (const std::span<const Named> keys :
         {std::span<const Named>(machine), std::span<const Named>(model),
          std::span<const Named>(accelerate)}) {
      Files files;
      files.write("file.json", all_at(keys, value));
      files.diagnose();
    }
}

}  // namespace
}  // namespace underkeel::doctor
