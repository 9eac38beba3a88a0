"""Replaces ``relax.prim_value`` by ``arith`` on sizes of tensors: those of the arguments, or casts, that define its symbols.

Before::

    func.func @main(%x: tensor<?xf32, {sym = ["n * 2"]}>) {
      %0 = "relax.prim_value"() {value = ["n + 1"]} : () -> index

after::

    func.func @main(%x: tensor<?xf32, {sym = ["n * 2"]}>) {
      %c0 = arith.constant 0 : index
      %d = tensor.dim %x, %c0
      %c2 = arith.constant 2 : index
      %n = arith.floordivsi %d, %c2
      %c1 = arith.constant 1 : index
      %0 = arith.addi %n, %c1

A dimension that is linear in one unknown symbol gives that symbol; the division is exact, because what binds symbols checks it.
A value whose symbols no dimension gives is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...analysis.symbol_uses import DEFINING_OPS
from ...bindings import ir
from ...errors import RelaxError
from ...functions import body_of, functions
from ...op import attrs_of
from ...ops import PrimValue
from ...passes.base import Pass
from ...struct_info import TensorInfo, is_tensor
from ...symbolic import Expr, dim_text
from ...symbolic_arith import emit_index
from ...traversal import blocks_of, nested_operations, operations

__all__ = ["ComputeShapeValues"]


@dataclass(frozen=True)
class ComputeShapeValues(Pass):
    """Computes values of symbolic expressions from the sizes of tensors."""

    name: ClassVar[str] = "relax-compute-shape-values"

    def run(self, op: ir.Operation) -> None:
        for function in functions(op):
            block = body_of(function)
            if block is None or not any(o.name == PrimValue.OPERATION_NAME for o in nested_operations(function.operation)):
                continue
            for each in blocks_of(function.operation):
                sizes = _Sizes()
                sizes.add(block.arguments)
                _compute(each, sizes)


def _compute(block: ir.Block, sizes: _Sizes) -> None:
    for op in operations(block):
        if op.name == PrimValue.OPERATION_NAME:
            _replace(op, sizes)
            continue
        for inner in blocks_of(op):
            _compute(inner, sizes.inner())
        if op.name in DEFINING_OPS:
            sizes.add(op.results)


def _replace(op: ir.Operation, sizes: _Sizes) -> None:
    (dim,) = attrs_of(op)["value"]
    if not sizes.know(dim):
        missing = ", ".join(sorted(n for n in dim.names if not sizes.know_symbol(n)))
        raise RelaxError(f"'{op.name}' op expected symbols that the sizes of tensors give, got {missing} in '{dim_text(dim)}'",
                         op.location)  # fmt: skip
    with ir.InsertionPoint(op), op.location:
        op.results[0].replace_all_uses_with(sizes.emit(dim))
    op.erase()


@dataclass(frozen=True)
class _Size:
    """A dimension of a tensor."""

    tensor: ir.Value
    axis: int
    dim: Expr


class _Sizes:
    """Which sizes of which tensors give the symbols, and expressions as a whole, at some place of a function."""

    def __init__(self, outer: _Sizes | None = None):
        self._symbols: dict[str, _Size] = dict(outer._symbols) if outer else {}
        self._whole: dict[str, _Size] = dict(outer._whole) if outer else {}
        self._waiting: list[_Size] = list(outer._waiting) if outer else []

    def inner(self) -> _Sizes:
        """What is known inside of a region: all this, and what is added there."""
        return _Sizes(self)

    def add(self, values: ir.BlockArgumentList | ir.OpResultList) -> None:
        """Enters the dimensions of tensors that define symbols."""
        for value in values:
            shape = TensorInfo.of(value).shape if is_tensor(value) else ()
            self._waiting += [_Size(value, i, d) for i, d in enumerate(shape) if isinstance(d, Expr) and not self.know(d)]
        progress = True
        while progress:
            before = len(self._waiting)
            self._waiting = [size for size in self._waiting if not self._settle(size)]
            progress = len(self._waiting) < before

    def know(self, dim: int | Expr) -> bool:
        """Whether a dimension can be computed."""
        return isinstance(dim, int) or dim.text in self._whole or all(n in self._symbols for n in dim.names)

    def know_symbol(self, name: str) -> bool:
        return name in self._symbols

    def emit(self, dim: int | Expr) -> ir.Value:
        """Emits ops at the insertion point that compute a known dimension."""
        if isinstance(dim, Expr) and not all(n in self._symbols for n in dim.names):
            return _emit_dim(self._whole[dim.text])
        values: dict[str, ir.Value] = {}
        return emit_index(dim, lambda name: self._emit_symbol(name, values))

    def _settle(self, size: _Size) -> bool:
        """Whether a dimension is done with: it is known, or it gives its one unknown symbol."""
        self._whole.setdefault(size.dim.text, size)
        unknown = [n for n in size.dim.names if n not in self._symbols]
        if len(unknown) == 1 and _split(size.dim, unknown[0]) is not None:
            self._symbols[unknown[0]] = size
            return True
        return not unknown

    def _emit_symbol(self, name: str, values: dict[str, ir.Value]) -> ir.Value:
        """A symbol's value, by way of others; those that are emitted are in ``values``."""
        if name in values:
            return values[name]
        size = self._symbols[name]
        value = _emit_dim(size)
        split = _split(size.dim, name)
        assert split is not None
        factor, rest = split
        if rest != 0:
            value = _emit("subi", value, emit_index(rest, lambda other: self._emit_symbol(other, values)))
        if factor != 1:
            value = _emit("floordivsi", value, emit_index(factor, {}))
        return values.setdefault(name, value)


def _split(dim: Expr, name: str) -> tuple[int, int | Expr] | None:
    """``factor`` and ``rest`` of a dimension ``factor * name + rest``, None for one that is not linear in the symbol."""
    factor = dict(dim.terms).get((name,), 0)
    rest = dim - Expr({(name,): factor}) if factor else dim
    return None if not factor or (isinstance(rest, Expr) and name in rest.names) else (factor, rest)


def _emit_dim(size: _Size) -> ir.Value:
    return ir.Operation.create("tensor.dim", [ir.IndexType.get()], [size.tensor, emit_index(size.axis, {})]).result


def _emit(name: str, left: ir.Value, right: ir.Value) -> ir.Value:
    return ir.Operation.create(f"arith.{name}", [ir.IndexType.get()], [left, right]).result
