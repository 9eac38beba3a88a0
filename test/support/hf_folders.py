"""Folders that ``save_pretrained`` writes, of tiny models with random weights, and what ``transformers.load`` makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

import relaxir as rx
from support import models

__all__ = ["SMALL", "T5", "RoundedCache", "loaded", "saved"]

transformers.utils.logging.disable_progress_bar()

SMALL = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
SMALL |= {"max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}

T5 = {"vocab_size": 96, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 4, "pad_token_id": 0}
T5 |= {"eos_token_id": 1, "decoder_start_token_id": 0}


def saved(class_name: str, kind: str, options: dict[str, Any], folder: Path) -> Any:
    """A model with random weights whose bf16 shards lie in a folder, read again in f32."""
    torch.manual_seed(0)
    model = getattr(transformers, class_name)(transformers.AutoConfig.for_model(kind, **options)).eval()
    with torch.no_grad():  # first values are so small that one token is as likely as another
        for parameter in model.parameters():
            parameter.mul_(4)
    model.to(torch.bfloat16).save_pretrained(folder, max_shard_size="20KB")
    return type(model).from_pretrained(folder, dtype=torch.float32).eval()


def loaded(folder: Path, *args: Any, **options: Any) -> Any:
    with models.quiet():
        return rx.transformers.load(folder, *args, **{"max_length": 32} | options)


class RoundedCache(transformers.DynamicCache):
    """What transformers keeps of tokens, rounded to a dtype, so that it computes as we do with a cache of this dtype."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self._rounded = dtype

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return super().update(*(x.to(self._rounded).to(x.dtype) for x in (key_states, value_states)), *args, **kwargs)
