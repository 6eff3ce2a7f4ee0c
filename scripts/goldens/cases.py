"""The models and batches that goldens are made for."""

from dataclasses import dataclass, field


@dataclass
class Case:
    name: str
    config: dict  # what config.json holds besides the common part
    lengths: list  # tokens of each sequence
    layout: str  # how transformers sees the sequences: "padded" or "packed"
    seed: int
    masked: float = 0.0  # share of targets that are not trained
    curve: dict = field(default_factory=dict)
    seeds: tuple = ()  # several starts of one curve, in bf16


def config_of(architecture, model_type, **keys):
    common = dict(
        architectures=[architecture], model_type=model_type, vocab_size=259, hidden_size=16,
        intermediate_size=44, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1,
        head_dim=8, hidden_act="silu", rms_norm_eps=1e-5, max_position_embeddings=256,
        tie_word_embeddings=False, bos_token_id=256, eos_token_id=257, initializer_range=0.02)
    return {**common, **keys}


def llama(**keys):
    return config_of("LlamaForCausalLM", "llama", **keys)


def rope_4x(rope_type, theta=10000.0, **keys):
    return dict(rope_theta=theta, rope_scaling=dict(rope_type=rope_type, **keys),
                torch_dtype="float32")


def rope_5x(rope_type, theta=10000.0, **keys):
    return dict(rope_parameters=dict(rope_type=rope_type, rope_theta=theta, **keys),
                dtype="float32")


PLAIN_4X = dict(rope_theta=10000.0, torch_dtype="float32")
CURVE = dict(steps=100, accumulation=2, micro_batches=6, learning_rate=2e-3, warmup_steps=10,
             weight_decay=0.1, max_grad_norm=1.0, beta1=0.9, beta2=0.999, epsilon=1e-8)

# Lengths exceed a tile of 64 or 128 rows and are no multiple of one; a sequence of one token has
# no target; 259 is no multiple of 16.
CASES = [
    Case("llama_gqa", llama(**PLAIN_4X), [150, 37, 1, 70], "packed", 1),
    Case("llama_tied", llama(**rope_5x("default"), num_key_value_heads=4, head_dim=4,
                             tie_word_embeddings=True), [70, 33, 129], "padded", 2, masked=0.3),
    Case("llama_odd_sizes", llama(**PLAIN_4X, hidden_size=25, intermediate_size=37,
                                  num_attention_heads=5, num_key_value_heads=5, head_dim=6,
                                  attention_bias=True, mlp_bias=True, num_hidden_layers=3,
                                  vocab_size=131, bos_token_id=1, eos_token_id=2),
         [67, 131, 5], "packed", 3),
    Case("llama_rope_llama3", llama(**rope_4x(
        "llama3", 500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=32), head_dim=16), [201, 66], "padded", 4),
    Case("llama_rope_linear", llama(**rope_4x("linear", factor=4.0), max_position_embeddings=64),
         [150, 65], "packed", 5),
    Case("llama_rope_dynamic", llama(**rope_5x("dynamic", factor=4.0), max_position_embeddings=64),
         [151, 40], "padded", 6),
    Case("llama_rope_yarn", llama(**rope_5x(
        "yarn", factor=4.0, original_max_position_embeddings=32), head_dim=16,
        max_position_embeddings=128), [130, 77], "packed", 7),
    Case("mistral_window", config_of("MistralForCausalLM", "mistral", **PLAIN_4X,
                                     sliding_window=24, num_key_value_heads=2),
         [100, 67, 24, 25], "packed", 8),
    Case("qwen2_bias", config_of("Qwen2ForCausalLM", "qwen2", rope_theta=1000000.0,
                                 torch_dtype="float32", use_sliding_window=False,
                                 num_key_value_heads=2, head_dim=4, rms_norm_eps=1e-6),
         [135, 64], "padded", 9),
    Case("qwen2_tied_window", config_of(
        "Qwen2ForCausalLM", "qwen2", **rope_5x("default", 1000000.0), tie_word_embeddings=True,
        use_sliding_window=True, sliding_window=20, max_window_layers=1, head_dim=4,
        num_key_value_heads=1), [90, 41], "packed", 10),
    Case("qwen3_qk_norm", config_of("Qwen3ForCausalLM", "qwen3", **rope_5x("default", 1000000.0),
                                    attention_bias=False, head_dim=12, rms_norm_eps=1e-6),
         [129, 63, 2], "padded", 11),
    Case("llama_curve", llama(**PLAIN_4X, num_key_value_heads=2), [80, 21, 44], "packed", 12,
         masked=0.2, curve=CURVE),
    Case("qwen3_curve", config_of("Qwen3ForCausalLM", "qwen3", **rope_5x("default"),
                                  attention_bias=False, head_dim=6, tie_word_embeddings=True),
         [70, 19], "packed", 13, curve=dict(CURVE, accumulation=3, max_grad_norm=2.0)),
    Case("llama_bf16", llama(rope_theta=10000.0, torch_dtype="bfloat16", num_key_value_heads=2),
         [80, 21, 44], "packed", 14, masked=0.2, curve=dict(CURVE, steps=50, warmup_steps=5),
         seeds=(1, 2, 3, 4, 5)),
]
