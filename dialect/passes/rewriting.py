"""Rewrite patterns on MLIR's drivers: an op and a list of patterns in, the op rewritten in place.

A pattern is a function of an op and a :class:`Rewriter`, tried on ops of one class; it returns whether it has rewritten. A pass
has its patterns in one list, those of one class in the order in which they are tried, and picks a driver:

- :func:`walk` tries each op once, in program order, what is inside of an op before the op. New ops are not tried. For
  patterns of which one sweep is enough, and those that carry out what an analysis has decided and marked.
- :func:`greedily` goes on until nothing changes. It folds upstream's ops, too, and drops pure ops that nothing uses.

A pattern replaces the op that it is tried on. What else it makes superfluous, perhaps the op that is tried next, it discards:
that is erased at the end, users first, if nothing reads it. Handles of erased ops crash the bindings; so patterns keep
values between calls, and those only while they live: listeners are told which take the place of which.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from ..bindings import ir, rewrite
from ..errors import RelaxError
from ..op import EffectOp
from ..traversal import is_unused, nested_operations

__all__ = ["DriverRun", "Pattern", "Patterns", "Rewriter", "budget_for", "greedily", "observed", "walk"]


class Listener(Protocol):
    """What is told of changes, as an analysis that has values as keys."""

    def replace(self, old: Sequence[ir.Value], new: Sequence[ir.Value]) -> None:
        """Values that are about to be erased, and those in their place, or none."""


class Rewriter:
    """How patterns change the IR.

    Args:
        listeners: what is told of replaced and erased values.
    """

    def __init__(self, listeners: Sequence[Listener] = ()):
        self._listeners = listeners
        self._discarded: dict[ir.Value, ir.Operation] = {}
        self._tried: tuple[ir.OpView, rewrite.PatternRewriter] | None = None

    @contextmanager
    def before(self, op: ir.OpView | ir.Operation) -> Generator[None]:
        """Ops built meanwhile come in front of an op, and have its location."""
        root, driver = self._tried or (None, None)
        # The driver is told of new ops that come where it has set its own point, and tries them, if it is the greedy one.
        with driver.ip if driver is not None and op == root else ir.InsertionPoint(op), op.location:
            yield

    def replace(self, op: ir.OpView | ir.Operation, new: ir.Operation | ir.OpView | Sequence[ir.Value]) -> bool:
        """Puts values, or another op's results, in the place of the op that the pattern is tried on. True: it has rewritten."""
        values = list(new.results) if isinstance(new, ir.Operation | ir.OpView) else list(new)
        self._tell(op.results, values)
        assert self._tried is not None
        self._tried[1].replace_op(op, values)
        return True

    def discard(self, *ops: ir.OpView | ir.Operation) -> None:
        """Has pure ops erased when the driver has ended, those that nothing reads then."""
        for op in ops:
            self._discarded.update(dict.fromkeys(op.results, op.operation))

    def call(self, pattern: Pattern, op: Any, driver: rewrite.PatternRewriter) -> bool:
        """Tries a pattern: a driver's part."""
        self._tried = op, driver
        try:
            return pattern(op, self)
        finally:
            self._tried = None  # both may be gone

    def sweep(self) -> None:
        """Erases what was discarded: a driver's part."""
        pending = list(self._discarded)
        while pending:
            op = self._discarded.get(pending.pop())
            if op is None or not is_unused(op):
                continue
            operands = list(op.operands)
            for result in op.results:
                del self._discarded[result]
            self._tell(op.results, [])
            op.erase()
            pending += [v for v in operands if v in self._discarded]

    def _tell(self, old: Iterable[ir.Value], new: Sequence[ir.Value]) -> None:
        for listener in self._listeners:
            listener.replace(list(old), new)


Pattern: TypeAlias = Callable[[Any, Rewriter], bool]
#: Classes of ops, or names of upstream's, and what is tried on those.
Patterns: TypeAlias = Sequence[tuple[type[EffectOp] | str, Pattern]]


@dataclass
class DriverRun:
    """One run of a driver: its name, those of the patterns that it tried, and how often each of them has rewritten."""

    driver: str
    patterns: list[str]
    rewrites: dict[str, int] = field(default_factory=dict[str, int])


_RUNS: ContextVar[list[DriverRun] | None] = ContextVar("relaxir_driver_runs", default=None)


@contextmanager
def observed() -> Generator[list[DriverRun]]:
    """The runs of drivers while it lasts."""
    runs: list[DriverRun] = []
    token = _RUNS.set(runs)
    try:
        yield runs
    finally:
        _RUNS.reset(token)


def walk(op: ir.Operation | ir.OpView, patterns: Patterns, *listeners: Listener) -> DriverRun:
    """Tries patterns on each op inside of an op, once."""
    rewriter = Rewriter(listeners)
    frozen, run = _frozen("walk", patterns, rewriter)
    rewrite.walk_and_apply_patterns(op, frozen)
    rewriter.sweep()
    return run


def greedily(op: ir.Operation | ir.OpView, patterns: Patterns, budget: int, what: str) -> DriverRun:
    """Tries patterns until nothing changes.

    Args:
        op: what is rewritten; ops inside of it are.
        patterns: what is tried.
        budget: how many rewrites one of the driver's ten sweeps may do, at least 1.
        what: what the patterns do, for the error.

    Raises:
        RelaxError: the sweeps were not enough.
        ValueError: the budget is less than 1; to the driver, -1 is no limit.
    """
    if budget < 1:
        raise ValueError(f"expected a budget of at least 1 rewrite, got {budget}")
    rewriter = Rewriter()
    frozen, run = _frozen("greedy", patterns, rewriter)
    try:
        rewrite.apply_patterns_and_fold_greedily(op, frozen, _config(max_num_rewrites=budget))
    except RuntimeError as error:
        if "converge" not in str(error):
            raise
        raise RelaxError(f"expected {what} to end within {budget} rewrites per sweep, got more", op.location) from None
    return run


def _config(max_num_rewrites: int) -> rewrite.GreedyRewriteConfig:
    """How a greedy driver runs; without a number of rewrites, patterns that undo each other never end."""
    config = rewrite.GreedyRewriteConfig()
    config.max_num_rewrites = max_num_rewrites
    config.region_simplification_level = rewrite.GreedySimplifyRegionLevel.DISABLED
    return config


def budget_for(op: ir.Operation, per_op: int, least: int) -> int:
    """A number of rewrites that grows with the ops inside of an op."""
    return least + per_op * sum(1 for _ in nested_operations(op))


def _frozen(driver: str, patterns: Patterns, rewriter: Rewriter) -> tuple[rewrite.FrozenRewritePatternSet, DriverRun]:
    run, runs = DriverRun(driver, [_name(pattern) for _, pattern in patterns]), _RUNS.get()
    if runs is not None:
        runs.append(run)
    made = rewrite.RewritePatternSet()
    for root, pattern in patterns:
        made.add(root, _adapted(pattern, rewriter, run))
    return made.freeze(), run


def _adapted(pattern: Pattern, rewriter: Rewriter, run: DriverRun) -> Callable[[Any, rewrite.PatternRewriter], bool]:
    """As the bindings want it: they take a false value for a rewrite."""
    name = _name(pattern)

    def call(op: Any, driver: rewrite.PatternRewriter) -> bool:
        if not rewriter.call(pattern, op, driver):
            return True
        run.rewrites[name] = run.rewrites.get(name, 0) + 1
        return False

    return call


def _name(pattern: Pattern) -> str:
    return getattr(pattern, "__name__", type(pattern).__name__).strip("_")
