"""Translation validation: what functions compute before and after each pass, on random inputs, by the reference semantics.

Inputs are integers from -3 to 3, of which sums and products are exact: a pass that states no rounding has to leave every
result as it was, bit for bit. One that states it (:attr:`..dialect.passes.base.Pass.rounding`) is held to that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.functions import find_function, functions, name_of
from ..dialect.ops import QuantizedGroupedMatMul, QuantizedMatMul
from ..dialect.passes.options import parse_options
from ..dialect.passes.pipeline_text import Element, parse_pipeline
from ..dialect.passes.registry import registered_pass
from ..dialect.printable import joined_lines
from ..dialect.reference.interpreter import op_without_meaning
from ..dialect.reference.numeric import is_float
from ..dialect.traversal import nested_operations
from ..lowering.marks import PREPARATION
from .differences import difference
from .meaning import arguments_for, entry_functions, raw_weights, run_entry
from .stated_errors import are_within_stated_error, returning_roundings, without_roundings_of_weights

__all__ = ["FunctionRun", "SemanticsCheck", "change", "runs_of", "stated_rounding"]

Array = np.ndarray[Any, Any]
#: Products of narrow floats with weights of integers become products of f32, rounded once more, to bf16: half of 2**-7.
_OF_BF16 = 2**-8
#: What a function that cannot be run on random inputs raises: it refuses them, or has sizes that NumPy makes no array of.
_REFUSALS = (RelaxError, KeyError, ValueError)


@dataclass(frozen=True)
class FunctionRun:
    """What a function was given and what came out.

    Attributes:
        inputs: in the order of its arguments.
        weights: raw ones, by name.
        results: what it returns, behind what it hands over.
    """

    inputs: Sequence[Array]
    weights: Mapping[str, Array]
    results: tuple[Array, ...]


@dataclass
class SemanticsCheck:
    """Follows a module through its passes: :meth:`start`, then :meth:`after` each of them.

    Attributes:
        samples: how many random inputs each function gets.
        compared: how many results of functions were compared.
        skipped: what was not compared, and why.
    """

    samples: int = 1
    compared: int = 0
    skipped: list[str] = field(default_factory=list[str])
    _before: ir.Operation | None = None
    _text: str = ""
    _runs: list[dict[str, FunctionRun]] = field(default_factory=list[dict[str, FunctionRun]])

    def start(self, module: ir.Operation) -> None:
        """Takes a module as it is before all passes."""
        refused: dict[str, str] = {}
        self._runs = [runs_of(module, seed, refused) for seed in range(self.samples)]
        self.skipped += [f"@{name}: {reason}" for name, reason in refused.items()]
        self._keep(module)

    def after(self, element: str, module: ir.Operation) -> None:
        """Compares a module with what it was before a pass, an element of a pipeline.

        Raises:
            RelaxError: a function computes something else, more is rounded than the pass states, or a function is gone.
        """
        if not any(self._runs) or _text(module) == self._text:
            return
        beyond = _beyond(module)
        if beyond:
            self.skipped.append(f"'{element}' and what follows: {beyond}")
            self._runs = []
            return
        self._runs = [self._compared(element, module, runs, seed) for seed, runs in enumerate(self._runs)]
        self._keep(module)

    def __str__(self) -> str:
        lines = [f"verify-semantics: {self.compared} results compared"]
        return joined_lines([*lines, *(f"verify-semantics: not compared: {s}" for s in self.skipped)])

    def _compared(
        self, element: str, module: ir.Operation, runs: Mapping[str, FunctionRun], seed: int
    ) -> dict[str, FunctionRun]:
        """What the functions compute now."""
        found: dict[str, FunctionRun] = {}
        for name, run in runs.items():
            told, results = change(module, name, run, stated_rounding(element), self._before)
            if told:
                where = next((f.location for f in functions(module) if name_of(f) == name), None)
                raise RelaxError(
                    f"pass '{element}' changed the meaning of @{name}, on random inputs of seed {seed}: {told}", where
                )
            found[name] = FunctionRun(run.inputs, run.weights, results)
            self.compared += len(results)
        return found

    def _keep(self, module: ir.Operation) -> None:
        self._before, self._text = module.clone(ip=False).operation, _text(module)


def runs_of(module: ir.Operation, seed: int, refused: dict[str, str] | None = None) -> dict[str, FunctionRun]:
    """What entry functions compute of random inputs, by name. ``refused`` gets those that cannot be run, with the reason."""
    found: dict[str, FunctionRun] = {}
    for function in entry_functions(module):
        name, rng = name_of(function), np.random.default_rng(seed)
        try:
            inputs, weights = arguments_for(module, name, rng), raw_weights(module, name, rng)
            found[name] = FunctionRun(inputs, weights, run_entry(module, name, inputs, weights))
        except _REFUSALS as error:
            if refused is not None:
                refused[name] = str(error).partition("\n")[0]
    return found


def change(
    module: ir.Operation, name: str, run: FunctionRun, rounding: float, before: ir.Operation | None = None
) -> tuple[str, tuple[Array, ...]]:
    """How the results of a function differ from an earlier run, empty if they do not, and the results.

    Args:
        module: the module after passes.
        name: the function.
        run: what it was given, and computed, before.
        rounding: what the passes state.
        before: the module before; of passes that round weights to integers also what is not rounded is compared then.
    """
    if all(name_of(f) != name for f in functions(module)):
        return "there is no such function any more", ()
    try:
        results = _rounded(module, name, run) if rounding == math.inf else run_entry(module, name, run.inputs, run.weights)
    except _RoundsMoreError as error:
        return str(error), ()
    except _REFUSALS as error:
        return f"it cannot be run any more: {error}", ()
    told = _difference(run.results, results, rounding)
    if told or rounding != math.inf or before is None or _rounds_activations(module, name):
        return told, results
    want, got = (run_entry(without_roundings_of_weights(m, name), name, run.inputs, run.weights) for m in (before, module))
    return _difference(want, got, _OF_BF16, "without what it rounds, "), results


def _beyond(module: ir.Operation) -> str:
    """Why a module is beyond the reference semantics, which then compiled code is compared with; empty if it is not."""
    if PREPARATION in module.attributes:
        return "weights are prepared in steps, which compiled code runs (relaxir compare)"
    unknown = op_without_meaning(module)
    return f"'{unknown}' has no reference semantics" if unknown else ""


def stated_rounding(pipeline: str) -> float:
    """The largest :attr:`..dialect.passes.base.Pass.stated_rounding` of the passes of a pipeline, nested ones too."""
    return max((_rounding(e) for e in parse_pipeline(pipeline)), default=0.0)


def _rounding(element: Element) -> float:
    if element.nested is not None:
        return max(map(_rounding, element.nested), default=0.0)
    found = registered_pass(element.name)
    return parse_options(found, element.options).stated_rounding if found is not None else 0.0


class _RoundsMoreError(Exception):
    """A number is rounded to an integer that is further away than passes state."""


def _rounded(module: ir.Operation, name: str, run: FunctionRun) -> tuple[Array, ...]:
    """The results of a function, each rounding in which is as exact as passes state."""
    copy, count = returning_roundings(module, name)
    found = run_entry(copy, name, run.inputs, run.weights)
    results, rest = found[: len(found) - 3 * count], found[len(found) - 3 * count :]
    for i in range(0, len(rest), 3):
        if not are_within_stated_error(*rest[i : i + 3]):
            raise _RoundsMoreError("a number is rounded by more than the pass states")
    return results


def _rounds_activations(module: ir.Operation, name: str) -> bool:
    function = find_function(module, name)
    return any(isinstance(op.opview, QuantizedMatMul | QuantizedGroupedMatMul) for op in nested_operations(function.operation))


def _difference(expected: Sequence[Array], found: Sequence[Array], rounding: float, when: str = "") -> str:
    """The first result that is not what is expected. Infinite rounding leaves dtypes and shapes to be compared."""
    if len(expected) != len(found):
        return f"{when}expected {len(expected)} results, got {len(found)}"
    for i, (want, got) in enumerate(zip(expected, found, strict=True)):
        told = difference(want, got, _tolerance(want.dtype, rounding))
        if not told.equal and (rounding != math.inf or told.reason):
            return f"{when}result {i}: {told}"
    return ""


def _tolerance(dtype: np.dtype[Any], rounding: float) -> float:
    """A result of a narrow dtype is rounded to it, whatever the pass states."""
    return max(rounding, 8 * float(ml_dtypes.finfo(dtype).eps)) if rounding and is_float(dtype) else 0.0


def _text(module: ir.Operation) -> str:
    return module.get_asm(use_local_scope=True, assume_verified=True)
