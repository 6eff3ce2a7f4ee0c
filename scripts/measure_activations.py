#!/usr/bin/env python3
"""Activations of Hugging Face's model code on a GPU: what a step holds besides weights and gradients.

    pip install torch transformers peft      # an environment of its own
    scripts/measure_activations.py           # a row as JSON a line; about four minutes
    scripts/measure_activations.py --show 8  # with the lines of Python that hold most at a step's peak

Models of a few layers with real widths, random weights, bf16, as DeepSpeed runs them (no autocast). A row tells bytes
asked of torch's allocator beyond the weights: `kept` when the last layer's forward pass has ended, `forward` and `step` at
the peak of a forward pass with its loss and of forward and backward together, `evaluation` of a forward pass without
gradients. A parameter's gradient is given back as soon as it is there; what of gradients lived at the step's peak is in
`gradients`, and not in `step`.
"""

import argparse
import gc
import json
import pathlib
import sys

import torch

from cuda_allocator_statistics import CudaStatistics

SHAPES = {
    "Llama-2-7B": dict(kind="llama", vocabulary=32000, width=4096, feed_forward=11008, query_heads=32,
                       key_heads=32, head_width=128, tied=False),
    "Llama-3.1-8B": dict(kind="llama", vocabulary=128256, width=4096, feed_forward=14336, query_heads=32,
                         key_heads=8, head_width=128, tied=False),
    "Qwen2.5-0.5B": dict(kind="qwen2", vocabulary=151936, width=896, feed_forward=4864, query_heads=14,
                         key_heads=2, head_width=64, tied=True),
    "Qwen2.5-7B": dict(kind="qwen2", vocabulary=152064, width=3584, feed_forward=18944, query_heads=28,
                       key_heads=4, head_width=128, tied=False),
    "Llama-33B": dict(kind="llama", vocabulary=32000, width=6656, feed_forward=17920, query_heads=52,
                      key_heads=52, head_width=128, tied=False),
    "Llama-2-70B": dict(kind="llama", vocabulary=32000, width=8192, feed_forward=28672, query_heads=64,
                        key_heads=8, head_width=128, tied=False),
    "Qwen3-0.6B": dict(kind="qwen3", vocabulary=151936, width=1024, feed_forward=3072, query_heads=16,
                       key_heads=8, head_width=128, tied=True),
}


def model_of(case):
    import transformers
    shape = SHAPES[case["model"]]
    kind = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[shape["kind"]]
    config = getattr(transformers, f"{kind}Config")(
        hidden_size=shape["width"], intermediate_size=shape["feed_forward"],
        num_hidden_layers=case["layers"], num_attention_heads=shape["query_heads"],
        num_key_value_heads=shape["key_heads"], head_dim=shape["head_width"],
        vocab_size=case["vocabulary"], tie_word_embeddings=shape["tied"],
        max_position_embeddings=32768, use_cache=False)
    config._attn_implementation = case["attention"]
    torch.set_default_dtype(torch.bfloat16 if case["bits"] == 16 else torch.float32)
    with torch.device("cuda"):
        model = getattr(transformers, f"{kind}ForCausalLM")(config)
    torch.set_default_dtype(torch.float32)
    if case["method"] != "full":
        from peft import LoraConfig, get_peft_model
        targets = (["q_proj", "v_proj"] if case["method"] == "lora-qv" else
                   ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])
        model = get_peft_model(model, LoraConfig(r=8, target_modules=targets, task_type="CAUSAL_LM"))
        model.to(torch.bfloat16)
    if case["recompute"] != "none":
        model.gradient_checkpointing_enable({"use_reentrant": case["recompute"] == "reentrant"})
        model.enable_input_require_grads()
    return model.train()


def measure(case, statistics, show):
    torch.manual_seed(0)
    model = model_of(case)
    vocabulary, shape = case["vocabulary"], (case["sequences"], case["tokens"])
    tokens = torch.randint(0, vocabulary, shape, device="cuda")
    mask = torch.ones(shape, dtype=torch.long, device="cuda")
    labels = tokens.clone()
    if case["padded"]:
        mask[0, -case["tokens"] // 4:] = 0
        labels[mask == 0] = -100
    inputs = dict(input_ids=tokens, attention_mask=mask)

    def give_back(parameter):
        statistics.mark(parameter.grad, "gradients")
        parameter.grad = None

    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(give_back)

    def step():
        model(**inputs, labels=labels).loss.backward()

    step()  # workspaces of the libraries, tables of positions
    gc.collect()
    before = statistics.live()

    def peak(act):
        gc.collect()
        statistics.marks = []
        statistics.reset()
        act()
        return statistics.peak() - before

    row = {**SHAPES[case["model"]], **case}
    body = model.get_base_model().model if case["method"] != "full" else model.model
    hidden = body(**inputs)[0]
    row["kept"] = statistics.live() - before
    del hidden
    row["forward"] = peak(lambda: model(**inputs, labels=labels).loss)
    row["step"] = peak(step)
    blocks = statistics.at_peak()
    row["gradients"] = sum(size for holder, size, _ in blocks if holder == "gradients")
    row["step"] -= row["gradients"]
    if show:
        origins = {}
        for holder, size, origin in blocks:
            origins[f"{holder} {origin}"] = origins.get(f"{holder} {origin}", 0) + size
        row["at_peak"] = dict(sorted(origins.items(), key=lambda each: -each[1])[:show])

    def evaluate():
        model.eval()
        with torch.no_grad():
            model(**inputs, labels=labels)

    row["evaluation"] = peak(evaluate)
    return row


def with_vocabulary(case):
    return {"vocabulary": SHAPES[case["model"]]["vocabulary"], **case}


def cases():
    base = dict(layers=4, sequences=1, tokens=4096, method="full", recompute="none", attention="sdpa",
                padded=False, bits=16)
    for model in SHAPES:
        yield {**base, "model": model}
        yield {**base, "model": model, "recompute": "reentrant"}
        yield {**base, "model": model, "layers": 8, "sequences": 4, "tokens": 1024}
    for model in ("Llama-3.1-8B", "Qwen2.5-7B", "Llama-2-7B"):
        yield {**base, "model": model, "recompute": "other"}
        yield {**base, "model": model, "sequences": 4, "tokens": 1024, "padded": True}
        yield {**base, "model": model, "sequences": 4, "tokens": 1024, "padded": True, "recompute": "reentrant"}
        yield {**base, "model": model, "attention": "eager", "tokens": 2048}
        yield {**base, "model": model, "attention": "eager", "tokens": 2048, "recompute": "reentrant"}
        for method in ("lora-all", "lora-qv"):
            yield {**base, "model": model, "method": method}
            yield {**base, "model": model, "method": method, "recompute": "reentrant"}
    # So few tokens in the vocabulary that a layer's work is what is highest, and not the loss.
    for model in ("Llama-2-7B", "Llama-3.1-8B", "Llama-33B", "Llama-2-70B", "Qwen3-0.6B"):
        narrow = {**base, "model": model, "vocabulary": 1024, "layers": 2}
        for recompute in ("none", "reentrant"):
            yield {**narrow, "recompute": recompute}
            yield {**narrow, "recompute": recompute, "sequences": 4, "tokens": 1024, "padded": True}
            yield {**narrow, "recompute": recompute, "attention": "eager", "tokens": 2048}
            yield {**narrow, "recompute": recompute, "method": "lora-all"}
            yield {**narrow, "recompute": recompute, "bits": 32}
    for model in ("Llama-2-7B", "Llama-3.1-8B"):
        yield {**base, "model": model, "bits": 32}
        yield {**base, "model": model, "bits": 32, "sequences": 4, "tokens": 1024}


def main():
    import transformers
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int)
    options = parser.parse_args()
    statistics = CudaStatistics()
    versions = dict(transformers=transformers.__version__, torch=torch.__version__)
    for case in list(map(with_vocabulary, cases()))[options.first:options.last]:
        try:
            row = measure(case, statistics, options.show)
        except Exception as problem:  # one that this version cannot run leaves the others
            row = {**case, "error": f"{type(problem).__name__}: {problem}"[:300]}
        print(json.dumps({**versions, **row}), flush=True)
        gc.collect()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    main()
