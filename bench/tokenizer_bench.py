#!/usr/bin/env python3
"""Megabytes a second of Hugging Face `tokenizers` beside bench/tokenizer_bench, and whether their ids agree.

    tokenizer_bench.py prose FOLDER OUT.txt           text of the HTML and text files below FOLDER (packages of documentation)
    tokenizer_bench.py uniform OUT.txt                text of made-up words, more than 500,000 different ones, all equally frequent
    tokenizer_bench.py zipf OUT.txt                   the same with frequencies as in languages: one by rank
    tokenizer_bench.py train FOLDER TEXT...           a byte-level tokenizer of 128,000 tokens with Llama 3's pattern
    tokenizer_bench.py measure FOLDER TEXT PROGRAM    both, in turns, on one thread each

Needs tokenizers.
"""
import gzip
import html
import itertools
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SMALLEST_DOCUMENT_BYTES = 4096


def write_prose(folder, out):
    parts = []
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if not path.is_file() or not re.search(r"\.(html|txt)(\.gz)?$", path.name):
            continue
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = data.decode("utf-8", "ignore")
        if ".html" in path.name:
            text = re.sub(r"(?s)<(script|style).*?</\1>", "", text)
            text = html.unescape(re.sub(r"<[^>]*>", "", text))
        parts.append(re.sub(r"\n\s*\n+", "\n\n", text))
    pathlib.Path(out).write_text("\n\n".join(parts), encoding="utf-8", newline="\n")


def write_words(out, line_count, is_zipf, seed=3):
    source = random.Random(seed)
    syllables = [a + b + c for a in "bcdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "ea", "ou") for c in ("", "n", "r", "s", "l", "t")]
    words = sorted({"".join(source.choices(syllables, k=source.choice((2, 2, 3, 3, 4)))) for _ in range(1_100_000)})
    source.shuffle(words)
    sums = list(itertools.accumulate(1 / (rank + 3) if is_zipf else 1.0 for rank in range(len(words))))
    lines = []
    for _ in range(line_count):
        line = " ".join(source.choices(words, cum_weights=sums, k=12))
        lines.append(line[0].upper() + line[1:] + ".")
    text = "\n\n".join(" ".join(lines[i:i + 8]) for i in range(0, len(lines), 8))
    pathlib.Path(out).write_text(text, encoding="utf-8")
    print("distinct words:", len(set(re.findall(r"[A-Za-z]+", text))))


def train(folder, texts):
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train(list(texts), trainers.BpeTrainer(
        vocab_size=128_000, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(pathlib.Path(folder) / "tokenizer.json"))
    print("vocabulary:", tokenizer.get_vocab_size())


def documents_of(data):
    begin = 0
    while begin < len(data):
        end = data.find(b"\n\n", min(begin + SMALLEST_DOCUMENT_BYTES, len(data)))
        end = len(data) if end < 0 else end + 2
        yield data[begin:end].decode("utf-8")
        begin = end


def measure(folder, text, program):
    data = pathlib.Path(text).read_bytes()
    documents = list(documents_of(data))
    tokenizer = Tokenizer.from_file(str(pathlib.Path(folder) / "tokenizer.json"))
    rates, ids = [], []
    with tempfile.TemporaryDirectory() as scratch:
        ours = pathlib.Path(scratch) / "ids"
        for turn in range(2):
            subprocess.run([program, folder, text, "--ids", str(ours)], check=True)
            begin = time.perf_counter()
            ids = [tokenizer.encode(document, add_special_tokens=False).ids for document in documents]
            rates.append(len(data) * 1e-6 / (time.perf_counter() - begin))
            print(f"tokenizers threads=1 bytes={len(data)} documents={len(documents)} "
                  f"tokens={sum(map(len, ids))} mb_s={rates[-1]:.2f}", flush=True)
        flat = [one for document in ids for one in document]
        print("ids equal:", struct.pack(f"<{len(flat)}I", *flat) == ours.read_bytes())


def main():
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "train":
        train(arguments[0], arguments[1:])
    elif command in ("uniform", "zipf"):
        write_words(arguments[0], 160_000 if command == "uniform" else 400_000, command == "zipf")
    else:
        {"prose": write_prose, "measure": measure}[command](*arguments)


if __name__ == "__main__":
    main()
