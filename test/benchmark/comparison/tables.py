"""Rows as text and as JSON."""

from __future__ import annotations

import math
import os
import platform
import time
from pathlib import Path
from typing import Any

from .peers import FORMS, OURS, OWN
from .runs import Outcome, Row

__all__ = ["as_json", "machine", "row_text", "summary"]


def machine() -> dict[str, Any]:
    """The processor, and how busy it is as the run starts."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        flags = next((line for line in lines if line.startswith("flags")), "").split()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        flags, name = [], platform.processor()
    return {
        "cpu": name,
        "cores": len(os.sched_getaffinity(0)),
        "features": [f for f in flags if f.startswith(("avx", "fma", "amx"))],
        "system": platform.platform(),
        "load": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def row_text(row: Row) -> str:
    """A paragraph: a line per peer."""
    threads = "1 thread" if row.threads == 1 else f"{row.threads} threads"
    limit = f"   limit {_time(row.limit)} ({row.bound})" if row.limit else ""
    apart = f"   cores {min(row.apart) * 1e9:.0f} to {max(row.apart) * 1e9:.0f} ns apart" if row.apart else ""
    lines = [f"{row.case.name}, {threads}{limit}{apart}"]
    if all(outcome.status == "not run" for outcome in row.outcomes.values()):
        return f"{lines[0]}\n  not run: {row.outcomes[OURS].text}"
    for name, outcome in row.outcomes.items():
        lines.append(f"  {name:14s} {_outcome_text(row, name, outcome)}")
    return "\n".join(lines)


def _outcome_text(row: Row, name: str, outcome: Outcome) -> str:
    if outcome.status != "timed" or outcome.median is None:
        return f"{outcome.status}: {outcome.text}"
    ratio = f"{outcome.ratio:7.2f} x" if outcome.ratio else " " * 9
    share = f"{row.share(name):6.1%} of limit   " if row.share(name) else ""
    note = f"   {outcome.facts['note']}" if outcome.facts.get("note") else ""
    built = f"loaded in {outcome.facts['load_s']:5.1f} s"
    return f"{_time(outcome.median)} {ratio}   {share}error {outcome.facts['error']:.0e}   {built}{note}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:9.3f} ms" if seconds < 0.1 else f"{seconds * 1e3:9.1f} ms"


def best_peer(row: Row) -> tuple[str, float] | None:
    """The quickest of the others with its time relative to ours; above 1 ours is quicker."""
    ratios = {name: o.ratio for name, o in row.outcomes.items() if name not in OWN and o.status == "timed" and o.ratio}
    return min(ratios.items(), key=lambda item: item[1]) if ratios else None


def summary(rows: list[Row]) -> str:
    """A line per row: ours, its share of the limit, the best peer; geometric means of kernels and of models at the end."""
    lines = [f"{'case':28s} {'threads':>7s} {'relaxir':>12s} {'of limit':>9s}   best peer / relaxir"]
    for row in rows:
        ours, best = row.outcomes[OURS], best_peer(row)
        if ours.median is None:
            lines.append(f"{row.case.name:28s} {row.threads:7d} {ours.status}: {ours.text}")
            continue
        against = f"{best[1]:5.2f} x  {best[0]}" if best else "no peer was timed"
        share = f"{row.share(OURS):9.1%}" if row.share(OURS) else " " * 9
        lines.append(f"{row.case.name:28s} {row.threads:7d} {_time(ours.median)} {share}   {against}")
        lines += _form_lines(row, best)
    for threads in sorted({row.threads for row in rows}):
        compared = [(row, best[1]) for row in rows if row.threads == threads and (best := best_peer(row))]
        if compared:
            mean, count = _geometric_mean([ratio for _, ratio in compared]), len(compared)
            lines.append(f"{threads} thread(s): geometric mean of best peer / relaxir {mean:.2f} over {count} cases")
        for form, (what, where) in FORMS.items():
            if any(_relative(row, form) for row, _ in compared):
                mean = _geometric_mean([ratio / (_relative(row, form) or 1.0) for row, ratio in compared])
                lines.append(f"{'':13s}{mean:.2f} with {what} {where}")
    return "\n".join(lines)


def _geometric_mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _relative(row: Row, form: str) -> float | None:
    """How long ours takes in a form, relative to ours, where that was timed."""
    found = row.outcomes.get(form)
    return found.ratio if found is not None and found.median is not None else None


def _form_lines(row: Row, best: tuple[str, float] | None) -> list[str]:
    """A line for each form of ours that was timed."""
    lines: list[str] = []
    for form, (what, _) in FORMS.items():
        ratio = _relative(row, form)
        if not ratio:
            continue
        median = row.outcomes[form].median
        assert median is not None
        against = f"{best[1] / ratio:5.2f} x  {best[0]}" if best else "no peer was timed"
        share = f"{row.share(form):9.1%}" if row.share(form) else " " * 9
        lines.append(f"  {what:26s} {row.threads:7d} {_time(median)} {share}   {against}")
    return lines


def as_json(rows: list[Row], about: dict[str, Any]) -> dict[str, Any]:
    """Everything measured; ``about`` is put beside the rows."""
    return about | {"rows": [_row_json(row) for row in rows]}


def _row_json(row: Row) -> dict[str, Any]:
    peers = {
        name: {"status": o.status, "text": o.text, "median_s": o.median, "ratio": o.ratio, "share": row.share(name)}
        | {"turns_s": o.seconds}
        | o.facts
        for name, o in row.outcomes.items()
    }
    about = {"case": row.case.name, "threads": row.threads, "weights": row.case.weights, **row.work}
    return about | {"limit_s": row.limit, "bound": row.bound, "apart_s": row.apart, "peers": peers}
