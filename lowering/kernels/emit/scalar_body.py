"""Evaluates the scalar body of a linalg.generic at a point of the loop nest, over vectors where values differ between lanes.

A value that is the same in every lane stays a scalar until a vector needs it. An index that grows by a constant from lane to
lane stays symbolic (:class:`Lane`), so that a load indexed by it is a vector load and a comparison of it is a mask.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping, Sequence

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from .buffers import Buffer
from .emitter import Emitter
from .guards import find_guards
from .lane_math import Choice, Item, Lane, LaneMath, is_vector, unit_steps
from .linear_index import LaneForm, Linear, Ragged, Size, from_affine
from .memory import Memory, Point

__all__ = ["Body", "Environment"]


Environment = MutableMapping[ir.Value, Item]

_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


class Body:
    """Builds a body's operations one by one; the caller decides which, in what order and at which point.

    ``dropped`` are loop dimensions that have one iteration and therefore no loop.
    """

    def __init__(self, emitter: Emitter, memory: Memory, operations: Sequence[ir.Operation], dropped: Collection[int] = ()):
        self.guards = find_guards(operations)
        self.emitter = emitter
        self.memory = memory
        self.dropped = dropped
        self.math = LaneMath(emitter)

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
        return environment[value] if value in environment else self.memory.outside(value)

    def value(self, item: Item, point: Point) -> ir.Value:
        """The item as a scalar or vector value."""
        return self.math.value(item, point.width)

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

    # -- integers that may be indices ------------------------------------------------------------------------------

    def _or_elementwise(self, result: Item | None, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        return self._elementwise(operation, environment, point) if result is None else result

    def _pair(self, operation: ir.Operation, environment: Environment) -> list[Item]:
        return [self.item(v, environment) for v in operation.operands]

    def _arith_addi(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        return self._or_elementwise(self.math.add(*self._pair(operation, environment)), operation, environment, point)

    def _arith_subi(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        return self._or_elementwise(self.math.subtract(*self._pair(operation, environment)), operation, environment, point)

    def _arith_muli(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        return self._or_elementwise(self.math.multiply(*self._pair(operation, environment)), operation, environment, point)

    def _division(self, which: int, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        a, b = self._pair(operation, environment)
        parts = self.math.divide(a, b, point.width) if isinstance(b, ir.Value) else None
        return self._or_elementwise(parts[which] if parts else None, operation, environment, point)

    def _arith_divsi(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        return self._division(0, operation, environment, point)

    def _arith_remsi(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        return self._division(1, operation, environment, point)

    _arith_divui, _arith_floordivsi, _arith_remui = _arith_divsi, _arith_divsi, _arith_remsi

    def _arith_index_cast(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        (a,), kind = self._pair(operation, environment), operation.results[0].type
        if is_vector(a) or (isinstance(kind, ir.IntegerType) and kind.width < 32):  # lanes of few bits may wrap around
            return self._elementwise(operation, environment, point)
        return self.math.converted(a, lambda base: self.emitter.clone(operation, [base], kind))

    def _arith_select(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        """A choice between lane indices stays symbolic: its use as an index is two masked loads, not a gather."""
        condition, a, b = (self.item(v, environment) for v in operation.operands)
        symbolic = isinstance(a, Lane) or isinstance(b, Lane)
        if isinstance(condition, ir.Value) and is_vector(condition) and symbolic and not (is_vector(a) or is_vector(b)):
            return Choice(condition, a, b)
        return self._elementwise(operation, environment, point)

    def _arith_minsi(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        a, b = self._pair(operation, environment)
        return self._or_elementwise(self.math.extreme(operation.name, a, b, point.width), operation, environment, point)

    _arith_maxsi = _arith_minsi

    def _arith_cmpi(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        a, b = self._pair(operation, environment)
        predicate = _PREDICATES[ir.IntegerAttr(operation.attributes["predicate"]).value]
        return self._or_elementwise(self.math.compare(predicate, a, b, point.width), operation, environment, point)

    # -- indices ---------------------------------------------------------------------------------------------------

    def _linalg_index(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        dim = ir.IntegerAttr(operation.attributes["dim"]).value
        if dim in self.dropped:
            return self.emitter.number(0)
        variable = self.math.counts(point.variables[dim])
        return Lane(variable, 1) if point.lanes and point.lanes.dim == dim else variable

    def _affine_apply(self, operation: ir.Operation, environment: Environment, point: Point) -> Item:
        items = [self.item(v, environment) for v in operation.operands]
        affine_map = ir.AffineMapAttr(operation.attributes["map"]).value
        linear = _linear(affine_map.results[0], affine_map.n_dims)
        if linear is None or any(is_vector(i) or isinstance(i, Choice) for i in items) or _nested(linear):
            values = [self.emitter.broadcast(self.value(i, point), point.width) for i in items]
            return self._apply_to_vectors(
                affine_map.results[0], values[: affine_map.n_dims], values[affine_map.n_dims :], point
            )
        return self._apply(linear, items, point)

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
        if isinstance(expr, ir.AffineCeilDivExpr):  # upwards is downwards of the negative
            zero = em.broadcast(em.number(0), point.width)
            return em.sub(zero, self._floor_division(em.sub(zero, left), right))
        if isinstance(expr, ir.AffineFloorDivExpr):
            return self._floor_division(left, right)
        return self._remainder(left, right)

    def _remainder(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """As of affine expressions: it is never negative."""
        em = self.emitter
        shifted = em.add(em.op("arith.remsi", [left, right], left.type), right)
        return em.op("arith.remsi", [shifted, right], left.type)

    def _floor_division(self, left: ir.Value, right: ir.Value) -> ir.Value:
        em = self.emitter
        return em.op("arith.divsi", [em.sub(left, self._remainder(left, right)), right], left.type)

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
        buffer, guard = self.memory.captured(source), self.guards.get(operation.results[0])
        if guard is not None:
            indices = [self.item(value, environment) for value in guard.indices]
            if point.lanes and any(isinstance(i, (Lane, Choice)) and unit_steps(i) for i in indices):
                condition = self.value(self.item(guard.condition, environment), point)
                return self._load(buffer, indices, point.masked(self.emitter, self.emitter.broadcast(condition, point.width)))
        return self._load(buffer, [self.item(value, environment) for value in rest], point)

    def _load(self, buffer: Buffer, indices: Sequence[Item], point: Point) -> ir.Value:
        """One element per lane. Only lanes in the point's mask are read by vector loads; a scalar is read as it is."""
        choices = [item for item in indices if isinstance(item, Choice)]
        alike = len({choice.condition for choice in choices}) == 1 and all(unit_steps(choice) for choice in choices)
        if alike and not any(is_vector(i) for i in indices):
            return self._load_choice(buffer, indices, choices[0].condition, point)
        em, memory = self.emitter, self.memory
        start, step, vector = memory.size(buffer.offset), Size.of(0), None
        for item, stride in zip(indices, buffer.strides, strict=True):
            if isinstance(item, Lane):
                step += stride.scaled(item.step)
            product = self._times(item.base if isinstance(item, Lane) else item, stride, point)
            if is_vector(product):
                vector = product if vector is None else em.add(vector, product)
            else:
                start = em.add(start, product)
        form = LaneForm(step, ())
        if vector is None and form.uniform:
            return memory.load_element(buffer, start)
        if vector is None:
            return memory.load_lanes(buffer, start, None if form.contiguous else memory.lane_offsets(form, point), point)
        if step.terms:
            lanes = em.lane_constant(range(point.width), em.index)
            vector = em.add(vector, em.mul(lanes, em.broadcast(memory.size(step), point.width)))
        return memory.load_lanes(buffer, start, vector, point)

    def _times(self, item: Item, stride: Size, point: Point) -> ir.Value:
        """An index times a stride, as a scalar or vector; scalars that lanes choose from are multiplied before."""
        factor = self.memory.size(stride)
        product = item if stride.static == 1 else self.math.multiply(item, factor)
        if product is None:
            value = self.value(item, point)
            return self.emitter.mul(value, self.emitter.broadcast(factor, point.width))
        return self.value(product, point)

    def _load_choice(self, buffer: Buffer, indices: Sequence[Item], condition: ir.Value, point: Point) -> ir.Value:
        """Lanes read at one of two places: each side under its own mask, so neither leaves the buffer."""
        em, sides = self.emitter, list[ir.Value]()
        for mask, first in ((condition, True), (em.invert(condition), False)):
            chosen = [(i.first if first else i.second) if isinstance(i, Choice) else i for i in indices]
            sides.append(self._load_side(buffer, chosen, point.masked(em, mask)))
        return em.op("arith.select", [condition, *sides], sides[0].type)

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


def _linear(expression: ir.AffineExpr, first_symbol: int) -> Linear | None:
    """An index expression that is linear; None for one that multiplies or divides by a size."""
    try:
        return from_affine(expression, first_symbol)
    except RelaxError:
        return None


def _nested(linear: Linear) -> bool:
    """Whether a floordiv holds another one, of which lanes have no simple form."""
    return any(floor.inner.floors() for floor in linear.floors())
