"""Operators that few models have, imported and compiled: the results of torch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.export import Dim  # noqa: E402
from torch.nn import functional  # noqa: E402

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402

NAN, INF = float("nan"), float("inf")


class Functions(torch.nn.Module):
    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *tensors):
        return [f(*tensors) for f in self.functions]


def compiled(functions, tensors, dynamic=None):
    with torch.no_grad(), models.quiet():
        program = torch.export.export(Functions(functions), tensors, dynamic_shapes=dynamic)
    return rx.compile(rx.from_torch(program))


def assert_same(functions, *tensors, **tolerance):
    got = compiled(list(functions.values()), tensors)(*tensors)
    for name, g, f in zip(functions, got if len(functions) > 1 else [got], functions.values(), strict=True):
        torch.testing.assert_close(g, f(*tensors), equal_nan=True, msg=lambda text, n=name: f"{n}: {text}", **tolerance)


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 5), (5, 3), (1, 1), (0, 3), (3, 0), (100, 90), (90, 100), (200, 1)])
def test_places_of_triangles(rows, columns):
    """Short ones are a table, long ones are computed."""
    functions = {
        f"{which.__name__} {offset}": lambda x, w=which, o=offset: w(rows, columns, o) + x
        for which in (torch.tril_indices, torch.triu_indices)
        for offset in (0, 1, -1, 2, -3, 200, -200)
    }
    assert_same(functions, torch.tensor(0), rtol=0, atol=0)


def test_pairs_of_features():
    """As DLRM takes them."""

    def pairs(x):
        i, j = torch.tril_indices(26, 26, -1)
        return torch.bmm(x, x.mT)[:, i, j]

    assert_same({"pairs": pairs}, torch.randn(2, 26, 8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_frequencies(dtype):
    functions = {
        f"{which.__name__} {count} {apart}": lambda x, w=which, n=count, d=apart: w(n, d, dtype=dtype) * x
        for which in (torch.fft.fftfreq, torch.fft.rfftfreq)
        for count in (1, 2, 7, 8)
        for apart in (1.0, 0.3)
    }
    assert_same(functions, torch.ones(1, dtype=dtype), rtol=0, atol=0)


_ROWS = torch.tensor(
    [[3, 1, 3, 1, 2, 0], [5, 4, 3, 2, 1, 0], [NAN, NAN, 7, 7, NAN, NAN], [NAN] * 6, [INF, -INF, -INF, 1, INF, 2]]
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8])
def test_modes_and_medians_of_numbers(dtype):
    x = (_ROWS.nan_to_num(9, 8, 0) if not dtype.is_floating_point else _ROWS).to(dtype)
    functions = {
        "mode": lambda x: torch.mode(x, 1)[0],
        "mode of columns": lambda x: torch.mode(x, 0, keepdim=True)[0],
        "mode's place": lambda x: x[:2].mode(-1)[1],
        "mode of one": lambda x: x[0, 0].mode()[0],
        "nanmedian": lambda x: x.nanmedian(),
        "nanmedian of one": lambda x: x[0, 0].nanmedian(),
        "nanmedian of NaN alone": lambda x: x[3].nanmedian(),
        "nanmedian of rows": lambda x: x.nanmedian(1)[0],
        "nanmedian of columns": lambda x: x.nanmedian(0, keepdim=True)[0],
        "nanmedian's place": lambda x: x[1].nanmedian(-1)[1],
    }
    assert_same(functions, x, rtol=0, atol=0)


def test_modes_and_medians_of_open_sizes():
    """Of more numbers than 16 with a NaN torch sorts none rightly for a mode."""
    functions = [lambda x: x.nan_to_num(1).round().mode(1)[0], lambda x: x.nanmedian(1)[0], lambda x: x.nanmedian()]
    exe = compiled(functions, (torch.randn(2, 9),), (({1: Dim("n", min=2, max=40)},),))
    for count in (2, 17, 40):
        x = torch.randn(2, count)
        x[:, 1::3] = NAN
        for got, f in zip(exe(x), functions, strict=True):
            torch.testing.assert_close(got, f(x), rtol=0, atol=0)


@pytest.mark.parametrize("includes", [True, False])
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_rows_are_reduced_into_places(dtype, reduce, includes):
    """Of a place that comes twice and others that never do; along the other dimension, and of a tensor without dimensions."""
    x, rows = torch.arange(12).view(4, 3).to(dtype) - 5, torch.tensor([[3, -2, 4], [1, 7, -3], [-6, 2, 5]]).to(dtype)
    functions = {
        "rows": lambda x, y, i: x.index_reduce(0, i, y, reduce, include_self=includes),
        "columns": lambda x, y, i: x.index_reduce(1, i[1:], y.repeat(2, 1)[:4, :2], reduce, include_self=includes),
        "one": lambda x, y, i: x[0, 0].index_reduce(0, i[1:2], y[0, 0], reduce, include_self=includes),
    }
    assert_same(functions, x, rows, torch.tensor([2, 0, 2]))


@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, INF, -INF])
def test_distances(order):
    assert_same({"dist": lambda x, y: torch.dist(x, y, order)}, torch.randn(3, 4), torch.randn(4))


def test_slopes_that_are_random_in_training():
    x = torch.randn(3, 4)
    assert_same({"rrelu": lambda x: functional.rrelu(x), "layer": torch.nn.RReLU(0.1, 0.4).eval()}, x)


def test_parts_of_numbers():
    """Also subnormal ones."""
    x = torch.tensor([1, -0.75, 0, -0.0, 1e-45, -3e-40, 1e38, INF, -INF, NAN])
    functions = {"mantissa": lambda x: torch.frexp(x)[0], "exponent": lambda x: torch.frexp(x)[1]}
    assert_same(functions, x, rtol=0, atol=0)
    assert_same(functions, torch.tensor([5e-324, -1e-310, 1e308, 3.0], dtype=torch.float64), rtol=0, atol=0)


def test_scaled_errors_of_negative_numbers():
    """As mpmath has them; torch is up to 360 units in the last place off."""
    x = torch.tensor([-26.5, -20.3, -11.7, -5.1, -27, -INF], dtype=torch.float64)
    want = [1.9245531624185688e305, 1.8597006513264722e179, 5.644189979789572e59, 395393449413.7251, INF, INF]
    got = compiled([torch.special.erfcx], (x,))(x)
    torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64), rtol=1e-15, atol=0)
