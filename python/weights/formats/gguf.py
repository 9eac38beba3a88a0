"""GGUF: tensors in blocks as weight math, under the names that transformers has for the architecture.

The converter of llama.cpp permutes the rows of q and k of Llama models, so that rotary embeddings are of neighbours; here they
are permuted back. Source of the blocks: ``ggml-common.h`` of ggml; values are those of ``gguf.dequantize``, bit for bit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import numpy as np

from ...dialect.errors import RelaxError
from ..source import TensorSource
from .encoded import EncodedSource, EncodedWeight, RowPlace
from .gguf_file import GgufTensors
from .weight_math import MathValue, concat, constant

__all__ = ["decoded"]

#: Architectures whose tensors have these names in transformers; of others they keep the file's.
_ARCHITECTURES = ("llama", "qwen2", "qwen3")
_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LAYER = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
_NAME = re.compile(r"(?:blk\.(?P<layer>\d+)\.)?(?P<what>\w+)\.(?P<end>weight|bias)")

#: In how many bits products read a type.
_NARROW = {
    "Q4_0": "4 bits, a scale per 32", "Q8_0": "8 bits, a scale per 32", "Q4_K": "4 bits, a scale and minimum per 32",
    "Q5_K": "8 bits for 5 in the file, a scale and minimum per 32", "Q6_K": "8 bits for 6 in the file, a scale per 16",
}  # fmt: skip


def decoded(source: TensorSource) -> EncodedSource:
    """The weights of a GGUF file. Raises RelaxError where its metadata are not those of its architecture."""
    file = cast("GgufTensors", source)
    weights = {_model_name(file, name): _weight(file, name) for name in file.tensors}
    return EncodedSource(source, weights, "gguf")


def _model_name(file: GgufTensors, name: str) -> str:
    match = _NAME.fullmatch(name)
    if match is None or file.values.get("general.architecture") not in _ARCHITECTURES:
        return name
    table = _TOP if match["layer"] is None else _LAYER
    if match["what"] not in table:
        return name
    prefix = "" if match["layer"] is None else f"model.layers.{match['layer']}."
    return f"{prefix}{table[match['what']]}.{match['end']}"


def _weight(file: GgufTensors, name: str) -> EncodedWeight:
    entry, heads = file.tensors[name], _heads(file, name)
    kind, shape, parts = entry.kind.name, entry.shape, file.parts(name)
    if heads and (shape[0] % heads or shape[0] // heads % 2):
        raise RelaxError(f"'{file.path}': tensor {name!r}: expected rows of {heads} heads of even size, got {list(shape)}")
    size = shape[0] // heads if heads else 1
    math = partial(_math, blocks=_BLOCKS.get(kind), head=size if heads else 0)
    rows = {role: RowPlace(0) for role in parts}
    reason = f"{kind}, which preparation converts to the module's dtype"
    return EncodedWeight(shape, parts, math, rows, size, _NARROW.get(kind), "" if kind in _NARROW else reason)


def _heads(file: GgufTensors, name: str) -> int:
    """How many heads a tensor's rows are permuted in; 0 where they are not."""
    found = re.fullmatch(r"blk\.\d+\.attn_([qk])\.(weight|bias)", name)
    if found is None or file.values.get("general.architecture") != "llama":
        return 0
    counts = [file.values.get(f"llama.attention.head_count{end}") for end in ("_kv", "")]
    count: Any = next((c for c in counts[found[1] == "q" :] if c is not None), None)
    if type(count) is not int or count < 1:
        raise RelaxError(f"'{file.path}': llama.attention.head_count: expected a number of heads, got {count!r}")
    return count


def _math(t: Mapping[str, MathValue], blocks: Callable[..., MathValue] | None, head: int) -> MathValue:
    ordered = {role: _unpermuted(x, head) if head else x for role, x in t.items()}
    if blocks is None:
        return ordered["w"].astype("f32")
    outer = ordered["d"].shape[:-1]
    flat = {role: x.reshape(int(np.prod(outer)), *x.shape[len(outer) :]) for role, x in ordered.items()}
    found = blocks(flat)
    return found.reshape(*outer, found.shape[-1])


def _unpermuted(x: MathValue, head: int) -> MathValue:
    rows, *rest = x.shape
    split = x.reshape(rows // head, head // 2, 2, *rest)
    return split.permute(0, 2, 1, *range(3, 3 + len(rest))).reshape(rows, *rest)


def _nibbles(x: MathValue, run: int) -> MathValue:
    """Runs of bytes, each as many low nibbles and then as many high ones: ``[rows, blocks, 2 * bytes]``."""
    rows, count, size = x.shape
    return x.reshape(rows, count, size // run, 1, run).unpack_nibbles(3, 2).reshape(rows, count, 2 * size)


def _planes(x: MathValue, bits: int, run: int) -> MathValue:
    """Runs of bytes, each as many fields of the lowest bits, then of the next: ``[rows, blocks, 8 / bits * bytes]``."""
    rows, count, size = x.shape
    shifts = constant(np.arange(0, 8, bits, dtype=np.uint8)[:, None])
    fields = (x.reshape(rows, count, size // run, 1, run) >> shifts) & ((1 << bits) - 1)
    return fields.reshape(rows, count, size * 8 // bits)


def _q4_0(t: Mapping[str, MathValue]) -> MathValue:
    rows, count = t["d"].shape
    q = _nibbles(t["qs"], 16).reshape(rows, count * 32)
    return q.dequantize(t["d"].astype("f32"), constant(np.array(8, np.uint8)))


def _q8_0(t: Mapping[str, MathValue]) -> MathValue:
    rows, count = t["d"].shape
    return t["qs"].reshape(rows, count * 32).dequantize(t["d"].astype("f32"), constant(np.array(0, np.int8)))


def _q6_k(t: Mapping[str, MathValue]) -> MathValue:
    rows, count = t["d"].shape
    q = _nibbles(t["ql"], 64).astype("ui8") | (_planes(t["qh"], 2, 32) << 4)
    scale = t["scales"].reshape(rows, count * 16).scaled(t["d"].astype("f32"))
    return q.reshape(rows, count * 256).dequantize(scale, constant(np.array(32, np.uint8)))


def _scales(t: Mapping[str, MathValue]) -> tuple[MathValue, MathValue]:
    """Eight scales and minima of six bits in twelve bytes, as ``[rows, 8 * blocks]`` in f32."""
    first, second, third = (t["scales"].part(2, at, at + 4) for at in (0, 4, 8))
    scale = concat(first & 63, (third & 15) | ((first >> 6) << 4), 2)
    low = concat(second & 63, (third >> 4) | ((second >> 6) << 4), 2)
    rows, count = t["d"].shape
    wide = [x.reshape(rows, count * 8).scaled(d.astype("f32")) for d, x in ((t["d"], scale), (t["dmin"], low))]
    return wide[0], wide[1]


def _with_minima(t: Mapping[str, MathValue], q: MathValue) -> MathValue:
    rows, count = t["d"].shape
    return q.reshape(rows, count * 256).dequantize(*_scales(t))


def _q4_k(t: Mapping[str, MathValue]) -> MathValue:
    return _with_minima(t, _nibbles(t["qs"], 32))


def _q5_k(t: Mapping[str, MathValue]) -> MathValue:
    return _with_minima(t, _nibbles(t["qs"], 32).astype("ui8") | (_planes(t["qh"], 1, 32) << 4))


_BLOCKS: dict[str, Callable[[Mapping[str, MathValue]], MathValue]] = {
    "Q4_0": _q4_0, "Q8_0": _q8_0, "Q4_K": _q4_k, "Q5_K": _q5_k, "Q6_K": _q6_k,
}  # fmt: skip
