"""Which ops of an artifact's module are in which kernel: its text has other places than those that its report tells of."""

from __future__ import annotations

import re
from dataclasses import replace

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.functions import functions, name_of
from ..dialect.passes.manager import observing
from ..dialect.reports.kernels import Kernel, KernelSection
from ..dialect.reports.report import Report, collecting
from ..dialect.traversal import nested_operations
from ..lowering.backend import backend_named
from ..lowering.lower import lower
from ..lowering.marks import KERNEL
from ..module import Module

__all__ = ["kernels_by_place"]

#: The pass behind which kernels are told of.
_LAST = "relax-report-kernels"
_PLACE = re.compile(r'"([^"]+)":(\d+):(\d+)')


def kernels_by_place(module: Module, report: Report, backend: str) -> dict[str, Kernel]:
    """The kernel that computes the op at each place of a module's text, with the plan that the compilation's report has.

    The module is lowered once more, until it is known what its kernels are.

    Args:
        module: of an artifact, as it is loaded; not changed.
        report: of the compilation.
        backend: what compiled it; nothing is known of one that cannot be profiled.
    """
    names: dict[str, str] = {}

    def observe(element: str, op: ir.Operation) -> None:
        if element == _LAST:
            names.update(_names(op))

    try:
        pipeline = backend_named(backend).make_profiling().compiler.pipeline(False)
        copy = module.ir.operation.clone(ip=False)
        with module.context, collecting() as told, observing(observe):
            lower(copy.operation, pipeline[: pipeline.index(_LAST) + len(_LAST)])
    except RelaxError:
        return {}
    known = {k.name: k for k in _kernels(report)}
    found = {k.name: _planned(k, known.get(k.name)) for k in _kernels(told)}
    return {place: found[name] for place, name in names.items() if name in found}


def _kernels(report: Report) -> list[Kernel]:
    return [k for section in report.sections if isinstance(section, KernelSection) for k in section.kernels]


def _planned(kernel: Kernel, known: Kernel | None) -> Kernel:
    """The kernel with its plan, where both are the same one."""
    return replace(kernel, plan=known.plan) if known is not None and known.ops == kernel.ops else kernel


def _names(module: ir.Operation) -> dict[str, str]:
    """The kernel at each place: of what is in its body, and of each call, as equal kernels are one."""
    found: dict[str, str] = {}
    for function in functions(module):
        if KERNEL in function.attributes:
            for op in nested_operations(function.operation):
                found |= dict.fromkeys(_places(op.location), name_of(function))
    for op in nested_operations(module):
        if op.name == "func.call":
            found |= dict.fromkeys(_places(op.location), str(op.attributes["callee"].value))
    return found


def _places(location: ir.Location) -> list[str]:
    """All that a location names, as :func:`relaxir.dialect.errors.location_text` does one."""
    return [":".join(parts) for parts in _PLACE.findall(str(location))]
