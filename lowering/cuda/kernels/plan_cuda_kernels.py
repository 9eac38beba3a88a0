"""Writes the plan of every product's kernel on its operation, where it can be read and edited before kernels are built.

Before, for ``cuda:sm_80``::

    linalg.generic {relax.contraction} ins(%a, %b : memref<?x4096xbf16>, memref<4096x4096xbf16>) outs(%c : memref<?x4096xf32>)

after::

    linalg.generic {relax.contraction, relax.plan = "tile=128x256x32 warps=2x4 stages=4 by=bf16 copies=16:16 raster=8
        store=8"} ...

A plan that is there already stays; one that does not fit is an error at its operation. What another template takes gets none.
With ``table=FILE`` products whose key (:mod:`.plan_key`) is in the table get the plan that was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ....dialect.bindings import func, ir
from ....dialect.errors import RelaxError
from ....dialect.functions import functions, name_of
from ....dialect.traversal import nested_operations
from ...lowering_pass import LoweringPass
from ...marks import CONTRACTION, DEVICE, KERNEL, PLAN
from ..cuda_target import CudaTarget
from ..plan_choices import PlanChoice, note_choice
from ..plan_table import MeasuredPlan, PlanTable
from ..set_cuda_target import cuda_target_of
from .matvec.template import PlannedMatvec
from .prepare_functions import prepare_functions
from .products.template import PlannedProduct
from .templates import TEMPLATES, Template

__all__ = ["PlanCudaKernels", "fitting_template"]


@dataclass(frozen=True)
class PlanCudaKernels(LoweringPass):
    """The step as a pass; the module says what it is for (``relax.cuda_target``).

    Attributes:
        table: the file with the plans that were measured (:mod:`..plan_table`), or none.
    """

    name: ClassVar[str] = "relax-plan-cuda-kernels"
    table: str = ""

    def run(self, op: ir.Operation) -> None:
        chosen = [f for f in functions(op) if DEVICE in f.attributes and KERNEL in f.attributes and _has_product(f)]
        target = cuda_target_of(op)
        measured = PlanTable.read(self.table, target.architecture.name).plans if self.table else {}
        prepare_functions(op, chosen)
        for function in chosen:
            _write_plan(function, target, measured)


def _has_product(function: func.FuncOp) -> bool:
    return any(CONTRACTION in op.attributes and not len(op.results) for op in nested_operations(function.operation))


def _write_plan(function: func.FuncOp, target: CudaTarget, measured: Mapping[str, MeasuredPlan]) -> None:
    planned = _planned(function, target)
    if planned is None:
        return
    operation, known = planned.group.contraction, measured.get(planned.key)
    if known is not None and PLAN not in operation.attributes:
        planned = _as_measured(function, target, planned, known)
    operation.attributes[PLAN] = ir.StringAttr.get(str(planned), operation.context)
    note_choice(name_of(function), lambda: PlanChoice(planned.key, str(planned), planned.alternatives(target.architecture)))


def _planned(function: func.FuncOp, target: CudaTarget) -> PlannedMatvec | PlannedProduct | None:
    fitting = fitting_template(function, target)
    return fitting[1] if fitting is not None and isinstance(fitting[1], (PlannedMatvec, PlannedProduct)) else None


def _as_measured(
    function: func.FuncOp, target: CudaTarget, planned: PlannedMatvec | PlannedProduct, known: MeasuredPlan
) -> PlannedMatvec | PlannedProduct:  # fmt: skip
    """The plan of a table. Raises RelaxError where it does not fit: kernels have changed since it was measured."""
    operation = planned.group.contraction
    operation.attributes[PLAN] = ir.StringAttr.get(known.plan, operation.context)
    try:
        found = _planned(function, target)
        if found is None:
            raise RelaxError(f"expected a plan of this product, got '{known.plan}'", operation.location)
    except RelaxError as error:
        raise RelaxError(f"{error}: measured for '{known.key}', measure again", operation.location) from None
    return found


def fitting_template(function: func.FuncOp, target: CudaTarget) -> tuple[Template, Any] | None:
    """The first template that takes a kernel, and its plan; None where the general path does.

    Raises:
        RelaxError: a plan that stands on an operation does not fit, at its location.
    """
    planned = ((template, template.plan(function, target)) for template in TEMPLATES)
    return next(((template, plan) for template, plan in planned if plan is not None), None)
