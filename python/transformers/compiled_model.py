"""What compiled models have in common for transformers: a configuration, and no parameters of their own."""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from ..dialect.errors import RelaxError

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

    def save_pretrained(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises RelaxError: weights are in the order of kernels, and no parameters."""
        raise RelaxError(
            f"expected a model with parameters to save, got a compiled {type(self).__name__}: the folder that it was loaded "
            "from is what save_pretrained writes"
        )

    push_to_hub: Any = save_pretrained
