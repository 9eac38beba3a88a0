"""Open sizes that are one or none when a model runs, where operators do something else than with more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import relaxir as rx

Tensor = torch.Tensor


class _Calls(torch.nn.Module):
    def __init__(self, function: Any):
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def _open(function: Any, given: tuple[Tensor, ...], axes: list[list[int]], *, names: bool = True) -> Any:
    """Compiled with these axes open: by names for all sizes, else for those of which what torch assumes holds."""
    dim = torch.export.Dim
    dims = [{a: dim(f"n{i}_{a}") if names else dim.AUTO for a in own} for i, own in enumerate(axes)]
    return rx.compile(rx.from_torch(torch.export.export(_Calls(function), given, dynamic_shapes=(tuple(dims),))))


@pytest.mark.parametrize(
    ("mode", "padding"),
    [("bilinear", "zeros"), ("bilinear", "border"), *((mode, "reflection") for mode in ("bilinear", "nearest", "bicubic"))],
)
@pytest.mark.parametrize("corners", [True, False])
def test_images_of_one_row_or_column(mode: str, padding: str, corners: bool) -> None:
    def sampled(x: Tensor, grid: Tensor) -> Tensor:
        return functional.grid_sample(x, grid, mode, padding, align_corners=corners)

    grid = 3 * torch.rand(1, 5, 6, 2) - 1.5
    call = _open(sampled, (torch.randn(1, 2, 7, 9), grid), [[2, 3], []])
    for sizes in ((7, 9), (4, 1), (1, 4), (1, 1), (2, 3)):
        x = torch.randn(1, 2, *sizes)
        np.testing.assert_allclose(call(x, grid), sampled(x, grid), rtol=1e-4, atol=1e-4, err_msg=f"{sizes}")


@pytest.mark.parametrize("corners", [True, False])
def test_volumes_of_one_layer(corners: bool) -> None:
    def sampled(x: Tensor, grid: Tensor) -> Tensor:
        return functional.grid_sample(x, grid, "bilinear", "reflection", align_corners=corners)

    grid = 3 * torch.rand(1, 2, 3, 4, 3) - 1.5
    call = _open(sampled, (torch.randn(1, 2, 5, 7, 9), grid), [[2, 3, 4], []])
    for sizes in ((5, 7, 9), (1, 7, 9), (5, 1, 9), (5, 7, 1), (1, 1, 1)):
        x = torch.randn(1, 2, *sizes)
        np.testing.assert_allclose(call(x, grid), sampled(x, grid), rtol=1e-4, atol=1e-4, err_msg=f"{sizes}")


@pytest.mark.parametrize("correction", [0, 1, 2, 3])
def test_variances_of_few_numbers(correction: int) -> None:
    def spread(x: Tensor) -> list[Tensor]:
        return [x.var(1, correction=correction), x.std(1, correction=correction), *torch.var_mean(x, 1, correction=correction)]

    call = _open(spread, (torch.randn(3, 9),), [[1]])
    for n in (9, 4, 3, 2, 1, 0):
        x = torch.randn(3, n)
        for found, expected in zip(call(x), spread(x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=f"{n}")


_ALONG: dict[str, Any] = {
    "logcumsumexp": lambda x: x.logcumsumexp(0),
    "logcumsumexp of infinities": lambda x: torch.where(x > 0, x, float("-inf")).logcumsumexp(0),
    "median": lambda x: x.median(0),
    "median of all": lambda x: x.median(),
    "median of whole numbers": lambda x: (4 * x).round().to(torch.int64).median(0)[0],
    "mode": lambda x: (2 * x).round().mode(0)[0],
}


@pytest.mark.parametrize("name", _ALONG)
def test_an_open_dimension(name: str) -> None:
    function = _ALONG[name]
    call = _open(function, (torch.randn(9, 3),), [[0]])
    for n in (9, 1, 2, 10, 130):
        x = torch.randn(n, 3)
        found, expected = call(x), function(x)
        for one, other in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5, err_msg=f"{n}")


@pytest.mark.parametrize(
    "options",
    [
        (2,),
        (3, 2, 1),
        (3, 1, 1),
        (2, 1, 0, 2),
        ((2, 3), (2, 1)),
        (3, 1, 1, 2),
        (4, 3, 2, 1),
        (3, 2, 1, (1, 2), True),
    ],
)
def test_where_the_largest_of_windows_are(options: tuple[Any, ...]) -> None:
    """As SegNet has it, and back by ``max_unpool2d``."""

    def pooled(x: Tensor) -> tuple[Tensor, Tensor]:
        return functional.max_pool2d(x, *options, return_indices=True)

    call = _open(pooled, (torch.randn(2, 3, 12, 10),), [[2, 3]], names=False)
    for sizes in ((12, 10), (7, 9), (4, 4), (5, 31)):
        x = torch.randn(2, 3, *sizes)
        x[0, 0, 2, 2] = float("nan")
        for found, expected in zip(call(x), pooled(x), strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=f"{sizes}")


@pytest.mark.parametrize("name", ["median", "mode"])
def test_nothing_has_no_middle(name: str) -> None:
    call = _open(_ALONG[name], (torch.randn(9, 3),), [[0]])
    with pytest.raises(rx.RelaxError, match="expected"):
        call(torch.randn(0, 3))


def test_bags_of_open_length() -> None:
    model = torch.nn.EmbeddingBag(10, 4)
    dims = ({0: torch.export.Dim("bags"), 1: torch.export.Dim("length")},)
    program = torch.export.export(model, (torch.randint(0, 10, (3, 5)),), dynamic_shapes=dims)
    executable = rx.compile(rx.from_torch(program))
    bound = executable.bind(executable.prepare(model.state_dict()))
    for shape in ((3, 5), (2, 7), (1, 1), (6, 2)):
        x = torch.randint(0, 10, shape)
        np.testing.assert_allclose(bound(x), model(x).detach(), rtol=1e-5, atol=1e-6, err_msg=f"{shape}")


def test_where_elements_go_and_come_from() -> None:
    """By places in the order of memory, by a number, and in an order that is given."""

    def placed(x: Tensor, i: Tensor, v: Tensor) -> list[Tensor]:
        row, order = x[0].sort()
        return [
            x.put(i, v), x.put(i, v, accumulate=True), torch.bucketize(0.3, row), torch.searchsorted(row, 0.1, right=True),
            torch.searchsorted(x[0], v, sorter=order), torch.searchsorted(x, x, sorter=x.argsort()),
        ]  # fmt: skip

    given = torch.randn(3, 5), torch.tensor([3, -2]), torch.randn(2)
    call = rx.compile(rx.from_torch(torch.export.export(_Calls(placed), given)))
    for found, expected in zip(call(*given), placed(*given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_dropout_between_recurrent_layers(kind: str) -> None:
    """torch decomposes it to nothing; one layer has none."""
    x = torch.randn(5, 2, 4)
    for layers, dropout, train in ((2, 0.5, False), (1, 0.0, True), (2, 0.0, True)):
        model = getattr(torch.nn, kind)(4, 4, layers, dropout=dropout).train(train)
        executable = rx.compile(rx.from_torch(torch.export.export(model, (x,))))
        bound = executable.bind(executable.prepare(model.state_dict()))
        np.testing.assert_allclose(bound(x)[0], model(x)[0].detach(), rtol=1e-4, atol=1e-5)
    model = getattr(torch.nn, kind)(4, 4, 2, dropout=0.5).train()
    with pytest.raises(rx.RelaxError, match=r"native_dropout[^|]*model.eval\(\) before export"):
        rx.from_torch(torch.export.export(model, (x,)))
