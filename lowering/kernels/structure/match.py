"""Recognises a contraction, the fill before it and the epilogue after it, and what each of its dimensions does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....dialect.bindings import ir
from ...integer_product import IntegerProduct
from ...marks import INTEGER_SUMS
from ..emit.buffers import Buffers
from .factor import Factor
from .nest import Nest, collapse, read_nest
from .roles import OF_COLUMNS, OF_ROWS, Roles

__all__ = ["Contraction", "MatchedGroup", "find_group", "match_contraction", "plain_dims"]


# Operations that may stand between a contraction and what is fused with it: they touch no buffer's contents.
_HARMLESS = ("arith.", "affine.", "memref.dim", "memref.alloc", "memref.alloca")


@dataclass(frozen=True)
class Contraction:
    """``C[batch, m, n] += left[batch, m, outer, k] * right[batch, outer, k, n]``.

    ``shared`` are the batch dimensions that ``right`` does not depend on; ``m`` is None when there is a single row. ``outer``
    are all reductions but the last one, ``k``.
    """

    nest: Nest
    batch: tuple[int, ...]
    shared: tuple[int, ...]
    m: int | None
    n: int
    outer: tuple[int, ...]
    k: int
    left: Factor
    right: Factor


@dataclass(frozen=True)
class MatchedGroup:
    """Operations lowered as one kernel; ``temporary`` is the accumulation buffer when nothing else uses it."""

    contraction: ir.Operation
    fill: ir.Operation | None
    epilogue: ir.Operation | None
    temporary: ir.Value | None


def match_contraction(operation: ir.Operation, memory: Buffers) -> Contraction | None:
    """The roles of a contraction's dimensions, None when it is no sum of products that can be tiled.

    Raises RelaxError at an operation whose marks do not fit it.
    """
    nest = read_nest(operation, memory)
    parallel = [d for d in nest.extents if d not in nest.reductions]
    if len(nest.outputs) != 1 or not nest.reductions:
        return None
    nest = collapse(nest, parallel)
    output, factors = nest.outputs[0].offset, _factors(nest)
    n = next((d for d in reversed(parallel) if output.factor(d).static == 1), None)
    if factors is None or n is None or output.floors():
        return None
    is_by_roles = INTEGER_SUMS in operation.attributes  # whose factors are what the mark says, or an error
    left, right = reversed(factors) if n in factors[0].dims() and not is_by_roles else factors
    if n in left.dims() and not is_by_roles:
        return None
    inside = right.dims()
    m = next((d for d in reversed(parallel) if d != n and d not in inside), None)
    others = [d for d in parallel if d not in (m, n)]
    batch, shared = (tuple(d for d in others if (d in inside) == wanted) for wanted in (True, False))
    *outer, k = (d for d in nest.extents if d in nest.reductions)
    return Contraction(nest, batch, shared, m, n, tuple(outer), k, left, right)


def find_group(contraction: ir.Operation, siblings: Sequence[ir.Operation]) -> MatchedGroup:
    """What can be fused with a contraction, out of the operations of its block in order."""
    position = siblings.index(contraction)
    result = contraction.operands[len(contraction.operands) - 1]
    fill = _fill_before(siblings[:position], result)
    epilogue = _epilogue_after(siblings[position + 1 :], contraction, result)
    if epilogue is None:
        return MatchedGroup(contraction, fill, None, None)
    group = [op for op in (contraction, fill, epilogue) if op is not None]
    others = [use for use in _users(result) if use not in group and use.name != "memref.dealloc"]
    written_again = result in _outputs(epilogue)
    if written_again:
        return MatchedGroup(contraction, fill, epilogue, None)
    if others or _defining(result, ("memref.alloc", "memref.alloca")) is None:
        return MatchedGroup(contraction, fill, None, None)
    return MatchedGroup(contraction, fill, epilogue, result)


def plain_dims(operation: ir.Operation, position: int) -> list[int] | None:
    """The loop dimension at each index of an operand, None unless the map lists distinct dimensions."""
    results = ir.AffineMapAttr(ir.ArrayAttr(operation.attributes["indexing_maps"])[position]).value.results
    dims = [e.position for e in results if isinstance(e, ir.AffineDimExpr)]
    return dims if len(dims) == len(results) == len(set(dims)) else None


def _factors(nest: Nest) -> tuple[Factor, Factor] | None:
    """x and y of a body that yields ``accumulator + x * y``, or what a product of integers takes of rows and of columns."""
    product = IntegerProduct.of(nest.operation)
    if product is not None:
        roles = Roles(nest, product)
        return roles.factor(*OF_ROWS), roles.factor(*OF_COLUMNS)
    operations, (result,) = nest.body()
    accumulator = nest.outputs[0].argument
    add = _defining(result, ("arith.addf", "arith.addi"))
    if add is None or len(list(accumulator.uses)) != 1 or accumulator not in list(add.operands):
        return None
    a, b = add.operands
    multiply = _defining(b if a == accumulator else a, ("arith.mulf", "arith.muli"))
    if multiply is None:
        return None
    x, y = (Factor(v, tuple(nest.inputs), tuple(operations)).part(v) for v in multiply.operands)
    return x, y


def _fill_before(previous: Sequence[ir.Operation], result: ir.Value) -> ir.Operation | None:
    """The fill of the contraction's result, when nothing in between uses it."""
    for operation in reversed(previous):
        if result not in list(operation.operands):
            continue
        return operation if _is_fill(operation) else None
    return None


def _is_fill(operation: ir.Operation) -> bool:
    if operation.name != "linalg.generic" or len(operation.operands) != 2:
        return False
    block = operation.regions[0].blocks[0]
    (*_, last) = block.operations
    scalar = not isinstance(operation.operands[0].type, ir.MemRefType)
    return scalar and last.operands[0] == block.arguments[0] and plain_dims(operation, 1) is not None


def _epilogue_after(following: Sequence[ir.Operation], contraction: ir.Operation, result: ir.Value) -> ir.Operation | None:
    """The next generic, when it is elementwise over the contraction's result."""
    for operation in following:
        if operation.name == "linalg.generic":
            return operation if _is_epilogue(operation, contraction, result) else None
        if not operation.name.startswith(_HARMLESS):
            return None
    return None


def _is_epilogue(operation: ir.Operation, contraction: ir.Operation, result: ir.Value) -> bool:
    kinds = [str(k) for k in ir.ArrayAttr(operation.attributes["iterator_types"])]
    if any("parallel" not in k for k in kinds):
        return False
    produced = plain_dims(contraction, len(contraction.operands) - 1)
    places = [i for i, v in enumerate(operation.operands) if v == result]
    maps = [plain_dims(operation, i) for i in places]
    if produced is None or not places or maps[0] is None or any(m != maps[0] for m in maps):
        return False
    return len(maps[0]) == len(kinds)


def _outputs(operation: ir.Operation) -> list[ir.Value]:
    inputs = ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"])[0]
    return list(operation.operands)[inputs:]


def _users(value: ir.Value) -> list[ir.Operation]:
    return [use.owner.operation for use in value.uses]


def _defining(value: ir.Value, names: Sequence[str]) -> ir.Operation | None:
    """The operation that defines a value, when it is one of those names."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in names:
        return None
    return owner.operation
