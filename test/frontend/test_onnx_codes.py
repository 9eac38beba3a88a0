"""Element types of ONNX that relax has as codes: floats of few bits against ml_dtypes, files with such weights, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import relaxir as rx
from relaxir import backend
from support.onnx_models import model

Array = np.ndarray[Any, Any]
_FLOATS = {
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
}


def _casts(kind: int) -> onnx.ModelProto:
    """Down, down without saturation, and what the first one stands for."""
    nodes = [helper.make_node("Cast", ["x"], [f"y{s}.{to}"], to=to, saturate=s) for to in _FLOATS for s in (1, 0)]
    nodes += [helper.make_node("Cast", [f"y1.{to}"], [f"z.{to}"], to=TensorProto.FLOAT) for to in _FLOATS]
    return model(nodes, {"x": (kind, ["n"])}, [n.output[0] for n in nodes], opset=25)


def _numbers() -> Array:
    """Bits at random, numbers of the types' own range, and what is in the middle between two."""
    random = np.random.default_rng(0)
    every = random.integers(0, 1 << 32, 3000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = (random.standard_normal(3000) * 2.0 ** random.integers(-18, 18, 3000)).astype(np.float32)
    found = [every[~np.isnan(every)], near, np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)]
    for dtype in _FLOATS.values():
        codes = np.arange(16 if dtype is ml_dtypes.float4_e2m1fn else 256, dtype=np.uint8)
        values = np.sort(codes.view(dtype).astype(np.float32))
        values = values[np.isfinite(values)]
        middles = (values[1:] + values[:-1]) / 2
        found += [middles, np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, -np.float32(np.inf))]
    return np.concatenate(found).astype(np.float32)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_floats_of_few_bits_are_those_of_ml_dtypes(kind: int) -> None:
    x = _numbers()
    given = x.astype(helper.tensor_dtype_to_np_dtype(kind))
    found = backend.prepare(_casts(kind)).run([given])
    for i, dtype in enumerate(_FLOATS.values()):
        limits = ml_dtypes.finfo(dtype)
        cut = np.clip(x, np.float32(limits.min), np.float32(limits.max))
        wanted = [v.astype(dtype) for v in (cut, x)]
        for got, want in zip(found[2 * i : 2 * i + 2], wanted, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))
        np.testing.assert_array_equal(found[2 * len(_FLOATS) + i], wanted[0].astype(np.float32))


def test_doubles_are_rounded_once() -> None:
    """Beside the middle by less than f32 has."""
    x = np.array([1.0625 + 2.0**-40, 1.0625, 1.0625 - 2.0**-40])
    (got, *_) = backend.prepare(_casts(TensorProto.DOUBLE)).run([x])
    np.testing.assert_array_equal(got.astype(np.float32), [1.125, 1.0, 1.0])


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_scales_are_exponents(mode: str) -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E8M0, round_mode=mode)
    (got,) = backend.run_model(model([node], {"x": (TensorProto.FLOAT, ["n"])}, ["y"], opset=25), [_numbers()])
    want = numpy_helper.to_float8e8m0(_numbers(), saturate=True, round_mode=mode)
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_weights_of_four_bits_come_from_the_file(tmp_path: Path) -> None:
    w = np.random.default_rng(0).standard_normal((6, 8)).astype(ml_dtypes.float4_e2m1fn)
    scale = np.array([0.5, 1, 2, 3, 4, 5], np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["r"], axis=0),
        helper.make_node("MatMul", ["x", "r"], ["y"]),
    ]
    proto = model(nodes, {"x": (TensorProto.FLOAT, ["n", 6])}, ["y"], {"w": w, "s": scale}, opset=23)
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    executable = rx.compile(path)
    executable.bind(executable.prepare(path))
    x = np.random.default_rng(1).standard_normal((3, 6)).astype(np.float32)
    want = x @ (w.astype(np.float32) * scale[:, None])
    np.testing.assert_allclose(executable(x), want, rtol=1e-5, atol=1e-5)


def test_codes_are_no_numbers() -> None:
    kind = TensorProto.FLOAT8E4M3FNUZ
    for node in (helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("EyeLike", ["x"], ["y"], dtype=kind)):
        with pytest.raises(rx.RelaxError, match="expected an element type that relax computes with, got FLOAT8E4M3FNUZ"):
            rx.from_onnx(model([node], {"x": (kind, [3, 3])}, ["y"]))
