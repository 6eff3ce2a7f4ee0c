#!/usr/bin/env python3
"""Peaks of allocated bytes under real DeepSpeed, in the phases that `underkeel doctor` foretells.

    pip install deepspeed torch transformers    # an environment of its own; g++ for the counting allocator
    scripts/measure_deepspeed.py --table                             # the whole table, a row as JSON a line
    scripts/measure_deepspeed.py --ranks 2 --stage 3 --offload both  # one row as JSON
    scripts/measure_deepspeed.py --self-test                         # the counter on allocations of known size
    scripts/measure_deepspeed.py --device cuda --table               # on a GPU, one rank: models of 1B to 7B

The model is a Llama of transformers with random weights. One process a rank, forked from one that has everything
imported. Under the CPU accelerator a counting allocator replaces torch's own (cpu_allocator_statistics.py), so a peak is
exact: no sampling. What gloo's worker threads and collective calls allocate is left out of it (NCCL has no such copies)
and given apart as `foreign`. On a GPU torch's own allocator is asked (cuda_allocator_statistics.py): `peak` is of bytes
asked for, `allocated_peak` of the same rounded up to 512. Each phase is told of the rank with the highest peak.

Phases are doctor's: load is deepspeed.initialize; first_step and step are the forward and backward passes of the first
step and of later ones; update is engine.step(); then an evaluation, a save, and the passes after it. `at_peak` splits a
peak by what held it; `rest` is activations and temporaries.
"""

import argparse
import collections
import gc
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

import cpu_allocator_statistics
import cuda_allocator_statistics
from cpu_allocator_statistics import HOLDERS
from deepspeed_holders import Marker

# --- what is measured ---

def model_of(options):
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(
        hidden_size=options.width, intermediate_size=options.feed_forward,
        num_hidden_layers=options.layers, num_attention_heads=options.query_heads,
        num_key_value_heads=options.key_heads, head_dim=options.width // options.query_heads,
        vocab_size=options.vocabulary, tie_word_embeddings=options.tied,
        max_position_embeddings=max(256, options.tokens), use_cache=False))


def built_model_of(options):
    """Of stages 0 to 2: whole, in bf16, where the engine will want it."""
    import torch
    if options.device == "cpu":
        return model_of(options).to(torch.bfloat16)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = model_of(options)
    torch.set_default_dtype(torch.float32)
    return model


def config_of(options):
    zero = {"stage": options.stage, "reduce_bucket_size": options.bucket,
            "overlap_comm": options.overlap, "contiguous_gradients": True}
    if options.offload != "none":
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": options.device == "cuda"}
    if options.offload == "both":
        zero["offload_param"] = {"device": "cpu", "pin_memory": options.device == "cuda"}
    if options.stage == 3:
        zero.update({"stage3_prefetch_bucket_size": options.prefetch,
                     "stage3_max_live_parameters": options.max_live,
                     "stage3_max_reuse_distance": options.reuse,
                     "stage3_param_persistence_threshold": options.persistence,
                     "sub_group_size": options.sub_group})
    # torch's fused AdamW works in place, as FusedAdam and DeepSpeedCPUAdam do, and is built already.
    adam = {"lr": 1e-3}
    if options.stage > 0:  # stage 0 has another wrapper for any but FusedAdam, which is compiled
        adam.update({"torch_adam": True, "fused": True})
    return {"train_micro_batch_size_per_gpu": options.sequences,
            "gradient_accumulation_steps": options.accumulation,
            "bf16": {"enabled": True}, "zero_force_ds_cpu_optimizer": False,
            "zero_optimization": zero, "optimizer": {"type": "AdamW", "params": adam}}


def measure(options, statistics, tell):
    """Tells of the phases so far after each."""
    import deepspeed
    import torch
    if options.device == "cpu":
        torch.set_num_threads(1)
    deepspeed.init_distributed("gloo" if options.device == "cpu" else "nccl", verbose=False)
    statistics.leave_out_collectives()
    # The engine makes its groups and small tables once; what was there before is not its memory.
    torch.manual_seed(0)
    gc.collect()
    before = statistics.live()
    rows, marker = {}, None

    def phase(name, act):
        gc.collect()
        statistics.reset()
        begin_s = time.monotonic()
        failure = None
        try:
            act()
        except torch.OutOfMemoryError as problem:  # the peak on the way there is worth having
            failure = problem
        peak, more = statistics.peak(), statistics.more()
        elapsed_s = time.monotonic() - begin_s
        if marker:
            marker.state()
        blocks = statistics.at_peak()
        gc.collect()
        held = collections.Counter()
        for holder, size, _ in blocks:
            held[holder] += size
        held["rest"] -= before  # nobody marks what was there before
        row = {"peak": peak - before, "after": statistics.live() - before, **more,
               "at_peak": {key: held[key] for key in HOLDERS if held[key]}}
        if options.device == "cuda":
            row.update({"on_host": statistics.on_host(), "elapsed_s": round(elapsed_s, 2)})
        if options.show:
            row["rest"] = largest_origins(blocks, options.show)
        if name not in rows or rows[name]["peak"] < row["peak"]:
            rows[name] = row
        tell(rows)
        if failure:
            raise failure

    config = config_of(options)
    made = {}

    def load():
        if options.stage == 3:
            with deepspeed.zero.Init(config_dict_or_path=config, dtype=torch.bfloat16):
                made["model"] = model_of(options)
        else:
            made["model"] = built_model_of(options)
        if options.recompute:
            made["model"].gradient_checkpointing_enable()
        made["engine"], *_ = deepspeed.initialize(model=made["model"], config=config,
                                                  model_parameters=made["model"].parameters())
        made.pop("model")

    def texts():
        return torch.randint(0, options.vocabulary, (options.sequences, options.tokens),
                             device=options.device)

    def passes():
        for micro in range(options.accumulation):
            tokens = texts()
            loss = engine(input_ids=tokens, labels=tokens).loss
            engine.backward(loss)
            del loss, tokens
            if micro < options.accumulation - 1:
                engine.step()

    def evaluation():
        engine.eval()
        with torch.no_grad():
            tokens = texts()
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
    if options.saves:
        phase("save", lambda: engine.save_checkpoint(options.folder))
        phase("after_save", passes)
        engine.step()


def largest_origins(blocks, count):
    """Bytes without a name by the line that asked for them, the most first."""
    sums = collections.Counter()
    for holder, size, origin in blocks:
        if holder == "rest":
            sums[origin or size] += size
    return dict(sums.most_common(count))


# --- one process a rank ---

def use_compiled_fused_adam():
    """What FusedAdamBuilder().load() compiled into TORCH_EXTENSIONS_DIR earlier, since that takes a minute."""
    folder = pathlib.Path(os.environ.get("TORCH_EXTENSIONS_DIR", "")) / "fused_adam"
    if (folder / "fused_adam.so").exists():
        from deepspeed.ops.op_builder.builder import OpBuilder
        sys.path.append(str(folder))
        import fused_adam
        OpBuilder._loaded_ops["fused_adam"] = fused_adam


def run_rank(options, statistics, rank):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(options.ranks),
                      LOCAL_SIZE=str(options.ranks), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(options.port))
    if not options.verbose:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
    told = {}

    def tell(rows):
        told.update(rows)
        pathlib.Path(f"{options.folder}/phases.{rank}").write_text(json.dumps(told))

    try:
        if options.device == "cuda":
            statistics = cuda_allocator_statistics.CudaStatistics()
            if options.stage == 0:
                use_compiled_fused_adam()
        measure(options, statistics, tell)
        tell({"has_ended": True})
    except BaseException as problem:
        traceback.print_exc()
        tell({"error": f"{type(problem).__name__}: {problem}"})
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit("error" in told)


def await_all(children, limit_s):
    """Ends ranks that have not ended by themselves in time, or whose like has failed."""
    end_s = time.monotonic() + limit_s
    waiting = set(children)
    while waiting:
        for child in list(waiting):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                waiting.remove(child)
                end_s = min(end_s, time.monotonic() + 20) if status else end_s
        if waiting and time.monotonic() > end_s:
            for child in waiting:
                os.kill(child, signal.SIGKILL)
        time.sleep(0.05)


def row_of(options, statistics):
    """Runs all ranks of a row; what could not be measured is told in `error`."""
    import deepspeed
    import torch
    with tempfile.TemporaryDirectory() as folder:
        options.folder = folder
        children = []
        for rank in range(options.ranks):
            child = os.fork()
            if child == 0:
                run_rank(options, statistics, rank)
            children.append(child)
        await_all(children, options.limit_s)
        files = [pathlib.Path(f"{folder}/phases.{rank}") for rank in range(options.ranks)]
        ranks = [json.loads(file.read_text()) if file.exists() else {} for file in files]
    errors = [rows.pop("error", "no time left") for rows in ranks if not rows.pop("has_ended", False)]
    phases = {name: max((rows[name] for rows in ranks if name in rows), key=lambda row: row["peak"])
              for name in ranks[0]}
    keys = ["stage", "ranks", "offload", "accumulation", "bucket", "overlap", "width", "layers",
            "vocabulary", "tokens", "recompute"]
    if options.stage == 3:
        keys += ["prefetch", "max_live", "reuse", "persistence", "sub_group"]
    setting = {key: getattr(options, key) for key in keys}
    if options.device == "cuda":
        setting.update({key: getattr(options, key) for key in (
            "model", "feed_forward", "query_heads", "key_heads", "tied", "saves", "sequences")})
        setting.update({"torch": torch.__version__, "config": config_of(options)})
    row = {**setting, "version": deepspeed.__version__, "phases": phases}
    return {**row, "error": errors[0]} if errors else row


def row_of_own_process(changes, options):
    """The same where a fork cannot use the GPU, since the driver was called before it."""
    words = [sys.executable, __file__, "--device", options.device, "--show", str(options.show),
             "--port", str(options.port), "--row", json.dumps(changes)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"error": "failed"}


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


SHAPES = {
    "Llama-3.2-1B": dict(vocabulary=128256, width=2048, layers=16, feed_forward=8192,
                         query_heads=32, key_heads=8, tied=True),
    "Llama-3.2-3B": dict(vocabulary=128256, width=3072, layers=28, feed_forward=8192,
                         query_heads=24, key_heads=8, tied=True),
    "Llama-2-7B": dict(vocabulary=32000, width=4096, layers=32, feed_forward=11008,
                       query_heads=32, key_heads=32, tied=False),
}


def gpu_table():
    """Settings of all rows on one GPU, the most telling first: time on it may end before the table."""
    def row(model, stage, offload="none", **more):
        base = dict(stage=stage, offload=offload, bucket=500_000_000, tokens=128, saves=False)
        return {"model": model, **SHAPES[model], **base, **more}
    small, middle, large = SHAPES
    yield row(small, 2)
    yield row(large, 3)
    yield row(small, 3, saves=True)
    for offload in ("optimizer", "both"):
        yield row(small, 3, offload)
    yield row(small, 1)
    # As the trainer of Hugging Face fills in "auto": a bucket smaller than most matrices.
    automatic = dict(bucket=2048 * 2048, prefetch=9 * 2048 * 2048 // 10, persistence=20480)
    yield row(small, 2, **automatic)
    yield row(small, 2, accumulation=2)
    yield row(small, 2, saves=True)
    yield row(small, 0)
    yield row(small, 2, "optimizer")
    yield row(small, 1, "optimizer")
    yield row(small, 3, "both", **automatic)
    for stage in (1, 2, 3):
        yield row(middle, stage)
    yield row(large, 2)
    # Activations as those of a real run.
    for recompute in (True, False):
        yield row(small, 2, tokens=4096, recompute=recompute)
        yield row(small, 3, tokens=1024, sequences=4, recompute=recompute)
        yield row(middle, 3, tokens=2048, recompute=recompute)
    yield row(small, 2, "optimizer", tokens=8192, recompute=True)
    yield row(small, 3, "both", tokens=8192, recompute=True)
    yield row(large, 3, tokens=4096, recompute=True)
    yield row(large, 3, "optimizer", tokens=4096, sequences=2, recompute=True)
    yield row(large, 2, "optimizer", tokens=2048)


def options_of_call():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
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
    parser.add_argument("--tied", action="store_true", help="one matrix for embedding and head")
    parser.add_argument("--vocabulary", type=int, default=1024)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--sequences", type=int, default=1)
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--show", type=int, default=0, help="so many of the largest in `rest`")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the table from this row on")
    parser.add_argument("--to", dest="last", type=int, help="and before this one")
    parser.add_argument("--row", type=json.loads, help="one row, its settings as JSON")
    parser.add_argument("--port", type=int, default=29800)
    parser.add_argument("--limit-s", type=float, default=600, help="of one row")
    parser.add_argument("--end-s", type=float, default=86400, help="begin no row after so long")
    parser.add_argument("--self-test", action="store_true")
    return parser.parse_args()


def changes_of(options):
    """What each row changes of the options."""
    if options.row or not options.table:
        return [options.row or {}]
    rows = table() if options.device == "cpu" else gpu_table()
    return list(rows)[options.first:options.last]


def completed(options):
    """Shape of a model that was told by its width alone."""
    heads = options.width // 64
    for name, value in dict(model="small", feed_forward=options.width * 11 // 4, query_heads=heads,
                            key_heads=heads, saves=True).items():
        if not hasattr(options, name):
            setattr(options, name, value)
    return options


def main():
    options = options_of_call()
    begin_s = time.monotonic()
    os.environ.update(DS_ACCELERATOR=options.device, DS_BUILD_OPS="0")
    if options.device == "cpu":
        os.environ["OMP_NUM_THREADS"] = "1"
    # So that counting GPUs calls no driver: a process that did cannot fork to use it.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    warnings.filterwarnings("ignore")
    statistics = None
    if options.device == "cpu":
        with tempfile.TemporaryDirectory() as folder:
            statistics = cpu_allocator_statistics.CpuStatistics(folder)
    if options.self_test:
        cpu_allocator_statistics.self_test(statistics)
        cuda_allocator_statistics.self_test()
        return
    # Before the fork, so that ranks need not.
    import deepspeed.runtime.zero.muon.muon_optimizer  # noqa: F401
    import deepspeed.runtime.zero.stage3  # noqa: F401
    import torch._dynamo  # noqa: F401
    import torch.utils.cpp_extension  # noqa: F401
    from transformers import LlamaForCausalLM  # noqa: F401
    forks = True
    for number, changes in enumerate(changes_of(options), options.first):
        if time.monotonic() - begin_s > options.end_s:
            print(json.dumps({**changes, "error": "not begun: no time left"}), flush=True)
            continue
        words = completed(argparse.Namespace(**{**vars(options), **changes}))
        words.port = options.port + number
        row = row_of(words, statistics) if forks else row_of_own_process(changes, words)
        if forks and "forked subprocess" in row.get("error", ""):
            forks = False
            row = row_of_own_process(changes, words)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
