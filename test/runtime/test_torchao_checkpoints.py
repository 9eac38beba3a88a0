"""Checkpoints that torchao writes: decoded to what it decodes, bit for bit, and read by products as they are; or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torchao.prototype.mx_formats.mx_tensor import MXTensor
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
from torchao.quantization import (
    Float8WeightOnlyConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8Tensor,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    PerGroup,
    quantize_,
)

import relaxir as rx
from relaxir import RelaxError
from relaxir.dialect.reports.checkpoint import CheckpointWeights
from relaxir.weights.formats.encoded import EncodedSource
from relaxir.weights.opening import decoded, open_tensors
from relaxir.weights.source import read_part

CONFIGS = {
    "int8": Int8WeightOnlyConfig(),
    "int4 in groups": IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
    "int8 beside activations": Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int8, weight_granularity=PerGroup(32)),
    "float8": Float8WeightOnlyConfig(),
}


def state(how: Any, dtype: torch.dtype = torch.bfloat16) -> dict[str, Any]:
    """The state of a quantized layer ``fc`` of 64 outputs, with a bias."""
    torch.manual_seed(0)
    model = torch.nn.ModuleDict({"fc": torch.nn.Linear(96, 64)}).to(dtype)
    quantize_(model, how)
    return {name: value.detach() for name, value in model.state_dict().items()}


def folder(path: Path, tensors: dict[str, Any]) -> Path:
    """As transformers saves it."""
    flat, metadata = flatten_tensor_state_dict(tensors)
    save_file({n: t.contiguous() for n, t in flat.items()}, path / "model.safetensors", metadata)
    (path / "config.json").write_text(json.dumps({"quantization_config": {"quant_method": "torchao"}}))
    return path


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("how", CONFIGS)
def test_decoded_as_torchao_does(tmp_path: Path, how: str, dtype: torch.dtype) -> None:
    tensors = state(CONFIGS[how], dtype)
    source = decoded(open_tensors(folder(tmp_path, tensors)))
    assert isinstance(source, EncodedSource)
    assert set(source) == {"fc.weight", "fc.bias"}
    want = tensors["fc.weight"].dequantize()
    assert want.dtype == dtype
    np.testing.assert_array_equal(source.get("fc.weight").astype(np.float32), want.float().numpy())


@pytest.mark.parametrize("how", ["int4 in groups", "float8"])
def test_products_read_them_as_they_are(tmp_path: Path, how: str) -> None:
    tensors = state(CONFIGS[how], torch.float32)
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("n", 96)), b.permute_dims(b.weight("fc.weight", (64, 96)))))
    exe = rx.compile(b.build(), checkpoint=folder(tmp_path, tensors))
    exe.bind(exe.prepare(tmp_path))
    (section,) = [s for s in exe.report.sections if isinstance(s, CheckpointWeights)]
    assert (len(section.kept), len(section.decoded)) == (1, 0)
    assert sum(w.array.nbytes for w in exe.manifest.prepared_weights.values()) <= 96 * 64 * 1.2  # bytes, and scales
    weight, x = tensors["fc.weight"].dequantize().numpy(), np.random.default_rng(1).standard_normal((5, 96), np.float32)
    # Sums of 96 products in another order, in f32.
    assert (np.abs(exe(x) - x @ weight.T) <= 96 * np.finfo(np.float32).eps * (np.abs(x) @ np.abs(weight).T)).all()


@pytest.mark.parametrize("shape", [(96,), (1, 96), (1,), ()])
def test_factors_of_inputs_are_those_of_columns(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """torchao multiplies a layer's inputs by ``act_pre_scale``, as AWQ and SmoothQuant want it."""
    plain = state(CONFIGS["int8"], torch.float32)["fc.weight"]
    factors = torch.rand(shape, generator=torch.Generator().manual_seed(1)) + 0.5
    weight = Int8Tensor(plain.qdata, plain.scale, plain.block_size, plain.dtype, act_pre_scale=factors)
    weight.act_quant_scale, x = torch.ones(1, 1), torch.eye(96)
    path = folder(tmp_path, {"fc.weight": weight})
    want = (plain.dequantize() * factors).numpy()
    np.testing.assert_allclose(torch.nn.functional.linear(x, weight).numpy().T, want, rtol=1e-6)
    source = decoded(open_tensors(path))
    assert set(source) == {"fc.weight"}
    np.testing.assert_array_equal(source.get("fc.weight"), want)
    np.testing.assert_array_equal(read_part(source, "fc.weight", {0: [(3, 7)]}), want[3:7])
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("n", 96)), b.permute_dims(b.weight("fc.weight", (64, 96)))))
    exe = rx.compile(b.build(), checkpoint=path)
    exe.bind(exe.prepare(path))
    np.testing.assert_allclose(exe(np.eye(96, dtype=np.float32)).T, want, rtol=1e-6)
    assert "a factor for each input (act_pre_scale)" in str(exe.report)


def in_blocks(kind: str, dtype: torch.dtype, n: int = 160) -> Any:
    """A weight of ``n`` outputs and 96 inputs as torchao's narrow floats."""
    torch.manual_seed(0)
    w, (what, _, swizzled) = torch.randn(n, 96, dtype=dtype), kind.partition(" ")
    if what == "nvfp4":
        whole = None if swizzled else per_tensor_amax_to_scale(w.abs().max())
        return NVFP4Tensor.to_nvfp4(w, 16, whole, is_swizzled_scales=bool(swizzled))
    element = {"mxfp4": torch.float4_e2m1fn_x2, "mxfp8": torch.float8_e4m3fn, "mxfp8-e5m2": torch.float8_e5m2}[what]
    return MXTensor.to_mx(w, element, 32, is_swizzled_scales=bool(swizzled))


BLOCKS = ("mxfp8", "mxfp8-e5m2", "mxfp8 swizzled", "mxfp4", "mxfp4 swizzled", "nvfp4", "nvfp4 swizzled")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("kind", BLOCKS)
def test_floats_in_blocks_are_decoded_as_torchao_does(tmp_path: Path, kind: str, dtype: torch.dtype) -> None:
    weight = in_blocks(kind, dtype)
    source = decoded(open_tensors(folder(tmp_path, {"fc.weight": weight})))
    want = weight.dequantize()
    assert want.dtype == dtype
    np.testing.assert_array_equal(source.get("fc.weight").astype(np.float32), want.float().numpy())


#: Exponents of blocks: the least, which makes numbers that f32 has as subnormal ones alone, those around 1, the greatest, NaN.
EXPONENTS = [0, 1, 126, 127, 128, 253, 254, 255]
#: Scales of NVFP4 in e4m3: zeros, the least subnormal and normal ones, the greatest, NaN.
EIGHTHS = [0x00, 0x80, 0x01, 0x07, 0x08, 0x38, 0x7E, 0x7F]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("kind", ["mxfp8", "mxfp8-e5m2", "mxfp4", "nvfp4"])
def test_all_codes_and_the_ends_of_scales(tmp_path: Path, kind: str, dtype: torch.dtype) -> None:
    """Every code of an element with every scale at the ends of what there is, bit for bit, NaN where torchao has it."""
    weight = in_blocks(kind, dtype, 256)
    data, scale = weight.qdata.view(torch.uint8), weight.scale.view(torch.uint8)
    generator = torch.Generator().manual_seed(1)
    data.copy_(torch.randint(0, 256, data.shape, generator=generator, dtype=torch.uint8))
    data.reshape(-1)[:256] = torch.arange(256, dtype=torch.uint8)
    ends = torch.tensor(EIGHTHS if kind == "nvfp4" else EXPONENTS, dtype=torch.uint8)
    scale.copy_(ends[torch.randint(0, len(ends), scale.shape, generator=generator)])
    got = decoded(open_tensors(folder(tmp_path, {"fc.weight": weight}))).get("fc.weight").astype(np.float32)
    want = weight.dequantize().float().numpy()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(got[numbers].view(np.uint32), want[numbers].view(np.uint32))
    assert numbers.any()
    assert not numbers.all()


@pytest.mark.parametrize("kind", ["mxfp8 swizzled", "nvfp4 swizzled"])
def test_rows_of_swizzled_scales(tmp_path: Path, kind: str) -> None:
    weight = in_blocks(kind, torch.float32, 256)
    source = decoded(open_tensors(folder(tmp_path, {"fc.weight": weight})))
    for begin, end in ((0, 128), (128, 256), (3, 130)):
        got = read_part(source, "fc.weight", {0: [(begin, end)]})
        np.testing.assert_array_equal(got, weight.dequantize().numpy()[begin:end])


@pytest.mark.parametrize(("kind", "bits"), [("mxfp8", 8.25), ("mxfp8 swizzled", 8.25), ("mxfp4", 4.25), ("nvfp4", 4.5)])
def test_products_read_floats_in_blocks_as_they_are(tmp_path: Path, kind: str, bits: float) -> None:
    weight = in_blocks(kind, torch.float32)
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("n", 96)), b.permute_dims(b.weight("fc.weight", (160, 96)))))
    exe = rx.compile(b.build(), checkpoint=folder(tmp_path, {"fc.weight": weight}))
    exe.bind(exe.prepare(tmp_path))
    (section,) = [s for s in exe.report.sections if isinstance(s, CheckpointWeights)]
    assert (len(section.kept), len(section.decoded)) == (1, 0)
    assert sum(w.array.nbytes for w in exe.manifest.prepared_weights.values()) <= 96 * 160 * bits / 8 + 128  # and tables
    wide, x = weight.dequantize().numpy(), np.random.default_rng(1).standard_normal((5, 96), np.float32)
    # Sums of 96 products in another order, in f32.
    assert (np.abs(exe(x) - x @ wide.T) <= 96 * np.finfo(np.float32).eps * (np.abs(x) @ np.abs(wide).T)).all()


E4M3 = torch.float8_e4m3fn


@pytest.mark.parametrize(
    ("kind", "data", "tensors", "message"),
    [
        ("MXTensor", {"block_size": 32}, {}, r"tensor 'fc._weight_qdata': expected elem_dtype float8_e4m3fn, .*, got None"),
        ("NVFP4Tensor", {"block_size": 5}, {}, r"tensor 'fc._weight_qdata': expected blocks that 32 inputs divide into, got 5"),
        ("NVFP4Tensor", {}, {"scale": torch.ones(4, 3).to(E4M3)}, r"'fc._weight_scale': expected shape \[4, 2\]"),
        ("NVFP4Tensor", {"is_swizzled_scales": True}, {}, r"'fc._weight_scale': expected shape \[32, 16\], got \[4, 2\]"),
        ("NVFP4Tensor", {}, {"per_tensor_scale": torch.ones(2)}, r"tensor 'fc._weight_per_tensor_scale': expected shape \[\]"),
        ("NVFP4Tensor", {}, {"scale": torch.ones(4, 2)}, r"tensor 'fc._weight_scale': expected float8_e4m3fn of rank 2"),
    ],
)  # fmt: skip
def test_damaged_floats_in_blocks(
    tmp_path: Path, kind: str, data: dict[str, Any], tensors: dict[str, Any], message: str
) -> None:
    given = {"qdata": torch.zeros(4, 16, dtype=torch.uint8), "scale": torch.ones(4, 2).to(E4M3)} | tensors
    text = json.dumps({"_type": kind, "_data": data})
    save_file({f"fc._weight_{n}": t for n, t in given.items()}, tmp_path / "model.safetensors", {"fc.weight": text})
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": {"quant_method": "torchao"}}))
    with pytest.raises(RelaxError, match=message):
        decoded(open_tensors(tmp_path))


def test_other_classes_are_refused(tmp_path: Path) -> None:
    text = json.dumps({"_type": "Int4Tensor", "_data": {}})
    save_file({"fc._weight_qdata": torch.zeros(2, 2, dtype=torch.int8)}, tmp_path / "model.safetensors", {"fc.weight": text})
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": {"quant_method": "torchao"}}))
    message = r"tensor 'fc.weight': expected a class of torchao out of Int8Tensor, .*, got 'Int4Tensor': load the model by"
    with pytest.raises(RelaxError, match=message):
        decoded(open_tensors(tmp_path))


@pytest.mark.parametrize(
    ("tensors", "metadata", "message"),
    [
        ({}, {}, r"tensor 'fc._weight_scale': expected it beside the others of its layer, got none"),
        (
            {"scale": torch.ones(5, 1)},
            {},
            r"tensor 'fc._weight_scale': expected a number of blocks that divides each of \[4, 2\]",
        ),
        ({"scale": torch.ones(4, 1)}, {"fc.weight": '{"_type"'}, r"metadata of tensor 'fc.weight': expected a JSON object"),
        (
            {"scale": torch.ones(4, 1), "zero_point": torch.ones(3, 1, dtype=torch.int8)},
            {},
            r"tensor 'fc._weight_zero_point': expected shape \[4, 1\], got \[3, 1\]",
        ),
        (
            {"scale": torch.ones(4, 1), "act_pre_scale": torch.ones(4)},
            {},
            r"tensor 'fc._weight_act_pre_scale': expected shape \[2\] or \[1, 2\] or \[\] or \[1\], got \[4\]",
        ),
        (
            {"scale": torch.ones(4, 1), "outlier_rows": torch.ones(4)},
            {},
            r"tensor 'fc._weight_outlier_rows': expected beside a quantized weight one out of _qdata, _scale, _zero_point, "
            r"_act_pre_scale, _act_quant_scale, _act_quant_zero_point, got one that may change its numbers",
        ),
        (
            {"scale": torch.ones(4, 1), "act_pre_scale": torch.ones(2)},
            {"fc.weight": '{"_type": "IntxUnpackedToInt8Tensor"}'},
            r"tensor 'fc._weight_act_pre_scale': expected beside a quantized weight one out of _qdata, _scale, _zero_point, ",
        ),
        (
            {"qdata": torch.zeros(4, 2).to(E4M3), "scale": torch.ones(4, 1), "zero_point": torch.zeros(4, 1)},
            {},
            r"tensor 'fc._weight_zero_point': expected none beside f8E4M3FN\[4, 2\], got one",
        ),
    ],
)
def test_damaged_ones_are_refused(tmp_path: Path, tensors: dict[str, Any], metadata: dict[str, str], message: str) -> None:
    given = {"fc._weight_qdata": torch.zeros(4, 2, dtype=torch.int8)} | {f"fc._weight_{n}": t for n, t in tensors.items()}
    save_file(given, tmp_path / "model.safetensors", metadata)
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": {"quant_method": "torchao"}}))
    with pytest.raises(RelaxError, match=message):
        decoded(open_tensors(tmp_path))


def test_pickles_of_its_classes_are_refused(tmp_path: Path) -> None:
    """Whether torch knows the classes, as it does once torchao is imported, or not."""
    torch.save(state(CONFIGS["int8"]), tmp_path / "m.pt")
    message = r"m.pt'.*expected .*: save the model as safetensors, or export it by torch.export and import the program"
    with pytest.raises(RelaxError, match=message):
        open_tensors(tmp_path / "m.pt")


def test_a_state_dict_in_memory() -> None:
    """Tensors of tensors are taken apart under the names that an imported program has for them."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.Linear(16, 32)).eval()
    quantize_(model, Int8WeightOnlyConfig())
    x = torch.randn(5, 32)
    exe = rx.compile(rx.from_torch(torch.export.export(model, (x,))))
    tensors = dict(model.state_dict())
    exe.bind(exe.prepare(tensors))
    torch.testing.assert_close(torch.as_tensor(exe(x)), model(x), atol=1e-5, rtol=1e-4)
    assert isinstance(tensors["0.weight"], Int8Tensor)
    with pytest.raises(RelaxError, match=r"weights: tensor '0.weight.qdata': expected it once, got it twice"):
        exe.prepare({**tensors, "0.weight.qdata": torch.zeros(1)})


def test_a_state_dict_for_another_program() -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("n", 96)), b.permute_dims(b.weight("fc.weight", (64, 96)))))
    text = r"weight 'fc.weight': expected f32\[64, 96\], got none.*\n.*'fc.weight' of a class Int8Tensor.*rx.save_weights"
    with pytest.raises(RelaxError, match=text):
        rx.compile(b.build()).prepare(state(Int8WeightOnlyConfig()))
