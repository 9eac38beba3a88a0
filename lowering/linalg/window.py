"""Sliding windows over images, ``[n, c, h, w]`` or ``[n, h, w, c]``: sizes of the output, and where its windows lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dialect.bindings import ir
from ...dialect.op import Attrs
from .builder import LinalgBuilder, Size

__all__ = ["Axis", "axes_of", "output_size", "spatial_axes", "window_exprs", "with_spatial"]


@dataclass(frozen=True)
class Axis:
    """How windows move along one of the two axes."""

    size: Size
    kernel: Size
    stride: int
    before: int
    after: int
    dilation: int


def axes_of(sizes: Sequence[Size], kernel: Sequence[Size], attrs: Attrs) -> list[Axis]:
    """Both axes from an op's attributes; ``padding`` is top, left, bottom, right."""
    padding = attrs["padding"]
    return [
        Axis(sizes[i], kernel[i], attrs["strides"][i], padding[i], padding[2 + i], attrs["dilation"][i]) for i in range(2)
    ]  # fmt: skip


def spatial_axes(layout: str) -> list[int]:
    """Which dimensions of an image are height and width."""
    return [layout.index("H"), layout.index("W")]


def with_spatial(items: Sequence[Size], layout: str, spatial: Sequence[Size]) -> list[Size]:
    """One item per dimension of an image, those of height and width replaced."""
    replaced = dict(zip(spatial_axes(layout), spatial, strict=True))
    return [replaced.get(i, item) for i, item in enumerate(items)]


def window_exprs(axes: Sequence[Axis], layout: str) -> list[ir.AffineExpr]:
    """The element of a padded image at loops over the result's dimensions, in its layout, and then over the window's two."""
    loops: list[ir.AffineExpr] = [ir.AffineExpr.get_dim(i) for i in range(6)]
    where = loops[:4]
    for i, (axis, place) in enumerate(zip(axes, spatial_axes(layout), strict=True)):
        where[place] = loops[place] * axis.stride + loops[4 + i] * axis.dilation
    return where


def output_size(b: LinalgBuilder, axis: Axis, ceil: bool = False) -> Size:
    """How many windows there are; with ``ceil`` one that starts inside the input or the padding before it counts."""
    reach = b.arith("muli", b.arith("subi", axis.kernel, 1), axis.dilation)
    span = b.arith("subi", b.arith("addi", axis.size, axis.before + axis.after - 1), reach)
    count = b.arith("addi", b.arith("ceildivsi" if ceil else "divsi", span, axis.stride), 1)
    if not ceil:
        return count
    # The last window must not start beyond: (count - 1) * stride < size + before.
    return b.arith("minsi", count, b.arith("ceildivsi", b.arith("addi", axis.size, axis.before), axis.stride))
