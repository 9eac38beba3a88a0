"""What values computed from weights cost: bytes that inference takes anyway, whether a value is lifted or what it comes from.

The cost of a raw weight is its size. That of any other value is its size, or the cost of what its op reads, whichever is
less; what comes from one value on several ways costs that value once. So a chain of ops that each grow a little is judged by
all of its growth, and the cast of a small slice is not excused by the whole weight. What an op with several results reads is
divided among these by size. Constants cost nothing; equal computations are one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from ...bindings import ir
from ...dtypes import numpy_dtype
from ...errors import RelaxError
from ...struct_info import TensorInfo, is_tensor
from ...symbolic import Expr
from ...traversal import free_values
from .transform_function import computation_key

__all__ = ["Costs", "Size", "growth", "share"]

#: Bytes: a number, an expression for a symbolic shape, None when unknown.
Size = int | Expr | None

_T = TypeVar("_T")

#: What is neither tensor nor tuple is an index, a flag or a number.
_SCALAR = 8
#: Origins of one value; where there would be more, it is its own. Joint projections have up to eight, a sum of all layers'
#: scales as many as layers.
_ORIGINS = 64
#: Ops told of the way from raw weights to a value.
_WAY = 16


def growth(after: Size, before: Size) -> Fraction | None:
    """``after / before``, when that is one number whatever the symbols are."""
    if isinstance(after, int) and isinstance(before, int):
        return Fraction(after, before) if before else None if after else Fraction(1)
    if not isinstance(after, Expr) or not isinstance(before, Expr) or len(after.terms) != len(before.terms):
        return None
    pairs = list(zip(after.terms, before.terms, strict=True))
    ratios = {Fraction(a, b) for (_, a), (_, b) in pairs}
    return ratios.pop() if len(ratios) == 1 and all(m == n for (m, _), (n, _) in pairs) else None


@dataclass(frozen=True)
class _Made:
    """Where a value comes from: the op's name, its place in the order of entering, what it reads, makes, and costs.

    ``origins`` are those of what it reads, less what can be computed from the others: they are what it costs.
    """

    op: str
    order: int
    reads: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]
    origins: tuple[ir.Value, ...]
    cost: Size


class Costs:
    """Values of a transform function and of the functions it prepares weights for. Entered before they are asked for."""

    def __init__(self) -> None:
        self._sizes: dict[ir.Type, Size] = {}
        self._same: dict[ir.Value, ir.Value] = {}
        self._costs: dict[ir.Value, Size] = {}
        self._origins: dict[ir.Value, tuple[ir.Value, ...]] = {}
        self._sources: dict[ir.Value, tuple[str, ...]] = {}
        self._raw: dict[str, ir.Value] = {}
        self._made: dict[ir.Value, _Made] = {}
        self._numbers: dict[tuple[object, ...], list[ir.Value]] = {}

    def add_weight(self, value: ir.Value, name: str) -> None:
        """Enters a raw weight; another one of that name is the same."""
        known = self._raw.setdefault(name, value)
        if known is not value:
            self.alias(value, known)
            return
        self._costs[value], self._origins[value], self._sources[value] = self.size(value), (value,), (name,)

    def alias(self, value: ir.Value, known: ir.Value) -> None:
        """Enters a value that is the same as another one."""
        self._same[value] = self.same(known)

    def add(self, op: ir.Operation) -> None:
        """Enters the results of an op, after what it reads. What was not entered costs nothing."""
        key = computation_key(op, self._same)
        known = self._numbers.get(key) if key is not None else None
        if known is not None:
            self._same.update(zip(op.results, known, strict=True))
            return
        results = list(op.results)
        if key is not None:
            self._numbers[key] = results
        reads = tuple(dict.fromkeys(self.same(v) for v in free_values(op)))
        sources, origins = _union(self._sources.get(v, ()) for v in reads), self._needed(_union(self.origins(v) for v in reads))
        cost, total = _sum(self._costs[v] for v in origins), self.total(results)
        made = _Made(op.name, len(self._made), reads, tuple(results), origins, cost)
        for result in results:
            self._made[result], self._sources[result] = made, sources
            self._costs[result] = _least(self.size(result), total, made.cost) if sources else 0
            is_own = self._costs[result] != made.cost or len(origins) > _ORIGINS
            self._origins[result] = (result,) if sources and is_own else origins

    def same(self, value: ir.Value) -> ir.Value:
        """The value that stands for all that are equal to this one."""
        return self._same.get(value, value)

    def size(self, value: ir.Value) -> Size:
        """Bytes of a value."""
        type_ = value.type
        if type_ not in self._sizes:
            self._sizes[type_] = _size(type_)
        return self._sizes[type_]

    def total(self, values: Iterable[ir.Value]) -> Size:
        """Bytes of several values."""
        return _sum(self.size(v) for v in values)

    def cost(self, value: ir.Value) -> Size:
        """Bytes of the cheapest values that this one can be computed from, itself included."""
        return self._costs.get(self.same(value), 0)

    def origins(self, value: ir.Value) -> tuple[ir.Value, ...]:
        """The raw weights, and the values that are less than what they come from, of which a value is computed."""
        return self._origins.get(self.same(value), ())

    def origins_above(self, value: ir.Value) -> tuple[ir.Value, ...]:
        """The same of what the value's op reads."""
        return self._made[self.same(value)].origins

    def _needed(self, origins: tuple[ir.Value, ...]) -> tuple[ir.Value, ...]:
        """Those of some origins that cannot be computed from the others."""
        if len(origins) < 2:
            return origins
        follows = dict.fromkeys(origins, True)
        return tuple(v for v in origins if v not in self._made or not self._follows(v, follows))

    def _follows(self, value: ir.Value, known: dict[ir.Value, bool]) -> bool:
        """Whether what a value comes from is known, or follows from what is; enters that."""
        made = self._made.get(value)
        for origin in () if made is None else made.origins:
            if origin not in known:
                known[origin] = self._follows(origin, known)
            if not known[origin]:
                return False
        return made is not None and len(made.origins) > 0

    def before(self, value: ir.Value) -> tuple[Size, Size]:
        """What the op that computes a value reads costs, and the bytes of all its results."""
        made = self._made[self.same(value)]
        return made.cost, self.total(made.results)

    def sources(self, value: ir.Value) -> tuple[str, ...]:
        """Names of the raw weights a value comes from."""
        return self._sources.get(self.same(value), ())

    def raw(self, name: str) -> ir.Value:
        """The raw weight of that name."""
        return self._raw[name]

    def is_raw(self, value: ir.Value) -> bool:
        """Whether a value is a raw weight."""
        return self.same(value) not in self._made

    def op_of(self, value: ir.Value) -> str:
        """Name of the op that computes a value that is not raw."""
        return self._made[self.same(value)].op

    def way(self, value: ir.Value) -> tuple[str, ...]:
        """The ops between raw weights and a value in order, without dialect, at most the last few."""
        found: list[str] = []
        pending = self._pending([value])
        seen = {-order for order, _ in pending}
        while pending and len(found) < _WAY:
            _, made = heapq.heappop(pending)
            found.append(made.op.rpartition(".")[2])
            for item in self._pending(made.reads):
                if -item[0] not in seen:
                    seen.add(-item[0])
                    heapq.heappush(pending, item)
        return tuple(reversed(found))

    def _pending(self, values: Iterable[ir.Value]) -> list[tuple[int, _Made]]:
        """What makes those of some values that come from weights; the last entered first."""
        made = {m.order: m for v in values if self.sources(v) and (m := self._made.get(self.same(v))) is not None}
        return [(-order, m) for order, m in sorted(made.items(), reverse=True)]


def _union(groups: Iterable[tuple[_T, ...]]) -> tuple[_T, ...]:
    """All items once, in order. Where one group has them all it is that one, so that long chains share it."""
    result: tuple[_T, ...] = ()
    for group in groups:
        if not result:
            result = group
        elif group and group is not result:
            result = tuple(dict.fromkeys([*result, *group]))
    return result


def share(size: Size, total: Size, cost: Size) -> Size:
    """The part of what is above an op that one result of it stands for; rounded down."""
    if isinstance(size, int) and isinstance(total, int) and isinstance(cost, int):
        return size * cost // total if total else cost
    return cost if size == total else None


def _least(size: Size, total: Size, cost: Size) -> Size:
    """The cheaper one of a result and its share of what its op reads; its size where the two do not compare."""
    ratio = growth(total, cost)
    return size if ratio is None or ratio <= 1 else share(size, total, cost)


def _sum(sizes: Iterable[Size]) -> Size:
    total: int | Expr = 0
    for size in sizes:
        if size is None:
            return None
        total = total + size
    return total


def _size(type_: ir.Type) -> Size:
    if isinstance(type_, ir.TupleType):
        return _sum(_size(type_.get_type(i)) for i in range(type_.num_types))
    if not is_tensor(type_):
        return _SCALAR
    info = TensorInfo.of(type_)
    try:
        total: int | Expr = numpy_dtype(info.dtype).itemsize
    except RelaxError:
        return None
    for dim in info.shape:
        if dim is None:
            return None
        total = total * dim
    return total
