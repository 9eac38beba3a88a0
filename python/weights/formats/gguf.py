"""GGUF: tensors in blocks as weight math, under the names that transformers has for the architecture.

The converter of llama.cpp permutes the rows of q and k of Llama models, so that rotary embeddings are of neighbours; here they
are permuted back. Source of the blocks: ``ggml-common.h`` of ggml; values are those of ``gguf.dequantize``, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import numpy as np

from ...dialect.errors import RelaxError
from ..source import TensorSource
from .encoded import EncodedSource, EncodedWeight, RowPlace
from .fp8 import exponents
from .gguf_file import GgufTensors
from .gguf_names import has_norms_of_one_more, is_permuted, is_row, joined_experts, model_name
from .weight_math import MathValue, concat, constant

__all__ = ["decoded"]

#: In how many bits products read a type.
_NARROW = {
    "Q4_0": "4 bits, a scale per 32", "Q4_1": "4 bits, a scale and minimum per 32", "Q5_0": "5 bits, a scale per 32",
    "Q5_1": "5 bits, a scale and minimum per 32", "Q2_K": "4 bits for 2 in the file, a scale and minimum per 16",
    "Q3_K": "4 bits for 3 in the file, a scale per 16", "IQ4_XS": "codes of 4 bits, a scale per 32",
    "Q8_0": "8 bits, a scale per 32", "Q4_K": "4 bits, a scale and minimum per 32",
    "IQ4_NL": "codes of 4 bits, a scale per 32", "MXFP4": "floats of 4 bits, an exponent per 32",
    "Q5_K": "5 bits, a scale and minimum per 32", "Q6_K": "6 bits, a scale per 16",
}  # fmt: skip


def decoded(source: TensorSource) -> EncodedSource:
    """The weights of a GGUF file. Raises RelaxError where its metadata are not those of its architecture."""
    file = cast("GgufTensors", source)
    architecture = file.values.get("general.architecture")
    joined = joined_experts(architecture, file.tensors)
    parts = {name for pair in joined.values() for name in pair}
    weights = {model_name(architecture, name): _weight(file, name) for name in file.tensors if name not in parts}
    weights |= {name: _joined(file, *pair) for name, pair in joined.items()}
    return EncodedSource(source, weights, "gguf")


def _weight(file: GgufTensors, name: str) -> EncodedWeight:
    entry, heads = file.tensors[name], _heads(file, name)
    kind, shape, parts = entry.kind.name, entry.shape, file.parts(name)
    if heads and (shape[0] % heads or shape[0] // heads % 2):
        raise RelaxError(f"'{file.path}': tensor {name!r}: expected rows of {heads} heads of even size, got {list(shape)}")
    size = shape[0] // heads if heads else 1
    more = has_norms_of_one_more(file.values.get("general.architecture"), name)
    math = partial(_math, blocks=_BLOCKS.get(kind), head=size if heads else 0, more=int(more))
    if len(shape) == 1 and is_row(name):
        return EncodedWeight((1, *shape), parts, lambda t: math(t).reshape(1, *shape), reason="a vector that is one row")
    rows = {role: RowPlace(0) for role in parts}
    reason = f"{kind}, which preparation converts to the module's dtype"
    return EncodedWeight(shape, parts, math, rows, size, _NARROW.get(kind), "" if kind in _NARROW else reason)


def _joined(file: GgufTensors, gate: str, up: str) -> EncodedWeight:
    """Two tensors of experts, ``[experts, rows, inputs]``, as one with the rows of both."""
    first, second = file.tensors[gate], file.tensors[up]
    if len(first.shape) != 3 or first.shape != second.shape:
        shapes = f"{list(first.shape)} and {list(second.shape)}"
        raise RelaxError(f"'{file.path}': tensors {gate!r}, {up!r}: expected experts of one shape, got {shapes}")
    stored = {f"{name}.{role}": part for name in (gate, up) for role, part in file.parts(name).items()}
    kinds = [file.tensors[name].kind.name for name in (gate, up)]
    blocks = [_BLOCKS.get(kind) for kind in kinds]

    def math(t: Mapping[str, MathValue]) -> MathValue:
        of = [{role: t[f"{name}.{role}"] for role in file.parts(name)} for name in (gate, up)]
        if kinds[0] == kinds[1]:  # blocks side by side, so that products can read them as they are
            return _math({role: concat(x, of[1][role], 1) for role, x in of[0].items()}, blocks[0], 0, 0)
        return concat(*(_math(own, how, 0, 0) for own, how in zip(of, blocks, strict=True)), axis=1)

    experts, count, inputs = first.shape
    narrow = _NARROW.get(kinds[0]) if kinds[0] == kinds[1] else None
    reason = "" if narrow else f"experts of {kinds[0]} beside {kinds[1]}"
    return EncodedWeight((experts, 2 * count, inputs), stored, math, {r: RowPlace(0) for r in stored}, 1, narrow, reason)


def _heads(file: GgufTensors, name: str) -> int:
    """How many heads a tensor's rows are permuted in; 0 where they are not."""
    architecture = file.values.get("general.architecture")
    if not is_permuted(architecture, name):
        return 0
    counts = [file.values.get(f"{architecture}.attention.head_count{end}") for end in ("_kv", "")]
    count: Any = next((c for c in counts[".attn_q." in name :] if c is not None), None)
    if type(count) is not int or count < 1:
        raise RelaxError(f"'{file.path}': {architecture}.attention.head_count: expected a number of heads, got {count!r}")
    return count


def _math(t: Mapping[str, MathValue], blocks: Callable[..., MathValue] | None, head: int, more: int) -> MathValue:
    """The weight in f32, or in f64 as it is stored; ``more`` is what the file's elements are more than the model's."""
    ordered = {role: _unpermuted(x, head) if head else x for role, x in t.items()}
    if blocks is None:
        stored = ordered["w"]
        wide = stored if stored.dtype == np.float64 else stored.astype("f32")
        return wide - more if more else wide
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


def _q4_1(t: Mapping[str, MathValue]) -> MathValue:
    rows, count = t["d"].shape
    return _above_minimum(t, _nibbles(t["qs"], 16).reshape(rows, count * 32))


def _five_bits(t: Mapping[str, MathValue]) -> MathValue:
    rows, count = t["d"].shape
    q = _nibbles(t["qs"], 16).astype("ui8") | (_planes(t["qh"], 1, 1) << 4)
    return q.reshape(rows, count * 32)


def _q5_0(t: Mapping[str, MathValue]) -> MathValue:
    return _five_bits(t).dequantize(t["d"].astype("f32"), constant(np.array(16, np.uint8)))


def _q5_1(t: Mapping[str, MathValue]) -> MathValue:
    return _above_minimum(t, _five_bits(t))


def _above_minimum(t: Mapping[str, MathValue], q: MathValue) -> MathValue:
    """``q * d + m``: the negative of m is subtracted, which is the same to the last bit."""
    return q.dequantize(t["d"].astype("f32"), (t["m"] * -1).astype("f32"))


def _q8_0(t: Mapping[str, MathValue]) -> MathValue:
    rows, count = t["d"].shape
    return t["qs"].reshape(rows, count * 32).dequantize(t["d"].astype("f32"), constant(np.array(0, np.int8)))


def _q6_k(t: Mapping[str, MathValue]) -> MathValue:
    rows, count = t["d"].shape
    q = _nibbles(t["ql"], 64).astype("ui8") | (_planes(t["qh"], 2, 32) << 4)
    scale = t["scales"].reshape(rows, count * 16).scaled(t["d"].astype("f32"))
    return q.reshape(rows, count * 256).dequantize(scale, constant(np.array(32, np.uint8)))


def _q2_k(t: Mapping[str, MathValue]) -> MathValue:
    rows, count = t["d"].shape
    q = _planes(t["qs"], 2, 32).astype("ui4").reshape(rows, count * 256)
    pairs = ((t["d"], t["scales"] & 15), (t["dmin"], t["scales"] >> 4))
    scale, low = (x.reshape(rows, count * 16).scaled(d.astype("f32")) for d, x in pairs)
    return q.dequantize(scale, low)


def _q3_k(t: Mapping[str, MathValue]) -> MathValue:
    """Four less than the lowest two bits and a third one, which is 1 where nothing is taken away."""
    rows, count = t["d"].shape
    q = (_planes(t["qs"], 2, 32) | (_planes(t["qh"], 1, 32) << 2)).astype("ui4")
    low, high = _nibbles(t["scales"].part(2, 0, 8), 8), _planes(t["scales"].part(2, 8, 12), 2, 4)
    scale = _six_bit_scales(t, low, high)
    return q.reshape(rows, count * 256).dequantize(scale, constant(np.array(4, np.uint8)))


def _six_bit_scales(t: Mapping[str, MathValue], low: MathValue, high: MathValue) -> MathValue:
    rows, count = t["d"].shape
    scale = (low.astype("ui8") | (high << 4)).reshape(rows, count * low.shape[-1])
    return scale.dequantize(t["d"].astype("f32"), constant(np.array(32, np.uint8)))


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


_IQ4_NL = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
_MXFP4 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6)


def _codes(t: Mapping[str, MathValue], table: tuple[float, ...], scale: MathValue) -> MathValue:
    rows, count, size = t["qs"].shape
    codes = _nibbles(t["qs"], 16).reshape(rows, count * 2 * size)
    return codes.look_up(constant(np.array(table, np.float32))).scaled(scale.astype("f32"))


def _iq4_nl(t: Mapping[str, MathValue]) -> MathValue:
    return _codes(t, _IQ4_NL, t["d"])


def _iq4_xs(t: Mapping[str, MathValue]) -> MathValue:
    return _codes(t, _IQ4_NL, _six_bit_scales(t, _nibbles(t["scales_l"], 1), _planes(t["scales_h"], 2, 1)))


def _mxfp4(t: Mapping[str, MathValue]) -> MathValue:
    """An exponent of 255 is NaN, as the format has it; GGML, which never writes it, computes on with ``2 ** 128``."""
    return _codes(t, _MXFP4, exponents(t["d"]))


_BLOCKS: dict[str, Callable[[Mapping[str, MathValue]], MathValue]] = {
    "IQ4_NL": _iq4_nl, "IQ4_XS": _iq4_xs, "MXFP4": _mxfp4, "Q4_0": _q4_0, "Q4_1": _q4_1, "Q5_0": _q5_0, "Q5_1": _q5_1,
    "Q8_0": _q8_0, "Q2_K": _q2_k, "Q3_K": _q3_k, "Q4_K": _q4_k, "Q5_K": _q5_k, "Q6_K": _q6_k,
}  # fmt: skip
