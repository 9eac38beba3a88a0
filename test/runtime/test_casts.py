"""Weights in another dtype than the model's: widened where exact, rounded where asked, refused else; numbers that are none."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir import RelaxError
from relaxir.runtime.prepare import PrepareProgress
from relaxir.weights import Checkpoint, write_safetensors
from relaxir.weights.casts import converted, has_nonfinite, is_exact
from support.hand_compiled import doubling, scaled_executable

FLOATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, ml_dtypes.int4, ml_dtypes.uint4]


def all_values(dtype: Any) -> np.ndarray[Any, Any]:
    """Every number of a narrow dtype; of a wide one the ends and what is around them."""
    dtype = np.dtype(dtype)
    if dtype.itemsize <= 2 and dtype.name not in ("int4", "uint4"):
        return np.arange(1 << 8 * dtype.itemsize, dtype=np.uint32).astype(f"u{dtype.itemsize}").view(dtype)
    known = ml_dtypes.finfo(dtype) if dtype.kind == "f" else ml_dtypes.iinfo(dtype)
    ends = [known.min, known.max] + ([known.smallest_subnormal, 1 + known.eps] if dtype.kind == "f" else [])
    return np.array([0, 1, *ends], dtype)


@pytest.mark.parametrize(("source", "target"), list(product(FLOATS, FLOATS)))
def test_exact_floats_come_back(source: Any, target: Any) -> None:
    values = all_values(source)
    with np.errstate(all="ignore"):
        numbers = values.astype(np.float64)
        there = values.astype(target).astype(np.float64)
        same = (there == numbers) | (np.isnan(there) & np.isnan(numbers))
    assert is_exact(np.dtype(source), np.dtype(target)) == bool(same.all())


@pytest.mark.parametrize(("source", "target"), list(product(INTEGERS, INTEGERS)))
def test_exact_integers_are_within_the_range(source: Any, target: Any) -> None:
    known = ml_dtypes.iinfo(target)
    is_within = all(known.min <= int(v) <= known.max for v in all_values(source))
    assert is_exact(np.dtype(source), np.dtype(target)) == is_within


def test_what_is_no_other_form_of_the_same() -> None:
    for source, target in ((np.int8, np.float32), (np.float16, np.int32), (np.bool_, np.int8), (np.complex64, np.float64)):
        assert not is_exact(np.dtype(source), np.dtype(target))


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_not_finite_is_found(dtype: Any) -> None:
    values = all_values(dtype)
    with np.errstate(invalid="ignore"):
        numbers = values.astype(np.float64)
    assert not has_nonfinite(values[np.isfinite(numbers)])
    for value in [*values[~np.isfinite(numbers)][:9], np.array(np.nan, dtype), -np.array(np.nan, dtype)]:
        for size, at in ((1, 0), (300_000, 0), (300_000, 299_999), (300_000, 1 << 17)):
            array = np.full(size, -1, dtype)
            assert not has_nonfinite(array)
            array[at] = value
            assert has_nonfinite(array), value
    assert not has_nonfinite(np.zeros((0, 3), dtype))


def test_rounding() -> None:
    assert converted(np.array([1 + 2**-8, 1 + 3 * 2**-8]), np.dtype(ml_dtypes.bfloat16)).tolist() == [1.0, 1.015625]
    assert converted(np.array([1e5], np.float32), np.dtype(np.float16)) is None
    assert np.isinf(converted(np.array([np.inf], np.float32), np.dtype(np.float16)))
    assert converted(np.array([300, -3]), np.dtype(np.int16)).tolist() == [300, -3]
    assert converted(np.array([40_000]), np.dtype(np.int16)) is None
    assert converted(np.zeros(0, np.int64), np.dtype(np.int8)).shape == (0,)


def raw(tmp_path: Path, w: np.ndarray[Any, Any], bias: np.ndarray[Any, Any]) -> Path:
    write_safetensors(tmp_path / "raw.safetensors", {"w": w, "bias": bias})
    return tmp_path / "raw.safetensors"


def test_narrower_dtypes_are_widened_and_it_is_said(tmp_path: Path) -> None:
    path = raw(tmp_path, np.array([1, 2, 3, 4], ml_dtypes.bfloat16), np.array([1, 2, 3], ml_dtypes.int4).astype(np.int8))
    report = scaled_executable().prepare(path, tmp_path / "out")
    assert report.notes == ("1 weights widened from bf16 to f32",)
    assert str(report).endswith("\n  1 weights widened from bf16 to f32")
    assert Checkpoint(tmp_path / "out").get("w").tolist() == [2, 4, 6, 8]
    assert report.predicted_peak_bytes == 144 + 8  # the weight as it is stored, beside what it becomes


def test_wider_dtypes_are_rounded_on_request(tmp_path: Path) -> None:
    path = raw(tmp_path, np.array([1, 2, 3, 4 + 1e-12]), np.array([1, 2, 3]))
    executable = scaled_executable()
    text = (
        r"expected 2 weights, got 2 problems\n  weight 'w': expected f32\[4\], got f64\[4\]: cast=True rounds\n"
        r"  weight 'bias': expected i8\[3\], got i64\[3\]: cast=True rounds$"
    )
    with pytest.raises(RelaxError, match=text):
        executable.prepare(path)
    prepared = executable.prepare(path, cast=True)
    assert prepared.report.notes == ("1 weights rounded from f64 to f32", "1 weights rounded from i64 to i8")
    assert {n: a.tolist() for n, a in prepared.items()} == {"w": [2, 4, 6, 8], "bias": [1, 2, 3]}
    path = raw(tmp_path, np.array([1, 2, 3, 1e300]), np.array([1, 2, 3], np.int8))
    with pytest.raises(RelaxError, match="weight 'w': expected numbers that f32 holds, got greater ones in f64"):
        executable.prepare(path, cast=True)
    with pytest.raises(RelaxError, match="expected cast as True or False, got int"):
        executable.prepare(path, cast=1)


def test_another_kind_is_refused_in_any_case(tmp_path: Path) -> None:
    path = raw(tmp_path, np.array([1, 2, 3, 4], np.int8), np.array([1, 2, 3], np.int8))
    with pytest.raises(RelaxError, match=r"weight 'w': expected f32\[4\], got i8\[4\]$"):
        scaled_executable().prepare(path, cast=True)


def test_weights_that_are_not_finite_are_named(tmp_path: Path) -> None:
    path = raw(tmp_path, np.array([1, np.nan, 3, -np.inf], np.float32), np.array([1, 2, 3], np.int8))
    assert scaled_executable().prepare(path).report.notes == ("not finite: w",)


def test_weights_that_are_not_finite_cannot_be_quantized() -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("n", 64)), b.weight("w", (64, 32), "f32")))
    module, weight = b.build(), np.ones((64, 32), np.float32)
    weight[3, 4] = np.inf
    for weights in ("int8", "int4"):
        with pytest.raises(RelaxError, match="weight 'w': expected finite numbers to quantize, got NaN or infinity"):
            rx.compile(module, weights=weights).prepare({"w": weight})
    assert rx.compile(module).prepare({"w": weight}).report.notes == ("not finite: w",)


def test_casting_is_part_of_what_an_interrupted_preparation_goes_on_with(tmp_path: Path) -> None:
    """Under other rules it starts afresh."""

    class StopError(Exception):
        pass

    def stop(progress: PrepareProgress) -> None:
        raise StopError

    executable = doubling(2, 4)
    write_safetensors(tmp_path / "raw", {"a0": np.ones(4, np.float32), "a1": np.zeros(4, np.float32)})
    with pytest.raises(StopError):
        executable.prepare(tmp_path / "raw", tmp_path / "out", 1, stop, rename={"a": "w"})
    other = {"a0": "w1", "a1": "w0"}
    assert executable.prepare(tmp_path / "raw", tmp_path / "out", rename=other).steps_skipped == 0
    assert Checkpoint(tmp_path / "out").get("p0").tolist() == [0] * 4


@pytest.mark.parametrize("dtype", [">f2", ">f4", ">f8"])
def test_another_order_of_bytes_is_looked_at_as_what_it_is(dtype: str) -> None:
    # As numbers of the other order these bytes are NaN, and those of a NaN are a number.
    other = {2: 0x3F7C, 4: 0x3F00807F, 8: 0x3FF000000000F07F}[np.dtype(dtype).itemsize]
    finite = np.full(9, other, f"u{np.dtype(dtype).itemsize}").view(dtype.replace(">", "<")).astype(dtype)
    assert np.isfinite(finite).all()
    assert not has_nonfinite(finite)
    assert has_nonfinite(np.append(finite, np.array(np.nan, dtype)))


@pytest.mark.parametrize("edge", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
def test_numbers_beyond_are_refused_beside_what_is_none(edge: float, narrow: Any) -> None:
    wide = np.array([1.0, edge, 2.0], np.float64)
    assert converted(wide, np.dtype(narrow)) is not None
    assert converted(np.append(wide, 1e300), np.dtype(narrow)) is None
