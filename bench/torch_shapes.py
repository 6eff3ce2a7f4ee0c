"""Shapes of well-known models for the scripts beside this file that run torch and transformers."""

_LLAMA_2_7B = dict(vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32,
                   num_attention_heads=32, num_key_value_heads=32, max_position_embeddings=4096,
                   rms_norm_eps=1e-5, tie_word_embeddings=False)
_LLAMA_3_1_8B = dict(vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
                     num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=131072,
                     rms_norm_eps=1e-5, tie_word_embeddings=False)
_LLAMA_3_2_1B = dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                     num_attention_heads=32, num_key_value_heads=8, head_dim=64,
                     max_position_embeddings=131072, rms_norm_eps=1e-5, tie_word_embeddings=True)
SHAPES = {"llama-2-7b": _LLAMA_2_7B, "llama-3.1-8b": _LLAMA_3_1_8B, "llama-3.2-1b": _LLAMA_3_2_1B}


def empty_llama(config):
    """A transformers Llama without memory; fill() gives it some."""
    import torch
    from transformers import LlamaForCausalLM
    with torch.device("meta"):
        return LlamaForCausalLM(config)


def fill(model, config, device):
    """Gives a model of the meta device its memory and values, in place."""
    import torch
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
    model.to_empty(device=device)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1) if "norm" in name else parameter.normal_(0, 0.02)
    model.model.rotary_emb = LlamaRotaryEmbedding(config, device=device)
    if config.tie_word_embeddings:
        model.tie_weights()
    model.train()


def compiled_loss():
    """Of logits [batch, sequence, vocabulary] and the tokens [batch, sequence] that they are for: the mean, in f32."""
    import torch

    @torch.compile
    def loss_of(logits, labels):
        return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten())
    return loss_of
