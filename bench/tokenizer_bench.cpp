// Megabytes of text a second that a tokenizer turns into ids, for one file of text:
//
//   tokenizer_bench FOLDER TEXT.txt [--threads N] [--ids FILE]
//
// A line a measurement, with the word cache and without. A document is a paragraph of at least 4,096
// bytes. `--ids` writes all ids as little-endian 32-bit numbers, to compare with another program
// (bench/tokenizer_bench.py).

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "data/tokenizer.h"

namespace {

using underkeel::data::Tokenizer;

std::vector<std::string_view> documents_of(std::string_view text) {
  constexpr std::size_t smallest_bytes = 4096;
  std::vector<std::string_view> documents;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find("\n\n", std::min(begin + smallest_bytes, text.size()));
    end = end == text.npos ? text.size() : end + 2;
    documents.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return documents;
}

struct Pass {
  double elapsed_s = 0;
  std::size_t token_count = 0;
};

// Every thread takes each n-th document.
Pass encode_all(const Tokenizer& tokenizer, const std::vector<std::string_view>& documents,
                std::size_t thread_count, bool use_word_cache) {
  std::vector<std::size_t> counts(thread_count);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < thread_count; ++thread)
    threads.emplace_back([&, thread] {
      std::size_t count = 0;
      for (std::size_t index = thread; index < documents.size(); index += thread_count) {
        const auto ids = tokenizer.encode(documents[index], {.use_word_cache = use_word_cache});
        if (!ids) std::exit(3);
        count += ids->size();
      }
      counts[thread] = count;
    });
  for (std::thread& thread : threads) thread.join();
  Pass pass;
  pass.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const std::size_t count : counts) pass.token_count += count;
  return pass;
}

}  // namespace

int main(int count, char** arguments) {
  std::size_t thread_count = 1;
  std::string ids_file;
  for (int index = 3; index + 1 < count; index += 2) {
    if (std::strcmp(arguments[index], "--threads") == 0)
      thread_count = std::strtoul(arguments[index + 1], nullptr, 10);
    if (std::strcmp(arguments[index], "--ids") == 0) ids_file = arguments[index + 1];
  }
  if (count < 3 || thread_count < 1 || thread_count > 1024) {
    std::fprintf(stderr, "usage: tokenizer_bench FOLDER TEXT.txt [--threads N] [--ids FILE]\n");
    return 2;
  }
  const auto tokenizer = Tokenizer::load(arguments[1]);
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", underkeel::to_text(tokenizer.error()).c_str());
    return 2;
  }
  std::ifstream file(arguments[2], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto documents = documents_of(text);
  for (const bool use_word_cache : {true, false}) {
    // The first pass meets every word for the first time; the best of three later ones is the steady rate.
    const Pass first = encode_all(*tokenizer, documents, thread_count, use_word_cache);
    Pass best = first;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const Pass pass = encode_all(*tokenizer, documents, thread_count, use_word_cache);
      if (pass.elapsed_s < best.elapsed_s) best = pass;
    }
    const double megabytes = static_cast<double>(text.size()) * 1e-6;
    std::printf(
        "underkeel threads=%zu cache=%s bytes=%zu documents=%zu tokens=%zu first_mb_s=%.1f "
        "best_mb_s=%.1f\n",
        thread_count, use_word_cache ? "on" : "off", text.size(), documents.size(),
        best.token_count, megabytes / first.elapsed_s, megabytes / best.elapsed_s);
  }
  if (!ids_file.empty()) {
    std::ofstream out(ids_file, std::ios::binary);
    for (const std::string_view document : documents) {
      const auto ids = tokenizer->encode(document);
      if (!ids) return 3;
      out.write(reinterpret_cast<const char*>(ids->data()),
                static_cast<std::streamsize>(ids->size() * sizeof(std::int32_t)));
    }
  }
  return 0;
}
