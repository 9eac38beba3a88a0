"""Eager torch; for narrow weights, the operations that torch has for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from ..cases import Built, Case
from ..networks import GROUP
from . import Loaded

__all__ = ["arrays", "load", "start"]


def start(threads: int) -> None:
    """One pool of threads, no gradients."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)


def arrays(result: Any) -> list[Any]:
    return [tensor.float().numpy() for tensor in tree_leaves(result)]


def load(case: Case, folder: Path, threads: int) -> Loaded:
    start(threads)
    built = case.make()
    if case.weights != "f32":
        return _narrow(case, built)
    return Loaded(lambda: built.module(**built.inputs), arrays)


def _narrow(case: Case, built: Built) -> Loaded:
    """Activations in bf16: torch has these operations for nothing else."""
    module: Any = built.module
    x = built.inputs["x"].to(torch.bfloat16)
    steps = [_LAYERS[case.weights](module, i) for i in range(module.layers)]

    def call() -> torch.Tensor:
        y = x
        for step in steps:
            y = step(y)
        return y

    return Loaded(call, arrays, "bf16 activations")


def _bf16(module: Any, i: int) -> Any:
    weight = getattr(module, f"q{i}")
    return lambda x: torch.nn.functional.linear(x, weight)


def _int8(module: Any, i: int) -> Any:
    weight, scale = getattr(module, f"q{i}"), getattr(module, f"s{i}")[:, 0].to(torch.bfloat16)
    return lambda x: torch.ops.aten._weight_int8pack_mm(x, weight, scale)


def _int4(module: Any, i: int) -> Any:
    stored = (getattr(module, f"q{i}") + 8).to(torch.int32)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(stored, 1)
    scale = getattr(module, f"s{i}").T.to(torch.bfloat16)
    both = torch.stack([scale, torch.zeros_like(scale)], -1).contiguous()
    return lambda x: torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, GROUP, both)


_LAYERS = {"bf16": _bf16, "int8": _int8, "int4": _int4}
