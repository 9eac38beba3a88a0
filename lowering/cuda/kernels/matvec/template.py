"""The template of products of few rows: recognises them, plans and launches them."""

from __future__ import annotations

from dataclasses import dataclass

from .....dialect.bindings import func, ir
from .....dialect.errors import RelaxError
from ....kernels.emit.buffers import Buffers
from ....kernels.emit.memory import Memory
from ....kernels.structure.match import MatchedGroup
from ....kernels.structure.row_groups import match_rows
from ....marks import PLAN
from ...cuda_target import Architecture, CudaTarget
from ..host_code import HostCode
from ..plan_key import key_of_matvec
from ..product_group import erase_group, product_group
from .alternatives import alternatives_of_matvec
from .kernel import MatvecKernel
from .plan import MatvecPlan, check_matvec_plan, parse_matvec_plan, plan_matvec
from .shape import MatvecShape, describe

__all__ = ["PlannedMatvec", "build_matvec", "plan_of_matvec"]


@dataclass(frozen=True)
class PlannedMatvec:
    """A kernel function that is a product of few rows.

    Attributes:
        group: its operations.
        shape: of the product.
        plan: how it is computed.
    """

    group: MatchedGroup
    shape: MatvecShape
    plan: MatvecPlan

    def __str__(self) -> str:
        return str(self.plan)

    @property
    def key(self) -> str:
        """What decides the plan."""
        return key_of_matvec(self.shape, self.group)

    def alternatives(self, architecture: Architecture) -> tuple[str, ...]:
        """Lines of other plans, those that differ least first."""
        del architecture
        return alternatives_of_matvec(self.shape, self.plan)


def plan_of_matvec(function: func.FuncOp, target: CudaTarget) -> PlannedMatvec | None:
    """The plan of a kernel function that is one product of few rows and what is fused with it, None for others.

    Raises:
        RelaxError: a plan of this kind stands on the product and does not fit, at its location.
    """
    group = product_group(function)
    contraction = None if group is None else match_rows(group.contraction, Buffers(group.contraction.location))
    found = None if contraction is None else describe(contraction)
    if group is None or found is None:
        return None
    if PLAN not in group.contraction.attributes:
        return PlannedMatvec(group, found[0], plan_matvec(found[0], target.architecture))
    line = ir.StringAttr(group.contraction.attributes[PLAN]).value
    return PlannedMatvec(group, found[0], _edited(line, found[0], group.contraction)) if line.startswith("columns=") else None


def _edited(line: str, shape: MatvecShape, operation: ir.Operation) -> MatvecPlan:
    try:
        plan = parse_matvec_plan(line)
        check_matvec_plan(plan, shape)
    except RelaxError as error:
        raise RelaxError(f"'{operation.name}' op {error}", operation.location) from None
    return plan


def build_matvec(code: HostCode, planned: PlannedMatvec, target: CudaTarget) -> None:
    """Puts the launch in the place of a product's operations."""
    del target
    group, plan = planned.group, planned.plan
    with code.em.before(group.epilogue or group.contraction):
        em, memory = code.em, Memory(code.em)
        contraction = match_rows(group.contraction, memory)
        assert contraction is not None
        extents = contraction.nest.extents
        columns = em.add(memory.size(extents[contraction.n]), em.number(plan.block_columns - 1))
        blocks = em.op("arith.divui", [columns, em.number(plan.block_columns)], em.index)
        for dim in contraction.batch:
            blocks = em.mul(blocks, memory.size(extents[dim]))
        code.launch([blocks], [plan.threads], lambda device: MatvecKernel(device, group, plan).build())
    erase_group(group)
