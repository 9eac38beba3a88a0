"""Graphs that PyTorch quantized: PT2E's and torchao's give what torch gives, and stay integers as far as kernels take them."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import relaxir as rx

# It says of each library for GPUs that it is not there.
logging.disable(logging.WARNING)
with warnings.catch_warnings(action="ignore"):
    from torchao.quantization import (
        Int8DynamicActivationInt8WeightConfig,
        Int8DynamicActivationIntxWeightConfig,
        Int8WeightOnlyConfig,
        IntxWeightOnlyConfig,
        quantize_,
    )
    from torchao.quantization.granularity import PerGroup
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
logging.disable(logging.NOTSET)


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, stride=2)
        self.last = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.second(torch.relu(self.first(x))).mean((2, 3)))


class Linears(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, 128), nn.Linear(128, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.first(x)))


def compare(model: Any, x: torch.Tensor, folder: Path) -> rx.Module:
    """Compiled and evaluated, with the weights as torch saves them; to the rounding of sums in f32."""
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        program = torch.export.export(model, (x,))
        expected = model(x).numpy()
    module = rx.from_torch(program)
    rx.save_weights(program, folder / "w.safetensors")
    executable = rx.compile(module)
    executable.bind(executable.prepare(folder / "w.safetensors"))
    np.testing.assert_allclose(executable(x.numpy()), expected, rtol=0, atol=2e-6 * np.abs(expected).max())
    return module


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_pt2e(tmp_path: Path, is_dynamic: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 16, 16)
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_dynamic=is_dynamic))
    with warnings.catch_warnings(action="ignore"), torch.no_grad():
        prepared = prepare_pt2e(torch.export.export(Convolutions().eval(), (x,)).module(), quantizer)
        prepared(x)
        module = compare(convert_pt2e(prepared), x, tmp_path)
    text = str(module.run("relax-quantize-convolutions"))
    assert text.count('"relax.quantized_conv2d"') == 2
    weights = {w.name: w.dtype for w in module.functions["main"].weights}
    assert [dtype for name, dtype in weights.items() if "frozen" in name] == ["i8"] * 3
    assert not any("zero_point" in name for name in weights)  # they are all 0


@pytest.mark.parametrize(
    "config",
    [
        Int8WeightOnlyConfig(),
        Int8DynamicActivationInt8WeightConfig(),
        IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
        Int8DynamicActivationIntxWeightConfig(weight_granularity=PerGroup(32)),
    ],
    ids=lambda c: type(c).__name__,
)
def test_torchao(tmp_path: Path, config: Any) -> None:
    torch.manual_seed(0)
    model = Linears().eval()
    quantize_(model, config)
    module = compare(model, torch.randn(5, 64), tmp_path)
    weights = {w.name: w.dtype for w in module.functions["main"].weights}
    assert (weights["first.weight.qdata"], weights["first.weight.scale"]) == ("i8", "f32")


class Packed(nn.Module):
    """What modules of four bits have in common: eight codes in an integer, zeros and scales of groups of 32 rows."""

    def __init__(self, weights: tuple[int, int], zeros: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("qweight", torch.randint(-(2**31), 2**31, weights).int())
        self.register_buffer("qzeros", torch.randint(-(2**31), 2**31, (zeros, outputs // 8)).int())
        self.register_buffer("scales", torch.rand(zeros, outputs) * 0.01)


class Gptq(Packed):
    """As GPTQModel's modules of PyTorch compute, which transformers puts into a model: codes along the rows."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__((inputs // 8, outputs), inputs // 32, outputs)
        self.register_buffer("g_idx", (torch.arange(inputs) // 32).int())
        self.register_buffer("wf", torch.arange(0, 32, 4).int()[None], persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        zeros = torch.bitwise_right_shift(self.qzeros.unsqueeze(2).expand(-1, -1, 8), self.wf.unsqueeze(0)).to(torch.int8) & 15
        codes = torch.bitwise_right_shift(self.qweight.unsqueeze(1).expand(-1, 8, -1), self.wf.unsqueeze(-1)).to(torch.int8)
        codes, rows = (codes & 15).reshape(-1, self.scales.shape[1]), self.g_idx.long()
        return x @ (self.scales[rows] * (codes - zeros.reshape(self.scales.shape)[rows]))


class Awq(Packed):
    """As AutoAWQ's: codes along the columns, in another order."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__((inputs, outputs // 8), inputs // 32, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        codes, zeros = self.unpacked(self.qweight), self.unpacked(self.qzeros)
        return x @ ((codes - zeros.repeat_interleave(32, 0)) * self.scales.repeat_interleave(32, 0))

    def unpacked(self, packed: torch.Tensor) -> torch.Tensor:
        codes = torch.bitwise_right_shift(packed[:, :, None], torch.arange(0, 32, 4).int()).to(torch.int8)
        return codes[:, :, [0, 4, 1, 5, 2, 6, 3, 7]].reshape(packed.shape[0], -1) & 15


@pytest.mark.parametrize("kind", [Gptq, Awq])
def test_modules_of_four_bits(tmp_path: Path, kind: Any) -> None:
    """What they unpack is prepared as bytes, not as floats."""
    torch.manual_seed(0)
    model = kind(1024, 512).eval()
    module = compare(model, torch.randn(5, 1024), tmp_path)
    executable = rx.compile(module)
    assert '"relax.dequantize"' in executable.module_text
    sizes = {str(w.array.dtype): w.array.nbytes for w in executable.manifest.prepared_weights.values()}
    assert sizes["int8"] == 1024 * 512
    assert sizes["float32"] == 1024 // 32 * 512 * 4


Q = torch.ops.quantized_decomposed
SCALES, POINTS = torch.tensor([0.02, 0.05, 0.1]), torch.tensor([3, -4, 0])


def per_channel(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    codes = Q.quantize_per_channel(x, SCALES, POINTS, 1, -7, 100, torch.int8)
    return codes, Q.dequantize_per_channel(codes, SCALES, POINTS, 1, -7, 100, torch.int8)


def per_tensor(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    codes = Q.quantize_per_tensor(x, 0.03, 100, 0, 127, torch.uint8)
    return codes, Q.dequantize_per_tensor(codes, 0.03, 100, 0, 127, torch.uint8, out_dtype=torch.float32)


def symmetric(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale, zero = Q.choose_qparams_symmetric.tensor(x, -127, 127, 1e-6, torch.int8)
    codes = Q.quantize_per_tensor.tensor(x, scale, zero, -127, 127, torch.int8)
    return codes, Q.dequantize_per_tensor.tensor(codes, scale, zero, -127, 127, torch.int8)


def unsigned(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale, zero = Q.choose_qparams_symmetric.tensor(x, 0, 255, 1e-6, torch.uint8)
    return scale, zero


def in_groups(x: torch.Tensor) -> tuple[torch.Tensor]:
    codes = torch.round(x.reshape(6, 8) * 10).to(torch.int8)
    scales = torch.arange(1, 13).reshape(12) / 10
    return (Q.dequantize_per_channel_group(codes, scales, torch.arange(12), -128, 127, torch.int8, 4, torch.float32),)


def products(x: torch.Tensor) -> tuple[torch.Tensor]:
    codes = torch.round(x.reshape(6, 8) * 100).to(torch.int8)
    return (torch._int_mm(codes.repeat(3, 1), codes.t()[:, :4].repeat(1, 2).contiguous()),)


@pytest.mark.parametrize("function", [per_channel, per_tensor, symmetric, unsigned, in_groups, products])
def test_operators(function: Any) -> None:
    """Codes and scales are torch's, of numbers that are in the middle between no codes."""

    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return function(x)

    x = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(1))
    program = torch.export.export(Model(), (x,))
    constants = {name: value.numpy() for name, value in program.constants.items()}
    module = rx.from_torch(program)
    weights = {w.name: constants[w.name] for w in module.functions["main"].weights if w.name in constants}
    found = rx.evaluate(module, "main", x.numpy(), weights=weights or None)
    for got, want in zip(found, function(x), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), want.double().numpy(), rtol=2e-7, atol=0)
        assert str(got.dtype) == str(want.dtype).removeprefix("torch.")
