"""A compiled decoder as transformers has models: its own ``generate()`` calls ``forward``, and hands the cache around."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import torch
from transformers import GenerationConfig, GenerationMixin, PreTrainedConfig
from transformers.cache_utils import Cache
from transformers.modeling_outputs import CausalLMOutputWithPast

from ..dialect.errors import RelaxError
from ..runtime.executable import Executable
from ..runtime.state import State
from ..weights.arrays import Array
from .cache_layers import is_by_token
from .cache_name import CACHE
from .call_inputs import expect_known, kept_places, mask_of, positions_of, tokens_of
from .compiled_model import CompiledModel

__all__ = ["CompiledForCausalLM", "CompiledGenerator", "ExecutableCache", "MakeExecutable"]

#: The executable for so many rows, with its weights.
MakeExecutable = Callable[[int], Executable]


class ExecutableCache(Cache):
    """What ``generate()`` passes from call to call: an executable's state, and how much of it is in use.

    Attributes:
        used: how many tokens it holds.
        length: how many it can hold.
        mask: [rows, length], which tokens are no padding.
    """

    def __init__(self, length: int):
        super().__init__(layers=[])
        self.used, self.length = 0, length
        self.state: State | None = None
        self.mask = torch.ones(0, length, dtype=torch.bool)
        self._rows: dict[str, Array] = {}

    def __copy__(self) -> ExecutableCache:
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> ExecutableCache:
        """One to go on from here in another way."""
        other = type(self)(self.length)
        other.used, other.mask, other._rows = self.used, self.mask.clone(), dict(self._rows)
        other.state = None if self.state is None else self.state.copy()
        return other

    @property
    def batch_size(self) -> int:
        """How many rows it has; -1 before the first call."""
        return len(self.mask) or -1

    @property
    def is_linear(self) -> list[bool]:
        """False: ``generate()`` that goes on with a cache computes new tokens alone."""
        return [False]

    @property
    def is_compileable(self) -> bool:
        """False: else ``generate()`` would make masks of four dimensions, and ask for torch.compile."""
        return False

    def begin(self, executable: Executable, rows: int) -> State:
        """The state for so many rows; made at the first call, which knows how many there are.

        Raises:
            RelaxError: it holds another number of rows already.
        """
        if not len(self.mask):
            self.mask = torch.ones(rows, self.length, dtype=torch.bool)
        if len(self.mask) != rows:
            raise RelaxError(f"expected {len(self.mask)} rows of tokens, as the cache has, got {rows}")
        if self.state is None:
            self.state = executable.new_state()
            for name, array in self._rows.items():
                self.state[name] = array
            self._rows = {}
        return self.state

    def end_of(self, count: int) -> int:
        """How many tokens it holds with so many more.

        Raises:
            RelaxError: it has no place for them.
        """
        if self.used + count > self.length:
            raise RelaxError(
                f"expected at most {self.length} tokens in a sequence (max_length= of load), got {self.used + count}"
            )
        return self.used + count

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.used

    def get_max_length(self, layer_idx: int | None = None) -> int:
        return self.length

    @property
    def is_croppable(self) -> bool:
        """Whether the last tokens can be forgotten: states have taken them in."""
        return not self._sums()

    def _sums(self) -> list[Any]:
        """The states that are not by token."""
        return [array for name, array in (self.state or {}).items() if not is_by_token(name)]

    def reset(self) -> None:
        """Forgets all tokens: what lies behind the part in use is written before it is read, and states are zero again."""
        self.used = 0
        self.mask.fill_(True)
        for array in self._sums():
            array[:] = 0
        if self.state is not None:
            self.state.mend()

    @contextmanager
    def calling(self) -> Generator[None]:
        """Around calls: where one fails, the cache is as before them, unless states have taken in tokens."""
        used = self.used
        try:
            yield
        except RelaxError:
            if self.state is not None and self.is_croppable:
                self.used = used
                self.state.mend()
            raise

    def crop(self, tokens_to_remove: int) -> None:
        """Forgets the last tokens; transformers counts them as a negative number.

        Raises:
            RelaxError: states have taken them in.
        """
        if tokens_to_remove and not self.is_croppable:
            raise RelaxError(
                "expected a cache of keys and values alone, of which tokens can be taken back, got one with states"
            )
        self.used = max(0, self.used - abs(tokens_to_remove))
        self.mask[:, self.used :] = True

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Puts other rows in the place of each."""
        self.take_rows(beam_idx)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keeps some rows, in that order."""
        self.take_rows(indices)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Each row so many times, one behind the other."""
        self.take_rows(torch.arange(len(self.mask)).repeat_interleave(repeats))

    def take_rows(self, indices: torch.Tensor) -> None:
        """Has the rows of these numbers in place of its own; where they are not as many, calls are those of other code."""
        if not len(self.mask):
            return
        where, rows = indices.numpy(), len(self.mask)
        arrays = self._rows if self.state is None else self.state
        self.mask = self.mask[indices]
        if len(self.mask) != rows or self.state is None:
            self._rows, self.state = {name: array[where] for name, array in arrays.items()}, None
            return
        for array in self.state.values():
            array[:] = array[where]


class CompiledGenerator(CompiledModel, GenerationMixin):
    """What generates: code for each number of rows (sequences times beams), compiled, or found in the cache, when it is first
    needed, all with the same weights; and a cache whose size is known before the first token.

    Attributes:
        length: how many tokens a sequence can have, those of the prompt among them.
    """

    cache_class: type[ExecutableCache] = ExecutableCache

    def __init__(
        self, config: PreTrainedConfig, make: MakeExecutable, length: int, generation_config: GenerationConfig | None = None
    ):
        """Takes what makes executables.

        Args:
            config: of the folder.
            make: the executable for so many rows.
            length: how many tokens a sequence can have.
            generation_config: None is what the configuration says.
        """
        super().__init__(config)
        self.length = length
        self._make = make
        self._executables: dict[int, Executable] = {}
        self.generation_config = generation_config or GenerationConfig.from_model_config(config)

    @classmethod
    def can_generate(cls) -> bool:
        return True

    def executable(self, rows: int = 1) -> Executable:
        """The executable for so many rows: its report, its entries ``prefill`` and ``decode``."""
        if rows not in self._executables:
            self._executables[rows] = self._make(rows)
        return self._executables[rows]

    def cache_of(self, given: Any) -> Any:
        """The cache of an earlier call, or a new one.

        Raises:
            RelaxError: it is another model's.
        """
        if given is not None and not isinstance(given, self.cache_class):
            raise RelaxError(f"expected {CACHE} of an earlier call, got {type(given).__name__}")
        return self.cache_class(self.length) if given is None else given

    def _prepare_cache_for_generation(
        self,
        generation_config: GenerationConfig,
        model_kwargs: dict[str, Any],
        generation_mode: Any,
        batch_size: int,
        max_cache_length: int,
    ) -> bool:
        """Makes the cache, of a size that is known beforehand; what will not fit is refused before the first token."""
        if max_cache_length >= self.length:  # the last token needs no place, but counts
            raise RelaxError(
                f"expected at most {self.length} tokens in a sequence (max_length= of load), got a prompt and new ones of "
                f"{max_cache_length + 1}"
            )
        if generation_config.use_cache:
            model_kwargs.setdefault(CACHE, self.cache_class(self.length))
        return generation_config.use_cache


#: Architectures that count positions, where nobody gives them, of what the mask shows, and of tokens that are no padding.
_BY_MASK = ("opt",)
_BY_PADDING = ("camembert", "data2vec-text", "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod")
#: Architectures whose keys are computed again, with other frequencies, once a sequence is longer than the original length.
_BEGIN_AGAIN = ("phi3", "phi4_multimodal", "phimoe")
#: What a call takes.
_INPUTS = ("input_ids", "attention_mask", "position_ids", CACHE, "logits_to_keep")


class CompiledForCausalLM(CompiledGenerator):
    """A compiled decoder. ``generate()`` is that of transformers; calls give logits and a cache, as of any model there."""

    main_input_name = "input_ids"

    def __init__(
        self,
        config: PreTrainedConfig,
        make: MakeExecutable,
        length: int,
        at_once: int,
        generation_config: GenerationConfig | None = None,
    ):
        """Takes what makes executables.

        Args:
            config, make, length, generation_config: as for :class:`CompiledGenerator`.
            at_once: how many tokens an executable takes in a call; what is longer takes several.
        """
        super().__init__(config, make, length, generation_config)
        self._at_once = at_once

    def prepare_inputs_for_generation(self, input_ids: torch.Tensor, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """What transformers passes to a call; the cache is empty again where keys have other frequencies from now on."""
        cache, config = kwargs.get(CACHE), self.config
        most: int = getattr(config, "original_max_position_embeddings", 0) if config.model_type in _BEGIN_AGAIN else 0
        if isinstance(cache, ExecutableCache) and cache.used <= most < input_ids.shape[1] and most:
            cache.reset()
            args, kwargs["next_sequence_length"] = (), None
        return cast("Any", super()).prepare_inputs_for_generation(input_ids, *args, **kwargs)

    def _positions(self, cache: ExecutableCache, input_ids: torch.Tensor, is_masked: bool) -> torch.Tensor:
        """Of the next tokens, where nobody gives them: as the architecture counts."""
        end, kind, padding = cache.used + input_ids.shape[1], self.config.model_type, getattr(self.config, "pad_token_id", None)
        if kind in _BY_PADDING and padding is not None:
            is_token = (input_ids != padding).long()
            return (is_token.cumsum(1) + cache.used) * is_token + padding
        if kind in _BY_MASK and is_masked:
            mask = cache.mask[:, :end].long()
            return (mask.cumsum(1) * mask - 1)[:, cache.used :]
        return torch.arange(cache.used, end)[None]

    def _logits(
        self, tokens: torch.Tensor, positions: torch.Tensor, places: torch.Tensor, cache: ExecutableCache, state: State
    ) -> torch.Tensor:
        """Of the tokens at these places, in their order; so many tokens at once as an executable takes."""
        is_sorted = len(places) < 2 or bool((places[1:] > places[:-1]).all())
        wanted, order = (places, None) if is_sorted else torch.unique(places, return_inverse=True)
        executable, found = self.executable(len(tokens)), list[torch.Tensor]()
        for begin in range(0, tokens.shape[1], self._at_once):
            part = slice(begin, begin + self._at_once)
            size = tokens[:, part].shape[1]
            here = wanted if size == tokens.shape[1] else wanted[(wanted >= begin) & (wanted < begin + size)] - begin
            logits = executable(
                tokens[:, part],
                cache.mask,
                positions[:, part],
                torch.tensor(cache.used),
                here if len(here) else torch.tensor([size - 1]),
                entry="decode" if size == 1 else "prefill",
                state=state,
            )
            cache.used += size
            found += [logits] if len(here) else []
        logits = found[0] if len(found) == 1 else torch.cat(found, 1)
        return logits if order is None else logits[:, order]

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: ExecutableCache | None = None,
        use_cache: bool = True,
        logits_to_keep: int | torch.Tensor = 0,
        return_dict: bool = True,
        cache: ExecutableCache | None = None,
        **others: Any,
    ) -> Any:
        """Logits of tokens.

        Args:
            input_ids: [rows, n] numbers of tokens.
            attention_mask: [rows, all tokens so far], 0 for padding and 1 for others; None is all ones.
            position_ids: [rows, n], or [1, n]; None counts on from what the cache holds.
            past_key_values: from an earlier call; None begins.
            use_cache: whether to return it.
            logits_to_keep: of how many of the last tokens logits are wanted, 0 for all; or which of ``input_ids``, a tensor.
            return_dict: False for a tuple.
            cache: what transformers 5.24 calls ``past_key_values``.
            others: what other models of transformers take; None, or False, is none.

        Raises:
            RelaxError: the cache is full, or holds another number of rows, or an input is none of these.
        """
        expect_known(others, _INPUTS)
        tokens = tokens_of(input_ids, "input_ids")
        (rows, count), places = tokens.shape, kept_places(logits_to_keep, tokens.shape[1])
        known: ExecutableCache = self.cache_of(past_key_values if cache is None else cache)
        end = known.end_of(count)
        mask = None if attention_mask is None else mask_of(attention_mask, "attention_mask", rows, end)
        given = None if position_ids is None else positions_of(position_ids, rows, count)
        state = known.begin(self.executable(rows), rows)
        known.mask[:, :end] = True if mask is None else mask
        positions = self._positions(known, tokens, mask is not None).expand(rows, -1) if given is None else given
        with known.calling():
            logits = self._logits(tokens, positions, places, known, state)
        kept: dict[str, Any] = {CACHE: known if use_cache else None}
        output = CausalLMOutputWithPast(logits=logits, **kept)
        return output if return_dict else output.to_tuple()
