"""oneDNN through torch: linear layers on weights that it packed ahead; its convolutions are those of eager torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..cases import Case
from . import Loaded, NotApplicableError
from .torch_eager import arrays, start

__all__ = ["load"]


class _Packed(nn.Module):
    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous())
        self.bias = None if bias is None else bias.detach()

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(input, self.weight, self.bias, "none", [], "")


def load(case: Case, folder: Path, threads: int) -> Loaded:
    if case.weights != "f32":
        raise NotApplicableError("torch packs f32 weights for it")
    start(threads)
    built = case.make()
    holder = nn.ModuleDict({"module": built.module})
    if not _replace(holder):
        raise NotApplicableError("no linear layer")
    module = holder["module"]
    return Loaded(lambda: module(**built.inputs), arrays)


def _replace(module: nn.Module) -> int:
    """Packs every linear layer (``Conv1D`` is GPT-2's name for one); returns how many."""
    count = 0
    for name, child in list(module.named_children()):
        part: Any = child
        if isinstance(child, nn.Linear):
            module._modules[name] = _Packed(part.weight, part.bias)
        elif type(child).__name__ == "Conv1D":
            module._modules[name] = _Packed(part.weight.T, part.bias)
        else:
            count += _replace(child)
            continue
        count += 1
    return count
