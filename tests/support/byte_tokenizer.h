#pragma once
// A byte-level tokenizer without merges: one byte of text is one token, and its id is the byte.
// Ids 0, 1 and 2 stand for <|endoftext|> (ends and pads), <|im_start|> and <|im_end|> instead.

#include <filesystem>

namespace underkeel::test {

/// Writes tokenizer.json and tokenizer_config.json into `folder`.
void write_byte_tokenizer(const std::filesystem::path& folder);

}  // namespace underkeel::test
