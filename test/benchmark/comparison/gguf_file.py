"""A Llama, Qwen2 or Qwen3-MoE of transformers as the GGUF file that llama.cpp reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .cases import Built, Case

__all__ = ["ARCHITECTURES", "write", "write_model"]

#: Kinds of models (``config.model_type``) that are written, and what llama.cpp calls them.
ARCHITECTURES = {"llama": "llama", "qwen2": "qwen2", "qwen3_moe": "qwen3moe"}

_LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate": "ffn_gate_inp",
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
    writer = gguf.GGUFWriter(str(path), ARCHITECTURES[config.model_type])
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_rope_dimension_count(size)
    if hasattr(config, "num_experts"):
        writer.add_key_length(size)
        writer.add_value_length(size)
        writer.add_expert_count(config.num_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    _add_vocabulary(writer, gguf, config.vocab_size)
    kind = gguf.GGMLQuantizationType[_KINDS[weights]]
    for name, tensor in _tensors(model, config):
        if tensor.ndim == 1 or name == "token_embd.weight" or "gate_inp" in name or weights == "f32":
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
        found += _experts(state, i)
    return found


def _experts(state: dict[str, np.ndarray], layer: int) -> list[tuple[str, np.ndarray]]:
    """The matrices of all experts of a layer, ``[experts, out, in]``; none of a layer without such."""
    first = state.get(f"model.layers.{layer}.mlp.experts.gate_up_proj")
    if first is None:
        return []
    gate, up = np.split(first, 2, axis=1)
    parts = {"gate": gate, "up": up, "down": state[f"model.layers.{layer}.mlp.experts.down_proj"]}
    return [(f"blk.{layer}.ffn_{name}_exps.weight", np.ascontiguousarray(part)) for name, part in parts.items()]


def _interleaved(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows in llama.cpp's order for rotary embeddings: pairs side by side instead of half a head apart."""
    pairs = weight.reshape(heads, 2, len(weight) // heads // 2, *weight.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(weight.shape)
