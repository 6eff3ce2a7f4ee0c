#include "support/byte_tokenizer.h"

#include <string>

#include <nlohmann/json.hpp>

#include "support/text_files.h"

namespace underkeel::test {
namespace {

constexpr const char* special_tokens[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};

/// GPT-2's spelling of a byte: printable Latin-1 as itself, the other 68 from U+0100 on in order.
std::string spelling_of(int byte) {
  const auto printable = [](int b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
  };
  int code_point = byte;
  if (!printable(byte)) {
    code_point = 256;
    for (int b = 0; b < byte; ++b) code_point += printable(b) ? 0 : 1;
  }
  if (code_point < 128) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0 | (code_point >> 6)), static_cast<char>(0x80 | (code_point & 63))};
}

}  // namespace

void write_byte_tokenizer(const std::filesystem::path& folder) {
  nlohmann::ordered_json vocabulary;
  nlohmann::ordered_json added = nlohmann::ordered_json::array();
  for (int id = 0; id < 256; ++id) {
    const bool special = id < 3;
    vocabulary[special ? special_tokens[id] : spelling_of(id)] = id;
    if (special)
      added.push_back({{"id", id},
                       {"content", special_tokens[id]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
  }
  const nlohmann::ordered_json byte_level = {{"type", "ByteLevel"},
                                             {"add_prefix_space", false},
                                             {"trim_offsets", true},
                                             {"use_regex", true}};
  const nlohmann::ordered_json tokenizer = {{"version", "1.0"},
                                            {"truncation", nullptr},
                                            {"padding", nullptr},
                                            {"added_tokens", added},
                                            {"normalizer", nullptr},
                                            {"pre_tokenizer", byte_level},
                                            {"post_processor", nullptr},
                                            {"decoder", byte_level},
                                            {"model",
                                             {{"type", "BPE"},
                                              {"dropout", nullptr},
                                              {"unk_token", nullptr},
                                              {"continuing_subword_prefix", nullptr},
                                              {"end_of_word_suffix", nullptr},
                                              {"fuse_unk", false},
                                              {"byte_fallback", false},
                                              {"ignore_merges", false},
                                              {"vocab", vocabulary},
                                              {"merges", nlohmann::ordered_json::array()}}}};
  write_text(folder / "tokenizer.json", tokenizer.dump(1) + "\n");
  const nlohmann::ordered_json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                         {"eos_token", special_tokens[0]},
                                         {"pad_token", special_tokens[0]},
                                         {"model_max_length", 1000000},
                                         {"clean_up_tokenization_spaces", false}};
  write_text(folder / "tokenizer_config.json", config.dump(2) + "\n");
}

}  // namespace underkeel::test
