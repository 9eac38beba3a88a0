"""A roofline as SVG: each kernel where its operations per byte and its speed put it, under what the machine can do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from .limits import SpeedLimits
from .result import KernelProfile
from .texts import plain_place

__all__ = ["roofline"]

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 760, 360, 70, 22, 16, 44
#: Circles by the share of the time: its area is.
_RADIUS = 22
#: Kernels with a label.
_LABELS = 4


def roofline(kernels: Sequence[KernelProfile], limits: SpeedLimits) -> str:
    """The picture, both axes logarithmic; empty where no kernel has known bytes and operations, or there is no limit."""
    known = [k for k in kernels if k.flops and k.bytes and k.seconds]
    if not known or not limits.bandwidth:
        return ""
    ridge = limits.flops / limits.bandwidth
    places = [(k.flops / k.bytes, k.flops * k.calls / k.seconds) for k in known if k.flops and k.bytes]
    view = _View.around([x for x, _ in places] + [ridge], [y for _, y in places] + [limits.flops])
    whole = sum(k.seconds for k in kernels)
    lines = [*view.grid(), *_roofs(view, limits, ridge)]
    for i, (k, (x, y)) in enumerate(zip(known, places, strict=True)):
        lines += _kernel(view, k, (x, y), k.seconds / whole, i < _LABELS)
    body = "\n".join(lines)
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="roofline of the kernels">\n{body}\n</svg>'


class _View:
    """Logarithmic axes: operations per byte to the right, operations per second up."""

    def __init__(self, x: tuple[int, int], y: tuple[int, int]):
        self.x, self.y = x, y

    @staticmethod
    def around(xs: Sequence[float], ys: Sequence[float]) -> _View:
        """Whole powers of ten around all places."""
        (left, right), (low, high) = ((math.floor(math.log10(min(v))), math.ceil(math.log10(max(v)))) for v in (xs, ys))
        return _View((left, max(right, left + 1)), (low, max(high, low + 1)))

    def right(self, value: float) -> float:
        low, high = self.x
        return _LEFT + (math.log10(value) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def down(self, value: float) -> float:
        low, high = self.y
        return _HEIGHT - _BOTTOM - (math.log10(value) - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    def grid(self) -> Iterator[str]:
        """A line at each power of ten, and what the axes are."""
        bottom, end = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        for power in range(self.x[0], self.x[1] + 1):
            x = self.right(10.0**power)
            yield f'<path class="grid" d="M{x:.1f} {_TOP}V{bottom}"/>'
            yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{10.0**power:g}</text>'
        for power in range(self.y[0], self.y[1] + 1):
            y = self.down(10.0**power)
            yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{end}"/>'
            yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0 ** (power - 9):g}</text>'
        yield f'<text x="{(_LEFT + end) / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">operations per byte</text>'
        middle = (_TOP + bottom) / 2
        yield f'<text transform="translate(16 {middle:.0f}) rotate(-90)" text-anchor="middle">GFLOP/s</text>'


def _roofs(view: _View, limits: SpeedLimits, ridge: float) -> Iterator[str]:
    """What memory gives, up to the ridge; from there on what the cores do."""
    start = 10.0 ** view.x[0]
    low = 10.0 ** view.y[0]
    first = max(start, low / limits.bandwidth)
    x, y = view.right(ridge), view.down(limits.flops)
    from_ = f"{view.right(first):.1f} {view.down(first * limits.bandwidth):.1f}"
    yield f'<path class="roof" d="M{from_}L{x:.1f} {y:.1f}H{_WIDTH - _RIGHT}"/>'
    flops = f"{limits.flops / 1e9:.0f} GFLOP/s {limits.kind}, {limits.bandwidth / 1e9:.0f} GB/s from memory"
    yield f'<text x="{_WIDTH - _RIGHT}" y="{y - 6:.1f}" text-anchor="end">{flops}</text>'


def _kernel(view: _View, kernel: KernelProfile, place: tuple[float, float], share: float, labelled: bool) -> Iterator[str]:
    x, y = view.right(place[0]), view.down(place[1])
    ops = " ".join(op.removeprefix("relax.") for op in kernel.ops)
    speed = f"{100 * share:.1f}% of the time in kernels, {place[1] / 1e9:.1f} GFLOP/s"
    told = f"{kernel.name}: {ops}\n{speed}\n{plain_place(kernel.where)}"
    radius = max(_RADIUS * math.sqrt(share), 2.5)
    circle = f'<circle class="{escape(kernel.kind)}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
    yield f"{circle}<title>{escape(told)}</title></circle>"
    if labelled:
        anchor, dx = ("end", -radius - 3) if x > _WIDTH / 2 else ("start", radius + 3)
        yield f'<text x="{x + dx:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">{escape(kernel.name)}</text>'
