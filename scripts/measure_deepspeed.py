#!/usr/bin/env python3
"""Live bytes under real DeepSpeed on the CPU accelerator, at the moments that `underkeel doctor` foretells.

    pip install deepspeed torch    # an environment of its own; builds one small C++ extension on its first run
    RANK=0 LOCAL_RANK=0 LOCAL_SIZE=1 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29800 \\
        scripts/measure_deepspeed.py STAGE BUCKET ACCUMULATION

One process for each rank. Rank 0 prints `RESULT {json}`: bytes of distinct tensor storages that Python reaches, of this rank, after
set-up, after the first backward pass and after each of two steps. The model is linear layers alone, so that state is all there is.
"""

import gc
import json
import os
import sys
import warnings

os.environ.setdefault("DS_ACCELERATOR", "cpu")
warnings.filterwarnings("ignore")

import deepspeed  # noqa: E402
import torch  # noqa: E402

WIDTH, LAYERS = 512, 16


def live_bytes():
    gc.collect()
    storages = {}
    for found in gc.get_objects():
        try:
            tensors = [found] if isinstance(found, torch.Tensor) else []
            if tensors and found.is_leaf and found.grad is not None:
                tensors.append(found.grad)
            for tensor in tensors:
                storage = tensor.untyped_storage()
                if storage.nbytes() > 0:
                    storages[storage.data_ptr()] = storage.nbytes()
        except (ReferenceError, RuntimeError, NotImplementedError):
            pass  # dead references, and tensors without a storage
    return sum(storages.values())


def main():
    stage, bucket, accumulation = int(sys.argv[1]), int(float(sys.argv[2])), int(sys.argv[3])
    deepspeed.init_distributed("gloo")
    torch.manual_seed(0)
    before = live_bytes()
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": accumulation,
        "bf16": {"enabled": True},
        "zero_optimization": {
            "stage": stage, "reduce_bucket_size": bucket, "overlap_comm": False,
            "stage3_prefetch_bucket_size": 0, "stage3_max_reuse_distance": 0,
            "stage3_max_live_parameters": 0, "stage3_param_persistence_threshold": 0},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}
    shapes = [(WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    model = torch.nn.Sequential(
        *[torch.nn.Linear(*shapes[i % 2], bias=False) for i in range(LAYERS)])
    seen = {"stage": stage, "ranks": torch.distributed.get_world_size(), "bucket": bucket,
            "accumulation": accumulation, "version": deepspeed.__version__,
            "trainable": sum(parameter.numel() for parameter in model.parameters())}
    engine, *_ = deepspeed.initialize(model=model, config=config,
                                      model_parameters=model.parameters())
    del model
    seen["after_init"] = live_bytes() - before
    for step in (1, 2):
        for micro in range(accumulation):
            batch = torch.randn(2, WIDTH, dtype=torch.bfloat16)
            loss = engine(batch).float().pow(2).mean()
            engine.backward(loss)
            del batch, loss
            if step == 1 and micro == accumulation - 1:
                seen["after_backward"] = live_bytes() - before
            engine.step()
        seen[f"after_step_{step}"] = live_bytes() - before
    if torch.distributed.get_rank() == 0:
        print("RESULT " + json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
