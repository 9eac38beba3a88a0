"""A Llama of transformers as the GGUF file that llama.cpp reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .cases import Built, Case

__all__ = ["write"]

_LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}

#: llama.cpp's own types: a scale of 16 bits for 32 elements of eight and four bits.
_KINDS = {"f32": "F32", "bf16": "BF16", "int8": "Q8_0", "int4": "Q4_0"}


def write(case: Case, built: Built, folder: Path) -> None:
    """Writes ``model.gguf``, and the tokens of a decoding case's cache to ``prompt.npy``.

    Weights of products are in the case's dtype, the embedding and norms in f32.
    """
    import gguf

    module: Any = built.module
    model = module.model
    config = model.config
    writer = gguf.GGUFWriter(str(folder / "model.gguf"), "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_rope_freq_base(10000.0)
    _add_vocabulary(writer, gguf, config.vocab_size)
    kind = gguf.GGMLQuantizationType[_KINDS[case.weights]]
    for name, tensor in _tensors(model, config):
        if tensor.ndim == 1 or name == "token_embd.weight" or case.weights == "f32":
            writer.add_tensor(name, tensor)
        else:
            writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if hasattr(module, "prompt"):
        np.save(folder / "prompt.npy", np.array(module.prompt))


def _add_vocabulary(writer: Any, gguf: Any, size: int) -> None:
    """Tokens without meaning: the cases name tokens by number."""
    writer.add_vocab_size(size)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([b"<unk>", b"<s>", b"</s>", *(f"t{i}".encode() for i in range(size - 3))])
    writer.add_token_scores([0.0] * size)
    kinds = gguf.TokenType
    writer.add_token_types([kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL, *[kinds.NORMAL] * (size - 3)])


def _tensors(model: Any, config: Any) -> list[tuple[str, np.ndarray]]:
    state = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    found = [
        ("token_embd.weight", state["model.embed_tokens.weight"]),
        ("output_norm.weight", state["model.norm.weight"]),
        ("output.weight", state["lm_head.weight"]),
    ]
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for i in range(config.num_hidden_layers):
        for theirs, ours in _LAYER.items():
            tensor = state[f"model.layers.{i}.{theirs}.weight"]
            found.append((f"blk.{i}.{ours}.weight", _interleaved(tensor, heads[ours]) if ours in heads else tensor))
    return found


def _interleaved(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows in llama.cpp's order for rotary embeddings: pairs side by side instead of half a head apart."""
    out, size = weight.shape
    return np.ascontiguousarray(weight.reshape(heads, 2, out // heads // 2, size).swapaxes(1, 2)).reshape(out, size)
