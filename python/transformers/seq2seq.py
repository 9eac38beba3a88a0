"""A compiled model with an encoder, as transformers has it: ``generate()`` calls that once, then ``forward`` per token."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig, PreTrainedConfig
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from ..dialect.errors import RelaxError
from ..runtime.executable import Executable
from .cache_name import CACHE
from .call_inputs import expect_known, mask_of, tokens_of
from .generating import CompiledGenerator, ExecutableCache, MakeExecutable

__all__ = ["CompiledForSeq2Seq"]

#: What a call takes beside the encoder's main input.
_INPUTS = ("attention_mask", "decoder_input_ids", "decoder_attention_mask", "encoder_outputs", CACHE)


class _Seq2SeqCache(ExecutableCache):
    """A decoder's cache, and keys and values of the encoder's results.

    Attributes:
        cross: of each layer [rows, heads, source, size]; none before the first call.
    """

    def __init__(self, length: int):
        super().__init__(length)
        self.cross: list[torch.Tensor] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> ExecutableCache:
        other = super().__deepcopy__(memo)
        assert isinstance(other, _Seq2SeqCache)
        other.cross = list(self.cross)
        return other

    def take_rows(self, indices: torch.Tensor) -> None:
        super().take_rows(indices)
        self.cross = [one[indices] for one in self.cross]


class _Encoder:
    """What ``generate()`` takes the encoder for; it looks at the arguments of ``forward``."""

    def __init__(self, executable: Executable, main_input_name: str):
        self._executable, self.main_input_name = executable, main_input_name

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        input_features: torch.Tensor | None = None,
        return_dict: bool = True,
        **kwargs: Any,
    ) -> Any:
        """The encoder's results, [batch, n, width].

        Args:
            input_ids: [batch, n] numbers of tokens.
            attention_mask: [batch, n], 0 for padding.
            input_features: [batch, features, frames], in place of tokens.
            return_dict: False for a tuple.
            kwargs: what ``generate()`` asks every encoder; attentions and hidden states are not kept.

        Raises:
            RelaxError: attentions or hidden states are asked for, or there is no input.
        """
        asked = [name for name, value in kwargs.items() if value is not None and value is not False]
        source = input_ids if self.main_input_name == "input_ids" else input_features
        if asked or source is None:
            raise RelaxError(f"expected {self.main_input_name} and a mask, got {asked[0] if asked else 'no such input'}")
        given = (source,) if self.main_input_name != "input_ids" else _tokens_and_mask(source, attention_mask)
        found = BaseModelOutput(last_hidden_state=self._executable(*given, entry="encode"))
        return found if return_dict else found.to_tuple()

    __call__ = forward


def _tokens_and_mask(source: torch.Tensor, mask: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = tokens_of(source, "input_ids")
    return tokens, torch.ones_like(tokens) if mask is None else mask_of(mask, "attention_mask", *tokens.shape).long()


class CompiledForSeq2Seq(CompiledGenerator):
    """A compiled model of encoder and decoder. ``generate()`` is that of transformers.

    The encoder takes any number of sources; what has code for each number of rows, and the length, are the decoder's.
    """

    cache_class = _Seq2SeqCache

    def __init__(
        self,
        config: PreTrainedConfig,
        encoder: Executable,
        make: MakeExecutable,
        length: int,
        main_input_name: str,
        generation_config: GenerationConfig | None = None,
    ):
        """Takes the executables.

        Args:
            config: of the folder.
            encoder: of :func:`~.encoder_decoder.encoder_programs`.
            make: the executable of :func:`~.encoder_decoder.encoder_decoder_programs` for so many rows.
            length: how many tokens the decoder can have.
            main_input_name: of the encoder.
            generation_config: None is what the configuration says.
        """
        super().__init__(config, make, length, generation_config)
        self.main_input_name, self._encoder = main_input_name, encoder

    def get_encoder(self, modality: str | None = None) -> Any:
        """The encoder alone."""
        return _Encoder(self._encoder, self.main_input_name)

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: _Seq2SeqCache | None = None,
        input_features: torch.Tensor | None = None,
        use_cache: bool = True,
        return_dict: bool = True,
        cache: _Seq2SeqCache | None = None,
        **others: Any,
    ) -> Any:
        """Logits of the decoder's tokens.

        Args:
            input_ids, attention_mask, input_features: of the encoder, where its results are not given.
            decoder_input_ids: [rows, n] numbers of tokens.
            decoder_attention_mask: [rows, all tokens so far], 0 for padding.
            encoder_outputs: of ``get_encoder()``.
            past_key_values: from an earlier call; None begins.
            use_cache: whether to return it.
            return_dict: False for a tuple.
            cache: what transformers 5.24 calls ``past_key_values``.
            others: what other models of transformers take; None, or False, is none.

        Raises:
            RelaxError: the cache is full, or holds another number of rows, or there are no tokens, or an input is another.
        """
        expect_known(others, (self.main_input_name, *_INPUTS))
        if decoder_input_ids is None:
            raise RelaxError("expected decoder_input_ids, got none")
        if encoder_outputs is None:
            encoder_outputs = self.get_encoder()(input_ids, attention_mask, input_features)
        tokens, hidden = tokens_of(decoder_input_ids, "decoder_input_ids"), encoder_outputs[0]
        rows, count = tokens.shape
        known: _Seq2SeqCache = self.cache_of(past_key_values if cache is None else cache)
        end, has_mask = known.end_of(count), attention_mask is not None and self.main_input_name == "input_ids"
        given, source = decoder_attention_mask, hidden.shape[1]
        mask = True if given is None else mask_of(given, "decoder_attention_mask", rows, end)
        source_mask = mask_of(attention_mask, "attention_mask", rows, source) if has_mask else torch.ones(rows, source)
        executable = self.executable(rows)
        state = known.begin(executable, rows)
        known.mask[:, :end] = mask
        if not known.cross:
            known.cross = list(self._encoder(hidden, entry="cross"))
        with known.calling():
            logits = executable(
                tokens,
                known.mask,
                torch.tensor(known.used),
                source_mask.long(),
                *known.cross,
                entry="decode" if count == 1 else "prefill",
                state=state,
            )
        known.used = end
        kept: dict[str, Any] = {CACHE: known if use_cache else None}
        found = Seq2SeqLMOutput(logits=logits, encoder_last_hidden_state=hidden, **kept)
        return found if return_dict else found.to_tuple()
