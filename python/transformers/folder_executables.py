"""Executables of a folder, with their weights: made, or found in the caches of code and of prepared weights."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.export import ExportedProgram
from transformers import PreTrainedConfig, PreTrainedModel

from .. import __version__, frontend
from ..checkpoint import are_alike, reading_source
from ..compiler import compile_once
from ..dialect.errors import RelaxError, warn
from ..frontend import from_torch
from ..module import Module
from ..runtime.executable import Executable
from ..runtime.prepare import ProgressHook
from ..weights.formats.encoded import EncodedSource
from ..weights.opening import decoded, open_tensors
from .experts import EXPERTS, GROUPED_EXPERTS
from .folder_weights import FolderWeights, apart, file_names
from .skeleton import skeleton

__all__ = ["PREFIX", "FolderExecutables", "Programs"]

#: Before the names that weights have in the model.
PREFIX = "model."

#: What is exported of a model without memory, by entry.
Programs = Callable[[PreTrainedModel], dict[str, ExportedProgram]]


@dataclass(frozen=True, eq=False)
class FolderExecutables:
    """What executables of a folder are made of; the fields are as for :func:`~.loading.load`.

    Attributes:
        config: of the model, without what it says of quantization.
        model_class: that transformers has for it.
    """

    path: str
    config: PreTrainedConfig
    model_class: type[PreTrainedModel]
    weights: str | None
    activations: str | None
    target: str
    device: str | None
    threads: int | None
    jobs: int
    progress: ProgressHook | None

    def executable(self, key: tuple[str, ...], programs: Programs) -> Executable:
        """With its weights.

        Args:
            key: what determines the programs beside the model.
            programs: called where no cache has the code.
        """
        # Which tensors are encoded, and how, says the file: code for one is of use for it alone.
        encoded = () if self._encoded is None else (str(self._encoded.identity),)
        skeleton, config = self.skeleton, self.config.to_json_string(use_diff=False)
        made = compile_once(
            (config, self.model_class.__name__, *key, *encoded, _versions()),
            lambda: self._module(programs),
            self.target,
            weights=self.weights,
            activations=self.activations,
            device=self.device,
        )
        if self.threads is not None:
            made.threads = self.threads
        expected = {name: spec.array for name, spec in made.manifest.raw_weights.items()}
        return made.load_weights(FolderWeights(self._tensors, skeleton, expected, PREFIX), self.jobs, self.progress)

    def _module(self, programs: Programs) -> Module:
        module = from_torch(self._exported(programs))
        if self._encoded is None:
            return module
        names = file_names(self._encoded, self.skeleton, PREFIX)
        return reading_source(module, self._encoded, names)

    def _exported(self, programs: Programs) -> dict[str, ExportedProgram]:
        """The programs of the model without memory.

        Raises:
            RelaxError: torch.export does not take it, or it wants other inputs.
        """
        try:
            return programs(self.skeleton)
        except RelaxError:
            raise
        except Exception as error:  # of the model's own code, which may be anything
            reason = (str(error) or type(error).__name__).strip().splitlines()[0]
            name = self.model_class.__name__
            raise RelaxError(f"'{self.path}': expected a model that torch.export takes, got {name}: {reason}") from error

    @functools.cached_property
    def _tensors(self) -> Any:
        return decoded(open_tensors(self.path))

    @property
    def _encoded(self) -> EncodedSource | None:
        """The folder's tensors where some are encoded.

        Raises:
            RelaxError: as for ``compile(checkpoint=)``.
        """
        if not isinstance(self._tensors, EncodedSource):
            return None
        if self.weights == "bf16":
            raise RelaxError("expected weights as int8, int4 or None for what a quantized checkpoint has wide, got 'bf16'")
        return self._tensors

    @functools.cached_property
    def skeleton(self) -> PreTrainedModel:
        """The model without memory; what its configuration ties and the folder has twice, and different, is not tied."""
        model = skeleton(self.model_class, self.config, self._experts)
        names = apart(self._tensors, model)
        if not names:
            return model
        warn(f"'{self.path}': config.json ties {' and '.join(names)}, which differ there: both are taken, and not tied")
        self.config.tie_word_embeddings = self.config.get_text_config().tie_word_embeddings = False
        return skeleton(self.model_class, self.config, self._experts)

    @property
    def _experts(self) -> str:
        """The form of mixtures. Encoded experts that have an order or a table each of its own do not make one matrix."""
        return GROUPED_EXPERTS if self._encoded is None or are_alike(self._encoded) else EXPERTS


@functools.cache
def _versions() -> str:
    """Of what makes a module of a configuration; the sources, too, which change between versions."""
    digest = hashlib.sha256()
    for folder in (*frontend.__path__, os.path.dirname(__file__)):
        for path in sorted(Path(folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return f"relaxir {__version__} torch {torch.__version__} transformers {transformers.__version__} {digest.hexdigest()}"
