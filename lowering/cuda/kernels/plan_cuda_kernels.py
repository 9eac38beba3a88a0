"""Writes the plan of every product's kernel on its operation, where it can be read and edited before kernels are built.

Before, for ``cuda:sm_80``::

    linalg.generic {relax.contraction} ins(%a, %b : memref<?x4096xbf16>, memref<4096x4096xbf16>) outs(%c : memref<?x4096xf32>)

after::

    linalg.generic {relax.contraction, relax.plan = "tile=128x256x32 warps=2x4 stages=4 by=bf16 copies=16:16 raster=8
        store=8"} ...

A plan that is there already stays; one that does not fit is an error at its operation. What another template takes gets none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ....dialect.bindings import func, ir
from ....dialect.functions import functions
from ....dialect.traversal import nested_operations
from ...lowering_pass import LoweringPass
from ...marks import CONTRACTION, DEVICE, KERNEL, PLAN
from ..cuda_target import CudaTarget
from ..set_cuda_target import cuda_target_of
from .matvec.template import PlannedMatvec
from .prepare_functions import prepare_functions
from .products.template import PlannedProduct
from .templates import TEMPLATES, Template

__all__ = ["PlanCudaKernels", "fitting_template"]


@dataclass(frozen=True)
class PlanCudaKernels(LoweringPass):
    """The step as a pass; the module says what it is for (``relax.cuda_target``)."""

    name: ClassVar[str] = "relax-plan-cuda-kernels"

    def run(self, op: ir.Operation) -> None:
        chosen = [f for f in functions(op) if DEVICE in f.attributes and KERNEL in f.attributes and _has_product(f)]
        target = cuda_target_of(op)
        prepare_functions(op, chosen)
        for function in chosen:
            _write_plan(function, target)


def _has_product(function: func.FuncOp) -> bool:
    return any(CONTRACTION in op.attributes and not len(op.results) for op in nested_operations(function.operation))


def _write_plan(function: func.FuncOp, target: CudaTarget) -> None:
    fitting = fitting_template(function, target)
    if fitting is not None and isinstance(fitting[1], (PlannedMatvec, PlannedProduct)):
        operation = fitting[1].group.contraction
        operation.attributes[PLAN] = ir.StringAttr.get(str(fitting[1]), operation.context)


def fitting_template(function: func.FuncOp, target: CudaTarget) -> tuple[Template, Any] | None:
    """The first template that takes a kernel, and its plan; None where the general path does.

    Raises:
        RelaxError: a plan that stands on an operation does not fit, at its location.
    """
    planned = ((template, template.plan(function, target)) for template in TEMPLATES)
    return next(((template, plan) for template, plan in planned if plan is not None), None)
