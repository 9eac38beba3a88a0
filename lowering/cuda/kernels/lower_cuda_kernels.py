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
from ....dialect.traversal import nested_operations, operations
from ...entries import entry_of
from ...lowering_pass import LoweringPass
from ...marks import DEVICE, KERNEL
from ..cuda_target import CudaTarget
from ..host_operations import mark_host_operations
from ..host_places import HOST_KIND, transfers_of, uses_both
from ..plan_choices import note_kernels
from ..set_cuda_target import cuda_target_of
from ..transfer_call import TO_DEVICE, TO_HOST, call_transfer
from .general import lower_generally
from .host_code import HostCode, device_module
from .plan_cuda_kernels import fitting_template
from .prepare_functions import prepare_functions

__all__ = ["LowerCudaKernels", "lower_cuda_kernels"]

_WORK = ("linalg.", "memref.copy", "memref.store")


@dataclass(frozen=True)
class LowerCudaKernels(LoweringPass):
    """Puts launches of kernels in the place of operations on the device's buffers.

    Attributes:
        all: of every device function; else of kernels alone.
    """

    name: ClassVar[str] = "relax-lower-cuda-kernels"
    dialects: ClassVar[tuple[str, ...]] = ("gpu", "nvvm")
    all: bool = False

    def run(self, op: ir.Operation) -> None:
        chosen = [f for f in functions(op) if DEVICE in f.attributes and (self.all or KERNEL in f.attributes)]
        lower_cuda_kernels(op, [f for f in chosen if _has_work(f)], cuda_target_of(op))


def lower_cuda_kernels(module: ir.Operation, chosen: Sequence[func.FuncOp], target: CudaTarget) -> None:
    """Lowers some device functions of a module, in place.

    Raises:
        RelaxError: an operation is none on buffers, or of no structure, at its location; the module is then half lowered.
    """
    prepare_functions(module, chosen)
    plans = dict[str, str]()
    transfers = transfers_of(module)
    for function in chosen:
        if uses_both(module) and entry_of(function) is not None:
            mark_host_operations(function, transfers)  # named operations have become others
        if name_of(function) in transfers:
            plans[name_of(function)] = _transfer(function, module, transfers[name_of(function)])
            continue
        plans[name_of(function)] = _lowered(function, module, target)
    report.change(KernelSection, lambda section: section.with_plans(plans))


def _has_work(function: func.FuncOp) -> bool:
    """Whether anything in a function is still to become a kernel: what it reads alone, the host can read as well."""
    return any(op.name.startswith(_WORK) for op in nested_operations(function.operation))


def _transfer(function: func.FuncOp, module: ir.Operation, target: str) -> str:
    """Makes the copy of a transfer the driver's; what the report shows of it."""
    code = HostCode(function, module)
    for op in [op for op in nested_operations(function.operation) if op.name in ("linalg.generic", "memref.copy")]:
        source, destination = op.operands
        with code.em.before(op):
            call_transfer(code.em, module, TO_HOST if target == HOST_KIND else TO_DEVICE, source, destination)
        op.erase()
    return f"copy to {target}"


def _lowered(function: func.FuncOp, module: ir.Operation, target: CudaTarget) -> str:
    """Lowers a function, a kernel by the first template that fits; how, as the report shows it."""
    fitting = fitting_template(function, target) if KERNEL in function.attributes else None
    plan = None if fitting is None else fitting[1]
    text, before = "general" if plan is None else str(plan), set(_kernels(module))
    if fitting is None:
        lower_generally(function, module, target)
    else:
        fitting[0].build(HostCode(function, module), plan, target)
    note_kernels(name_of(function), plan, [name for name in _kernels(module) if name not in before])
    return text


def _kernels(module: ir.Operation) -> list[str]:
    """The names of all kernels so far."""
    return [ir.StringAttr(op.attributes["sym_name"]).value for op in operations(device_module(module).regions[0].blocks[0])]
