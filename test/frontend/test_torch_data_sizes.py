"""What data decides in PyTorch programs: elements as numbers and bounds, masks, places that are not zero."""

from __future__ import annotations

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

import relaxir as rx  # noqa: E402
from relaxir import RelaxError  # noqa: E402
from support import models  # noqa: E402


class Functions(nn.Module):
    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *args):
        return [f(*args) for f in self.functions]


def imported(functions, *args, dynamic=None):
    with torch.no_grad(), models.quiet():
        return rx.from_torch(torch.export.export(Functions(functions), args, dynamic_shapes=dynamic))


@functools.lru_cache(maxsize=1)
def compiled(module):
    """Once, for all calls of a test."""
    return rx.compile(module)


def assert_agree(module, functions, *args):
    """Both the reference and compiled code with torch; sums in another order."""
    wanted = Functions(functions)(*args)
    for got in (compiled(module)(*args), rx.evaluate(module, "main", *(a.numpy() for a in args))):
        for g, w in zip(got if isinstance(got, tuple) else (got,), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(g), w.numpy(), rtol=1e-6, atol=1e-6)
            assert tuple(g.shape) == tuple(w.shape)


#: Functions of numbers [n, 4] and integers [4].
NUMBERS = {
    "sum": lambda x, k: x * x.sum().item(),
    "integer": lambda x, k: x + (k[1].item() + 1) * 2,
    "alpha": lambda x, k: torch.add(x, x, alpha=k[0].item()),
    "limit": lambda x, k: x.clamp(max=k[2].item()),
    "power": lambda x, k: x.abs() ** k[1].item(),
    "comparison": lambda x, k: x > k[0].item(),
    "narrow floats": lambda x, k: (x.bfloat16() * x[0, 0].item()).float(),
    "all of one": lambda x, k: torch.full((2, 3), x[0, 1].item()),
}

#: Sizes by data, of the same.
SIZES = {
    "places": lambda x, k: torch.nonzero(x > 0),
    "places of each dimension": lambda x, k: torch.nonzero(x > 0, as_tuple=True)[1],
    "rows": lambda x, k: x[x.sum(1) > 0],
    "elements": lambda x, k: x[x > 0] * 2,
    "columns": lambda x, k: x[:, k > 1].sum(1),
    "mask and index": lambda x, k: x[x.sum(1) > 0, 1],
    "masked_select": lambda x, k: torch.masked_select(x, k > 1),
    "joined": lambda x, k: torch.cat([x[x.sum(1) > 0], x]),
    "none": lambda x, k: x[x > 100],
    "places of one": lambda x, k: torch.nonzero(x[0, 0] > 0),
    "distinct": lambda x, k: torch.unique((x * 2).round()),
    "distinct of all": lambda x, k: torch.unique((x * 2).long(), return_inverse=True, return_counts=True)[1],
    "how often": lambda x, k: torch.unique((x * 2).long(), return_counts=True)[1],
    "distinct truth": lambda x, k: torch.unique(x > 0, return_counts=True)[1],
    "distinct rows": lambda x, k: torch.unique(x.round(), dim=0, return_inverse=True)[0],
    "which rows": lambda x, k: torch.unique(x.round(), dim=0, return_inverse=True, return_counts=True)[1],
    "distinct columns": lambda x, k: torch.unique((x[:2] > 0).float(), dim=1),
    "runs": lambda x, k: torch.unique_consecutive(x > 0, return_counts=True)[1],
    "runs of rows": lambda x, k: torch.unique_consecutive((x[:, :2] > 0).int(), dim=0),
    "softmax of some": lambda x, k: torch.softmax(x[x.sum(1) > 0], -1),
}


def _counts(x, k):
    counts = torch.bincount(k, minlength=2)
    torch._check(counts.shape[0] <= 16)
    return counts


def _sums(x, k):
    sums = torch.bincount(k, x[:4, 0])
    torch._check(sums.shape[0] <= 16)
    return sums


def _repeated(x, k):
    rows = torch.repeat_interleave(k)
    torch._check(rows.shape[0] <= 16)
    return x[rows]


#: Sizes by data whose limit torch has to be told, of integers [4].
COUNTS = {
    "bincount": _counts,
    "sums": _sums,
    "repeated": _repeated,
    "repeated, of known size": lambda x, k: torch.repeat_interleave(x[:4], k, dim=0, output_size=6),
}


def test_counts_that_data_decides():
    functions, x = list(COUNTS.values()), torch.randn(5, 4)
    module = imported(functions, x, torch.tensor([1, 2, 3, 0]))
    for k in ([1, 2, 3, 0], [0, 0, 0, 6], [0, 5, 1, 0]):
        assert_agree(module, functions, x, torch.tensor(k))
    exe = compiled(module)
    for k in ([7, 0, -1, 0], [1, 2, 3, 1], [0, 0, 0, 17]):
        with pytest.raises(RelaxError):
            exe(x, torch.tensor(k))


@pytest.mark.parametrize("function", [lambda x, k: torch.bincount(k), lambda x, k: torch.repeat_interleave(k)])
def test_counts_need_a_limit(function):
    with pytest.raises(RelaxError, match=r"expected an upper limit of .*: torch._check\(.*.shape\[0\] <= 100\) says one"):
        imported([function], torch.randn(5, 4), torch.tensor([1, 2, 3, 0]))


def test_elements_as_numbers():
    x, k = torch.randn(5, 4), torch.tensor([1, 2, 3, 0])
    functions = list(NUMBERS.values())
    assert_agree(imported(functions, x, k), functions, x, k)


def test_elements_as_results():
    x, k = torch.randn(5, 4), torch.tensor([1, 2, 3, 0])
    functions = [lambda x, k: x.sum().item(), lambda x, k: k[1].item() * 2, lambda x, k: (x[0, 0] > 0).item()]
    wanted = Functions(functions)(x, k)
    for got in (
        rx.compile(imported(functions, x, k))(x, k),
        rx.evaluate(imported(functions, x, k), "main", x.numpy(), k.numpy()),
    ):
        # The sum of 20 normal numbers in another order: 20 roundings of a partial sum below 16.
        np.testing.assert_allclose([float(np.asarray(g)) for g in got], wanted, rtol=0, atol=20 * 16 * 2**-24)


def _parted(x, k):
    """Parts whose sizes are elements, joined: torch takes their sum to be as many as there are rows."""
    sizes = k.tolist()
    for size in sizes:
        torch._check(size <= x.shape[0])
    return torch.cat([part * (i + 1) for i, part in enumerate(x.split(sizes))])


def test_sizes_that_torch_takes_to_be_equal_are_compared():
    x, k = torch.randn(6, 4), torch.tensor([1, 2, 3, 0])
    functions = [
        lambda x, k: _parted(x, k) * x[:, :1],
        lambda x, k: _parted(x, k) < x,
        lambda x, k: torch.where(_parted(x, k) > 0, x, _parted(x, k)),
        lambda x, k: torch.zeros(8, 4).index_add(0, torch.arange(6), _parted(x, k)),
    ]
    module = imported(functions, x, k)
    for sizes in ([1, 2, 3, 0], [0, 0, 0, 6]):
        assert_agree(module, functions, x, torch.tensor(sizes))
    with pytest.raises(RelaxError, match="run-time check failed"):
        compiled(module)(x, torch.tensor([1, 1, 1, 1]))


def test_masks_that_may_choose_nothing():
    """Values for places of a mask are as many as data says, none at all among them; too few are found when the model runs."""
    functions = [
        lambda x, k: x.masked_scatter(x > 0, x[x > 0] * 2),
        lambda x, k: x.index_put((k > 0,), x[k > 0] + 1),
        lambda x, k: torch.ops.aten.index_put(x, [None, k > 0], x[:, k > 0] - 1),
    ]
    x, k = torch.randn(4, 4), torch.tensor([1, 2, 3, 0])
    module = imported(functions, x, k)
    for args in ((x, k), (-x.abs(), k * 0)):
        assert_agree(module, functions, *args)
    short = imported([lambda x, k: x.masked_scatter(x == x, x[x > 0])], x, k)
    with pytest.raises(RelaxError, match="run-time check failed"):
        rx.compile(short)(x, k)


def _counted(x, k):
    """A mask with as many places as there are indices."""
    return (x[:, 0] * 0 == 0) & (torch.arange(4) != 1), torch.arange(-1, 2)


def test_masks_among_indices():
    """Each gives indices of its dimensions; they are broadcast with the others, and with the values."""
    functions = [
        lambda x, k: x.index_put((k > 1, torch.arange(2, 3)), x[0, :1]),
        lambda x, k: x.index_put((-torch.arange(2)[:, None], k > 1), x[k > 1, 3] + 1),
        lambda x, k: x.index_put((k > 1, k > 1), x[k > 1, 1], accumulate=True),
        lambda x, k: torch.ops.aten.index_put(x[None].repeat(4, 1, 1), [k > 1, None, torch.arange(1)], x[:1] * 2),
        lambda x, k: torch.ops.aten.index_put(x[None].repeat(2, 1, 1), [torch.arange(1), x > 0], x[x > 0] + 1, True),
        lambda x, k: x.index_put(_counted(x, k), x[:3, 0] * 3),
        lambda x, k: x.index_put(_counted(x, k), x[:1, 0]),
    ]
    x, k = torch.randn(4, 4), torch.tensor([1, 2, 3, 0])
    module = imported(functions, x, k)
    for args in ((x, k), (-x.abs(), k * 0)):
        assert_agree(module, functions, *args)


def test_bytes_are_masks():
    x, k = torch.randn(4, 4), torch.tensor([1, 0, 2, 0])
    functions = [
        lambda x, k: torch.ops.aten.index_put(x, [k.to(torch.uint8)], x[0]),
        lambda x, k: torch.ops.aten.index_put(x, [k.to(torch.uint8), torch.arange(1)], x[0, :1]),
    ]
    assert_agree(imported(functions, x, k), functions, x, k)


def test_sizes_that_data_decides():
    functions, k = list(SIZES.values()), torch.tensor([1, 2, 3, 0])
    module = imported(functions, torch.randn(5, 4), k, dynamic=(({0: Dim("n", min=2, max=40)}, None),))
    for rows in (5, 11):
        assert_agree(module, functions, torch.randn(rows, 4), k)


def _limited(x, n):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= x.shape[0])
    return k


def _window(x, n):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k + 2 <= x.shape[0])
    return x[k : k + 2]


BOUNDS = {
    "up to": lambda x, n: x[: _limited(x, n)],
    "from": lambda x, n: x[_limited(x, n) :],
    "sum": lambda x, n: x[: _limited(x, n)].sum(0),
    "shape": lambda x, n: x[: _limited(x, n)].reshape(-1, 1).expand(-1, 3),
    "sequence": lambda x, n: torch.arange(_limited(x, n)) * 2,
    "window": _window,
}


@pytest.mark.parametrize("name", BOUNDS)
def test_elements_as_bounds(name):
    functions, x = [BOUNDS[name]], torch.randn(8, 2)
    module = imported(functions, x, torch.tensor(3))
    for n in (3, 0, 6):
        assert_agree(module, functions, x, torch.tensor(n))


def _padded(x):
    """Rows that two masks choose, each with zeros up to the larger number of them, as detectors return what they find."""
    found = [x[x[:, i] > 0] for i in range(2)]
    result = torch.zeros(2, torch.sym_max(found[0].shape[0], found[1].shape[0]), x.shape[1])
    for i, rows in enumerate(found):
        result[i, : rows.shape[0]] = rows
    return result, result.sum(1)


def test_results_as_large_as_the_larger_one_of_two_counts():
    class Padded(nn.Module):
        def forward(self, x):
            return _padded(x)

    x = torch.randn(9, 4)
    with torch.no_grad(), models.quiet():
        module = rx.from_torch(torch.export.export(Padded(), (x,), dynamic_shapes=({0: Dim("n", min=2, max=40)},)))
    exe = rx.compile(module)
    few = torch.full((5, 4), -1.0)
    for args in (x, torch.randn(30, 4), few, few.index_fill(1, torch.tensor([0]), 2), few.index_fill(1, torch.tensor([1]), 2)):
        for got in (exe(args), rx.evaluate(module, "main", args.numpy())):
            for g, w in zip(got, _padded(args), strict=True):
                assert tuple(g.shape) == tuple(w.shape)
                np.testing.assert_allclose(np.asarray(g), w.numpy(), rtol=1e-6, atol=1e-6)


def test_what_torch_has_assumed_of_an_element_is_checked():
    x = torch.randn(8, 2)
    exe = rx.compile(imported([BOUNDS["up to"]], x, torch.tensor(3)))
    for n in (9, -1):
        with pytest.raises(RelaxError, match="run-time check failed"):
            exe(x, torch.tensor(n))


def test_a_size_needs_a_limit():
    with pytest.raises(RelaxError, match=r"expected a number with an upper limit to decide a size: torch._check\(n <= 100\)"):
        imported([lambda x, n: torch.zeros(n.item()) + x[0, 0]], torch.randn(2, 2), torch.tensor(3))


def _split_by_counts(x, k):
    """As mixtures of experts divide tokens: counts of ones, as floats first."""
    counts = torch.zeros(x.shape[0], 2).scatter(1, (x[:, :1] > 0).long(), 1).long().sum(0)
    return torch.stack([part.sum(0) for part in x.split(counts.tolist())])


#: Sizes without ``torch._check``, of numbers [n, 4] and integers [4]: what computes them says what they are at most.
LIMITED = {
    "clamp": lambda x, k: x[:1].repeat(k[0].clamp(0, 5).item(), 1),
    "count": lambda x, k: torch.zeros(((x > 0).sum() + 1).item()) + x[0, 0],
    "place": lambda x, k: x[0].expand(x[:, 0].argmax().item(), 4) * 2,
    "range": lambda x, k: x[:1].repeat(torch.arange(x.shape[0]).unsqueeze(0).repeat(3, 1)[0].max() + 1, 1),
    "parts": _split_by_counts,
    "smaller": lambda x, k: torch.ones(torch.minimum(k[1].abs(), 7 - (k[2] > 0).int()).item()) * x[0, 0],
}


def test_limits_follow_from_what_computes_a_size():
    functions, k = list(LIMITED.values()), torch.tensor([2, -3, 1, 9])

    def rows(n):
        return torch.randn(n, 4).index_fill(0, torch.tensor([1]), 9)

    module = imported(functions, rows(6), k, dynamic=(({0: Dim("n", min=2)}, None),))
    for n in (6, 11):
        assert_agree(module, functions, rows(n), k)


def test_experts_that_read_their_own_tokens():
    """As mixtures of experts are written in plain PyTorch: a row of places for each expert."""

    def experts(x, chosen):
        result = torch.zeros_like(x)
        for i in range(3):
            (rows,) = torch.where(chosen == i)
            result.index_add_(0, rows, x[rows] * (i + 1))
        return result

    x, chosen = torch.randn(6, 4), torch.tensor([0, 1, 1, 0, 2, 1])
    module = imported([experts], x, chosen)
    assert_agree(module, [experts], x, chosen)
    assert_agree(module, [experts], x, torch.zeros(6, dtype=torch.int64))
