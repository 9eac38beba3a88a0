"""Models of transformers where they write buffers as they run, or take a cache to end with the last token: made exportable."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Generator, Iterator, Set
from types import ModuleType
from typing import Any, cast

import torch
from torch import nn
from torch.func import functional_call
from transformers import PreTrainedModel
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ..dialect.errors import RelaxError
from .cache_name import CACHE
from .linear_attention import BLOCK, REPLACED

__all__ = ["Window", "adjust", "expect_known_states", "states_behind", "tokens_at_once", "windows_of"]


#: What makes the mask of layers with states, in the modules that use it.
_MASK = "create_recurrent_attention_mask"


class Window:
    """Which tokens each may look at, as a table that attention reads the rows of its own tokens from.

    GPT-Neo's local attention takes the last rows as long as the keys are, which here are as long as the cache.

    Attributes:
        past: how many tokens there are before those of a call, a 0-d tensor.
    """

    def __init__(self, module: nn.Module):
        self._module = module
        self.past: Any = 0

    def __getitem__(self, index: tuple[slice, slice, slice, slice]) -> torch.Tensor:
        """``[..., keys - tokens : keys, :keys]``."""
        rows, columns = index[2:]
        table = cast("torch.Tensor", self._module.window)
        return table[..., : columns.stop].index_select(2, self.past + torch.arange(rows.stop - rows.start))


def adjust(model: PreTrainedModel) -> None:
    """Changes the parts of a model that torch.export, or a cache at its full length, would read other numbers of."""
    for module in list(model.modules()):
        kind: object = getattr(module, "rope_type", None)
        if kind == "longrope":
            _choose_frequencies(module)
        if kind in ("dynamic", "longrope"):
            # The forward of transformers leaves frequencies of "default" as they are. Those of "dynamic" would change for
            # sequences longer than max_position_embeddings, which are refused.
            cast("Any", module).rope_type = "default"
        table = module._buffers.get("bias")
        if getattr(module, "attention_type", None) == "local" and table is not None:
            del module._buffers["bias"]
            module.window = nn.Buffer(table, persistent=False)
            module.bias = cast("Any", Window(module))


@contextlib.contextmanager
def states_behind(model: PreTrainedModel) -> Generator[None]:
    """Layers with states go on from what their cache holds meanwhile, in a call of up to :func:`tokens_at_once` tokens.

    transformers gives them the last ones of the mask, which a mask as long as the cache has elsewhere.
    """
    replaced = REPLACED | {_MASK: _recurrent_mask}
    kept = [(m, name, getattr(m, name)) for m in _modules(model) for name in replaced if hasattr(m, name)]
    for module, name, _ in kept:
        setattr(module, name, replaced[name])
    try:
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)


def tokens_at_once(model: PreTrainedModel, length: int) -> int:
    """How many tokens a call can have: all, or a block where layers compute with blocks."""
    return min(length, BLOCK) if any(hasattr(m, name) for m in _modules(model) for name in REPLACED) else length


def expect_known_states(model: PreTrainedModel, kept: Set[str]) -> None:
    """Raises RelaxError for a model that would compute its states token by token, or with a mask that begins elsewhere.

    Args:
        model: of transformers.
        kept: what its layers keep, by the names of :class:`~.cache_layers.KeptCache`.
    """
    there = {name for module in _modules(model) for name in (_MASK, *REPLACED) if hasattr(module, name)}
    has_sums = any(name.startswith("recurrent") for name in kept)
    is_known = _MASK in there and (not has_sums or there & set(REPLACED))
    if not is_known and kept - {"keys", "values"}:
        known = "keys and values, or states of convolutions, the gated delta rule or Mamba 2"
        raise RelaxError(f"expected a model whose layers keep {known}, got {type(model).__name__}")


def _modules(model: PreTrainedModel) -> list[ModuleType]:
    """The Python modules whose classes a model is of."""
    return [sys.modules[name] for name in {type(part).__module__ for part in model.modules()}]


def _recurrent_mask(
    config: Any, inputs_embeds: torch.Tensor, attention_mask: torch.Tensor, **given: Any
) -> torch.Tensor | None:  # fmt: skip
    """[rows, n] of a mask [rows, length]; a token that was generated is no padding."""
    count = inputs_embeds.shape[1]
    return None if count == 1 else attention_mask.index_select(1, given[CACHE].past + torch.arange(count))


def windows_of(model: PreTrainedModel) -> Iterator[Window]:
    """The tables that :func:`adjust` has put there."""
    for module in model.modules():
        if isinstance(window := module.__dict__.get("bias"), Window):
            yield window


def _choose_frequencies(rotary: Any) -> None:
    """Of two sets, the last position of a call chooses one; transformers writes it into a buffer."""
    most: int = rotary.config.rope_parameters["original_max_position_embeddings"]
    long, _ = ROPE_INIT_FUNCTIONS["longrope"](rotary.config, rotary.inv_freq.device, seq_len=most + 1)
    rotary.longer_inv_freq = nn.Buffer(long, persistent=False)
    own = copy.deepcopy(rotary)
    own.rope_type = "default"

    def forward(x: torch.Tensor, position_ids: torch.Tensor) -> Any:
        is_long = position_ids.max() + 1 > most
        chosen = torch.where(is_long, rotary.longer_inv_freq, rotary.original_inv_freq)
        return functional_call(own, {"inv_freq": chosen}, (x, position_ids))

    rotary.forward = forward
