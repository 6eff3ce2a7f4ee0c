#!/usr/bin/env python3
"""Peaks of allocated bytes under real DeepSpeed on the CPU accelerator, in the phases that `underkeel doctor` foretells.

    pip install deepspeed torch transformers    # an environment of its own; g++ for the counting allocator
    scripts/measure_deepspeed.py --table                             # the whole table, a row as JSON a line
    scripts/measure_deepspeed.py --ranks 2 --stage 3 --offload both  # one row as JSON
    scripts/measure_deepspeed.py --self-test                         # the counter on allocations of known size

The model is a small Llama of transformers. One process a rank, forked from one that has everything imported. The
counting allocator (cpu_allocator_statistics.cpp) replaces torch's own, so a peak is exact: no sampling. What gloo's
worker threads and collective calls allocate is left out of it (NCCL has no such copies) and given apart as `foreign`.
Each phase is told of the rank with the highest peak.

Phases are doctor's: load is deepspeed.initialize; first_step and step are the forward and backward passes of the first
step and of later ones; update is engine.step(); then an evaluation, a save, and the passes after it. `at_peak` splits a
peak by what held it; `rest` is activations and temporaries.
"""

import argparse
import collections
import ctypes
import functools
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
import warnings

HOLDERS = ["rest", "weights", "master", "moments", "gradients", "gradients_f32", "bucket",
           "staging", "gathered", "gather_copy"]


class Statistics:
    """The counting allocator, built beside torch's headers and put in the place of torch's own."""

    def __init__(self, folder):
        import torch
        at = pathlib.Path(torch.__file__).parent
        library = pathlib.Path(folder) / "cpu_allocator_statistics.so"
        source = pathlib.Path(__file__).with_name("cpu_allocator_statistics.cpp")
        subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{at / 'include'}",
                        str(source), f"-L{at / 'lib'}", "-lc10", "-o", str(library)], check=True)
        self.calls = ctypes.CDLL(str(library))
        for name in ("live_bytes", "peak_bytes", "foreign_peak_bytes", "peak_block_count"):
            getattr(self.calls, name).restype = ctypes.c_int64
        self.calls.install_statistics()

    def live(self):
        return self.calls.live_bytes()

    def reset(self):
        self.calls.reset_peak()

    def peak(self):
        return self.calls.peak_bytes()

    def foreign(self):
        return self.calls.foreign_peak_bytes()

    def mark(self, tensor, holder):
        if tensor is None or tensor.device.type == "meta":
            return
        address = tensor.untyped_storage().data_ptr()
        self.calls.mark(ctypes.c_void_p(address), HOLDERS.index(holder))

    def leave_out_collectives(self):
        """What gloo allocates inside a call is counted as foreign: copies that NCCL does not make."""
        from deepspeed.comm import comm
        for name in dir(comm.cdb):
            inner = getattr(comm.cdb, name)
            is_collective = name.startswith(("all_", "reduce", "broadcast", "inference_"))
            if not is_collective or not callable(inner):
                continue

            @functools.wraps(inner)
            def outer(*words, inner=inner, **named):
                self.calls.set_in_collective(True)
                try:
                    return inner(*words, **named)
                finally:
                    self.calls.set_in_collective(False)
            setattr(comm.cdb, name, outer)

    def blocks_at_peak(self):
        count = self.calls.peak_block_count()
        holders, sizes = (ctypes.c_int32 * count)(), (ctypes.c_int64 * count)()
        self.calls.read_peak_blocks(holders, sizes)
        return [(HOLDERS[holder], size) for holder, size in zip(holders, sizes)]


def self_test(statistics):
    """Allocations whose live bytes and peak are known from their sizes."""
    import torch
    start = statistics.live()
    kept = torch.empty(1000)
    assert statistics.live() - start == 4000
    statistics.reset()
    passing = torch.empty(500, dtype=torch.bfloat16)
    statistics.mark(passing, "bucket")
    del passing
    assert statistics.live() - start == 4000 and statistics.peak() - start == 5000
    assert ("bucket", 1000) in statistics.blocks_at_peak()
    statistics.reset()
    # Both products and their sum are alive at once.
    twice = (kept * 2 + kept * 3).sum()
    assert statistics.peak() - start == 4000 + 3 * 4000, statistics.peak() - start
    del twice
    print("the counter agrees with sizes that are known")


# --- what is measured ---

def model_of(options):
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(
        hidden_size=options.width, intermediate_size=options.width * 11 // 4,
        num_hidden_layers=options.layers, num_attention_heads=options.width // 64,
        num_key_value_heads=options.width // 64, vocab_size=options.vocabulary,
        max_position_embeddings=256, use_cache=False))


def config_of(options):
    zero = {"stage": options.stage, "reduce_bucket_size": options.bucket,
            "overlap_comm": options.overlap, "contiguous_gradients": True}
    if options.offload != "none":
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": False}
    if options.offload == "both":
        zero["offload_param"] = {"device": "cpu", "pin_memory": False}
    if options.stage == 3:
        zero.update({"stage3_prefetch_bucket_size": options.prefetch,
                     "stage3_max_live_parameters": options.max_live,
                     "stage3_max_reuse_distance": options.reuse,
                     "stage3_param_persistence_threshold": options.persistence,
                     "sub_group_size": options.sub_group})
    # torch's fused AdamW works in place, as FusedAdam and DeepSpeedCPUAdam do, and is built already.
    adam = {"lr": 1e-3, "torch_adam": True, "fused": True}
    return {"train_micro_batch_size_per_gpu": 1,
            "gradient_accumulation_steps": options.accumulation,
            "bf16": {"enabled": True}, "zero_force_ds_cpu_optimizer": False,
            "zero_optimization": zero, "optimizer": {"type": "AdamW", "params": adam}}


class Marker:
    """Gives blocks their holders, at the moments when DeepSpeed can be asked for them."""

    def __init__(self, statistics, engine, stage):
        self.statistics, self.engine, self.stage = statistics, engine, stage
        optimizer = engine.optimizer
        if stage == 3:
            coordinator = optimizer.parameter_offload.get_param_coordinator()
            self.after(coordinator, "fetch_sub_module", self.gathered)
            import deepspeed.runtime.zero.partition_parameters as parts
            self.gather_handles(parts)
        else:
            self.after(optimizer, "setup_buckets", self.buckets)
            self.after(optimizer, "reduce_ipg_grads", self.gradients)
            self.before(optimizer, "process_gradients",
                        lambda param, *_: statistics.mark(param.grad, "gradients"))
        self.state()

    def after(self, owner, name, act):
        inner = getattr(owner, name)

        @functools.wraps(inner)
        def outer(*words, **named):
            result = inner(*words, **named)
            act()
            return result
        setattr(owner, name, outer)

    def before(self, owner, name, act):
        inner = getattr(owner, name)

        @functools.wraps(inner)
        def outer(*words, **named):
            act(*words)
            return inner(*words, **named)
        setattr(owner, name, outer)

    def gather_handles(self, parts):
        statistics = self.statistics

        class Handle(parts.AllGatherCoalescedHandle):
            def __init__(self, *words, **named):
                super().__init__(*words, **named)
                for partition in self.partitions:
                    statistics.mark(partition, "gather_copy")
        parts.AllGatherCoalescedHandle = Handle

    def gathered(self):
        for parameter in self.engine.module.parameters():
            if parameter.data.numel() <= 1 or parameter.ds_status.name != "AVAILABLE":
                continue
            whole, shard = parameter.data.untyped_storage(), parameter.ds_tensor.untyped_storage()
            if whole.data_ptr() != shard.data_ptr():  # else a view of it: one rank
                self.statistics.mark(parameter.data, "gathered")

    def buckets(self):
        for bucket in self.engine.optimizer.ipg_buckets.values():
            buffers = bucket.buffer if isinstance(bucket.buffer, list) else [bucket.buffer]
            for buffer in buffers:
                self.statistics.mark(buffer, "bucket")

    def gradients(self):
        optimizer = self.engine.optimizer
        self.statistics.mark(getattr(optimizer, "grads_in_partition", None), "gradients")
        for kept in (optimizer.averaged_gradients, optimizer.all_grad_tensors):
            for tensors in kept.values():
                for tensor in tensors or []:
                    self.statistics.mark(tensor, "gradients")

    def state(self):
        mark, optimizer = self.statistics.mark, self.engine.optimizer
        for parameter in self.engine.module.parameters():
            mark(parameter.ds_tensor if self.stage == 3 else parameter.data, "weights")
        masters = (optimizer.fp32_partitioned_groups_flat if self.stage == 3
                   else optimizer.single_partition_of_fp32_groups)
        for master in masters:
            mark(master, "master")
            mark(master.grad, "gradients_f32")
        for held in optimizer.optimizer.state.values():
            for name, tensor in held.items():
                if name != "step":
                    mark(tensor, "moments")
        self.buckets()
        if self.stage == 3:
            self.gathered()
            mark(getattr(optimizer, "grad_partitions_flat_buffer", None), "gradients")
            mark(getattr(optimizer, "lp_param_buffer", None), "weights")
        else:
            self.gradients()
            for name in ("temp_grad_buffer_for_cpu_offload", "temp_grad_buffer_for_gpu_offload"):
                mark(getattr(optimizer, name, None), "staging")
            for tensor in getattr(optimizer, "param_buffer_of_bit16_for_cpu_offload_groups", []):
                mark(tensor, "staging")
            for tensor in getattr(optimizer, "accumulated_grads_in_cpu", {}).values():
                mark(tensor, "staging")


def measure(options, statistics):
    import deepspeed
    import torch
    torch.set_num_threads(1)
    deepspeed.init_distributed("gloo", verbose=False)
    statistics.leave_out_collectives()
    # The engine makes its groups and small tables once; what was there before is not its memory.
    torch.manual_seed(0)
    gc.collect()
    before = statistics.live()
    rows, marker = {}, None

    def phase(name, act):
        gc.collect()
        statistics.reset()
        act()
        peak, foreign = statistics.peak(), statistics.foreign()
        blocks = statistics.blocks_at_peak
        if marker:
            marker.state()
        gc.collect()
        held = collections.Counter()
        for holder, size in blocks():
            held[holder] += size
        held["rest"] -= before  # nobody marks what was there before
        row = {"peak": peak - before, "after": statistics.live() - before, "foreign": foreign,
               "at_peak": {key: held[key] for key in HOLDERS if held[key]}}
        if options.show:
            rest = sorted(size for holder, size in blocks() if holder == "rest")
            row["largest"] = rest[-options.show:]
        if name not in rows or rows[name]["peak"] < row["peak"]:
            rows[name] = row

    config = config_of(options)
    made = {}

    def load():
        if options.stage == 3:
            with deepspeed.zero.Init(config_dict_or_path=config, dtype=torch.bfloat16):
                made["model"] = model_of(options)
        else:
            made["model"] = model_of(options).to(torch.bfloat16)
        if options.recompute:
            made["model"].gradient_checkpointing_enable()
        made["engine"], *_ = deepspeed.initialize(model=made["model"], config=config,
                                                  model_parameters=made["model"].parameters())
        made.pop("model")

    def passes():
        for micro in range(options.accumulation):
            tokens = torch.randint(0, options.vocabulary, (1, options.tokens))
            loss = engine(input_ids=tokens, labels=tokens).loss
            engine.backward(loss)
            del loss, tokens
            if micro < options.accumulation - 1:
                engine.step()

    def evaluation():
        engine.eval()
        with torch.no_grad():
            tokens = torch.randint(0, options.vocabulary, (1, options.tokens))
            engine(input_ids=tokens, labels=tokens)
        engine.train()

    phase("load", load)
    engine = made["engine"]
    marker = Marker(statistics, engine, options.stage)
    phase("first_step", passes)
    phase("first_update", engine.step)
    for _ in range(2):
        phase("step", passes)
        phase("update", engine.step)
    phase("evaluate", evaluation)
    phase("save", lambda: engine.save_checkpoint(options.save))
    phase("after_save", passes)
    engine.step()
    return rows


# --- one process a rank ---

def run_rank(options, statistics, rank, port, out):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(options.ranks),
                      LOCAL_SIZE=str(options.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if not options.verbose:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
    try:
        rows = measure(options, statistics)
        pathlib.Path(f"{out}.{rank}").write_text(json.dumps(rows))
        status = 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def row_of(options, statistics, port):
    import deepspeed
    with tempfile.TemporaryDirectory() as folder:
        options.save = folder + "/saved"
        children = []
        for rank in range(options.ranks):
            child = os.fork()
            if child == 0:
                run_rank(options, statistics, rank, port, folder + "/rows.json")
            children.append(child)
        statuses = [os.waitpid(child, 0)[1] for child in children]
        if any(statuses):
            return None
        ranks = [json.loads(pathlib.Path(f"{folder}/rows.json.{rank}").read_text())
                 for rank in range(options.ranks)]
        phases = {name: max((rows[name] for rows in ranks), key=lambda row: row["peak"])
                  for name in ranks[0]}
    setting = {key: getattr(options, key) for key in (
        "stage", "ranks", "offload", "accumulation", "bucket", "overlap", "width", "layers",
        "vocabulary", "tokens", "recompute")}
    if options.stage == 3:
        setting.update({key: getattr(options, key) for key in (
            "prefetch", "max_live", "reuse", "persistence", "sub_group")})
    return {**setting, "version": deepspeed.__version__, "phases": phases}


def table():
    """Settings of all rows, by what they change."""
    small = dict(prefetch=100_000, max_live=500_000, reuse=500_000, persistence=1000)
    for ranks in (1, 2, 3, 4):
        for stage in (1, 2):
            for offload in ("none", "optimizer"):
                yield dict(stage=stage, ranks=ranks, offload=offload)
        for offload in ("none", "optimizer", "both"):
            yield dict(stage=3, ranks=ranks, offload=offload)
            yield dict(stage=3, ranks=ranks, offload=offload, **small)
    for stage in (1, 2, 3):
        for offload in ("none", "optimizer"):
            yield dict(stage=stage, ranks=2, offload=offload, accumulation=2)
    yield dict(stage=2, ranks=2, overlap=True)
    yield dict(stage=3, ranks=2, sub_group=500_000)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--offload", choices=("none", "optimizer", "both"), default="none")
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--bucket", type=int, default=600_000)
    parser.add_argument("--overlap", action="store_true")
    parser.add_argument("--prefetch", type=int, default=50_000_000)
    parser.add_argument("--max-live", type=int, default=1_000_000_000)
    parser.add_argument("--reuse", type=int, default=1_000_000_000)
    parser.add_argument("--persistence", type=int, default=100_000)
    parser.add_argument("--sub-group", type=int, default=1_000_000_000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--vocabulary", type=int, default=1024)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--show", type=int, default=0, help="so many of the largest blocks in `rest`")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the table from this row on")
    parser.add_argument("--to", dest="last", type=int, help="and before this one")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    os.environ.update(DS_ACCELERATOR="cpu", DS_BUILD_OPS="0", OMP_NUM_THREADS="1")
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory() as folder:
        statistics = Statistics(folder)
    if options.self_test:
        self_test(statistics)
        return
    # Before the fork, so that ranks need not.
    import deepspeed.runtime.zero.muon.muon_optimizer  # noqa: F401
    import deepspeed.runtime.zero.stage3  # noqa: F401
    import torch._dynamo  # noqa: F401
    import torch.utils.cpp_extension  # noqa: F401
    from transformers import LlamaForCausalLM  # noqa: F401
    rows = list(table())[options.first:options.last] if options.table else [{}]
    for number, changes in enumerate(rows, options.first):
        words = argparse.Namespace(**{**vars(options), **changes})
        row = row_of(words, statistics, 29800 + number)
        print(json.dumps(row if row else {**changes, "failed": True}), flush=True)


if __name__ == "__main__":
    main()
