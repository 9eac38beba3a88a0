"""How an op reads images in another order of dimensions, as its class declares it: the op in, its new attributes out.

An image of three dimensions has its lines one after another, or has one line: NCHW becomes NCW, NHWC becomes NWC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .inference import normalize_axes, normalize_axis
from .layouts import permutation
from .struct_info import TensorInfo
from .symbolic import same

__all__ = ["AXIS", "CONVOLUTION", "LINES", "PAD", "REDUCTION", "RESHAPE", "SLICE", "TAKEN", "WINDOW", "Change", "ImageRule"]

_RANK = 4
_KERNELS = {"NCHW": "OIHW", "NHWC": "HWIO"}


@dataclass(frozen=True)
class Change:
    """From one order of an image's dimensions to another.

    Attributes:
        source, target: both by letters.
    """

    source: str
    target: str

    def moves(self, rank: int) -> bool:
        """Whether tensors of that many dimensions can be images."""
        return rank in (_RANK - 1, _RANK)

    def letters(self, rank: int) -> tuple[str, str]:
        """The dimensions of an image of that rank before and after."""
        if rank == _RANK:
            return self.source, self.target
        return self.source.replace("H", ""), self.target.replace("H", "")

    def order(self, rank: int) -> list[int]:
        """The ``axes`` of the permutation of an image of that rank."""
        return permutation(*self.letters(rank))


@dataclass(frozen=True)
class ImageRule:
    """What an op becomes.

    Attributes:
        moved: of an op and a change, the attributes that change with it; None when the op cannot read the other order.
    """

    moved: Callable[[Any, Change], dict[str, Any] | None]


def _ordered(rule: Callable[[Any, list[int]], dict[str, Any] | None]) -> ImageRule:
    """A rule by the order of the first operand's dimensions, which must be an image."""

    def moved(op: Any, change: Change) -> dict[str, Any] | None:
        rank = TensorInfo.of(op.operands[0]).rank
        return rule(op, change.order(rank)) if change.moves(rank) else None

    return ImageRule(moved)


def _convolution(op: Any, change: Change) -> dict[str, Any] | None:
    return {"data_layout": change.target, "kernel_layout": _KERNELS[change.target]} if op.data_layout == change.source else None


def _window(op: Any, change: Change) -> dict[str, Any] | None:
    return {"layout": change.target} if op.layout == change.source else None


def _axis(op: Any, order: list[int]) -> dict[str, Any]:
    return {"axis": order.index(normalize_axis(op.axis, len(order)))}


def _taken(op: Any, order: list[int]) -> dict[str, Any] | None:
    return _axis(op, order) if TensorInfo.of(op.indices).rank == 1 else None


def _pad(op: Any, order: list[int]) -> dict[str, Any]:
    return {"before": [op.before[i] for i in order], "after": [op.after[i] for i in order]}


def _slice(op: Any, order: list[int]) -> dict[str, Any]:
    return {"axes": [order.index(normalize_axis(a, len(order))) for a in op.axes]}


def _reduction(op: Any, order: list[int]) -> dict[str, Any] | None:
    """Of a result without the reduced dimensions, the others must be in the order that they had."""
    axes = normalize_axes(op.axis, len(order))
    kept = [i for i in order if i not in axes]
    if not op.keepdims and kept != sorted(kept):
        return None
    return {"axis": sorted(order.index(a) for a in axes)}


def _is_of_lines(op: Any) -> bool:
    """Whether an op puts an image's lines one after another, or takes them apart."""
    return {TensorInfo.of(op.operands[0]).rank, TensorInfo.of(op.results[0]).rank} == {_RANK - 1, _RANK}


def _reshape(op: Any, change: Change) -> dict[str, Any] | None:
    if not _is_of_lines(op):
        return None
    infos = TensorInfo.of(op.operands[0]), TensorInfo.of(op.results[0])
    rows = [info.shape[change.letters(info.rank)[0].index(letter)] for letter in "NC" for info in infos]
    return {} if same(rows[0], rows[1]) and same(rows[2], rows[3]) else None


def _lines(op: Any, change: Change) -> dict[str, Any] | None:
    axes = normalize_axes(op.axis, _RANK) if _is_of_lines(op) and op.axis is not None else []
    if len(axes) != 1 or change.source[axes[0]] not in "HW":
        return None
    return {"axis": [change.target.index(change.source[axes[0]])]}


#: ``data_layout`` says the order, ``kernel_layout`` that of the weight.
CONVOLUTION = ImageRule(_convolution)
#: ``layout`` says the order.
WINDOW = ImageRule(_window)
#: Works along ``axis``.
AXIS = _ordered(_axis)
#: Takes places along ``axis``, by a vector of indices.
TAKEN = _ordered(_taken)
#: Cuts along ``axes``.
SLICE = _ordered(_slice)
#: Adds ``before`` and ``after`` each dimension.
PAD = _ordered(_pad)
#: Sums along ``axis``, several, or keeps them as ones; what drops dimensions is in the old order of the others.
REDUCTION = _ordered(_reduction)
#: Puts in, or leaves out, a dimension of one.
LINES = ImageRule(_lines)
#: Puts lines one after another, or takes them apart.
RESHAPE = ImageRule(_reshape)
