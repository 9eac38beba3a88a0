"""Which ops of an artifact's module became one kernel: its text has other places than those that its report tells of."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from ..dialect.bindings import ir
from ..dialect.call_graph import callee_of
from ..dialect.errors import RelaxError, location_text
from ..dialect.functions import functions, name_of
from ..dialect.reports.kernels import Kernel, KernelSection
from ..dialect.reports.report import Report, collecting
from ..dialect.traversal import nested_operations
from ..lowering.backend import backend_named
from ..lowering.lower import lower
from ..lowering.marks import KERNEL
from ..module import Module
from .graph import KernelCall

__all__ = ["kernel_calls"]

#: The passes in front of which only contractions are kernels, and behind which kernels are told of.
_OUTLINE, _LAST = "relax-outline-kernels", "relax-report-kernels"
_PLACE = re.compile(r'"([^"]+)":(\d+):(\d+)')


def kernel_calls(module: Module, report: Report, backend: str) -> list[KernelCall]:
    """The calls of kernels in program order, with the plans that the compilation's report has.

    The module is lowered once more, until it is known what its kernels are.

    Args:
        module: of an artifact, as it is loaded; not changed.
        report: of the compilation.
        backend: what compiled it; nothing is known of one that cannot be profiled.
    """
    try:
        pipeline = backend_named(backend).make_profiling().compiler.pipeline(False)
        outline, last = pipeline.index(_OUTLINE), pipeline.index(_LAST) + len(_LAST)
        copy = module.ir.operation.clone(ip=False)
        with module.context, collecting() as told:
            lower(copy.operation, pipeline[:outline].rstrip(","))
            contractions = _Lowered.of(copy.operation)
            lower(copy.operation, pipeline[outline:last])
            lowered = _Lowered.of(copy.operation)
    except RelaxError:
        return []
    known = {k.name: k for k in _kernels(report)}
    found = {k.name: _planned(k, known.get(k.name)) for k in _kernels(told)}
    with module.context:
        placed = list(_Placing(module.ir.operation, contractions, lowered).calls())
    return [KernelCall(found[name], places) for name, places in placed if name in found and places]


def _kernels(report: Report) -> list[Kernel]:
    return [k for section in report.sections if isinstance(section, KernelSection) for k in section.kernels]


def _planned(kernel: Kernel, known: Kernel | None) -> Kernel:
    """The kernel with its plan, where both are the same one."""
    return replace(kernel, plan=known.plan) if known is not None and known.ops == kernel.ops else kernel


@dataclass
class _Lowered:
    """What is read from a module some of whose functions are kernels.

    Attributes:
        bodies: the places of what is in each kernel. Equal kernels are one, with the places of the first.
        calls: kernel and places of each call: of the op that came last into it.
    """

    bodies: dict[str, set[str]]
    calls: list[tuple[str, list[str]]]

    @staticmethod
    def of(module: ir.Operation) -> _Lowered:
        found = functions(module)
        inner = {name_of(f): nested_operations(f.operation) for f in found if KERNEL in f.attributes}
        bodies = {name: {place for op in ops for place in _places(op.location)} for name, ops in inner.items()}
        others = (op for f in found if KERNEL not in f.attributes for op in nested_operations(f.operation))
        calls = [op for op in others if op.name == "func.call" and callee_of(op) in bodies]
        return _Lowered(bodies, [(callee_of(op), _places(op.location)) for op in calls])


def _places(location: ir.Location) -> list[str]:
    """All that a location names, as :func:`relaxir.dialect.errors.location_text` does one."""
    return [":".join(parts) for parts in _PLACE.findall(str(location))]


class _Placing:
    """Finds the ops of each call in the module's text.

    A kernel says where the ops of its first call are. Those of another call are found around its last op, as those of the
    first are around theirs. A contraction in it says where the first one like it is, as it was a kernel before.
    """

    def __init__(self, module: ir.Operation, contractions: _Lowered, lowered: _Lowered):
        self._ops = {location_text(op.location): op for op in nested_operations(module)}
        self._order = {place: i for i, place in enumerate(self._ops)}
        self._lowered = lowered
        self._contraction = {place: name for name, places in contractions.calls for place in places}

    def calls(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Kernel and places of each call, in program order."""
        firsts, taken = dict[str, tuple[str, set[str]]](), set[str]()
        for name, places in self._lowered.calls:
            here = next((p for p in places if p in self._ops), None)
            if here is None:
                continue
            if name in firsts:
                found = self._alike(*firsts[name], here)
            else:
                found = self._first(here, self._lowered.bodies[name])
                firsts[name] = here, found
            yield name, tuple(p for p in self._ops if p in found - taken)
            taken |= found

    def _first(self, here: str, body: Collection[str]) -> set[str]:
        """What a kernel says, and in the place of its contraction the one that its other ops read.

        What comes behind its last op is a concatenation of which it writes a part, and others write the rest.
        """
        inside = {p for p in body if p not in self._contraction} | {here}
        found = {p for p in inside if p in self._ops and self._order[p] <= self._order[here]}
        wanted = {self._contraction[p] for p in body if p in self._contraction}
        read = {location_text(maker.location) for p in found for maker in _makers(self._ops[p])}
        return found | {p for p in read if self._contraction.get(p) in wanted}

    def _alike(self, first: str, members: Collection[str], here: str) -> set[str]:
        """What is above an op as members are above the first call's."""
        found, pending = set[str](), [(self._ops[first], self._ops[here])]
        while pending:
            one, two = pending.pop()
            place = location_text(two.location)
            if one.name != two.name or place in found:
                continue
            found.add(place)
            makers = zip(_makers(one), _makers(two), strict=False)
            pending += [(a, b) for a, b in makers if location_text(a.location) in members]
        return found


def _makers(op: ir.Operation) -> list[ir.Operation]:
    """The ops that make what an op reads, in its order."""
    owners = [value.owner for value in op.operands]
    return [owner.operation for owner in owners if isinstance(owner, ir.OpView)]
