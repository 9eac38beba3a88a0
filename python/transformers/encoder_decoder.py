"""What is exported of a model with an encoder: this, keys and values of its results, and the decoder that reads these."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn
from torch.export import Dim, ExportedProgram
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from ..dialect.errors import RelaxError
from .cache_layers import FullLayer, KeptCache, Shapes, add_cache, layer_shapes
from .cache_name import CACHE
from .decoder import probed
from .exporting import exported, open_size

__all__ = ["encoder_decoder_programs", "encoder_programs"]


class _CrossLayer(FullLayer):
    """Keys and values of the encoder's results of one layer: noted when they are computed, or there already."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.keys, self.values = key_states, value_states
        return key_states, value_states


class _Encode(nn.Module):
    """Tokens and their mask, or features, to the encoder's results."""

    def __init__(self, model: PreTrainedModel):
        super().__init__()
        self.model = model

    def forward(self, source: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        given = {} if mask is None else {"attention_mask": mask}
        encoder: Any = self.model.get_encoder()
        return encoder(source, **given, return_dict=True).last_hidden_state


class _Cross(nn.Module):
    """The encoder's results to the keys and values of each layer, as the decoder computes them at its first token."""

    def __init__(self, model: PreTrainedModel, cache: torch.dtype):
        super().__init__()
        self.model = model
        self._dtype = cache

    def forward(self, hidden: torch.Tensor) -> dict[str, torch.Tensor]:
        layers = [_CrossLayer() for _ in range(_decoder_layers(self.model))]
        both = EncoderDecoderCache(DynamicCache(), Cache(layers=[*layers]))
        both.is_updated = dict.fromkeys(range(len(layers)), False)
        start = torch.zeros(hidden.shape[0], 1, dtype=torch.int64)
        self.model(
            decoder_input_ids=start,
            encoder_outputs=BaseModelOutput(hidden),
            use_cache=True,
            **{CACHE: both},
        )
        found = ((f"{kind}_{i}", getattr(layer, kind)) for i, layer in enumerate(layers) for kind in ("keys", "values"))
        return {name: value.to(self._dtype) for name, value in found}


class _Decoder(nn.Module):
    """The decoder, with the cache of its own tokens as buffers; keys and values of the encoder's results are inputs."""

    def __init__(self, model: PreTrainedModel, shapes: Shapes, rows: int, length: int, cache: torch.dtype):
        super().__init__()
        self.model = model
        self._cache = KeptCache(shapes)
        self._takes_positions = "decoder_position_ids" in inspect.signature(model.forward).parameters
        self._width = _width(model)
        add_cache(self, shapes, rows, length, cache)

    def forward(
        self, tokens: torch.Tensor, mask: torch.Tensor, past: torch.Tensor, source_mask: torch.Tensor, *cross: torch.Tensor
    ) -> torch.Tensor:
        there = [_CrossLayer() for _ in self._cache.layers]
        self._cache.take(self, past)
        for i, other in enumerate(there):
            other.keys, other.values = (x.to(self.model.dtype) for x in cross[2 * i : 2 * i + 2])
        both = EncoderDecoderCache(self._cache, Cache(layers=[*there]))
        both.is_updated = dict.fromkeys(range(len(there)), True)
        positions = (past + torch.arange(tokens.shape[1]))[None]
        given: dict[str, Any] = {"decoder_position_ids": positions} if self._takes_positions else {}
        hidden = torch.zeros(tokens.shape[0], cross[0].shape[2], self._width)  # only its shape is looked at
        return self.model(
            decoder_input_ids=tokens,
            decoder_attention_mask=mask,
            attention_mask=source_mask,
            encoder_outputs=BaseModelOutput(hidden),
            use_cache=True,
            **{CACHE: both},
            **given,
        ).logits


def encoder_programs(model: PreTrainedModel, length: int, cache: torch.dtype) -> dict[str, ExportedProgram]:
    """``encode``, source [batch, n] and mask [batch, n] to hidden [batch, n, width], and ``cross``, hidden to keys and values.

    Keys and values are [batch, heads, n, size], those of the first layer first. Features, as of sounds, are
    [batch, features, frames], without a mask.

    Args:
        model: from :func:`~.skeleton.skeleton`.
        length: how many tokens a source can have.
        cache: of keys and values.

    Raises:
        RelaxError: the model takes neither tokens nor features.
    """
    batch, count = Dim("batch", min=1), Dim("source", min=1, max=length)
    source = _source(model, min(5, length))
    dynamic = ({0: batch, 1: count},) * 2 if len(source) == 2 else ({0: batch},)
    encode = exported(_Encode(model), source, dynamic)
    hidden = torch.zeros(2, min(5, length), _width(model))
    cross = exported(_Cross(model, cache), (hidden,), ({0: batch, 1: count},), by_layers=False)
    return {"encode": encode, "cross": cross}


def encoder_decoder_programs(
    model: PreTrainedModel, rows: int, length: int, source: int, cache: torch.dtype
) -> dict[str, ExportedProgram]:
    """``prefill``, for any number of tokens from 2 on, and ``decode``, for one.

    Their inputs: tokens [rows, n], mask [rows, length], past [], as for :func:`~.decoder.decoder_programs`, source_mask
    [rows, m], and what ``cross`` gives. The result is [rows, n, vocabulary].

    Args:
        model: from :func:`~.skeleton.skeleton`.
        rows: how many sequences at once.
        length: how many tokens each can have.
        source: how many there can be of the encoder's results.
        cache: of keys and values.
    """
    own, other = _cache_shapes(model)
    step = _Decoder(model, own, rows, length, cache).eval()
    tokens, there = open_size(1, "n", 2, length), Dim("source", min=1, max=source)
    cross = tuple(torch.zeros(rows, h, min(5, source), size, dtype=cache) for one in other for h, size in one.values())
    programs = dict[str, ExportedProgram]()
    for name, count in (("prefill", min(7, length)), ("decode", 1)):
        example = (
            torch.zeros(rows, count, dtype=torch.int64),
            torch.ones(rows, length, dtype=torch.bool),
            torch.tensor(0),
            torch.ones(rows, min(5, source), dtype=torch.int64),
            *cross,
        )
        dynamic = (tokens if count > 1 else None, None, None, {1: there}, ({2: there},) * len(cross))
        programs[name] = exported(step, example, dynamic)
    return programs


def _source(model: PreTrainedModel, count: int) -> tuple[torch.Tensor, ...]:
    """Two sources, and their masks where they have any."""
    if model.main_input_name == "input_ids":
        return torch.zeros(2, count, dtype=torch.int64), torch.ones(2, count, dtype=torch.int64)
    if model.main_input_name != "input_features":
        kind = type(model).__name__
        raise RelaxError(f"expected an encoder of tokens or features of sounds, got {kind} of {model.main_input_name}")
    return (torch.zeros(2, model.config.num_mel_bins, 2 * model.config.max_source_positions),)


def _cache_shapes(model: PreTrainedModel) -> tuple[Shapes, Shapes]:
    """Of the decoder's own cache, and of that of the encoder's results."""
    caches = list[EncoderDecoderCache]()

    def call(probe: Any) -> None:
        caches[:] = [EncoderDecoderCache(DynamicCache(), DynamicCache())]
        start = torch.zeros(2, 2, dtype=torch.int64)
        names = (model.main_input_name, "attention_mask")
        given = dict(zip(names, _source(model, 2), strict=False))
        probe(**given, decoder_input_ids=start, use_cache=True, **{CACHE: caches[0]})

    probed(model, call)
    (both,) = caches
    return layer_shapes(both.self_attention_cache, model, 2), layer_shapes(both.cross_attention_cache, model, 2)


def _decoder_layers(model: PreTrainedModel) -> int:
    config: Any = model.config
    return getattr(config, "num_decoder_layers", None) or config.decoder_layers


def _width(model: PreTrainedModel) -> int:
    """Of the encoder's results."""
    config: Any = model.config
    return config.hidden_size
