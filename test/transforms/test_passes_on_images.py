"""Passes on convolutions, on random convolutional models: the same results, in any order of passes, and nothing to do twice."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.functions import find_function
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from relaxir.dialect.reference.interpreter import evaluate
from relaxir.dialect.struct_info import TensorInfo
from support.image_modules import image_module

MODULES = 60
EXACT = [
    "relax-fold-batch-norm",
    "relax-convert-layout",
    "relax-convert-layout{gainful=true}",
    "relax-convert-layout,relax-canonicalize,relax-fold-batch-norm,relax-convert-layout{layout=NCHW},relax-canonicalize",
    "relax-fold-batch-norm,relax-convert-layout,relax-canonicalize",
]
COMPILED = (
    "relax-canonicalize,relax-fold-batch-norm,relax-convert-layout,relax-canonicalize,relax-lift-transform-params,"
    "relax-canonicalize,cse,symbol-dce"
)
NARROW = ["relax-to-mixed-precision{dtype=f16}", "relax-convert-layout,relax-to-mixed-precision{dtype=f16 out-dtype=f16}"]


def arguments(module: ir.Operation) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """An image and weights from 0.5 to 1.5, so that a variance is one and little grows."""
    rng = np.random.default_rng(0)
    infos = [TensorInfo.of(a) for a in find_function(module, "main").regions[0].blocks[0].arguments]
    shapes = [[d if isinstance(d, int) else 2 for d in info.shape] for info in infos]
    x, *weights = (rng.uniform(0.5, 1.5, s).astype(numpy_dtype(infos[0].dtype)) for s in shapes)
    return x, {f"w{i}": w for i, w in enumerate(weights)}


def results(module: ir.Operation) -> list[np.ndarray]:
    """What the reference semantics make of those."""
    x, weights = arguments(module)
    return [r.astype(np.float64) for r in evaluate(module, "main", [x], weights)]


def check(text: str, pipelines: list[str], tolerance: float) -> None:
    module = parse_module(text, "-", new_context())
    want = results(module.operation)
    for pipeline in pipelines:
        after = manager.run(module, pipeline)
        assert "," in pipeline or str(manager.run(after, pipeline)) == str(after)
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


def test_compiled_in_nhwc():
    for seed in range(8):
        module = rx.Module.parse(image_module(seed, "f32"))
        x, weights = arguments(module.ir.operation)
        executable = rx.compile(module, pipeline=COMPILED)
        executable.bind(executable.prepare(weights))
        found = executable(x)
        want = rx.evaluate(module, "main", x, weights=weights)
        for a, b in zip(want, found if isinstance(found, tuple) else (found,), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4 * np.abs(a).max(initial=0), err_msg=f"seed {seed}")


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
