"""What is a formula of several ops, in f16 and bf16 of numbers whose squares f16 does not hold: rounded once, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

import relaxir as rx
from support import models

FORMULAS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    **{f"norm {p}": lambda x, y, p=p: x.norm(p=p, dim=1) for p in (0.5, 1, 2, 3, 4, float("inf"), 0)},
    "norm of all": lambda x, y: x.norm(),
    "std": lambda x, y: x.std(1),
    "std_mean": lambda x, y: torch.std_mean(x, 1)[0],
    "normalize": lambda x, y: functional.normalize(x, dim=1),
    "cosine_similarity": functional.cosine_similarity,
    "dist": lambda x, y: torch.dist(x, y),
    "dist 3": lambda x, y: torch.dist(x, y, 3),
    "pairwise_distance": functional.pairwise_distance,
    "triplet_margin": lambda x, y: functional.triplet_margin_loss(x, y, x.flip(0), reduction="none"),
    "bilinear": lambda x, y: functional.bilinear(x, y, x[:2, :, None].sign() * y[:2, None].sign()),
    **{f"round to {d}": lambda x, y, d=d: x.round(decimals=d) for d in (-2, -1, 0, 1, 3)},
    "logsumexp": lambda x, y: x.logsumexp(1),
    "layer_norm": lambda x, y: functional.layer_norm(x, x.shape[1:]),
    "instance_norm": lambda x, y: functional.instance_norm(x[:, None]),
}


class Formula(nn.Module):
    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return FORMULAS[self.name](x, y)


@pytest.mark.parametrize("scale", [1, 300, 1e-3])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name: str, dtype: torch.dtype, scale: float) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = ((torch.randn(3, 65, generator=generator) * scale).to(dtype) for _ in range(2))
    with models.quiet():
        module = rx.from_torch(torch.export.export(Formula(name), (x, y)))
    got, plain = rx.compile(module)(x, y).double(), Formula(name)(x, y).double()
    exact = Formula(name)(x.double(), y.double()).to(dtype).double()
    # One rounding, of a number next to the middle to the other side; or as far off as PyTorch is where that rounds more often.
    finite, known = torch.isfinite(exact), torch.finfo(dtype)
    off = (plain - exact).abs()[finite].max() if finite.any() else 0
    allowed = torch.clamp(exact.abs() * known.eps, min=1.5 * float(off)) + known.smallest_normal * known.eps
    assert torch.equal(torch.isfinite(got), finite)
    assert ((got - exact).abs() <= allowed)[finite].all(), ((got - exact).abs() / allowed)[finite].max()
