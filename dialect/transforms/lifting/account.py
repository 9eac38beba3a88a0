"""The report's account of one function: figures taken before inference is rewritten, names known after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...bindings import ir
from ...errors import RelaxError
from ...reports.lifting import KeptWeight, LiftedValue, LiftSection, NotLifted
from .costs import Costs, growth, share
from .plan import LiftPlan
from .planner import LiftPlanner

__all__ = ["Account"]


@dataclass(frozen=True)
class Account:
    """What inference will take, and what stays in it.

    Attributes:
        kept: raw weights.
        lifted_before: prepared weights that it takes already.
        lifted: what the plan lifts, not named yet, one by one.
        not_lifted: ops that stay.
        raw_bytes, prepared_bytes: see :class:`LiftSection`.
    """

    kept: tuple[KeptWeight, ...]
    lifted_before: tuple[LiftedValue, ...]
    lifted: tuple[LiftedValue, ...]
    not_lifted: tuple[NotLifted, ...]
    raw_bytes: int
    prepared_bytes: int

    @staticmethod
    def of(names: Sequence[str], costs: Costs, planner: LiftPlanner, plan: LiftPlan) -> Account:
        """The account of a plan for a function whose weights have these names."""
        named = dict(zip(plan.weights, names, strict=True))
        kept = [w for w in plan.kept_weights if costs.is_raw(w)]
        before = [w for w in plan.kept_weights if not costs.is_raw(w)]
        taken = dict.fromkeys(costs.same(v) for v in (*plan.kept_weights, *plan.lifted))
        sources = dict.fromkeys(name for v in taken for name in costs.sources(v))
        return Account(
            tuple(KeptWeight(named[w], _number(costs.size(w))) for w in kept),
            tuple(_lifted(w, named[w], costs) for w in before),
            tuple(_lifted(v, "", costs) for v in plan.lifted),
            tuple(planner.stays(plan)),
            _total(costs, (costs.raw(name) for name in sources)),
            _total(costs, taken),
        )

    def section(self, function: str, transform: str, names: Sequence[str]) -> LiftSection:
        """The account as a section of the report, with the names that lifted values got; equal ones got one."""
        new = {name: replace(value, name=name) for name, value in zip(names, self.lifted, strict=True)}
        lifted = (*self.lifted_before, *new.values())
        return LiftSection(function, transform, lifted, self.kept, self.not_lifted, self.raw_bytes, self.prepared_bytes)


def _lifted(value: ir.Value, name: str, costs: Costs) -> LiftedValue:
    known = costs.same(value)
    before, total = costs.before(known)
    size, ratio = costs.size(known), growth(total, before)
    place = RelaxError("", known.owner.location).location or ""
    factor = None if ratio is None else float(ratio)
    numbers = _number(share(size, total, before)), _number(size)
    return LiftedValue(name, costs.op_of(known), place, costs.sources(known), costs.way(known), *numbers, factor)


def _number(size: object) -> int | None:
    return size if isinstance(size, int) else None


def _total(costs: Costs, values: Iterable[ir.Value]) -> int:
    return sum(_number(costs.size(v)) or 0 for v in values)
