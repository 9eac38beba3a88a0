"""A Llama or Qwen2 of transformers as the GGUF file that llama.cpp reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .cases import Built, Case

__all__ = ["ARCHITECTURES", "write", "write_model"]

#: Kinds of models (``config.model_type``) that are written; llama.cpp calls them the same.
ARCHITECTURES = ("llama", "qwen2")

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
    """Writes ``model.gguf``, and the tokens of a decoding case's cache to ``prompt.npy``."""
    module: Any = built.module
    write_model(module.model, case.weights, folder / "model.gguf")
    if hasattr(module, "prompt"):
        np.save(folder / "prompt.npy", np.array(module.prompt))


def write_model(model: Any, weights: str, path: Path) -> None:
    """Writes a model in f32; its weights of products in the dtype ``weights``, the embedding and norms in f32.

    A head that is the embedding is written again, as narrow as other weights are.
    """
    import gguf

    config = model.config
    writer = gguf.GGUFWriter(str(path), config.model_type)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    _add_vocabulary(writer, gguf, config.vocab_size)
    kind = gguf.GGMLQuantizationType[_KINDS[weights]]
    for name, tensor in _tensors(model, config):
        if tensor.ndim == 1 or name == "token_embd.weight" or weights == "f32":
            writer.add_tensor(name, tensor)
        else:
            writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


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
    # Of a Llama alone llama.cpp takes pairs that are rotated side by side.
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads} if config.model_type == "llama" else {}
    for i in range(config.num_hidden_layers):
        for theirs, ours in _LAYER.items():
            for part in ("weight", "bias"):
                tensor = state.get(f"model.layers.{i}.{theirs}.{part}")
                if tensor is not None:
                    found.append((f"blk.{i}.{ours}.{part}", _interleaved(tensor, heads[ours]) if ours in heads else tensor))
    return found


def _interleaved(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows in llama.cpp's order for rotary embeddings: pairs side by side instead of half a head apart."""
    pairs = weight.reshape(heads, 2, len(weight) // heads // 2, *weight.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(weight.shape)
