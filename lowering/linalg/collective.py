"""Collectives: calls of functions that a later pass (``relax-call-collectives``) makes calls of the run time of.

A function reads its operand and writes its result, as bufferization sees it, by a body that nobody runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.sharding import ranks_of
from ..marks import COLLECTIVE, CUDA_TARGET
from .builder import LinalgBuilder, Size, Tensor, tensor_type, value_type
from .kernel import call_kernel
from .registry import Source, lowering
from .reshaping import restore_axes
from .scalar import emit

__all__: list[str] = []


@lowering("relax.all_reduce")
def _lower_all_reduce(b: LinalgBuilder, source: Source) -> Tensor | ir.Value:
    (x,) = source.operands
    if _ranks(b) == 1:
        return x
    return _call(b, "all_reduce", x, b.sizes(x))


@lowering("relax.all_gather")
def _lower_all_gather(b: LinalgBuilder, source: Source) -> Tensor | ir.Value:
    (x,) = source.operands
    ranks, wanted = _ranks(b), source.attrs["ranks"]
    if ranks != wanted:
        raise RelaxError(f"expected the module's number of ranks, {ranks}, got {wanted}")
    if ranks == 1:
        return replace(x, value=restore_axes(b, x.value, [0]))
    return _call(b, "all_gather", x, [ranks, *b.sizes(x)])


@lowering("relax.rank")
def _lower_rank(b: LinalgBuilder, source: Source) -> ir.Value:
    if _ranks(b) == 1:
        return b.filled([], source.result.dtype, 0)
    return _call(b, "rank", None, [])


def _ranks(b: LinalgBuilder) -> int:
    if CUDA_TARGET in b.module.attributes:
        raise RelaxError("expected code for one GPU or for CPUs, got a collective of several ranks on a GPU")
    return ranks_of(b.module)


def _call(b: LinalgBuilder, kind: str, x: Tensor | None, sizes: Sequence[Size]) -> ir.Value:
    """A call that reads ``x`` and writes a result of these sizes."""
    element = ir.IntegerType.get_signless(64) if x is None else value_type(x.value).element_type
    out = b.empty(sizes, element)
    inputs = [] if x is None else [b.cast(x.value, tensor_type(b.sizes(x), element))]

    def body(arguments: Sequence[ir.Value]) -> ir.Value:
        *given, target = arguments
        loops = range(value_type(target).rank)
        if not given:
            return b.fill(target, 0)
        read = (given[0], list(loops)[-value_type(given[0]).rank :] if value_type(given[0]).rank else [])
        return b.generic("p" * len(loops), [read], target, lambda element, _: _twice(element))

    return call_kernel(b, kind, inputs, out, (kind,), body, marks={COLLECTIVE: ir.StringAttr.get(kind)})


def _twice(element: ir.Value) -> ir.Value:
    """What is no copy: MLIR would take one away."""
    return emit("arith.addf" if isinstance(element.type, ir.FloatType) else "arith.addi", element.type, element, element)
