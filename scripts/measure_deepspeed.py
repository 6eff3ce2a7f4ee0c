#!/usr/bin/env python3
"""Live bytes under real DeepSpeed on the CPU accelerator, at the moments that `underkeel doctor` foretells.

    pip install deepspeed torch    # an environment of its own; builds small C++ extensions on its first run
    scripts/measure_deepspeed.py --table                       # the whole table, a row as JSON a line
    scripts/measure_deepspeed.py --ranks 2 --stage 2 --offload # one row as JSON

Starts one process a rank. Rank 0 gives the bytes of distinct tensor storages that Python reaches, of this rank, after
set-up, after the first backward pass, after each of two steps and after a save. The model is linear layers alone, so
that state is nearly all there is.
"""

import argparse
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

WIDTH, LAYERS = 512, 16


def storages():
    import torch
    found_storages = {}
    for found in gc.get_objects():
        try:
            tensors = [found] if isinstance(found, torch.Tensor) else []
            if tensors and found.is_leaf and found.grad is not None:
                tensors.append(found.grad)
            for tensor in tensors:
                storage = tensor.untyped_storage()
                # A tensor on `meta` has a size and no bytes: stages 1 and 2 keep one for each parameter.
                if storage.nbytes() > 0 and tensor.device.type != "meta":
                    found_storages[storage.data_ptr()] = storage.nbytes()
        except (ReferenceError, RuntimeError, NotImplementedError):
            pass  # dead references, and tensors without a storage
    return found_storages


def live_bytes():
    gc.collect()
    return sum(storages().values())


def measure(options):
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    warnings.filterwarnings("ignore")
    import deepspeed
    import torch
    torch.set_num_threads(1)
    deepspeed.init_distributed("gloo")
    torch.manual_seed(0)
    before = live_bytes()
    zero = {"stage": options.stage, "reduce_bucket_size": options.bucket, "overlap_comm": False,
            "stage3_prefetch_bucket_size": 0, "stage3_max_reuse_distance": 0,
            "stage3_max_live_parameters": 0, "stage3_param_persistence_threshold": 0}
    if options.offload:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": False}
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": options.accumulation,
        "bf16": {"enabled": True},
        "zero_force_ds_cpu_optimizer": False,
        "zero_optimization": zero,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}
    shapes = [(WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    model = torch.nn.Sequential(
        *[torch.nn.Linear(*shapes[i % 2], bias=False) for i in range(LAYERS)])
    engine, *_ = deepspeed.initialize(model=model, config=config,
                                      model_parameters=model.parameters())
    del model
    seen = {"stage": options.stage, "ranks": torch.distributed.get_world_size(),
            "offload": options.offload, "bucket": options.bucket,
            "accumulation": options.accumulation, "version": deepspeed.__version__,
            "after_init": live_bytes() - before}
    if options.show:
        for size in sorted(storages().values(), reverse=True)[:options.show]:
            print("storage", size)
    for step in (1, 2):
        for micro in range(options.accumulation):
            batch = torch.randn(2, WIDTH, dtype=torch.bfloat16)
            loss = engine(batch).float().pow(2).mean()
            engine.backward(loss)
            del batch, loss
            if step == 1 and micro == options.accumulation - 1:
                seen["after_backward"] = live_bytes() - before
            engine.step()
        seen[f"after_step_{step}"] = live_bytes() - before
    if options.save:
        engine.save_checkpoint(options.save)
        seen["after_save"] = live_bytes() - before
    if torch.distributed.get_rank() == 0:
        print("RESULT " + json.dumps(seen), flush=True)


def start(options, port):
    """One row: a process a rank, and what rank 0 saw."""
    folder = tempfile.mkdtemp()
    words = [sys.executable, __file__, "--one", "--stage", str(options.stage), "--bucket",
             str(options.bucket), "--accumulation", str(options.accumulation), "--save", folder]
    words += ["--offload"] * options.offload
    words += ["--show", str(options.show)]
    processes = []
    for rank in range(options.ranks):
        environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank),
                           WORLD_SIZE=str(options.ranks), LOCAL_SIZE=str(options.ranks),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        processes.append(subprocess.Popen(words, env=environment, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    outputs = [process.communicate()[0] for process in processes]
    shutil.rmtree(folder)
    if any(process.returncode for process in processes):
        sys.exit("\n".join(outputs[0].splitlines()[-30:]))
    for line in outputs[0].splitlines():
        if line.startswith("storage"):
            print(line)
    result = [line for line in outputs[0].splitlines() if line.startswith("RESULT ")]
    return json.loads(result[0][len("RESULT "):])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--bucket", type=int, default=2_000_000)
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--offload", action="store_true", help="optimizer on the host")
    parser.add_argument("--show", type=int, default=0, help="so many of the largest storages")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--save", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options)
        return
    port = 29800
    if not options.table:
        print(json.dumps(start(options, port)))
        return
    for options.stage in (1, 2, 3):
        for options.ranks in (1, 2, 4):
            for options.offload in (False, True):
                port += 1
                print(json.dumps(start(options, port)), flush=True)


if __name__ == "__main__":
    main()
