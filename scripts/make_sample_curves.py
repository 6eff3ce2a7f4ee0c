#!/usr/bin/env python3
"""Writes tests/train/goldens/curves/*.json: the Trainer on LLaMA-Factory's own samples.

As scripts/make_trainer_goldens.py, for four families, stage sft unpacked and packed, and blocks of stage
pt. The samples, labels and packs of stage sft are those that LLaMA-Factory made for
tests/data/goldens/sft/runs.jsonl; blocks are made here as it makes them. Where several samples lie in one
row, the Trainer gets positions that restart and a mask that keeps them apart (and, where the run says
packing_attention: shared, neither, as LLaMA-Factory does it). Weights are a formula of name and element
that the test repeats. Needs torch, transformers, accelerate, safetensors and tokenizers from PyPI. Run
from the repository's root:

    python3 scripts/make_sample_curves.py [NAME ...]
"""

import json
import re
import shutil

import make_trainer_goldens as base

ROOT = base.ROOT
OUT = ROOT / "tests/train/goldens/curves"
SFT = "tests/data/goldens/sft"
TINY = "examples/tiny/model"

SIZES = dict(vocab_size=1536, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=12, max_position_embeddings=512, rms_norm_eps=1e-6,
             torch_dtype="float32", hidden_act="silu", rope_theta=10000.0, bos_token_id=None, eos_token_id=0,
             pad_token_id=1)
FAMILIES = {
    "llama": dict(architectures=["LlamaForCausalLM"], model_type="llama", tie_word_embeddings=True),
    "mistral": dict(architectures=["MistralForCausalLM"], model_type="mistral", sliding_window=9,
                    tie_word_embeddings=False),
    "qwen2": dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", use_sliding_window=False,
                  tie_word_embeddings=False),
    "qwen3": dict(architectures=["Qwen3ForCausalLM"], model_type="qwen3", attention_bias=False,
                  use_sliding_window=False, tie_word_embeddings=True),
}

BASE = dict(finetuning_type="full", do_train=True, per_device_train_batch_size=2, learning_rate=1e-3,
            logging_steps=1, save_strategy="no", max_steps=60, warmup_steps=5)
SFT_RUN = dict(stage="sft", template="llama3", dataset="numbers,letters")
PACKED = dict(SFT_RUN, template="fewshot", packing=True, cutoff_len=30)
NEAT = dict(SFT_RUN, template="fewshot", neat_packing=True, cutoff_len=30)
PT_RUN = dict(stage="pt", dataset="logbook", packing=True, cutoff_len=48, max_samples=60)
SHARED = dict(underkeel=dict(packing_attention="shared"))

# name -> (family, ranks, keys of the run file beyond BASE)
SETTINGS = {
    "sft_llama": ("llama", 1, dict(SFT_RUN, gradient_accumulation_steps=3, lr_scheduler_type="cosine")),
    "sft_qwen2_two_ranks": ("qwen2", 2, dict(SFT_RUN, gradient_accumulation_steps=2)),
    "sft_mistral": ("mistral", 1, dict(SFT_RUN, per_device_train_batch_size=3, weight_decay=0.1)),
    "sft_qwen3_mixed": ("qwen3", 1, dict(SFT_RUN, mix_strategy="interleave_over", interleave_probs="0.3,0.7",
                                         gradient_accumulation_steps=2)),
    "packed_qwen2": ("qwen2", 1, dict(PACKED, gradient_accumulation_steps=2)),
    "packed_mistral_two_ranks": ("mistral", 2, PACKED),
    "packed_llama_shared": ("llama", 1, dict(PACKED, gradient_accumulation_steps=2, **SHARED)),
    "neat_qwen3": ("qwen3", 1, dict(NEAT, gradient_accumulation_steps=2)),
    "neat_llama_two_ranks": ("llama", 2, dict(NEAT, gradient_accumulation_steps=2)),
    "blocks_qwen2": ("qwen2", 1, dict(PT_RUN, gradient_accumulation_steps=3)),
    "blocks_llama_two_ranks": ("llama", 2, dict(PT_RUN, gradient_accumulation_steps=2)),
    "blocks_mistral_shared": ("mistral", 1, dict(PT_RUN, **SHARED)),
}


def weights_of(model):
    """The values of every parameter: a hash of name and element, spread evenly; norms near 1."""
    import numpy
    import torch
    for name, parameter in model.named_parameters():
        start = 2166136261
        for byte in name.encode():
            start = (start ^ byte) * 16777619 & 0xFFFFFFFF
        x = numpy.arange(parameter.numel(), dtype=numpy.uint32) * numpy.uint32(0x9E3779B9) + numpy.uint32(start)
        for shift, factor in [(16, 0x85EBCA6B), (13, 0xC2B2AE35)]:
            x ^= x >> numpy.uint32(shift)
            x *= numpy.uint32(factor)
        x ^= x >> numpy.uint32(16)
        unit = (x >> numpy.uint32(8)).astype(numpy.float64) / 2**23 - 1  # [-1, 1), exact in f32
        values = 1 + unit / 8 if "norm" in name else unit / 8
        with torch.no_grad():
            parameter.copy_(torch.tensor(values.astype(numpy.float32)).reshape(parameter.shape))


def sft_rows(run):
    """Rows of (ids, labels, starts of the samples in it), as LLaMA-Factory made them."""
    asked = {"template": run["template"], "dataset": run["dataset"].split(",")}
    for key in ["packing", "neat_packing", "cutoff_len", "preprocessing_batch_size", "mix_strategy"]:
        if key in run:
            asked[key] = run[key]
    if "interleave_probs" in run:
        asked["interleave_probs"] = [float(one) for one in run["interleave_probs"].split(",")]
    for line in (ROOT / SFT / "runs.jsonl").read_text().splitlines():
        made = json.loads(line)
        if made["options"] != asked:
            continue
        rows = []
        for ids, kinds, *starts in made["train"]:
            labels = []
            for count, kind in re.findall(r"(\d+)([a-z])", kinds):
                assert kind in "it", kinds
                labels += [-100 if kind == "i" else 0] * int(count)
            labels = [one if kept == 0 else -100 for one, kept in zip(ids, labels)]
            rows.append((ids, labels, starts[0] if starts else [0]))
        return rows
    raise SystemExit(f"runs.jsonl has no run of {asked}")


def pt_rows(run, shared):
    """Blocks of the texts in a row; a target is left out where a text begins."""
    from tokenizers import Tokenizer
    info = json.loads((ROOT / "examples/tiny/dataset_info.json").read_text())[run["dataset"]]
    lines = (ROOT / "examples/tiny" / info["file_name"]).read_text().splitlines()
    texts = [json.loads(line)[info["columns"]["prompt"]] for line in lines if line.strip()][:run["max_samples"]]
    tokenizer = Tokenizer.from_file(str(ROOT / TINY / "tokenizer.json"))
    eos = json.loads((ROOT / TINY / "tokenizer_config.json").read_text())["eos_token"]
    flat, begins = [], set()
    for text in texts:
        begins.add(len(flat))
        flat += tokenizer.encode(text + eos, add_special_tokens=False).ids
    length = run["cutoff_len"] - 1  # packing: true is written
    rows = []
    for first in range(0, len(flat) // length * length, length):
        starts = sorted({0} | {at - first for at in begins if first <= at < first + length and not shared})
        rows.append((flat[first:first + length], flat[first:first + length], starts))
    return rows


def collate(rows, shared, window):
    """`shared`: samples of a row see those before them. In packs their positions restart all the same, as
    LLaMA-Factory's do; a block of texts (a row of one start then) has none of its own."""
    import torch
    width = max(len(ids) for ids, _, _ in rows)
    pad = lambda one, value: one + [value] * (width - len(one))
    ids = torch.tensor([pad(list(one), 1) for one, _, _ in rows])
    mask = torch.zeros(len(rows), 1, width, width)
    positions = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full((len(rows), width), -100)
    for at, (row, targets, starts) in enumerate(rows):
        number = torch.full((width,), -1)
        for index, begin in enumerate(starts):
            end = starts[index + 1] if index + 1 < len(starts) else len(row)
            number[begin:end] = 0 if shared else index
            positions[at, begin:end] = torch.arange(end - begin)
            labels[at, begin:end] = torch.tensor(list(targets[begin:end]))
            labels[at, begin] = -100
        distance = torch.arange(width)[:, None] - torch.arange(width)[None, :]
        seen = (number[:, None] == number[None, :]) & (distance >= 0)
        if window:
            seen &= distance < window
        seen |= torch.eye(width, dtype=torch.bool)
        mask[at, 0] = torch.where(seen, 0.0, torch.finfo(torch.float32).min)
    return dict(input_ids=ids, labels=labels, position_ids=positions, attention_mask=mask)


def train(family, run, folder):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, Trainer
    ours = {"stage", "finetuning_type", "dataset", "cutoff_len", "packing", "neat_packing", "max_samples", "do_train",
            "template", "preprocessing_batch_size", "mix_strategy", "interleave_probs", "underkeel"}
    arguments = base.arguments_of({key: value for key, value in run.items() if key not in ours}, folder)
    config = {**SIZES, **FAMILIES[family]}
    (folder / "model").mkdir(parents=True, exist_ok=True)
    (folder / "model/config.json").write_text(json.dumps(config))
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(str(folder / "model")),
                                             attn_implementation="eager").float()
    weights_of(model)
    shared = run.get("underkeel", {}).get("packing_attention") == "shared"
    rows = sft_rows(run) if run["stage"] == "sft" else pt_rows(run, shared)
    trainer = Trainer(model=model, args=arguments, train_dataset=base.Samples(rows),
                      data_collator=lambda some: collate(some, shared, config.get("sliding_window")))
    trainer.train()
    if not trainer.is_world_process_zero():
        return None
    return dict(config=config, log_history=base.log_of(trainer.state))


def run_one(name):
    base.be_deterministic()
    family, ranks, keys = SETTINGS[name]
    run = {**BASE, **keys}
    folder = base.own_folder()
    result = train(family, run, folder)
    if result is None:
        return
    of_sft = run["stage"] == "sft"
    base.save(OUT / f"{name}.json",
              dict(ranks=ranks, tokenizer=SFT if of_sft else TINY, dataset_dir=SFT if of_sft else "examples/tiny",
                   run=run, **result))
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    base.run_all(__file__, {name: ranks for name, (_, ranks, _) in SETTINGS.items()}, run_one)
