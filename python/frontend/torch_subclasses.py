"""Weights that are several tensors to PyTorch, as torchao quantizes them: each of these becomes a weight of its own.

``mlp.weight``, made of ``qdata`` and ``scale``, becomes ``mlp.weight.qdata`` and ``mlp.weight.scale``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ..dialect.errors import RelaxError
from .torch_decomposing import decomposing

__all__ = ["unwrapped"]

#: What torch calls the tensors of a weight where it takes one apart, and a number.
_PARTS = "{}parametrizations.{}.original"


def unwrapped(program: ExportedProgram) -> ExportedProgram:
    """The program with plain tensors for weights: itself, where it has no others.

    Raises:
        RelaxError: torch cannot take its weights apart.
    """
    wrapped = {name: value for name, value in program.state_dict.items() if is_traceable_wrapper_subclass(value)}
    if not wrapped:
        return program
    try:
        with decomposing():
            result = program.run_decompositions({})
    except Exception as error:  # torch raises what it likes here
        raise RelaxError(f"torch cannot take apart weights such as '{next(iter(wrapped))}': {error}") from error
    names = dict(_names(wrapped))
    for spec in result.graph_signature.input_specs:
        spec.target = names.get(spec.target or "", spec.target)
    for old in [name for name in result.state_dict if name in names]:
        result.state_dict[names[old]] = result.state_dict.pop(old)
    return result


def _names(wrapped: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What torch calls the parts, and what they are called here."""
    for name, value in wrapped.items():
        module, dot, own = name.rpartition(".")
        for number, part in enumerate(_parts(value)):
            yield f"{_PARTS.format(module + dot, own)}{number}", f"{name}.{part}"


def _parts(value: Any) -> Iterator[str]:
    """The attributes that plain tensors are in, in the order in which torch counts them."""
    for attribute in value.__tensor_flatten__()[0]:
        inner: torch.Tensor = getattr(value, attribute)
        if is_traceable_wrapper_subclass(inner):
            yield from (f"{attribute}.{part}" for part in _parts(inner))
        else:
            yield attribute
