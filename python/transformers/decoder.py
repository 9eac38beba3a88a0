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
from transformers.cache_utils import Cache

from ..dialect.errors import RelaxError
from .adjusting import expect_known_states, states_behind, tokens_at_once, windows_of
from .cache_layers import KeptCache, Shapes, add_cache, layer_shapes
from .cache_name import CACHE
from .exporting import exported, open_size

__all__ = ["decoder_programs", "probed"]

#: Rows of a call that shows what layers keep: what has as many is by row.
_ROWS = 3


def _cache_shapes(model: PreTrainedModel) -> Shapes:
    """Found by a run without memory.

    Raises:
        RelaxError: a layer keeps something else than keys and values, or states that are known.
    """
    config: Any = model.config
    try:
        return _shapes_with(model, DynamicCache)
    except (IndexError, ValueError):  # layers of states are there only where the configuration says so
        return _shapes_with(model, lambda: DynamicCache(config=config))


def _shapes_with(model: PreTrainedModel, make: Callable[[], Cache]) -> Shapes:
    caches = list[Cache]()

    def call(probe: Any) -> None:
        caches[:] = [make()]
        probe(torch.zeros(_ROWS, 2, dtype=torch.int64), use_cache=True, **{CACHE: caches[0]})

    probed(model, call)
    shapes = layer_shapes(caches[0], model, _ROWS)
    expect_known_states(model, {name for layer in shapes for name in layer})
    return shapes


def probed(model: PreTrainedModel, call: Callable[[Any], Any]) -> None:
    """Calls the model without memory and contents; once more as one that pads, where it cannot be without.

    Most that have a token for padding look for it in the tokens, which have no contents; others need it.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    tensors = (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))
    fake: dict[str, torch.Tensor] = {name: mode.from_tensor(tensor) for name, tensor in tensors}

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
        self._cache = KeptCache(shapes)
        self._has_positions = _takes_positions(model)
        self._keeps = "logits_to_keep" in inspect.signature(model.forward).parameters
        add_cache(self, shapes, batch, length, cache)

    def forward(
        self, tokens: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, past: torch.Tensor, keep: torch.Tensor
    ) -> torch.Tensor:
        self._cache.take(self, past)
        for window in windows_of(self.model):
            window.past = past
        given: dict[str, Any] = {"position_ids": positions} if self._has_positions else {}
        given |= {"logits_to_keep": keep} if self._keeps else {}
        logits = self.model(tokens, attention_mask=mask, use_cache=True, **{CACHE: self._cache}, **given).logits
        return logits if self._keeps else logits[:, keep]


def decoder_programs(model: PreTrainedModel, batch: int, length: int, cache: torch.dtype) -> dict[str, ExportedProgram]:
    """``prefill``, for any number of tokens from 2 to :func:`~.adjusting.tokens_at_once`, and ``decode``, for one.

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
    most = tokens_at_once(model, length)
    tokens = open_size(1, "n", 2, most)
    dynamic = (tokens, None, tokens, None, {0: Dim("k", min=1, max=most)})
    with states_behind(model):
        many = exported(step, _example(batch, length, min(7, most)), dynamic)
        return {"prefill": many, "decode": exported(step, _example(batch, length, 1))}


def _example(batch: int, length: int, count: int) -> tuple[torch.Tensor, ...]:
    tokens, positions = torch.zeros(batch, count, dtype=torch.int64), torch.arange(count).repeat(batch, 1)
    kept = torch.arange(min(count, max(2, count - 2)))  # a single one is another case to torch.export
    return tokens, torch.ones(batch, length, dtype=torch.bool), positions, torch.tensor(0), kept
