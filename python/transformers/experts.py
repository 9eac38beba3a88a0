"""Mixtures of experts for export, in two forms that read the weights of chosen experts alone.

transformers' own forms gather tokens, or weights, by what the router says: sizes that depend on data, copies of matrices, or
a product that only some dtypes have.

Tokens are sorted by expert, and each part of them is multiplied with the matrix of its expert (``relax.grouped_matmul``): work
is that of the chosen experts, no size depends on data, and a layer is as many ops however many experts it has.

Where a file has experts quantized in ways that do not make one matrix, each computes all tokens if one of them chose it, and
counts for those that did. The compiler makes a branch around what a mask keeps no row of (``relax-skip-masked-products``).
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import linear
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

__all__ = ["EXPERTS", "GROUPED_EXPERTS"]

#: Under this name transformers knows the form of one expert after the other.
EXPERTS = "relaxir"
#: And under this one that of rows in groups.
GROUPED_EXPERTS = "relaxir_grouped"


def _all_experts(experts: Any, hidden: torch.Tensor, chosen: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    """What ``experts`` of transformers compute, one expert after the other.

    Args:
        experts: the module, with ``gate_up_proj`` and ``down_proj``: [experts, out, in], or transposed.
        hidden: [tokens, size].
        chosen: [tokens, k], numbers of experts.
        shares: [tokens, k], by how much each of these counts.
    """
    result = torch.zeros_like(hidden)
    members = chosen.unsqueeze(-1) == torch.arange(experts.num_experts)
    dense = (shares.unsqueeze(-1) * members).sum(1).to(hidden.dtype)
    used = members.any(1)
    for i in range(experts.num_experts):
        share, mask = dense[:, i : i + 1], used[:, i : i + 1]
        inner = _activated(experts, _product(experts, _first(experts), i, hidden))
        outer = _normalised(experts, _product(experts, "down_proj", i, inner))
        result = torch.where(mask, result + share * outer, result)
    return result


def _product(experts: Any, name: str, i: int, rows: torch.Tensor) -> torch.Tensor:
    weight = getattr(experts, name)[i]
    bias = getattr(experts, f"{name}_bias")[i] if experts.has_bias else None
    return linear(rows, weight.transpose(0, 1) if experts.is_transposed else weight, bias)


def _grouped_experts(experts: Any, hidden: torch.Tensor, chosen: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    """What :func:`_all_experts` computes, of rows in the order of their experts: a row is a token and one of its experts.

    A token's rows are added up in the order of its choices, as transformers does.
    """
    tokens, k = chosen.shape
    numbers = chosen.reshape(-1)
    order = torch.argsort(numbers, stable=True)
    # Rows of experts up to and with each: where its rows end.
    ends = (numbers.unsqueeze(-1) <= torch.arange(experts.num_experts)).sum(0)
    by_expert = numbers[order]
    first = _grouped_product(experts, _first(experts), hidden[order // k], ends, by_expert)
    outer = _normalised(experts, _grouped_product(experts, "down_proj", _activated(experts, first), ends, by_expert))
    rows = outer[torch.argsort(order)].reshape(tokens, k, -1)
    return (rows * shares.unsqueeze(-1)).sum(1).to(hidden.dtype)


def _grouped_product(
    experts: Any, name: str, rows: torch.Tensor, ends: torch.Tensor, by_expert: torch.Tensor
) -> torch.Tensor:  # fmt: skip
    weight = getattr(experts, name)
    matrices = weight if experts.is_transposed else weight.transpose(1, 2)
    result = torch.ops.transformers.grouped_mm_fallback(rows, matrices, ends)
    return result + getattr(experts, f"{name}_bias")[by_expert] if experts.has_bias else result


def _first(experts: Any) -> str:
    return "gate_up_proj" if experts.has_gate else "up_proj"


def _activated(experts: Any, rows: torch.Tensor) -> torch.Tensor:
    return experts._apply_gate(rows) if experts.has_gate else experts.act_fn(rows)


def _normalised(experts: Any, rows: torch.Tensor) -> torch.Tensor:
    """Models of Muse Spark's kind have a norm behind each expert; transformers before 5.24 knows none such."""
    return experts.post_expert_norm(rows) if getattr(experts, "has_post_expert_norm", False) else rows


ALL_EXPERTS_FUNCTIONS.register(EXPERTS, _all_experts)
ALL_EXPERTS_FUNCTIONS.register(GROUPED_EXPERTS, _grouped_experts)
