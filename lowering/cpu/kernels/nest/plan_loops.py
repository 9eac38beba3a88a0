"""Writes the plan of every loop nest on its operation, where it can be read and edited before kernels are built.

Before::

    linalg.generic ins(%x : memref<64x100xf32>) outs(%y : memref<64x100xf32>)

after::

    linalg.generic {relax.plan = "order=1 vector=1 width=16 wide=16"} ins(...) outs(...)

Loops are numbered as the operation's are; those that were merged into the next one, or have one iteration, are in no plan.
Copies and named operations become ``linalg.generic``. A plan that is there already stays; one that does not fit is an error at
its operation. What is part of a contraction's kernel has none of its own, nor has what no template takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from .....dialect.bindings import func, ir
from .....dialect.errors import RelaxError
from .....dialect.functions import functions, name_of
from .....dialect.reports import report
from .....dialect.reports.kernels import KernelSection
from ....kernels.emit.buffers import Buffers
from ....kernels.structure.as_generic import as_generic, linalg_operations
from ....kernels.structure.combiners import combiners
from ....kernels.structure.match import find_group
from ....kernels.structure.nest import Nest, collapse, read_nest
from ....kernels.structure.row_groups import match_one_group
from ....kernels.structure.words import as_words
from ....lowering_pass import LoweringPass
from ....marks import CONTRACTION, KERNEL, PLAN, ROWS
from ....set_target import target_of
from ....target import Target
from ..windows.group import find_windows
from ..windows.plan import WindowPlan, checked_window_plan
from ..winograd.group import find_winograd
from .nest_plan import NestPlan, check_plan, parse_plan
from .plain_loops import has_template
from .vector_plan import make_plan

__all__ = ["PlanLoops", "checked_nest_plan", "plans_of_loops"]


@dataclass(frozen=True)
class PlanLoops(LoweringPass):
    """Plans loops of operations on buffers.

    Attributes:
        all: of every function; else of kernels alone.
    """

    name: ClassVar[str] = "relax-plan-loops"
    all: bool = False

    def run(self, op: ir.Operation) -> None:
        chosen = [f for f in functions(op) if self.all or KERNEL in f.attributes]
        as_generic(op, chosen)
        target = target_of(op)
        found = {name_of(f): dict.fromkeys(str(p) for p in plans_of_loops(f, target)) for f in chosen}
        plans = {name: "; ".join(texts) for name, texts in found.items() if texts}
        if plans:
            report.change(KernelSection, lambda section: section.with_plans(plans))


def plans_of_loops(function: func.FuncOp, target: Target) -> Iterator[NestPlan | WindowPlan]:
    """Writes plans on the other operations of a function, and yields them. Raises RelaxError for one that does not fit."""
    found = linalg_operations(function.operation)
    if not all(map(has_template, found)):
        return
    if find_winograd(found) is not None:
        return
    windows = _windows_plan(found, target)
    if windows is not None:
        yield windows
        return
    rows = ir.IntegerAttr(function.attributes[ROWS]).value if ROWS in function.attributes else 0
    taken = [] if rows else [op for contraction in found for op in _taken(contraction)]
    for op in found:
        if len(op.results) or op in taken:
            continue
        memory = Buffers(op.location)
        nest = collapse(read_nest(op, memory), range(rows))
        plan = checked_nest_plan(nest if rows else as_words(nest, memory), target, rows)
        op.attributes[PLAN] = ir.StringAttr.get(str(plan), op.context)
        yield plan


def _windows_plan(found: Sequence[ir.Operation], target: Target) -> WindowPlan | None:
    """Writes the plan of sums over windows, where they are all that a function does and get a kernel of their own."""
    group = find_windows(found)
    plan = None if group is None else checked_window_plan(group.windows, target)
    if group is not None and plan is not None:
        operation = group.group.contraction
        operation.attributes[PLAN] = ir.StringAttr.get(str(plan), operation.context)
    return plan


def _taken(contraction: ir.Operation) -> list[ir.Operation]:
    """What becomes one kernel with a contraction; nothing where the operation is none."""
    if CONTRACTION not in contraction.attributes or len(contraction.results):
        return []
    if match_one_group(contraction, Buffers(contraction.location)) is None:
        return []
    group = find_group(contraction, [o.operation for o in contraction.block.operations])
    return [op for op in (group.fill, group.contraction, group.epilogue) if op is not None]


def checked_nest_plan(nest: Nest, target: Target, rows: int = 0) -> NestPlan:
    """The plan that stands on a nest's operation, or the one it gets. Raises RelaxError where the former does not fit."""
    operation = nest.operation
    if PLAN not in operation.attributes:
        return make_plan(nest, target, rows)
    try:
        plan = parse_plan(ir.StringAttr(operation.attributes[PLAN]).value)
        check_plan(plan, nest, combiners(nest) is not None, rows)
    except RelaxError as error:
        raise RelaxError(f"'{operation.name}' op {error}", operation.location) from None
    return plan
