"""Eager torch; for narrow weights, the operations that torch has for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from ..cases import Built, Case
from ..networks import GROUP
from . import Loaded

__all__ = ["arrays", "in_bf16", "load", "start"]


def start(threads: int) -> None:
    """One pool of threads, no gradients."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)


def arrays(result: Any) -> list[Any]:
    return [tensor.float().numpy() for tensor in tree_leaves(result)]


def load(case: Case, folder: Path, threads: int) -> Loaded:
    start(threads)
    built = case.make()
    if case.layers:
        return _narrow(case, built)
    if case.weights != "f32":
        return _narrow_model(case, built)
    return Loaded(lambda: built.module(**built.inputs), arrays)


def _narrow(case: Case, built: Built) -> Loaded:
    """Layers alone, activations in bf16: torch has these operations for nothing else."""
    module: Any = built.module
    x = built.inputs["x"].to(torch.bfloat16)
    steps = [_LAYERS[case.weights](getattr(module, f"q{i}"), getattr(module, f"s{i}", None)) for i in range(module.layers)]

    def call() -> torch.Tensor:
        y = x
        for step in steps:
            y = step(y)
        return y

    return Loaded(call, arrays, "bf16 activations")


def in_bf16(built: Built) -> Built:
    """The module and its inputs in bf16."""
    inputs = {name: x.to(torch.bfloat16) if x.is_floating_point() else x for name, x in built.inputs.items()}
    return Built(built.module.to(torch.bfloat16), inputs)


def _narrow_model(case: Case, built: Built) -> Loaded:
    """A model in bf16 whose linear layers have narrow weights."""
    layers = [(m, name, part) for m in built.module.modules() for name, part in m.named_children() if _is_linear(part)]
    for module, name, layer in layers if case.weights != "bf16" else ():
        setattr(module, name, _Quantized(case.weights, layer.weight.detach()))
    built = in_bf16(built)
    return Loaded(lambda: built.module(**built.inputs), arrays, "all else in bf16")


def _is_linear(part: nn.Module) -> bool:
    return isinstance(part, nn.Linear)


class _Quantized(nn.Module):
    """A linear layer on a weight that :func:`networks.llama` rounded."""

    def __init__(self, dtype: str, weight: torch.Tensor):
        super().__init__()
        groups = weight.view(weight.shape[0], 1 if dtype == "int8" else -1, GROUP if dtype == "int4" else weight.shape[1])
        largest = groups.gather(2, groups.abs().argmax(2, keepdim=True))
        scale = largest.abs() / 127 if dtype == "int8" else largest / -8
        stored = (groups / scale).round().to(torch.int8).view(weight.shape)
        self.call = {"int8": _int8, "int4": _int4}[dtype](stored, scale[:, :, 0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.call(x.view(-1, x.shape[-1])).view(*x.shape[:-1], -1)


def _bf16(weight: torch.Tensor, scale: torch.Tensor | None) -> Any:
    return lambda x: torch.nn.functional.linear(x, weight)


def _int8(weight: torch.Tensor, scale: torch.Tensor) -> Any:
    narrow = scale[:, 0].to(torch.bfloat16)
    return lambda x: torch.ops.aten._weight_int8pack_mm(x, weight, narrow)


def _int4(weight: torch.Tensor, scale: torch.Tensor) -> Any:
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu((weight + 8).to(torch.int32), 1)
    scale = scale.T.to(torch.bfloat16)
    both = torch.stack([scale, torch.zeros_like(scale)], -1).contiguous()
    return lambda x: torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, GROUP, both)


_LAYERS = {"bf16": _bf16, "int8": _int8, "int4": _int4}
