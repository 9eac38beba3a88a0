"""Padding by what edges repeat or mirror, of known and of open sizes, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim, export

import relaxir as rx

SIZES = {1: (2, 3, 9), 2: (2, 3, 8, 9), 3: (1, 2, 5, 6, 7)}
AMOUNTS = {
    1: [(2, 3), (0, 4), (8, 0), (-2, 3), (4, -1), (-1, -3)],
    2: [(1, 3, 2, 1), (0, 0, 5, 0), (-1, 2, 3, -2)],
    3: [(1, 2, 3, 4, 0, 2), (0, 3, -1, 0, 1, 1)],
}  # fmt: skip


class Pad(nn.Module):
    def __init__(self, amounts: tuple[int, ...], mode: str):
        super().__init__()
        self.amounts, self.mode = amounts, mode

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.pad(x, self.amounts, mode=self.mode)


def compiled(module: nn.Module, x: torch.Tensor, dims: Any = None) -> rx.Executable:
    return rx.compile(rx.from_torch(export(module, (x,), dynamic_shapes=dims)))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_known_sizes(mode: str, rank: int) -> None:
    for amounts in AMOUNTS[rank]:
        for x in (torch.randn(SIZES[rank]), torch.randn(SIZES[rank])[0]):  # one without a batch
            module = Pad(amounts, mode)
            np.testing.assert_array_equal(compiled(module, x)(x), module(x))


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_open_sizes(mode: str) -> None:
    module = Pad((1, 3, 2, 4), mode)
    n, h, w = (Dim(name, min=5, max=40) for name in "nhw")
    exe = compiled(module, torch.randn(6, 3, 7, 8), ({0: n, 2: h, 3: w},))
    for sizes in [(5, 3, 5, 5), (6, 3, 40, 9), (7, 3, 6, 33)]:
        x = torch.randn(sizes)
        np.testing.assert_array_equal(exe(x), module(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.int64])
def test_dtypes(dtype: torch.dtype) -> None:
    x = torch.arange(24).reshape(2, 3, 4).to(dtype)
    for mode in ("reflect", "replicate") if dtype != torch.int64 else ("replicate",):
        module = Pad((2, 1), mode)
        assert torch.equal(torch.as_tensor(compiled(module, x)(x)), module(x))


def test_a_mirror_that_is_too_small_is_refused() -> None:
    module = Pad((3, 0), "reflect")
    exe = compiled(module, torch.randn(2, 9), ({1: Dim("n", min=4, max=20)},))
    with pytest.raises(rx.RelaxError):
        exe(torch.randn(2, 3))
