"""The forms of mixtures of experts that are exported, in torch: they compute what transformers does, whatever experts have."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from relaxir.transformers.experts import EXPERTS, GROUPED_EXPERTS

_EXPERTS, _HIDDEN, _INNER, _CHOICES = 5, 6, 4, 2


def experts(has_gate: bool, has_bias: bool, is_transposed: bool, has_norm: bool) -> Any:
    """As ``use_experts_implementation`` marks a module."""
    first = "gate_up_proj" if has_gate else "up_proj"
    wide = 2 * _INNER if has_gate else _INNER
    shapes = {first: (wide, _HIDDEN), "down_proj": (_HIDDEN, _INNER)}
    weights = {n: torch.randn(_EXPERTS, *(shape[::-1] if is_transposed else shape)) for n, shape in shapes.items()}
    biases = {f"{n}_bias": torch.randn(_EXPERTS, shape[0]) for n, shape in shapes.items()}
    return SimpleNamespace(
        num_experts=_EXPERTS, has_gate=has_gate, has_bias=has_bias, is_transposed=is_transposed, has_post_expert_norm=has_norm,
        post_expert_norm=lambda rows: rows / (1 + rows.abs().sum(-1, keepdim=True)), act_fn=torch.tanh,
        _apply_gate=lambda rows: torch.tanh(rows[:, :_INNER]) * rows[:, _INNER:], **weights, **biases,
    )  # fmt: skip


def one_by_one(e: Any, hidden: torch.Tensor, chosen: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    """A token and one of its experts after the other."""
    first, result = "gate_up_proj" if e.has_gate else "up_proj", torch.zeros_like(hidden)

    def product(name: str, i: int, row: torch.Tensor) -> torch.Tensor:
        weight = getattr(e, name)[i]
        return row @ (weight if e.is_transposed else weight.T) + (getattr(e, f"{name}_bias")[i] if e.has_bias else 0)

    for token, place in itertools.product(range(len(hidden)), range(_CHOICES)):
        i = int(chosen[token, place])
        inner = product(first, i, hidden[token : token + 1])
        outer = product("down_proj", i, e._apply_gate(inner) if e.has_gate else e.act_fn(inner))
        result[token] += shares[token, place] * (e.post_expert_norm(outer) if e.has_post_expert_norm else outer)[0]
    return result


@pytest.mark.parametrize("form", [EXPERTS, GROUPED_EXPERTS])
@pytest.mark.parametrize("marks", list(itertools.product([False, True], repeat=4)))
def test_every_kind_of_experts(marks: tuple[bool, bool, bool, bool], form: str) -> None:
    """Some are chosen by several tokens and some by none. Sums of six products in another order."""
    torch.manual_seed(0)
    module, hidden, shares = experts(*marks), torch.randn(7, _HIDDEN), torch.rand(7, _CHOICES)
    chosen = torch.tensor([[0, 3], [3, 1], [0, 1], [3, 0], [1, 0], [3, 1], [1, 3]])
    got = ALL_EXPERTS_FUNCTIONS[form](module, hidden, chosen, shares)
    torch.testing.assert_close(got, one_by_one(module, hidden, chosen, shares), rtol=1e-5, atol=1e-5)
