"""Weight math on parts: from the cut of a result back to those of operands, where each rank then computes its part of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...bindings import ir
from ...cut import Cut
from ...errors import RelaxError
from ...inference import normalize_axis
from ...op import attrs_of
from ...ops import Concat, Dequantize, LookUp, Repeat, Reshape, StridedSlice, UnpackNibbles
from ...struct_info import TensorInfo
from .cut_rules import nibbles_per_word, parameter_cut, reshaped

__all__ = ["demands_of"]

Demands = list[tuple[ir.Value, Cut]]


def demands_of(op: ir.OpView, cut: Cut, ranks: int) -> Demands | None:
    """The operands to cut so that an op gives parts; empty where none will do, None for an op that no rule here is of.

    Words and groups of elements that share a scale are not cut: parts begin and end where these do.
    """
    rule = _RULES.get(type(op))
    return None if rule is None else rule(op, cut, ranks)


def _reshape(op: Any, cut: Cut, ranks: int) -> Demands:
    try:
        found = reshaped(TensorInfo.of(op.results[0]).shape, TensorInfo.of(op.x).shape, cut, ranks)
    except RelaxError:
        return []
    return [] if found is None else [(op.x, found)]


def _of_others(op: Any, cut: Cut, ranks: int) -> Demands:
    """What a slice, or one tensor behind the other, is along axes that it leaves as they are."""
    axes: Sequence[int] = [op.axis] if isinstance(op, Concat) else attrs_of(op)["axes"]
    if cut.axis in [normalize_axis(a, TensorInfo.of(op.results[0]).rank) for a in axes]:
        return []
    return [(value, cut) for value in op.operands]


def _repeat(op: Any, cut: Cut, ranks: int) -> Demands:
    if normalize_axis(op.axis, TensorInfo.of(op.x).rank) != cut.axis:
        return [(op.x, cut)]
    return _by(op.x, cut, op.repeats, ranks)


def _unpack_nibbles(op: Any, cut: Cut, ranks: int) -> Demands:
    info = TensorInfo.of(op.x)
    if normalize_axis(op.axis, info.rank) != cut.axis:
        return [(op.x, cut)]
    return [] if attrs_of(op)["layout"] is not None else _by(op.x, cut, nibbles_per_word(info), ranks)


def _by(x: ir.Value, cut: Cut, count: int, ranks: int) -> Demands:
    """A demand on what has an element for so many."""
    fits = all(p % (count * ranks) == 0 for p in cut.pieces)
    return [(x, Cut(cut.axis, tuple(p // count for p in cut.pieces)))] if fits else []


def _dequantize(op: Any, cut: Cut, ranks: int) -> Demands:
    found: Demands = [(op.x, cut)]
    for parameter in (op.scale, op.zero_point):
        own = parameter_cut(op, parameter, cut, ranks)
        if own is None:
            return []
        if isinstance(own, Cut):
            found.append((parameter, own))
    return found


def _look_up(op: Any, cut: Cut, ranks: int) -> Demands:
    return [(op.codes, cut)]


_RULES: dict[type[ir.OpView], Callable[[Any, Cut, int], Demands]] = {
    Reshape: _reshape, StridedSlice: _of_others, Concat: _of_others, Repeat: _repeat,
    UnpackNibbles: _unpack_nibbles, Dequantize: _dequantize, LookUp: _look_up,
}  # fmt: skip
