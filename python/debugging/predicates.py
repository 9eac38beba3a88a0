"""What makes a module interesting to reduce: a command says so, or it is refused, kills a process, or computes other numbers.

Each works in a process of its own, with a time limit.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Sequence

import numpy as np

from ..compiler import compile
from ..dialect.checks import expect_text
from ..dialect.errors import RelaxError
from ..dialect.functions import name_of
from ..module import Module
from .differences import difference
from .isolated import Ending, ended
from .meaning import arguments_for, entry_functions, raw_weights
from .runs import compiled_results, reference_results

__all__ = ["Predicate", "command", "dies", "differs", "fails"]

#: Whether a text is interesting.
Predicate = Callable[[str], bool]

#: Seconds that one candidate gets.
SECONDS = 60.0
#: What a command has in the place of the file with the candidate; without it the file comes last.
PLACE = "{}"


def command(line: str, seconds: float = SECONDS) -> Predicate:
    """Whether a command ends with exit code 0 for a file with the text, as LLVM's llvm-reduce asks.

    Args:
        line: program and arguments, in shell's quoting; ``{}`` is the file, which is last where there is none.
        seconds: after which it is stopped; the text is not interesting then.
    """
    expect_text(line, "a command")
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise RelaxError(f"expected a command, got '{line}': {error}") from None
    if not words:
        raise RelaxError("expected a command, got nothing")
    words = words if any(PLACE in w for w in words) else [*words, PLACE]

    def holds(text: str) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "candidate.mlir")
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
            return _succeeds([w.replace(PLACE, path) for w in words], seconds)

    return holds


def _succeeds(words: Sequence[str], seconds: float) -> bool:
    nothing = subprocess.DEVNULL
    try:
        # A session of its own, so that what it started ends with it.
        process = subprocess.Popen(words, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
    except OSError as error:
        raise RelaxError(f"cannot run '{words[0]}': {error.strerror}") from None
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()


def fails(text: str = "", pipeline: str | None = None, target: str = "cpu", seconds: float = SECONDS) -> Predicate:
    """Whether passes, or else compiling for a target, raise an error that has ``text`` in it."""

    def holds(module: str) -> bool:
        ending = _run(module, pipeline, target, seconds)
        return ending.kind == "raised" and text in ending.text

    return holds


def dies(pipeline: str | None = None, target: str = "cpu", seconds: float = SECONDS) -> Predicate:
    """Whether passes, or else compiling for a target, end the process, or take longer than ``seconds``."""
    return lambda module: _run(module, pipeline, target, seconds).kind in ("died", "hung")


def _run(text: str, pipeline: str | None, target: str, seconds: float) -> Ending:
    def work() -> None:
        module = Module.parse(text)
        _ = compile(module, target, cache=False) if pipeline is None else module.run(pipeline)

    return ended(work, seconds)


def differs(
    pipeline: str | None = None,
    target: str = "cpu",
    tolerance: float | None = None,
    seed: int = 0,
    seconds: float = SECONDS,
) -> Predicate:
    """Whether what passes, or else compiling, make of a module gives other results than its reference semantics.

    Inputs and weights are small integers, of which sums and products are exact; symbols have sizes of up to 5.

    Args:
        pipeline: passes; None compiles.
        target: what to compile for.
        tolerance: as for :func:`.differences.difference`.
        seed: of inputs and weights.
        seconds: that one candidate gets; one that takes longer, dies or is refused does not differ.
    """

    def holds(text: str) -> bool:
        return ended(lambda: _differs(text, pipeline, target, tolerance, seed), seconds).value is True

    return holds


def _differs(text: str, pipeline: str | None, target: str, tolerance: float | None, seed: int) -> bool:
    module = Module.parse(text)
    operation, rng = module.ir.operation, np.random.default_rng(seed)
    after = None if pipeline is None else module.run(pipeline)
    executable = compile(module, target, cache=False) if after is None else None
    for name in map(name_of, entry_functions(operation)):
        inputs, raw = arguments_for(operation, name, rng), raw_weights(operation, name, rng)
        wanted = reference_results(operation, name, inputs, raw)
        if after is not None:
            got = reference_results(after.ir.operation, name, inputs, raw)
        else:
            assert executable is not None
            executable.bind(executable.prepare({n: raw[n] for n in executable.manifest.raw_weights}))
            got = compiled_results(executable, name, inputs)
        if any(not difference(wanted[n], got[n], tolerance).equal for n in wanted if n in got):
            return True
    return False
