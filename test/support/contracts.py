"""The contracts of passes (docs: design, section 3), checked on one module at a time; what does not hold is an AssertionError.

    python test/support/contracts.py START COUNT [ROUNDS]     random modules from a seed on: all passes, and random orders

prints a line per failure and leaves the reduced module in the current folder, named by what it fails.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from relaxir.debugging import reduced
from relaxir.debugging.semantics import FunctionRun, change, runs_of, stated_rounding
from relaxir.dialect.analysis.symbol_uses import DEFINING_OPS, bound_symbols
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.conventions import check_module
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.functions import functions
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from relaxir.dialect.passes.pipeline_text import Element, parse_pipeline
from relaxir.dialect.passes.registry import is_registered
from relaxir.dialect.traversal import nested_operations
from support.module_generator import random_module
from support.random_pipelines import PASSES, random_pipeline

__all__ = ["check_contracts", "failure"]


def check_contracts(text: str, context: ir.Context, pipelines: Sequence[str], refusals: Counter[str] | None = None) -> int:
    """Checks pipelines on one module; returns how many times results of functions were compared.

    ``refusals`` counts why modules were refused.
    """
    try:
        module = parse_module(text, "-", context)
    except RelaxError:  # meant to be wrong
        return 0
    before, expected, compared = _text(module.operation), runs_of(module.operation, 7), 0
    known = _Known({(before, cls.rounding) for cls in manager.registered().values()})
    if _names_symbols_twice(module.operation):
        pipelines = [p for p in pipelines if not _MERGES_SCOPES.search(p)]
    for pipeline in pipelines:
        after = _run(module.operation, pipeline, refusals)
        if after is not None:
            _check_result(module.operation, before, after, pipeline, expected, known)
            compared += len(expected)
    if _text(module.operation) != before:
        raise AssertionError(f"{_changes_its_input(text, context, pipelines)} changed its input")
    return compared


def _changes_its_input(text: str, context: ir.Context, pipelines: Sequence[str]) -> str:
    """The pipeline that does: looked for behind all of them, as printing after each is a twentieth of what tests take."""
    for pipeline in pipelines:
        module = parse_module(text, "-", context)
        before = _text(module.operation)
        _run(module.operation, pipeline, None)
        if _text(module.operation) != before:
            return pipeline
    return "one of the pipelines"


# MLIR's own: it takes what is inside of a branch that is always taken, or of a loop that runs once, out of it.
_MERGES_SCOPES = re.compile(r"(?<!relax-)\bcanonicalize\b")


def _names_symbols_twice(module: ir.Operation) -> bool:
    """Whether casts in different blocks of a function define symbols of one name (dialect/README.md: what comes of that)."""
    for function in functions(module):
        defined: dict[str, ir.Block] = {}
        for op in nested_operations(function.operation):
            for symbol in bound_symbols(r.type for r in op.results) if op.name in DEFINING_OPS else ():
                if defined.setdefault(symbol, op.block) != op.block:
                    return True
    return False


def failure(text: str, pipeline: str, context: ir.Context) -> str | None:
    """The first line of what does not hold for a pipeline on a module, None when all does."""
    try:
        check_contracts(text, context, [pipeline])
    except Exception as error:  # whatever a pass raises is wrong, unless it is a refusal
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return None


@dataclass
class _Known:
    """What holds of texts: what a pass leaves as it was, or several pipelines arrive at, is looked at once.

    Attributes:
        meaning: texts, each with a rounding, that mean what is expected.
        sound: texts that keep the conventions.
        kept: texts, each with a pass that leaves it as it is.
    """

    meaning: set[tuple[str, float]]
    sound: set[str] = field(default_factory=set[str])
    kept: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


def _check_result(
    module: ir.Operation, before: str, after: ir.Operation, pipeline: str, expected: Mapping[str, FunctionRun], known: _Known
) -> None:
    """Checks a result."""
    text = _text(after)
    if text not in known.sound:
        check_module(after)
        known.sound.add(text)
    elements = parse_pipeline(pipeline)
    last = elements[-1].text
    if len(elements) == 1 and text == before:
        known.kept.add((text, last))
    if (text, last) not in known.kept:
        _check_idempotent(after, text, elements[-1])
        known.kept.add((text, last))
    rounding = stated_rounding(pipeline)
    if (text, rounding) in known.meaning:
        return
    # Other passes may have moved roundings away, or rounded weights before.
    start = module if pipeline == "relax-quantize-weights" else None
    for name, run in expected.items():
        told, _ = change(after, name, run, rounding, start)
        assert not told, f"{pipeline} changed what @{name} computes: {told}"
    known.meaning.add((text, rounding))


def _check_idempotent(after: ir.Operation, text: str, last: Element) -> None:
    """Running the last pass again changes nothing."""
    if last.nested is not None or not is_registered(last.name):
        return
    try:
        again = manager.run(after, last.text)
    except RelaxError as error:
        raise AssertionError(f"{last.text} refuses its own result: {error.args[0]}") from error
    assert _text(again) == text, f"{last.text} is not idempotent"


def _text(operation: ir.Operation) -> str:
    """Parsing and the pass manager verified what is printed, so that it is not done once more."""
    return operation.get_asm(use_local_scope=True, assume_verified=True)


def _run(module: ir.Operation, pipeline: str, refusals: Counter[str] | None) -> ir.Operation | None:
    """The result, None for a module that the pipeline refuses. The pass manager verifies after each pass."""
    try:
        return manager.run(module, pipeline)
    except RelaxError as error:
        if error.__cause__ is None:  # a pass that refuses raises the cause
            raise AssertionError(f"{pipeline} left invalid IR: {error}") from error
        if refusals is not None:
            refusals[str(error.args[0]).splitlines()[0]] += 1
        return None


def _shorter(text: str, pipeline: str, fails: Callable[[str, str], bool]) -> str:
    """A pipeline without the passes that the failure does not need."""
    elements = [e.text for e in parse_pipeline(pipeline)]
    for i in reversed(range(len(elements))):
        rest = elements[:i] + elements[i + 1 :]
        if rest and fails(text, ",".join(rest)):
            elements = rest
    return ",".join(elements)


def _reported(seed: int, pipeline: str, problem: str, context: ir.Context) -> None:
    kind = problem.partition(":")[0]

    def fails(text: str, passes: str) -> bool:
        return (failure(text, passes, context) or "").partition(":")[0] == kind

    text = random_module(seed)
    passes = _shorter(text, pipeline, fails)
    small = reduced(text, lambda t: fails(t, passes))
    path = Path(f"failure-{seed}-{abs(hash(passes)) % 1000}.mlir")
    path.write_text(f"// {passes}\n// {failure(small, passes, context)}\n// module seed {seed}\n{small}\n")
    print(f"seed {seed}: {passes}: {problem[:200]} ({path})", flush=True)


def main(start: int, count: int, rounds: int = 4) -> int:
    """Checks modules of seeds; returns how many failures there were."""
    failures, ran, refusals = 0, 0, Counter[str]()
    for seed in range(start, start + count):
        rng, context = random.Random(seed), new_context()
        for pipeline in [*PASSES, *(random_pipeline(rng) for _ in range(rounds))]:
            ran += 1
            try:
                check_contracts(random_module(seed), context, [pipeline], refusals)
            except Exception as error:
                failures += 1
                _reported(seed, pipeline, f"{type(error).__name__}: {error}", context)
    print(f"{count} modules, {ran} pipelines, {failures} failures, {sum(refusals.values())} refusals")
    for reason, times in refusals.most_common(40):
        print(f"{times:6} {reason}")
    return failures


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:])), 1))
