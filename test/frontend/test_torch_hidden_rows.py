"""Attention whose mask hides all keys of a query, which torch answers with zeros, by masks of every origin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn import functional

import relaxir as rx

Tensor = torch.Tensor


def _ones(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool)


def _added(n: int, first: int) -> Tensor:
    return torch.full((n, n), float("-inf")).triu(first)


#: Of sizes alone, and whether some query sees nothing.
_MASKS: dict[str, tuple[Callable[[int], Tensor], bool]] = {
    "causal": (lambda n: _ones(n).tril(), False),
    "strictly causal": (lambda n: _ones(n).tril(-1), True),
    "causal, added": (lambda n: _added(n, 1), False),
    "strictly causal, added": (lambda n: _added(n, 0), True),
    "window": (lambda n: _ones(n).tril() & _ones(n).triu(-2), False),
    "window behind": (lambda n: _ones(n).tril(-2) & _ones(n).triu(-4), True),
    "all but the first keys": (lambda n: (torch.arange(n) >= 7).expand(n, n), True),
    "keys by comparison": (lambda n: torch.arange(n)[:, None] >= torch.arange(n), False),
}


class _OfSizes(torch.nn.Module):
    def __init__(self, mask: Callable[[int], Tensor]):
        super().__init__()
        self.mask = mask

    def forward(self, q: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, q, q, self.mask(q.shape[2]))


class _OfBuffer(torch.nn.Module):
    def __init__(self, mask: Tensor):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, q: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, q, q, self.mask)


@pytest.mark.parametrize("name", _MASKS)
@pytest.mark.parametrize("is_open", [True, False])
def test_masks_of_sizes(name: str, is_open: bool) -> None:
    mask, hides = _MASKS[name]
    model, given = _OfSizes(mask).eval(), torch.randn(1, 2, 7, 4)
    shapes = [{2: torch.export.Dim("n")}] if is_open else None
    module = rx.from_torch(torch.export.export(model, (given,), dynamic_shapes=shapes))
    assert ("relax.where" in str(module).partition("relax.attention")[2]) == hides
    call = rx.compile(module)
    for n in (7, 1, 3, 20) if is_open else (7,):
        x = torch.randn(1, 2, n, 4)
        np.testing.assert_allclose(call(x), model(x), rtol=1e-5, atol=1e-6, err_msg=f"{n}")


@pytest.mark.parametrize("first", [0, -1])
def test_a_mask_that_is_a_weight(first: int) -> None:
    model, x = _OfBuffer(_ones(6).tril(first)).eval(), torch.randn(1, 2, 6, 4)
    executable = rx.compile(rx.from_torch(torch.export.export(model, (x,))))
    bound = executable.bind(executable.prepare(model.state_dict()))
    np.testing.assert_allclose(bound(x), model(x), rtol=1e-5, atol=1e-6)
