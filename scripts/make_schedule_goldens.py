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


def rates(schedule, base_rate, warmup_steps, warmup_ratio, total_steps):
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(output_dir=folder, use_cpu=True,
                                      warmup_steps=warmup_steps or warmup_ratio)
    warmup = arguments.get_warmup_steps(total_steps)
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=base_rate)
    scheduler = get_scheduler(schedule, optimizer, num_warmup_steps=warmup,
                              num_training_steps=total_steps)
    values = []
    for _ in range(total_steps):
        values.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return warmup, values


def main():
    cases = []
    for schedule, base_rate, warmup_steps, warmup_ratio, total_steps in SETTINGS:
        warmup, values = rates(schedule, base_rate, warmup_steps, warmup_ratio, total_steps)
        cases.append(dict(schedule=schedule, learning_rate=base_rate, warmup_steps=warmup_steps,
                          warmup_ratio=warmup_ratio, resulting_warmup_steps=warmup,
                          learning_rates=values))
    out = pathlib.Path("tests/train/goldens/learning_rates.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(dict(torch=torch.__version__.split("+")[0],
                           transformers=transformers.__version__, cases=cases), indent=1)
    out.write_text(text + "\n")


if __name__ == "__main__":
    main()
