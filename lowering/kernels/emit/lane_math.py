"""Integer arithmetic on values known lane by lane: what a loop index becomes along a vector stays symbolic as long as it can.

``base + step * lane`` is a :class:`Lane`; one of two such forms per lane is a :class:`Choice`. A load indexed by them is a
vector load or two masked ones instead of a gather, a comparison is a mask, and a division by a constant is a scalar one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....dialect.bindings import ir
from .emitter import Emitter

__all__ = ["Choice", "Item", "Lane", "LaneMath", "constant_of", "is_vector", "unit_steps"]


@dataclass(frozen=True)
class Lane:
    """An integer that is ``base`` in the first lane and grows by ``step`` from lane to lane."""

    base: ir.Value
    step: int


@dataclass(frozen=True)
class Choice:
    """``first`` in the lanes where the vector condition holds, ``second`` in the others; neither is a vector."""

    condition: ir.Value
    first: Lane | Choice | ir.Value
    second: Lane | Choice | ir.Value

    @property
    def plain(self) -> bool:
        """Whether both are scalars."""
        return isinstance(self.first, ir.Value) and isinstance(self.second, ir.Value)


Item = ir.Value | Lane | Choice

_MIRRORED = {"sgt": "slt", "sge": "sle", "slt": "sgt", "sle": "sge"}


class LaneMath:
    """Builds arithmetic on items; a method returns None where the result would not be symbolic."""

    def __init__(self, emitter: Emitter):
        self.emitter = emitter
        self._counted: set[ir.Value] = set()
        self._divided: dict[tuple[ir.Value, int, int], tuple[ir.Block, tuple[Item, Item]]] = {}

    def value(self, item: Item, width: int) -> ir.Value:
        """The item as a scalar, or as a vector where lanes differ."""
        em = self.emitter
        if isinstance(item, Lane):
            lanes = em.lane_constant([item.step * i for i in range(width)], item.base.type)
            return em.add(em.broadcast(item.base, width), lanes)
        if isinstance(item, Choice):
            sides = [em.broadcast(self.value(i, width), width) for i in (item.first, item.second)]
            return em.op("arith.select", [item.condition, *sides], sides[0].type)
        return item

    # -- what is known not to be negative --------------------------------------------------------------------------

    def counts(self, value: ir.Value) -> ir.Value:
        """Remembers that a scalar is not negative."""
        self._counted.add(value)
        return value

    def is_count(self, value: ir.Value) -> bool:
        """Whether a scalar is known not to be negative: made from loop indices and such constants."""
        number = constant_of(value)
        return value in self._counted or (number is not None and number >= 0)

    def _combined(self, build: Callable[[ir.Value, ir.Value], ir.Value], a: ir.Value, b: ir.Value) -> ir.Value:
        result = build(a, b)
        return self.counts(result) if self.is_count(a) and self.is_count(b) else result

    # -- sums and products -----------------------------------------------------------------------------------------

    def add(self, a: Item, b: Item) -> Item | None:
        """The sum of two scalars, of a symbolic item and a scalar, or of two lanes."""
        if is_vector(a) or is_vector(b):
            return None
        if isinstance(a, Lane) and isinstance(b, Lane):
            return Lane(self._combined(self.emitter.add, a.base, b.base), a.step + b.step)
        if isinstance(b, ir.Value):
            return self._mapped(a, lambda base: self._combined(self.emitter.add, base, b))
        return self.add(b, a) if isinstance(a, ir.Value) else None

    def subtract(self, a: Item, b: Item) -> Item | None:
        """The difference."""
        em = self.emitter
        if is_vector(a) or is_vector(b):
            return None
        if isinstance(b, ir.Value):
            return self._mapped(a, lambda base: em.sub(base, b))
        if isinstance(a, Lane) and isinstance(b, Lane):
            return Lane(em.sub(a.base, b.base), a.step - b.step)
        return Lane(em.sub(a, b.base), -b.step) if isinstance(a, ir.Value) and isinstance(b, Lane) else None

    def multiply(self, a: Item, b: Item) -> Item | None:
        """The product of scalars, or of a symbolic item and a scalar (a constant one where lanes have a step)."""
        if not isinstance(b, ir.Value):
            a, b = b, a
        if is_vector(a) or not isinstance(b, ir.Value) or is_vector(b):
            return None
        factor = constant_of(b)
        if factor is None and not _stepless(a):
            return None
        return self._mapped(a, lambda base: self._combined(self.emitter.mul, base, b), factor or 0)

    def converted(self, a: Item, build: Callable[[ir.Value], ir.Value]) -> Item:
        """A cast to another integer type that keeps every value."""
        return self._mapped(a, lambda base: self.counts(build(base)) if self.is_count(base) else build(base))

    def _mapped(self, item: Item, build: Callable[[ir.Value], ir.Value], factor: int = 1) -> Lane | Choice | ir.Value:
        """A linear function of every base; steps are multiplied."""
        if isinstance(item, Lane):
            return Lane(build(item.base), item.step * factor)
        if isinstance(item, Choice):
            sides = self._mapped(item.first, build, factor), self._mapped(item.second, build, factor)
            return Choice(item.condition, *sides)
        return build(item)

    # -- division --------------------------------------------------------------------------------------------------

    def divide(self, a: Item, divisor: ir.Value, width: int) -> tuple[Item, Item] | None:
        """Quotient and remainder of a count by a positive constant, without a division of 64-bit vectors.

        Both parts of one division share their condition, so that a load indexed by both has two sides, not four.
        """
        em, number = self.emitter, constant_of(divisor)
        if number is None or number <= 0:
            return None
        if isinstance(a, ir.Value) and self.is_count(a):
            quotient, remainder = (em.op(f"arith.{name}", [a, divisor], a.type) for name in ("divui", "remui"))
            return self.counts(quotient), self.counts(remainder)
        if not isinstance(a, Lane) or a.step != 1 or not self.is_count(a.base):
            return None
        key, block = (a.base, number, width), em.block
        if key not in self._divided or self._divided[key][0] != block:
            self._divided[key] = block, self._lane_divide(a.base, divisor, number, width)
        return self._divided[key][1]

    def _lane_divide(self, base: ir.Value, divisor: ir.Value, number: int, width: int) -> tuple[Item, Item]:
        em = self.emitter
        quotient = self.counts(em.op("arith.divui", [base, divisor], divisor.type))
        remainder = self.counts(em.sub(base, em.mul(quotient, divisor)))
        if number < width:
            return self._short_divide(quotient, remainder, number, width)
        # A vector no longer than the divisor meets at most two quotients; lanes of the second one start again at 0.
        rest = em.sub(divisor, remainder)
        rest = rest if rest.type == em.index else em.op("arith.index_cast", [rest], em.index)
        same = em.lane_mask(width, em.op("arith.minui", [rest, em.number(width)], em.index))
        following = self.counts(em.add(quotient, em.constant(1, quotient.type)))
        return Choice(same, quotient, following), Choice(same, Lane(remainder, 1), Lane(em.sub(remainder, divisor), 1))

    def _short_divide(self, quotient: ir.Value, remainder: ir.Value, number: int, width: int) -> tuple[Item, Item]:
        """The first lane's quotient and remainder continued by 32-bit division: the numbers are below divisor + width."""
        em, narrow = self.emitter, self.emitter.vector(width, self.emitter.i32)
        first = remainder if remainder.type == em.i32 else self._resized(remainder, em.i32)
        lanes = em.add(em.broadcast(first, width), em.lane_constant(range(width), em.i32))
        more = em.op("arith.divui", [lanes, em.constant(number, narrow)], narrow)
        left = em.sub(lanes, em.mul(more, em.constant(number, narrow)))
        kind = em.vector(width, quotient.type)
        wide = [v if kind == narrow else self._resized(v, kind) for v in (more, left)]
        return em.add(em.broadcast(quotient, width), wide[0]), wide[1]

    def _resized(self, value: ir.Value, kind: ir.Type) -> ir.Value:
        """A count as another integer type, scalar or vector."""
        elements = [k.element_type if isinstance(k, ir.VectorType) else k for k in (value.type, kind)]
        if any(isinstance(e, ir.IndexType) for e in elements):
            return self.emitter.op("arith.index_castui", [value], kind)
        source, result = (ir.IntegerType(e).width for e in elements)
        return self.emitter.op("arith.extui" if source < result else "arith.trunci", [value], kind)

    # -- comparisons -----------------------------------------------------------------------------------------------

    def compare(self, predicate: str, a: Item, b: Item, width: int) -> ir.Value | None:
        """``base + lane < bound`` is a mask of the first ``bound - base`` lanes."""
        if isinstance(a, ir.Value) and not isinstance(b, ir.Value):
            a, b, predicate = b, a, _MIRRORED.get(predicate, "")
        if isinstance(a, ir.Value) or not isinstance(b, ir.Value) or is_vector(b) or predicate not in _MIRRORED:
            return None
        if not unit_steps(a):
            return None
        return self.emitter.broadcast(self._symbolic_compare(predicate, a, b, width), width)

    def _symbolic_compare(self, predicate: str, a: Item, b: ir.Value, width: int) -> ir.Value:
        em = self.emitter
        if isinstance(a, Lane):
            return self._lane_compare(predicate, a, b, width)
        if isinstance(a, Choice):
            sides = [em.broadcast(self._symbolic_compare(predicate, s, b, width), width) for s in (a.first, a.second)]
            return em.op("arith.select", [a.condition, *sides], sides[0].type)
        return em.compare(predicate, a, b)

    def _lane_compare(self, predicate: str, a: Lane, b: ir.Value, width: int) -> ir.Value:
        em, kind = self.emitter, a.base.type
        # The bound is moved next to the lanes first: a difference of far numbers would wrap around.
        low, high = em.sub(a.base, em.constant(1, kind)), em.add(a.base, em.constant(width, kind))
        near = em.op("arith.minsi", [em.op("arith.maxsi", [b, low], kind), high], kind)
        count = em.sub(near, low if predicate in ("sle", "sgt") else a.base)
        count = count if kind == em.index else em.op("arith.index_cast", [count], em.index)
        mask = em.lane_mask(width, count)
        return mask if predicate in ("slt", "sle") else em.invert(mask)

    def extreme(self, name: str, a: Item, b: Item, width: int) -> Item | None:
        """``arith.minsi`` or ``arith.maxsi`` of an item and a scalar bound."""
        if isinstance(a, ir.Value):
            a, b = b, a
        if not isinstance(b, ir.Value) or is_vector(b) or isinstance(a, ir.Value):
            return None
        if isinstance(a, Choice) and a.plain:
            return self._mapped(a, lambda side: self.emitter.op(name, [side, b], b.type))
        if isinstance(a, Lane) and a.step == 1:
            return Choice(self._lane_compare("slt" if name == "arith.minsi" else "sge", a, b, width), a, b)
        return None


def is_vector(item: Item) -> bool:
    """Whether it is a value that has a vector type."""
    return isinstance(item, ir.Value) and isinstance(item.type, ir.VectorType)


def constant_of(value: ir.Value) -> int | None:
    """The value of an integer ``arith.constant``, else None."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def unit_steps(item: Item) -> bool:
    """Whether it grows by one from lane to lane wherever it grows."""
    if isinstance(item, Choice):
        return unit_steps(item.first) and unit_steps(item.second)
    return not isinstance(item, Lane) or item.step == 1


def _stepless(item: Item) -> bool:
    if isinstance(item, Choice):
        return _stepless(item.first) and _stepless(item.second)
    return isinstance(item, ir.Value)
