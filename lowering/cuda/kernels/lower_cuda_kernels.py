"""What device functions do with buffers becomes kernels and their launches: templates where one fits, else the general path.

Before::

    func.func private @kernel_0(%x: memref<?x64xf32>, %y: memref<?x64xf32>) attributes {relax.device, relax.kernel} {
      linalg.generic ... ins(%x : memref<?x64xf32>) outs(%y : memref<?x64xf32>) { ... }
      return
    }

after::

    gpu.module @device {
      gpu.func @kernel_0(%p: !llvm.ptr, %n: index, %q: !llvm.ptr, %m: index) kernel { ... }
    }
    func.func private @kernel_0(%x: memref<?x64xf32>, %y: memref<?x64xf32>) attributes {relax.device, relax.kernel} {
      ...
      gpu.launch_func @device::@kernel_0 blocks in (...) threads in (...) args(...)
      return
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ....dialect.bindings import func, ir
from ....dialect.functions import functions, name_of
from ....dialect.reports import report
from ....dialect.reports.kernels import KernelSection
from ....dialect.traversal import nested_operations, substitute
from ...kernels.structure.as_generic import as_generic, linalg_operations
from ...lowering_pass import LoweringPass
from ...marks import DEVICE, KERNEL
from ..cuda_target import CudaTarget
from ..set_cuda_target import cuda_target_of
from .general import lower_generally
from .host_code import HostCode
from .templates import TEMPLATES

__all__ = ["LowerCudaKernels", "lower_cuda_kernels"]

_WORK = ("linalg.", "memref.copy", "memref.store")


@dataclass(frozen=True)
class LowerCudaKernels(LoweringPass):
    """Puts launches of kernels in the place of operations on the device's buffers.

    Attributes:
        all: of every device function; else of kernels alone.
    """

    name: ClassVar[str] = "relax-lower-cuda-kernels"
    all: bool = False

    def run(self, op: ir.Operation) -> None:
        chosen = [f for f in functions(op) if DEVICE in f.attributes and (self.all or KERNEL in f.attributes)]
        lower_cuda_kernels(op, [f for f in chosen if _has_work(f)], cuda_target_of(op))


def lower_cuda_kernels(module: ir.Operation, chosen: Sequence[func.FuncOp], target: CudaTarget) -> None:
    """Lowers some device functions of a module, in place.

    Raises:
        RelaxError: an operation is none on buffers, or of no structure, at its location; the module is then half lowered.
    """
    as_generic(module, chosen)
    for function in chosen:
        _constants_inside(function)
    plans = dict[str, str]()
    for function in chosen:
        plan = _by_template(function, module, target) if KERNEL in function.attributes else None
        if plan is None:
            lower_generally(function, module, target)
        plans[name_of(function)] = plan or "general"
    report.change(KernelSection, lambda section: section.with_plans(plans))


def _constants_inside(function: func.FuncOp) -> None:
    """Gives bodies constants of their own: what is outside of a body is on the host, where no kernel can read it."""
    for op in linalg_operations(function.operation):
        if op.name != "linalg.generic":
            continue
        body = op.regions[0].blocks[0]
        inside = list(nested_operations(op))
        for value in dict.fromkeys(v for o in inside for v in o.operands if _is_constant_outside(v, op)):
            own = value.owner.operation.clone(ip=ir.InsertionPoint.at_block_begin(body)).results[0]
            for user in inside:
                substitute(user, {value: own})


def _is_constant_outside(value: ir.Value, op: ir.Operation) -> bool:
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return False
    around = value.owner.operation.parent
    while around is not None and around.operation != op:
        around = around.operation.parent
    return around is None


def _has_work(function: func.FuncOp) -> bool:
    """Whether anything in a function is still to become a kernel: what it reads alone, the host can read as well."""
    return any(op.name.startswith(_WORK) for op in nested_operations(function.operation))


def _by_template(function: func.FuncOp, module: ir.Operation, target: CudaTarget) -> str | None:
    """Lowers a kernel by the first template that fits; what it plans, as the report shows it, None where none does."""
    for template in TEMPLATES:
        plan = template.plan(function, target)
        if plan is not None:
            text = str(plan)
            template.build(HostCode(function, module), plan, target)
            return text
    return None
