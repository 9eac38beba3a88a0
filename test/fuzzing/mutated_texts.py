"""The lit tests' modules with something changed, through parsing, passes, compilation and a call: nothing dies.

What comes out of each step is a result or a RelaxError. Inputs are against guard pages, small, and of any number; results have
the shapes that the reference semantics gives, where both have some. What loops nearly forever by these semantics is compiled
and not run, so that whatever runs out of time hangs by a fault of ours.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import random
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import relaxir as rx
from relaxir.debugging.meaning import raw_weights, run_entry
from relaxir.dialect.dtypes import dtype_name
from relaxir.dialect.symbolic import evaluate
from relaxir.lowering.manifest_specs import EntrySpec
from relaxir.tools.relax_opt import run
from support.guard_pages import guarded_copy
from support.loop_rounds import TooManyRoundsError, at_most_rounds
from support.mutate import mutant

__all__ = ["check", "check_seeded", "text"]

#: Elements of a tensor that a mutant is called with at most; of a larger one, calling tells nothing new.
MOST_ELEMENTS = 1 << 20
#: Rounds of loops that a mutant is run with at most: a hundred times as many as those of any lit test.
MOST_ROUNDS = 10_000


def text(seed: int) -> str:
    """The mutant of a seed."""
    return mutant(seed)[0]


def check(seed: int) -> str | None:
    """Raises what is no RelaxError; returns which step refused."""
    return check_seeded(text(seed), seed)


def check_seeded(text: str, seed: int, passes: Sequence[str] | None = None) -> str | None:
    """The same of a text, with the passes of a seed, or others."""
    passes = mutant(seed)[1] if passes is None else passes
    if seed % 10 == 0:
        return _optimized(text, [f"--{p}" for p in passes])
    return _through(text, ",".join(passes), seed)


def _optimized(text: str, flags: list[str]) -> str | None:
    """By relax-opt, which must end with 0 or 1."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        path = os.path.join(folder, "mutant.mlir")
        with open(path, "w", errors="surrogateescape") as file:
            file.write(text)
        code = run([path, "-o", os.devnull, "--allow-unregistered-dialect", *flags])
    assert code in (0, 1), f"exit code {code}"
    return "by relax-opt" if code else None


def _through(text: str, pipeline: str, seed: int) -> str | None:
    rng = np.random.default_rng(seed)
    step = "when it is parsed"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = rx.Module.parse(text)
            step = "by a pass"
            module = module.run(pipeline) if pipeline else module
            step = "when it is compiled"
            executable = rx.compile(module)
            step = "when weights are prepared"
            _check_sizes([s.array.shape for s in executable.manifest.raw_weights.values()])
            raw = {n: _values(rng, s.array.dtype, s.array.shape) for n, s in executable.manifest.raw_weights.items()}
            calls = [_Call.of(executable, entry, random.Random(seed)) for entry in executable.entries.values()]
            _check_loops(module, [c for c in calls if c is not None], raw)
            executable.bind(executable.prepare(raw))
        except rx.RelaxError:
            return step
        except TooManyRoundsError:
            return "for loops of too many rounds"
        called = [call is not None and call.done(module, executable, raw) for call in calls]
    return None if any(called) else "when it is called"


@dataclass(frozen=True)
class _Call:
    """A call of an entry with inputs, and the first values of its state in their places among these."""

    entry: EntrySpec
    inputs: list[Any]
    arguments: list[Any]

    @classmethod
    def of(cls, executable: rx.Executable, entry: EntrySpec, rng: random.Random) -> _Call | None:
        """A call with random sizes; None if these are none for tensors."""
        numbers = np.random.default_rng(rng.randrange(1 << 32))
        values = {s.name: rng.choice((s.min or 0, 1, 2, 3, 4, 5)) for s in entry.symbols}
        try:
            shapes = [tuple(evaluate(d, values) for d in s.shape) for s in (*entry.inputs, *entry.outputs)]
            _check_sizes(shapes)
        except rx.RelaxError:
            return None
        inputs = [_values(numbers, s.dtype, shape) for s, shape in zip(entry.inputs, shapes, strict=False)]
        arguments = list(inputs)
        for state in sorted(entry.state, key=lambda s: s.argument):
            arguments.insert(state.argument, np.array(executable.state[state.name]))
        return cls(entry, inputs, arguments)

    def done(self, module: rx.Module, executable: rx.Executable, raw: dict[str, Any]) -> bool:
        """Whether it gave results, whose shapes are those of the reference semantics."""
        name = self.entry.name
        try:
            got = executable(*self.inputs, entry=name)
        except rx.RelaxError:
            return False
        found = got if isinstance(got, tuple) else (got,)
        with contextlib.suppress(rx.RelaxError, KeyError):
            weights = {w.name: raw[w.name] for w in module.functions[name].weights}
            wanted = rx.evaluate(module, name, *self.inputs, weights=weights) if not self.entry.state else found
            expected, shown = [(a.shape, a.dtype) for a in _leaves(wanted)], [(a.shape, a.dtype) for a in found]
            assert expected == shown, f"@{name}: expected {expected}, got {shown}"
        return True


def _check_loops(module: rx.Module, calls: Iterable[_Call], raw: dict[str, Any]) -> None:
    """Raises TooManyRoundsError where preparing weights, or a call, would hardly end. What evaluation refuses is let pass."""
    if not re.search(r"scf\.(for|while)", str(module)):
        return
    for call in calls:
        try:
            with at_most_rounds(MOST_ROUNDS):
                unused = raw_weights(module.ir.operation, call.entry.name, np.random.default_rng(0))
                run_entry(module.ir.operation, call.entry.name, call.arguments, unused | raw)
        except TooManyRoundsError:
            raise
        except Exception:
            continue


def _leaves(values: Iterable[Any]) -> Iterator[Any]:
    """The tensors in results of which some are tuples: compiled code returns each on its own."""
    for value in values:
        yield from _leaves(value) if isinstance(value, tuple) else (value,)


def _check_sizes(shapes: list[tuple[int, ...]]) -> None:
    for shape in shapes:
        if any(d < 0 for d in shape) or math.prod(shape) > MOST_ELEMENTS:
            raise rx.RelaxError("a tensor of too many elements to be called with")


def _values(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Small integers, negative ones, too, against a guard page."""
    low = 0 if dtype_name(dtype).startswith(("ui", "i1")) else -3
    values = rng.integers(low, 4, shape)
    return guarded_copy(np.asarray(values > 0 if dtype_name(dtype) == "i1" else values).astype(dtype))
