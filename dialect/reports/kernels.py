"""The report's section on kernels: what is one pass over memory, what each reads and writes, what stays a pass; no MLIR."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from .report import Section, aligned, bytes_text, plural

__all__ = ["Kernel", "KernelSection"]

#: Kinds of kernels, as they are listed in a summary.
_KINDS = ("contraction", "attention", "rows", "elementwise", "movement", "loop")


@dataclass(frozen=True)
class Kernel:
    """Calls of one kernel from one function.

    Attributes:
        name: of the function in the compiled code.
        kind: ``contraction``, ``attention``, ``rows`` (reductions with what is elementwise around them), ``elementwise``,
            ``movement`` (elements as they are, in another order or place) or ``loop`` (a scan, an update).
        calls: how many there are.
        ops: the relax ops that are in it, in order.
        where: the location of the first call.
        bytes_read, bytes_written: of a call, each operand once; None where sizes are not constant.
        kept: of an elementwise op or a movement, why its result is in memory; empty for other kinds.
        plan: how it is computed; None where the code was not planned, as by an older version or another's template.
    """

    name: str
    kind: str
    calls: int
    ops: tuple[str, ...]
    where: str
    bytes_read: int | None
    bytes_written: int | None
    kept: str
    plan: str | None = None


@dataclass(frozen=True)
class KernelSection(Section):
    """The kernels that a function calls, in order of their first calls."""

    kind: ClassVar[str] = "kernels"
    function: str
    kernels: tuple[Kernel, ...]

    @property
    def subject(self) -> str:
        return self.function

    def summary(self) -> list[str]:
        plans = Counter[str]()
        for kernel in self.kernels:
            plans[(kernel.plan if kernel.kind == "contraction" else None) or ""] += kernel.calls
        return [self._counts(), *(f"  {count} x {plan}" for plan, count in plans.items() if plan)]

    def _counts(self) -> str:
        calls = Counter[str]()
        for kernel in self.kernels:
            calls[kernel.kind] += kernel.calls
        kinds = ", ".join(f"{calls[kind]} {kind}" for kind in _KINDS if calls[kind])
        total = plural(sum(calls.values()), "kernel call")
        return f"@{self.function}: {total}{f' ({kinds})' if kinds else ''}, {plural(len(self.kernels), 'kernel')}"

    def lines(self) -> list[str]:
        rows = [
            [
                f"  {k.name}", k.kind, f"{k.calls} x", f"{_size(k.bytes_read)} -> {_size(k.bytes_written)}",
                " ".join(name.removeprefix("relax.") for name in k.ops), f"in memory: {k.kept}" if k.kept else "",
            ]
            for k in self.kernels
        ]  # fmt: skip
        plans = [[f"  {k.name}", k.plan] for k in self.kernels if k.plan is not None]
        return [self._counts(), *aligned(rows, right=[2]), *(["  plans"] if plans else []), *aligned(plans)]

    def with_plans(self, plans: Mapping[str, str]) -> KernelSection:
        """The same with more plans of kernels, by name."""
        return replace(self, kernels=tuple(_with_plan(k, plans.get(k.name)) for k in self.kernels))

    def without_plans(self, names: Collection[str]) -> KernelSection:
        """The same without the plans of some kernels, by name."""
        return replace(self, kernels=tuple(replace(k, plan=None) if k.name in names else k for k in self.kernels))


def _with_plan(kernel: Kernel, plan: str | None) -> Kernel:
    plans = [p for p in (kernel.plan, plan) if p is not None]
    return replace(kernel, plan="; ".join(plans) if plans else None)


def _size(count: int | None) -> str:
    return "?" if count is None else bytes_text(count)
