"""Which liftable values are worth lifting: limits on the memory that prepared weights take, and the user's own word.

A value that inference needs is lifted when it is not much larger than the cheapest values it comes from
(:mod:`.costs`): by at most a factor, ``max_growth``, or by a number of bytes, ``growth_slack``. So a transpose moves
out of inference, and the dequantization of a matrix, or a bias made as large as the activations, does not. All that a
function takes, raw weights it keeps beside transformed ones included, may be ``max_total_growth`` times the raw weights it
comes from, or ``growth_slack`` bytes more; above that, values that add most stay in inference, until it holds.

The attribute ``relax.lift`` overrides the limits. On an op, ``"always"`` lifts its results if they can be lifted at all, and
``"never"`` keeps the op, and so what reads it, in inference. On a weight it speaks for everything computed from the weight,
as far as ops have none of their own; of several weights, one that says ``"never"`` decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ...bindings import ir
from ...errors import RelaxError
from ...lift_override import ALWAYS, LIFT, NEVER, override_of
from ...reports.lifting import Reason
from ...reports.report import bytes_text
from ...traversal import free_values
from .costs import Costs, Size, growth, share
from .plan import LiftPlan, Refusal

__all__ = ["Limits", "Policy"]


@dataclass(frozen=True)
class Limits:
    """The limits; None is no limit.

    Attributes:
        growth: of a value, by what it is computed from.
        slack: bytes that do not count, for a value and in all.
        total: of all weights of a function, by the raw ones.
    """

    growth: Fraction | None
    slack: int
    total: Fraction | None

    @staticmethod
    def of(max_growth: float, growth_slack: int, max_total_growth: float) -> Limits:
        """The limits that the options of the pass say. Raises RelaxError for a negative one, or one that is no number."""
        options = {"max-growth": max_growth, "growth-slack": growth_slack, "max-total-growth": max_total_growth}
        for name, value in options.items():
            if not value >= 0:
                raise RelaxError(f"expected 0 or more for option '{name}', got {value}")
        return Limits(_factor(max_growth), growth_slack, _factor(max_total_growth))


def _factor(value: float) -> Fraction | None:
    """The number as it was written: 1.15 of 100 bytes are 115, which they are not in binary."""
    return Fraction(repr(value)) if value and math.isfinite(value) else None


@dataclass
class Policy:
    """Judges values of the functions that one transform function prepares weights for.

    Attributes:
        limits: see :class:`Limits`.
        costs: holds the transform function, if there is one, and whatever is judged.
        fixed: what the transform function returns for functions that are not looked at.
        opened: first results of branches, loops and calls that are not lifted as a whole, and why.
    """

    limits: Limits
    costs: Costs
    fixed: Sequence[ir.Value] = ()
    opened: dict[ir.Value, Refusal] = field(default_factory=dict["ir.Value", "Refusal"])
    _overrides: dict[ir.Value, str] = field(default_factory=dict["ir.Value", str])
    _beyond_total: dict[ir.Value, str] = field(default_factory=dict["ir.Value", str])

    def add_weight(self, value: ir.Value, override: str | None) -> None:
        """Enters what the user says about a weight."""
        if override is not None:
            self._overrides[value] = override

    def add(self, op: ir.Operation) -> None:
        """Enters a liftable op that comes from weights, after what it reads."""
        self.costs.add(op)
        said = {self._overrides[v] for v in free_values(op) if v in self._overrides} if self._overrides else None
        if said:
            self._overrides.update(dict.fromkeys(op.results, NEVER if NEVER in said else ALWAYS))

    def open(self, plans: Iterable[LiftPlan]) -> bool:
        """Opens the declined branches, loops and calls: next time what is inside is judged. Whether there were any."""
        before = len(self.opened)
        for plan in plans:
            for op, refusal in plan.declined:
                if (len(op.regions) or op.name == "func.call") and refusal[0] != Reason.NOT_TENSOR:
                    self.opened[op.results[0]] = refusal
        return len(self.opened) > before

    def why_opened(self, op: ir.Operation) -> Refusal | None:
        """Why an op is not lifted as a whole, None when nothing is said against that."""
        return self.opened.get(op.results[0]) if self.opened else None

    def close(self, op: ir.Operation) -> None:
        """Forgets an op that is about to be erased."""
        if len(op.results):
            self.opened.pop(op.results[0], None)

    def override(self, value: ir.Value) -> str | None:
        """What the weights that a value comes from say."""
        return self._overrides.get(value)

    def refusal(self, op: ir.Operation, wanted: Sequence[ir.Value]) -> Refusal | None:
        """Why the results of a liftable op that inference wants are not lifted, None when they are."""
        said = override_of(op.attributes) or self.override(wanted[0])
        if said == NEVER:
            return Reason.OVERRIDE, f'a weight it comes from says {LIFT} = "{NEVER}"'
        if said == ALWAYS:
            return None
        beyond = next((self._beyond_total[s] for w in wanted if (s := self.costs.same(w)) in self._beyond_total), None)
        if beyond is not None:
            return Reason.TOTAL, beyond
        return self._growth_refusal(wanted)

    def _growth_refusal(self, wanted: Sequence[ir.Value]) -> Refusal | None:
        before, total = self.costs.before(wanted[0])
        ratio, limit = growth(total, before), self.limits.growth
        if limit is None or (ratio is not None and ratio <= limit):
            return None
        size = self.costs.total(wanted)
        above = share(size, total, before)
        if isinstance(size, int) and isinstance(above, int):
            if size - above <= self.limits.slack:
                return None
            return Reason.GROWTH, f"{bytes_text(above)} -> {bytes_text(size)}, {_times(ratio)} of at most {_times(limit)}"
        return None if ratio is None else (Reason.GROWTH, f"{_times(ratio)} of at most {_times(limit)}")

    def limit_total(self, plans: Iterable[LiftPlan]) -> bool:
        """Refuses the values that add most while all is too much; whether there were any, so that plans change."""
        if self.limits.total is None:
            return False
        plans = list(plans)
        taken = {self.costs.same(v): v for p in plans for v in (*p.kept_weights, *p.lifted)}
        taken |= {self.costs.same(v): v for v in self.fixed}
        prepared, raw = self._static(taken), self._static(self._raw_behind(taken))
        allowed = max(self.limits.total * raw, raw + self.limits.slack)
        if prepared <= allowed:
            return False
        additions = _Additions(self.costs, list(taken))
        free = {self.costs.same(v): v for p in plans for v in p.lifted if not self._is_forced(v)}
        adds = {value: additions.of(value) for value in free if value not in self._beyond_total}
        largest = sorted((v for v in adds if adds[v] > 0), key=lambda v: -adds[v])  # stable: of equal ones the first goes first
        detail = f"all are {bytes_text(prepared)}, at most {_times(self.limits.total)} of {bytes_text(raw)}"
        excess = prepared - allowed
        for value in largest:
            if excess <= 0:
                break
            excess -= adds[value]
            self._beyond_total[value] = f"adds {bytes_text(float(adds[value]))}; {detail}"
        return bool(largest)

    @property
    def weighed_up(self) -> bool:
        """Whether something was refused, or opened, for what other values take: another choice may leave room for it."""
        return len(self._beyond_total) > 0 or len(self.opened) > 0

    def _is_forced(self, value: ir.Value) -> bool:
        op = value.owner
        own = override_of(op.operation.attributes) if not isinstance(op, ir.Block) else None
        return (own or self.override(value)) == ALWAYS

    def _raw_behind(self, values: Iterable[ir.Value]) -> list[ir.Value]:
        names = dict.fromkeys(name for v in values for name in self.costs.sources(v))
        return [self.costs.raw(name) for name in names]

    def _static(self, values: Iterable[ir.Value]) -> int:
        """Bytes of those of some values whose size is a number."""
        return sum(size for v in values if isinstance(size := self.costs.size(v), int))


class _Additions:
    """How many bytes each taken value adds to what would be there without it.

    Not lifting a value means taking what is above it. That is nothing where all raw weights below that are taken anyway;
    where several taken values come from it, each answers for a part by its size.
    """

    def __init__(self, costs: Costs, taken: Sequence[ir.Value]):
        self._costs = costs
        self._taken_raw = {name for v in taken if costs.is_raw(v) for name in costs.sources(v)}
        self._readers: dict[ir.Value, int] = {}
        for value in taken:
            for member in () if costs.is_raw(value) else costs.origins_above(value):
                self._readers[member] = self._readers.get(member, 0) + _number(costs.size(value))

    def of(self, value: ir.Value) -> Fraction:
        size = _number(self._costs.size(value))
        instead = Fraction(0)
        for member in self._costs.origins_above(value):
            if not self._taken_raw.issuperset(self._costs.sources(member)):
                instead += Fraction(_number(self._costs.cost(member)) * size, self._readers[member] or 1)
        return size - instead


def _number(size: Size) -> int:
    return size if isinstance(size, int) else 0


def _times(ratio: Fraction | None) -> str:
    """Rounded so that 1.21 is not said to be at most 1.2."""
    return "infinitely many times" if ratio is None else f"{float(ratio):.6g}x"
