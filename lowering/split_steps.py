"""Steps of a preparation that run on one part of their weights after another: a step in, functions for a part out.

Before::

    func.func @main_transform_params.step0(%a: tensor<4096x4096xf32> {relax.name = "a"}) -> (tensor<128x4096x32xf32> ...)

after, beside it::

    func.func @main_transform_params.step0.piece(%a: tensor<1024x4096xf32> {relax.name = "a"}) -> (tensor<32x4096x32xf32> ...)

A piece of each result is a range of its bytes, of the first dimension that is not one. What it is made from follows from how
dimensions are tied to each other (:mod:`..dialect.dim_ties`), where every op between works on parts of the dimension. What is
left for the last piece has a function of its own, ``.last``.

Where pieces of the weights are ranges of bytes as well, pieces are *blocks* that fit into a cache: the step as a whole is
nothing but calls for one block after another, in place, and has no function of its own. Of a file, each is read in front of
its call. A piece to read and write within a memory limit is several of them then.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..dialect.bindings import func, ir
from ..dialect.dim_ties import Tie, TiedDim
from ..dialect.functions import (
    body_of,
    full_argument_names,
    name_of,
    num_input,
    result_names,
    returned_values,
    set_names,
    set_num_input,
    terminator,
)
from ..dialect.op import ties_of
from ..dialect.ops import MatMul
from ..dialect.struct_info import TensorInfo, element_bytes
from ..dialect.traversal import clone_with, operations
from .c_names import symbol_name
from .manifest_steps import PartsSpec

__all__ = [
    "BLOCK_BYTES",
    "LEAST_OF_PRODUCT",
    "PIECE_BYTES",
    "bytes_of_step",
    "first_axis",
    "function_of_piece",
    "is_in_product",
    "nbytes_of",
    "shape_of",
    "split_step",
    "tie_of",
]

#: About what a piece reads and makes; steps of less than two are not split. Large enough for disks and small beside what the
#: interpreter takes: with 16 MiB a call, its reads and its writes are 0.2 % of a piece's time.
PIECE_BYTES = 16 << 20
#: About what a block reads and makes, so that what is between stays in the second-level cache: quantizing 2048 x 2048 f32 to
#: four bits takes 11.0 ms at once, 2.3 in blocks of 0.3 MiB, 2.7 of 1.2, 4.2 of 2.3; a call takes 0.02 (Zen 5, one thread).
BLOCK_BYTES = 1 << 20

#: Rows or columns of a piece of a product: fewer may be summed in another order than as part of more (products of one row or
#: column are; two were in a batch).
LEAST_OF_PRODUCT = 16


def split_step(step: func.FuncOp) -> tuple[PartsSpec, list[func.FuncOp]] | None:
    """How a step runs on pieces, and the functions for that, built behind it; None where it cannot be split, or is small.

    Where pieces are blocks, the functions are there instead of the step, which the caller erases.
    """
    arguments, results = list(step.arguments), returned_values(step)
    if not results or bytes_of_step(step) < 2 * min(BLOCK_BYTES, PIECE_BYTES):
        return None
    dims = _tied_to_results(step)
    if dims is None:
        return None
    unit = math.lcm(*(d.ratio.denominator for d in dims.values()))
    sizes = {value: _Cut(d.axis, int(d.ratio * unit), shape_of(value)[d.axis]) for value, d in dims.items()}
    counts = {-(-cut.whole // cut.size) for cut in sizes.values()}
    if len(counts) != 1 or not any(a in sizes for a in arguments):
        return None
    units = counts.pop()
    whole = sum(nbytes_of(v) for v in (*arguments, *results) if v in sizes)
    blocks = _is_for_blocks(step, sizes)
    most = max(1, (BLOCK_BYTES if blocks else PIECE_BYTES) * units // max(whole, 1))
    each = _units_per_piece(units, most, _Products(()) if blocks else _Products.of(sizes))
    if each is None or each >= units or (whole < 2 * PIECE_BYTES and not blocks):
        return None
    cuts = {value: _Cut(cut.axis, cut.size * each, cut.whole) for value, cut in sizes.items()}
    count = -(-units // each)
    return _built(step, cuts, count, max(1, PIECE_BYTES * count // whole) if blocks else None)


def bytes_of_step(step: func.FuncOp) -> int:
    """Bytes of what a function takes and gives."""
    return sum(nbytes_of(v) for v in (*step.arguments, *returned_values(step)))


@dataclass(frozen=True)
class _Cut:
    """How a value is cut: pieces of ``size`` along ``axis``, of ``whole``."""

    axis: int
    size: int
    whole: int


def _is_for_blocks(step: func.FuncOp, cuts: Mapping[ir.Value, _Cut]) -> bool:
    """Whether pieces of the weights are ranges of bytes: read one after the other, they are in the cache for their calls."""
    return all(cuts[a].axis == first_axis(a) for a in step.arguments if a in cuts)


@dataclass(frozen=True)
class _Products:
    """Rows or columns of products that pieces have parts of: how many each has, and how many a unit is of them."""

    sizes: tuple[_Cut, ...]

    @staticmethod
    def of(cuts: Mapping[ir.Value, _Cut]) -> _Products:
        return _Products(tuple(c for value, c in cuts.items() if is_in_product(value, c.axis)))

    def allow(self, each: int) -> bool:
        """Whether pieces of so many units, and what is left for the last one, are summed as the whole is."""
        last = [c.whole - (-(-c.whole // (c.size * each)) - 1) * c.size * each for c in self.sizes]
        return all(min(c.size * each, left) >= LEAST_OF_PRODUCT for c, left in zip(self.sizes, last, strict=True))


def is_in_product(value: ir.Value, axis: int) -> bool:
    """Whether an axis of a value is the rows or the columns of a product, of which it is the result."""
    op = value.owner.opview if isinstance(value.owner, ir.Operation) else value.owner
    if not isinstance(op, MatMul):
        return False
    inner = sum(TensorInfo.of(v).rank > 1 for v in op.operands)
    return axis >= TensorInfo.of(value).rank - inner


def _units_per_piece(units: int, most: int, products: _Products) -> int | None:
    """As many as the most, or a divisor near it: without a rest one function is enough; None where products allow none."""
    divisors = (n for n in range(most, most // 2, -1) if units % n == 0)
    others = itertools.chain(range(most, 0, -1), range(most + 1, units))
    return next((n for n in itertools.chain(divisors, others) if products.allow(n)), None)


def _tied_to_results(step: func.FuncOp) -> dict[ir.Value, TiedDim] | None:
    """The dimensions that run along the first one of the results, with their counts; None where an op needs a whole one."""
    results = returned_values(step)
    block = body_of(step)
    assert block is not None
    end, first = terminator(block), results[0]
    readers: dict[ir.Value, list[ir.Operation]] = {}
    for op in operations(block):
        for value in dict.fromkeys(op.operands):
            readers.setdefault(value, []).append(op)
    found = {first: TiedDim(first, first_axis(first))}
    pending = [first]
    while pending:
        value = pending.pop()
        around = [op for op in readers.get(value, []) if op != end]
        if not isinstance(value, ir.BlockArgument):
            around.append(value.owner.operation if isinstance(value.owner, ir.OpView) else value.owner)
        for op in around:
            tie = tie_of(op, found[value])
            if tie is None:
                return None
            for dim in tie:
                if dim.value not in found:
                    found[dim.value] = dim
                    pending.append(dim.value)
                elif (found[dim.value].axis, found[dim.value].ratio) != (dim.axis, dim.ratio):
                    return None
    return found if all(v in found and found[v].axis == first_axis(v) for v in results) else None


def tie_of(op: ir.Operation, dim: TiedDim) -> Tie | None:
    """What an op ties to a dimension, with counts by that one's; None where it is worked on as a whole."""
    ties = [(tie, d) for tie in ties_of(op) for d in tie if d.value == dim.value and d.axis == dim.axis]
    if not ties or any(other != ties[0] for other in ties[1:]):
        return None
    tie, own = ties[0]
    scale = dim.ratio / own.ratio
    return tuple(TiedDim(d.value, d.axis, d.ratio * scale) for d in tie)


def first_axis(value: ir.Value) -> int:
    """The first axis whose size is not one: ranges along it are ranges of bytes."""
    return next((i for i, size in enumerate(shape_of(value)) if size != 1), 0)


def shape_of(value: ir.Value) -> list[int]:
    """The sizes of a tensor, all known."""
    return list(ir.RankedTensorType(value.type).shape)


def nbytes_of(value: ir.Value) -> int:
    """Bytes of a tensor."""
    return math.prod(shape_of(value)) * element_bytes(TensorInfo.of(value).dtype)


def _built(
    step: func.FuncOp, cuts: Mapping[ir.Value, _Cut], count: int, blocks: int | None
) -> tuple[PartsSpec, list[func.FuncOp]]:  # fmt: skip
    name, rest = name_of(step), {v: c.whole - (count - 1) * c.size for v, c in cuts.items()}
    made = [function_of_piece(step, f"{name}.piece", {v: (c.axis, c.size) for v, c in cuts.items()})]
    if any(rest[v] != c.size for v, c in cuts.items()):
        made.append(function_of_piece(step, f"{name}.last", {v: (c.axis, rest[v]) for v, c in cuts.items()}))
    symbols = [symbol_name(f) for f in made]
    gets, sets = (_places(values, cuts) for values in (step.arguments, returned_values(step)))
    return PartsSpec(count, symbols[0], symbols[1] if len(symbols) > 1 else None, 0, gets, sets, blocks), made


def _places(values: Sequence[ir.Value], cuts: Mapping[ir.Value, _Cut]) -> tuple[tuple[int, int] | None, ...]:
    return tuple((cuts[v].axis, cuts[v].size) if v in cuts else None for v in values)


def function_of_piece(step: func.FuncOp, name: str, sizes: Mapping[ir.Value, tuple[int, int]]) -> func.FuncOp:
    """The step on a piece: its ops, on types of which a dimension has another size."""
    block = body_of(step)
    assert block is not None
    arguments = list(block.arguments)
    with ir.InsertionPoint.after(step.operation), step.location:
        types = ([_part(v, sizes) for v in arguments], [_part(v, sizes) for v in returned_values(step)])
        made = func.FuncOp(name, types)
    entry = made.add_entry_block(arg_locs=[v.location for v in arguments])
    mapping: dict[ir.Value, ir.Value] = dict(zip(arguments, entry.arguments, strict=True))
    for op in operations(block):
        clone = clone_with(op, mapping, ir.InsertionPoint(entry))
        for before, after in zip(op.results, clone.results, strict=True):
            with op.location:
                after.set_type(_part(before, sizes))
    inputs = num_input(step)
    if inputs is not None:
        set_num_input(made, inputs)
    set_names(made, full_argument_names(step), result_names(step))
    return made


def _part(value: ir.Value, sizes: Mapping[ir.Value, tuple[int, int]]) -> ir.Type:
    if value not in sizes:
        return value.type
    axis, size = sizes[value]
    info = TensorInfo.of(value)
    return info.with_(shape=[size if i == axis else d for i, d in enumerate(info.shape)]).type
