#!/usr/bin/env python3
"""Writes tests/spec/goldens/families.json: what transformers makes of a few config.json texts.

For each config: every parameter's name and shape in state-dict order, the window of each layer
(0: none) and the scaling of cosine and sine. Needs torch and transformers from PyPI; the versions
go into the file. Run from the repository's root:

    python3 scripts/make_family_goldens.py
"""

import json
import pathlib
import tempfile

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

SMALL = dict(vocab_size=96, hidden_size=32, intermediate_size=56, num_hidden_layers=3,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
             bos_token_id=1, eos_token_id=2)


def config(architecture, model_type, **keys):
    return dict(architectures=[architecture], model_type=model_type, **{**SMALL, **keys})


def llama(**keys):
    return config("LlamaForCausalLM", "llama", **keys)


def mistral(**keys):
    return config("MistralForCausalLM", "mistral", **keys)


def qwen2(**keys):
    return config("Qwen2ForCausalLM", "qwen2", **keys)


def qwen3(**keys):
    return config("Qwen3ForCausalLM", "qwen3", **keys)


LLAMA3 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
YARN = dict(factor=4.0, original_max_position_embeddings=64)
CONFIGS = {
    "llama, class defaults": dict(architectures=["LlamaForCausalLM"], model_type="llama"),
    "mistral, class defaults": dict(architectures=["MistralForCausalLM"], model_type="mistral"),
    "qwen2, class defaults": dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2"),
    "qwen3, class defaults": dict(architectures=["Qwen3ForCausalLM"], model_type="qwen3"),
    "llama 2 style": llama(rope_theta=10000.0, rope_scaling=None, torch_dtype="float16"),
    "llama 3.2 style": llama(rope_theta=500000.0, tie_word_embeddings=True,
                             rope_scaling=dict(rope_type="llama3", **LLAMA3)),
    "llama 3.2 style, new spelling": llama(
        tie_word_embeddings=True,
        rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, **LLAMA3)),
    "llama, biases": llama(attention_bias=True, mlp_bias=True),
    "llama, no key/value heads given": {k: v for k, v in llama().items()
                                        if k != "num_key_value_heads"},
    "llama, legacy linear": llama(rope_scaling=dict(type="linear", factor=4.0)),
    "llama, dynamic": llama(rope_scaling=dict(rope_type="dynamic", factor=4.0)),
    "mistral, window": mistral(sliding_window=16),
    "mistral, no window, own head width": mistral(sliding_window=None, head_dim=20),
    "qwen2, tied": qwen2(tie_word_embeddings=True, use_sliding_window=False, sliding_window=16),
    "qwen2, window from layer 1": qwen2(use_sliding_window=True, sliding_window=16,
                                        max_window_layers=1),
    "qwen2, layer types": qwen2(
        use_sliding_window=True, sliding_window=16,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
    "qwen2, yarn": qwen2(rope_scaling=dict(type="yarn", **YARN)),
    "qwen2, yarn with mscale": qwen2(rope_parameters=dict(
        rope_type="yarn", rope_theta=1e6, mscale=0.7, mscale_all_dim=0.9, **YARN)),
    "qwen2, yarn with attention_factor": qwen2(rope_scaling=dict(
        rope_type="yarn", attention_factor=0.5, **YARN)),
    "qwen2, yarn without factor": qwen2(rope_scaling=dict(
        rope_type="yarn", factor=None, original_max_position_embeddings=64)),
    "qwen3, head width above D/H": qwen3(head_dim=16, tie_word_embeddings=True),
    "qwen3, biases": qwen3(head_dim=8, attention_bias=True),
}


def window_of(attention, loaded):
    if hasattr(attention, "sliding_window"):
        return attention.sliding_window or 0
    # Mistral's layers read it from the config; Llama's have none.
    return getattr(loaded, "sliding_window", None) or 0


def describe(keys):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "config.json").write_text(json.dumps(keys))
        loaded = AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(loaded)
    tied = loaded.tie_word_embeddings
    parameters = [[name, list(tensor.shape)] for name, tensor in model.state_dict().items()
                  if not (tied and name == "lm_head.weight")]
    layers = model.model.layers
    shown = parameters
    if len(parameters) > 60:  # class defaults: later layers say nothing that layer 0 does not
        shown = [p for p in parameters if not p[0].startswith("model.layers.")
                 or p[0].startswith("model.layers.0.")]
    return dict(config=keys, parameters=shown,
                parameter_count=sum(torch.Size(shape).numel() for _, shape in parameters),
                windows=[window_of(layer.self_attn, loaded) for layer in layers],
                attention_scaling=float(model.model.rotary_emb.attention_scaling),
                head_width=layers[0].self_attn.head_dim,
                norm_epsilon=loaded.rms_norm_eps,
                rope_theta=loaded.rope_parameters["rope_theta"],
                max_position_embeddings=loaded.max_position_embeddings,
                begin_token_id=-1 if loaded.bos_token_id is None else loaded.bos_token_id,
                end_token_ids=[] if loaded.eos_token_id is None else [loaded.eos_token_id])


def main():
    versions = {"transformers": transformers.__version__, "torch": torch.__version__}
    cases = [f"  {json.dumps(name)}: {json.dumps(describe(keys))}"
             for name, keys in CONFIGS.items()]
    head = ['{', ' "made_by": "scripts/make_family_goldens.py",',
            f' "versions": {json.dumps(versions)},', ' "cases": {']
    target = pathlib.Path("tests/spec/goldens/families.json")
    target.write_text("\n".join(head) + "\n" + ",\n".join(cases) + "\n }\n}\n")
    print(f"{target}: {len(cases)} cases")


if __name__ == "__main__":
    main()
