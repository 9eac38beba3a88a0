"""Passes on convolutions, on random convolutional models: the same results, in any order of passes, and nothing to do twice."""

from __future__ import annotations

import numpy as np
import pytest

from relaxir.dialect import pass_manager
from relaxir.dialect.bindings import ir
from relaxir.dialect.functions import find_function
from relaxir.dialect.parser import parse_module
from relaxir.dialect.reference.interpreter import evaluate
from relaxir.dialect.relax import new_context
from relaxir.dialect.struct_info import TensorInfo
from support.image_modules import image_module

MODULES = 60
EXACT = [
    "relax-fold-batch-norm",
    "relax-convert-layout",
    "relax-convert-layout,relax-canonicalize,relax-fold-batch-norm,relax-convert-layout{layout=NCHW},relax-canonicalize",
    "relax-fold-batch-norm,relax-convert-layout,relax-canonicalize",
]
NARROW = ["relax-to-mixed-precision{dtype=f16}", "relax-convert-layout,relax-to-mixed-precision{dtype=f16 out-dtype=f16}"]


def results(module: ir.Operation) -> list[np.ndarray]:
    """Of arguments from 0.5 to 1.5, so that a variance is one and nothing grows."""
    rng = np.random.default_rng(0)
    arguments = list(find_function(module, "main").regions[0].blocks[0].arguments)
    shapes = [[d if isinstance(d, int) else 2 for d in TensorInfo.of(a).shape] for a in arguments]
    dtype = np.float64 if "f64" in str(arguments[0].type) else np.float32
    x, *weights = (rng.uniform(0.5, 1.5, s).astype(dtype) for s in shapes)
    return [r.astype(np.float64) for r in evaluate(module, "main", [x], {f"w{i}": w for i, w in enumerate(weights)})]


def check(text: str, pipelines: list[str], tolerance: float) -> None:
    module = parse_module(text, "-", new_context())
    want = results(module.operation)
    for pipeline in pipelines:
        after = pass_manager.run(module, pipeline)
        assert "," in pipeline or str(pass_manager.run(after, pipeline)) == str(after)
        for a, b in zip(want, results(after), strict=True):
            np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance * np.abs(a).max(initial=0), err_msg=pipeline)


@pytest.mark.parametrize("start", range(0, MODULES, 20))
def test_equal_but_for_rounding_in_f64(start):
    for seed in range(start, start + 20):
        check(image_module(seed), EXACT, 1e-11)


def test_in_f16_results_are_near():
    """Some ten roundings of 2 ** -11 each, with what is subtracted amplifying some."""
    for seed in range(20):
        check(image_module(seed, "f32"), NARROW, 40 * 2.0**-11)


def test_models_are_of_all_kinds():
    text = "\n".join(image_module(seed) for seed in range(MODULES))
    for wanted in (
        "conv2d",
        "batch_norm",
        "add",
        "concat",
        "max_pool2d",
        "adaptive_avg_pool2d",
        "pad",
        "softmax",
        "permute_dims",
    ):
        assert text.count(f'"relax.{wanted}"') > 3, wanted
