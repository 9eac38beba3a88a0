"""A compiled model that is called once for all of its inputs, as transformers has it: the same arguments, the same results."""

from __future__ import annotations

import typing
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.utils.generic import ModelOutput

from ..dialect.errors import RelaxError
from ..runtime.executable import Executable
from .compiled_model import CompiledModel

__all__ = ["CompiledEncoder"]

#: Inputs that may be left out, and what they are then: as in transformers, all tokens count, and are of one kind.
_DEFAULTS = {"attention_mask": torch.ones_like, "token_type_ids": torch.zeros_like}


class CompiledEncoder(CompiledModel):
    """A compiled encoder, or one with a head: classes of sequences, tokens or images, spans, words under a mask.

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
        self._output = _output_class(original)

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
        missing = [n for n in self._names if n not in given and n not in _DEFAULTS]
        if missing:
            raise RelaxError(f"expected inputs {', '.join(self._names)}, got no {missing[0]}")
        first = given[self._names[0]]
        found: Any = self._executable(*(given[n] if n in given else _DEFAULTS[n](first) for n in self._names))
        names = [spec.name for spec in self._executable.manifest.entries["main"].outputs]
        results = self._output(**dict(zip(names, (found,) if len(names) == 1 else found, strict=True)))
        as_dict = self.config.return_dict if return_dict is None else return_dict
        return results if as_dict else results.to_tuple()


def _output_class(original: type[PreTrainedModel]) -> Any:
    """What the model's ``forward`` says that it returns.

    Raises:
        RelaxError: it says nothing.
    """
    hint = typing.get_type_hints(original.forward).get("return")
    for one in typing.get_args(hint) or (hint,):
        if isinstance(one, type) and issubclass(one, ModelOutput):
            return one
    raise RelaxError(f"expected a model whose results transformers names, got {original.__name__}")
