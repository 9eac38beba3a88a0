"""What a case's peers share: its inputs, torch's outputs, and the model as ONNX and GGUF, written once to the run's folder."""

from __future__ import annotations

import contextlib
import json
import logging
import warnings
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from . import gguf_file, nbits_file, onnx_file
from .cases import Built, Case

__all__ = ["measured", "write"]


def write(case: Case, folder: Path, formats: list[str]) -> dict[str, Any]:
    """Writes the files and returns the case's work: FLOPs, and bytes of weights, inputs and outputs.

    A format that fails leaves ``<format>.error`` with the reason, for the peers that read it.
    """
    facts = folder / "facts.json"
    if facts.exists():
        return json.loads(facts.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    built = case.make()
    outputs, work = measured(case, built)
    np.savez(folder / "inputs.npz", **{name: value.numpy() for name, value in built.inputs.items()})
    np.savez(folder / "expected.npz", *[value.numpy() for value in outputs])
    for name in sorted(formats, key=["onnx", "gguf", "nbits", "file"].index):  # nbits may start from onnx
        _write_format(name, case, built, folder)
    facts.write_text(json.dumps(work))
    return work


def measured(case: Case, built: Built) -> tuple[list[torch.Tensor], dict[str, int]]:
    """The outputs, and a call's work: FLOPs, and bytes of weights, inputs and outputs."""
    # The counter knows matrix products, not the fused attention of CPUs.
    with (
        torch.no_grad(),
        sdpa_kernel(SDPBackend.MATH),
        FlopCounterMode(display=False) as counter,
        _counted_experts(built.module, counter.get_total_flops) as experts,
    ):
        outputs = tree_leaves(built.module(**built.inputs))
    tensors = [*built.module.buffers(), *built.inputs.values(), *outputs]
    size = _weight_bytes(case, built.module, experts.read) + sum(_bytes(case, t) for t in tensors)
    return outputs, {"flops": counter.get_total_flops() + experts.flops, "size": size}


@dataclass
class _Experts:
    """What a call does with experts: the part of each of their tensors that it reads, by id, and FLOPs that nobody counted."""

    read: dict[int, float] = field(default_factory=dict[int, float])
    flops: int = 0


@contextlib.contextmanager
def _counted_experts(module: nn.Module, counted: Callable[[], int]) -> Generator[_Experts]:
    """Looks at which experts tokens choose while this lasts; ``counted`` are FLOPs so far."""
    found, before = _Experts(), list[int]()

    def begin(experts: Any, inputs: Any) -> None:
        del inputs
        before.append(counted())

    def end(experts: Any, inputs: Any, _: object) -> None:
        chosen = inputs[1]
        matrices = [p for p in experts.parameters() if p.ndim == 3]
        found.read |= {id(p): len(chosen.unique()) / experts.num_experts for p in matrices}
        work = 2 * chosen.numel() * sum(p[0].numel() for p in matrices)
        found.flops += max(0, work - (counted() - before.pop()))

    with contextlib.ExitStack() as hooks:
        for part in module.modules():
            if hasattr(part, "num_experts") and hasattr(part, "down_proj"):
                hooks.callback(part.register_forward_pre_hook(begin).remove)
                hooks.callback(part.register_forward_hook(end).remove)
        yield found


def _weight_bytes(case: Case, module: nn.Module, experts: Mapping[int, float]) -> int:
    """What has to be read of the parameters: those of linear layers as narrow as the case has them, of tables a few rows."""
    linear = {id(m.weight) for m in module.modules() if isinstance(m, nn.Linear)} | set(experts)
    tables = {id(m.weight) for m in module.modules() if isinstance(m, nn.Embedding)} - linear
    bits = {"f32": 32, "bf16": 16, "int8": 8, "int4": 4.5}[case.weights]  # a scale of 16 bits for 32 elements
    others = 16 if case.weights == "bf16" else 32
    found = [
        (p.nelement() * experts.get(id(p), 1), bits if id(p) in linear else others)
        for p in module.parameters()
        if id(p) not in tables
    ]
    return sum(int(count * width) // 8 for count, width in found)


def _bytes(case: Case, tensor: torch.Tensor) -> int:
    """What has to be read or written of a tensor; int4 weights are held as int8, and the reference is in f32."""
    size = tensor.nelement() * tensor.element_size()
    return size // 2 if (case.weights, tensor.dtype) in (("int4", torch.int8), ("bf16", torch.float32)) else size


def _write_format(name: str, case: Case, built: Built, folder: Path) -> None:
    writers = {"onnx": _write_onnx, "nbits": nbits_file.write, "gguf": gguf_file.write, "file": onnx_file.write}
    try:
        writers[name](case, built, folder)
    except Exception as error:
        text = f"{type(error).__name__}: {error}".strip()
        (folder / f"{name}.error").write_text(f"no {name} file: {text}")


def _write_onnx(case: Case, built: Built, folder: Path) -> None:
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        program = torch.export.export(built.module, (), built.inputs)
        exported = torch.onnx.export(program, kwargs=built.inputs, input_names=list(built.inputs), verbose=False)
        exported.save(str(folder / "model.onnx"), external_data=True)
