"""What compiled models have in common for transformers: a configuration, and no parameters of their own."""

from __future__ import annotations

import torch
from transformers import PreTrainedConfig, PreTrainedModel

__all__ = ["CompiledModel"]


class CompiledModel(PreTrainedModel):
    """A model that transformers can work with; it takes tensors of the CPU, and gives such."""

    config_class = PreTrainedConfig
    _supports_sdpa = True  # what the configuration asks for is looked for here, too

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32
