"""relax-quantize-weights: how far elements are off, and modules compiled with narrow weights."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.reports.weights import QuantizedWeights

SIZES = 64, 24


def product(dtype: str = "f32", rows: int | str = "n") -> rx.Module:
    """``x @ w.T`` and rows of the same weight."""
    b = rx.Builder()
    with b.function("main"):
        x, i = b.input("x", (rows, SIZES[0]), dtype), b.input("i", (2,), "i64")
        w = b.weight("w", SIZES[::-1], dtype)
        b.output(y=b.matmul(x, b.permute_dims(w, axes=[1, 0])), rows=b.take(w, i, axis=0))
    return b.build()


def weight(seed: int) -> np.ndarray:
    """Groups of all sizes: of zeros, of one sign, with ends that differ in sign alone."""
    w = np.random.default_rng(seed).standard_normal(SIZES[::-1]).astype(np.float32)
    w[0, :32], w[1], w[2, 0], w[2, 1] = 0, np.abs(w[1]), 5, -5
    w[3] *= 1e-42  # so small that a scale is no normal number
    return w


#: What the largest of a group has at most where no scale is so small: 127 times half the least number that stores one.
LEAST = {"f32": 2e-43, "bf16": 127 * 2.0**-134, "f16": 127 * 2.0**-25}


@pytest.mark.parametrize(("options", "bound", "group"), [
    ("bits=8", 1 / 254, 64), ("bits=8 group=16", 1 / 254, 16), ("bits=4 group=32", 1 / 8, 32), ("bits=4", 1 / 8, 64),
    ("bits=8 scale=bf16", (1 + 2**-8) / 254, 64), ("bits=4 group=32 scale=bf16", (1 + 7 * 2**-8) / 8, 32),
    ("bits=4 group=32 scale=f16", (1 + 7 * 2**-11) / 8, 32),
])  # fmt: skip
def test_elements_are_off_by_no_more_than_the_report_says(options, bound, group):
    module = product()
    narrow = module.run(f"relax-quantize-weights{{{options}}}")
    (section,) = [s for s in narrow.report.sections if isinstance(s, QuantizedWeights)]
    (entry,) = section.narrow
    assert (section.bound, entry.group) == (bound, group)
    w, i = weight(0), np.array([0, 5])
    scales = w.size // group * (4 if entry.scale == "f32" else 2)
    assert (entry.before, entry.after) == (w.nbytes, w.size * entry.bits // 8 + scales)
    got, rows = rx.evaluate(narrow, "main", np.eye(SIZES[0], dtype=np.float32), i, weights={"w": w})
    largest = np.repeat(np.abs(w).reshape(SIZES[1], -1, group).max(2), group, 1)
    off = np.abs(got.T - w)
    assert (off <= largest * bound * (1 + 1e-5) + LEAST[entry.scale]).all()
    assert off[4:].max() > 0
    assert not off[0, :32].any()
    np.testing.assert_array_equal(rows, w[i])  # what is looked up stays as it is


def test_the_largest_of_a_group_is_exact_with_four_bits():
    w, i = weight(1), np.array([0, 0])
    narrow = product().run("relax-quantize-weights{bits=4 group=32}")
    got, _ = rx.evaluate(narrow, "main", np.eye(SIZES[0], dtype=np.float32), i, weights={"w": w})
    groups, found = w[4:].reshape(-1, 32), got.T[4:].reshape(-1, 32)
    at = np.abs(groups).argmax(1)[:, None]
    np.testing.assert_allclose(np.take_along_axis(found, at, 1), np.take_along_axis(groups, at, 1), rtol=1e-6)


@pytest.mark.parametrize(("dtype", "rows"), [("f32", 1), ("f32", "n"), ("bf16", 7)])
@pytest.mark.parametrize(("weights", "options"), [("int8", "bits=8"), ("int4", "bits=4 group=32 scale=bf16")])
def test_compiled(weights, options, dtype, rows):
    module = product(dtype, rows)
    element = np.float32 if dtype == "f32" else ml_dtypes.bfloat16
    raw = {"w": weight(2).astype(element)}
    count = 40 if rows == "n" else rows
    x = np.random.default_rng(3).standard_normal((count, SIZES[0])).astype(element)
    i = np.array([3, 23])
    executable = rx.compile(module, weights=weights)
    executable.bind(executable.prepare(raw))
    expected = rx.evaluate(module.run(f"relax-quantize-weights{{{options}}}"), "main", x, i, weights=raw)
    y, looked_up = executable(x, i)
    scale = np.abs(expected[0].astype(np.float32)).max()
    np.testing.assert_allclose(y.astype(np.float32), expected[0].astype(np.float32), rtol=0, atol=scale * 1e-2)
    np.testing.assert_array_equal(looked_up, expected[1])
    bits = sum(8 * w.array.nbytes for w in executable.entries["main"].weights if w.array.dtype != element)
    assert bits <= 32 * SIZES[0] * (int(weights[3:]) + 2)  # columns are padded to a panel, at most 32
    assert "1 weight quantized" in str(executable.report)


def test_bf16_weights():
    module, raw = product(), {"w": weight(4)}
    executable = rx.compile(module, weights="bf16")
    executable.bind(executable.prepare(raw))
    x, i = np.random.default_rng(5).standard_normal((3, SIZES[0])).astype(np.float32), np.array([3, 23])
    y, looked_up = executable(x, i)
    np.testing.assert_allclose(y, x @ raw["w"].T, rtol=0, atol=0.2)
    np.testing.assert_array_equal(looked_up, raw["w"][i])
    assert {str(w.array.dtype) for w in executable.entries["main"].weights} == {"bfloat16", "float32"}


def test_entries_share_what_is_quantized():
    b = rx.Builder()
    for name, rows in (("prefill", "n"), ("decode", 1)):
        with b.function(name):
            x, w = b.input("x", (rows, 64)), b.weight("w", (96, 64), "f32")
            b.output(b.matmul(x, b.permute_dims(w, axes=[1, 0])))
    executable = rx.compile(b.build(), weights="int4")
    prefill, decode = ([w.name for w in executable.entries[name].weights] for name in ("prefill", "decode"))
    assert prefill == decode
    assert len(prefill) == 2  # integers and scales


def test_refused():
    with pytest.raises(rx.RelaxError, match="expected weights as bf16, int8, int4, q8_0, q4_0 or None, got 'int2'"):
        rx.compile(product(), weights="int2")
    with pytest.raises(rx.RelaxError, match="expected weights or a pipeline"):
        rx.compile(product(), weights="int4", pipeline="relax-canonicalize")
