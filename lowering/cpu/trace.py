"""Sizes of tensors and buffers as symbolic expressions, found by following index arithmetic back to the shapes of arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...dialect.analysis.affine import affine_dim
from ...dialect.bindings import ir
from ...dialect.symbolic import Expr
from ...dialect.traversal import operations

__all__ = ["SizeTracer"]

_Size = int | Expr

_BINARY: dict[str, Callable[[_Size, _Size], _Size]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": lambda a, b: a // b,
    "arith.divui": lambda a, b: a // b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: (a + b - 1) // b,
    "arith.ceildivui": lambda a, b: (a + b - 1) // b,
    "arith.remsi": lambda a, b: a % b,
    "arith.remui": lambda a, b: a % b,
}
#: Ops whose result is their second operand, changed.
_DESTINATIONS = ("bufferization.materialize_in_destination", "linalg.fill", "tensor.insert_slice")
_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")
_DYNAMIC = ir.ShapedType.get_dynamic_size()


class SizeTracer:
    """Answers, with memory, what an ``index`` value or a dimension is in terms of the entry's symbols.

    What loops carry has the shape that they start from, where the shape of what they go on with follows to be that.
    """

    def __init__(self, shapes: Mapping[ir.Value, list[_Size] | None]):
        self._shapes: dict[ir.Value, list[_Size] | None] = dict(shapes)
        self._values: dict[ir.Value, _Size | None] = {}

    def size_in_bytes(self, buffer: ir.Value) -> _Size | None:
        """Bytes of a contiguous buffer, None when data decides."""
        shape = self.shape(buffer)
        if shape is None:
            return None
        type_ = buffer.type.element_type
        total: _Size = 8 if isinstance(type_, ir.IndexType) else (type_.width + 7) // 8
        for dim in shape:
            total = total * dim
        return total

    def shape(self, buffer: ir.Value) -> list[_Size] | None:
        """The dimensions of a tensor or buffer, None when one is not known."""
        if buffer not in self._shapes:
            self._shapes[buffer] = None  # while it is looked for
            self._shapes[buffer] = self._find_shape(buffer)
        return self._shapes[buffer]

    def value(self, value: ir.Value) -> _Size | None:
        """An index or integer value, None when not known."""
        if value not in self._values:
            self._values[value] = self._find_value(value)
        return self._values[value]

    def _find_shape(self, buffer: ir.Value) -> list[_Size] | None:
        sizes = list(buffer.type.shape)
        if _DYNAMIC not in sizes:
            return sizes
        if isinstance(buffer, ir.BlockArgument):
            return self._carried(buffer)
        op = buffer.owner.operation
        kind = op.name.partition(".")[2]
        if op.name in ("memref.alloc", "tensor.empty"):
            return self._filled(sizes, list(op.operands))
        if kind == "cast":
            source = self.shape(op.operands[0])
            return None if source is None else [s if d == _DYNAMIC else d for s, d in zip(source, sizes, strict=True)]
        if kind in ("expand_shape", "subview", "reinterpret_cast", "view") or op.name == "tensor.extract_slice":
            return self._filled(sizes, _size_operands(op))
        if kind == "collapse_shape":
            return self._collapsed(op)
        if op.name == "bufferization.alloc_tensor":  # of the loops that lowering makes; of one in the program, a copy
            return self.shape(op.operands[0]) if len(op.operands) else None
        if op.name in _DESTINATIONS:
            return self.shape(op.operands[1])
        if op.name == "arith.select":
            shapes = [self.shape(op.operands[1]), self.shape(op.operands[2])]
            return shapes[0] if shapes[0] == shapes[1] else None
        if op.name == "func.call" and len(op.results) == 1 and len(op.operands):  # of a kernel, which has its result last
            out = op.operands[len(op.operands) - 1]
            return self.shape(out) if out.type == buffer.type else None
        return self._of_region(op, list(op.results).index(buffer)) if op.name.startswith("scf.") else None

    def _of_region(self, op: ir.Operation, position: int) -> list[_Size] | None:
        """The shape of a result of control flow."""
        if op.name == "scf.for":
            return self.shape(op.regions[0].blocks[0].arguments[1 + position])
        if op.name == "scf.while":
            return self.shape(operations(op.regions[0].blocks[0])[-1].operands[1 + position])
        yields = [operations(region.blocks[0])[-1].operands[position] for region in op.regions if len(region.blocks)]
        shapes = [self.shape(value) for value in yields]
        return shapes[0] if shapes and all(shape == shapes[0] for shape in shapes) else None

    def _carried(self, argument: ir.BlockArgument) -> list[_Size] | None:
        """The shape of what a loop hands to a region."""
        block, position = argument.owner, argument.arg_number
        op = block.owner.operation
        if op.name not in ("scf.for", "scf.while"):
            return None
        first, counters = op.regions[0].blocks[0], int(op.name == "scf.for")
        if block != first:  # what the first region of scf.while passes on
            return self.shape(operations(first)[-1].operands[1 + position])
        start = list(op.operands)[3 * counters :]
        arguments, end = list(first.arguments)[counters:], operations(op.regions[len(op.regions) - 1].blocks[0])[-1]
        return self._invariant(arguments, start, list(end.operands)).get(argument)

    def _invariant(
        self, arguments: list[ir.Value], start: list[ir.Value], end: list[ir.Value]
    ) -> Mapping[ir.Value, list[_Size] | None]:  # fmt: skip
        """The shapes that stay what they are at the start, if those that are taken to stay do so."""
        held = {a: self.shape(v) for a, v in zip(arguments, start, strict=True) if hasattr(a.type, "shape")}
        while True:
            inner = SizeTracer({**{k: v for k, v in self._shapes.items() if v is not None}, **held})
            changed = [a for a, v in zip(arguments, end, strict=True) if held.get(a) is not None and inner.shape(v) != held[a]]
            if not changed:
                break
            held.update(dict.fromkeys(changed))
        self._shapes.update(held)
        return held

    def _filled(self, sizes: list[int], dynamic: list[ir.Value]) -> list[_Size] | None:
        values = iter(dynamic)
        found = [self.value(next(values)) if s == _DYNAMIC else s for s in sizes]
        return None if None in found else [f for f in found if f is not None]

    def _collapsed(self, op: ir.Operation) -> list[_Size] | None:
        source = self.shape(op.operands[0])
        if source is None:
            return None
        shape: list[_Size] = []
        for group in ir.ArrayAttr(op.attributes["reassociation"]):
            total: _Size = 1
            for axis in ir.ArrayAttr(group):
                total = total * source[ir.IntegerAttr(axis).value]
            shape.append(total)
        return shape

    def _find_value(self, value: ir.Value) -> _Size | None:
        if isinstance(value, ir.BlockArgument):
            return None
        op = value.owner.operation
        if op.name == "arith.constant":
            return ir.IntegerAttr(op.attributes["value"]).value
        if op.name in _CASTS or (op.name == "arith.ori" and op.operands[0] == op.operands[1]):
            return self.value(op.operands[0])
        if op.name in ("memref.dim", "tensor.dim"):
            shape, axis = self.shape(op.operands[0]), self.value(op.operands[1])
            return None if shape is None or not isinstance(axis, int) else shape[axis]
        operands = [self.value(v) for v in op.operands]
        known = [v for v in operands if v is not None]
        if len(known) != len(operands):
            return None
        if op.name == "affine.apply":
            map_ = ir.AffineMapAttr(op.attributes["map"]).value
            return affine_dim(map_.results[0], known[: map_.n_dims], known[map_.n_dims :])
        if op.name in _BINARY:
            return _BINARY[op.name](known[0], known[1])
        return _extreme(op.name, known)


def _extreme(name: str, values: list[_Size]) -> _Size | None:
    if name == "arith.maxsi" and 0 in values:
        (other,) = [v for v in values if v != 0] or [0]
        if isinstance(other, Expr) and all(coefficient > 0 for _, coefficient in other.terms):
            return other  # dimensions are not negative
    if not all(isinstance(v, int) for v in values):
        return values[0] if len(values) == 2 and values[0] == values[1] else None
    numbers = [v for v in values if isinstance(v, int)]
    if name in ("arith.maxsi", "arith.maxui"):
        return max(numbers)
    return min(numbers) if name in ("arith.minsi", "arith.minui") else None


def _size_operands(op: ir.Operation) -> list[ir.Value]:
    """The dynamic sizes among an op's operands."""
    operands = list(op.operands)
    if op.name.endswith(".expand_shape"):
        return operands[1:]
    if op.name == "memref.view":
        return operands[2:]
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    start = segments[0] + segments[1]
    return operands[start : start + segments[2]]
