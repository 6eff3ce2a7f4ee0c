#pragma once
// A folder with data sets of stage sft, a tokenizer whose tokens are bytes, and what to ask for.

#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "data/data_report.h"
#include "data/dataset.h"
#include "data/template_tokens.h"
#include "data/write_file.h"
#include "support/places.h"
#include "support/temporary_folder.h"

namespace underkeel::data {

/// Ids are bytes; 256 and 257 are <s> and </s>, 258 and 259 <|im_start|> and <|im_end|>.
inline Tokenizer byte_tokenizer_for(const Template& style) {
  std::ifstream file(test::in_source("tests/data/goldens/tokenizer/bytes/tokenizer.json"));
  const std::string json(std::istreambuf_iterator<char>(file), {});
  const std::string config = R"({"bos_token":"<s>","eos_token":"</s>","added_tokens_decoder":{
                "256":{"content":"<s>"},"257":{"content":"</s>"},
                "258":{"content":"<|im_start|>"},"259":{"content":"<|im_end|>"}}})";
  const auto plain = Tokenizer::from_json(json, config);
  EXPECT_TRUE(plain) << to_text(plain.error());
  return *plain->with(template_changes(*plain, style));
}

class SftFolder : public testing::Test {
 protected:
  void SetUp() override {
    describe(R"({"data":{"file_name":"data.jsonl"}})");
    options.content = RecordContent::conversation;
    options.folder = folder.path();
    options.names = {"data"};
    options.packing = false;
    options.cutoff_tokens = 256;
    options.cache_folder = folder / "cache";
    use_template("empty");
  }

  void describe(std::string_view json) { write_file(folder / "dataset_info.json", json); }
  void write(const std::string& name, std::string_view content) {
    write_file(folder / name, content);
  }
  void use_template(std::string_view name) {
    const Template& style = **find_template(name);
    tokenizer = byte_tokenizer_for(style);
    options.style = ChatStyle::of(style);
  }

  Result<Datasets> load() { return load_datasets(files, *tokenizer, options); }
  std::string report(const Datasets& data, SamplerConfig order = {}) const {
    order.sample_count = data.training->count();
    return data_report({.datasets = data, .options = options, .order = order});
  }
  static Sample sample(const SampleSource& source, std::int64_t index) {
    Sample read;
    EXPECT_TRUE(source.read(index, read));
    return read;
  }
  /// Of the answer's or prompt's ids as text; ids above 255 as a question mark.
  static std::string text_of(const std::vector<std::int32_t>& ids) {
    std::string text;
    for (const std::int32_t id : ids) text += id < 256 ? static_cast<char>(id) : '?';
    return text;
  }

  test::TemporaryFolder folder;
  io::FileSystem files;
  std::optional<Tokenizer> tokenizer;
  DatasetOptions options;
};

}  // namespace underkeel::data
