"""Every op of the dialect through the interpreter: what any reference function must keep, on the samples of the lit tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaxir.dialect import symbolic
from relaxir.dialect.bindings import ir
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.op import EffectOp
from relaxir.dialect.reference.apply import apply_op
from relaxir.dialect.reference.scope import Scope
from relaxir.dialect.struct_info import TensorInfo
from support.op_samples import SIZES, Sample, inputs_of, load, op_of, samples

LOADED: dict[str, ir.Module] = {}
# The value of a prim_value is a number; functions of other libraries are in test_extern.py.
PURE = [s for s in samples() if s.family not in ("io", "extern") and s.name != "prim_value"]


def sample_op(sample: Sample) -> EffectOp:
    if sample.family not in LOADED:
        LOADED[sample.family] = load(sample.family)
    return op_of(LOADED[sample.family], sample.name)


def run(op: EffectOp, inputs: list[Any]) -> list[np.ndarray[Any, Any]]:
    scope = Scope()
    for name, size in SIZES.items():
        scope.bind([symbolic.symbol(name)], [size], "the test")
    with op.context:
        return apply_op(op, inputs, scope)


@pytest.mark.parametrize("sample", PURE, ids=str)
def test_results_have_the_types_that_the_ir_says(sample: Sample) -> None:
    op = sample_op(sample)
    results = run(op, inputs_of(op))
    assert len(results) == len(op.results)
    for result, value in zip(results, op.results, strict=True):
        info = TensorInfo.of(value)
        assert isinstance(result, np.ndarray)
        assert result.dtype == numpy_dtype(info.dtype)
        assert result.ndim == info.rank
        known = [(s, d) for s, d in zip(result.shape, info.shape, strict=True) if d is not None]
        assert all(size == symbolic.evaluate(dim, SIZES) for size, dim in known)
        assert result.flags.c_contiguous


@pytest.mark.parametrize("sample", PURE, ids=str)
def test_results_are_arrays_of_their_own(sample: Sample) -> None:
    op = sample_op(sample)
    inputs = inputs_of(op)
    before = [x.copy() for x in inputs]
    results = run(op, inputs)
    for result in results:
        assert result.flags.writeable
        assert not any(np.shares_memory(result, x) for x in inputs)
        result.fill(0)
    for x, kept in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(x, kept)
    again = run(op, inputs)
    assert not any(np.shares_memory(a, b) for a in again for b in results)


@pytest.mark.parametrize("sample", PURE, ids=str)
def test_strided_inputs_give_the_same_results(sample: Sample) -> None:
    op = sample_op(sample)
    inputs = inputs_of(op)
    strided = [np.repeat(x[..., None], 2, axis=-1)[..., 0] for x in inputs]
    for plain, other in zip(run(op, inputs), run(op, strided), strict=True):
        np.testing.assert_array_equal(plain.astype(np.float64), other.astype(np.float64))
        assert other.flags.c_contiguous
