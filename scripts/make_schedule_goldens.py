#!/usr/bin/env python3
"""Writes tests/train/goldens/learning_rates.json: the rates that transformers' schedulers give.

For each setting: the learning rate of every optimizer step, taken from the scheduler object that
the Trainer would drive, and the warmup steps that TrainingArguments makes of a ratio. Needs torch
and transformers from PyPI; the versions go into the file. Run from the repository's root:

    python3 scripts/make_schedule_goldens.py
"""

import json
import pathlib
import tempfile

import torch
import transformers
from transformers import TrainingArguments, get_scheduler

# (schedule, base rate, warmup_steps, warmup_ratio, total steps)
SETTINGS = [
    ("constant", 3e-4, 0, 0.0, 5),
    ("constant", 3e-4, 3, 0.0, 5),  # a constant schedule never warms up
    ("constant_with_warmup", 5e-5, 4, 0.0, 10),
    ("constant_with_warmup", 5e-5, 0, 0.0, 3),
    ("linear", 1.0, 3, 0.0, 10),
    ("linear", 5e-5, 0, 0.0, 7),
    ("linear", 2e-5, 0, 0.1, 33),  # ceil(3.3) steps of warmup
    ("linear", 1e-3, 12, 0.0, 8),  # the run ends inside the warmup
    ("linear", 1e-3, 8, 0.0, 8),
    ("cosine", 1.0, 3, 0.0, 10),
    ("cosine", 1e-3, 1, 0.0, 6),
    ("cosine", 5e-5, 0, 0.0, 1),
    ("cosine", 5e-5, 0, 0.03, 101),
    ("cosine", 5e-5, 0, 0.1, 30),  # 30 * 0.1 is 3 in double, not above it
    ("cosine", 5e-5, 0, 0.07, 100),  # 100 * 0.07 is above 7 in double: 8 steps
    ("cosine", 5e-5, 5, 0.0, 5),
]

# The same with lr_scheduler_kwargs. warmup_stable_decay: LLaMA-Factory fills in the stable steps (a
# third of what follows the warmup, rounded down) and the decay steps (the rest).
WITH_OPTIONS = [
    ("cosine", 1e-3, 2, 0.0, 9, dict(num_cycles=1.25)),
    ("cosine_with_restarts", 3e-4, 3, 0.0, 20, dict(num_cycles=3)),
    ("cosine_with_restarts", 3e-4, 0, 0.1, 11, {}),
    ("polynomial", 5e-5, 3, 0.0, 12, {}),
    ("polynomial", 1e-3, 0, 0.0, 12, dict(lr_end=1e-5, power=2.5)),
    ("inverse_sqrt", 1e-3, 4, 0.0, 15, {}),
    ("inverse_sqrt", 1e-3, 0, 0.0, 15, {}),
    ("inverse_sqrt", 1e-3, 4, 0.0, 15, dict(timescale=7)),
    ("cosine_with_min_lr", 2e-4, 3, 0.0, 13, dict(min_lr_rate=0.1)),
    ("cosine_with_min_lr", 2e-4, 3, 0.0, 13, dict(min_lr=3e-5, num_cycles=0.75)),
    ("cosine_warmup_with_min_lr", 2e-4, 3, 0.0, 13, dict(min_lr_rate=0.1)),
    ("cosine_warmup_with_min_lr", 2e-4, 5, 0.0, 13, dict(min_lr=3e-5, warmup_lr_rate=0.2)),
    ("warmup_stable_decay", 2e-4, 3, 0.0, 15, {}),
    ("warmup_stable_decay", 2e-4, 4, 0.0, 16,
     dict(num_stable_steps=3, num_decay_steps=6, warmup_type="cosine", decay_type="linear",
          min_lr_ratio=0.05)),
    ("warmup_stable_decay", 2e-4, 4, 0.0, 16, dict(warmup_type="1-sqrt", decay_type="1-sqrt")),
]

# reduce_lr_on_plateau: a rate after each of these evaluations.
PLATEAUS = [
    (dict(patience=1), [3.0, 2.5, 2.6, 2.55, 2.4, 2.39999, 2.41, 2.42, 2.43, 2.44]),
    (dict(patience=0, factor=0.5, cooldown=2, min_lr=1e-4),
     [3.0, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6, 3.7, 3.8, 3.9]),
    (dict(patience=0, mode="max", threshold=0.1, threshold_mode="abs"),
     [1.0, 1.05, 1.2, 1.25, 1.4]),
]


def plateau_rates(base_rate, options, losses):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=base_rate)
    scheduler = get_scheduler("reduce_lr_on_plateau", optimizer, scheduler_specific_kwargs=options)
    values = []
    for loss in losses:
        scheduler.step(loss)
        values.append(optimizer.param_groups[0]["lr"])
    return values


def rates(schedule, base_rate, warmup_steps, warmup_ratio, total_steps, options=None):
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(output_dir=folder, use_cpu=True,
                                      warmup_steps=warmup_steps or warmup_ratio)
    warmup = arguments.get_warmup_steps(total_steps)
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=base_rate)
    options = dict(options or {})
    if schedule == "warmup_stable_decay":
        stable = (total_steps - warmup) // 3
        options.setdefault("num_stable_steps", stable)
        options.setdefault("num_decay_steps", total_steps - warmup - stable)
    scheduler = get_scheduler(schedule, optimizer, num_warmup_steps=warmup,
                              num_training_steps=total_steps, scheduler_specific_kwargs=options)
    values = []
    for _ in range(total_steps):
        values.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return warmup, values


def main():
    cases = []
    for *setting, options in [(*plain, {}) for plain in SETTINGS] + WITH_OPTIONS:
        schedule, base_rate, warmup_steps, warmup_ratio, total_steps = setting
        warmup, values = rates(*setting, options)
        cases.append(dict(schedule=schedule, learning_rate=base_rate, warmup_steps=warmup_steps,
                          warmup_ratio=warmup_ratio, options=options,
                          resulting_warmup_steps=warmup, learning_rates=values))
    plateaus = [dict(learning_rate=1e-3, options=options, losses=losses,
                     learning_rates=plateau_rates(1e-3, options, losses))
                for options, losses in PLATEAUS]
    out = pathlib.Path("tests/train/goldens/learning_rates.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(dict(torch=torch.__version__.split("+")[0],
                           transformers=transformers.__version__, cases=cases, plateaus=plateaus), indent=1)
    out.write_text(text + "\n")


if __name__ == "__main__":
    main()
