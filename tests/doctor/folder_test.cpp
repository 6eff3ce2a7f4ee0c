// Weights, adapters, checkpoints and tokens that do not go together.

#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/shapes.h"
#include "support/tensor_files.h"

namespace underkeel::doctor {
namespace {

constexpr Shape tiny = {256, 64, 2, 128, 4, 2, 0, false, true};
constexpr Shape tiny_untied = {256, 64, 2, 128, 4, 2};

/// A safetensors file of zeros, or of ones where `one` says so, in bf16.
std::string weights_file(
    const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& tensors, char fill = 1) {
  std::string header = "{";
  std::string data;
  for (const auto& [name, shape] : tensors) {
    std::int64_t elements = 1;
    std::string dims;
    for (const std::int64_t size : shape) {
      elements *= size;
      dims += (dims.empty() ? "" : ",") + std::to_string(size);
    }
    header += fmt::format("{}\"{}\":{{\"dtype\":\"BF16\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          header.size() == 1 ? "" : ",", name, dims, data.size(),
                          data.size() + 2 * static_cast<std::size_t>(elements));
    data += std::string(2 * static_cast<std::size_t>(elements), fill);
  }
  header += "}";
  std::string size(8, '\0');
  for (int i = 0; i < 8; ++i)
    size[static_cast<std::size_t>(i)] = static_cast<char>(header.size() >> (8 * i));
  return size + header + data;
}

std::vector<std::pair<std::string, std::vector<std::int64_t>>> all_tensors(const Shape& shape) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> tensors;
  for (const spec::Parameter& parameter : spec::parameters_of(model_of(shape)))
    tensors.emplace_back(parameter.name, parameter.shape());
  return tensors;
}

Diagnosis with_weights(const Shape& shape, const std::string& content) {
  Files files;
  files.write("model.json", model_json(shape));
  files.write("model.safetensors", content);
  return files.diagnose();
}

TEST(Folder, SaysThatWholeWeightsAreWhole) {
  const Diagnosis diagnosis = with_weights(tiny, weights_file(all_tensors(tiny)));
  EXPECT_NE(says(diagnosis, "weights-whole").find("90432 of 90432"), std::string::npos)
      << says(diagnosis, "weights-whole");
  EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 0);
}

TEST(Folder, NamesPlaceholders) {
  auto tensors = all_tensors(tiny_untied);
  for (auto& tensor : tensors) tensor.second = {0};
  const Diagnosis all = with_weights(tiny_untied, weights_file(tensors));
  EXPECT_NE(says(all, "weights-empty").find("(0 of 106816 parameters found)"), std::string::npos)
      << says(all, "weights-empty");
  EXPECT_EQ(exit_code_of(all, Engine::underkeel), 2);

  tensors = all_tensors(tiny_untied);
  tensors[0].second = {0};
  const Diagnosis one = with_weights(tiny_untied, weights_file(tensors));
  EXPECT_NE(
      says(one, "weights-empty").find("model.embed_tokens.weight, of no elements where [256, 64]"),
      std::string::npos)
      << says(one, "weights-empty");
}

TEST(Folder, RefusesTiedHeadsThatDiffer) {
  auto tensors = all_tensors(tiny);
  tensors.emplace_back("lm_head.weight", std::vector<std::int64_t>{256, 64});
  std::string content = weights_file(tensors);
  content.back() = 2;  // the head lies last

  const Diagnosis diagnosis = with_weights(tiny, content);

  EXPECT_NE(says(diagnosis, "tied-heads-differ")
                .find("lm_head.weight and model.embed_tokens.weight differ"),
            std::string::npos)
      << messages(diagnosis);
  EXPECT_TRUE(found(diagnosis, "tied-head-doubled").empty());
  EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 2);
}

TEST(Folder, SeesValuesThatAreNoNumbersAndSaysHowMuchItRead) {
  std::string content = weights_file(all_tensors(tiny));
  content[content.size() - 1] = '\x7f';  // bf16 0x7fc1: not a number; the last of model.norm.weight
  content[content.size() - 2] = '\xc1';

  const Diagnosis bad = with_weights(tiny, content);

  const std::string text = says(bad, "weights-not-finite");
  EXPECT_NE(
      text.find("1 tensor holds values that are no finite numbers; the first is element 63 of "
                "model.norm.weight"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("all of it"), std::string::npos) << text;
  EXPECT_EQ(exit_code_of(bad, Engine::underkeel), 2);
  EXPECT_FALSE(
      found(with_weights(tiny, weights_file(all_tensors(tiny))), "weights-finite").empty());
}

TEST(Folder, NamesWhatIsMissingDoubledOrOfAnotherShape) {
  auto tensors = all_tensors(tiny);
  tensors.emplace_back("lm_head.weight", std::vector<std::int64_t>{256, 64});
  EXPECT_NE(
      says(with_weights(tiny, weights_file(tensors)), "tied-head-doubled").find("32.8 KB twice"),
      std::string::npos);

  tensors = all_tensors(tiny);
  tensors.pop_back();
  EXPECT_NE(
      says(with_weights(tiny, weights_file(tensors)), "weights-missing").find("model.norm.weight"),
      std::string::npos);

  tensors = all_tensors(tiny);
  tensors[1].second = {64, 32};
  EXPECT_NE(says(with_weights(tiny, weights_file(tensors)), "weights-other-shape")
                .find("[64, 64] is due"),
            std::string::npos);
}

TEST(Folder, ReportsABrokenFileAndABrokenIndex) {
  const std::string content = weights_file(all_tensors(tiny));
  const Diagnosis cut = with_weights(tiny, content.substr(0, content.size() - 10));
  EXPECT_FALSE(found(cut, "weights-broken").empty());

  Files files;
  files.write("model.json", model_json(tiny));
  files.write("model-00001-of-00002.safetensors", content);
  test::write_text(files.at("model.safetensors.index.json"),
                   R"({"metadata": {"total_size": 4}, "weight_map": {"lm_head.weight":
                       "model-00002-of-00002.safetensors"}})");
  EXPECT_FALSE(found(files.diagnose(), "weights-broken").empty());
}

TEST(Folder, NamesAPointerInPlaceOfWeights) {
  Files files;
  files.question.paths.push_back(files.at("model"));
  test::write_text(files.at("model") / "config.json", model_json(tiny));
  test::write_text(files.at("model") / "model.safetensors",
                   "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 180864\n");

  const Diagnosis diagnosis = files.diagnose();

  const std::string text = says(diagnosis, "weights-broken");
  EXPECT_NE(text.find("a Git LFS pointer, not the file itself, which has 180,864 bytes"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("git lfs pull"), std::string::npos) << text;
}

TEST(Folder, TellsWeightsThatAreMissing) {
  // A folder of its own, whatever else it holds.
  Files files;
  files.write("model/config.json", model_json(tiny));
  files.write("model/tokenizer.json", "{}");
  files.question.paths = {files.at("model")};
  const Diagnosis alone = files.diagnose();
  EXPECT_NE(says(alone, "weights-absent").find("no weights in it"), std::string::npos)
      << messages(alone);
  EXPECT_TRUE(found(alone, "weights-finite").empty());
  EXPECT_EQ(exit_code_of(alone, Engine::underkeel), 2);

  // Beside a run its config may be all that is here; named by it, it is looked at too.
  const std::string run = "model_name_or_path: " + files.at("model").string() +
                          "\nstage: sft\nfinetuning_type: full\ndataset: d\noutput_dir: o\n";
  files.write("train.yaml", run);
  files.question.paths = {files.at("train.yaml")};
  const auto named = found(files.diagnose(), "weights-absent");
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].severity, Severity::warning);
  files.question.changes = {"underkeel.train_from_scratch=true"};
  EXPECT_TRUE(found(files.diagnose(), "weights-absent").empty());
  files.question.changes.clear();

  // Shards without their index, and an index without its shards.
  files.write("model/model-00001-of-00002.safetensors", weights_file(all_tensors(tiny)));
  files.question.paths = {files.at("model")};
  const Diagnosis without_index = files.diagnose();
  EXPECT_NE(says(without_index, "weights-without-index")
                .find("the first model-00001-of-00002.safetensors"),
            std::string::npos)
      << messages(without_index);
  EXPECT_EQ(exit_code_of(without_index, Engine::deepspeed), 2);
  std::filesystem::remove(files.at("model/model-00001-of-00002.safetensors"));
  const auto index = files.write("model/model.safetensors.index.json",
                                 R"({"metadata": {}, "weight_map": {"lm_head.weight":
                                     "model-00002-of-00002.safetensors"}})");
  for (const auto& given : {files.at("model"), index, files.at("train.yaml")}) {
    files.question.paths = {given};
    const Diagnosis without_shards = files.diagnose();
    EXPECT_NE(says(without_shards, "weights-broken").find("names a file that is not there"),
              std::string::npos)
        << messages(without_shards);
    EXPECT_TRUE(found(without_shards, "weights-finite").empty());
    EXPECT_EQ(exit_code_of(without_shards, Engine::underkeel), 2);
  }
}

TEST(Folder, TellsAnIndexAloneAndAnAdapterWithoutWeights) {
  for (const char* name : {"model.safetensors.index.json", "pytorch_model.bin.index.json"}) {
    Files files;
    files.write(name, R"({"weight_map": {"lm_head.weight": "model-00001-of-00001.safetensors"}})");
    EXPECT_EQ(exit_code_of(files.diagnose(), Engine::underkeel), 2) << name;
  }
  Files files;
  files.write("adapter/adapter_config.json",
              R"({"peft_type": "LORA", "r": 4, "target_modules": ["q_proj"]})");
  files.question.paths = {files.at("adapter")};
  const Diagnosis without = files.diagnose();
  EXPECT_NE(says(without, "adapter-absent").find("adapter_model.safetensors"), std::string::npos)
      << messages(without);
  EXPECT_EQ(exit_code_of(without, Engine::deepspeed), 2);
}

TEST(Folder, TakesAnAdapterForNoBrokenModel) {
  Files files;
  files.write("adapter/adapter_config.json",
              R"({"peft_type": "LORA", "r": 4, "target_modules": ["q_proj"]})");
  files.write(
      "adapter/adapter_model.safetensors",
      weights_file({{"base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight", {64, 4}}}));
  files.question.paths = {files.at("adapter")};
  const Diagnosis diagnosis = files.diagnose();
  EXPECT_TRUE(found(diagnosis, "weights-broken").empty()) << messages(diagnosis);
  EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 0);
}

const char* adapter_json =
    R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]})";

TEST(Folder, NamesAnAdapterFileOfFortyBytes) {
  Files files;
  files.write("model.json", model_json(tiny));
  files.write("adapter_config.json", adapter_json);
  const std::string header = R"({"__metadata__":{"format":"pt"}})";
  std::string size(8, '\0');
  size[0] = static_cast<char>(header.size());
  files.write("adapter_model.safetensors", size + header);

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_EQ(diagnosis.findings.front().id, "adapter-lacks-tensors") << messages(diagnosis);
  EXPECT_TRUE(found(diagnosis, "merge-not-built").empty());
  EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 2);
  const std::string text = says(diagnosis, "adapter-lacks-tensors");
  EXPECT_NE(text.find("(40 bytes) holds 0 tensors, 8 are due"), std::string::npos) << text;
}

TEST(Folder, NamesAnAdapterThatWasNeverTrained) {
  for (const bool trained : {false, true}) {
    Files files;
    files.write("model.json", model_json(tiny));
    files.write("adapter_config.json", adapter_json);
    std::vector<std::pair<std::string, std::vector<std::int64_t>>> tensors;
    for (const int layer : {0, 1})
      for (const char* module : {"q_proj", "v_proj"})
        for (const char* part : {"A", "B"})
          tensors.emplace_back(
              fmt::format("base_model.model.model.layers.{}.self_attn.{}.lora_{}.weight", layer,
                          module, part),
              part[0] == 'A' ? std::vector<std::int64_t>{4, 64} : std::vector<std::int64_t>{64, 4});
    files.write("adapter_model.safetensors", weights_file(tensors, trained ? 1 : 0));
    const Diagnosis diagnosis = files.diagnose();
    EXPECT_EQ(found(diagnosis, "adapter-never-trained").size(), trained ? 0u : 1u);
    EXPECT_EQ(found(diagnosis, "adapter-whole").size(), 1u) << messages(diagnosis);
    // A look at adapters is no merge.
    EXPECT_TRUE(found(diagnosis, "merge-not-built").empty()) << messages(diagnosis);
    EXPECT_EQ(diagnosis.underkeel.verdict, Verdict::unknown);
    EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 0);
    const bool leads =
        !diagnosis.findings.empty() && diagnosis.findings.front().id == "adapter-never-trained";
    EXPECT_EQ(leads, !trained);

    files.write("hardware.json", R"({"gpus_per_node": 0, "host_ram_gib": 64})");
    EXPECT_EQ(found(files.diagnose(), "merge-not-built").size(), 1u);
  }
}

TEST(Folder, KnowsWhichCheckpointIsTheNewestCompleteOne) {
  Files files;
  files.question.paths.push_back(files.at("out"));
  for (const char* step : {"100", "200", "300"})
    test::write_text(files.at("out") / fmt::format("checkpoint-{}", step) / "trainer_state.json",
                     "{}");
  for (const char* step : {"100", "200"}) {
    const auto folder = files.at("out") / fmt::format("checkpoint-{}", step);
    test::write_text(folder / "model.safetensors", weights_file(all_tensors(tiny)));
    for (const char* file : {"optimizer.pt", "scheduler.pt"}) test::write_text(folder / file, "x");
  }

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_NE(says(diagnosis, "checkpoint-newest").find("step 200"), std::string::npos)
      << says(diagnosis, "checkpoint-newest");
  EXPECT_NE(says(diagnosis, "checkpoint-not-complete").find("no weights"), std::string::npos);
}

TEST(Folder, NamesTheCheckpointsOfAFinishedRunBesideItsModel) {
  Files files;
  files.question.paths.push_back(files.at("out/"));  // as a shell completes it
  test::write_text(files.at("out") / "config.json", model_json(tiny));
  test::write_text(files.at("out") / "model.safetensors", weights_file(all_tensors(tiny)));
  const auto checkpoints = [&] { return says(files.diagnose(), "checkpoint-newest"); };
  EXPECT_NE(checkpoints().find("no checkpoint-newest"), std::string::npos) << checkpoints();
  EXPECT_TRUE(found(files.diagnose(), "checkpoint-none-complete").empty());
  for (const char* step : {"100", "200", "300"})
    for (const char* file :
         {"trainer_state.json", "model.safetensors", "optimizer.pt", "scheduler.pt"})
      if (std::string_view(step) != "300" || file[0] == 't')
        test::write_text(files.at("out") / fmt::format("checkpoint-{}", step) / file,
                         file[0] == 'm' ? weights_file(all_tensors(tiny)) : "{}");
  test::write_text(files.at("out") / "tmp-checkpoint-400" / "config.json", "{}");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_NE(says(diagnosis, "weights-whole").find("90432 of 90432"), std::string::npos)
      << messages(diagnosis);
  EXPECT_EQ(found(diagnosis, "weights-whole")[0].file, "out");
  const auto newest = found(diagnosis, "checkpoint-newest");
  ASSERT_EQ(newest.size(), 1u) << messages(diagnosis);
  EXPECT_EQ(newest[0].file, "checkpoint-200");
  const auto incomplete = found(diagnosis, "checkpoint-not-complete");
  ASSERT_EQ(incomplete.size(), 2u) << messages(diagnosis);
  EXPECT_NE(messages(diagnosis).find("the save was not finished"), std::string::npos);
}

TEST(Folder, CountsTheRanksOfADeepspeedCheckpoint) {
  Files files;
  files.question.paths.push_back(files.at("ds"));
  test::write_text(files.at("ds") / "latest", "global_step5\n");
  test::write_text(files.at("ds/global_step5/mp_rank_00_model_states.pt"), "x");
  for (const int rank : {0, 1, 2, 3})
    test::write_text(files.at("ds") / "global_step5" /
                         fmt::format("bf16_zero_pp_rank_{}_mp_rank_00_optim_states.pt", rank),
                     "x");
  EXPECT_FALSE(found(files.diagnose(), "checkpoint-whole").empty());
  files.write("hardware.json", R"({"gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 99})");
  const std::string other = says(files.diagnose(), "checkpoint-of-other-ranks");
  EXPECT_NE(other.find("written by 4 ranks, while 8 would run"), std::string::npos) << other;
  EXPECT_NE(other.find("universal"), std::string::npos);

  std::filesystem::remove(files.at("ds") / "global_step5" /
                          "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt");
  EXPECT_FALSE(found(files.diagnose(), "checkpoint-lacks-ranks").empty());
  std::filesystem::remove_all(files.at("ds") / "global_step5");
  EXPECT_FALSE(found(files.diagnose(), "checkpoint-latest-is-gone").empty());
}

void write_deepspeed_checkpoint(Files& files, const std::string& folder, int ranks) {
  test::write_text(files.at(folder) / "latest", "global_step5");
  test::write_text(files.at(folder) / "global_step5" / "mp_rank_00_model_states.pt", "x");
  for (int rank = 0; rank < ranks; ++rank)
    test::write_text(files.at(folder) / "global_step5" /
                         fmt::format("zero_pp_rank_{}_mp_rank_00_optim_states.pt", rank),
                     "x");
}

TEST(Folder, FindsTheRanksOfADeepspeedCheckpointWhereverItLies) {
  for (const char* beside : {"trainer_state.json", "config.json", "adapter_config.json"}) {
    Files files;
    write_deepspeed_checkpoint(files, "out/checkpoint-5", 2);
    test::write_text(files.at("out/checkpoint-5/trainer_state.json"), "{}");
    const bool is_model = std::string_view(beside) == "config.json";
    test::write_text(files.at("out/checkpoint-5") / beside, is_model ? model_json(tiny) : "{}");
    files.question.ranks = 4;
    const auto expect_told = [&](const std::string& how) {
      const Diagnosis diagnosis = files.diagnose();
      EXPECT_EQ(found(diagnosis, "checkpoint-of-other-ranks").size(), 1u)
          << how << beside << messages(diagnosis);
      EXPECT_NE(says(diagnosis, "checkpoint-of-other-ranks")
                    .find("written by 2 ranks, while 4 would run (--ranks)"),
                std::string::npos)
          << how << messages(diagnosis);
      EXPECT_EQ(exit_code_of(diagnosis, Engine::deepspeed), 2) << how;
    };
    files.question.paths = {files.at("out/checkpoint-5")};
    expect_told("the checkpoint, ");
    files.question.paths = {files.at("out")};
    expect_told("the output folder, ");
    files.question.paths.clear();
    files.write("train.yaml",
                "model_name_or_path: m\nfinetuning_type: full\n"
                "resume_from_checkpoint: " +
                    files.at("out/checkpoint-5").string() + "\n");
    expect_told("the run, ");
    files.question.ranks = 2;
    EXPECT_TRUE(found(files.diagnose(), "checkpoint-of-other-ranks").empty());
    EXPECT_FALSE(found(files.diagnose(), "checkpoint-whole").empty());
  }
}

TEST(Folder, KnowsTheUniversalFormOfACheckpoint) {
  const auto config = [](bool loads) {
    return fmt::format(R"({{"train_batch_size": 8, "zero_optimization": {{"stage": 2}},
                           "checkpoint": {{"load_universal": {}}}}})",
                       loads);
  };
  for (const bool loads : {false, true}) {
    Files files;
    files.write("ds_config.json", config(loads));
    files.question.ranks = 4;
    write_deepspeed_checkpoint(files, "ds", 2);
    files.question.paths.push_back(files.at("ds"));
    EXPECT_EQ(found(files.diagnose(), "checkpoint-not-universal").size(), loads ? 1u : 0u);
    EXPECT_EQ(found(files.diagnose(), "checkpoint-of-other-ranks").size(), loads ? 0u : 1u);
    std::filesystem::create_directories(files.at("ds/global_step5/zero/model.norm.weight"));
    EXPECT_EQ(found(files.diagnose(), "checkpoint-universal").size(), loads ? 1u : 0u);
    EXPECT_EQ(found(files.diagnose(), "checkpoint-universal-unasked").size(), loads ? 0u : 1u);
  }
}

TEST(Folder, SaysOnWhichRanksAResumeGoesWithoutTheCheckpoint) {
  Files files;
  files.write("ds_config.json", R"({"train_batch_size": 8, "zero_optimization": {"stage": 2}})");
  files.question.ranks = 4;
  EXPECT_TRUE(found(files.diagnose(), "resume-wants-as-many-ranks").empty());
  files.question.resumes = true;
  const std::string text = says(files.diagnose(), "resume-wants-as-many-ranks");
  EXPECT_NE(text.find("4 would run (--ranks)"), std::string::npos) << text;
  EXPECT_NE(text.find("universal form"), std::string::npos) << text;
}

TEST(Folder, TellsAStopTokenThatTheTemplateDoesNotWrite) {
  Files files;
  files.write("tokenizer_config.json",
              R"({"eos_token": "<|endoftext|>", "pad_token": {"content": "<|endoftext|>"}})");
  files.write("train.yaml", "model_name_or_path: m\nfinetuning_type: full\ntemplate: chatml\n");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_NE(says(diagnosis, "stop-token-differs").find("<|im_end|>"), std::string::npos)
      << says(diagnosis, "stop-token-differs");
  EXPECT_FALSE(found(diagnosis, "padding-is-the-end").empty());
}

TEST(Folder, DoesNotTakeAnIncompleteCheckpointOfOursForTheTrainers) {
  Files files;
  for (const char* name : {"training_args.json", "trainer_state.json", "model.safetensors"})
    files.write(std::string("out/checkpoint-4/") + name, "{}");
  files.question.paths = {files.at("out")};

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_TRUE(found(diagnosis, "checkpoint-newest").empty());
  const auto incomplete = found(diagnosis, "checkpoint-not-complete");
  ASSERT_EQ(incomplete.size(), 1u) << messages(diagnosis);
  EXPECT_NE(message_of(incomplete[0], Language::english).find("manifest"), std::string::npos)
      << messages(diagnosis);
}

TEST(CommandLineChanges, HoldForEveryRuleAlsoForTheModel) {
  const auto config = [](int vocabulary) {
    return R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
               "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
               "num_key_value_heads": 4, "vocab_size": )" +
           std::to_string(vocabulary) + R"(, "torch_dtype": "float32"})";
  };
  Files files;
  files.write("small/config.json", config(256));
  files.write("large/config.json", config(64'000));
  files.question.paths.clear();
  const auto yaml = [&](const std::string& folder) {
    return "model_name_or_path: " + files.at(folder).string() +
           "\nstage: pt\ndo_train: true\nfinetuning_type: full\ndataset: d\ncutoff_len: 64\n"
           "output_dir: out\n";
  };
  const auto bytes_of_step = [](const Diagnosis& diagnosis) {
    const auto& holding = diagnosis.underkeel.at(Phase::step, Space::device);
    return holding ? holding->high() : -1;
  };
  files.write("large.yaml", yaml("large"));
  const auto written = bytes_of_step(files.diagnose());
  files.question.paths.clear();
  files.write("small.yaml", yaml("small"));
  files.question.changes = {"model_name_or_path=" + files.at("large").string()};

  EXPECT_EQ(bytes_of_step(files.diagnose()), written);
}

}  // namespace
}  // namespace underkeel::doctor
