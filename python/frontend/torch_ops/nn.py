"""torch ops of neural networks: normalisations and attention."""

from __future__ import annotations

import numpy as np

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean
from ..attention import shared_heads, zero_where_nothing_is_seen
from ..emit import cast, emit, expand, info_of, reshape, squeeze, unsqueeze
from ..norms import normalised_groups
from ..torch_op import TorchOp, handles
from .batch_norm import parameter


@handles("aten.layer_norm", "aten.native_layer_norm")
def _layer_norm(op: TorchOp) -> list[ir.Value | None]:
    x, shape = op.tensor(0), op.number(1)
    dtype = info_of(x).dtype
    gamma, beta = parameter(op, 2, 1, shape, dtype), parameter(op, 3, 0, shape, dtype)
    axes = list(range(-len(shape), 0))
    result = emit(ops.LayerNorm, x, gamma, beta, axes=axes, epsilon=op.number(4, 1e-5))
    return [result, None, None][: len(op.results)]


@handles("aten.rms_norm")
def _rms_norm(op: TorchOp) -> ir.Value:
    x, shape = op.tensor(0), op.number(1)
    dtype = info_of(x).dtype
    epsilon = op.number(3)
    if epsilon is None:
        epsilon = float(np.finfo(np.float32).eps) if dtype.width < 64 else float(np.finfo(np.float64).eps)
    return emit(ops.RMSNorm, x, parameter(op, 2, 1, shape, dtype), axes=list(range(-len(shape), 0)), epsilon=epsilon)


@handles("aten.group_norm", "aten.native_group_norm")
def _group_norm(op: TorchOp) -> list[ir.Value | None]:
    """Layer norm over each group's channels and positions, then scale and shift per channel before any other reshape."""
    native = op.key == "aten.native_group_norm"
    x, groups = op.tensor(0), op.integer(6 if native else 1, "number of groups")
    scale, shift = (op.optional(i) for i in ((1, 2) if native else (2, 3)))
    result, info = normalised_groups(x, groups, op.number(7 if native else 4, 1e-5)), info_of(x)
    each = info_of(result).shape[2]
    for op_class, value in ((ops.Multiply, scale), (ops.Add, shift)):
        if value is not None:
            result = emit(op_class, result, reshape(value, (groups, each, 1)))
    return [reshape(result, info.shape), None, None][: len(op.results)]


@handles("aten.scaled_dot_product_attention")
def _attention(op: TorchOp) -> ir.Value:
    mask, dropout = op.optional(3), op.number(4, 0.0)
    return _attend(op, mask, dropout, bool(op.number(5, False)), op.number(6))


@handles("aten._scaled_dot_product_flash_attention_for_cpu")
def _flash_attention(op: TorchOp) -> list[ir.Value | None]:
    result = _attend(op, op.optional(5), op.number(3, 0.0), bool(op.number(4, False)), op.number(6))
    return [result, None][: len(op.results)]


def _attend(op: TorchOp, mask: ir.Value | None, dropout: float, causal: bool, scale: float | None) -> ir.Value:
    if dropout:
        raise RelaxError("expected a model in evaluation mode, got attention with dropout")
    query, key, value = (op.tensor(i) for i in range(3))
    added = max(0, 3 - info_of(query).rank)
    query, key, value = (unsqueeze(v, *range(added)) for v in (query, key, value))
    key, value = shared_heads(key, value)
    query = _with_heads_of(query, key)
    if mask is not None and info_of(mask).dtype != boolean():
        mask = cast(mask, info_of(query).dtype)
    result = emit(ops.Attention, query, key, value, mask, causal=causal, scale=scale)
    return squeeze(_zero_where_nothing_is_seen(op, result, mask), *range(added))


def _with_heads_of(query: ir.Value, key: ir.Value) -> ir.Value:
    """torch broadcasts one query head over the keys' heads; ours only shares key heads."""
    shape, heads = list(info_of(query).shape), info_of(key).shape[-3]
    if shape[-3] != 1 or heads == 1:
        return query
    return expand(query, [*shape[:-3], heads, *shape[-2:]])


def _zero_where_nothing_is_seen(op: TorchOp, result: ir.Value, mask: ir.Value | None) -> ir.Value:
    """torch gives zeros for a query whose mask hides every key, relax.attention NaN."""
    if mask is None or op.values.shows_all_a_key(mask):
        return result
    return zero_where_nothing_is_seen(result, mask)
