"""Products of integers whose sums are scaled: of rows with one matrix, or of rows in groups with the matrix of each."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from ...dialect.bindings import ir
from ...dialect.packed_layout import PackedLayout
from ..integer_product import IntegerProduct
from .builder import ZERO, Input, LinalgBuilder, Size, index, value_type
from .contraction import contraction_mark, converted
from .conversion import convert, load
from .dtypes import is_unsigned, storage_dtype
from .grouped_products import GROUP, group_mark, is_of_group
from .kernel import call_kernel
from .registry import Source, lowering
from .scalar import Scalar, constant, emit, select
from .stored_integers import as_integer, place_in_word

__all__: list[str] = []


@lowering("relax.quantized_matmul")
def _lower_quantized_matmul(b: LinalgBuilder, source: Source) -> ir.Value:
    product = _QuantizedProduct(b, source)
    if product.is_plain:
        return product.as_sums()
    return _called(b, source, product, [*product.rows(), source.attrs["n"]])


@lowering("relax.quantized_grouped_matmul")
def _lower_quantized_grouped_matmul(b: LinalgBuilder, source: Source) -> ir.Value:
    columns = source.result.shape[1]
    assert isinstance(columns, int)
    product = _QuantizedProduct(b, source, columns)
    return _called(b, source, product, [*product.rows(), columns])


def _called(b: LinalgBuilder, source: Source, product: _QuantizedProduct, sizes: Sequence[Size]) -> ir.Value:
    dtype, wide = source.result.dtype, ir.F32Type.get()
    if dtype != wide and all(s == 1 for s in sizes):  # no registers hold the sum, and a kernel has no memory of its own
        return converted(b, product.call(b.empty(sizes, wide), wide), wide, dtype)
    return product.call(b.empty(sizes, storage_dtype(dtype)), dtype)


class _QuantizedProduct:
    """Integers that are multiplied as such where the target can; what is written is the product of what they stand for.

    ``columns`` are those of each group, where rows are in groups. Loops are over rows, columns, groups, parts of rows, and k.
    """

    def __init__(self, b: LinalgBuilder, source: Source, columns: int | None = None):
        self.b, self.source, self.is_grouped = b, source, columns is not None
        x, x_scale, x_sum, weight, scale, self.zero, *ends = source.operands
        self.has_parts = bool(source.attrs["parts"])
        self.rank, self.scale_dtype, layout = x.rank - self.has_parts, scale.dtype, source.attrs["layout"]
        k, groups = x.shape[-1], scale.shape[1]
        assert isinstance(k, int)
        assert isinstance(groups, int)
        self.k = k
        #: The loops, and that over k.
        self.kinds = "p" * self.rank + "r" * (1 + self.is_grouped + self.has_parts)
        self.step = len(self.kinds) - 1
        # With one column there is nothing to share a row of integers with: a step is a product of what they stand for.
        self.is_exact = (source.attrs["n"] if columns is None else columns) != 1
        *outer, n = (ir.AffineExpr.get_dim(i) for i in range(self.rank))
        step = ir.AffineExpr.get_dim(self.step)
        if self.has_parts:
            outer = [ir.AffineExpr.get_dim(self.step - 1), *outer]
        if columns is not None:
            n = ir.AffineExpr.get_dim(GROUP) * columns + n
        group = ZERO if groups == 1 else ir.AffineExpr.get_floor_div(step, k // groups)
        by_group = PackedLayout(layout.tile).place(group, n, ir.AffineExpr.get_floor_div)
        self.inputs: dict[str, Input] = {
            "x": (x.value, [*outer, step]),
            "x_scale": (x_scale.value, [*outer, ZERO if x_scale.shape[-1] == 1 else group]),
            "weight": (weight.value, layout.place(step, n, ir.AffineExpr.get_floor_div)),
            "scale": (scale.value, by_group),
        }
        if self.zero.splat is None:
            self.inputs["zero"] = (self.zero.value, by_group if self.zero.rank else [])
        if self.is_exact and self.zero.splat != 0:
            self.inputs["x_sum"] = (x_sum.value, [*outer, group])
        if ends:
            self.inputs["ends"] = (ends[0].value, [ir.AffineExpr.get_dim(GROUP)])
        known = int(self.zero.splat) if self.zero.splat else None
        self.product = IntegerProduct(tuple(self.inputs), layout, k // groups, is_unsigned(weight.dtype), known)

    @property
    def is_plain(self) -> bool:
        """Whether it is a sum of products of integers that the target reads as they are, and then one scale of each side."""
        layout = self.product.layout
        is_one_scale = self.is_exact and self.product.every == self.k and layout.word is None
        return not self.b.panels and not self.is_grouped and not self.has_parts and is_one_scale

    def rows(self) -> list[Size]:
        """How many rows there are, by dimension."""
        return self.b.sizes(self.source.operands[0])[int(self.has_parts) : -1]

    def as_sums(self) -> ir.Value:
        """The same as a product of integers with sums of 32 bits, and what becomes of these, in one kernel."""
        sizes = [*self.rows(), self.source.attrs["n"]]
        dtype = self.source.result.dtype
        out, key = self.b.empty(sizes, storage_dtype(dtype)), (*self._key(dtype), "sums")
        return call_kernel(
            self.b, "contraction", [v for v, _ in self.inputs.values()], out, key, lambda a: self._sums(a, dtype)
        )

    def _sums(self, arguments: Sequence[ir.Value], dtype: ir.Type) -> ir.Value:
        b, out, integer, wide = self.b, arguments[-1], ir.IntegerType.get_signless(32), ir.F32Type.get()
        given = {role: (value, exprs) for value, (role, (_, exprs)) in zip(arguments, self.inputs.items(), strict=False)}
        multiplied = [given.pop(role) for role in ("x", "weight")]
        start = b.fill(b.empty(b.value_sizes(out), integer), 0)

        def add(x: ir.Value, weight: ir.Value, total: ir.Value) -> ir.Value:
            return (Scalar(total) + self._row({"x": x}) * self._integer(weight)).value

        summed = b.generic("p" * self.rank + "r", multiplied, start, add, range(self.rank), contraction_mark())

        def scaled(total: ir.Value, *elements: ir.Value) -> ir.Value:
            known = dict(zip(given, elements[:-1], strict=True))
            exact = Scalar(total)
            if "x_sum" in known:
                offset = self._zero(known, integer) if "zero" in known else constant(integer, int(self.zero.splat or 0))
                exact = exact - Scalar(known["x_sum"]) * offset
            value = Scalar(emit("arith.sitofp", wide, exact.value)) * (Scalar(known["x_scale"]) * self._scale(known))
            return convert(value, wide, dtype)

        return b.generic("p" * self.rank, [(summed, list(range(self.rank))), *given.values()], out, scaled)

    def call(self, out: ir.Value, dtype: ir.Type) -> ir.Value:
        return call_kernel(
            self.b, "contraction", [v for v, _ in self.inputs.values()], out, self._key(dtype), lambda a: self._body(a, dtype)
        )

    def _key(self, dtype: ir.Type) -> tuple[str, ...]:
        return str(self.product), str(self.zero.dtype), str(self.scale_dtype), str(dtype), str(self.has_parts)

    def _body(self, arguments: Sequence[ir.Value], dtype: ir.Type) -> ir.Value:
        b, wide, out = self.b, ir.F32Type.get(), arguments[-1]
        start = b.fill(out if dtype == wide else b.empty(b.value_sizes(out), wide), 0)
        inputs = [(value, exprs) for value, (_, exprs) in zip(arguments, self.inputs.values(), strict=False)]
        mark = contraction_mark() if any(d != 1 for d in value_type(start).shape) else {}
        if self.is_exact:
            mark |= self.product.mark()
        ends = None
        if self.is_grouped:
            mark |= group_mark()
            ends = arguments[list(self.inputs).index("ends")]
        body = functools.partial(self._add_exactly if self.is_exact else self._add, ends)
        summed = b.generic(self.kinds, inputs, start, body, range(self.rank), mark)
        return summed if dtype == wide else converted(b, summed, wide, dtype, out)

    def _add_exactly(self, ends: ir.Value | None, *elements: ir.Value) -> ir.Value:
        """One step of the sum. The first of a group takes away what zero points add to all of its steps."""
        integer, wide = ir.IntegerType.get_signless(32), ir.F32Type.get()
        given = dict(zip(self.inputs, elements[:-1], strict=True))
        exact = self._row(given) * self._integer(given["weight"])
        if "x_sum" in given:
            is_first = (index(self.step) % self.product.every).compare("eq", 0)
            offset = self._zero(given, integer) if "zero" in given else constant(integer, int(self.zero.splat or 0))
            exact = exact - select(is_first, Scalar(given["x_sum"]) * offset, 0)
        exact = _own(exact, given, ends)
        scale = Scalar(given["x_scale"]) * self._scale(given)
        return (Scalar(elements[-1]) + Scalar(emit("arith.sitofp", wide, exact.value)) * scale).value

    def _add(self, ends: ir.Value | None, *elements: ir.Value) -> ir.Value:
        """One step of the sum, of what integers stand for."""
        integer, wide = ir.IntegerType.get_signless(32), ir.F32Type.get()
        given = dict(zip(self.inputs, elements[:-1], strict=True))
        stored = self._integer(given["weight"])
        if "zero" in given:
            stored = stored.like(emit("arith.subi", integer, stored.value, self._zero(given, integer).value))
        elif self.zero.splat:
            stored = stored + -int(self.zero.splat)
        left = Scalar(emit("arith.sitofp", wide, self._row(given).value)) * Scalar(given["x_scale"])
        left = _own(left, given, ends)
        right = Scalar(emit("arith.sitofp", wide, stored.value)) * self._scale(given)
        return (Scalar(elements[-1]) + left * right).value

    def _row(self, given: Mapping[str, ir.Value]) -> Scalar:
        return as_integer(given["x"], ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(32))

    def _scale(self, given: Mapping[str, ir.Value]) -> Scalar:
        return load(given["scale"], self.scale_dtype)

    def _zero(self, given: Mapping[str, ir.Value], integer: ir.Type) -> Scalar:
        return as_integer(given["zero"], self.zero.dtype, integer)

    def _integer(self, stored: ir.Value) -> Scalar:
        """The integer of a column, in 32 bits."""
        layout, wide = self.product.layout, ir.IntegerType.get_signless(32)
        if layout.word is not None:
            return Scalar(stored, unsigned=True) >> place_in_word(index(self.step), layout.word, layout.rows, wide) & 15
        byte = ir.IntegerType.get_unsigned(8) if self.product.is_unsigned else ir.IntegerType.get_signless(8)
        return as_integer(stored, byte, wide)


def _own(value: Scalar, given: Mapping[str, ir.Value], ends: ir.Value | None) -> Scalar:
    """A value of a row; where rows are in groups, 0 in others than its own."""
    return value if ends is None else select(is_of_group(ends, given["ends"]), value, 0)
