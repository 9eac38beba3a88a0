"""Recurrent layers decomposed as torch does it, but with the dropout between them in training.

torch leaves it out: it compares the number of layers with one that is less (``_rnn_helper``, torch 2.13).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch

__all__ = ["recurrent"]

_LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def recurrent(table: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The decompositions of these layers, by operator."""
    packets = [getattr(torch.ops.aten, name) for name in _LAYERS]
    overloads = [getattr(packet, name) for packet in packets for name in packet.overloads()]
    return {op: _with_dropout(op, table[op]) for op in overloads if op in table}


def _with_dropout(op: Any, decomposition: Callable[..., Any]) -> Callable[..., Any]:
    places = {a.name: i for i, a in enumerate(op._schema.arguments)}

    @functools.wraps(decomposition)
    def layers(x: torch.Tensor, *rest: Any) -> Any:
        given: tuple[Any, ...] = (x, *rest)
        count, share, train = (given[places[name]] for name in ("num_layers", "dropout", "train"))
        # In front of all of them: importing it is refused, wherever it is.
        return decomposition(torch.dropout(x, share, train=True) if train and share and count > 1 else x, *rest)

    return layers
