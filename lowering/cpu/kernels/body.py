"""Evaluates the scalar body of a linalg.generic at a point of the loop nest, over vectors where values differ between lanes.

A value that is the same in every lane stays a scalar until a vector needs it. An index that grows by a constant from lane to
lane stays symbolic (:class:`Lane`), so that a load indexed by it is a vector load and a comparison of it is a mask.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from .access import Buffer, Memory, Point
from .emitter import Emitter
from .index_math import LaneForm, Linear, Ragged, Size, from_affine

__all__ = ["Body", "Choice", "Environment", "Item", "Lane", "is_vector"]


@dataclass(frozen=True)
class Lane:
    """An integer that is ``base`` in the first lane and grows by ``step`` from lane to lane."""

    base: ir.Value
    step: int


@dataclass(frozen=True)
class Choice:
    """``first`` in the lanes where the vector condition holds, ``second`` in the others; at least one is a lane index."""

    condition: ir.Value
    first: Lane | Choice | ir.Value
    second: Lane | Choice | ir.Value


Item = ir.Value | Lane | Choice
Environment = MutableMapping[ir.Value, Item]

_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_MIRRORED = {"sgt": "slt", "sge": "sle", "slt": "sgt", "sle": "sge"}


class Body:
    """Builds a body's operations one by one; the caller decides which, in what order and at which point.

    ``dropped`` are loop dimensions that have one iteration and therefore no loop.
    """

    def __init__(self, emitter: Emitter, memory: Memory, dropped: Collection[int] = ()):
        self.emitter = emitter
        self.memory = memory
        self.dropped = dropped

    def evaluate(self, operation: ir.Operation, environment: Environment, point: Point) -> None:
        """Builds one operation of the body and records its result.

        Raises:
            RelaxError: there is no vector form of that operation.
        """
        handler = getattr(self, "_" + operation.name.replace(".", "_"), None)
        if handler is not None:
            environment[operation.results[0]] = handler(operation, environment, point)
            return
        known = operation.name.startswith(("arith.", "math.")) and len(operation.results) == 1 and not len(operation.regions)
        if not known:
            raise RelaxError(f"'{operation.name}' op cannot be vectorized inside linalg.generic", operation.location)
        environment[operation.results[0]] = self._elementwise(operation, environment, point)

    def item(self, value: ir.Value, environment: Mapping[ir.Value, Item]) -> Item:
        """What a value of the body stands for; values from outside the body stand for themselves."""
        return environment.get(value, value)

    def value(self, item: Item, point: Point) -> ir.Value:
        """The item as a scalar or vector value."""
        if isinstance(item, ir.Value):
            return item
        em = self.emitter
        if isinstance(item, Choice):
            sides = [em.broadcast(self.value(i, point), point.width) for i in (item.first, item.second)]
            return em.op("arith.select", [item.condition, *sides], sides[0].type)
        lanes = em.lane_constant([item.step * i for i in range(point.width)], item.base.type)
        return em.add(em.broadcast(item.base, point.width), lanes)

    # -- elementwise operations ------------------------------------------------------------------------------------

    def _elementwise(self, operation: ir.Operation, environment: Environment, point: Point) -> ir.Value:
        em = self.emitter
        values = [self.value(self.item(v, environment), point) for v in operation.operands]
        result = operation.results[0].type
        if not any(is_vector(v) for v in values):
            return em.clone(operation, values, result)
        # The condition of a select may stay a scalar.
        first = 1 if operation.name == "arith.select" and not is_vector(values[0]) else 0
        wide = values[:first] + [em.broadcast(v, point.width) for v in values[first:]]
        return em.clone(operation, wide, em.vector(point.width, result))

    def _arith_constant(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        return self.emitter.constant_attribute(operation.attributes["value"], operation.results[0].type)

    def _arith_addi(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        a, b = (self.item(v, environment) for v in operation.operands)
        total = self._add(b, a) if isinstance(b, (Lane, Choice)) else self._add(a, b)
        return self._elementwise(operation, environment, point) if total is None else total

    def _add(self, a: Item, b: Item) -> Item | None:
        """The sum, None when it is not symbolic."""
        em = self.emitter
        if isinstance(a, Lane) and isinstance(b, Lane):
            return Lane(em.add(a.base, b.base), a.step + b.step)
        if isinstance(a, ir.Value) or isinstance(b, (Lane, Choice)) or is_vector(b):
            return None
        return self._plus_scalar(a, b)

    def _plus_scalar(self, a: Item, b: ir.Value) -> Item:
        em = self.emitter
        if isinstance(a, Choice):
            return _chosen(a, self._plus_scalar(a.first, b), self._plus_scalar(a.second, b))
        return Lane(em.add(a.base, b), a.step) if isinstance(a, Lane) else em.add(a, b)

    def _arith_subi(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        a, b = (self.item(v, environment) for v in operation.operands)
        em = self.emitter
        if isinstance(a, (Lane, Choice)) and isinstance(b, ir.Value) and not is_vector(b):
            total = self._add(a, em.sub(em.constant(0, b.type), b))
            assert total is not None
            return total
        if isinstance(a, Lane) and isinstance(b, Lane):
            return Lane(em.sub(a.base, b.base), a.step - b.step)
        if isinstance(b, Lane) and isinstance(a, ir.Value) and not is_vector(a):
            return Lane(em.sub(a, b.base), -b.step)
        return self._elementwise(operation, environment, point)

    def _arith_muli(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        for x, y in (operation.operands, reversed(list(operation.operands))):
            a, factor = self.item(x, environment), _constant_of(y)
            if isinstance(a, Lane) and factor is not None:
                return Lane(self.emitter.mul(a.base, self.value(self.item(y, environment), point)), a.step * factor)
        return self._elementwise(operation, environment, point)

    def _arith_index_cast(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        return self._cast(operation, self.item(operation.operands[0], environment), point)

    def _cast(self, operation: ir.Operation, item: Item, point: Point) -> Item:
        if isinstance(item, Lane):
            return Lane(self.emitter.clone(operation, [item.base], operation.results[0].type), item.step)
        if isinstance(item, Choice):
            return _chosen(item, self._cast(operation, item.first, point), self._cast(operation, item.second, point))
        kind = operation.results[0].type
        return self.emitter.clone(operation, [item], self.emitter.vector(point.width, kind) if is_vector(item) else kind)

    def _arith_select(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        """A choice between lane indices stays symbolic: its use as an index is two masked loads, not a gather."""
        condition, a, b = (self.item(v, environment) for v in operation.operands)
        assert isinstance(condition, ir.Value)
        if is_vector(condition) and (isinstance(a, Lane) or isinstance(b, Lane)) and not (is_vector(a) or is_vector(b)):
            return Choice(condition, a, b)
        return self._elementwise(operation, environment, point)

    def _arith_minsi(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        return self._bounded("sle", operation, environment, point)

    def _arith_maxsi(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        return self._bounded("sge", operation, environment, point)

    def _bounded(self, predicate: str, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        """The minimum or maximum of a lane index and a bound."""
        a, b = (self.item(v, environment) for v in operation.operands)
        if isinstance(b, Lane):
            a, b = b, a
        if isinstance(a, Lane) and a.step == 1 and isinstance(b, ir.Value) and not is_vector(b):
            return Choice(self._lane_compare(predicate, a, b, point), a, b)
        return self._elementwise(operation, environment, point)

    def _arith_cmpi(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        """``base + lane < bound`` is a mask of the first ``bound - base`` lanes."""
        a, b = (self.item(v, environment) for v in operation.operands)
        predicate = _PREDICATES[ir.IntegerAttr(operation.attributes["predicate"]).value]
        if isinstance(b, Lane) and isinstance(a, ir.Value):
            a, b, predicate = b, a, _MIRRORED.get(predicate, predicate)
        if not isinstance(a, Lane) or not isinstance(b, ir.Value) or is_vector(b) or a.step != 1 or predicate not in _MIRRORED:
            return self._elementwise(operation, environment, point)
        return self._lane_compare(predicate, a, b, point)

    def _lane_compare(self, predicate: str, a: Lane, b: ir.Value, point: Point) -> ir.Value:
        em = self.emitter
        count = em.sub(b, a.base)
        if predicate in ("sle", "sgt"):
            count = em.add(count, em.constant(1, count.type))
        count = count if count.type == em.index else em.op("arith.index_cast", [count], em.index)
        # The mask is built from 32-bit numbers: the bound must not wrap around.
        count = em.op("arith.minsi", [em.op("arith.maxsi", [count, em.number(0)], em.index), em.number(point.width)], em.index)
        mask = em.lane_mask(point.width, count)
        return mask if predicate in ("slt", "sle") else em.invert(mask)

    # -- indices ---------------------------------------------------------------------------------------------------

    def _linalg_index(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        dim = ir.IntegerAttr(operation.attributes["dim"]).value
        if dim in self.dropped:
            return self.emitter.number(0)
        variable = point.variables[dim]
        return Lane(variable, 1) if point.lanes and point.lanes.dim == dim else variable

    def _affine_apply(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        items = [self.item(v, environment) for v in operation.operands]
        affine_map = ir.AffineMapAttr(operation.attributes["map"]).value
        if any(is_vector(i) or isinstance(i, Choice) for i in items):
            values = [self.emitter.broadcast(self.value(i, point), point.width) for i in items]
            return self._apply_to_vectors(
                affine_map.results[0], values[: affine_map.n_dims], values[affine_map.n_dims :], point
            )
        return self._apply(from_affine(affine_map.results[0], affine_map.n_dims), items, point)

    def _apply_to_vectors(
        self, expr: ir.AffineExpr, dims: Sequence[ir.Value], symbols: Sequence[ir.Value], point: Point
    ) -> ir.Value:
        """An index expression lane by lane, for indices that data or conditions decide."""
        em = self.emitter
        if isinstance(expr, ir.AffineDimExpr):
            return dims[expr.position]
        if isinstance(expr, ir.AffineSymbolExpr):
            return symbols[expr.position]
        if isinstance(expr, ir.AffineConstantExpr):
            return em.broadcast(em.number(expr.value), point.width)
        left, right = (self._apply_to_vectors(e, dims, symbols, point) for e in (expr.lhs, expr.rhs))
        if isinstance(expr, ir.AffineAddExpr):
            return em.add(left, right)
        if isinstance(expr, ir.AffineMulExpr):
            return em.mul(left, right)
        # The remainder of affine expressions is never negative.
        shifted = em.add(em.op("arith.remsi", [left, right], left.type), right)
        remainder = em.op("arith.remsi", [shifted, right], left.type)
        if isinstance(expr, ir.AffineModExpr):
            return remainder
        return em.op("arith.divsi", [em.sub(left, remainder), right], left.type)

    def _apply(self, linear: Linear, items: Sequence[Item], point: Point) -> Item:
        """An index expression over items; the first lane by scalar arithmetic, the others relative to it."""
        bases = {i: item.base if isinstance(item, Lane) else self.value(item, point) for i, item in enumerate(items)}
        steps = {i: item.step for i, item in enumerate(items) if isinstance(item, Lane)}
        local = Point(bases, point.lanes)
        base = self.memory.index(linear, local)
        step = sum(steps[a] * (f.static or 0) for a, f in linear.terms if isinstance(a, int) and a in steps)
        ragged = list[Ragged]()
        for atom, factor in linear.terms:
            if not isinstance(atom, int) and atom.inner.dims() & steps.keys():
                if any(f.inner.dims() & steps.keys() for f in atom.inner.floors()):
                    raise RelaxError("expected no floordiv or mod inside another along the vectorized dimension")
                inner_step = sum(steps[a] * (f.static or 0) for a, f in atom.inner.terms if isinstance(a, int) and a in steps)
                ragged.append(Ragged(factor, atom.inner, inner_step, atom.divisor))
        if not ragged:
            return Lane(base, step) if step else base
        em = self.emitter
        offsets = self.memory.lane_offsets(LaneForm(Size.of(step), tuple(ragged)), local)
        if offsets.type.element_type != em.index:
            offsets = em.op("arith.index_cast", [offsets], em.vector(point.width, em.index))
        return em.add(em.broadcast(base, point.width), offsets)

    # -- loads -----------------------------------------------------------------------------------------------------

    def _memref_load(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        source, *rest = operation.operands
        indices = [self.item(value, environment) for value in rest]
        return self._load(self.memory.captured(source), indices, point)

    def _load(self, buffer: Buffer, indices: Sequence[Item], point: Point) -> ir.Value:
        """One element per lane. Only lanes in the point's mask are read by vector loads; a scalar is read as it is."""
        place = next((i for i, item in enumerate(indices) if isinstance(item, Choice)), None)
        if place is not None:
            return self._load_choice(buffer, indices, place, point)
        em, memory = self.emitter, self.memory
        start, step, vector = memory.size(buffer.offset), Size.of(0), None
        for item, stride in zip(indices, buffer.strides, strict=True):
            if isinstance(item, Lane):
                step += stride.scaled(item.step)
            base = item.base if isinstance(item, Lane) else item
            assert isinstance(base, ir.Value)
            product = self._times(base, stride, point)
            if is_vector(product):
                vector = product if vector is None else em.add(vector, product)
            else:
                start = em.add(start, product)
        form = LaneForm(step, ())
        if vector is None and form.uniform:
            return em.op("memref.load", [buffer.flat, start], buffer.element)
        if vector is None:
            return memory.load_lanes(buffer, start, None if form.contiguous else memory.lane_offsets(form, point), point)
        if step.terms:
            lanes = em.lane_constant(range(point.width), em.index)
            vector = em.add(vector, em.mul(lanes, em.broadcast(memory.size(step), point.width)))
        return memory.load_lanes(buffer, start, vector, point)

    def _load_choice(self, buffer: Buffer, indices: Sequence[Item], place: int, point: Point) -> ir.Value:
        """Lanes read at one of two indices: each side under its own mask, so neither leaves the buffer."""
        em, choice = self.emitter, indices[place]
        assert isinstance(choice, Choice)
        sides = list[ir.Value]()
        for mask, item in ((choice.condition, choice.first), (em.invert(choice.condition), choice.second)):
            inner = point.masked(em, mask)
            chosen = [*indices[:place], item, *indices[place + 1 :]]
            sides.append(self._load_side(buffer, chosen, inner))
        return em.op("arith.select", [choice.condition, *sides], sides[0].type)

    def _load_side(self, buffer: Buffer, indices: Sequence[Item], point: Point) -> ir.Value:
        em, width = self.emitter, point.width
        if any(isinstance(i, (Lane, Choice)) or is_vector(i) for i in indices):
            return em.broadcast(self._load(buffer, indices, point), width)
        assert point.lanes is not None
        assert point.lanes.mask is not None
        kind = em.vector(width, buffer.element)
        return em.when(
            em.reduce("or", point.lanes.mask),
            lambda: [em.broadcast(self._load(buffer, indices, point), width)],
            lambda: [em.constant(0, kind)],
            [kind],
        )[0]

    def _times(self, value: ir.Value, stride: Size, point: Point) -> ir.Value:
        if stride.static == 1:
            return value
        factor = self.memory.size(stride)
        return self.emitter.mul(value, self.emitter.broadcast(factor, point.width) if is_vector(value) else factor)


def _chosen(choice: Choice, first: Item, second: Item) -> Choice:
    return Choice(choice.condition, first, second)


def is_vector(item: Item) -> bool:
    """Whether it is a value that has a vector type."""
    return isinstance(item, ir.Value) and isinstance(item.type, ir.VectorType)


def _constant_of(value: ir.Value) -> int | None:
    """The value of an integer ``arith.constant``, else None."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None
