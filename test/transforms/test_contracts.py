"""What every pass of the registry keeps, on the modules of all lit tests and on random ones (docs: design, section 3)."""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relaxir.dialect.context import new_context
from relaxir.dialect.op import verifying_once
from relaxir.dialect.passes import manager
from support.contracts import check_contracts
from support.module_generator import random_module
from support.random_pipelines import ELEMENTS, PASSES, random_pipeline

ROOT = Path(__file__).resolve().parents[1]

PIPELINES = [
    *PASSES,
    "relax-lift-transform-params{shared=true}",
    "relax-lift-transform-params{growth-slack=0 max-total-growth=1.2}",
    "relax-lift-transform-params{shared=true growth-slack=0 max-growth=1},relax-lift-transform-params{functions=main}",
    "relax-lift-transform-params,relax-lazy-transform-params",
    "relax-lift-transform-params,relax-lazy-get-input,relax-lazy-set-output",
    "relax-lift-transform-params,relax-lazy-transform-params,relax-schedule-lazy-io",
    "relax-lift-transform-params{shared=true},relax-lazy-transform-params,relax-lift-transform-params",
    "relax-lazy-get-input{callback=functions}",
    "relax-lazy-get-input,relax-lazy-set-output{callback=functions},canonicalize,cse,relax-canonicalize,symbol-dce",
    "relax-lift-transform-params,relax-lazy-transform-params{callback=functions extra-get=rank:i64 extra-set=rank},cse",
    "relax-lazy-set-output,relax-lazy-get-input{addressing=name extra-get=rank:index},relax-lift-transform-params",
    "relax-inline-private-functions,relax-canonicalize,relax-lift-transform-params,canonicalize,cse,relax-lift-transform-params",
    "relax-remove-unused-parameters,canonicalize,relax-lift-transform-params,relax-remove-unused-parameters,symbol-dce",
    "relax-lift-transform-params,relax-realize-vdevice,relax-canonicalize,relax-lift-transform-params",
    "relax-expand-tuple-arguments{public=true}",
    "relax-bundle-model-params,relax-expand-tuple-arguments{public=true},relax-compute-shape-values,cse",
    "relax-lift-transform-params,relax-bundle-model-params,relax-lift-transform-params",
    "relax-bundle-model-params,relax-lift-transform-params,relax-lazy-transform-params",
    "relax-lift-transform-params,relax-bundle-model-params,relax-lazy-get-input{functions=main},relax-lazy-transform-params",
    "relax-lift-transform-params{shared=true},relax-bundle-model-params,relax-lift-transform-params,relax-bundle-model-params",
    "relax-remove-unused-outputs,relax-canonicalize,relax-remove-unused-parameters,relax-bundle-model-params",
    "relax-update-vdevice{from=cuda:0 to=cpu:0}",
    "relax-convert-layout{gainful=true}",
    "relax-pack-weights{tile=8},relax-sink-growth,relax-group-packed-rows{bf16=2},relax-lift-transform-params",
    "relax-group-packed-rows{bf16=3},relax-pack-weights{tile=8},relax-sink-growth,relax-share-packed-weights",
    "relax-realize-vdevice,relax-lift-transform-params{shared=true},relax-update-vdevice{from=cpu:1 to=cpu:0}",
]
#: Another number makes it a longer search for failures, 1000 in `.ci/run`; ``test/support/contracts.py`` reduces what it finds.
RANDOM_MODULES = int(os.environ.get("RELAXIR_RANDOM_MODULES", "350"))
# All pipelines on all modules would take a quarter of an hour of a core: each sees some 60. Of the lit tests' modules all see
# every pass, and a fifth of what combines passes. `make fuzz ONLY=pipelines` goes on.
PIPELINES_PER_MODULE = 3
# Modules per test, and tests per folder of lit files: each is small enough to be reported, and they keep all workers busy.
CHUNK, PARTS = 50, 4
ORDERS = 50


def lit_modules(folder: str) -> Iterator[tuple[str, str]]:
    """The parts of all lit files of a folder, each with a name."""
    for path in sorted((ROOT / folder).rglob("*.mlir")):
        for number, part in enumerate(re.split(r"^// -----.*$", path.read_text(), flags=re.M)):
            yield f"{path.name}:{number}", part


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("folder", sorted({p.relative_to(ROOT).parts[0] for p in ROOT.rglob("*.mlir")}))
def test_on_modules_of_lit_tests(folder, part):
    context = new_context()
    with verifying_once():
        for number, (name, text) in enumerate(list(lit_modules(folder))[part::PARTS]):
            try:
                check_contracts(text, context, [*PASSES, *PIPELINES[len(PASSES) + number % 5 :: 5]])
            except Exception as error:
                raise AssertionError(f"{name}: {error}") from error


def test_modules_of_lit_tests_are_compared_in_meaning():
    context = new_context()
    (path,) = ROOT.glob("transforms/lift-transform-params.mlir")
    parts = re.split(r"^// -----.*$", path.read_text(), flags=re.M)
    with verifying_once():
        assert sum(check_contracts(part, context, PIPELINES) for part in parts) > 10 * len(PIPELINES)


@pytest.mark.parametrize("start", range(0, RANDOM_MODULES, CHUNK))
def test_on_random_modules(start):
    context, compared = new_context(), 0
    with verifying_once():
        for seed in range(start, start + CHUNK):
            rng = random.Random(seed)
            pipelines = [*rng.sample(PIPELINES, PIPELINES_PER_MODULE), random_pipeline(rng)]
            try:
                compared += check_contracts(random_module(seed), context, pipelines)
            except Exception as error:
                raise AssertionError(f"seed {seed}: {error}") from error
    assert compared > CHUNK * PIPELINES_PER_MODULE // 2


@settings(max_examples=ORDERS, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), order=st.lists(st.sampled_from(ELEMENTS), min_size=1, max_size=6))
def test_in_any_order(seed, order):
    check_contracts(random_module(seed), new_context(), [",".join(order)])


def test_random_modules_are_of_all_kinds():
    text = "\n".join(random_module(seed) for seed in range(150))
    ops = ["stop_lift_params", "hint_on_device", "to_vdevice", "concat", "match_cast", "dequantize", "matmul", "constant"]
    other = ["scf.if", "scf.for", "scf.while", "func.call", "relax.vdevices", 'relax.lift = "never"', 'sym = ["b"]']
    for wanted in [*(f'"relax.{op}"' for op in ops), *other]:
        assert text.count(wanted) > 10, wanted
    assert random_module(7) == random_module(7)


@pytest.mark.parametrize("name", PASSES)
def test_pass_has_its_own_lit_file_and_shows_the_ir_before_and_after(name):
    cls = manager.registered()[name]
    stem = name.removeprefix("relax-")
    assert (ROOT / "transforms" / f"{stem}.mlir").exists()
    assert cls.__module__.rpartition(".")[2] == stem.replace("-", "_")
    text = sys.modules[cls.__module__].__doc__ or ""
    assert "Before::" in text
    assert "after::" in text
