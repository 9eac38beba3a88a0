"""Profiles as Chrome's trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["trace_events"]


def trace_events(entry: str, nanoseconds: int, calls: Sequence[tuple[str, int, int, dict[str, Any]]]) -> dict[str, Any]:
    """The JSON object of one call of an entry.

    Source of the format: Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.

    Args:
        entry: its name.
        nanoseconds: that the call took.
        calls: name, begin and length in nanoseconds, and what is known of each call in it.
    """
    events = [("call", f"@{entry}", 0, nanoseconds, {}), *(("kernel", *call) for call in calls)]
    return {
        "displayTimeUnit": "ns",
        "traceEvents": [
            {"ph": "X", "cat": kind, "name": name, "ts": begin / 1e3, "dur": length / 1e3, "pid": 1, "tid": 1, "args": known}
            for kind, name, begin, length, known in sorted(events, key=lambda e: (e[2], -e[3]))
        ],
    }
