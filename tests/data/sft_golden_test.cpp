// Samples, labels, packs and orders against those of LLaMA-Factory itself: tests/data/goldens/sft/,
// made by scripts/make_sft_goldens.

#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "data/dataset.h"
#include "data/template_tokens.h"
#include "support/places.h"
#include "support/temporary_folder.h"

namespace underkeel::data {
namespace {

using Json = nlohmann::json;

const std::filesystem::path goldens = test::in_source("tests/data/goldens/sft");

std::vector<Json> lines_of(const char* name) {
  std::ifstream file(goldens / name);
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

Json json_of(const char* name) {
  std::ifstream file(goldens / name);
  return Json::parse(file);
}

/// 12i5t1e: 12 ignored labels, 5 that are their token, 1 that is another one, the end token.
std::string kinds(const Sample& sample, std::int32_t end) {
  std::string runs;
  char last = 0;
  int count = 0;
  const auto close = [&] {
    if (count > 0) runs += std::to_string(count) + last;
  };
  for (std::size_t i = 0; i < sample.tokens.size(); ++i) {
    const std::int32_t label = sample.labels[i];
    const char kind = label == ignored_label ? 'i' : label == sample.tokens[i] ? 't' : 'e';
    EXPECT_TRUE(kind != 'e' || label == end);
    if (kind != last) {
      close();
      count = 0;
    }
    last = kind;
    ++count;
  }
  close();
  return runs;
}

class SftGoldens : public testing::Test {
 protected:
  /// What a run file with these keys asks for.
  void set(const Json& keys) {
    const Template* style = find_template(keys.at("template").get<std::string>()).value();
    const Tokenizer plain = Tokenizer::load(goldens).value();
    tokenizer = plain.with(template_changes(plain, *style)).value();
    options = DatasetOptions{.content = RecordContent::conversation, .folder = goldens};
    options.style = ChatStyle::of(*style);
    if (keys.contains("default_system")) options.style.system = keys["default_system"];
    if (keys.contains("enable_thinking"))
      options.style.enable_thinking = keys["enable_thinking"].is_null()
                                          ? std::nullopt
                                          : std::optional<bool>(keys["enable_thinking"]);
    options.style.preserve_thinking = keys.value("preserve_thinking", false);
    options.train_on_prompt = keys.value("train_on_prompt", false);
    options.mask_history = keys.value("mask_history", false);
    options.names = keys.value("dataset", std::vector<std::string>{"chats"});
    options.evaluation_names = keys.value("eval_dataset", std::vector<std::string>());
    options.neat_packing = keys.value("neat_packing", false);
    options.packing = keys.value("packing", options.neat_packing);
    options.cutoff_tokens = keys.value("cutoff_len", 2048) - (options.packing ? 1 : 0);
    if (keys.contains("max_samples")) options.max_samples = keys["max_samples"];
    options.validation_size = keys.value("val_size", 0.0);
    options.batches = {.batch_records = keys.value("preprocessing_batch_size", 1000),
                       .shards = keys.value("preprocessing_num_workers", 1)};
    const std::string mixing = keys.value("mix_strategy", "concat");
    options.mix_strategy = strategy_of(mixing);
    options.mix_probabilities = keys.value("interleave_probs", std::vector<double>());
    options.cache_folder = folder / "cache";
    options.thread_count = 3;
  }

  static MixStrategy strategy_of(const std::string& name) {
    return name == "interleave_under"  ? MixStrategy::interleave_under
           : name == "interleave_over" ? MixStrategy::interleave_over
           : name == "interleave_once" ? MixStrategy::interleave_once
                                       : MixStrategy::concat;
  }

  /// Samples as the goldens have them: ids, kinds of labels, and in packs where positions begin.
  void expect_samples(const SampleSource& source, const Json& expected) const {
    ASSERT_EQ(source.count(), static_cast<std::int64_t>(expected.size()));
    for (std::int64_t index = 0; index < source.count(); ++index) {
      const Json& wanted = expected[static_cast<std::size_t>(index)];
      Sample sample;
      ASSERT_TRUE(source.read(index, sample));
      EXPECT_EQ(source.tokens_in(index), static_cast<std::int64_t>(sample.tokens.size()));
      EXPECT_EQ(sample.tokens, wanted[0].get<std::vector<std::int32_t>>()) << "sample " << index;
      EXPECT_EQ(kinds(sample, tokenizer->special_tokens().end->id), wanted[1].get<std::string>())
          << "sample " << index;
      if (wanted.size() < 3) continue;
      std::vector<std::int32_t> starts;
      std::int32_t at = 0;
      for (const std::int32_t length : sample.sequence_lengths) {
        starts.push_back(at);
        at += length;
      }
      EXPECT_EQ(starts, wanted[2].get<std::vector<std::int32_t>>()) << "sample " << index;
    }
  }

  test::TemporaryFolder folder;
  io::FileSystem files;
  std::optional<Tokenizer> tokenizer;
  DatasetOptions options;
};

TEST_F(SftGoldens, HaveEveryTemplateInEveryMode) {
  const auto lines = lines_of("templates.jsonl");
  ASSERT_GT(lines.size(), all_templates().size());
  for (const Json& line : lines) {
    SCOPED_TRACE(line["options"].dump());
    set(line["options"]);

    const auto data = load_datasets(files, *tokenizer, options);

    ASSERT_TRUE(data) << to_text(data.error());
    EXPECT_EQ(tokenizer->special_tokens().end->id, line["eos"]);
    EXPECT_EQ(tokenizer->special_tokens().padding->id, line["pad"]);
    expect_samples(*data->training, line["samples"]);
    if (line.contains("jinja")) {
      EXPECT_EQ(jinja_of(*tokenizer, *options.style.style, options.style.system),
                line["jinja"].get<std::string>());
    }
  }
}

TEST_F(SftGoldens, HaveEveryFormat) {
  const Json formats = json_of("formats.json");
  for (const auto& [name, rows] : formats.items()) {
    SCOPED_TRACE(name);
    const auto entries = read_dataset_info(files, goldens, {name});
    ASSERT_TRUE(entries) << to_text(entries.error());
    std::size_t row = 0;
    const Json& expected_rows = rows;  // a lambda takes no name of a structured binding
    RecordWork work;
    work.make = [](const Record&) { return Result<TokenisedRecord>(TokenisedRecord{}); };
    work.take = [&](const JudgedRecord& judged) {
      const Json& expected = expected_rows[row++];
      EXPECT_EQ(judged.state == RecordState::usable, !expected.is_null()) << "row " << row;
      if (expected.is_null() || judged.state != RecordState::usable) return Result<void>();
      EXPECT_EQ(judged.record.talk.system, expected["system"].get<std::string>());
      std::vector<std::string> texts;
      for (const Message& message : judged.record.talk.messages) texts.push_back(message.text);
      EXPECT_EQ(texts, expected["messages"].get<std::vector<std::string>>()) << "row " << row;
      return Result<void>();
    };

    const auto report =
        read_records(files, entries->front(), {.content = RecordContent::conversation}, work);

    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_EQ(row, rows.size());
  }
}

TEST_F(SftGoldens, HaveEveryWayToMixDataSets) {
  const Json orders = json_of("orders.json");
  std::vector<std::vector<std::uint32_t>> sets;
  for (const std::uint32_t length : orders["lengths"]) {
    auto& set = sets.emplace_back();
    for (std::uint32_t i = 0; i < length; ++i)
      set.push_back(static_cast<std::uint32_t>(100 * (sets.size() - 1)) + i);
  }
  for (const Json& mixed : orders["mixed"])
    EXPECT_EQ(mix(sets, strategy_of(mixed["strategy"]),
                  mixed["probabilities"].get<std::vector<double>>(), 42),
              mixed["order"].get<std::vector<std::uint32_t>>())
        << mixed.dump();
}

TEST_F(SftGoldens, HaveTheSamplesOfWholeRuns) {
  for (const Json& line : lines_of("runs.jsonl")) {
    SCOPED_TRACE(line["options"].dump());
    set(line["options"]);

    const auto data = load_datasets(files, *tokenizer, options);

    ASSERT_TRUE(data) << to_text(data.error());
    expect_samples(*data->training, line["train"]);
    ASSERT_EQ(data->evaluation != nullptr, line.contains("eval"));
    if (data->evaluation) expect_samples(*data->evaluation, line["eval"]);
  }
}

}  // namespace
}  // namespace underkeel::data
