"""What every pass of the registry keeps, on the modules of all lit tests and on random ones (docs: design, section 3)."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from relaxir.dialect import pass_manager
from relaxir.dialect.bindings import ir
from relaxir.dialect.conventions import check_module
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.functions import name_of
from relaxir.dialect.parser import parse_module
from relaxir.dialect.reference.numeric import is_float
from relaxir.dialect.relax import new_context
from support.meaning import arguments_for, entry_functions, raw_weights, run_entry
from support.module_generator import random_module

ROOT = Path(__file__).resolve().parents[1]

PASSES = [n for n, cls in pass_manager.registered().items() if cls.__module__.startswith("relaxir.dialect.transforms")]
PIPELINES = [
    *PASSES,
    "relax-lift-transform-params{shared=true}",
    "relax-lift-transform-params{growth-slack=0 max-total-growth=1.2}",
    "relax-lift-transform-params,relax-lazy-transform-params",
    "relax-lift-transform-params,relax-lazy-get-input,relax-lazy-set-output",
    "relax-lift-transform-params,relax-lazy-transform-params,relax-schedule-lazy-io",
    "relax-lift-transform-params{shared=true},relax-lazy-transform-params,relax-lift-transform-params",
    "relax-lazy-get-input{callback=functions}",
    "relax-lazy-get-input,relax-lazy-set-output{callback=functions},canonicalize,cse,relax-canonicalize,symbol-dce",
    "relax-lift-transform-params,relax-lazy-transform-params{callback=functions extra-get=rank:i64 extra-set=rank},canonicalize,cse",
    "relax-lazy-set-output,relax-lazy-get-input{addressing=name extra-get=rank:index},relax-lift-transform-params",
    "relax-inline-private-functions,relax-canonicalize,relax-lift-transform-params,canonicalize,cse,relax-lift-transform-params",
    "relax-remove-unused-parameters,canonicalize,relax-lift-transform-params,relax-remove-unused-parameters,symbol-dce",
    "relax-lift-transform-params,relax-realize-vdevice,relax-canonicalize,relax-lift-transform-params",
    "relax-expand-tuple-arguments{public=true}",
    "relax-bundle-model-params,relax-expand-tuple-arguments{public=true},relax-compute-shape-values,cse",
    "relax-remove-unused-outputs,relax-canonicalize,relax-remove-unused-parameters,relax-bundle-model-params",
    "relax-update-vdevice{from=cuda:0 to=cpu:0}",
    "relax-realize-vdevice,relax-lift-transform-params{shared=true},relax-update-vdevice{from=cpu:1 to=cpu:0}",
]
#: Passes that change rounding, as their docstrings say, and by how much, relative to the largest result.
TOLERANCES = {"relax-fold-batch-norm": 1e-5, "relax-to-mixed-precision": 2e-2}
RANDOM_MODULES = 150
# All 16 on all modules would take a minute; so each pipeline sees about 37.
PIPELINES_PER_MODULE = 4
# Modules per test: each test is small enough to be reported, and the whole takes seconds.
CHUNK = 25


Expected = dict[str, tuple[list[np.ndarray], dict[str, np.ndarray], tuple[np.ndarray, ...]]]


def lit_modules(folder: str) -> Iterator[tuple[str, str]]:
    """The parts of all lit files of a folder, each with a name."""
    for path in sorted((ROOT / folder).rglob("*.mlir")):
        for number, part in enumerate(re.split(r"^// -----.*$", path.read_text(), flags=re.M)):
            yield f"{path.name}:{number}", part


def check_contracts(text: str, context: ir.Context, pipelines: Sequence[str] = PIPELINES) -> int:
    """Checks pipelines on one module; returns how many times results of functions were compared."""
    try:
        module = parse_module(text, "-", context)
    except RelaxError:  # meant to be wrong
        return 0
    before, expected, compared = str(module), _evaluated(module.operation), 0
    for pipeline in pipelines:
        after = _run(module, pipeline)
        assert str(module) == before, f"{pipeline} changed its input"
        if after is not None:
            _check_result(after, pipeline, expected)
            compared += len(expected)
    return compared


def _check_result(after: ir.Operation, pipeline: str, expected: Expected) -> None:
    check_module(after)
    if "," not in pipeline:
        again = pass_manager.run(after, pipeline)
        assert str(again) == str(after), f"{pipeline} is not idempotent"
    for name, (inputs, weights, wanted) in expected.items():
        got = run_entry(after, name, inputs, weights)
        tolerance = max((t for pass_, t in TOLERANCES.items() if pass_ in pipeline), default=0.0)
        same = [_equal(a, b, tolerance) for a, b in zip(wanted, got, strict=True)]
        assert all(same), f"{pipeline} changed what @{name} computes"


def _equal(want: np.ndarray, got: np.ndarray, tolerance: float) -> bool:
    if not tolerance or not is_float(want.dtype):
        return np.array_equal(want, got, equal_nan=want.dtype.kind == "f")
    tolerance = max(tolerance, 8 * float(ml_dtypes.finfo(want.dtype).eps))
    want, got = want.astype(np.float64), got.astype(np.float64)
    largest = np.abs(want).max(initial=0, where=np.isfinite(want))
    return np.allclose(got, want, rtol=tolerance, atol=tolerance * largest, equal_nan=True)


def _run(module: ir.Module, pipeline: str) -> ir.Operation | None:
    """The result, None for a module that the pipeline refuses. The pass manager verifies after each pass."""
    try:
        return pass_manager.run(module, pipeline)
    except RelaxError as error:
        assert error.__cause__ is not None, f"{pipeline} left invalid IR: {error}"  # a pass that refuses raises the cause
        return None


def _evaluated(module: ir.Operation) -> Expected:
    """Inputs, weights and results of each entry function that can be run; some call declarations, or want other sizes."""
    found: Expected = {}
    for function in entry_functions(module):
        name, rng = name_of(function), np.random.default_rng(7)
        try:
            inputs, weights = arguments_for(module, name, rng), raw_weights(module, name, rng)
            found[name] = (inputs, weights, run_entry(module, name, inputs, weights))
        except (RelaxError, KeyError):
            continue
    return found


@pytest.mark.parametrize("folder", sorted({p.relative_to(ROOT).parts[0] for p in ROOT.rglob("*.mlir")}))
def test_on_modules_of_lit_tests(folder):
    context = new_context()
    for name, text in lit_modules(folder):
        try:
            check_contracts(text, context)
        except Exception as error:
            raise AssertionError(f"{name}: {error}") from error


def test_modules_of_lit_tests_are_compared_in_meaning():
    context = new_context()
    (path,) = ROOT.glob("transforms/lift-transform-params.mlir")
    parts = re.split(r"^// -----.*$", path.read_text(), flags=re.M)
    assert sum(check_contracts(part, context) for part in parts) > 10 * len(PIPELINES)


@pytest.mark.parametrize("start", range(0, RANDOM_MODULES, CHUNK))
def test_on_random_modules(start):
    context, compared = new_context(), 0
    for seed in range(start, start + CHUNK):
        try:
            pipelines = random.Random(seed).sample(PIPELINES, PIPELINES_PER_MODULE)
            compared += check_contracts(random_module(seed), context, pipelines)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert compared > CHUNK * PIPELINES_PER_MODULE // 2


def test_random_modules_are_of_all_kinds():
    text = "\n".join(random_module(seed) for seed in range(RANDOM_MODULES))
    ops = ["stop_lift_params", "hint_on_device", "to_vdevice", "concat", "match_cast", "dequantize", "matmul", "constant"]
    other = ["scf.if", "scf.for", "scf.while", "func.call", "relax.vdevices", 'relax.lift = "never"', 'sym = ["b"]']
    for wanted in [*(f'"relax.{op}"' for op in ops), *other]:
        assert text.count(wanted) > 10, wanted
    assert random_module(7) == random_module(7)


@pytest.mark.parametrize("name", PASSES)
def test_pass_has_its_own_lit_file_and_shows_the_ir_before_and_after(name):
    cls = pass_manager.registered()[name]
    stem = name.removeprefix("relax-")
    assert (ROOT / "transforms" / f"{stem}.mlir").exists()
    assert cls.__module__.rpartition(".")[2] == stem.replace("-", "_")
    text = sys.modules[cls.__module__].__doc__ or ""
    assert "Before::" in text
    assert "after::" in text
