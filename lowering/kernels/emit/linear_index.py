"""Index arithmetic as data: affine expressions of loop dimensions, with floordiv and mod; factors may be run-time sizes.

``x mod c`` is kept as ``x - c * (x floordiv c)``, so a product with strides simplifies by itself: the packed access
``(n floordiv 32, k, n mod 32)`` becomes ``n + 32 * k + (32 * K - 32) * (n floordiv 32)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import gcd

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError

__all__ = ["NOWHERE", "ZERO", "Atom", "FloorDivision", "LaneForm", "Linear", "Ragged", "Size", "Symbol", "from_affine"]

Symbol = tuple[int, int]
"""A run-time size: (owner, position). Owner 0 is the loop nest (position is the dimension), others are buffers."""


# More iterations than any loop has.
_ANY = 1 << 62


@dataclass(frozen=True, slots=True)
class Size:
    """A sum of products of run-time sizes with integer factors; a plain integer when no symbol occurs."""

    terms: tuple[tuple[tuple[Symbol, ...], int], ...]

    @staticmethod
    @lru_cache(maxsize=4096)  # a model has few, and DenseNet-121 asks 26,000 times
    def of(value: int) -> Size:
        return Size((((), value),)) if value else ZERO

    @staticmethod
    def symbol(symbol: Symbol) -> Size:
        return Size((((symbol,), 1),))

    @property
    def static(self) -> int | None:
        """Its value when it is a plain integer, else None."""
        if not self.terms:
            return 0
        factors, value = self.terms[0]
        return value if len(self.terms) == 1 and not factors else None

    def __add__(self, other: Size) -> Size:
        if not other.terms or not self.terms:
            return self if self.terms else other
        a, b = self.static, other.static
        if a is not None and b is not None:  # nearly always: without what sums of symbols take
            return Size.of(a + b)
        return _size([*self.terms, *other.terms])

    def __mul__(self, other: Size) -> Size:
        a, b = self.static, other.static
        if a is not None and b is not None:
            return Size.of(a * b)
        return _size((tuple(sorted(a + b)), x * y) for a, x in self.terms for b, y in other.terms)

    def scaled(self, factor: int) -> Size:
        static = self.static
        if static is not None:
            return Size.of(static * factor)
        return _size((key, value * factor) for key, value in self.terms)


def _size(terms: Iterable[tuple[tuple[Symbol, ...], int]]) -> Size:
    total: dict[tuple[Symbol, ...], int] = {}
    for key, value in terms:
        total[key] = total.get(key, 0) + value
    return Size(tuple(sorted((key, value) for key, value in total.items() if value)))


ZERO = Size(())


@dataclass(frozen=True, slots=True)
class FloorDivision:
    """``inner floordiv divisor``; the factors of ``inner`` are integers, its constant is below the divisor."""

    inner: Linear
    divisor: int


Atom = int | FloorDivision
"""A loop dimension, or a floordiv of some."""


@dataclass(frozen=True, slots=True)
class Ragged:
    """A floordiv that changes from lane to lane: ``factor * ((inner + step * lane) floordiv divisor)``.

    ``parts`` are the floordivs inside of ``inner`` that change from lane to lane themselves; their factors are integers.
    """

    factor: Size
    inner: Linear
    step: int
    divisor: int
    parts: tuple[Ragged, ...] = ()

    def inside(self, width: int) -> tuple[int, int]:
        """The least and the most by which ``inner`` differs from that of the first of so many lanes."""
        steps = 0, self.step * (width - 1)
        low, high = min(steps), max(steps)
        for part in self.parts:
            ends = [end * _integer(part.factor) for end in part.reach(width)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def reach(self, width: int) -> tuple[int, int]:
        """The least and the most by which the floordiv differs from that of the first of so many lanes."""
        low, high = self.inside(width)
        return low // self.divisor, (self.divisor - 1 + high) // self.divisor


@dataclass(frozen=True, slots=True)
class LaneForm:
    """An index along vector lanes: its value in lane 0, plus ``step * lane``, plus ragged parts."""

    step: Size
    ragged: tuple[Ragged, ...]

    @property
    def uniform(self) -> bool:
        return not self.ragged and not self.step.terms

    @property
    def contiguous(self) -> bool:
        return not self.ragged and self.step.static == 1

    @property
    def reversed(self) -> bool:
        return not self.ragged and self.step.static == -1


@dataclass(frozen=True, slots=True)
class Linear:
    """``constant + sum(factor * atom)``."""

    terms: tuple[tuple[Atom, Size], ...]
    constant: Size = ZERO

    @staticmethod
    @lru_cache(maxsize=256)
    def dim(position: int) -> Linear:
        return Linear(((position, Size.of(1)),))

    @staticmethod
    def of(value: int | Size) -> Linear:
        return Linear((), value if isinstance(value, Size) else Size.of(value))

    def __add__(self, other: Linear) -> Linear:
        if not self.terms or not other.terms:
            return Linear(self.terms or other.terms, self.constant + other.constant)
        return _linear([*self.terms, *other.terms], self.constant + other.constant)

    def scaled(self, factor: int | Size) -> Linear:
        factor = factor if isinstance(factor, Size) else Size.of(factor)
        if factor.static == 1:
            return self
        return _linear([(atom, value * factor) for atom, value in self.terms], self.constant * factor)

    def dims(self) -> set[int]:
        """The loop dimensions it depends on, also inside floordivs."""
        found: set[int] = set()
        for atom, _ in self.terms:
            found |= atom.inner.dims() if isinstance(atom, FloorDivision) else {atom}
        return found

    def factor(self, dim: int) -> Size:
        """The factor of a dimension outside floordivs."""
        return next((value for atom, value in self.terms if atom == dim), ZERO)

    def floors(self) -> list[FloorDivision]:
        return [atom for atom, _ in self.terms if isinstance(atom, FloorDivision)]

    def floordiv(self, divisor: int, multiples: Mapping[int, int] | None = None) -> Linear:
        """Divided by a positive integer, rounding down; ``multiples`` are known divisors of dimensions' values."""
        if divisor == 1:
            return self
        constant = _integer(self.constant)
        factors = [(atom, _integer(value)) for atom, value in self.terms]
        rest = [(atom, Size.of(f)) for atom, f in factors if f % divisor]
        whole = [(atom, Size.of(f // divisor)) for atom, f in factors if f % divisor == 0]
        quotient, remainder = divmod(constant, divisor)
        if not whole and len(rest) == 1 and isinstance(rest[0][0], FloorDivision) and factors[0][1] == 1:
            # (x floordiv a + c) floordiv b is (x + c * a) floordiv (a * b).
            inner = rest[0][0]
            return (inner.inner + Linear.of(constant * inner.divisor)).floordiv(inner.divisor * divisor, multiples)
        if rest:
            step = _granularity(rest, divisor, multiples or {})
            floor = FloorDivision(_linear(rest, Size.of(remainder // step * step)), divisor)
            whole.append((floor, Size.of(1)))
        return _linear(whole, Size.of(quotient))

    def __mod__(self, divisor: int) -> Linear:
        return self + self.floordiv(divisor).scaled(-divisor)

    def substituted(self, replace: Callable[[int], Linear], multiples: Mapping[int, int] | None = None) -> Linear:
        """Every dimension replaced by an expression."""
        result = Linear((), self.constant)
        for atom, value in self.terms:
            if isinstance(atom, FloorDivision):
                inner = atom.inner.substituted(replace, multiples)
                result += inner.floordiv(atom.divisor, multiples).scaled(value)
            else:
                result += replace(atom).scaled(value)
        return result

    def bounded(self, extents: Mapping[int, int]) -> Linear:
        """Without floordivs that are constant as their dimensions are below their ``extents``: ``d mod 64`` of 32 is ``d``."""
        result = Linear((), self.constant)
        for atom, value in self.terms:
            floor = atom.inner.bounded(extents).floordiv(atom.divisor) if isinstance(atom, FloorDivision) else Linear.dim(atom)
            least, most = floor.range(extents)
            result += (Linear.of(least) if least == most and isinstance(atom, FloorDivision) else floor).scaled(value)
        return result

    def range(self, extents: Mapping[int, int]) -> tuple[int, int]:
        """Bounds of its values, where factors are integers: loop dimensions are below their ``extents``, if these are known."""
        least = most = _integer(self.constant)
        for atom, value in self.terms:
            if isinstance(atom, FloorDivision):
                ends = [end // atom.divisor for end in atom.inner.range(extents)]
            else:
                ends = [0, extents.get(atom, _ANY) - 1]
            ends = [end * _integer(value) for end in ends]
            least, most = least + min(ends), most + max(ends)
        return least, most

    def shifted(self, dim: int, delta: int, multiples: Mapping[int, int]) -> Linear:
        """With ``dim`` replaced by ``dim + delta``."""
        if not delta or dim not in self.dims():
            return self
        return _shifted(self, dim, delta, tuple(multiples.items()))

    def lanes(self, dim: int, width: int, multiples: Mapping[int, int]) -> LaneForm:
        """How the value changes over lanes ``dim, dim + 1, ... dim + width - 1``."""
        return _lanes(self, dim, width, tuple(multiples.items()))


NOWHERE = Linear(())


def from_affine(expression: ir.AffineExpr, first_symbol: int | None = None) -> Linear:
    """Reads an affine expression over dimensions; its symbols, where ``first_symbol`` allows them, follow the dimensions.

    Raises:
        RelaxError: it has symbols that it may not have, or divides by something that is no positive constant.
    """
    if isinstance(expression, ir.AffineDimExpr):
        return Linear.dim(expression.position)
    if isinstance(expression, ir.AffineSymbolExpr) and first_symbol is not None:
        return Linear.dim(first_symbol + expression.position)
    if isinstance(expression, ir.AffineConstantExpr):
        return Linear.of(expression.value)
    if not hasattr(expression, "lhs"):
        raise RelaxError(f"expected an index map without symbols, got '{expression}'")
    left, right = (from_affine(e, first_symbol) for e in (expression.lhs, expression.rhs))  # pyright: ignore
    if isinstance(expression, ir.AffineAddExpr):
        return left + right
    constant = right.constant.static
    if right.terms or constant is None or (constant <= 0 and not isinstance(expression, ir.AffineMulExpr)):
        raise RelaxError(f"expected a positive constant on the right side of '{expression}'")
    if isinstance(expression, ir.AffineMulExpr):
        return left.scaled(constant)
    if isinstance(expression, ir.AffineFloorDivExpr):
        return left.floordiv(constant)
    if isinstance(expression, ir.AffineModExpr):
        return left % constant
    return (left + Linear.of(constant - 1)).floordiv(constant)  # ceildiv


# Tiles read the same places again and again: lowering products with weights of four bits takes a fifth less time with what
# these two give at hand.
@lru_cache(maxsize=4096)
def _shifted(linear: Linear, dim: int, delta: int, multiples: tuple[tuple[int, int], ...]) -> Linear:
    return linear.substituted(lambda d: Linear.dim(d) + Linear.of(delta if d == dim else 0), dict(multiples))


@lru_cache(maxsize=4096)
def _lanes(linear: Linear, dim: int, width: int, multiples: tuple[tuple[int, int], ...]) -> LaneForm:
    step, ragged, known = ZERO, list[Ragged](), dict(multiples)
    for atom, value in linear.terms:
        if atom == dim:
            step += value
        elif isinstance(atom, FloorDivision) and not _floor_is_uniform(atom, dim, width, known):
            parts = atom.inner.lanes(dim, width, known).ragged
            ragged.append(Ragged(value, atom.inner, _integer(atom.inner.factor(dim)), atom.divisor, parts))
    return LaneForm(step, tuple(ragged))


def _linear(terms: Iterable[tuple[Atom, Size]], constant: Size) -> Linear:
    total: dict[Atom, Size] = {}
    for atom, value in terms:
        total[atom] = total[atom] + value if atom in total else value
    kept = [(atom, value) for atom, value in total.items() if value.terms]
    return Linear(tuple(sorted(kept, key=lambda term: _order(term[0]))), constant)


def _order(atom: Atom) -> tuple[object, ...]:
    """A total order of atoms that is the same in every process."""
    if isinstance(atom, int):
        return (0, atom)
    return (1, atom.divisor, tuple((_order(a), s.terms) for a, s in atom.inner.terms), atom.inner.constant.terms)


def _integer(size: Size) -> int:
    value = size.static
    if value is None:
        raise RelaxError("expected a constant factor inside floordiv or mod, got a run-time size")
    return value


def _granularity(terms: Iterable[tuple[Atom, Size]], divisor: int, multiples: Mapping[int, int]) -> int:
    """The largest divisor of ``divisor`` that divides every term."""
    known = [_integer(f) * (multiples.get(a, 1) if isinstance(a, int) else 1) for a, f in terms]
    return reduce(gcd, known, divisor)


def _floor_is_uniform(floor: FloorDivision, dim: int, width: int, multiples: Mapping[int, int]) -> bool:
    if not all(_floor_is_uniform(inner, dim, width, multiples) for inner in floor.inner.floors()):
        return False
    step = _integer(floor.inner.factor(dim))
    granularity = _granularity(floor.inner.terms, floor.divisor, multiples)
    first = _integer(floor.inner.constant) % granularity
    last = first + step * (width - 1)
    return 0 <= last < granularity
