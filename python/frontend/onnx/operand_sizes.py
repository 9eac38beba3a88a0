"""Which dimensions of an operator's operands are equal: its node, with one size for those that are and are not known to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...dialect.symbolic import Dim
from ..einsum import einsum_letters
from ..emit import common_size, info_of
from .equal_sizes import with_sizes
from .node import Node
from .values import GraphValue

__all__ = ["with_equal_sizes"]

_DOMAIN = "com.microsoft"


@dataclass
class _Letters:
    """A letter for each dimension of each operand; those of one letter are equal.

    Attributes:
        terms: of operands in their order. ``_`` stands for any size, ``...`` for any dimensions; an operand of another rank has
            no letters. A small letter stands for the same as a capital one, where a size of 1 is broadcast.
        known: the sizes of some.
        all_broadcast: whether letters are told apart by case, and all sizes of 1 are broadcast.
    """

    terms: Sequence[str]
    known: Mapping[str, Dim] = field(default_factory=dict[str, Dim])
    all_broadcast: bool = False


def with_equal_sizes(node: Node) -> Node:
    """The node, where sizes that its operator wants to be equal are taken to be, which each call checks.

    Of several sizes a known number is taken, then what is shortest to write. Numbers that differ are left to the operator.
    """
    found = _LETTERS.get(node.key)
    if found is None:
        return node
    letters = _Letters(found.replace(" ", "").split(",")) if isinstance(found, str) else found(node)
    sizes: dict[int, dict[int, Dim]] = {}
    for letter, places in _places(node, letters).items():
        size = letters.known.get(letter) or common_size(node.operand(i).shape[axis] for i, axis in places)
        for i, axis in places:
            sizes.setdefault(i, {})[axis] = size
    operands = [_resized(o, sizes.get(i, {})) for i, o in enumerate(node.operands)]
    return replace(node, operands=operands)


def _places(node: Node, letters: _Letters) -> dict[str, list[tuple[int, int]]]:
    """The operands and axes that have each letter, but for those that are broadcast."""
    found: dict[str, list[tuple[int, int]]] = {}
    for i, (operand, term) in enumerate(zip(node.operands, letters.terms, strict=False)):
        if isinstance(operand, GraphValue):
            for axis, letter in enumerate(_spelled(term, operand.rank)):
                is_broadcast = operand.shape[axis] == 1 and (letters.all_broadcast or letter.islower())
                if letter != "_" and not is_broadcast:
                    found.setdefault(letter if letters.all_broadcast else letter.upper(), []).append((i, axis))
    return found


def _spelled(term: str, rank: int) -> str:
    """A letter for each dimension of a tensor of that rank, none where the term is of another one."""
    first, dots, last = term.partition("...")
    rest = rank - len(first) - len(last)
    return first + "_" * rest + last if not rest or (dots and rest > 0) else ""


def _resized(operand: Any, sizes: Mapping[int, Dim]) -> Any:
    """A tensor of these sizes along some axes; a cache, which is state, stays what it is."""
    if not isinstance(operand, GraphValue) or operand.cache is not None:
        return operand
    if all(size is None or isinstance(operand.shape[a], int) or size == operand.shape[a] for a, size in sizes.items()):
        return operand
    value = with_sizes(operand.value, sizes)
    return replace(operand, shape=info_of(value).shape, make=lambda: value)


def _leading(count: int) -> str:
    """Letters for so many dimensions, none of which is broadcast."""
    return "".join(chr(ord("A") + i) for i in range(count))


def _einsum(node: Node) -> _Letters:
    terms = einsum_letters(node.attribute("equation", ""), [node.rank(i) for i in range(len(node.operands))])
    return _Letters(terms, all_broadcast=True)


def _quantized(node: Node) -> _Letters:
    """A scale and a zero point for each index of an axis, or for each block along it."""
    rank = node.rank(0)
    axis = node.attribute("axis", 1) % max(rank, 1)
    if node.attribute("block_size", 0):
        term, size = _leading(rank), node.operand(0).shape[axis]
        blocks = None if size is None else (size + node.attribute("block_size") - 1) // node.attribute("block_size")
        return _Letters([term[:axis] + "_" + term[axis + 1 :], term, term], {term[axis]: blocks})
    return _Letters(["_" * axis + "c...", "c", "c"])


def _recurrent(node: Node) -> _Letters:
    """``x, w, r, b, lengths, hidden, cell, peepholes``, with the batch in front where ``layout`` is 1."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[node.key]
    hidden = node.attribute("hidden_size") or node.operand(2).shape[-1]
    first = bool(node.attribute("layout", 0))
    state = "NDH" if first else "DNH"
    known: dict[str, Dim] = {"D": 2 if node.attribute("direction", "forward") == "bidirectional" else 1, "H": hidden}
    if isinstance(hidden, int):
        known |= {"G": gates * hidden, "B": 2 * gates * hidden, "P": 3 * hidden}
    return _Letters(["N_I" if first else "_NI", "DGI", "DGH", "DB", "N", state, state, "DP"], known)


def _transposed_convolution(node: Node) -> _Letters:
    """Each of several groups has as many results as the weight has columns."""
    return _Letters(["_C...", "CO...", "O"] if node.attribute("group", 1) == 1 else ["_C...", "C..."])


def _group_norm(node: Node) -> _Letters:
    if node.version >= 21:
        return _Letters(["_C...", "C", "C"])
    return _Letters(["", "G", "G"], {"G": node.attribute("num_groups")})


def _gather_nd(node: Node) -> _Letters:
    batch = _leading(node.attribute("batch_dims", 0))
    return _Letters([f"{batch}...", f"{batch}..."])


def _scatter_elements(node: Node) -> _Letters:
    term = _leading(node.rank(1))
    return _Letters(["", term, term])


def _scatter_nd(node: Node) -> _Letters:
    """The updates have the indices' dimensions but the last, then the tensor's behind as many as that says."""
    outer, depth = node.rank(1) - 1, node.operand(1).shape[-1]
    batch = _leading(outer)
    if not isinstance(depth, int):
        return _Letters(["", f"{batch}_", f"{batch}..."])
    inner = _leading(outer + node.rank(0) - depth)[outer:]
    return _Letters(["_" * depth + inner, f"{batch}_", batch + inner])


def _tensor_scatter(node: Node) -> _Letters:
    rank = node.rank(0)
    axis = node.attribute("axis", -2) % max(rank, 1)
    term = _leading(rank)
    term = term[:axis] + "_" + term[axis + 1 :]
    return _Letters([term, term, term[:1]])


def _unpooled(node: Node) -> _Letters:
    term = _leading(node.rank(0))
    return _Letters([term, term])


def _product_of_bits(node: Node) -> _Letters:
    return _Letters(["...K", "", "", "", "", "N"], {"K": node.attribute("K"), "N": node.attribute("N")})


def _of_columns(node: Node) -> _Letters:
    """``a, scale, zero, b, scale, zero``: the second factor has parameters for its columns."""
    return _Letters(["", "", "", "n_" if node.attribute("transB", 0) else "_n", "n", "n"])


def _sum(*sizes: Dim) -> Dim:
    total: Any = 0
    for size in sizes:
        if size is None:
            return None
        total = total + size
    return total


#: Of a mask for each key, or for each query and key, by rank.
_MASKS = {2: "nT", 3: "nLT"}


def _mask(node: Node, index: int, total: str) -> str:
    """Letters of a mask, with that of the keys. One in a row is twice as long where it says where keys begin, too."""
    if not node.has(index):
        return ""
    if node.rank(index) == 1:
        batch, count = node.operand(0).shape[0], node.operand(index).shape[0]
        return "" if batch is None or count == batch * 2 else "N"
    return _MASKS.get(node.rank(index), "").replace("T", total)


def _lengths(node: Node, new: tuple[str, Dim], old: Dim, masks: Mapping[int, str]) -> dict[str, Dim]:
    """The sizes of ``T``, new keys behind old ones, and of those of these that it tells where a mask has a known number."""
    letter, count = new
    total = _sum(count, old)
    sizes = [node.operand(i).shape[-1] for i, term in masks.items() if term.endswith("T")]
    found = next((s for s in sizes if isinstance(s, int)), None)
    if found is None or isinstance(total, int) or old is None:
        return {"T": total}
    if not isinstance(count, int):
        return {"T": found, letter: found - old}
    return {"T": found, "P": found - count} if found >= count else {"T": total}


def _attention(node: Node, mask: int = 3, past: int = 4) -> _Letters:
    """``x, weight, bias``, a mask, a cache of keys and values, and what is added to scores."""
    total = "T" if node.has(past) else "L"
    masks = {mask: _mask(node, mask, total)}
    if mask == 3 and node.has(5):
        masks[5] = f"nhL{total}"
    terms = ["NLI", "IG", "G", *[""] * 6]
    terms[past] = "_N_P_"
    for i, term in masks.items():
        terms[i] = term
    known: dict[str, Dim] = {"H": node.attribute("num_heads")}
    if node.has(past):
        known |= _lengths(node, ("L", node.operand(0).shape[1]), node.operand(past).shape[3], masks)
    return _Letters(terms, known)


def _quantized_attention(node: Node) -> _Letters:
    return _attention(node, mask=5, past=8)


def _multi_head_attention(node: Node) -> _Letters:
    """Keys and values of a cache, which come first, or of other tokens; these may be by heads already."""
    axes = {i: 2 if node.rank(i) == 4 else 1 for i in (1, 2) if node.has(i)}
    of_keys = ["N_K_" if axes.get(i) == 2 else "NK..." for i in (1, 2)]
    letter = "K" if axes else "L"
    has_past = node.has(6) and node.has(7)
    total = "T" if has_past else letter
    masks = {4: _mask(node, 4, total)} | ({5: f"nhL{total}"} if node.has(5) else {})
    known: dict[str, Dim] = {"H": node.attribute("num_heads")}
    if has_past:
        keys = common_size(node.operand(i).shape[axis] for i, axis in (axes or {0: 1}).items())
        known |= _lengths(node, (letter, keys), common_size(node.operand(i).shape[2] for i in (6, 7)), masks)
    return _Letters(["NL...", *of_keys, "", masks[4], masks.get(5, ""), "N_P_", "N_P_"], known)


def _rotary(node: Node) -> _Letters:
    x = "NL_" if node.rank(0) == 3 else "N_L_"
    return _Letters([x, "nL", "MH", "MH"])


#: Of operators that are not broadcast alone, and whose attributes say nothing, the terms of their operands.
_LETTERS: dict[str, str | Callable[[Node], _Letters]] = {
    "BatchNormalization": "_C..., C, C, C, C",
    "Conv": ", O..., O",
    "ConvInteger": ", o...,, o",
    "ConvTranspose": _transposed_convolution,
    "DequantizeLinear": _quantized,
    "Einsum": _einsum,
    "GRU": _recurrent,
    "GatherND": _gather_nd,
    "GridSample": "N..., N...",
    "GroupNormalization": _group_norm,
    "InstanceNormalization": "_C..., C, C",
    "LSTM": _recurrent,
    "MatMulInteger": "...m_, ..._n, m, n",
    "MaxUnpool": _unpooled,
    "NonMaxSuppression": "NB_, N_B",
    "QLinearConv": ",,, o..., o, o,,, o",
    "QLinearMatMul": "...m_, m, m, ..._n, n, n, m, m",
    "QuantizeLinear": _quantized,
    "RNN": _recurrent,
    "RoiAlign": ", R_, R",
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _tensor_scatter,
    f"{_DOMAIN}.Attention": _attention,
    f"{_DOMAIN}.DynamicQuantizeMatMul": ", ..._n, n, n, n",
    f"{_DOMAIN}.EmbedLayerNormalization": "NL, NL, _C, _C, _C, C, C, NL, nL",
    f"{_DOMAIN}.FusedConv": ", O..., O",
    f"{_DOMAIN}.GroupQueryAttention": "NL_, NL_, NL_, N_P_, N_P_, N",
    f"{_DOMAIN}.MatMulIntegerToFloat": "...m_, ..._n, m, n, m, n, n",
    f"{_DOMAIN}.MatMulNBits": _product_of_bits,
    f"{_DOMAIN}.MultiHeadAttention": _multi_head_attention,
    f"{_DOMAIN}.QAttention": _quantized_attention,
    f"{_DOMAIN}.QGemm": _of_columns,
    f"{_DOMAIN}.RotaryEmbedding": _rotary,
    f"{_DOMAIN}.SkipLayerNormalization": "...C, ...C, C, C, C",
    f"{_DOMAIN}.SkipSimplifiedLayerNormalization": "...C, ...C, C, C",
}
