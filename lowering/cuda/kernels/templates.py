"""The templates of kernels for GPUs, in the order in which they are asked; the general path takes what none of them does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ....dialect.bindings import func
from ..cuda_target import CudaTarget
from .attention.template import build_attention, plan_of_attention
from .elementwise import build_elementwise, plan_elementwise
from .host_code import HostCode
from .index_copy import build_index_copy, plan_index_copy
from .matvec.template import build_matvec, plan_of_matvec
from .outer_sums import build_outer, plan_outer
from .products.template import build_product, plan_of_product
from .reduction import build_reduction, plan_reduction
from .row_code import build_rows
from .rows import plan_rows
from .scan import build_scan, plan_scan
from .sort import build_sort, plan_sort
from .transpose import build_transpose, plan_transpose

__all__ = ["TEMPLATES", "Template"]


@dataclass(frozen=True)
class Template:
    """One kind of kernel.

    Attributes:
        name: what reports call it.
        plan: given a kernel function on buffers (linalg operations are ``linalg.generic``, nothing else is changed yet), says
            how this template would compute it, as a record of its own, whose text the report shows; None where it does not
            fit. Changes nothing.
        build: puts launches in the place of all operations of the function that touch memory, as its plan says.
    """

    name: str
    plan: Callable[[func.FuncOp, CudaTarget], Any]
    build: Callable[[HostCode, Any, CudaTarget], None]


TEMPLATES: tuple[Template, ...] = (
    Template("attention", plan_of_attention, build_attention),
    Template("matvec", plan_of_matvec, build_matvec),
    Template("product", plan_of_product, build_product),
    Template("rows", plan_rows, build_rows),
    Template("outer", plan_outer, build_outer),
    Template("scan", plan_scan, build_scan),
    Template("sort", plan_sort, build_sort),
    Template("index-copy", plan_index_copy, build_index_copy),
    Template("transpose", plan_transpose, build_transpose),
    Template("reduction", plan_reduction, build_reduction),
    Template("elementwise", plan_elementwise, build_elementwise),
)
