"""A compiled model that is called once for all of its inputs, as transformers has it: the same arguments, the same results."""

from __future__ import annotations

import sys
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import transformers.modeling_outputs
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.utils.generic import ModelOutput

from ..dialect.errors import RelaxError
from ..runtime.executable import Executable
from .call_inputs import numbers_of, whole_mask
from .compiled_model import CompiledModel

__all__ = ["CompiledEncoder"]

#: Architectures that hide padding where they get no mask, and that take as many first tokens as are no padding; elsewhere all
#: tokens count then.
_HIDE_PADDING, _COUNT_TOKENS = ("dpr",), ("flaubert", "xlm")


class CompiledEncoder(CompiledModel):
    """A compiled encoder, or one with a head: classes of sequences, tokens, sounds or images, spans, words under a mask.

    Sequences of any number and length (up to ``max_length``), padded ones with their mask, give what the model gives.
    """

    def __init__(
        self, config: PreTrainedConfig, executable: Executable, original: type[PreTrainedModel], names: tuple[str, ...]
    ):
        """Takes an executable, with its weights.

        Args:
            config: of the folder.
            executable: of :func:`~.encoder.encoder_program`.
            original: whose arguments and results these are.
            names: of the executable's inputs.
        """
        super().__init__(config)
        self._executable, self._names = executable, names
        self.main_input_name = original.main_input_name
        self._results = [spec.name for spec in executable.manifest.entries["main"].outputs]
        self._output = _output_class(original, self._results)

    def executable(self) -> Executable:
        """The executable: its report, its threads."""
        return self._executable

    def forward(self, *tensors: torch.Tensor, return_dict: bool | None = None, **named: Any) -> Any:
        """What the model gives of these inputs: a ``ModelOutput``, or a tuple for ``return_dict=False``.

        Args:
            tensors: inputs, in the order of the model.
            return_dict: None is what the configuration says.
            named: inputs by name; None, or False, is none.

        Raises:
            RelaxError: an input is missing, or it is none of those that were compiled.
        """
        given = dict(zip(self._names, tensors, strict=False))
        given |= {name: value for name, value in named.items() if value is not None and value is not False}
        unknown = [n for n in given if n not in self._names and n != "use_cache"]
        if unknown or len(tensors) > len(self._names):
            raise RelaxError(f"expected inputs {', '.join(self._names)}, got {', '.join(unknown) or len(tensors)}")
        other = [n for n, value in given.items() if n in self._names and not isinstance(value, torch.Tensor)]
        if other:
            raise RelaxError(f"expected {other[0]} as a tensor, got {type(given[other[0]]).__name__}")
        missing = [n for n in self._names if n not in given and n not in ("attention_mask", "token_type_ids")]
        if missing:
            raise RelaxError(f"expected inputs {', '.join(self._names)}, got no {missing[0]}")
        inputs: dict[str, Any] = {n: _as_exported(n, given.get(n, self._default(n, given))) for n in self._names}
        found: Any = self._executable(**inputs)
        results = self._output(**dict(zip(self._results, (found,) if len(self._results) == 1 else found, strict=True)))
        as_dict = self.config.return_dict if return_dict is None else return_dict
        return results if as_dict else results.to_tuple()

    def _default(self, name: str, given: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """An input that is left out: all tokens count, or those that are no padding, and they are of one kind."""
        tokens, padding = given[self._names[0]], getattr(self.config, "pad_token_id", None)
        if self.main_input_name == "input_values":
            return torch.ones(tokens.shape, dtype=torch.int64)
        if name != "attention_mask":
            return torch.zeros_like(tokens)
        if padding is None or self.config.model_type not in (*_HIDE_PADDING, *_COUNT_TOKENS):
            return torch.ones_like(tokens)
        counts = tokens != padding
        is_first = torch.arange(tokens.shape[1]) < counts.sum(1, keepdim=True)
        return (is_first if self.config.model_type in _COUNT_TOKENS else counts).long()


def _as_exported(name: str, given: torch.Tensor) -> torch.Tensor:
    """Tokens, kinds and masks of any integers or booleans, masks of floats, too, as the integers that were exported."""
    if name.endswith("mask") and given.is_floating_point():
        return whole_mask(given, name).long()
    return given if given.is_floating_point() or given.is_complex() else numbers_of(given, name)


def _output_class(original: type[PreTrainedModel], names: Sequence[str]) -> Any:
    """A class of results with these: what the model's ``forward`` says that it returns, or, where that has others, the first.

    Raises:
        RelaxError: there is none.
    """
    hint = typing.get_type_hints(original.forward).get("return")
    places = (sys.modules[original.__module__], transformers.modeling_outputs)
    for one in (*(typing.get_args(hint) or (hint,)), *(c for place in places for c in vars(place).values())):
        if isinstance(one, type) and issubclass(one, ModelOutput) and set(names) <= set(one.__annotations__):
            return one
    raise RelaxError(f"expected a model whose results transformers names, got {original.__name__} of {', '.join(names)}")
