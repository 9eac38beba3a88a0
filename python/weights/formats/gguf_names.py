"""What models of transformers call the tensors of a GGUF file, by its architecture.

Source: ``gguf.get_tensor_name_map`` of llama.cpp's Python package has the names, ``convert_hf_to_gguf.py`` what the converter
does to values: rows of q and k of Llama models and those converted alike are permuted, norms of Gemma models are 1 more.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

__all__ = [
    "GGUF_ARCHITECTURES", "expert_names", "file_name", "has_experts", "has_norms_of_one_more", "is_permuted", "is_row",
    "is_wide", "joined_experts", "model_name",
]  # fmt: skip

_TOP = {"token_embd": "embed_tokens", "output_norm": "norm"}
_OUTPUT = {"output": "lm_head"}
_ATTENTION = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
}  # fmt: skip
_GATED = {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
_PLAIN = _ATTENTION | _GATED | {"ffn_norm": "post_attention_layernorm"}
#: Of mixtures of experts: what chooses them, and the one that all tokens go to.
_ROUTED = _PLAIN | {
    "ffn_gate_inp": "mlp.gate", "ffn_gate_inp_shexp": "mlp.shared_expert_gate", "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
    "ffn_up_shexp": "mlp.shared_expert.up_proj", "ffn_down_shexp": "mlp.shared_expert.down_proj",
}  # fmt: skip
_FOUR_NORMS = {
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}  # fmt: skip
_FUSED = {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}

#: The tensors of a layer, by architecture.
GGUF_ARCHITECTURES: dict[str, Mapping[str, str]] = {
    "llama": _ROUTED,  # and Mistral, Mixtral
    "qwen2": _PLAIN,
    "qwen2moe": _ROUTED,
    "qwen3": _PLAIN,
    "qwen3moe": _ROUTED,
    "olmoe": _ROUTED,
    "gemma": _PLAIN,
    "gemma2": _PLAIN | _FOUR_NORMS,
    "gemma3": _PLAIN | _FOUR_NORMS,
    "gemma-embedding": _PLAIN | _FOUR_NORMS,
    "phi3": _PLAIN | _FUSED,
    "command-r": _PLAIN,
    "cohere2": _PLAIN,
    "stablelm": _PLAIN,
    "granite": _PLAIN,
    "minicpm": _PLAIN,
    "olmo": _PLAIN,
    "smollm3": _PLAIN,
    "olmo2": _PLAIN | {k: v for k, v in _FOUR_NORMS.items() if k != "ffn_norm"},
    "phi2": _PLAIN | {"attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2"},
    "starcoder2": _PLAIN | {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
}
#: Those whose rotary embedding is of neighbours there, and of halves in a model.
_PERMUTED = frozenset(("granite", "llama", "minicpm", "olmo", "smollm3"))
#: Those whose norms multiply with 1 + weight, which the file has. Of Gemma 3n and 4 file and model have the same.
_ONE_MORE = frozenset(("gemma", "gemma2", "gemma3", "gemma-embedding"))
#: Names outside of layers that are not everyone's.
_OWN_TOP = {"phi2": {"output_norm": "final_layernorm"}}
#: Experts are one tensor in a file; a model has two of these side by side in another one.
_EXPERTS = re.compile(r"blk\.(\d+)\.ffn_(gate|up|down)_exps\.weight")
_MODEL_EXPERTS = re.compile(r"model\.layers\.(\d+)\.mlp\.experts\.(gate_up|down)_proj")
_NAME = re.compile(r"(?:blk\.(?P<layer>\d+)\.)?(?P<what>\w+)\.(?P<end>weight|bias)")
_MODEL_NAME = re.compile(r"(?:model\.layers\.(?P<layer>\d+)\.)?(?P<what>[\w.]+)\.(?P<end>weight|bias)")


def model_name(architecture: object, name: str) -> str:
    """The name that a model has for a tensor; the file's, where nothing is known of the architecture or the tensor."""
    match, layers = _NAME.fullmatch(name), GGUF_ARCHITECTURES.get(str(architecture))
    if match is None or layers is None:
        return name
    experts = _EXPERTS.fullmatch(name)
    if experts is not None and experts[2] == "down" and has_experts(architecture):
        return f"model.layers.{experts[1]}.mlp.experts.down_proj"
    layer, what, end = match["layer"], match["what"], match["end"]
    if layer is not None:
        return f"model.layers.{layer}.{layers[what]}.{end}" if what in layers else name
    top = _TOP | _OWN_TOP.get(str(architecture), {})
    if what in top:
        return f"model.{top[what]}.{end}"
    return f"{_OUTPUT[what]}.{end}" if what in _OUTPUT else name


def file_name(architecture: str, name: str) -> str | None:
    """The name that a file has for a model's tensor; None where the architecture has none like it."""
    match = _MODEL_NAME.fullmatch(name)
    if match is None:
        return None
    layer, what, end = match["layer"], match["what"].replace("block_sparse_moe.", "mlp."), match["end"]  # Mixtral's files
    top = {key: f"model.{value}" for key, value in (_TOP | _OWN_TOP.get(architecture, {})).items()} | _OUTPUT
    table, prefix = (top, "") if layer is None else (GGUF_ARCHITECTURES[architecture], f"blk.{layer}.")
    return next((f"{prefix}{key}.{end}" for key, value in table.items() if value == what), None)


def expert_names(architecture: str, name: str) -> tuple[str, ...]:
    """What a file has for the experts of a model in one tensor, the rows of the one before those of the other; else nothing."""
    match = _MODEL_EXPERTS.fullmatch(name) if has_experts(architecture) else None
    if match is None:
        return ()
    parts = ("gate", "up") if match[2] == "gate_up" else ("down",)
    return tuple(f"blk.{match[1]}.ffn_{part}_exps.weight" for part in parts)


def has_experts(architecture: object) -> bool:
    """Whether models of an architecture may be mixtures of experts whose names are known."""
    return GGUF_ARCHITECTURES.get(str(architecture)) is _ROUTED


def joined_experts(architecture: object, names: Collection[str]) -> dict[str, tuple[str, str]]:
    """What a model calls the gates of its experts with what they gate, and the tensors that these are in a file."""
    layers = [m[1] for n in names if has_experts(architecture) and (m := _EXPERTS.fullmatch(n)) and m[2] == "gate"]
    found = {layer: tuple(f"blk.{layer}.ffn_{what}_exps.weight" for what in ("gate", "up")) for layer in layers}
    return {f"model.layers.{layer}.mlp.experts.gate_up_proj": (gate, up) for layer, (gate, up) in found.items() if up in names}


def is_row(name: str) -> bool:
    """Whether a model has one row where a file may have a vector: converters drop dimensions of one."""
    return name.endswith(".ffn_gate_inp_shexp.weight")


def is_wide(name: str) -> bool:
    """Whether converters keep a matrix in f32: what chooses experts."""
    return re.search(r"\.ffn_gate_inp(_shexp)?\.weight$", name) is not None


def is_permuted(architecture: object, name: str) -> bool:
    """Whether the rows of a tensor are in another order than a model has them."""
    return str(architecture) in _PERMUTED and re.fullmatch(r"blk\.\d+\.attn_[qk]\.(weight|bias)", name) is not None


def has_norms_of_one_more(architecture: object, name: str) -> bool:
    """Whether a tensor is what a norm multiplies with, where the model has what that is more than 1."""
    return str(architecture) in _ONE_MORE and name.endswith("_norm.weight")
