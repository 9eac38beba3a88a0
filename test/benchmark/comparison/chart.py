"""Rows as an SVG: per case and number of threads each peer's time relative to ours, on a logarithmic scale."""

from __future__ import annotations

import math
from html import escape

from .peers import OURS, PEERS
from .runs import Row

__all__ = ["svg"]

#: Colours that people with colour blindness tell apart (Okabe and Ito); each peer has a shape of its own as well.
_COLOURS = [
    "#000000", "#e69f00", "#56b4e9", "#009e73", "#d55e00", "#cc79a7",
    "#0072b2", "#888800", "#aa4499", "#661100", "#44aa99", "#6699cc",
    "#999933", "#117733",
]  # fmt: skip
_LEFT, _WIDTH, _RIGHT, _STEP, _TOP = 290, 560, 130, 22, 92
_LOW, _HIGH = 0.25, 16.0


def svg(rows: list[Row], title: str) -> str:
    """The chart; peers beyond its scale are drawn at its edge."""
    shown = [row for row in rows if row.outcomes[OURS].median is not None]
    height = _TOP + _STEP * len(shown) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + _RIGHT}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _text(12, 22, title, size=15),
        *_legend(),
        *_axis(height),
    ]
    for i, row in enumerate(shown):
        parts += _line(row, _TOP + _STEP * i + _STEP / 2)
    return "\n".join([*parts, "</svg>\n"])


def _legend() -> list[str]:
    parts: list[str] = []
    for i, name in enumerate(PEERS):
        x, y = 20 + 160 * (i % 6), 40 + 17 * (i // 6)
        parts += [_mark(name, x, y, name), _text(x + 9, y + 4, name)]
    return parts


def _axis(height: int) -> list[str]:
    parts: list[str] = []
    for power in range(round(math.log2(_LOW)), round(math.log2(_HIGH)) + 1):
        x, ratio = _place(2.0**power), 2.0**power
        colour, width = ("#000000", 1.5) if ratio == 1 else ("#dddddd", 1)
        parts.append(
            f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{height - 34}" stroke="{colour}" stroke-width="{width}"/>'
        )
        parts.append(_text(x, height - 18, f"{ratio:g}", anchor="middle"))
    parts.append(
        _text(_LEFT + _WIDTH / 2, height - 4, "time / time of relaxir (right of 1: relaxir is faster)", anchor="middle")
    )
    parts.append(_text(_LEFT + _WIDTH + 12, _TOP - 6, "relaxir, of limit"))
    return parts


def _line(row: Row, y: float) -> list[str]:
    threads = "1 thread" if row.threads == 1 else f"{row.threads} threads"
    parts = [_text(_LEFT - 8, y + 4, f"{row.case.name}, {threads}", anchor="end")]
    median, share = row.outcomes[OURS].median, row.share(OURS)
    if median is not None:
        of_limit = f", {share:.0%}" if share else ""
        parts.append(_text(_LEFT + _WIDTH + 12, y + 4, f"{median * 1e3:.3g} ms{of_limit}"))
    for name, outcome in row.outcomes.items():
        if outcome.status == "timed" and outcome.ratio:
            parts.append(_mark(name, _place(outcome.ratio), y, f"{name}: {outcome.ratio:.2f}"))
    return parts


def _place(ratio: float) -> float:
    """Where a ratio is drawn."""
    bounded = min(max(ratio, _LOW), _HIGH)
    return _LEFT + _WIDTH * math.log(bounded / _LOW) / math.log(_HIGH / _LOW)


def _mark(name: str, x: float, y: float, tip: str) -> str:
    """A polygon with the peer's number of corners, or a circle for ours."""
    corners = list(PEERS).index(name) + 2
    if name == OURS:
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"'
    else:
        angles = [2 * math.pi * i / corners - math.pi / 2 for i in range(corners)]
        points = " ".join(f"{x + 6 * math.cos(a):.1f},{y + 6 * math.sin(a):.1f}" for a in angles)
        shape = f'<polygon points="{points}"'
    return f'{shape} fill="{_COLOURS[corners - 2]}" fill-opacity="0.85"><title>{escape(tip)}</title>{_end(shape)}'


def _end(shape: str) -> str:
    return f"</{shape[1 : shape.index(' ')]}>"


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
