"""The rewrites around matrix products: meaning and contracts on random modules, rounding, and less to do at run time."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import relaxir
from fuzzing.matrix_products import PASSES, check
from relaxir.dialect.analysis.size_bounds import symbol_ranges
from relaxir.dialect.analysis.work import Work, work
from relaxir.dialect.context import new_context
from relaxir.dialect.functions import find_function
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from support.matmul_generator import random_matmul_module

HERE = Path(__file__).resolve().parent

# What must not cost more: expanding a sum pays when the order of products is adjusted after.
PROVEN = [PASSES[0], PASSES[3], PASSES[4], "relax-expand-matmul-of-sum,relax-adjust-matmul-order", PASSES[8]]
# When these passes were written 500 modules were run; each takes some 0.2 s.
SEEDS = range(24)


@pytest.mark.parametrize("start", range(0, len(SEEDS), 8))
def test_contracts_on_random_products(start):
    for seed in SEEDS[start : start + 8]:
        try:
            check(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_random_products_are_rewritten_by_every_pass_and_cost_no_more():
    changed = dict.fromkeys(PASSES + PROVEN, 0)
    for seed in range(100, 170):
        module = parse_module(random_matmul_module(seed), "-", new_context())
        module = manager.run(module, "relax-canonicalize,cse,canonicalize")
        low, high = symbol_ranges(find_function(module, "main")).get("n", (1, None))
        sizes = [{"n": n, "m": 7} for n in (low, high or 1000)]
        before = inference_work(module, "relax-canonicalize")
        for pipeline in changed:
            after = manager.run(module, pipeline)
            if str(after) != str(module):
                changed[pipeline] += 1
                found = inference_work(after, "relax-canonicalize")
                costs_more = any(found.at(s).flops > before.at(s).flops for s in sizes)
                assert not (costs_more and pipeline in PROVEN), f"seed {seed}: {pipeline} takes more operations"
    assert {p for p, count in changed.items() if not count} <= {"relax-reorder-take-after-matmul"}, changed


def inference_work(module, pipeline: str) -> Work:
    prepared = manager.run(module, f"{pipeline},relax-lift-transform-params,relax-canonicalize,cse")
    return work(find_function(prepared, "main"))


def example(name: str, function: str) -> str:
    """A function of the lit test of a pass."""
    text = (HERE / f"{name}.mlir").read_text()
    return re.search(rf"^func\.func @{function}\(.*?^}}$", text, re.M | re.S)[0].replace(f"@{function}", "@main")


@pytest.mark.parametrize(
    ("function", "pipeline", "operations", "moved"),
    [
        # less is moved: the left side is read once
        ("combine-parallel-matmul two", "relax-combine-parallel-matmul", 0, -1),
        ("combine-parallel-matmul three_transposed", "relax-combine-parallel-matmul", 0, -1),
        ("combine-parallel-matmul bias_and_activation", "relax-combine-parallel-matmul", 0, -1),
        ("combine-parallel-matmul batched", "relax-combine-parallel-matmul", 0, -1),
        ("reorder-permute-dims-after-concat two", "relax-reorder-permute-dims-after-concat", 0, 0),
        # fewer operations and no copy of gathered weights
        ("reorder-take-after-matmul stack", "relax-reorder-take-after-matmul", -1, -1),
        # more operations, but the weights are not copied
        ("reorder-take-after-matmul adapter_each", "relax-reorder-take-after-matmul{always=true}", 1, -1),
        ("expand-matmul-of-sum adapter", "relax-expand-matmul-of-sum,relax-adjust-matmul-order", -1, -1),
        ("expand-matmul-of-sum several_weights", "relax-expand-matmul-of-sum,relax-adjust-matmul-order", -1, -1),
        ("adjust-matmul-order narrow_weights", "relax-adjust-matmul-order", -1, -1),
        ("adjust-matmul-order wide_weights", "relax-adjust-matmul-order", -1, -1),
        ("adjust-matmul-order square_weights", "relax-adjust-matmul-order", -1, -1),
        ("adjust-matmul-order transposed", "relax-adjust-matmul-order", -1, -1),
        ("adjust-matmul-order few_rows", "relax-adjust-matmul-order", -1, -1),
        ("adjust-matmul-order many_rows", "relax-adjust-matmul-order", -1, None),
    ],
)
def test_inference_has_less_to_do_after_lifting(function, pipeline, operations, moved):
    module = parse_module(example(*function.split()), "-", new_context())
    sizes = {"n": 32 if "many" in function else 8, "b": 8}
    before, after = (inference_work(module, p).at(sizes) for p in ("relax-canonicalize", pipeline))
    assert np.sign(after.flops - before.flops) == operations
    assert moved is None or np.sign(after.bytes - before.bytes) == moved


@pytest.mark.parametrize(
    ("function", "pipeline"),
    [
        ("adjust-matmul-order narrow_weights", "relax-adjust-matmul-order"),
        ("adjust-matmul-order square_weights", "relax-adjust-matmul-order"),
        ("adjust-matmul-order transposed", "relax-adjust-matmul-order"),
        ("expand-matmul-of-sum several_weights", "relax-expand-matmul-of-sum,relax-adjust-matmul-order"),
        ("expand-matmul-of-sum not_proven", "relax-expand-matmul-of-sum{always=true}"),
    ],
)
def test_rounding_stays_within_tolerance(function, pipeline):
    """Sums of k products of numbers around 1 are off by some k rounding errors in either order."""
    module = relaxir.Module.parse(example(*function.split()))
    main, rng = module.functions["main"], np.random.default_rng(3)
    shape = lambda spec: [d if isinstance(d, int) else 5 for d in spec.shape]  # noqa: E731
    inputs = [rng.standard_normal(shape(i), np.float32) for i in main.inputs]
    weights = {w.name: rng.standard_normal(shape(w), np.float32) for w in main.weights}
    expected = relaxir.evaluate(module, "main", *inputs, weights=weights)
    got = relaxir.evaluate(module.run(pipeline), "main", *inputs, weights=weights)
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4 * np.abs(one).max())
