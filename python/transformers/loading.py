"""``load``: a folder that transformers wrote to a compiled model; code and prepared weights are kept, and found again."""

from __future__ import annotations

import copy
import functools
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import GenerationConfig, PreTrainedConfig, PreTrainedModel

from .. import __version__, frontend
from ..compiler import compile_once
from ..dialect.checks import expect_count
from ..dialect.errors import RelaxError
from ..frontend import from_torch
from ..module import Module
from ..runtime.executable import Executable
from ..runtime.prepare import ProgressHook
from ..weights.files import path_text
from ..weights.opening import open_tensors
from .decoder import PREFIX, decoder_programs
from .folder_weights import FolderWeights
from .generating import CompiledForCausalLM
from .skeleton import skeleton

__all__ = ["load"]

#: Tokens of a sequence where nobody says how many, and the model can have as many: a cache of 1 GiB for 8 billion parameters.
_LENGTH = 2048


def load(
    folder: str | os.PathLike[str],
    weights: str | None = None,
    *,
    activations: str | None = None,
    max_length: int | None = None,
    batch: int = 1,
    target: str = "cpu",
    device: str | None = None,
    jobs: int = 1,
    progress: ProgressHook | None = None,
) -> CompiledForCausalLM:
    """Compiles the model of a folder, prepares its weights, and gives what transformers can work with.

    Both are done once: the code is kept in the cache of :func:`relaxir.compile`, by the configuration, these options and all
    versions, and the weights in that of :meth:`Executable.load_weights`, by the code and what the files are.

    Args:
        folder: what ``save_pretrained`` writes: ``config.json`` and safetensors, in one file or shards; quantized ones, too.
        weights: what weights of products are stored in, ``"bf16"``, ``"int8"`` or ``"int4"``; None keeps all numbers, in f32.
        activations: ``"int8"``: as for :func:`relaxir.compile`.
        max_length: how many tokens a sequence can have, the prompt's among them; by default 2048, or as many as the model can.
        batch: of how many sequences at once the code is made now; code for other numbers is made when they come.
        target, device: as for :func:`relaxir.compile`.
        jobs: threads that prepare weights.
        progress: called after each step of the preparation.

    Raises:
        RelaxError: there is no such folder or model, its architecture is none that can be compiled, a file is missing or
            malformed, an option is none of these.
    """
    path = path_text(folder)
    config = _config(path)
    model_class = _model_class(config, path)
    length = _length(config, max_length)
    open_tensors(path)  # what is wrong with the files is said before the seconds that compiling takes
    source = _Source(path, config, model_class, weights, activations, length, target, device, jobs, progress)
    compiled = type(model_class.__name__, (CompiledForCausalLM,), {})  # pipelines look for the name of what they support
    made = compiled(copy.deepcopy(config), source.executable, length, _generation_config(path))
    made.executable(expect_count(batch, "a number of sequences from 1 on"))
    return made


@dataclass(frozen=True, eq=False)
class _Source:
    """What executables of a folder are made of; the fields are as for :func:`load`."""

    path: str
    config: PreTrainedConfig
    model_class: type[PreTrainedModel]
    weights: str | None
    activations: str | None
    length: int
    target: str
    device: str | None
    jobs: int
    progress: ProgressHook | None

    def executable(self, batch: int) -> Executable:
        """For so many sequences at once, with its weights."""
        config = self.config.to_json_string(use_diff=False)
        key = (config, self.model_class.__name__, str(self.length), str(batch), _versions())
        made = compile_once(
            key,
            lambda: self._module(batch),
            self.target,
            weights=self.weights,
            activations=self.activations,
            device=self.device,
        )
        expected = {name: spec.array for name, spec in made.manifest.raw_weights.items()}
        tensors = FolderWeights(open_tensors(self.path), self._skeleton, expected, PREFIX)
        return made.load_weights(tensors, self.jobs, self.progress)

    def _module(self, batch: int) -> Module:
        return from_torch(decoder_programs(self._skeleton, batch, self.length))

    @functools.cached_property
    def _skeleton(self) -> PreTrainedModel:
        return skeleton(self.model_class, self.config)


@functools.cache
def _versions() -> str:
    """Of what makes a module of a configuration; the sources, too, which change between versions."""
    digest = hashlib.sha256()
    for folder in (*frontend.__path__, os.path.dirname(__file__)):
        for path in sorted(Path(folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return f"relaxir {__version__} torch {torch.__version__} transformers {transformers.__version__} {digest.hexdigest()}"


def _config(path: str) -> PreTrainedConfig:
    if not os.path.isdir(path):
        raise RelaxError(f"expected a folder with config.json and weights, got '{path}'")
    if not os.path.isfile(os.path.join(path, "config.json")):
        raise RelaxError(f"'{path}': expected a folder with config.json, got none")
    config = _told(path, lambda: transformers.AutoConfig.from_pretrained(path))
    if hasattr(config, "quantization_config"):  # what is quantized in the files is decoded when it is prepared
        del config.quantization_config
    return config


def _generation_config(path: str) -> GenerationConfig | None:
    if not os.path.isfile(os.path.join(path, "generation_config.json")):
        return None
    return _told(path, lambda: GenerationConfig.from_pretrained(path))


def _told(path: str, read: Callable[[], Any]) -> Any:
    """What transformers reads; its complaints about a folder are one line."""
    try:
        return read()
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = (str(error) or type(error).__name__).strip().splitlines()[0]
        raise RelaxError(f"'{path}': expected a folder that transformers can read, got {reason}") from error


def _model_class(config: PreTrainedConfig, path: str) -> type[PreTrainedModel]:
    """The class that the configuration names, or else the architecture's for causal language models."""
    named = (config.architectures or [None])[0]
    found: Any = getattr(transformers, named, None) if named else None
    if found is None:
        found = transformers.AutoModelForCausalLM._model_mapping.get(type(config), None)
    if found is None or not hasattr(found, "generate"):
        raise RelaxError(f"'{path}': expected an architecture that generates tokens, got {named or config.model_type}")
    return found


def _length(config: PreTrainedConfig, wanted: int | None) -> int:
    """How many tokens a sequence can have."""
    most = getattr(config.get_text_config(), "max_position_embeddings", None)
    if wanted is None:
        return min(_LENGTH, most or _LENGTH)
    expect_count(wanted, "a number of tokens from 1 on as max_length")
    if most is not None and wanted > most:
        raise RelaxError(f"expected max_length up to {most}, the model's max_position_embeddings, got {wanted}")
    return wanted
