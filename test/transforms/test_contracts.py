"""What every pass of the registry keeps, on the modules of all lit tests and on random ones (docs: design, section 3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.meaning import arguments_for, entry_functions, raw_weights, run_entry
from support.module_generator import random_module

from relaxir.dialect import pass_manager
from relaxir.dialect.bindings import ir
from relaxir.dialect.conventions import check_module
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.functions import name_of
from relaxir.dialect.parser import parse_module
from relaxir.dialect.relax import new_context

ROOT = Path(__file__).resolve().parents[1]

PASSES = [n for n, cls in pass_manager.registered().items() if cls.__module__.startswith("relaxir.dialect.transforms")]
PIPELINES = [
    *PASSES,
    "relax-lift-transform-params{shared=true}",
    "relax-lift-transform-params,relax-lazy-transform-params",
    "relax-lift-transform-params,relax-lazy-get-input,relax-lazy-set-output",
    "relax-lift-transform-params{shared=true},relax-lazy-transform-params,relax-lift-transform-params",
    "relax-inline-private-functions,relax-canonicalize,relax-lift-transform-params,canonicalize,cse,relax-lift-transform-params",
    "relax-remove-unused-parameters,canonicalize,relax-lift-transform-params,relax-remove-unused-parameters,symbol-dce",
    "relax-lift-transform-params,relax-realize-vdevice,relax-canonicalize,relax-lift-transform-params",
]
RANDOM_MODULES = 150
# Modules per test: each test is small enough to be reported, and the whole takes seconds.
CHUNK = 25


def lit_modules() -> Iterator[tuple[str, str]]:
    """The parts of all lit files, each with a name."""
    for path in sorted(ROOT.rglob("*.mlir")):
        for number, part in enumerate(re.split(r"^// -----.*$", path.read_text(), flags=re.M)):
            yield f"{path.relative_to(ROOT)}:{number}", part


def parsed(text: str) -> ir.Module | None:
    """The module, None for text that is meant to be wrong."""
    try:
        return parse_module(text, "-", new_context())
    except RelaxError:
        return None


def check_contracts(text: str, pipelines: list[str]) -> int:
    """Checks all pipelines on one module; returns how many results were compared in meaning."""
    module = parsed(text)
    if module is None:
        return 0
    before, compared = str(module), 0
    for pipeline in pipelines:
        after = _run(module, pipeline)
        assert str(module) == before, f"{pipeline} changed its input"
        if after is not None:
            check_module(after)
            _check_idempotent(after, pipeline)
            compared += _check_meaning(module.operation, after)
    return compared


def _run(module: ir.Module, pipeline: str) -> ir.Operation | None:
    """The result, None for a module that the pipeline refuses. The pass manager verifies after each pass."""
    try:
        return pass_manager.run(module, pipeline)
    except RelaxError:
        return None


def _check_idempotent(after: ir.Operation, pipeline: str) -> None:
    if "," in pipeline:
        return
    again = pass_manager.run(after, pipeline)
    assert str(again) == str(after), f"{pipeline} is not idempotent"


def _check_meaning(before: ir.Operation, after: ir.Operation) -> int:
    compared = 0
    for function in entry_functions(before):
        name = name_of(function)
        rng = np.random.default_rng(7)
        try:
            inputs, weights = arguments_for(before, name, rng), raw_weights(before, name, rng)
            expected = run_entry(before, name, inputs, weights)
        except (RelaxError, KeyError):  # declarations, ops without semantics, sizes that do not fit: nothing to compare with
            continue
        got = run_entry(after, name, inputs, weights)
        assert len(got) == len(expected)
        for left, right in zip(expected, got, strict=True):
            assert np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
        compared += 1
    return compared


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_on_modules_of_lit_tests(pipeline):
    compared = 0
    for name, text in lit_modules():
        try:
            compared += check_contracts(text, [pipeline])
        except Exception as error:
            raise AssertionError(f"{name} under {pipeline}: {error}") from error
    assert compared > 20


@pytest.mark.parametrize("start", range(0, RANDOM_MODULES, CHUNK))
def test_on_random_modules(start):
    compared = 0
    for seed in range(start, start + CHUNK):
        try:
            compared += check_contracts(random_module(seed), PIPELINES)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert compared > CHUNK * len(PIPELINES) // 2


def test_random_modules_are_of_all_kinds():
    text = "\n".join(random_module(seed) for seed in range(RANDOM_MODULES))
    for wanted in ("scf.if", "scf.for", "func.call", "relax.stop_lift_params", "relax.hint_on_device", "relax.concat"):
        assert text.count(wanted) > 10
