"""Writes the plan of every contraction's kernel on its operation, where it can be read and edited before kernels are built.

Before::

    linalg.generic {relax.contraction} ins(%a, %b : memref<64x2048xf32>, memref<64x2048x32xf32>) outs(%c : memref<64x2048xf32>)

after::

    linalg.generic {relax.contraction, relax.plan = "tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=5:8192
        blocks=64x256x256:24 threads=blocks"} ...

A plan that is there already stays; one that does not fit is an error at its operation. What no kernel of contractions takes, as
it is no sum of products, gets none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from .....dialect.bindings import func, ir
from .....dialect.errors import RelaxError
from .....dialect.functions import functions, name_of
from .....dialect.reports import report
from .....dialect.reports.kernels import KernelSection
from .....dialect.traversal import nested_operations
from ....kernels.emit.buffers import Buffers
from ....kernels.structure.match import Contraction
from ....kernels.structure.row_groups import match_one_group
from ....lowering_pass import LoweringPass
from ....marks import CONTRACTION, PLAN, ROWS
from ....set_target import target_of
from ....target import Target
from ..nest.plain_loops import has_template
from ..winograd.group import find_winograd
from ..winograd.plan import WinogradPlan, checked_winograd_plan
from .check_plan import check_plan
from .contraction_plan import ContractionPlan, parse_plan
from .plan import plan_contraction
from .shape import describe

__all__ = ["PlanContractions", "checked_plan", "plan_contractions", "plans_of_contractions", "write_plan"]


@dataclass(frozen=True)
class PlanContractions(LoweringPass):
    """The step as a pass; the module says what it is for (``relax.target``)."""

    name: ClassVar[str] = "relax-plan-contractions"

    def run(self, op: ir.Operation) -> None:
        plan_contractions(functions(op), target_of(op))


def plan_contractions(chosen: Iterable[func.FuncOp], target: Target) -> None:
    """Writes plans on the contractions on buffers of some functions, and tells the report.

    Raises:
        RelaxError: a plan that is there does not fit its operation, with the place.
    """
    found = {name_of(f): [str(p) for p in plans_of_contractions(f, target)] for f in chosen}
    plans = {name: "; ".join(dict.fromkeys(p)) for name, p in found.items() if p}
    if plans:
        report.change(KernelSection, lambda section: section.with_plans(plans))


def plans_of_contractions(function: func.FuncOp, target: Target) -> Iterable[ContractionPlan | WinogradPlan]:
    """Writes plans on the contractions of a function, and yields them. Raises RelaxError for one that does not fit."""
    found = [op for op in nested_operations(function.operation) if op.name == "linalg.generic"]
    if ROWS in function.attributes or not all(map(has_template, found)):
        return  # no kernel of contractions
    winograd = find_winograd([op for op in found if not len(op.results)])
    if winograd is not None:
        plan = checked_winograd_plan(winograd, target)
        write_plan(winograd.results.contraction, plan)
        yield plan
        return
    for op in found:
        if CONTRACTION not in op.attributes or len(op.results):
            continue
        contraction = match_one_group(op, Buffers(op.location))
        if contraction is None:
            continue
        plan = checked_plan(contraction, target)
        write_plan(op, plan)
        yield plan


def write_plan(op: ir.Operation, plan: ContractionPlan | WinogradPlan) -> None:
    """Writes a plan on a contraction, in place."""
    op.attributes[PLAN] = ir.StringAttr.get(str(plan), op.context)


def checked_plan(contraction: Contraction, target: Target) -> ContractionPlan:
    """The plan that stands on a contraction, or the one it gets. Raises RelaxError where the former does not fit."""
    operation, shape = contraction.nest.operation, describe(contraction)
    if _is_shared(operation):
        target = replace(target, openmp=False)
    if PLAN not in operation.attributes:
        return plan_contraction(shape, target)
    try:
        plan = parse_plan(ir.StringAttr(operation.attributes[PLAN]).value)
        check_plan(plan, shape, target)
    except RelaxError as error:
        raise RelaxError(f"'{operation.name}' op {error}", operation.location) from None
    return plan


def _is_shared(operation: ir.Operation) -> bool:
    """Whether threads share a loop around an operation."""
    around = operation.parent
    while around is not None and around.operation.name != "omp.wsloop":
        around = around.operation.parent
    return around is not None
