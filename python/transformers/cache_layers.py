"""What layers keep of tokens, as buffers of a module: keys and values at their full length, or states of sizes of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin, DummyLayer, LinearAttentionCacheLayerMixin

from ..dialect.errors import RelaxError

__all__ = ["FullLayer", "KeptCache", "Shapes", "add_cache", "is_by_token", "layer_shapes"]

#: By layer the shapes of what it keeps of a row, by name: ``keys`` and ``values`` [heads, size], or states.
Shapes = list[dict[str, tuple[int, ...]]]

#: What is kept of each token.
_BY_TOKEN = ("keys", "values")
#: States by their names here and in transformers, where a layer has one or several of each.
_STATES = {"conv": "conv_states", "recurrent": "recurrent_states"}


class FullLayer(CacheLayerMixin):
    """Keys and values of one layer at their full length, which of a sliding window, too: the mask hides what is outside of it.
    They may have a narrower dtype than the model computes in.

    Attributes:
        past: how many tokens there are before those of this call, a 0-d tensor.
    """

    is_sliding = False
    is_croppable = True

    def __init__(self) -> None:
        super().__init__()
        self.is_initialized = True
        self.past: Any = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing to do: the memory is there."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.keys is not None
        assert self.values is not None
        places = self.past + torch.arange(key_states.shape[-2])
        self.keys.index_copy_(2, places, key_states.to(self.keys.dtype))
        self.values.index_copy_(2, places, value_states.to(self.values.dtype))
        return self.keys.to(key_states.dtype), self.values.to(value_states.dtype)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_max_length(), 0

    def get_seq_length(self) -> int:
        return self.past

    def get_max_length(self) -> int:
        assert self.keys is not None
        return self.keys.shape[2]


class _StateLayer(LinearAttentionCacheLayerMixin):
    """States, as large behind any number of tokens: the last inputs of a convolution, sums of linear attention.

    Before the first token they are zero, which is what layers without a state begin with.
    """

    def __init__(self, number_of_states: int = 1, **kwargs: Any) -> None:
        super().__init__(number_of_states, **kwargs)
        self.has_previous_state = dict.fromkeys(range(number_of_states), True)

    def lazy_initialization(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to do: the memory is there."""

    def update_conv_state(self, conv_states: torch.Tensor, state_idx: int = 0, **kwargs: Any) -> torch.Tensor:
        kept = self.conv_states[state_idx]
        assert kept is not None
        both = torch.cat([kept, conv_states], -1)
        kept.copy_(both[..., -kept.shape[-1] :])
        return both

    def update_recurrent_state(self, recurrent_states: torch.Tensor, state_idx: int = 0, **kwargs: Any) -> torch.Tensor:
        kept = self.recurrent_states[state_idx]
        assert kept is not None
        return kept.copy_(recurrent_states)


class _StateAndFullLayer(FullLayer, _StateLayer):
    """A layer with states beside its keys and values."""

    def __init__(self, number_of_states: int = 1) -> None:
        _StateLayer.__init__(self, number_of_states)
        FullLayer.__init__(self)


class KeptCache(Cache):
    """A cache whose layers are buffers of a module, which :func:`add_cache` has given it.

    Attributes:
        past: how many tokens there are before those of this call, a 0-d tensor.
    """

    def __init__(self, shapes: Shapes):
        super().__init__(layers=[_layer(one) for one in shapes])
        self._shapes = shapes
        self.past: Any = 0

    def take(self, module: nn.Module, past: torch.Tensor) -> None:
        """Takes what the module holds at the beginning of a call."""
        self.past = past
        for i, (layer, shapes) in enumerate(zip(self.layers, self._shapes, strict=True)):
            if isinstance(layer, FullLayer):
                layer.keys, layer.values, layer.past = getattr(module, f"keys_{i}"), getattr(module, f"values_{i}"), past
            for kind, states in _STATES.items():
                for j in _numbers(shapes, kind):
                    getattr(layer, states)[j] = getattr(module, f"{kind}{j}_{i}")

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.past


def _layer(shapes: Mapping[str, tuple[int, ...]]) -> Any:
    states = max((len(_numbers(shapes, kind)) for kind in _STATES), default=0)
    if not shapes:
        return DummyLayer()
    if not states:
        return FullLayer()
    return _StateAndFullLayer(states) if "keys" in shapes else _StateLayer(states)


def _numbers(shapes: Mapping[str, Any], kind: str) -> list[int]:
    """Which states of a kind a layer has."""
    return [int(name.removeprefix(kind)) for name in shapes if name not in _BY_TOKEN and name.startswith(kind)]


def layer_shapes(cache: Cache, model: PreTrainedModel, rows: int) -> Shapes:
    """Of what a call with so many rows left in a cache. Raises RelaxError where that is something else."""
    found = [_kept(layer) for layer in cache.layers]
    is_known = all(one or isinstance(layer, DummyLayer) for one, layer in zip(found, cache.layers, strict=True))
    kept = [(name, tensor) for one in found for name, tensor in one.items()]
    if not kept or not is_known or any(t.shape[0] != rows or (n in _BY_TOKEN and t.ndim != 4) for n, t in kept):
        raise RelaxError(f"expected a model whose layers keep keys and values, or states, got {type(model).__name__}")
    return [{n: tuple(t.shape[1::2] if n in _BY_TOKEN else t.shape[1:]) for n, t in one.items()} for one in found]


def _kept(layer: Any) -> dict[str, torch.Tensor]:
    found: dict[str, Any] = {kind: getattr(layer, kind, None) for kind in _BY_TOKEN}
    for kind, states in _STATES.items():
        found |= {f"{kind}{i}": state for i, state in getattr(layer, states, {}).items()}
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def is_by_token(buffer: str) -> bool:
    """Whether a buffer that :func:`add_cache` has made has a place for each token."""
    return buffer.startswith(tuple(f"{name}_" for name in _BY_TOKEN))


def add_cache(module: nn.Module, shapes: Shapes, rows: int, length: int, dtype: torch.dtype) -> None:
    """Gives a module what its layers keep as buffers: keys and values [rows, heads, length, size] of a dtype, states of f32."""
    for i, layer in enumerate(shapes):
        for name, shape in layer.items():
            is_by_token = name in _BY_TOKEN
            sizes: Sequence[int] = (rows, shape[0], length, shape[1]) if is_by_token else (rows, *shape)
            module.register_buffer(f"{name}_{i}", torch.zeros(sizes, dtype=dtype if is_by_token else None), persistent=False)
