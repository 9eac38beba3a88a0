"""Whole numbers that models make of open sizes, by every way to round and by bits, as bounds, sizes and factors."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

import relaxir as rx

Tensor = torch.Tensor
_NUMBERS: dict[str, Callable[[int], int]] = {
    "ceil": lambda n: math.ceil(n / 2),
    "ceil of a multiple": lambda n: math.ceil(n * 0.75),
    "ceil of parts": lambda n: math.ceil((n + 1) / 3),
    "floor": lambda n: math.floor(n / 3),
    "floor below": lambda n: math.floor((n - 5) / 2) + 3,
    "trunc": lambda n: math.trunc(n / 2),
    "trunc below": lambda n: math.trunc((n - 5) / 2) + 3,
    "trunc of a multiple below": lambda n: math.trunc((n - 5) * 0.5) + 3,
    "half to even": lambda n: round(n / 2),
    "half to even, below": lambda n: round((n - 5) / 2) + 3,
    "nearest": lambda n: round(n / 7),
    "nearest multiple": lambda n: round(n * 1.5) // 2,
    "shifted": lambda n: (n >> 1) + (n << 1) // 8,
    "lowest bits": lambda n: n & 3,
    "all but the lowest bits": lambda n: n & ~3,
    "none": lambda n: n & ~0,
    "to a multiple": lambda n: math.ceil(n / 4) * 4 - n,
}


class _Bounds(torch.nn.Module):
    def __init__(self, number: Callable[[int], int]):
        super().__init__()
        self.number = number

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        n = self.number(x.shape[0])
        return x[:n], torch.zeros(n + 2, 3) + n, x * n


@pytest.mark.parametrize("name", _NUMBERS)
def test_whole_numbers_of_an_open_size(name: str) -> None:
    model = _Bounds(_NUMBERS[name])
    program = torch.export.export(model, (torch.ones(11, 3),), dynamic_shapes=[{0: torch.export.Dim.AUTO}])
    module = rx.from_torch(program)
    call = rx.compile(module)
    for n in (11, 12, 13, 14, 21, 100, 1023):
        x = torch.randn(n, 3)
        for found, meant, expected in zip(call(x), rx.evaluate(module, "main", x), model(x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=f"{n}")
            np.testing.assert_allclose(meant, expected, rtol=1e-6, err_msg=f"{n}")


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (lambda n: round(n / 4), "expected to round halves, or parts of which none is in the middle, got 4ths"),
        (lambda n: n & 5, "expected to keep the lowest bits of a size, or all but these, got n & 5"),
        (lambda n: math.ceil(n * 0.3), "expected a size and a positive scale of few bits, as 0.5 and 1.75 are, got 0.3"),
    ],
)
def test_what_has_no_form(number: Callable[[int], int], message: str) -> None:
    program = torch.export.export(_Bounds(number), (torch.ones(11, 3),), dynamic_shapes=[{0: torch.export.Dim.AUTO}])
    with pytest.raises(rx.RelaxError, match=message.replace("n & 5", ".* & 5")):
        rx.from_torch(program)


def test_the_ways_of_isin() -> None:
    """Which one torch takes by the sizes of the example says nothing about others."""

    class Model(torch.nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return torch.isin(x, y)

    given = torch.randint(0, 20, (9,)), torch.randint(0, 20, (5,))
    shapes = ({0: torch.export.Dim("n")}, {0: torch.export.Dim("m")})
    call = rx.compile(rx.from_torch(torch.export.export(Model(), given, dynamic_shapes=shapes)))
    for n, m in ((9, 5), (3, 200), (200, 3), (1, 1)):
        x, y = torch.randint(0, 20, (n,)), torch.randint(0, 20, (m,))
        np.testing.assert_array_equal(call(x, y), torch.isin(x, y))
