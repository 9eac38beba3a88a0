"""Linear attention of a block of tokens behind a state, for export: no loop over blocks, no size that depends on data.

transformers computes any number of tokens in a loop over blocks of a fixed size, which torch.export would unroll.
Here a call has one block of up to :data:`BLOCK` tokens, of a size that is open; what is longer takes several calls.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import softplus

__all__ = ["BLOCK", "REPLACED"]

#: Tokens of a call; transformers' own blocks have 64 (delta rule) and 256.
BLOCK = 64


def _delta_rule(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    *,
    initial_state: torch.Tensor,
    use_qk_l2norm_in_kernel: bool = False,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gated delta rule (Yang, Kautz, Hatamizadeh: Gated Delta Networks, 2024, section 3.3), as transformers calls it.

    Args:
        query, key: [rows, n, heads, k]; value: [rows, n, more heads, v].
        g: logarithms of how much of the state each token keeps, beta: how much it learns, [rows, n, more heads].
        initial_state: [rows, more heads, k, v].
        use_qk_l2norm_in_kernel: whether queries and keys are divided by their lengths.

    Returns:
        [rows, n, more heads, v], and the next state.
    """
    more = value.shape[2] // key.shape[2]
    if more > 1:
        query, key = query.repeat_interleave(more, 2), key.repeat_interleave(more, 2)
    query, key, values, beta, g = (x.transpose(1, 2).float() for x in (query, key, value, beta, g))
    if use_qk_l2norm_in_kernel:
        query, key = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6) for x in (query, key))
    query = query * query.shape[-1] ** -0.5
    total = g.cumsum(-1)
    begin, decay = total.exp().unsqueeze(-1), _decay(total)
    learned = key * beta.unsqueeze(-1)
    inverse = _unit_lower_inverse((learned @ key.transpose(-1, -2)) * decay)
    news = inverse @ (values * beta.unsqueeze(-1)) - (inverse @ (learned * begin)) @ initial_state
    result = (query * begin) @ initial_state + ((query @ key.transpose(-1, -2)) * decay) @ news
    last = total[..., -1:]
    kept = key * (last - total).exp().unsqueeze(-1)
    state = initial_state * last.exp().unsqueeze(-1) + kept.transpose(-1, -2) @ news
    return result.transpose(1, 2).contiguous().to(value.dtype), state


def _decay(total: torch.Tensor) -> torch.Tensor:
    """[..., i, j] of sums of logarithms [..., n]: what a token i has of an earlier one j, 0 of a later one."""
    difference, place = total.unsqueeze(-1) - total.unsqueeze(-2), torch.arange(total.shape[-1])
    return difference.masked_fill(place.unsqueeze(-1) < place, float("-inf")).exp()


def _unit_lower_inverse(matrix: torch.Tensor) -> torch.Tensor:
    """The inverse of ``1 + L``, where L is what lies strictly below the diagonal of matrices [..., n, n], n up to BLOCK.

    Of blocks of the diagonal, each twice as large as the ones before: of ``[[A, 0], [B, C]]`` it is
    ``[[A', 0], [-C' B A', C']]`` (Higham: Accuracy and Stability of Numerical Algorithms, section 14.2).
    """
    place = torch.arange(matrix.shape[-1])
    rows, columns = place.unsqueeze(-1), place.unsqueeze(0)
    inverse, size = (rows == columns).to(matrix.dtype).expand_as(matrix), 1
    while size < BLOCK:
        is_corner = (rows // (2 * size) == columns // (2 * size)) & (rows // size > columns // size)
        corner = torch.where(is_corner, matrix, 0.0)
        inverse = inverse - (inverse @ corner @ inverse if size > 1 else corner)
        size *= 2
    return inverse


def _state_space(
    hidden_states: torch.Tensor,
    dt: torch.Tensor,
    A: torch.Tensor,  # noqa: N803
    B: torch.Tensor,  # noqa: N803
    C: torch.Tensor,  # noqa: N803
    *,
    initial_states: torch.Tensor,
    D: torch.Tensor | None = None,  # noqa: N803
    dt_bias: torch.Tensor | None = None,
    dt_softplus: bool = False,
    dt_limit: tuple[float, float] = (0.0, float("inf")),
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mamba 2's state spaces (Dao, Gu: Transformers are SSMs, 2024, section 6), as transformers calls them.

    Args:
        hidden_states: [rows, n, heads, p]; dt: [rows, n, heads]; A: [heads]; B, C: [rows, n, groups, k].
        initial_states: [rows, heads, p, k].
        D: [heads], what of a token goes to its own result.
        dt_bias: [heads], is added to ``dt``, whose softplus is taken, and which is limited.

    Returns:
        [rows, n, heads, p], and the next state.
    """
    dt = dt if dt_bias is None else dt + dt_bias
    dt = torch.clamp(softplus(dt) if dt_softplus else dt, *dt_limit).float()
    heads, own = hidden_states.shape[2], hidden_states.float()
    before, after = (x.float().repeat_interleave(heads // x.shape[2], 2).transpose(1, 2) for x in (B, C))
    inputs = (own * dt.unsqueeze(-1)).transpose(1, 2)
    total = (A.float() * dt).transpose(1, 2).cumsum(-1)
    state, last = initial_states.float(), total[..., -1:]
    result = ((after @ before.transpose(-1, -2)) * _decay(total)) @ inputs
    result = (result + (after * total.exp().unsqueeze(-1)) @ state.transpose(-1, -2)).transpose(1, 2)
    kept = before * (last - total).exp().unsqueeze(-1)
    state = state * last.exp().unsqueeze(-1) + inputs.transpose(-1, -2) @ kept
    return (result if D is None else result + own * D.unsqueeze(-1)).contiguous(), state  # callers look at it in other shapes


#: By the names of transformers.
REPLACED = {"torch_chunk_gated_delta_rule": _delta_rule, "mamba2_chunk_scan": _state_space}
