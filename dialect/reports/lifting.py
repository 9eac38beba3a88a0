"""The report's section on lifting: what left inference and what that costs, what stays, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from .report import Section, aligned, bytes_text, plural

__all__ = ["KeptWeight", "LiftSection", "LiftedValue", "NotLifted", "Reason"]

#: So many ops that read run-time values are shown one by one; a model has thousands, and they are no news.
_FEW = 8
#: Names of weights shown in a line.
_NAMES = 3


class Reason(StrEnum):
    """Why an op that reads weights stays in inference."""

    RUN_TIME_VALUE = "run-time-value"
    RUN_TIME_SYMBOL = "run-time-symbol"
    BARRIER = "barrier"
    OVERRIDE = "override"
    NOT_PURE = "not-pure"
    SPECULATION = "unsafe-in-branch"
    NOT_TENSOR = "not-a-tensor"
    UNKNOWN_SHAPE = "unknown-shape"
    GROWTH = "growth-over-limit"
    TOTAL = "total-over-limit"


@dataclass(frozen=True)
class LiftedValue:
    """A prepared weight that is computed.

    Attributes:
        name: its name.
        op, location: what computes it, and where that was written.
        sources: the raw weights it comes from.
        ops: the ops on the way from these, without dialect; of a long way the last ones.
        bytes_before: size of the cheapest values above it; None when unknown.
        bytes_after: its own size; None when unknown.
        growth: the one by the other; None when that is no number, and then nothing limits it.
    """

    name: str
    op: str
    location: str
    sources: tuple[str, ...]
    ops: tuple[str, ...]
    bytes_before: int | None
    bytes_after: int | None
    growth: float | None


@dataclass(frozen=True)
class KeptWeight:
    """A raw weight that inference reads as it is; its size is None when unknown."""

    name: str
    bytes: int | None


@dataclass(frozen=True)
class NotLifted:
    """An op that reads weights, or what is computed from them, and stays in inference.

    Attributes:
        op, location: the op.
        sources: the raw weights behind what it reads.
        reason: a :class:`Reason`.
        detail: what in particular.
    """

    op: str
    location: str
    sources: tuple[str, ...]
    reason: str
    detail: str


@dataclass(frozen=True)
class LiftSection(Section):
    """What lifting did to one function; after several runs, all that they did.

    Attributes:
        function, transform: names of the function and of the one that prepares its weights.
        lifted, kept: the weights that it takes now.
        not_lifted: the ops that stay.
        raw_bytes: size of the raw weights behind all that it takes; symbolic sizes are left out.
        prepared_bytes: size of what it takes, likewise.
    """

    kind: ClassVar[str] = "lift"

    function: str
    transform: str
    lifted: tuple[LiftedValue, ...]
    kept: tuple[KeptWeight, ...]
    not_lifted: tuple[NotLifted, ...]
    raw_bytes: int
    prepared_bytes: int

    @property
    def subject(self) -> str:
        return self.function

    def summary(self) -> list[str]:
        stay = Counter(n.reason for n in self.not_lifted)
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(stay.items()))
        counts = f"{plural(len(self.lifted), 'value')}, {plural(len(self.kept), 'weight')} kept as they are"
        sizes = f"{bytes_text(self.raw_bytes)} -> {bytes_text(self.prepared_bytes)}"
        lines = [f"lifted from {self.function}: {counts}, {sizes}"]
        return [*lines, f"  ops on weights that stay: {reasons}"] if stay else lines

    def lines(self) -> list[str]:
        raw, prepared = bytes_text(self.raw_bytes), bytes_text(self.prepared_bytes)
        lines = [f"@{self.function}, weights prepared by @{self.transform}: {raw} -> {prepared}"]
        if self.lifted:
            rows = [("lifted", "before", "after", "growth", "computed by"), *map(_lifted_row, self.lifted)]
            lines += _indented(aligned(rows, right=(1, 2, 3)))
        if self.kept:
            rows = [("kept as they are", "size", "also lifted as"), *map(self._kept_row, self.kept)]
            lines += _indented(aligned(rows, right=(1,)))
        rows = [_stay_row(n) for n in self._shown()]
        if rows:
            lines += _indented(aligned([("not lifted", "place", "reason", "of"), *rows]))
        counts = self._counted()
        if counts:
            lines.append(f"  not lifted because they read run-time values: {counts}")
        return lines

    def _kept_row(self, weight: KeptWeight) -> tuple[str, str, str]:
        return weight.name, _size(weight.bytes), _some([v.name for v in self.lifted if weight.name in v.sources])

    def _shown(self) -> list[NotLifted]:
        """What is told op by op."""
        few = len(self.not_lifted) - len(others := [n for n in self.not_lifted if n.reason != Reason.RUN_TIME_VALUE]) <= _FEW
        return list(self.not_lifted) if few else others

    def _counted(self) -> str:
        shown = set(self._shown())
        counts = Counter(n.op for n in self.not_lifted if n not in shown)
        return ", ".join(f"{op} x{count}" for op, count in counts.most_common())


def _lifted_row(value: LiftedValue) -> tuple[str, str, str, str, str]:
    growth = "unknown" if value.growth is None else f"{value.growth:.2f}x"
    way = f"{', '.join(value.ops)} of {_some(value.sources)}"
    return value.name, _size(value.bytes_before), _size(value.bytes_after), growth, way


def _stay_row(value: NotLifted) -> tuple[str, str, str, str]:
    return value.op, value.location, f"{value.reason}: {value.detail}", _some(value.sources)


def _size(count: int | None) -> str:
    return "symbolic" if count is None else bytes_text(count)


def _some(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def _indented(lines: list[str]) -> list[str]:
    return ["  " + line for line in lines]
