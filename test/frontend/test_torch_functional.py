"""Writes into what a graph has computed, and into state, are imported as they are; all others still as torch means them."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import relaxir as rx  # noqa: E402
from relaxir.frontend import torch_graph, torch_ops  # noqa: E402
from support import models  # noqa: E402


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def _several(x):
    y = x.exp()
    y.add_(x, alpha=2)
    z = y * 2
    y.mul_(3)
    return y + z


def _topk(x):
    values, places = torch.topk(x, 2)
    values /= values.sum(-1, keepdim=True)
    return values * places


def _view_before(x):
    y = x.exp()
    row = y[0]
    y.mul_(2)
    return y + row


def _view_written(x):
    y = x.exp()
    y[1:].mul_(2)
    return y


def _kept_elsewhere(x):
    y = x.exp()
    z = y.view(-1)
    y.neg_()
    return z.sum() + y


def _returned(x):
    y = x.exp()
    z = y.neg_()
    return y, z


def _constants(x):
    return torch.tensor([1.5, 2.0, -3.0, 0.25]) * x + torch.tensor(2.5)


def _sizes(x):
    y = x.exp()
    row = y[0]
    y.unsqueeze_(1)
    y.mul_(2)
    return y + row


def _narrow(x):
    y = x.bfloat16()
    z = y * 1
    z.add_(x)
    return z.float()


SIMPLE = {
    "several": _several, "topk": _topk, "a view before": _view_before, "a view": _view_written, "returned": _returned,
    "constants": _constants,
}  # fmt: skip
OTHERS = {
    "a view that stays": _kept_elsewhere,
    "narrow": _narrow, "sizes": _sizes, "dropout": lambda x: torch.nn.functional.dropout(x * 1, 0.5, False).mul_(2) + x,
}  # fmt: skip


@pytest.mark.parametrize("name", [*SIMPLE, *OTHERS])
def test_writes_equal_eager_torch(name, monkeypatch):
    torch_ops.load()
    torch.manual_seed(0)
    x, function = torch.randn(3, 4), Function((SIMPLE | OTHERS)[name])
    with models.quiet(), torch.no_grad():
        program = torch.export.export(function, (x,))
    assert not torch_graph.is_plain(program)
    if name in SIMPLE:
        monkeypatch.setattr(torch_graph, "decomposed", None)
    wanted = function(x.clone())
    found = rx.evaluate(rx.from_torch(program), "main", x.numpy())
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for got, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, y.numpy(), rtol=1e-5, atol=1e-5)


def test_the_program_is_not_changed():
    with models.quiet(), torch.no_grad():
        program = torch.export.export(Function(_several), (torch.randn(3, 4),))
    text = str(program.graph)
    rx.from_torch(program)
    assert str(program.graph) == text


class Cache(torch.nn.Module):
    """State that is written at places, counted, and read before and after; ``how`` says what else there is."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.register_buffer("rows", torch.arange(12.0).reshape(3, 4))
        self.register_buffer("count", torch.tensor(1))
        self.register_buffer("other", self.rows if how == "tied" else torch.zeros(3, 4), persistent=False)

    def forward(self, x):
        row = self.rows[0] if self.how == "a view before" else None
        before = self.rows * 2
        self.rows.index_copy_(-2, (self.count % 3).reshape(1), x[:1])
        self.count.to("cpu").add_(1)
        if self.how == "twice":
            self.rows.mul_(2).add_(1)
        if self.how == "a part":
            self.rows[1:].mul_(2)
        if self.how == "into another":
            self.other.index_copy_(1, torch.arange(2) * 2 + 1, self.rows[:, :2])
        if self.how == "returned":
            return self.rows
        result = (before + self.rows if row is None else before + row) + self.other
        return result.float() if self.how == "converted" else result, self.count * 2


_DIRECT = ["alone", "twice", "into another", "converted", "a view before", "a part", "returned", "tied"]


@pytest.mark.parametrize("how", _DIRECT)
def test_writes_into_state_equal_eager_torch(how, monkeypatch):
    torch_ops.load()
    x, model = torch.randn(3, 4), Cache(how)
    with models.quiet(), torch.no_grad():
        program = torch.export.export(model, (x,))
    if how in _DIRECT:
        monkeypatch.setattr(torch_graph, "decomposed", None)
    text, exe = str(program.graph), rx.compile(rx.from_torch(program))
    exe.bind(exe.prepare({}))
    for _ in range(4):
        wanted, x = model(x), x + 1
        found = exe(x - 1)
        for got, y in zip(*((r if isinstance(r, tuple) else (r,)) for r in (found, wanted)), strict=True):
            np.testing.assert_allclose(got, y.numpy(), rtol=1e-5, atol=1e-5)
        for name, state in exe.state.items():
            np.testing.assert_allclose(state, getattr(model, name).numpy(), rtol=1e-5, atol=1e-5)
    assert str(program.graph) == text


class Filled(torch.nn.Module):
    """State that becomes one number, or a row, in all places; a write that only torch decomposes is beside it if asked for."""

    def __init__(self, is_row, is_decomposed):
        super().__init__()
        self.is_row, self.is_decomposed = is_row, is_decomposed
        self.register_buffer("rows", torch.zeros(3, 4))

    def forward(self, x):
        if self.is_decomposed:
            x = (x * 2).reshape(-1).neg_().reshape(3, 4)
        self.rows.copy_(x[0] if self.is_row else x.sum())
        return x + 1


@pytest.mark.parametrize("is_row", [True, False])
@pytest.mark.parametrize("is_decomposed", [True, False])
def test_state_keeps_its_sizes(is_row, is_decomposed):
    x, model = torch.randn(3, 4), Filled(is_row, is_decomposed)
    with models.quiet(), torch.no_grad():
        program = torch.export.export(model, (x,))
    exe = rx.compile(rx.from_torch(program))
    exe.bind(exe.prepare({}))
    np.testing.assert_allclose(exe(x), model(x).numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(exe.state["rows"], model.rows.numpy(), rtol=1e-5, atol=1e-6)
