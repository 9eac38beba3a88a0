"""What an access of a buffer touches, as arithmetic on its indices: for code that checks whether that is inside."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..dialect.bindings import ir
from .marks import TILE_ACCESS

__all__ = [
    "MEMORY_OPERANDS",
    "AccessCode",
    "Range",
    "any_zero",
    "element_bytes_of",
    "extent_of",
    "is_access",
    "judged",
    "lanes_of",
    "memory_of",
    "ranges_of",
    "source_extent",
]

#: Accesses, by where their memory is among the operands.
MEMORY_OPERANDS = {
    "memref.load": 0, "memref.store": 1, "memref.atomic_rmw": 1, "vector.load": 0, "vector.store": 1, "vector.maskedload": 0,
    "vector.maskedstore": 0, "vector.gather": 0, "vector.scatter": 0,
}  # fmt: skip
_MASKS = {"vector.maskedload": 0, "vector.maskedstore": 0, "vector.gather": 1, "vector.scatter": 1}


class AccessCode:
    """Builds arithmetic at the insertion point."""

    def __init__(self) -> None:
        self.index, self.i1, self.i64 = ir.IndexType.get(), ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64)

    def op(
        self, name: str, operands: Sequence[ir.Value], type_: ir.Type, attributes: Mapping[str, ir.Attribute] | None = None
    ) -> ir.Value:
        return ir.Operation.create(name, [type_], operands, dict(attributes or {})).result

    def number(self, value: int, type_: ir.Type | None = None) -> ir.Value:
        type_ = type_ or self.index
        return self.op("arith.constant", [], type_, {"value": ir.IntegerAttr.get(type_, value)})

    def zero(self, type_: ir.Type) -> ir.Value:
        element = ir.VectorType(type_).element_type if isinstance(type_, ir.VectorType) else type_
        number = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
        value = ir.DenseElementsAttr.get_splat(type_, number) if isinstance(type_, ir.VectorType) else number
        return self.op("arith.constant", [], type_, {"value": value})

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.addi", [a, b], a.type)

    def sub(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.subi", [a, b], a.type)

    def mul(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.muli", [a, b], a.type)

    def both(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.andi", [a, b], a.type)

    def either(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.ori", [a, b], a.type)

    def less(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.cmpi", [a, b], self.i1, {"predicate": ir.IntegerAttr.get(self.i64, 2)})

    def negative(self, a: ir.Value) -> ir.Value:
        return self.less(a, self.number(0))

    def select(self, condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.select", [condition, a, b], a.type)

    def not_(self, a: ir.Value) -> ir.Value:
        return self.op("arith.xori", [a, self.number(-1, self.i1)], self.i1)

    def dim(self, memory: ir.Value, axis: int) -> ir.Value:
        kind = ir.MemRefType(memory.type)
        if not kind.is_dynamic_dim(axis):
            return self.number(kind.get_dim_size(axis))
        return self.op("memref.dim", [memory, self.number(axis)], self.index)

    def reduced(self, kind: str, vector: ir.Value) -> ir.Value:
        attribute = ir.Attribute.parse(f"#vector.kind<{kind}>")
        return self.op("vector.reduction", [vector], ir.VectorType(vector.type).element_type, {"kind": attribute})

    @contextmanager
    def when(self, condition: ir.Value) -> Generator[None]:
        """Builds under a condition."""
        block = ir.Operation.create("scf.if", [], [condition], regions=2).regions[0].blocks.append()
        with ir.InsertionPoint(block):
            yield
            ir.Operation.create("scf.yield", [], [])


@dataclass(frozen=True)
class Range:
    """The least and the largest index of an access, and the first that is too large."""

    least: ir.Value
    largest: ir.Value
    size: ir.Value


def judged(code: AccessCode, ranges: Sequence[Range]) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Whether all are inside; and of the last one that is not, the index and the size."""
    inside, index, size = code.number(-1, code.i1), code.number(0), code.number(0)
    for r in ranges:
        below = code.negative(r.least)
        bad = code.either(below, code.not_(code.less(r.largest, r.size)))
        index = code.select(bad, code.select(below, r.least, r.largest), index)
        size, inside = code.select(bad, r.size, size), code.both(inside, code.not_(bad))
    return inside, index, size


def is_access(op: ir.Operation) -> bool:
    """Whether an operation reads or writes a buffer's elements."""
    return op.name in MEMORY_OPERANDS or TILE_ACCESS in op.attributes


def memory_of(op: ir.Operation) -> ir.Value:
    """The buffer of an access."""
    return op.operands[MEMORY_OPERANDS[op.name]] if op.name in MEMORY_OPERANDS else _address(op)[0]


def _address(op: ir.Operation) -> tuple[ir.Value, ir.Value]:
    """The buffer of an access of a tile register, and how many bytes behind its beginning the access is.

    Its pointer is ``inttoptr (index_cast (begin + bytes))``.
    """
    place = op.operands[1].owner.operands[0].owner.operands[0].owner
    begin, bytes_ = place.operands
    return begin.owner.operands[0], bytes_


def _tile_range(code: AccessCode, op: ir.Operation) -> Range:
    """From the first row's first element to the last row's last one."""
    memory, bytes_ = _address(op)
    rows, width = ir.DenseI64ArrayAttr(op.attributes[TILE_ACCESS])
    stride = code.op("arith.index_cast", [op.operands[2]], code.index)
    last = code.add(code.add(bytes_, code.mul(stride, code.number(rows - 1))), code.number(width - 1))
    size = code.number(element_bytes_of(ir.MemRefType(memory.type).element_type))
    least, largest = (code.op("arith.floordivsi", [value, size], code.index) for value in (bytes_, last))
    return Range(least, largest, code.dim(memory, 0))


def ranges_of(code: AccessCode, op: ir.Operation) -> list[Range]:
    """The indices of an access, by dimension; of one under a mask the active lanes count."""
    if op.name not in MEMORY_OPERANDS:
        return [_tile_range(code, op)]
    at = MEMORY_OPERANDS[op.name]
    memory = op.operands[at]
    rank = ir.MemRefType(memory.type).rank
    indices = list(op.operands)[at + 1 : at + 1 + rank]
    found = [Range(i, i, code.dim(memory, axis)) for axis, i in enumerate(indices)]
    if not op.name.startswith("vector."):
        return found
    following = list(op.operands)[at + 1 + rank :]
    last, lanes = found[-1], lanes_of(op)
    if op.name not in _MASKS:
        return [*found[:-1], Range(last.least, code.add(last.least, code.number(lanes - 1)), last.size)]
    wide = ir.VectorType.get([lanes], code.index)
    if op.name in ("vector.gather", "vector.scatter"):
        offsets = following[0]
        if offsets.type != wide:
            offsets = code.op("arith.index_cast", [offsets], wide)
    else:
        steps = ir.DenseElementsAttr.get([ir.IntegerAttr.get(code.index, i) for i in range(lanes)], wide)
        offsets = code.op("arith.constant", [], wide, {"value": steps})
    mask = following[_MASKS[op.name]]
    every = code.add(code.op("vector.broadcast", [last.least], wide), offsets)
    least, largest = (
        code.reduced(kind, code.select(mask, every, code.op("vector.broadcast", [code.number(unused)], wide)))
        for kind, unused in (("minsi", 2**63 - 1), ("maxsi", -1))
    )
    return [*found[:-1], Range(least, largest, last.size)]


def lanes_of(op: ir.Operation) -> int:
    """How many elements an access of a vector has."""
    vectors = [v.type for v in (*op.results, *op.operands) if isinstance(v.type, ir.VectorType)]
    return ir.VectorType(vectors[0]).shape[0]


def any_zero(code: AccessCode, sizes: Sequence[ir.Value]) -> ir.Value:
    """Whether there is a size of 0."""
    found = code.number(0, code.i1)
    for size in sizes:
        found = code.either(found, code.less(size, code.number(1)))
    return found


def extent_of(code: AccessCode, sizes: Sequence[ir.Value], strides: Sequence[ir.Value]) -> ir.Value:
    """How many elements there are from the first to the last one."""
    one = code.number(1)
    total = one
    for size, stride in zip(sizes, strides, strict=True):
        total = code.add(total, code.mul(code.sub(size, one), stride))
    return code.select(any_zero(code, sizes), code.number(0), total)


def source_extent(code: AccessCode, source: ir.Value) -> ir.Value:
    """How many elements there are from the base of a buffer to its last one."""
    kind = ir.MemRefType(source.type)
    sizes = [code.dim(source, i) for i in range(kind.rank)]
    if kind.affine_map == ir.AffineMap.get_identity(kind.rank):
        total = code.number(1)
        for size in sizes:
            total = code.mul(total, size)
        return total
    base = ir.MemRefType.get([], kind.element_type, memory_space=kind.memory_space)
    types = [base, *[code.index] * (1 + 2 * kind.rank)]
    parts = list(ir.Operation.create("memref.extract_strided_metadata", types, [source]).results)
    return code.add(parts[1], extent_of(code, sizes, parts[2 + kind.rank :]))


def element_bytes_of(type_: ir.Type) -> int:
    """Those of an element in memory."""
    return 8 if isinstance(type_, ir.IndexType) else -(-type_.width // 8)  # pyright: ignore[reportAttributeAccessIssue]
