"""What is exported of a decoder: tokens, mask, positions and the cache's length in, logits out; keys and values are state."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Generator
from typing import Any

import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.export import Dim, ExportedProgram
from torch.func import functional_call
from transformers import DynamicCache, PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from ..dialect.errors import RelaxError
from .adjusting import windows_of
from .cache_name import CACHE
from .exporting import exported

__all__ = ["FullLayer", "Shapes", "add_cache", "decoder_programs", "layer_shapes", "probed"]

#: Heads, and sizes of a key and of a value, of each layer.
Shapes = list[tuple[int, int, int]]


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


def _cache_shapes(model: PreTrainedModel) -> Shapes:
    """Found by a run without memory.

    Raises:
        RelaxError: a layer keeps something else than keys and values, or the model does not run with a cache of these.
    """
    caches = list[Cache]()

    def call(probe: Any) -> None:
        caches[:] = [DynamicCache()]
        probe(torch.zeros(1, 2, dtype=torch.int64), use_cache=True, **{CACHE: caches[0]})

    try:
        probed(model, call)
    except IndexError as error:  # a model of states, as Mamba, looks for layers of another kind
        reason = (str(error) or type(error).__name__).strip().splitlines()[0]
        kind = type(model).__name__
        message = f"expected a model whose layers keep keys and values, got {kind}, which fails with a cache of these: {reason}"
        raise RelaxError(message) from error
    return layer_shapes(caches[0], model)


def probed(model: PreTrainedModel, call: Callable[[Any], Any]) -> None:
    """Calls the model without memory and contents; once more as one that pads, where it cannot be without.

    Most that have a token for padding look for it in the tokens, which have no contents; others need it.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    tensors = (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))
    fake = {name: mode.from_tensor(tensor) for name, tensor in tensors}

    def probe(*args: Any, **given: Any) -> Any:
        return functional_call(model, fake, args, given)

    try:
        with mode, torch.no_grad(), _without_padding(model):
            call(probe)
    except IndexError:
        raise
    except Exception:
        with mode, torch.no_grad():
            call(probe)


@contextlib.contextmanager
def _without_padding(model: PreTrainedModel) -> Generator[None]:
    """No configuration has a token for padding meanwhile; some would refuse None where it is assigned."""
    configs = {id(c): vars(c) for m in model.modules() if isinstance(c := getattr(m, "config", None), PreTrainedConfig)}
    kept = [(fields, fields["pad_token_id"]) for fields in configs.values() if "pad_token_id" in fields]
    for fields, _ in kept:
        fields["pad_token_id"] = None
    try:
        yield
    finally:
        for fields, value in kept:
            fields["pad_token_id"] = value


def layer_shapes(cache: Cache, model: PreTrainedModel) -> Shapes:
    """Of what a call left in a cache. Raises RelaxError where that is something else than keys and values."""
    found: list[Any] = [(getattr(layer, "keys", None), getattr(layer, "values", None)) for layer in cache.layers]
    if not found or any(keys is None or values is None or keys.ndim != 4 for keys, values in found):
        raise RelaxError(f"expected a model whose layers keep keys and values, got {type(model).__name__}")
    return [(keys.shape[1], keys.shape[3], values.shape[3]) for keys, values in found]


def add_cache(module: nn.Module, shapes: Shapes, rows: int, length: int, dtype: torch.dtype) -> None:
    """Gives a module the keys and values of its layers as buffers, each [rows, heads, length, size]."""
    for i, (heads, *sizes) in enumerate(shapes):
        for kind, size in zip(("keys", "values"), sizes, strict=True):
            module.register_buffer(f"{kind}_{i}", torch.zeros(rows, heads, length, size, dtype=dtype), persistent=False)


def _expect_causal(model: PreTrainedModel) -> None:
    """Heads for words on encoders generate where ``is_decoder`` says so; without it tokens see those behind them."""
    is_told = getattr(model.config, "is_decoder", None) is False
    if is_told and any(getattr(module, "is_decoder", True) is False for module in model.modules()):
        kind = type(model).__name__
        raise RelaxError(f"expected is_decoder as true in config.json of {kind}, whose tokens see those behind them without it")


def _takes_positions(model: PreTrainedModel) -> bool:
    """Whether the model's forward takes position_ids beside its mask."""
    return "position_ids" in inspect.signature(model.forward).parameters


class _Decoder(nn.Module):
    """A model with its cache as buffers."""

    def __init__(self, model: PreTrainedModel, shapes: Shapes, batch: int, length: int, cache: torch.dtype):
        super().__init__()
        self.model = model
        self._cache = Cache(layers=[FullLayer() for _ in shapes])
        self._has_positions = _takes_positions(model)
        self._keeps = "logits_to_keep" in inspect.signature(model.forward).parameters
        add_cache(self, shapes, batch, length, cache)

    def forward(
        self, tokens: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, past: torch.Tensor, keep: torch.Tensor
    ) -> torch.Tensor:
        for i, layer in enumerate(self._cache.layers):
            assert isinstance(layer, FullLayer)
            layer.keys, layer.values, layer.past = getattr(self, f"keys_{i}"), getattr(self, f"values_{i}"), past
        for window in windows_of(self.model):
            window.past = past
        given: dict[str, Any] = {"position_ids": positions} if self._has_positions else {}
        given |= {"logits_to_keep": keep} if self._keeps else {}
        logits = self.model(tokens, attention_mask=mask, use_cache=True, **{CACHE: self._cache}, **given).logits
        return logits if self._keeps else logits[:, keep]


def decoder_programs(model: PreTrainedModel, batch: int, length: int, cache: torch.dtype) -> dict[str, ExportedProgram]:
    """``prefill``, for any number of tokens from 2 on, and ``decode``, for one.

    Their inputs: tokens [batch, n], mask [batch, length] (whether a token of the cache counts), positions [batch, n], past []
    (how many tokens are in the cache), keep [k] (of which of the n tokens logits are wanted). The result is [batch, k,
    vocabulary].

    Args:
        model: from :func:`~.skeleton.skeleton`.
        batch: how many sequences at once.
        length: how many tokens each can have.
        cache: of keys and values.

    Raises:
        RelaxError: the model keeps something else than keys and values, or its tokens see those behind them.
    """
    _expect_causal(model)
    step = _Decoder(model, _cache_shapes(model), batch, length, cache).eval()
    tokens, kept = Dim("n", min=2, max=length), Dim("k", min=1, max=length)
    dynamic = ({1: tokens}, None, {1: tokens}, None, {0: kept})
    many = exported(step, _example(batch, length, min(7, length)), dynamic)
    return {"prefill": many, "decode": exported(step, _example(batch, length, 1))}


def _example(batch: int, length: int, count: int) -> tuple[torch.Tensor, ...]:
    tokens, positions = torch.zeros(batch, count, dtype=torch.int64), torch.arange(count).repeat(batch, 1)
    return tokens, torch.ones(batch, length, dtype=torch.bool), positions, torch.tensor(0), torch.arange(max(1, count - 2))
