"""What machine code of a case's kernels has to be, by the plans that they are built by, and what it is.

- No kernel spills registers, is warned of by the assembler, or has local memory.
- A product or attention by warpgroups has their instruction (HGMMA, of 8-bit elements QGMMA and IGMMA) and bulk copies by
  tensor maps (UTMALDG); one by warps has HMMA (IMMA, QMMA), and LDGSTS where its plan copies asynchronously.
- Of a case whose large products are of 16-bit floats at least one is by warpgroups where there are such: without this rule
  plans that never choose them would pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import relaxir as rx
from relaxir.lowering.cuda.cuda_target import CudaTarget
from relaxir.lowering.cuda.kernels.attention.template import PlannedAttention
from relaxir.lowering.cuda.kernels.attention.warpgroup_plan import WarpgroupAttentionPlan
from relaxir.lowering.cuda.kernels.products.instructions import TensorInstruction
from relaxir.lowering.cuda.kernels.products.template import PlannedProduct
from relaxir.lowering.cuda.kernels.products.warpgroup_plan import WarpgroupPlan
from relaxir.lowering.cuda.plan_choices import BuiltFunction, collecting_choices
from support.device_cases import ptx_of_module
from support.device_kernels import DeviceKernel, device_kernels
from support.kernel_table import TENSOR

__all__ = ["CaseCode", "code_of", "complaints"]

#: Rows and columns from which a product of 16-bit floats is large: four tiles of warpgroups.
_LARGE = 128
_LOCAL = ("LDL", "STL")


@dataclass(frozen=True)
class CaseCode:
    """The kernels of a case for one target.

    Attributes:
        case, target: names.
        kernels: how many.
        registers: the most that one of them has.
        spilled: bytes of registers of all.
        instructions: of all.
        tensor: which opcodes of tensor cores and asynchronous copies are among them.
        complaints: a line of each that is not as it has to be.
    """

    case: str
    target: str
    kernels: int
    registers: int
    spilled: int
    instructions: int
    tensor: Sequence[str]
    complaints: Sequence[str]

    def __str__(self) -> str:
        numbers = f"{self.kernels:7d} {self.registers:9d} {self.spilled:7d} {self.instructions:12d}"
        line = f"{self.case:32s} {self.target:12s} {numbers}  {','.join(self.tensor) or '-'}"
        return "\n".join((line, *(f"  {each}" for each in self.complaints)))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def code_of(name: str, module: rx.Module, target: str, weights: str | None = None) -> CaseCode:
    """The machine code of a module's kernels, weights stored as for ``relaxir.compile``."""
    with collecting_choices() as choices:
        ptx = ptx_of_module(module, target, weights)
    kernels = device_kernels(ptx, target) if ptx else {}
    resources = [kernel.resources for kernel in kernels.values()]
    opcodes = {i.name for kernel in kernels.values() for i in kernel.instructions}
    return CaseCode(
        name,
        target,
        len(kernels),
        max((r.registers for r in resources), default=0),
        sum(r.spill_stores + r.spill_loads for r in resources),
        sum(len(kernel.instructions) for kernel in kernels.values()),
        [each for each in TENSOR if each in opcodes],
        complaints(kernels, choices.built, target),
    )


def complaints(kernels: Mapping[str, DeviceKernel], built: Mapping[str, BuiltFunction], target: str) -> list[str]:
    """A line of each kernel that is not as it has to be.

    Args:
        kernels: all of a module, by name.
        built: the functions that they are of.
        target: what they are for.
    """
    found = [f"@{k.name}: {k.resources}" for k in kernels.values() if k.resources.spills or k.resources.warnings]
    found += [f"@{k.name} has local memory" for k in kernels.values() if k.resources.stack or any(map(k.has, _LOCAL))]
    for function in built.values():
        for kernel, wanted in _wanted(function, kernels):
            missing = [opcode for opcode in wanted if not kernel.has(opcode)]
            found += [f"@{kernel.name} of plan '{function.plan}' has no {', '.join(missing)}"] if missing else []
    return found + list(_without_warpgroups(built, target))


def _wanted(function: BuiltFunction, kernels: Mapping[str, DeviceKernel]) -> Iterator[tuple[DeviceKernel, tuple[str, ...]]]:
    """The kernels of a function that multiply, and what instructions each has to have."""
    plan = function.plan
    if isinstance(plan, PlannedProduct):  # the first one; others add up what parts of k gave, or copy
        yield kernels[function.kernels[0]], _of_product(plan)
    if isinstance(plan, PlannedAttention):
        multiplying = [kernels[name] for name in function.kernels if any(map(kernels[name].has, ("HMMA", "HGMMA")))]
        plans = [each for each in (plan.many, plan.few) if each is not None]
        if len(multiplying) != len(plans):  # those of none are told of by the first
            yield kernels[function.kernels[0]], ("HMMA or HGMMA in each kernel that multiplies",)
        for kernel, each in zip(multiplying, plans, strict=False):
            yield kernel, ("HGMMA", "UTMALDG") if isinstance(each, WarpgroupAttentionPlan) else ("HMMA", "LDGSTS")


def _of_product(planned: PlannedProduct) -> tuple[str, ...]:
    plan = planned.plan
    if isinstance(plan, WarpgroupPlan):
        return f"{_letter(plan.instruction, 'H')}GMMA", "UTMALDG"
    multiplies = () if plan.instruction.is_fused else (f"{_letter(plan.instruction, 'H')}MMA",)
    return (*multiplies, "LDGSTS") if plan.copies.left or plan.copies.right else multiplies


def _letter(instruction: TensorInstruction, floats: str) -> str:
    """What the assembler's names of products begin with."""
    return {"i8": "I", "f8": "Q"}.get(instruction.peak, floats)


def _without_warpgroups(built: Mapping[str, BuiltFunction], target: str) -> Iterator[str]:
    """Tells of large products of 16-bit floats, where there are warpgroups and none of these is by them."""
    products = [function.plan for function in built.values() if isinstance(function.plan, PlannedProduct)]
    large = [p for p in products if _is_large(p)]
    has_them = CudaTarget.parse(target).architecture.name == "sm_90a"
    if has_them and large and not any(isinstance(p.plan, WarpgroupPlan) for p in large):
        yield f"none of {len(large)} large products of 16-bit floats is by warpgroups: {large[0].plan}"


def _is_large(planned: PlannedProduct) -> bool:
    """Whether it is of 16-bit floats as they are in memory, by at least four tiles."""
    shape, plan = planned.shape, planned.plan
    is_narrow = plan.instruction.bits == 16 and not (shape.left.is_computed or shape.right.is_computed)
    return is_narrow and min(shape.rows or 0, shape.columns or 0) >= _LARGE
