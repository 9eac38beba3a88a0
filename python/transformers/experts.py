"""Mixtures of experts for export: all experts compute all tokens, and what a token did not choose counts nothing.

transformers' own forms gather tokens, or weights, by what the router says: sizes that depend on data, and copies of matrices.
Here a product's weight is a matrix of the checkpoint, which is laid out, or quantized, beforehand.
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
    for i in range(experts.num_experts):
        share = (shares * (chosen == i)).sum(-1, keepdim=True).to(hidden.dtype)
        first = _product(experts, "gate_up_proj" if experts.has_gate else "up_proj", i, hidden)
        inner = experts._apply_gate(first) if experts.has_gate else experts.act_fn(first)
        result = result + share * _product(experts, "down_proj", i, inner)
    return result


def _product(experts: Any, name: str, i: int, rows: torch.Tensor) -> torch.Tensor:
    weight = getattr(experts, name)[i]
    bias = getattr(experts, f"{name}_bias")[i] if experts.has_bias else None
    return linear(rows, weight.transpose(0, 1) if experts.is_transposed else weight, bias)


ALL_EXPERTS_FUNCTIONS.register(EXPERTS, _all_experts)
