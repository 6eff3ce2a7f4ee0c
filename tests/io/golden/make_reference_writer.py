#!/usr/bin/env python3
"""Makes reference_writer.safetensors: what the reference writer does with types, names and padding.

Needs torch and safetensors (made with 2.11.0 and 0.8.0). Values count up by one byte per byte.
"""
import pathlib

import torch
from safetensors.torch import save_file

SHAPES = {
    "model.layers.10.weight": (torch.bfloat16, [2, 3]),
    "model.layers.2.weight": (torch.bfloat16, [3]),
    "scalar": (torch.float32, []),
    "empty": (torch.float32, [0, 4]),
    "ids": (torch.int64, [2]),
    "short ids": (torch.int32, [3]),
    "bytes": (torch.uint8, [5]),
    "half": (torch.float16, [1, 1, 2]),
    "wide": (torch.float64, [1]),
    "naïve \"quoted\"\n": (torch.float32, [1]),
}


def tensor(dtype, shape):
    count = torch.empty(shape, dtype=dtype).numel() * torch.empty([], dtype=dtype).element_size()
    raw = torch.arange(count, dtype=torch.uint8)
    return raw.view(dtype).reshape(shape) if count else torch.empty(shape, dtype=dtype)


folder = pathlib.Path(__file__).parent
save_file({name: tensor(*spec) for name, spec in SHAPES.items()},
          folder / "reference_writer.safetensors", metadata={"format": "pt"})
