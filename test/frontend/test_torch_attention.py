"""Attention that models of PyTorch write out: one op with the same numbers, and what is no attention left as it is."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402

_LOWEST = torch.finfo(torch.float32).min
_BATCH, _HEADS, _LENGTH, _KEYS, _DEPTH = 2, 4, 5, 7, 8


class _Form(nn.Module):
    def __init__(self, body: Callable[..., Tensor]):
        super().__init__()
        self.body = body

    def forward(self, q: Tensor, k: Tensor, v: Tensor, m: Tensor, n: Tensor) -> Tensor | tuple[Tensor, ...]:
        return self.body(q, k, v, m, n)


def _inputs(dtype: torch.dtype = torch.float32, groups: int = _HEADS, batch: int = _BATCH) -> tuple[Tensor, ...]:
    """Queries, keys, values, where keys are seen (one row sees none), and numbers for each head."""
    torch.manual_seed(0)
    q = torch.randn(batch, _HEADS, _LENGTH, _DEPTH, dtype=dtype)
    k, v = (torch.randn(batch, groups, _KEYS, _DEPTH, dtype=dtype) for _ in range(2))
    seen = torch.rand(batch, 1, _LENGTH, _KEYS) > 0.4
    seen[..., 0] = True
    seen[0, 0, 2] = False
    return q, k, v, seen, torch.randn(1, _HEADS, _LENGTH, _KEYS, dtype=dtype)


def _flat(x: Tensor) -> Tensor:
    return x.reshape(-1, *x.shape[-2:])


def _hugging_face(q, k, v, m, n):
    scores = torch.matmul(q, k.transpose(2, 3)) * 0.3 + torch.where(m, 0.0, _LOWEST).to(q.dtype)
    weights = nn.functional.dropout(nn.functional.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype), 0.1, training=False)
    return torch.matmul(weights, v).transpose(1, 2).contiguous()


def _shared_heads(q, k, v, m, n):
    def repeated(x):
        return x[:, :, None].expand(-1, -1, _HEADS // x.shape[1], -1, -1).reshape(q.shape[0], _HEADS, *x.shape[-2:])

    return torch.softmax(q @ repeated(k).mT / 2, -1) @ repeated(v)


def _windows(q, k, v, m, n):
    """As Swin has it: a bias of heads for all windows, and a mask for each window of an image."""
    scores = q @ k.mT * 0.3 + n
    scores = scores.view(1, q.shape[0], *scores.shape[1:]) + torch.where(m, 0.0, -100.0).unsqueeze(0)
    return torch.softmax(scores.view(-1, *scores.shape[2:]), -1) @ v


def _joined(q, k, v, m, n):
    """As BLOOM has it: products with joined dimensions, masks with dimensions apart."""
    scores = torch.baddbmm(_flat(n.expand(q.shape[0], -1, -1, -1)), _flat(q), _flat(k).mT, beta=0.5, alpha=0.3)
    scores = scores.view(*q.shape[:2], *scores.shape[1:]).masked_fill(~m, _LOWEST)
    weights = torch.softmax(scores, -1)
    return torch.bmm(_flat(weights), _flat(v)).view(*q.shape[:3], -1)


_ONE = {
    "Hugging Face": _hugging_face,
    "no mask, no scale": lambda q, k, v, m, n: torch.softmax(q @ k.mT, -1) @ v,
    "scale of the queries": lambda q, k, v, m, n: torch.softmax((q * 0.5) @ k.mT, -1) @ v,
    "quotient": lambda q, k, v, m, n: torch.softmax(q @ k.mT / _DEPTH**0.5 + n, -1) @ v,
    "masked with the lowest number": lambda q, k, v, m, n: torch.softmax((q @ k.mT * 0.3).masked_fill(~m, _LOWEST), -1) @ v,
    "masked with -1e9": lambda q, k, v, m, n: torch.softmax((q @ k.mT).masked_fill(~m, -1e9), -1) @ v,
    "masked with -inf": lambda q, k, v, m, n: torch.softmax((q @ k.mT).masked_fill(~m, -torch.inf), -1) @ v,
    "where": lambda q, k, v, m, n: torch.softmax(torch.where(m, q @ k.mT * 2, _LOWEST), -1) @ v,
    "a bias, then a mask": lambda q, k, v, m, n: torch.softmax((q @ k.mT + n).masked_fill(~m, _LOWEST), -1) @ v,
    "a mask, then a bias": lambda q, k, v, m, n: torch.softmax((q @ k.mT).masked_fill(~m, -torch.inf) + n, -1) @ v,
    "two masks": lambda q, k, v, m, n: torch.where(
        m, q @ k.mT, -torch.inf).masked_fill(n > 1, -torch.inf).softmax(-1) @ v,
    "a bias of a row and one of a column": lambda q, k, v, m, n: torch.softmax(n[..., :1, :] + (n[..., :1] + q @ k.mT), -1) @ v,
    "a factor of each head": lambda q, k, v, m, n: torch.softmax(q @ k.mT * n[..., :1, :1] + n, -1) @ v,
    "a factor of each row": lambda q, k, v, m, n: torch.softmax(n[..., :1] * (q @ k.mT), -1) @ v,
    "einsum": lambda q, k, v, m, n: torch.einsum("bhij,bhjd->bhid", torch.einsum("bhid,bhjd->bhij", q, k).softmax(-1), v),
    "einsum with heads last": lambda q, k, v, m, n: torch.einsum(
        "bhqk,bkhd->bqhd", torch.softmax(torch.einsum("bqhd,bkhd->bhqk", q.transpose(1, 2), k.transpose(1, 2)) * 0.3 + n, -1),
        v.transpose(1, 2),
    ),
    "three dimensions": lambda q, k, v, m, n: torch.bmm(torch.softmax(torch.bmm(_flat(q), _flat(k).mT), -1), _flat(v)),
    "windows": _windows,
    "joined": _joined,
    "nothing else is read": lambda q, k, v, m, n: [w := torch.softmax(q @ k.mT, -1), w.sum(), w @ v][-1],
}  # fmt: skip

_LEFT = {
    "weights are a result": lambda q, k, v, m, n: (w := torch.softmax(q @ k.mT, -1), w @ v),
    "over queries": lambda q, k, v, m, n: torch.softmax(q @ k.mT, -2) @ v,
    "scaled after a mask": lambda q, k, v, m, n: torch.softmax((q @ k.mT + n) * 2, -1) @ v,
    "a factor of each key": lambda q, k, v, m, n: torch.softmax((q @ k.mT) * n[..., :1, :], -1) @ v,
    "masked with what may be a score": lambda q, k, v, m, n: torch.softmax((q @ k.mT).masked_fill(~m, -10.0), -1) @ v,
    "overwritten, then a bias": lambda q, k, v, m, n: torch.softmax((q @ k.mT).masked_fill(~m, -1e9) + n * 1e9, -1) @ v,
    "no product": lambda q, k, v, m, n: torch.softmax(n.expand(q.shape[0], -1, -1, -1), -1) @ v,
    "capped": lambda q, k, v, m, n: torch.softmax(torch.tanh(q @ k.mT) * 3, -1) @ v,
    "queries of one head": lambda q, k, v, m, n: torch.softmax(q[:, :1] @ k.mT, -1) @ v,
}  # fmt: skip


def _check(body: Callable[..., Tensor], fused: bool, inputs: tuple[Tensor, ...], rtol: float, atol: float, **sizes) -> str:
    model = _Form(body).eval()
    with torch.no_grad(), models.quiet():
        program = torch.export.export(model, inputs, **sizes)
    module = rx.from_torch(program)
    text = str(module)
    assert len(re.findall(r"relax\.attention", text)) == fused
    assert ("relax.softmax" in text) == (not fused)
    executable = rx.compile(module)
    for given in (inputs, _inputs(batch=3), _inputs(batch=1)) if sizes else (inputs,):
        wanted = model(*given)
        found = executable(*(x.float().numpy() if x.dtype == torch.bfloat16 else x.numpy() for x in given))
        found = found if isinstance(wanted, tuple) else (found,)
        for f, w in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_allclose(np.asarray(f, np.float64), w.double().numpy(), rtol=rtol, atol=atol)
    return text


# Sums of at most eight products in another order, and exponentials.
@pytest.mark.parametrize("name", _ONE)
def test_attention_is_one_op_with_the_same_numbers(name: str) -> None:
    _check(_ONE[name], True, _inputs(), 1e-5, 2e-6)


@pytest.mark.parametrize("name", _LEFT)
def test_what_is_no_attention_is_left(name: str) -> None:
    _check(_LEFT[name], False, _inputs(), 1e-5, 2e-6)


@pytest.mark.parametrize("name", ["Hugging Face", "masked with -inf", "einsum", "joined", "two masks"])
def test_batches_of_any_size(name: str) -> None:
    sizes = ({0: torch.export.Dim("batch")},) * 4 + (None,)
    _check(_ONE[name], True, _inputs(), 1e-5, 2e-6, dynamic_shapes=sizes)


@pytest.mark.parametrize("groups", [1, 2])
def test_heads_that_queries_share(groups: int) -> None:
    text = _check(_shared_heads, True, _inputs(groups=groups), 1e-5, 2e-6)
    assert "relax.broadcast_to" not in text


def test_one_head_of_keys_is_broadcast() -> None:
    _check(lambda q, k, v, m, n: torch.softmax(q @ k.mT + n, -1) @ v, True, _inputs(groups=1), 1e-5, 2e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 4e-3), (torch.float64, 1e-12)])
@pytest.mark.parametrize("name", ["Hugging Face", "joined", "masked with -inf", "quotient", "two masks", "a bias, then a mask"])
def test_other_dtypes(name: str, dtype: torch.dtype, tolerance: float) -> None:
    """torch rounds scores of f16 between its operations, attention computes them in f32."""
    body = _ONE[name] if name != "Hugging Face" or dtype == torch.float16 else _ONE["where"]
    if dtype == torch.float16:
        lowest = torch.finfo(dtype).min
        bodies = {
            "joined": lambda q, k, v, m, n: torch.softmax((q @ k.mT * 0.3).masked_fill(~m, lowest), -1) @ v,
            "a bias, then a mask": lambda q, k, v, m, n: torch.softmax((q @ k.mT + n).masked_fill(~m, lowest), -1) @ v,
        }
        body = bodies.get(name, body)
    _check(body, True, _inputs(dtype), tolerance, tolerance)


class _Drawn(nn.Module):
    """Scores that go through steps in random order; heads may be joined with the batch, and apart again, between any two."""

    def __init__(self, seed: int):
        super().__init__()
        self.rng = np.random.default_rng(seed)
        self.sizes = [int(self.rng.choice([1, 2, 3, 4])) for _ in range(6)]
        self.steps = [
            str(s) for s in self.rng.choice(["factor", "rows", "bias", "mask", "hide", "turn", "cast"], self.rng.integers(0, 6))
        ]
        self.dtype = self.rng.choice([torch.float32, torch.float32, torch.float16])

    def inputs(self) -> tuple[Tensor, ...]:
        batch, heads, length, keys, depth, width = self.sizes
        torch.manual_seed(sum(self.sizes))
        shapes = [(batch, heads, length, depth), (batch, heads, keys, depth), (batch, heads, keys, width)]
        shapes += [tuple(n if self.rng.random() < 0.6 else 1 for n in (batch, heads, length, keys)) for _ in self.steps]
        return tuple(torch.randn(s, dtype=self.dtype) for s in shapes)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *others: Tensor) -> Tensor:
        batch, heads, length, keys, _, _ = self.sizes
        joined, apart = (batch * heads, length, keys), (batch, heads, length, keys)
        scores = q @ k.transpose(-1, -2)
        for step, other in zip(self.steps, others, strict=True):
            if step == "turn":
                scores = scores.reshape(joined if scores.ndim == 4 else apart)
            elif step == "factor":
                scores = scores * 0.7
            elif step == "cast":
                scores = scores.float()
            else:
                other = other if scores.ndim == 4 else other.expand(apart).reshape(joined)
                scores = _stepped(step, scores, other.to(scores.dtype))
        weights = torch.softmax(scores, -1).to(v.dtype)
        return (weights @ (v if scores.ndim == 4 else v.flatten(0, 1))).reshape(*q.shape[:-1], v.shape[-1])


def _stepped(step: str, scores: Tensor, other: Tensor) -> Tensor:
    """Of a row, one key at least is seen."""
    if step == "rows":
        return scores * other[..., :1]
    if step == "bias":
        return scores + other
    hidden = (other < 0) & (torch.arange(scores.shape[-1]) > 0)
    return scores.masked_fill(hidden, -torch.inf if step == "hide" else torch.finfo(scores.dtype).min)


# Of f16, torch rounds scores of up to some 8 between its operations, which are computed in f32 here.
@pytest.mark.parametrize("seed", range(24))
def test_random_forms_have_the_same_numbers(seed: int) -> None:
    model = _Drawn(seed).eval()
    inputs = model.inputs()
    with torch.no_grad(), models.quiet():
        program = torch.export.export(model, inputs)
        wanted = model(*inputs)
    found = rx.compile(rx.from_torch(program))(*(x.numpy() for x in inputs))
    tolerance = 2e-2 if model.dtype == torch.float16 else 5e-6
    np.testing.assert_allclose(np.asarray(found, np.float64), wanted.double().numpy(), rtol=tolerance, atol=tolerance)


def test_multihead_attention_whose_weights_nobody_reads() -> None:
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

        def forward(self, x):
            return self.attention(x, x, x)[0]

    model, x = Layer().eval(), torch.randn(2, 6, 32)
    with torch.no_grad(), models.quiet():
        program = torch.export.export(model, (x,))
        wanted = model(x)
    module = rx.from_torch(program)
    assert "relax.attention" in str(module)
    found = rx.evaluate(module, "main", x.numpy(), weights=models.weights_of(program, module))
    np.testing.assert_allclose(found[0], wanted.numpy(), rtol=1e-5, atol=1e-5)
