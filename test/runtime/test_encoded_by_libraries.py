"""Checkpoints that the formats' own libraries write are decoded to what these libraries decode, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bitsandbytes.functional as bnb
import numpy as np
import pytest
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from safetensors.torch import save_file

import relaxir as rx
from relaxir.weights import ArraySpec
from relaxir.weights.formats.encoded import EncodedSource
from relaxir.weights.opening import decoded, open_tensors


def opened(path: Path, config: dict[str, Any], tensors: dict[str, torch.Tensor]) -> EncodedSource:
    save_file({n: t.contiguous() for n, t in tensors.items()}, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps({"quantization_config": config}))
    source = decoded(open_tensors(path))
    assert isinstance(source, EncodedSource)
    return source


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_nf4(tmp_path: Path, nested: bool, dtype: torch.dtype) -> None:
    """Rows are whole blocks of 64: bitsandbytes 0.50 decodes others wrong on CPUs, by up to 1.5 for its own integers."""
    weight = torch.randn(48, 128, generator=torch.Generator().manual_seed(1)).to(dtype)
    stored, state = bnb.quantize_4bit(weight, quant_type="nf4", compress_statistics=nested)
    tensors = {"w.weight": stored} | {f"w.weight.{n}": t for n, t in state.as_dict(packed=True).items()}
    source = opened(tmp_path, {"quant_method": "bitsandbytes", "load_in_4bit": True}, tensors)
    got = source.serving({"w.weight": ArraySpec(np.dtype(np.float32), (48, 128))}).get("w.weight")
    want = bnb.dequantize_4bit(stored, state).float().numpy()
    np.testing.assert_array_equal(got, want)


def product(n: int, k: int) -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("m", k)), b.permute_dims(b.weight("w.weight", (n, k)))))
    return b.build()


@pytest.mark.parametrize("storage", [torch.uint8, torch.bfloat16, torch.float16, torch.float32, torch.int8])
@pytest.mark.parametrize("nested", [False, True])
def test_four_bits_stored_as_other_dtypes(tmp_path: Path, storage: torch.dtype, nested: bool) -> None:
    """``bnb_4bit_quant_storage``, as FSDP wants it."""
    weight = torch.randn(24, 64, generator=torch.Generator().manual_seed(1))
    stored, state = bnb.quantize_4bit(weight, quant_storage=storage, compress_statistics=nested, quant_type="nf4")
    want = bnb.dequantize_4bit(stored, state).float().numpy()
    for form in (stored, stored.T):
        tensors = {"w.weight": form} | {f"w.weight.{e}": t for e, t in state.as_dict(packed=True).items()}
        source = opened(tmp_path, {"quant_method": "bitsandbytes", "load_in_4bit": True}, tensors)
        np.testing.assert_array_equal(source.get("w.weight"), want)
        np.testing.assert_array_equal(source.read_part("w.weight", {0: [(1, 4), (7, 8)]}), want[[1, 2, 3, 7]])
        part = np.frombuffer(stored.contiguous().view(torch.uint8).numpy().tobytes(), np.uint8)[3:7]
        own = source.serving({"w.weight": ArraySpec(np.dtype(np.uint8), (768, 1) if form is stored else (1, 768))})
        axis = 0 if form is stored else 1
        np.testing.assert_array_equal(own.read_part("w.weight", {axis: [(3, 7)]}).reshape(-1), part)
        exe = rx.compile(product(24, 64), checkpoint=tmp_path)
        exe.bind(exe.prepare(tmp_path))
        np.testing.assert_allclose(exe(np.eye(64, dtype=np.float32)).T, want, rtol=1e-6)


def test_another_checkpoint_of_nested_four_bits(tmp_path: Path) -> None:
    """Each has an offset of its own, which is no part of the code."""
    wanted = list[np.ndarray]()
    for seed in (1, 2):
        path = tmp_path / str(seed)
        path.mkdir()
        weight = torch.randn(24, 64, generator=torch.Generator().manual_seed(seed)) * seed
        stored, state = bnb.quantize_4bit(weight, quant_type="nf4", compress_statistics=True)
        tensors = {"w.weight": stored} | {f"w.weight.{e}": t for e, t in state.as_dict(packed=True).items()}
        opened(path, {"quant_method": "bitsandbytes", "load_in_4bit": True}, tensors)
        wanted.append(bnb.dequantize_4bit(stored, state).float().numpy())
    exe = rx.compile(product(24, 64), checkpoint=tmp_path / "1")
    for seed, want in zip((1, 2), wanted, strict=True):
        exe.bind(exe.prepare(tmp_path / str(seed)))
        np.testing.assert_allclose(exe(np.eye(64, dtype=np.float32)).T, want, rtol=1e-6)


@pytest.mark.parametrize("kind", ["nf4", "fp4"])
@pytest.mark.parametrize("n", [1, 3, 64, 131])
def test_four_bits_of_one_input(tmp_path: Path, n: int, kind: str) -> None:
    """Of an odd number of rows the last byte has a nibble that is no row."""
    weight = torch.randn(n, 1, generator=torch.Generator().manual_seed(1))
    stored, state = bnb.quantize_4bit(weight, quant_type=kind)
    tensors = {"w.weight": stored} | {f"w.weight.{e}": t for e, t in state.as_dict(packed=True).items()}
    source = opened(tmp_path, {"quant_method": "bitsandbytes", "load_in_4bit": True}, tensors)
    want = bnb.dequantize_4bit(stored, state).float().numpy()
    np.testing.assert_array_equal(source.get("w.weight"), want)
    np.testing.assert_array_equal(source.read_part("w.weight", {0: [(n // 2, n)]}), want[n // 2 :])
    exe = rx.compile(product(n, 1), checkpoint=tmp_path)
    exe.bind(exe.prepare(tmp_path))
    np.testing.assert_array_equal(exe(np.ones((1, 1), np.float32)).T, want)


def test_eight_bits_of_rows(tmp_path: Path) -> None:
    weight = torch.randn(24, 64, generator=torch.Generator().manual_seed(1)).half()
    stored, greatest, _ = bnb.int8_vectorwise_quant(weight)
    tensors = {"w.weight": stored, "w.SCB": greatest, "w.weight_format": torch.tensor(0, dtype=torch.uint8)}
    source = opened(tmp_path, {"quant_method": "bitsandbytes", "load_in_8bit": True}, tensors)
    assert set(source) == {"w.weight"}
    want = bnb.int8_vectorwise_dequant(stored, greatest).numpy()
    # Its library divides by 127 after it has multiplied.
    np.testing.assert_allclose(source.get("w.weight"), want, rtol=2 * np.finfo(np.float32).eps)
    assert source.weights["w.weight"].narrow == "8 bits, a scale per output"


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("group", [32, None])
def test_pack_quantized(tmp_path: Path, bits: int, symmetric: bool, group: int | None) -> None:
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(40, 96, generator=generator).to(torch.bfloat16)
    groups = 1 if group is None else 96 // group
    top = 1 << bits - 1
    tensors = {
        "weight": weight,
        "weight_scale": torch.rand(40, groups, generator=generator).add(0.5).mul(2 / top).to(torch.bfloat16),
    }
    if not symmetric:
        tensors["weight_zero_point"] = torch.randint(-top, top, (40, groups), generator=generator, dtype=torch.int8)
    strategy = "channel" if group is None else "group"
    arguments = QuantizationArgs(num_bits=bits, type="int", symmetric=symmetric, strategy=strategy, group_size=group)
    scheme = QuantizationScheme(targets=["Linear"], weights=arguments, format="pack-quantized")
    compressor = BaseCompressor.get_value_from_registry("pack-quantized")
    packed = compressor.compress(dict(tensors), scheme)
    config = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"g": {"weights": {"group_size": group}}},
    }
    source = opened(tmp_path, config, {f"w.{n}": t for n, t in packed.items()})
    want = compressor.decompress(dict(packed), scheme)["weight"].to(torch.bfloat16)
    got = source.serving({"w.weight": ArraySpec(np.dtype("float32"), (40, 96))}).get("w.weight")
    np.testing.assert_array_equal(torch.from_numpy(got).to(torch.bfloat16).float().numpy(), want.float().numpy())
