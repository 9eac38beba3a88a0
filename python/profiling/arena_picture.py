"""The memory of intermediate results as SVG: a rectangle for each buffer of the arena, over the calls that it lives for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate

from ..dialect.reports.report import bytes_text

__all__ = ["ArenaBlock", "arena_picture"]

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 760, 300, 70, 14, 16, 44
#: Colours are taken in turn, so that neighbours differ.
_COLOURS = 6


@dataclass(frozen=True)
class ArenaBlock:
    """A buffer of the arena.

    Attributes:
        offset, bytes: where it is, and how large.
        first, last: the numbers of the calls of kernels that it lives for.
    """

    offset: int
    bytes: int
    first: int
    last: int


def arena_picture(blocks: Sequence[ArenaBlock], calls: Sequence[str]) -> str:
    """The picture: calls in their order to the right, addresses up; empty without buffers.

    Args:
        blocks: of the arena.
        calls: the kernel of each call, and what it computes.
    """
    extent = max((b.offset + b.bytes for b in blocks), default=0)
    if not extent:
        return ""
    count = max(max(b.last for b in blocks) + 1, len(calls))
    across, up = (_WIDTH - _LEFT - _RIGHT) / count, (_HEIGHT - _TOP - _BOTTOM) / extent
    lines = list(_axes(extent, count, up, across))
    for i, b in enumerate(blocks):
        x, width = _LEFT + b.first * across, (b.last + 1 - b.first) * across
        y, height = _HEIGHT - _BOTTOM - (b.offset + b.bytes) * up, b.bytes * up
        during = " to ".join(dict.fromkeys(_call(n, calls) for n in (b.first, b.last)))
        told = f"{bytes_text(b.bytes)} at {bytes_text(b.offset)}\n{during}"
        box = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{max(height, 0.5):.1f}"'
        lines.append(f'<rect class="block{i % _COLOURS}" {box}><title>{escape(told)}</title></rect>')
    body = "\n".join([*lines, *_live(blocks, count, up, across)])
    label = "memory of intermediate results over the calls of kernels"
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">\n{body}\n</svg>'


def _call(number: int, calls: Sequence[str]) -> str:
    return f"call {number}" + (f", {calls[number]}" if number < len(calls) else "")


def _axes(extent: int, count: int, up: float, across: float) -> Iterator[str]:
    bottom, end = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for part in range(5):
        y = bottom - extent * part / 4 * up
        yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{end}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{bytes_text(extent * part // 4)}</text>'
    for number in sorted({count * part // 8 for part in range(8)}):
        yield f'<text x="{_LEFT + number * across:.1f}" y="{bottom + 16}">{number}</text>'
    yield f'<text x="{(_LEFT + end) / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">calls of kernels, in their order</text>'


def _live(blocks: Sequence[ArenaBlock], count: int, up: float, across: float) -> Iterator[str]:
    """How many bytes are in use, as a line: what a better plan could not go below."""
    changes = [0] * (count + 1)
    for b in blocks:
        changes[b.first] += b.bytes
        changes[b.last + 1] -= b.bytes
    live = list(accumulate(changes))[:count]
    points = "".join(f"V{_HEIGHT - _BOTTOM - size * up:.1f}H{_LEFT + (n + 1) * across:.1f}" for n, size in enumerate(live))
    yield f'<path class="live" d="M{_LEFT} {_HEIGHT - _BOTTOM}{points}"/>'
