"""What is made of tables and of places is as exact in f64 as it is in PyTorch: no part of it is rounded to f32."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

import relaxir as rx
from support import models

FORMULAS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "arange": lambda x: torch.arange(0, 1, 0.1, dtype=torch.float64) + x.sum() * 0,
    "whole steps": lambda x: (torch.arange(0, 10, 0.1, dtype=torch.float64) * 10).floor() + x.sum() * 0,
    "arange from a half": lambda x: torch.arange(0.5, 4, dtype=torch.float64) * x[0, 0],
    "linspace": lambda x: torch.linspace(0, 1, 7, dtype=torch.float64) + x.sum() * 0,
    "logspace": lambda x: torch.logspace(0, 1, 7, dtype=torch.float64) + x.sum() * 0,
    "linear": lambda x: functional.interpolate(x[None], size=7, mode="linear"),
    "linear by corners": lambda x: functional.interpolate(x[None], size=7, mode="linear", align_corners=True),
    "bilinear": lambda x: functional.interpolate(x[None, None], size=(7, 5), mode="bilinear"),
    "trilinear": lambda x: functional.interpolate(x[None, None, None], size=(2, 7, 5), mode="trilinear"),
    "bicubic": lambda x: functional.interpolate(x[None, None], size=(7, 5), mode="bicubic"),
    "antialiased": lambda x: functional.interpolate(x[None, None], size=(2, 3), mode="bilinear", antialias=True),
    "avg_pool": lambda x: functional.avg_pool2d(x[None, None], 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "avg_pool by 7": lambda x: functional.avg_pool2d(x[None, None], 2, divisor_override=7),
    "adaptive_avg_pool": lambda x: functional.adaptive_avg_pool2d(x[None, None], (2, 3)),
    "hann": lambda x: x[:, :3] * torch.hann_window(3, dtype=torch.float64),
    "hamming": lambda x: x * torch.hamming_window(4, False, 0.6, 0.3, dtype=torch.float64),
    "kaiser": lambda x: x * torch.kaiser_window(4, True, 7.0, dtype=torch.float64),
    "fft": lambda x: torch.fft.rfft(x).abs(),
    "affine_grid": lambda x: functional.affine_grid(x[None, :2, :3], [1, 1, 3, 7], align_corners=False),
    "grid_sample": lambda x: functional.grid_sample(
        x[None, None], x[None, :, :2, None].expand(1, 3, 2, 2), align_corners=False
    ),
    "quantile": lambda x: x.quantile(0.3, dim=1),
    "std": lambda x: x.std(1),
    "gelu": lambda x: functional.gelu(x) + functional.gelu(x, approximate="tanh"),
    "cdist": lambda x: torch.cdist(x, x + 1),
    "scaled": lambda x: x * 0.1 + 0.3,
}


class Formula(torch.nn.Module):
    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return FORMULAS[self.name](x)


@pytest.mark.parametrize("name", FORMULAS)
def test_nothing_is_rounded_to_f32(name: str) -> None:
    x = torch.rand(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with models.quiet():
        module = rx.from_torch(torch.export.export(Formula(name), (x,)))
    torch.testing.assert_close(rx.compile(module)(x), FORMULAS[name](x), rtol=1e-12, atol=1e-13)
