"""The template of kernels over rows: softmax, norms and reductions, by a warp or a block per row that reads and writes it once.

Before::

    linalg.generic (i, j) -> (i, j), (i): m[i] = max(m[i], in[i, j])
    linalg.generic (i, j) -> (i, j), (i), (i, j): p[i, j] = exp(in[i, j] - m[i])
    linalg.generic (i, j) -> (i, j), (i): s[i] += p[i, j]
    linalg.generic (i, j) -> (i, j), (i), (i, j): out[i, j] = p[i, j] / s[i]

after, one launch: thread t of a row has the elements from ``4 * t`` on, those from ``4 * (t + threads)`` on, and so on::

    x = in[i, ...];  m = maximum of all threads' x;  p = exp(x - m);  s = sum of all threads' p;  out[i, ...] = p / s

What is between the operations is in registers, and what several of them read is read once. Threads of a warp combine what they
have by shuffles, warps by shared memory. Rows without anything in between, as those of a sum, may be of any length; a few long
ones that are only reduced have more blocks than one each (`reduction.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from ....dialect.bindings import func, ir
from ....dialect.functions import body_of
from ....dialect.struct_info import element_bytes
from ....dialect.traversal import nested_operations
from ...kernels.emit.buffers import Buffers
from ...kernels.structure.combiners import combiners
from ...kernels.structure.nest import Nest, Operand
from ...marks import CONTRACTION, ROWS
from ..cuda_target import CudaTarget
from .nest_code import is_plain, read

__all__ = ["WARP", "RowsPlan", "columns_of", "plan_rows"]

#: Threads of a warp.
WARP = 32
# Threads of a block whose warps have a row each.
_SMALL_BLOCK = 128
_MOST_THREADS = 1024
# Threads of a row of unknown length.
_LONG = 256
# Vectors of 16 bytes that a warp's thread has at most, and a block's: with f32, rows of 512 and of 32768 elements. A layer norm
# and softmax of 2048 bf16, by ptxas for sm_80: 167 registers with eight vectors in a warp's thread.
_PER_WARP_THREAD, _PER_THREAD = 4, 8
# Elements of a row for each thread of a block, where there is a choice: enough of them between two barriers.
_ENOUGH = 4
_ACCESS = 16
# Rows that leave most of a GPU idle, and columns that one block goes through in the time that a second launch takes.
_FEW_ROWS, _LONGEST = 32, 32768


@dataclass(frozen=True)
class RowsPlan:
    """How the operations of a kernel over rows are computed.

    Attributes:
        operations: in order, fills among them.
        rows: how many loops, the first ones, are over rows.
        own: buffers that exist in registers alone.
        columns: elements of a row; None: as many as there are, read again by each operation.
        width: neighbours that a thread reads at once.
        threads: of a row: 32, a warp, of which a block has several, or more, all of a block.
    """

    operations: tuple[ir.Operation, ...]
    rows: int
    own: tuple[ir.Value, ...]
    columns: int | None
    width: int
    threads: int

    @property
    def block(self) -> int:
        """Threads of a block."""
        return _SMALL_BLOCK if self.threads == WARP else self.threads

    @property
    def per_block(self) -> int:
        """Rows of a block."""
        return self.block // self.threads

    @property
    def parts(self) -> int:
        """Vectors that a thread has of a row in registers."""
        return 0 if self.columns is None else -(-self.columns // (self.width * self.threads))

    def __str__(self) -> str:
        columns = "any" if self.columns is None else self.columns
        return f"rows columns={columns} width={self.width} threads={self.threads} rows-per-block={self.per_block}"


def plan_rows(function: func.FuncOp, target: CudaTarget) -> RowsPlan | None:
    """The plan of a kernel function that computes rows independently of each other, None for others."""
    del target
    found = _operations(function)
    if not found:
        return None
    rows = ir.IntegerAttr(function.attributes[ROWS]).value if ROWS in function.attributes else _leading(found)
    nests = [] if rows is None else [read(op, Buffers(op.location), rows) for op in found]
    if rows is None or not all(_fits(nest, rows) for nest in nests) or not any(nest.reductions for nest in nests):
        return None
    own = tuple(v for v in dict.fromkeys(_written(op) for op in found) if _is_own(v))
    sizes = {s.static for nest in nests for d, s in nest.extents.items() if d >= rows}
    if len(sizes) != 1 or not all(_as_a_row(o, columns_of(n, rows), rows) for n in nests for o in n.operands if o.value in own):
        return None
    (columns,) = sizes
    if not _once_written(found, nests, rows):
        return None
    return _sized(tuple(found), rows, own, columns, nests)


def _operations(function: func.FuncOp) -> list[ir.Operation]:
    """The linalg operations of a function that has no others on elements, but allocations."""
    block = body_of(function)
    top = [] if block is None else [op.operation for op in block.operations]
    every = list(nested_operations(function.operation))
    found = [op for op in top if op.name.startswith("linalg.")]
    others = [op for op in every if op.name in ("memref.load", "memref.store", "memref.copy") or op.name.startswith("scf.")]
    nested = [op for op in every if op.name.startswith("linalg.generic") and op not in found]
    return [] if others or nested or not all(is_plain(op) and CONTRACTION not in op.attributes for op in found) else found


def _leading(operations: Sequence[ir.Operation]) -> int | None:
    """The loops of a single reduction that are over rows: those in front of what it reduces; others may fill its result."""
    *fills, last = operations
    kinds = ["parallel" in str(k) for k in ir.ArrayAttr(last.attributes["iterator_types"])]
    if all(kinds) or kinds != sorted(kinds, reverse=True):
        return None
    out = _written(last)
    filled = all(_written(op) == out and len(op.operands) == 2 for op in fills)
    alone = ir.DenseI32ArrayAttr(last.attributes["operandSegmentSizes"])[1] == 1
    return sum(kinds) if filled and alone else None


def _fits(nest: Nest, rows: int) -> bool:
    """Whether a nest has at most one loop inside of the rows', and reduces along it by what threads can combine."""
    inside = [d for d in nest.extents if d >= rows]
    if len(inside) > 1 or len(nest.outputs) != 1 or any(d < rows for d in nest.reductions):
        return False
    if not nest.reductions:
        return True
    wide = nest.outputs[0].argument.type
    return combiners(nest) is not None and str(wide) in ("f32", "i32")


def columns_of(nest: Nest, rows: int) -> int | None:
    """The loop along a row; None where there is none."""
    return next((d for d in nest.extents if d >= rows), None)


def _in_rows(nest: Nest, rows: int) -> list[Operand]:
    """The operands that have an element for each column."""
    column = columns_of(nest, rows)
    return [o for o in nest.operands if column is not None and column in o.offset.dims()]


def _as_a_row(operand: Operand, column: int | None, rows: int) -> bool:
    """Whether a buffer between operations is read or written where a row has it: along the columns, or once."""
    inside = {d for d in operand.offset.dims() if d >= rows}
    if operand.offset.floors():
        return False
    return not inside or (inside == {column} and column is not None and operand.offset.factor(column).static == 1)


def _once_written(operations: Sequence[ir.Operation], nests: Sequence[Nest], rows: int) -> bool:
    """Whether no operation reads a row that one of them writes to memory."""
    results = {v for v in map(_written, operations) if not _is_own(v)}
    return not any(o.value in results for n in nests for o in _in_rows(n, rows) if o in n.inputs)


def _sized(
    operations: tuple[ir.Operation, ...], rows: int, own: tuple[ir.Value, ...], columns: int | None, nests: Sequence[Nest]
) -> RowsPlan | None:
    """The plan of so many columns; None where a row does not fit the registers of a block."""
    read_at = [o for n in nests for o in _in_rows(n, rows) if o.buffer is not None and o.value not in own]
    width = _ACCESS // max([element_bytes(ir.MemRefType(o.value.type).element_type) for o in read_at], default=4)
    kept = any(o.value in own for n in nests for o in _in_rows(n, rows))
    reductions = [n for n in nests if n.reductions]
    if columns is None and kept:
        return None
    if not kept and len(reductions) == 1 and _are_few(reductions[0], rows) and (columns is None or columns > _LONGEST):
        return None  # more blocks than rows: reduction.py
    if columns is None:  # rows begin anywhere
        return RowsPlan(operations, rows, own, None, 1, _LONG if rows else _MOST_THREADS)
    width = gcd(width, columns)
    vectors = columns // width
    if vectors <= WARP * _PER_WARP_THREAD:
        return RowsPlan(operations, rows, own, columns, width, WARP)
    threads = 64
    while threads < _MOST_THREADS and vectors > threads * _ENOUGH:
        threads *= 2
    if vectors > threads * _PER_THREAD:
        return None if kept else RowsPlan(operations, rows, own, None, width, threads)
    return RowsPlan(operations, rows, own, columns, width, threads)


def _are_few(nest: Nest, rows: int) -> bool:
    """Whether a nest is known to have fewer rows than make enough blocks."""
    counts = [size.static for d, size in nest.extents.items() if d < rows]
    return None not in counts and prod(n or 0 for n in counts) < _FEW_ROWS


def _written(operation: ir.Operation) -> ir.Value:
    return operation.operands[len(operation.operands) - 1]


def _is_own(value: ir.Value) -> bool:
    return not isinstance(value, ir.BlockArgument) and value.owner.name == "memref.alloc"
