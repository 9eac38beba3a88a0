"""A profile as one HTML page, which loads nothing: kernels in a table, their roofline, memory, preparation, compilation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib import resources

from ..dialect.reports.report import bytes_text
from .arena_picture import arena_picture
from .result import KernelProfile, Profile
from .roofline import roofline
from .texts import plain_place, seconds_text

__all__ = ["report_page"]

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width"><title>{title}</title><style>{style}</style></head>
<body>
{body}
</body></html>
"""


def report_page(title: str, profile: Profile) -> str:
    """The page. Args: title: what was profiled, such as the artifact's name."""
    parts = [*_head(title, profile), *_kernels(profile), *_pictures(profile), *_preparation(profile), *_compilation(profile)]
    style = resources.files(__package__ or "").joinpath("report.css").read_text(encoding="utf-8")
    return _PAGE.format(title=escape(f"{title}: profile"), style=style, body="\n".join(parts))


def _head(title: str, profile: Profile) -> Iterator[str]:
    limits = profile.limits
    yield f"<h1>{escape(title)}: @{escape(profile.entry)}</h1>"
    sizes = ", ".join(f"{n} = {size}" for n, size in profile.sizes.items())
    sizes = f" ({escape(sizes)})" if sizes else ""
    yield "<ul>"
    yield f"<li><b>{seconds_text(profile.seconds)}</b> a call, median of {profile.rounds}{sizes}; "
    yield f"{seconds_text(profile.clocked_seconds)} with a clock around each kernel</li>"
    speed = f"{limits.flops / 1e9:.1f} GFLOP/s {limits.kind}, {limits.bandwidth / 1e9:.1f} GB/s from memory"
    yield f"<li>{escape(profile.note or f'this {limits.machine}: {speed}, measured beside')}</li></ul>"


def _kernels(profile: Profile) -> Iterator[str]:
    yield "<h2>Kernels</h2>"
    head = ["kernel", "what it computes", "where", "kind", "calls", "time", "of all", "bytes", "GFLOP/s", "of limit"]
    whole = sum(k.seconds for k in profile.kernels) + profile.between_seconds
    rows = [_kernel_row(k, whole) for k in profile.kernels]
    between = ["", "between kernels", "", "", "", *_time_cells(profile.between_seconds, whole), "", "", ""]
    yield from _table(head, [*rows, between], numbers=range(4, 10))
    yield f"<p>Of limit: {profile.limits.share_text}.</p>"


def _kernel_row(k: KernelProfile, whole: float) -> list[str]:
    ops = " ".join(op.removeprefix("relax.") for op in k.ops)
    speed = f"{k.flops * k.calls / k.seconds / 1e9:.1f}" if k.flops and k.seconds else ""
    share = "" if k.share is None else f"{100 * k.share:.0f}% {k.bound}"
    size = "" if k.bytes is None else bytes_text(k.bytes)
    return [k.name, ops, plain_place(k.where), k.kind, str(k.calls), *_time_cells(k.seconds, whole), size, speed, share]


def _time_cells(seconds: float, whole: float) -> list[str]:
    return [seconds_text(seconds), f"{100 * seconds / whole:.1f}%" if whole else ""]


def _pictures(profile: Profile) -> Iterator[str]:
    picture = roofline(profile.kernels, profile.limits)
    if picture:
        yield f"<h2>Roofline</h2>\n{picture}"
        yield "<p>A circle's area is the kernel's share of the time; hover for what it is. Bytes are those of its operands: "
        yield "data that a cache keeps comes faster than from memory.</p>"
    ops = {k.name: " ".join(op.removeprefix("relax.") for op in k.ops) for k in profile.kernels}
    calls = [f"{name}: {ops[name]}" if ops.get(name) else name for name in profile.arena_calls]
    picture = arena_picture(profile.arena, calls)
    if picture:
        yield f"<h2>Memory of intermediate results: {bytes_text(profile.arena_bytes)}</h2>\n{picture}"
        yield "<p>A rectangle is a buffer of the arena, over the calls that it lives for; the line is what is in use.</p>"


def _preparation(profile: Profile) -> Iterator[str]:
    report = profile.preparation
    if report is None:
        return
    times = report.times
    yield f"<h2>Preparation of the weights: {seconds_text(report.seconds)}</h2>"
    rows = [["read", times.read], ["compute", times.compute], ["write", times.write]]
    yield from _table(["", "time"], [[str(n), seconds_text(float(s))] for n, s in rows], numbers=[1])
    sizes = f"{bytes_text(report.raw_bytes)} to {bytes_text(report.prepared_bytes)}, {report.steps_run} steps"
    yield f"<p>{sizes}. Reading, computing and writing of different weights overlap: they add up to more than the time.</p>"


def _compilation(profile: Profile) -> Iterator[str]:
    made = profile.compilation
    if made is None:
        return
    yield f"<h2>Compilation: {seconds_text(made.seconds)}</h2>"
    yield from _table(["stage", "time", "of all"], [[n, *_time_cells(s, made.seconds)] for n, s in made.stages], numbers=[1, 2])
    passes = sorted(made.passes, key=lambda p: -p[1])
    yield "<details><summary>passes, the longest first</summary>"
    yield from _table(["pass", "time", "of all"], [[n, *_time_cells(s, made.seconds)] for n, s in passes], numbers=[1, 2])
    yield "</details>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int]) -> Iterator[str]:
    right = set(numbers)

    def line(tag: str, cells: Sequence[str]) -> str:
        made = (f"<{tag}{' class=n' if i in right else ''}>{escape(cell)}</{tag}>" for i, cell in enumerate(cells))
        return f"<tr>{''.join(made)}</tr>"

    yield f"<table>{line('th', head)}"
    yield from (line("td", row) for row in rows)
    yield "</table>"
