"""torch's grid_sample at places that are no numbers, infinite, or far outside.

Eager torch has several answers there: bilinear, it takes the first row where a place is no number and borders are repeated;
bicubic, it gives no number. What torch itself decomposes the operator to, for its compiler, is what is held here.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
from torch._decomp import decomposition_table
from torch.nn.functional import grid_sample

import relaxir as rx

MODES, PADDINGS = ("bilinear", "nearest"), ("zeros", "border", "reflection")
CASES = list(itertools.product(range(2), range(3), (True,)))
PLACES = (0.3, -0.9, math.nan, math.inf, -math.inf, 1e10, -1e30, 2.7)


class Sampled(torch.nn.Module):
    def forward(self, x: torch.Tensor, grid: torch.Tensor) -> list[torch.Tensor]:
        return [grid_sample(x, grid, MODES[mode], PADDINGS[padding], corners) for mode, padding, corners in CASES]


def test_places_that_are_no_numbers_give_what_torch_decomposes_to() -> None:
    x = torch.randn(1, 2, 5, 6, generator=torch.Generator().manual_seed(0))
    grid = torch.tensor([[[[a, b] for b in PLACES] for a in PLACES]])
    module = rx.from_torch(torch.export.export(Sampled(), (x, grid)))
    executable = rx.compile(module, cache=False)
    got = executable(x.numpy(), grid.numpy())
    decomposed = decomposition_table[torch.ops.aten.grid_sampler_2d.default]
    for case, y in zip(CASES, got, strict=True):
        np.testing.assert_allclose(y, decomposed(x, grid, *case).numpy(), rtol=1e-5, atol=1e-5, err_msg=str(case))
    inside = torch.tensor([[[[a, b] for b in (0.3, -0.9, 2.7)] for a in (0.3, -0.9, 2.7)]])
    for case, y in zip(CASES, executable(x.numpy(), pad(inside)), strict=True):
        wanted = grid_sample(x, inside, MODES[case[0]], PADDINGS[case[1]], case[2]).numpy()
        np.testing.assert_allclose(y[..., :3, :3], wanted, rtol=1e-5, atol=1e-5, err_msg=str(case))


def test_three_dimensions():
    class Volumes(torch.nn.Module):
        def forward(self, x: torch.Tensor, grid: torch.Tensor) -> list[torch.Tensor]:
            return [grid_sample(x, grid, *case) for case in cases]

    # Each padding with both ways to place corners in each mode takes twice the time, nearly all of it torch's export.
    cases = [(mode, padding, (i + j) % 2 == 0) for i, mode in enumerate(MODES) for j, padding in enumerate(PADDINGS)]

    torch.manual_seed(0)
    x, grid = torch.randn(2, 3, 4, 5, 6), torch.rand(2, 3, 2, 4, 3) * 5 - 2.5
    batch = torch.export.Dim("n", min=2, max=9)
    module = rx.from_torch(torch.export.export(Volumes(), (x, grid), dynamic_shapes=({0: batch}, {0: batch})))
    for y, wanted in zip(rx.evaluate(module, "main", x.numpy(), grid.numpy()), Volumes()(x, grid), strict=True):
        np.testing.assert_allclose(y, wanted.numpy(), rtol=1e-4, atol=1e-4)


def pad(grid: torch.Tensor) -> np.ndarray:
    """A grid of the size that was exported."""
    return np.pad(grid.numpy(), ((0, 0), (0, 5), (0, 5), (0, 0)))


def test_narrow_floats_have_places_of_f32():
    class Both(torch.nn.Module):
        def forward(self, x: torch.Tensor, grid: torch.Tensor, y: torch.Tensor, there: torch.Tensor) -> list[torch.Tensor]:
            return [grid_sample(x, grid, align_corners=False), grid_sample(y, there, align_corners=False)]

    torch.manual_seed(0)
    tensors = torch.randn(2, 3, 40, 50), torch.rand(2, 7, 8, 2) * 2 - 1, torch.randn(1, 2, 9, 50, 6), torch.rand(1, 3, 4, 5, 3)
    inputs = tuple(t.bfloat16() for t in tensors)
    module = rx.from_torch(torch.export.export(Both(), inputs))
    wanted = Both()(*(t.float() for t in inputs))
    for got, exact in zip(rx.compile(module)(*inputs), wanted, strict=True):
        torch.testing.assert_close(got.float(), exact, rtol=1e-2, atol=1e-2)
