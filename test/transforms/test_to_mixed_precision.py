"""relax-to-mixed-precision: how far results move, what is narrow afterwards, and whole models compiled that way."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.analysis.work import work
from relaxir.dialect.functions import find_function
from support import models
from support.op_counts import counts

LIFT = "relax-lift-transform-params,relax-canonicalize,cse,symbol-dce"
#: Largest relative error of one rounding: half the distance between neighbours.
UNIT = {"bf16": 2.0**-8, "f16": 2.0**-11}
TWO_LAYERS = """
func.func @main(%x: tensor<?x16xf32, {sym = ["n"]}>, %u: tensor<16x32xf32> {relax.name = "u"},
    %b: tensor<32xf32> {relax.name = "b"}, %v: tensor<32x8xf32> {relax.name = "v"})
    -> tensor<?x8xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %u) : (tensor<?x16xf32, {sym = ["n"]}>, tensor<16x32xf32>) -> tensor<?x32xf32, {sym = ["n"]}>
  %1 = "relax.add"(%0, %b) : (tensor<?x32xf32, {sym = ["n"]}>, tensor<32xf32>) -> tensor<?x32xf32, {sym = ["n"]}>
  %2 = "relax.relu"(%1) : (tensor<?x32xf32, {sym = ["n"]}>) -> tensor<?x32xf32, {sym = ["n"]}>
  %3 = "relax.matmul"(%2, %v) : (tensor<?x32xf32, {sym = ["n"]}>, tensor<32x8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  return %3 : tensor<?x8xf32, {sym = ["n"]}>
}
"""


def pipeline(dtype: str, out: str, more: str = "") -> str:
    return f"relax-to-mixed-precision{{dtype={dtype} out-dtype={out}{more}}}"


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("keeps_sums", [True, False])
def test_results_differ_by_no_more_than_the_roundings(dtype, keeps_sums):
    """Running error analysis: ``e`` bounds how far each value is off, ``u`` is the largest relative error of a rounding.

    Rounding ``a`` adds ``u (|a| + e)``; a product of what is off by ``e`` and ``f`` is off by ``e |w| + |x| f + e f``; relu
    adds nothing. The f32 arithmetic of both sides is covered by the last term, 64 roundings of 2 ** -24.
    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, sections 3.1 and 3.3.
    """
    module = rx.Module.parse(TWO_LAYERS)
    narrow = module.run(pipeline(dtype, "f32" if keeps_sums else dtype))
    rng = np.random.default_rng(0)
    x, u, b, v = (rng.standard_normal(s, np.float32) for s in ((5, 16), (16, 32), (32,), (32, 8)))
    want, got = (rx.evaluate(m, "main", x, weights={"u": u, "b": b, "v": v})[0] for m in (module, narrow))
    unit = UNIT[dtype]

    def rounded(values: np.ndarray, error: np.ndarray | float) -> np.ndarray:
        return error + unit * (np.abs(values) + error)

    def product(a: np.ndarray, e: np.ndarray, w: np.ndarray) -> np.ndarray:
        f = rounded(w, 0)
        return e @ np.abs(w) + np.abs(a) @ f + e @ f

    sums, hidden = x @ u, x @ u + b
    error = rounded(sums, product(x, rounded(x, 0), u))
    error = rounded(hidden, error + rounded(b, 0))
    hidden = np.maximum(hidden, 0)
    error = product(hidden, error, v)
    error = error if keeps_sums else rounded(want, error)
    error += 64 * 2.0**-24 * (np.abs(hidden) @ np.abs(v) + np.abs(x) @ np.abs(u) @ np.abs(v))
    assert (np.abs(got - want) <= error).all()
    assert np.abs(got - want).max() > 0.01 * error.max()  # a bound that says something


@pytest.mark.parametrize(("name", "dtype"), [("resnet18", "bf16"), ("bert", "f16"), ("llama", "bf16")])
def test_models_compiled(name, dtype):
    """Some 64 roundings follow one another; their errors have random signs, so that they add up to 8 of one."""
    model: models.Model = getattr(models, name)()
    program = model.export()
    module = rx.from_torch(program)
    before = "relax-inline-private-functions,relax-fold-batch-norm"
    executable = rx.compile(module, pipeline=f"{before},{pipeline(dtype, dtype)},relax-canonicalize,{LIFT}")
    executable.bind(executable.prepare(models.weights_of(program, module)))
    inputs = model.inputs()
    found = executable(**inputs)
    for want, got in zip(model.eager(inputs), found if isinstance(found, tuple) else (found,), strict=True):
        assert got.numpy().dtype == want.dtype
        assert np.abs(got.numpy() - want).max() <= 8 * UNIT[dtype] * np.abs(want).max()


def test_prepared_weights_are_narrow_and_half_as_many_bytes_are_read():
    module = rx.from_torch(models.resnet18().export())
    plain, narrow = (module.run(f"relax-fold-batch-norm,{first}{LIFT}") for first in ("", f"{pipeline('bf16', 'bf16')},"))
    assert {str(w.dtype) for w in plain.functions["main"].weights} == {"f32"}
    assert {str(w.dtype) for w in narrow.functions["main"].weights} == {"bf16"}
    # One cast of the image, one each way around the average pool, one of the result.
    assert counts(narrow) == counts(plain) + Counter(astype=4)
    moved = [work(find_function(m.ir.operation, "main")).at({"batch": 1}).bytes for m in (narrow, plain)]
    assert moved[0] < 0.56 * moved[1]


def test_what_is_kept_stays_in_f32():
    module = rx.from_torch(models.mlp().export())
    weights = [w.name for w in module.functions["main"].weights]
    assert weights == ["up.weight", "up.bias", "down.weight", "down.bias"]
    kept = module.run(f"{pipeline('bf16', 'f32', ' keep=down.*')},relax-canonicalize,{LIFT}")
    dtypes = {w.name.split(".")[0]: str(w.dtype) for w in kept.functions["main"].weights}
    assert dtypes == {"up": "bf16", "down": "f32"}
    assert counts(module.run(pipeline("bf16", "f32", " keep=relax.matmul")))["astype"] == 0
