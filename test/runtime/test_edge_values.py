"""Scales of zero, subnormal, largest, infinite and not a number, in each format: what the reference makes of them, by bits."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import gguf
import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.weights import ArraySpec, write_safetensors
from relaxir.weights.formats import encoded
from relaxir.weights.opening import decoded, open_tensors
from support import encoded_weights as write
from support import gguf_files

N, K = 32, 128

#: By dtype: zeros of both signs, the least number, the least normal one, the greatest.
FINITE = {
    dtype: np.array([0.0, -0.0, *(float(v) for v in (info.smallest_subnormal, info.smallest_normal, info.max))], dtype)
    for dtype, info in ((d, ml_dtypes.finfo(d)) for d in map(np.dtype, (np.float16, ml_dtypes.bfloat16, np.float32)))
}
NOT_FINITE = [np.inf, -np.inf, np.nan]

#: The method, its options, the writer, the tensor with scales, and how these lie over a weight [N, K].
SCALED: dict[str, tuple[str, dict[str, Any], Callable[..., Any], str, Callable[[np.ndarray], np.ndarray]]] = {
    "gptq": ("gptq", {"bits": 4, "group_size": 32}, write.gptq, ".scales", lambda s: s.T.repeat(32, 1)),
    "awq": ("awq", {"bits": 4, "group_size": 32}, write.awq, ".scales", lambda s: s.T.repeat(32, 1)),
    "ct": ("compressed-tensors", {}, write.compressed, ".weight_scale", lambda s: s.repeat(32, 1)),
    "ct-f16": (
        "compressed-tensors", {}, partial(write.compressed, dtype=np.float16), ".weight_scale", lambda s: s.repeat(32, 1),
    ),
    "fp8": (
        "fp8", {"weight_block_size": [16, 16]}, partial(write.fp8, block=16), ".weight_scale_inv",
        lambda s: s.repeat(16, 0).repeat(16, 1),
    ),
    "nf4": (
        "bitsandbytes", {"load_in_4bit": True}, partial(write.nf4, nested=False, dtype="float32"), ".weight.absmax",
        lambda s: s.repeat(64).reshape(N, K),
    ),
}  # fmt: skip


def unscaled(name: str, tensors: write.Arrays, weight: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """What scales are multiplied with: floats of the file, or integers."""
    if name == "fp8":
        return tensors[".weight"].astype(np.float32)
    if name == "nf4":
        codes = np.stack([tensors[".weight"] >> 4, tensors[".weight"] & 15], -1).reshape(N, K)
        return tensors[".weight.quant_map"][codes]
    return np.rint(weight / scales.astype(np.float32))


def with_edges(name: str, edges: Callable[[np.dtype[Any]], np.ndarray]) -> tuple[write.Arrays, np.ndarray]:
    """A weight with some scales replaced, and what it means."""
    method = SCALED[name]
    tensors, weight = method[2](np.random.default_rng(0), N, K)
    scales = tensors[method[3]]
    whole = unscaled(name, tensors, weight, method[4](scales))
    chosen = edges(scales.dtype)
    changed = scales.copy()
    changed.reshape(-1)[: chosen.size] = chosen
    with np.errstate(all="ignore"):
        return {**tensors, method[3]: changed}, whole * method[4](changed).astype(np.float32)


def written(path: Path, method: str, config: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Path:
    write_safetensors(path / "model.safetensors", tensors)
    (path / "config.json").write_text(json.dumps({"quantization_config": {"quant_method": method, **config}}))
    return path


def assert_same_numbers(got: np.ndarray, expected: np.ndarray) -> None:
    """Bits, signs of zeros among them; any NaN is like another."""
    is_nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(got), is_nan)
    np.testing.assert_array_equal(got.view(np.uint32)[~is_nan], np.ascontiguousarray(expected).view(np.uint32)[~is_nan])


@pytest.mark.parametrize("by_code", [False, True], ids=["numpy", "compiled"])
@pytest.mark.parametrize("name", SCALED)
def test_scales(tmp_path: Path, name: str, by_code: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded, "_COMPILED", 0 if by_code else 1 << 60)
    tensors, weight = with_edges(name, lambda d: np.concatenate([FINITE[d], np.array(NOT_FINITE, d)]))
    folder = written(tmp_path, *SCALED[name][:2], {f"w{end}": tensor for end, tensor in tensors.items()})
    source = decoded(open_tensors(folder)).serving({"w.weight": ArraySpec(np.dtype(np.float32), (N, K))})
    assert_same_numbers(source.get("w.weight"), weight)


def linear(n: int, k: int, name: str = "w.weight") -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(y=b.matmul(b.input("x", ("m", k)), b.permute_dims(b.weight(name, (n, k)), axes=[1, 0])))
    return b.build()


@pytest.mark.parametrize("name", SCALED)
def test_products_of_finite_scales(tmp_path: Path, name: str) -> None:
    """Rows of the identity: each sum is one number of the weight, but for the sign of a zero; none overflows."""
    tensors, weight = with_edges(name, lambda d: (FINITE[d].astype(np.float64) / [1, 1, 1, 1, 512]).astype(d))
    assert np.isfinite(weight).all()
    folder = written(tmp_path, *SCALED[name][:2], {f"w{end}": tensor for end, tensor in tensors.items()})
    exe = rx.compile(linear(N, K), checkpoint=folder)
    exe.bind(exe.prepare(folder))
    np.testing.assert_array_equal(exe(np.eye(K, dtype=np.float32)), weight.T)


def exponents_and_codes() -> tuple[write.Arrays, np.ndarray]:
    """All 256 exponents with all 16 codes, as MXFP4 has them: ``[1, 32, 256]``."""
    codes = np.tile(np.arange(16, dtype=np.uint8), (256, 2))
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    powers = np.append(np.ldexp(np.float32(1), np.arange(255) - 127), np.float32(np.nan))
    with np.errstate(all="ignore"):
        wide = (values[codes] * powers[:, None]).astype(np.float32)
    scales = np.arange(256, dtype=np.uint8).reshape(1, 256, 1)
    return {"_blocks": (codes[:, 0::2] | codes[:, 1::2] << 4).reshape(1, 256, 1, 16), "_scales": scales}, wide[None].swapaxes(
        1, 2
    )


@pytest.mark.parametrize("by_code", [False, True], ids=["numpy", "compiled"])
def test_exponents_of_mxfp4(tmp_path: Path, by_code: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 ** -127 is subnormal, 6 * 2 ** 127 infinite, 255 no number."""
    monkeypatch.setattr(encoded, "_COMPILED", 0 if by_code else 1 << 60)
    tensors, weight = exponents_and_codes()
    source = decoded(open_tensors(written(tmp_path, "mxfp4", {}, {f"w{end}": t for end, t in tensors.items()})))
    got = source.serving({"w": ArraySpec(np.dtype(np.float32), weight.shape)}).get("w")
    assert_same_numbers(got, np.ascontiguousarray(weight))


def test_products_of_exponents_of_mxfp4(tmp_path: Path) -> None:
    """Columns whose numbers are finite, subnormal ones among them; a column with a NaN is one."""
    tensors, weight = exponents_and_codes()
    folder = written(tmp_path, "mxfp4", {}, {f"w{end}": t for end, t in tensors.items()})
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", ("m", 32)), b.weight("w", (1, 32, 256))
        b.output(y=b.matmul(x, b.squeeze(b.strided_slice(w, axes=[0], begin=[0], end=[1]), axis=[0])))
    exe = rx.compile(b.build(), checkpoint=folder)
    exe.bind(exe.prepare(folder))
    got = exe(np.eye(32, dtype=np.float32))
    finite = np.isfinite(weight[0]).all(0)
    assert finite.sum() == 253
    np.testing.assert_array_equal(got[:, finite], weight[0][:, finite])
    assert np.isnan(got[:, 255]).all()


@pytest.mark.parametrize("by_code", [False, True], ids=["numpy", "compiled"])
def test_bytes_of_fp8(tmp_path: Path, by_code: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All 256, of both kinds: subnormal ones, the largest, NaN, and infinities where there are any."""
    monkeypatch.setattr(encoded, "_COMPILED", 0 if by_code else 1 << 60)
    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        bytes_ = np.arange(256, dtype=np.uint8).reshape(16, 16).view(dtype)
        folder = written(tmp_path, "fp8", {}, {"w.weight": bytes_, "w.weight_scale": np.array(0.5, np.float32)})
        source = decoded(open_tensors(folder)).serving({"w.weight": ArraySpec(np.dtype(np.float32), (16, 16))})
        assert_same_numbers(source.get("w.weight"), bytes_.astype(np.float32) * np.float32(0.5))


@pytest.mark.parametrize("by_code", [False, True], ids=["numpy", "compiled"])
@pytest.mark.parametrize("name", [n for n in gguf_files.BLOCKS if n != "MXFP4"])
def test_scales_of_gguf(tmp_path: Path, name: str, by_code: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each field of f16 of a block is each edge value: as the format's own package decodes it."""
    monkeypatch.setattr(encoded, "_COMPILED", 0 if by_code else 1 << 60)
    kind, rng = gguf_files.BLOCKS[name], np.random.default_rng(0)
    edges = np.concatenate([FINITE[np.dtype(np.float16)], np.array(NOT_FINITE, np.float16)])
    fields = [f for f in kind.fields.values() if f.dtype == "<f2"]
    raw = gguf_files.blocks(rng, name, len(edges) * len(fields), 1, usual=True)
    for row, (field, edge) in enumerate((f, e) for f in fields for e in edges):
        raw[row, field.offset : field.offset + 2] = np.array([edge]).view(np.uint8)
    path = gguf_files.write(tmp_path / "m.gguf", {"w": (raw, gguf.GGMLQuantizationType[name])})
    with np.errstate(all="ignore"):
        expected = gguf.dequantize(raw, gguf.GGMLQuantizationType[name])
    source = decoded(open_tensors(path)).serving({"w": ArraySpec(np.dtype(np.float32), expected.shape)})
    assert_same_numbers(source.get("w"), expected)
