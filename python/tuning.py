"""Plans of kernels for GPUs, measured: compiles a module with one alternative after another, and keeps what was fastest.

A round compiles the whole module, with another plan for each kind of product, and calls it: each kernel is timed by itself, in
its place, with what was in the caches before it. So there are as many rounds as a product has alternatives, however many
products there are. A round that fails is taken apart: each of its plans has one for itself, and those that fail again do not
count.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from .compiler import compile
from .dialect.checks import expect_count
from .dialect.errors import RelaxError
from .lowering.cuda.cuda_target import CudaTarget
from .lowering.cuda.plan_choices import PlanChoice, collecting_choices
from .lowering.cuda.plan_table import MeasuredPlan, PlanTable
from .module import Module
from .random_weights import random_raw_weights
from .runtime.executable import Executable

__all__ = ["FailedPlan", "Inputs", "Timer", "TunedPlan", "kernel_seconds", "tune"]

#: Seconds by kernel of an executable, of a call that it is given.
Timer = Callable[[Executable, Callable[[], Any]], Mapping[str, float]]
#: The name of the entry to call, and its inputs.
Inputs = Callable[[Executable], tuple[str, Sequence[object]]]

# Calls that are timed, of which the median counts, behind one that is not.
_CALLS = 5
# How far results of two plans may be apart, by the largest number: sums of k in another order, rounded to what they are kept in
# (bf16 has 8 bits), pass through layers that add such differences up.
_TOLERANCE = 0.05


@dataclass(frozen=True)
class FailedPlan:
    """A plan that no kernel could be built or launched by, or that gave other results.

    Attributes:
        key: of which kind of product.
        plan: its line.
        reason: the error.
    """

    key: str
    plan: str
    reason: str


@dataclass(frozen=True)
class TunedPlan:
    """What was found for one kind of product.

    Attributes:
        key: which.
        chosen: the plan of the cost model, or of the table that was there.
        chosen_seconds: of all its launches in a call.
        best: the fastest one.
        seconds: the same of it.
        measured: how many there were.
        failed: those that could not be measured.
    """

    key: str
    chosen: str
    chosen_seconds: float
    best: str
    seconds: float
    measured: int
    failed: tuple[FailedPlan, ...] = ()


def tune(
    module: Module,
    target: str,
    inputs: Inputs,
    folder: str,
    *,
    device: str | None = None,
    weights: str | None = None,
    activations: str | None = None,
    candidates: int = 12,
    timer: Timer | None = None,
    told: Callable[[str], None] = print,
) -> list[TunedPlan]:
    """Measures plans of a module's products on a device, and adds the fastest to the table of a folder.

    Weights are random: they have the module's shapes, and products take no notice of more.

    Args:
        module: relax functions.
        target: ``"cuda:sm_90a"``, of the device.
        inputs: gives the name of the entry to call, and its inputs.
        folder: where the table goes, as :func:`relaxir.compile` reads it (``plan_table``).
        device: where kernels run, as for :func:`relaxir.load`.
        weights, activations: as for :func:`relaxir.compile`.
        candidates: how many plans of a product are measured at most.
        timer: what measures, by default events around each launch.
        told: gets a line on each round.

    Returns:
        What was found, by key. A device that does not work any more behind a plan that failed ends the rounds.

    Raises:
        RelaxError: the target is none for GPUs, there is no such device, the entry launches no product with a plan, or fails
            with the plans that it has without other ones.
    """
    expect_count(candidates, "a number of candidates from 1 on")
    if target.partition(":")[0] != "cuda":
        raise RelaxError(f"expected a target for GPUs, whose kernels can be timed one by one, got '{target}'")
    tuner = _Tuner(module, target, inputs, device, weights, activations, timer or kernel_seconds)
    first = tuner.round({})
    rounds, known = [first], first.alternatives
    if not known:
        raise RelaxError("expected an entry that launches products with plans, got one that launches none")
    count = min(candidates - 1, max(map(len, known.values())))
    told(f"{len(known)} kinds of products, {count} rounds beside the first: {_microseconds(first)}")
    for number in range(count):
        plans = {key: lines[number] for key, lines in known.items() if number < len(lines)}
        found = tuner.measured(first, plans)
        rounds += found
        told(f"round {number + 1} of {count}: {', '.join(map(_microseconds, found)) or 'failed'}")
        if tuner.broken:
            told(f"the device does not work any more behind the plan that failed last: {tuner.broken}")
            break
    best = [_best(key, rounds, tuner.failed) for key in sorted(known)]
    PlanTable.of(tuner.architecture, (MeasuredPlan(b.key, b.best, b.seconds, tuner.where) for b in best)).write(folder)
    return best


def kernel_seconds(executable: Executable, call: Callable[[], Any]) -> Mapping[str, float]:
    """Seconds of each kernel in a call: the median of some, of which the first one is behind one that does not count."""
    found = defaultdict[str, list[float]](list)
    for _ in range(_CALLS):
        with executable.kernel_times() as times:
            call()
        for name, seconds in times.items():
            found[name].append(seconds)
    return {name: median(seconds) for name, seconds in found.items()}


@dataclass(frozen=True)
class _Round:
    """One executable: which plan each key had, how long its launches took, what else there is, results."""

    plans: Mapping[str, str]
    seconds: Mapping[str, float]
    alternatives: Mapping[str, tuple[str, ...]]
    results: tuple[Any, ...]


@dataclass
class _Tuner:
    """Makes rounds."""

    module: Module
    target: str
    inputs: Inputs
    device: str | None
    weights: str | None
    activations: str | None
    timer: Timer
    where: str = ""
    broken: str = ""
    failed: list[FailedPlan] = field(default_factory=list[FailedPlan])

    def __post_init__(self) -> None:
        self._call: tuple[str, Sequence[object]] | None = None
        self._prepared: object = None

    @property
    def architecture(self) -> str:
        return CudaTarget.parse(self.target).architecture.name

    def measured(self, first: _Round, plans: Mapping[str, str]) -> list[_Round]:
        """A round with other plans; where it fails, one for each of them, and those that fail are noted."""
        try:
            found = self.round(plans)
            _expect_same(first, found)
        except RelaxError as error:
            return self._apart(first, plans, str(error))
        return [found]

    def _apart(self, first: _Round, plans: Mapping[str, str], reason: str) -> list[_Round]:
        """The rounds of each of some plans, of which one or more fail."""
        if len(plans) == 1:
            ((key, plan),) = plans.items()
            self.failed.append(FailedPlan(key, plan, reason))
            self._see_whether_it_works()
            return []
        rounds: list[_Round] = []
        for key, plan in plans.items():
            if not self.broken:
                rounds += self.measured(first, {key: plan})
        return rounds

    def _see_whether_it_works(self) -> None:
        """A kernel that accesses what is not there leaves a device that fails whatever it is asked for."""
        try:
            self.round({})
        except RelaxError as error:
            self.broken = str(error)

    def round(self, plans: Mapping[str, str]) -> _Round:
        """Measures a module some of whose products have other plans."""
        with tempfile.TemporaryDirectory() as folder, collecting_choices() as choices:
            PlanTable.of(self.architecture, (MeasuredPlan(k, p, 0.0, "") for k, p in plans.items())).write(folder)
            made = compile(
                self.module, self.target, cache=False, weights=self.weights, activations=self.activations, device=self.device,
                plan_table=folder,
            )  # fmt: skip
        if made.manifest.raw_weights:
            self._prepared = self._prepared or made.prepare(random_raw_weights(made.manifest))
            made.bind(self._prepared)
        self._call = self._call or self.inputs(made)
        entry, arguments = self._call

        def call() -> Any:
            return made(*arguments, entry=entry)

        results = call()
        times = self.timer(made, call)
        self.where = made.device
        return _round(times, list(choices.found.values()), results if isinstance(results, tuple) else (results,))


def _round(times: Mapping[str, float], choices: Sequence[PlanChoice], results: tuple[Any, ...]) -> _Round:
    launched = [c for c in choices if any(name in times for name in c.kernels)]
    seconds = Counter[str]()
    for choice in launched:
        seconds[choice.key] += sum(times.get(name, 0.0) for name in choice.kernels)  # type: ignore[assignment]
    plans, alternatives = {c.key: c.plan for c in launched}, {c.key: c.alternatives for c in launched}
    return _Round(plans, seconds, alternatives, results)


def _expect_same(first: _Round, other: _Round) -> None:
    """Raises RelaxError where results are others than before: that is a fault of a kernel."""
    for one, two in zip(first.results, other.results, strict=True):
        a, b = (np.asarray(x).astype(np.float64) for x in (one, two))
        if not np.all(np.abs(a - b) <= _TOLERANCE * np.max(np.abs(a), initial=0)):
            raise RelaxError("expected the results that other plans give, got other ones")


def _best(key: str, rounds: Sequence[_Round], failed: Sequence[FailedPlan]) -> TunedPlan:
    found = [(r.seconds[key], r.plans[key]) for r in rounds if key in r.plans]
    seconds, best = min(found)
    measured = len(dict.fromkeys(plan for _, plan in found))
    return TunedPlan(key, found[0][1], found[0][0], best, seconds, measured, tuple(f for f in failed if f.key == key))


def _microseconds(round_: _Round) -> str:
    return f"{sum(round_.seconds.values()) * 1e6:.1f} us"
