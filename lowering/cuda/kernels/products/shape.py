"""What a plan is made from: sizes, element types and places of a product's factors as plain data, without IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from .....dialect.bindings import ir
from ....kernels.structure.factor import Factor
from ....kernels.structure.match import Contraction
from ....kernels.structure.nest import Operand
from ....kernels.structure.packed_words import steps_of_element
from ....kernels.structure.row_groups import GroupedContraction
from ...cuda_target import CudaTarget
from ..device_memory import element_bytes_of, known_product, multiple_of
from .float8 import FLOAT8, float8_format
from .instructions import INSTRUCTIONS
from .narrow import narrow_factor
from .tensor_maps import dims_of_rows, map_factors

__all__ = ["FactorShape", "ProductShape", "contiguous_columns", "describe"]

# The widest copy, and the widest vector of results.
_WIDEST = 16
# Steps of k, in floats of 16 bits.
_STAGE = 32


@dataclass(frozen=True)
class FactorShape:
    """How a factor is in memory.

    Attributes:
        along_k: whether steps of k are neighbours; else rows of it are (columns, of the right factor).
        copy: bytes that can be copied at once as they are, 0 where its values are computed, or too narrow to be copied.
        is_computed: whether operations stand between memory and what is multiplied.
    """

    along_k: bool
    copy: int
    is_computed: bool = False


@dataclass(frozen=True)
class ProductShape:
    """Sizes are None where they are known at run time only.

    Attributes:
        rows: of the result, of all dimensions that only the left factor has.
        columns: of the result.
        depth: steps of the innermost sum.
        batch: how many products there are.
        by: the name of the instruction that multiplies elements of these types.
        left, right: the factors.
        store: neighbouring columns of the result that are written at once.
        is_mapped: whether both factors are tensors that descriptors can say (:mod:`.tensor_maps`).
        group: steps of k whose products are multiplied with one scale of their column, 0 for all (:mod:`.narrow`); None: none
            are.
        splits: whether parts of k can be products of their own (:mod:`.split`).
        sums: how many innermost sums a result has, as many as a convolution has places in its window.
        groups: of rows, each with a matrix of its own, whose sizes data decides; 0: all rows have the same one. ``batch`` and
            ``rows`` are those of groups that are equally large then, of as many as there are rows for.
    """

    rows: int | None
    columns: int | None
    depth: int | None
    batch: int | None
    by: str
    left: FactorShape
    right: FactorShape
    store: int
    is_mapped: bool = False
    group: int | None = None
    splits: bool = False
    sums: int | None = 1
    groups: int = 0


def describe(contraction: Contraction, target: CudaTarget) -> ProductShape | None:
    """The shape of a product that tensor cores compute, None for others; factors are on buffers."""
    nest = contraction.nest
    narrow = narrow_factor(contraction)
    by = _instruction(contraction, target) if narrow is None else _instruction_of_left(contraction)
    sides = _sides(contraction)
    left, right = (_factor(f, dims, contraction) for f, dims in sides)
    if narrow is None and by is not None and INSTRUCTIONS[by].bits == 16:
        left, right = (_widened(f, s, contraction.k) for (f, _), s in zip(sides, (left, right), strict=True))
    if narrow is not None:
        has_stages = _has_stages(narrow.group, nest.extents[contraction.k].static)
        right = FactorShape(_is_along_k(narrow.integers, contraction.k), 0, is_computed=True) if has_stages else None
    if by is None or left is None or right is None:
        sides = [_as_f32(f, contraction.k, s) for f, s in ((contraction.left, left), (contraction.right, right))]
        by, narrow, (left, right) = "fma", None, sides
    if left is None or right is None or (by == "fma" and str(nest.outputs[0].argument.type) != "f32"):
        return None
    extents = {d: size.static for d, size in nest.extents.items()}
    groups = contraction.groups.count if isinstance(contraction, GroupedContraction) else 0
    rows = known_product(extents[d] for d in dims_of_rows(contraction))
    batch = known_product(extents[d] for d in contraction.batch)
    if groups:
        batch = groups if rows is None else max(1, min(groups, rows))
        rows = None if rows is None else -(-rows // batch)
    return ProductShape(
        rows,
        extents[contraction.n],
        extents[contraction.k],
        batch,
        by,
        left,
        right,
        contiguous_columns(nest.outputs[0], contraction.n, extents[contraction.n]),
        left.copy == right.copy == _WIDEST and map_factors(contraction) is not None,
        None if narrow is None else narrow.group,
        sums=known_product(extents[d] for d in contraction.outer),
        groups=groups,
    )


def contiguous_columns(output: Operand, n: int, columns: int | None) -> int:
    """How many neighbouring columns of a result are always there, and in a row in memory: at most 8, and 16 bytes."""
    assert output.buffer is not None
    width = 8 if columns is None else gcd(columns, 8)
    if columns is None:
        return 1
    while width > 1 and not output.offset.lanes(n, width, {n: width}).contiguous:
        width //= 2
    return width


def _sides(contraction: Contraction) -> list[tuple[Factor, tuple[int, ...]]]:
    return [(contraction.left, dims_of_rows(contraction)), (contraction.right, (contraction.n,))]


def _instruction(contraction: Contraction, target: CudaTarget) -> str | None:
    """The instruction that sums products of what the factors have in memory, exactly or as f32 do."""
    sums = str(contraction.nest.outputs[0].argument.type)
    kinds = [_element(f) for f in (contraction.left, contraction.right)]
    if sums == "f32" and any(k in FLOAT8 for k in kinds):
        return _instruction_of_float8(kinds, target)
    names = [i.name for i in INSTRUCTIONS.values() if kinds == [i.element, i.element] and i.sums == sums]
    if "u8" in names:
        signs = {_is_unsigned(f) for f in (contraction.left, contraction.right)}
        names = [] if len(signs) > 1 else ["u8" if signs == {True} else "s8"]
    return next((n for n in names if n != "tf32" or target.tf32), None)


def _instruction_of_float8(kinds: Sequence[str | None], target: CudaTarget) -> str | None:
    """The instruction for floats of 8 bits, where one has both factors as they are and the target lets sums be less exact.

    Else they become floats of 16 bits, which have them without rounding: what the other factor is, or f16.
    """
    if kinds[0] == kinds[1] and target.f8:
        return kinds[0]
    others = [k for k in kinds if k not in FLOAT8]
    wide = others[0] if others else "f16"
    return wide if wide in ("bf16", "f16") else None


def _widened(factor: Factor, shape: FactorShape | None, k: int) -> FactorShape | None:
    """How a factor is in memory, whose floats of 8 bits threads make 16 of on their way."""
    return shape if _element(factor) not in FLOAT8 else FactorShape(_is_along_k(factor, k), 0, is_computed=True)


def _instruction_of_left(contraction: Contraction) -> str | None:
    """The instruction for small integers, which are floats as the left factor's are."""
    sums = str(contraction.nest.outputs[0].argument.type)
    element = _element(contraction.left)
    return next((i.name for i in INSTRUCTIONS.values() if i.bits == 16 and i.element == element and i.sums == sums), None)


def _as_f32(factor: Factor, k: int, shape: FactorShape | None) -> FactorShape | None:
    """How a factor is in memory that fused multiply-adds take; None of one that threads cannot compute element by element."""
    if shape is not None and _element(factor) == "f32":
        return shape
    if not all(_is_arithmetic(op, k) for op in factor.operations) or str(factor.value.type) != "f32":
        return None
    return FactorShape(_is_along_k(factor, k), 0, is_computed=True)


def _is_along_k(factor: Factor, k: int) -> bool:
    """Whether steps of k are neighbours in something that a factor reads, or words of some steps are."""
    return any(o.buffer is not None and steps_of_element(o, k) for o in factor.operands)


def _is_arithmetic(op: ir.Operation, k: int) -> bool:
    """Whether an operation computes a value of others, or is the step of k."""
    if op.name == "linalg.index":
        return ir.IntegerAttr(op.attributes["dim"]).value == k
    return op.name.startswith(("arith.", "math.")) and len(op.results) == 1


def _has_stages(group: int, depth: int | None) -> bool:
    """Whether stages of 32 steps of k are whole groups, or each is in one."""
    return depth is not None and depth % 8 == 0 and (group % _STAGE == 0 or _STAGE % group == 0)


def _element(factor: Factor) -> str | None:
    """The type of elements that a factor widens, or is as it is; None for one that is computed."""
    operand = _only_operand(factor)
    if operand is None or operand.buffer is None:
        return None
    if len(factor.operations) > 1:
        return float8_format(factor)
    if any(op.name not in ("arith.extf", "arith.extsi", "arith.extui") for op in factor.operations):
        return None
    return str(operand.buffer.element)


def _is_unsigned(factor: Factor) -> bool:
    return any(op.name == "arith.extui" for op in factor.operations)


def _only_operand(factor: Factor) -> Operand | None:
    return factor.operands[0] if len(factor.operands) == 1 else None


def _factor(factor: Factor, rows: tuple[int, ...], contraction: Contraction) -> FactorShape | None:
    """How a factor is in memory; None where its place is no sum of a part of its rows and a multiple of k."""
    operand, k = _only_operand(factor), contraction.k
    if operand is None or operand.buffer is None or not isinstance(operand.value.type, ir.MemRefType):
        return None
    summed = {k, *contraction.outer}
    if any(floor.inner.dims() & summed for floor in operand.offset.floors()):
        return None
    size = element_bytes_of(operand.buffer.element)
    along_k = operand.offset.factor(k).static == 1
    line = k if along_k or not rows else rows[-1]
    if not along_k and size != 2:
        return FactorShape(False, 0)
    copy = _WIDEST
    while copy >= 4 and not _is_copied(operand, line, copy // size, contraction, rows):
        copy //= 2
    return FactorShape(along_k, copy if copy >= 4 else 0)


def _is_copied(operand: Operand, line: int, count: int, contraction: Contraction, rows: tuple[int, ...]) -> bool:
    """Whether each so many neighbours along a line are neighbours in memory, at a multiple of their number."""
    multiples = {line: count}
    if not operand.offset.lanes(line, count, multiples).contiguous or multiple_of(operand.offset, multiples) % count:
        return False
    return line == contraction.k or len(rows) == 1
