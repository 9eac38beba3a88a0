"""Numbers beyond what narrow weights hold are refused, and nothing stays of a preparation that can never go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir import RelaxError
from relaxir.runtime.narrow_limits import ScaleLimits
from relaxir.weights import write_safetensors
from relaxir.weights.casts import BFLOAT16_LIMIT, has_beyond, has_nonfinite

F32_MAX = float(np.finfo(np.float32).max)

#: By how weights are stored, the greatest number that is, and one that is not, in f32.
LIMITS = {
    "bf16": (float(ml_dtypes.finfo(ml_dtypes.bfloat16).max), np.float32(BFLOAT16_LIMIT)),
    "q8_0": (65487.0 * 127, 65505.0 * 127),
    "q4_0": (65471.0 * 8, 65505.0 * 8),
    "int4": (float(np.nextafter(np.float32(BFLOAT16_LIMIT), np.float32(0))), F32_MAX),
}


def module(names: str = "a", dtype: str = "f32") -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        y = b.input("x", ("n", 64))
        for name in names:
            weight = b.weight(name, (64, 64), dtype)
            y = b.matmul(y, b.permute_dims(weight if dtype == "f32" else b.astype(weight, "f32"), axes=[1, 0]))
        b.output(y=y)
    return b.build()


def weight(number: float, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    found = np.random.default_rng(1).standard_normal((64, 64)).astype(dtype)
    found[3, 5] = number
    return found


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", LIMITS)
def test_numbers_up_to_the_limit(kind: str, sign: int) -> None:
    greatest, beyond = LIMITS[kind]
    exe = rx.compile(module(), weights=kind)
    exe.bind(exe.prepare({"a": weight(sign * greatest)}))
    got = exe(np.eye(64, dtype=np.float32))
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got[5, 3], sign * greatest, rtol=0.01)
    text = "numbers that (bf16 holds, got greater ones in f32|integers with scales in b?f16 hold)"
    with pytest.raises(RelaxError, match=f"weights: weight 'a': expected {text}"):
        exe.prepare({"a": weight(sign * beyond)})


@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_what_is_not_finite_hides_nothing(number: float) -> None:
    exe = rx.compile(module(), weights="bf16")
    found = weight(number)
    assert exe.prepare({"a": found}).report.notes == ("not finite: a",)
    found[0, 0] = 3.4e38
    with pytest.raises(RelaxError, match="weight 'a': expected numbers that bf16 holds, got greater ones in f32"):
        exe.prepare({"a": found})


@pytest.mark.parametrize("kind", ["int8", "bf16"])
def test_narrow_files_have_no_limit(kind: str) -> None:
    """Of eight bits with scales in f32 that is all of f32, of bf16 files all of bf16."""
    exe = rx.compile(module(), weights=kind)
    exe.bind(exe.prepare({"a": weight(3.3e38, ml_dtypes.bfloat16)}))
    assert np.isfinite(exe(np.eye(64, dtype=np.float32))).all()


@pytest.mark.parametrize("kind", ["q8_0", "q4_0"])
@pytest.mark.parametrize("form", ["gguf", "safetensors"])
def test_weights_for_others(tmp_path: Path, kind: str, form: str) -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("n", 64)), b.permute_dims(b.weight("a.weight", (64, 64)))))
    exe = rx.compile(b.build(), weights=kind)
    write_safetensors(tmp_path / "a.safetensors", {"a.weight": weight(1e7)})
    (tmp_path / "out").mkdir()
    text = r"a.safetensors': weight 'a.weight': expected numbers that integers with scales in f16 hold"
    with pytest.raises(RelaxError, match=text):
        exe.prepare(tmp_path / "a.safetensors", tmp_path / "out" / f"model.{form}", format=form)
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_limits_of_dtypes(dtype: Any) -> None:
    info = ml_dtypes.finfo(dtype)
    for limit in (2.0, 3.1, float(info.max), BFLOAT16_LIMIT):
        for number in (1.9, 2, 3, 3.2, float(info.max)):
            for value in (number, -number):
                array = np.array([0, value], dtype)
                is_beyond = abs(float(array[1])) >= limit
                assert (has_nonfinite(array, limit), has_beyond(array, limit)) == (is_beyond, is_beyond)
        assert has_nonfinite(np.array([np.nan], dtype), limit)
        assert not has_beyond(np.array([np.nan], dtype), limit)


def test_what_is_no_scale_has_no_limit() -> None:
    limits = ScaleLimits(rx.compile(module()).manifest)
    assert limits.problem("a", np.full(3, np.inf, np.float32)) is None


BAD = {"NaN": np.nan, "too great": 1e7}


@pytest.mark.parametrize("shard_size", [None, 5000])
@pytest.mark.parametrize("bad", BAD)
def test_nothing_stays_of_what_cannot_go_on(tmp_path: Path, bad: str, shard_size: int | None) -> None:
    names = "abcd"
    exe = rx.compile(module(names), weights="q8_0")
    tensors = {n: weight(1) for n in names}
    place = tmp_path / "out"
    place.mkdir()
    for source in ("file", "mapping"):
        found: Any = {**tensors, "d": weight(BAD[bad])}
        if source == "file":
            write_safetensors(tmp_path / "in.safetensors", found)
            found = tmp_path / "in.safetensors"
        with pytest.raises(RelaxError, match="weight 'd': expected"):
            exe.prepare(found, place / "p.safetensors", shard_size=shard_size)
        assert not list(place.iterdir())


@pytest.mark.parametrize("shard_size", [None, 5000])
def test_what_was_interrupted_before_goes_too(tmp_path: Path, shard_size: int | None) -> None:
    names = "abcd"
    exe = rx.compile(module(names), weights="q8_0")
    write_safetensors(tmp_path / "in.safetensors", {n: weight(np.nan if n == "d" else 1) for n in names})
    place = tmp_path / "out"
    place.mkdir()

    def stop(progress: Any) -> None:
        if progress.steps_done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exe.prepare(tmp_path / "in.safetensors", place / "p.safetensors", shard_size=shard_size, progress=stop)
    assert list(place.iterdir())  # an interruption is continued
    with pytest.raises(RelaxError, match="weight 'd': expected finite numbers"):
        exe.prepare(tmp_path / "in.safetensors", place / "p.safetensors", shard_size=shard_size)
    assert not list(place.iterdir())


def test_a_mapping_in_several_files_is_not_continued(tmp_path: Path) -> None:
    names = "abcd"
    exe = rx.compile(module(names), weights="q8_0")

    def stop(progress: Any) -> None:
        if progress.steps_done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exe.prepare({n: weight(1) for n in names}, tmp_path / "p.safetensors", shard_size=5000, progress=stop)
    assert not list(tmp_path.iterdir())
