#!/usr/bin/env python3
"""Writes tests/train/goldens/trainer/*.json: what the Trainer of transformers logs and keeps.

Each file is one run of the real Trainer on the CPU in f32: the bundled tiny model, the bundled logbook,
one setting of schedule x accumulation x length x events. A file holds the run file (LLaMA-Factory's
keys), the log history without times, the checkpoints that were left, and the best model. Samples are
made here as LLaMA-Factory makes them for stage pt: a text and the end token, cut at cutoff_len, or
packed in blocks of it. Needs torch, transformers, accelerate, safetensors and tokenizers from PyPI;
the versions go into the files. Run from the repository's root:

    python3 scripts/make_trainer_goldens.py [NAME ...]
"""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/train/goldens/trainer"
MODEL = "examples/tiny/model"

BASE = dict(stage="pt", finetuning_type="full", do_train=True, dataset_dir="examples/tiny",
            dataset="logbook", eval_dataset="logbook_held_out", cutoff_len=64, packing=False,
            per_device_train_batch_size=2, per_device_eval_batch_size=3, learning_rate=5e-4,
            logging_steps=1, save_strategy="no")

# name -> (ranks, keys of the run file beyond BASE)
SETTINGS = {
    "linear": (1, dict(max_steps=60, warmup_steps=6, gradient_accumulation_steps=2, eval_strategy="steps",
                       eval_steps=25, save_strategy="steps", save_steps=25, save_total_limit=2)),
    "short_windows": (1, dict(cutoff_len=48, num_train_epochs=2.5, warmup_ratio=0.1,
                              lr_scheduler_type="cosine", per_device_train_batch_size=3,
                              gradient_accumulation_steps=4, eval_strategy="epoch",
                              save_strategy="epoch", weight_decay=0.1, adam_beta2=0.95)),
    "three_stages": (1, dict(max_steps=60, lr_scheduler_type="warmup_stable_decay", warmup_steps=5,
                             gradient_accumulation_steps=3, dataloader_drop_last=True,
                             max_grad_norm=0.3, logging_steps=7, logging_first_step=True)),
    "restarts": (1, dict(max_steps=60, lr_scheduler_type="cosine_with_restarts",
                         lr_scheduler_kwargs=dict(num_cycles=3), warmup_steps=4, max_grad_norm=0,
                         data_seed=7, eval_strategy="steps", eval_steps=0.3)),
    "stops_early": (1, dict(max_steps=60, lr_scheduler_type="polynomial", learning_rate=1e-3,
                            lr_scheduler_kwargs=dict(power=2.0, lr_end=1e-5), eval_strategy="steps",
                            eval_steps=4, save_strategy="steps", save_steps=4, save_total_limit=1,
                            load_best_model_at_end=True, metric_for_best_model="eval_loss",
                            early_stopping_steps=2, max_samples=6)),
    "keeps_order": (1, dict(num_train_epochs=3, lr_scheduler_type="inverse_sqrt", warmup_steps=8,
                            disable_shuffling=True, logging_strategy="epoch", eval_on_start=True,
                            eval_strategy="epoch", eval_delay=2, save_strategy="best",
                            metric_for_best_model="eval_loss")),
    "min_rate": (1, dict(max_steps=60, lr_scheduler_type="cosine_with_min_lr",
                         lr_scheduler_kwargs=dict(min_lr=5e-5), warmup_steps=5, weight_decay=0.2,
                         gradient_accumulation_steps=2, max_samples=50,
                         per_device_eval_batch_size=5, eval_strategy="steps", eval_steps=15)),
    "plateau": (1, dict(max_steps=60, lr_scheduler_type="reduce_lr_on_plateau",
                        lr_scheduler_kwargs=dict(patience=0, factor=0.5), learning_rate=1e-3,
                        max_samples=6, eval_strategy="steps", eval_steps=4)),
    # No evaluation: version 5.17 divides a round's losses by the tokens of all ranks there.
    "two_ranks": (2, dict(num_train_epochs=2, lr_scheduler_type="cosine_warmup_with_min_lr",
                          lr_scheduler_kwargs=dict(min_lr_rate=0.1), warmup_steps=3,
                          max_samples=157, gradient_accumulation_steps=3, eval_dataset=None)),
}


def sequences(run, name):
    """The samples of one data set."""
    from tokenizers import Tokenizer
    info = json.loads((ROOT / run["dataset_dir"] / "dataset_info.json").read_text())[name]
    column = info["columns"]["prompt"]
    lines = (ROOT / run["dataset_dir"] / info["file_name"]).read_text().splitlines()
    texts = [json.loads(line)[column] for line in lines if line.strip()]
    texts = texts[:run.get("max_samples", len(texts))]
    tokenizer = Tokenizer.from_file(str(ROOT / MODEL / "tokenizer.json"))
    eos = json.loads((ROOT / MODEL / "tokenizer_config.json").read_text())["eos_token"]
    ids = [tokenizer.encode(text + eos, add_special_tokens=False).ids for text in texts]
    length = run["cutoff_len"]
    if not run.get("packing", True):
        return [one[:length] for one in ids]
    flat = [token for one in ids for token in one]
    return [flat[i:i + length] for i in range(0, len(flat) // length * length, length)]


def collate(samples):
    import torch
    width = max(len(one) for one in samples)
    pad = lambda one, value: one + [value] * (width - len(one))
    return dict(input_ids=torch.tensor([pad(one, 1) for one in samples]),
                labels=torch.tensor([pad(one, -100) for one in samples]),
                attention_mask=torch.tensor([pad([1] * len(one), 0) for one in samples]))


class Samples:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def arguments_of(run, folder):
    """TrainingArguments of a run file, as LLaMA-Factory hands them on."""
    from transformers import TrainingArguments
    ours = {"stage", "finetuning_type", "dataset_dir", "dataset", "eval_dataset", "cutoff_len", "packing",
            "max_samples", "disable_shuffling", "early_stopping_steps", "do_train", "warmup_ratio"}
    keys = {key: value for key, value in run.items() if key not in ours}
    if "warmup_ratio" in run:  # transformers 5 reads a share there
        keys["warmup_steps"] = run["warmup_ratio"]
    return TrainingArguments(output_dir=str(folder), use_cpu=True, report_to="none", disable_tqdm=True,
                             optim="adamw_torch", remove_unused_columns=False, **keys)


def train(run, folder):
    import torch
    import torch.utils.data
    from transformers import AutoModelForCausalLM, EarlyStoppingCallback, Trainer
    arguments = arguments_of(run, folder)
    model = AutoModelForCausalLM.from_pretrained(str(ROOT / MODEL), dtype=torch.float32)
    if run.get("lr_scheduler_type") == "warmup_stable_decay":
        total = run["max_steps"]
        warmup = arguments.get_warmup_steps(total)
        stable = (total - warmup) // 3
        arguments.lr_scheduler_kwargs = dict(num_stable_steps=stable,
                                             num_decay_steps=total - warmup - stable)

    class InOrder(Trainer):
        def _get_train_sampler(self, *_):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    callbacks = []
    if "early_stopping_steps" in run:
        callbacks.append(EarlyStoppingCallback(early_stopping_patience=run["early_stopping_steps"]))
    trainer = (InOrder if run.get("disable_shuffling") else Trainer)(
        model=model, args=arguments, data_collator=collate, callbacks=callbacks,
        train_dataset=Samples(sequences(run, run["dataset"])),
        eval_dataset=run["eval_dataset"] and Samples(sequences(run, run["eval_dataset"])))
    trainer.train()
    state = trainer.state
    if not trainer.is_world_process_zero():
        return None
    return dict(
        log_history=log_of(state),
        checkpoints=sorted(int(path.name.split("-")[1]) for path in folder.glob("checkpoint-*")),
        state={key: getattr(state, key) for key in
               ("global_step", "max_steps", "num_train_epochs", "epoch", "logging_steps", "eval_steps",
                "save_steps", "train_batch_size", "best_metric", "best_global_step")},
        best_model_checkpoint=os.path.basename(state.best_model_checkpoint or ""))


def log_of(state):
    """The log history without times."""
    timed = re.compile("runtime|per_second|total_flos")
    return [{key: value for key, value in entry.items() if not timed.search(key)} for entry in state.log_history]


def be_deterministic():
    import torch
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    random.seed(0)


def own_folder():
    """Of this run, in all its processes."""
    return pathlib.Path(tempfile.gettempdir()) / f"golden_{os.environ['GOLDEN_ID']}"


def save(path, golden):
    """Writes a golden with its origin, one log entry a line."""
    import accelerate
    import torch
    import transformers
    origin = dict(made_by=f"scripts/{pathlib.Path(sys.argv[0]).name}", torch=torch.__version__.split("+")[0],
                  transformers=transformers.__version__, accelerate=accelerate.__version__)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**origin, **golden}, indent=1)
    text = re.sub(r"\{\n\s+\"(epoch|loss|eval_loss|grad_norm|train_loss)\"[^{}]*\}",
                  lambda found: re.sub(r"\s*\n\s*", " ", found.group()), text)
    path.write_text(text + "\n")


def run_all(script, ranks_of, run_one):
    """Each setting in a process of its own (torchrun's for several ranks)."""
    if os.environ.get("GOLDEN_ID"):
        run_one(sys.argv[1])
        return
    for name in sys.argv[1:] or ranks_of:
        ranks = ranks_of[name]
        launch = [sys.executable] if ranks == 1 else [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks)]
        environment = {**os.environ, "GOLDEN_ID": f"{os.getpid()}_{name}"}
        subprocess.run([*launch, script, name], check=True, env=environment)
        print(name, flush=True)


def run_one(name):
    be_deterministic()
    ranks, keys = SETTINGS[name]
    run = {**BASE, **keys}
    folder = own_folder()
    result = train(run, folder)
    if result is None:
        return
    save(OUT / f"{name}.json", dict(ranks=ranks, run=run, **result))
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    run_all(__file__, {name: ranks for name, (ranks, _) in SETTINGS.items()}, run_one)
