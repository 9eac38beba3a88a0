"""Tells the report which kernels a function has become: what is in each, what it reads and writes, what stays a pass.

Before::

    func.func @main(...) attributes {relax.entry = {name = "main", ...}} {
      %y = call @kernel_0(%x, %e)

after: the same module, and in the report (``relax-opt --relax-report``), of ``@main``::

    kernel_0  elementwise  1 call  exp  256 B read  256 B written
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of
from ...dialect.functions import body_of, functions, name_of
from ...dialect.reports import report
from ...dialect.reports.kernels import Kernel, KernelSection
from ...dialect.traversal import nested_operations
from ..entries import entries_of
from ..extern_calls import is_extern
from ..lowering_pass import LoweringPass
from ..marks import COLLECTIVE, CONTRACTION, KERNEL, ROWS, STACK
from .linalg_queries import is_parallel, owner_name

__all__ = ["ReportKernels", "report_kernels"]

_RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast")


@dataclass(frozen=True)
class ReportKernels(LoweringPass):
    """Tells the report which kernels each entry has become."""

    name: ClassVar[str] = "relax-report-kernels"

    def run(self, op: ir.Operation) -> None:
        report_kernels(op, {name_of(f): e.spec.name for f, e in entries_of(op) if not e.is_step})


def report_kernels(module: ir.Operation, names: Mapping[str, str]) -> None:
    """Adds a section for each entry, whose kernels are outlined, if anyone collects them.

    Args:
        names: of entries, by the names of their functions.
    """
    if not report.is_collecting():
        return
    kernels = {name_of(f): f for f in functions(module) if KERNEL in f.attributes}
    for function in functions(module):
        if name_of(function) in names and body_of(function) is not None:
            report.add(KernelSection(names[name_of(function)], tuple(_kernels(function, kernels))))


def _kernels(function: func.FuncOp, kernels: dict[str, func.FuncOp]) -> Iterator[Kernel]:
    calls: dict[str, list[ir.Operation]] = {}
    for op in nested_operations(function.operation):
        if op.name == "func.call" and callee_of(op) in kernels:
            calls.setdefault(callee_of(op), []).append(op)
    for name, found in calls.items():
        kernel = kernels[name]
        kind, types = _kind(kernel), [a.type for a in kernel.arguments]
        results = [r.type for r in found[0].results]
        kept = _reason(found[0], kernels) if kind in ("elementwise", "movement") else ""
        inputs = [t for t, a in zip(types, kernel.arguments, strict=True) if _is_read(a)]
        where = str(found[0].location).removeprefix("loc(").removesuffix(")")
        yield Kernel(name, kind, len(found), relax_ops(kernel), where, _bytes(inputs), _bytes(_written(kernel, results)), kept)


def _kind(kernel: func.FuncOp) -> str:
    inner = list(nested_operations(kernel.operation))
    generics = [op for op in inner if op.name == "linalg.generic"]
    if COLLECTIVE in kernel.attributes:
        return "collective"
    if is_extern(kernel):
        return "extern"
    if STACK in kernel.attributes:
        return "attention"
    if any(CONTRACTION in op.attributes for op in generics):
        return "contraction"
    if not generics or any(op.name.startswith("scf.") for op in inner):
        return "loop"
    if ROWS in kernel.attributes or not all(is_parallel(op) for op in generics):
        return "rows"
    return "movement" if all(_moves(op) for op in generics) else "elementwise"


def _moves(op: ir.Operation) -> bool:
    """Whether a body gives an element as it is."""
    names = {o.operation.name for o in op.regions[0].blocks[0].operations}
    return not any(name.startswith(("arith.", "math.")) for name in names)


def _is_read(argument: ir.Value) -> bool:
    """Whether a kernel reads an argument, and does not just write to it."""
    for use in argument.uses:
        user = use.owner.operation
        if user.name == "tensor.extract_slice" and not _is_destination(user.results[0]):
            return True
        if user.name == "tensor.insert_slice" and use.operand_number == 0:  # an image in a frame
            return True
        if user.name not in ("tensor.dim", "tensor.insert_slice", "tensor.extract_slice") and not _is_output(use):
            return True
    return False


def _is_output(use: ir.OpOperand) -> bool:
    user = use.owner.operation
    return user.name.startswith(("linalg.", "scf.")) and use.operand_number >= len(user.operands) - len(user.results)


def _is_destination(value: ir.Value) -> bool:
    return all(_is_output(use) for use in value.uses)


def _written(kernel: func.FuncOp, results: list[ir.Type]) -> list[ir.Type]:
    """The types of what a kernel writes: its results, or the part that it inserts."""
    last = list(kernel.regions[0].blocks[0].operations)[-1]
    made = list(last.operation.operands)
    inserted = [v.owner.operands[0].type for v in made if owner_name(v) == "tensor.insert_slice"]
    return inserted if len(inserted) == len(made) else results


def relax_ops(kernel: func.FuncOp) -> tuple[str, ...]:
    """The relax ops whose bodies are in a kernel, each once."""
    found: dict[str, None] = {}
    for op in nested_operations(kernel.operation):
        location = op.location
        if isinstance(location, ir.NameLoc) and location.name_str.startswith("relax."):
            found[location.name_str] = None
    return tuple(found)


def _bytes(types: list[ir.Type]) -> int | None:
    total = 0
    for type_ in types:
        if not isinstance(type_, ir.RankedTensorType):
            continue
        if not type_.has_static_shape:
            return None
        width: int = type_.element_type.width  # pyright: ignore[reportAttributeAccessIssue]
        total += prod(type_.shape) * -(-width // 8)
    return total


def _reason(call: ir.Operation, kernels: dict[str, func.FuncOp]) -> str:
    """Why what a kernel makes is in memory instead of being computed where it is read."""
    uses = list(call.results[0].uses)
    while len(uses) == 1 and _passes_on(uses[0], kernels):
        uses = list(uses[0].owner.results[0].uses)
    if len(uses) > 1:
        return f"{len(uses)} ops read it"
    return _reader(uses[0].owner.operation, kernels) if uses else "nothing reads it"


def _passes_on(use: ir.OpOperand, kernels: dict[str, func.FuncOp]) -> bool:
    """Whether a reader gives the same memory, reshaped or with more written to it."""
    op = use.owner.operation
    writes = op.name == "func.call" and callee_of(op) in kernels and use.operand_number == len(op.operands) - 1
    return writes or op.name in _RESHAPES


def _reader(op: ir.Operation, kernels: dict[str, func.FuncOp]) -> str:
    if op.name in ("func.return", "scf.yield"):
        return "it is a result"
    if op.name != "func.call" or callee_of(op) not in kernels:
        return f"{op.name} reads it"
    kind = _kind(kernels[callee_of(op)])
    return f"{'an' if kind[0] in 'ae' else 'a'} {kind} kernel reads it in another order or more than once"
