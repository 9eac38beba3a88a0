"""What is exported of a model that is called once for all of its inputs: tokens, sounds, images; results out."""

from __future__ import annotations

import bisect
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.export import Dim, ExportedProgram
from transformers import PreTrainedConfig, PreTrainedModel

from ..dialect.checks import expect_count
from ..dialect.errors import RelaxError
from .exporting import exported, open_size

__all__ = ["encoder_program", "image_size", "input_names"]

#: Sizes of an image where neither config.json nor preprocessor_config.json has any: what most are trained with.
_IMAGE = (224, 224)

_TOKENS = ("input_ids", "attention_mask", "token_type_ids")

#: Of models whose convolutions make vectors of sounds: how many they make of so many samples.
_VECTORS = "_get_feat_extract_output_lengths"
#: One vector alone is another case to torch.export.
_VECTORS_AT_LEAST = 2


class _Encoder(nn.Module):
    """A model whose arguments are tensors alone, and results those that are tensors, by name."""

    def __init__(self, model: PreTrainedModel, names: tuple[str, ...]):
        super().__init__()
        self.model, self._names = model, names
        takes_cache = "use_cache" in inspect.signature(model.forward).parameters
        self._given: dict[str, Any] = {"use_cache": False} if takes_cache else {}
        self.forward: Any = _with_names(self._call, names)  # torch.export names inputs by it

    def _call(self, *tensors: torch.Tensor) -> dict[str, torch.Tensor]:
        found = self.model(**dict(zip(self._names, tensors, strict=True)), **self._given, return_dict=True)
        return {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}


def _with_names(call: Callable[..., Any], names: tuple[str, ...]) -> Any:
    """A function whose parameters have these names."""

    def named(*tensors: torch.Tensor) -> Any:
        return call(*tensors)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    made: Any = named
    made.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    return made


def input_names(model_class: type[PreTrainedModel], config: PreTrainedConfig) -> tuple[str, ...]:
    """The inputs of a model, in the order in which its executable takes them.

    Raises:
        RelaxError: it takes neither tokens nor images nor sounds.
    """
    takes, main = inspect.signature(model_class.forward).parameters, model_class.main_input_name
    if main == "pixel_values":
        return ("pixel_values",)
    if main == "input_values" and hasattr(model_class, _VECTORS):
        return tuple(n for n in ("input_values", "attention_mask") if n in takes)
    if main != "input_ids":
        raise RelaxError(f"expected a model of tokens, images or samples of sound, got {model_class.__name__} of {main}")
    has_types = getattr(config, "type_vocab_size", None) is not None  # else a model without them is another one than with zeros
    tokens = tuple(n for n in _TOKENS if n in takes and (n != "token_type_ids" or has_types))
    return (*tokens, *(n for n in ("pixel_values",) if n in takes))


def image_size(path: str, config: PreTrainedConfig) -> tuple[int, int]:
    """Height and width of a model's images, as its configuration has them, or else that of what prepares them."""
    vision: Any = getattr(config, "vision_config", config)
    found = getattr(vision, "image_size", None) or _processor_size(os.path.join(path, "preprocessor_config.json"))
    if isinstance(found, int):
        return found, found
    return (int(found[0]), int(found[1])) if found else _IMAGE


def _processor_size(file: str) -> tuple[int, int] | None:
    if not os.path.isfile(file):
        return None
    with open(file, encoding="utf-8") as text:
        options: Mapping[str, Any] = json.load(text)
    size = options.get("crop_size" if options.get("do_center_crop") else "size")
    if isinstance(size, int):
        return size, size
    return (size["height"], size["width"]) if isinstance(size, Mapping) and {"height", "width"} <= set(size) else None


def encoder_program(
    model: PreTrainedModel, names: tuple[str, ...], length: int | None, image: tuple[int, int]
) -> ExportedProgram:  # fmt: skip
    """One entry, for any number of sequences of up to ``length`` tokens or samples, or of images, or of both.

    Args:
        model: from :func:`~.skeleton.skeleton`.
        names: from :func:`input_names`: tokens, samples, and what belongs to them is [batch, length], images are [batch,
            channels, ...].
        length: how many tokens, or samples, a sequence can have; None for any number of samples.
        image: height and width.

    Raises:
        RelaxError: torch.export does not take the model, or ``length`` is less than what it makes two vectors of.
    """
    if "input_values" in names:
        return _program_of_sounds(model, names, length)
    most = expect_count(length, "a number of tokens from 1 on")
    vision: Any = getattr(model.config, "vision_config", model.config)
    pixels = (getattr(vision, "num_channels", 3), *image)

    def program(texts: Any, images: Any) -> ExportedProgram:
        several = 2 if texts is images else 3  # numbers that differ are no coincidence
        example = tuple(torch.zeros(several, *pixels) if n == "pixel_values" else _tokens(n, min(7, most)) for n in names)
        dynamic = tuple({0: images} if n == "pixel_values" else {0: texts} | counts for n in names)
        return exported(_Encoder(model, names), example, dynamic)

    batch, counts = Dim("batch", min=1), open_size(1, "length", 1, most)
    if len(names) == 1 or "pixel_values" not in names:
        return program(batch, batch)
    try:  # any texts with any images, as CLIP compares them
        return program(batch, Dim("images", min=1))
    except Exception:  # an image of each text's own
        return program(batch, batch)


def _program_of_sounds(model: PreTrainedModel, names: tuple[str, ...], length: int | None) -> ExportedProgram:
    least = _samples_of(model, _VECTORS_AT_LEAST)
    if length is not None and length < least:
        raise RelaxError(f"expected max_length from {least} on, of which {_VECTORS_AT_LEAST} vectors are made, got {length}")
    sizes = {0: Dim("batch", min=1)} | open_size(1, "samples", least, length)
    some = _samples_of(model, 7)
    count = some if length is None else min(some, length)
    example = tuple(torch.zeros(2, count) if n == "input_values" else _tokens(n, count) for n in names)
    return exported(_Encoder(model, names), example, tuple(sizes for _ in names))


def _samples_of(model: PreTrainedModel, vectors: int) -> int:
    """The fewest samples of which convolutions make so many vectors."""
    made = getattr(model, _VECTORS)
    return bisect.bisect_left(range(sys.maxsize), vectors, key=lambda samples: int(made(torch.tensor(samples))))


def _tokens(name: str, count: int) -> torch.Tensor:
    """Tensors of their own: torch.export takes one that comes twice for one input."""
    return (torch.ones if name == "attention_mask" else torch.zeros)(2, count, dtype=torch.int64)
