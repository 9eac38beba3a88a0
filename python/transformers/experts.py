"""Mixtures of experts for export: each expert computes all tokens if one of them chose it, and counts for those that did.

transformers' own forms gather tokens, or weights, by what the router says: sizes that depend on data, and copies of matrices.
Here a product's weight is a matrix of the checkpoint, which is laid out, or quantized, beforehand. The compiler makes a branch
around what a mask keeps no row of (``relax-skip-masked-products``), so a token reads the weights of its own experts alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import linear
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

__all__ = ["EXPERTS"]

#: Under this name transformers knows the function below.
EXPERTS = "relaxir"


def _all_experts(experts: Any, hidden: torch.Tensor, chosen: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    """What ``experts`` of transformers compute.

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
        first = _product(experts, "gate_up_proj" if experts.has_gate else "up_proj", i, hidden)
        inner = experts._apply_gate(first) if experts.has_gate else experts.act_fn(first)
        result = torch.where(mask, result + share * _product(experts, "down_proj", i, inner), result)
    return result


def _product(experts: Any, name: str, i: int, rows: torch.Tensor) -> torch.Tensor:
    weight = getattr(experts, name)[i]
    bias = getattr(experts, f"{name}_bias")[i] if experts.has_bias else None
    return linear(rows, weight.transpose(0, 1) if experts.is_transposed else weight, bias)


ALL_EXPERTS_FUNCTIONS.register(EXPERTS, _all_experts)
