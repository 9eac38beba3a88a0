"""What is timed: every case is a torch module with inputs, made from a seed, under a name that says its shape."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import networks, vision

if TYPE_CHECKING:
    import torch
    from torch import nn

__all__ = ["CASES", "Built", "Case", "select"]


@dataclass(frozen=True)
class Built:
    """A module in evaluation mode with its inputs by name."""

    module: nn.Module
    inputs: dict[str, torch.Tensor]


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes:
        name: what ``--cases`` selects by.
        make: builds module and inputs; imports torch.
        weights: dtype of the weights; peers take a path of their own for other than f32. With bf16 all else is in bf16, too.
        layers: whether the module is a stack of narrow layers alone, not a model.
        gguf: whether the module is one that llama.cpp can run.
        file: of an ONNX file: ``"exported"``, or what ONNX Runtime's tools derive of that (``support/exported_onnx.py``).
        tolerance: largest difference from torch, relative to the largest output.
        quick: whether ``--quick`` runs it.
        gib: memory of the weights, at least; a peer is not started on a machine without room for it.
    """

    name: str
    make: Callable[[], Built]
    weights: str = "f32"
    layers: bool = False
    gguf: bool = False
    file: str = ""
    tolerance: float = 1e-3
    quick: bool = False
    gib: float = 0.1


def _module(make: Callable[[], tuple[nn.Module, dict[str, torch.Tensor]]]) -> Callable[[], Built]:
    def build() -> Built:
        import torch

        torch.manual_seed(0)
        module, inputs = make()
        return Built(module.eval(), inputs)

    return build


def _matmul(m: int, n: int, k: int, quick: bool = False) -> Case:
    name = f"matmul-{m}" if m == n == k else f"matmul-{m}x{n}x{k}"
    return Case(name, _module(lambda: networks.linear(m, n, k)), quick=quick)


def _narrow(weights: str, m: int, layers: int, quick: bool = False) -> Case:
    """Several layers at one row, so that the weights come from memory and not from a cache."""
    tolerance = {"bf16": 2e-2, "int8": 4e-2, "int4": 6e-2}[weights]  # activations are bf16, peers quantize them to int8
    make = _module(lambda: networks.narrow(weights, m, 4096, layers))
    return Case(f"linear-{weights}-{m}x4096x4096", make, weights, layers=True, tolerance=tolerance, quick=quick, gib=0.4)


def _bf16(name: str, make: Callable[[], tuple[nn.Module, dict[str, torch.Tensor]]]) -> Case:
    """A model whose weights and activations are bf16: one rounding of each activation of twelve blocks adds up to 2e-2."""
    return Case(name, _module(lambda: networks.rounded(make())), "bf16", tolerance=5e-2, gib=0.6)


def _row(name: str, quick: bool = False) -> Case:
    return Case(f"{name}-1024x1024", _module(lambda: networks.rows(name, 1024)), quick=quick)


def _llama(hidden: int, layers: int, length: int, weights: str = "f32", quick: bool = False, past: int = networks.PAST) -> Case:
    """Prefill of ``length`` tokens, or decoding one behind ``past`` when ``length`` is 1; embeddings and norms are in f32."""
    narrow = "" if weights == "f32" else f"-{weights}"
    name = f"llama-{hidden}x{layers}{narrow}-" + ("decode" if length == 1 else f"prefill-{length}")
    name += f"-{past}" if past != networks.PAST else ""
    gib = {2048: 1.1, 4096: 1.8}[hidden]
    # llama.cpp has a cache in f16: 9e-4. Narrow weights are exact, but peers quantize activations to bf16 and int8.
    tolerance = {"f32": 5e-3, "bf16": 5e-2, "int8": 6e-2, "int4": 8e-2}[weights]
    make = _module(lambda: networks.llama(hidden, layers, length, weights, past))
    return Case(name, make, weights, gguf=True, tolerance=tolerance, quick=quick, gib=gib)


def _mixture(length: int, weights: str = "f32") -> Case:
    """As :func:`_llama`, of a mixture of experts, of which rounding takes another one now and then."""
    narrow = "" if weights == "f32" else f"-{weights}"
    name = f"qwen3-moe-1024x2{narrow}-" + ("decode" if length == 1 else f"prefill-{length}")
    tolerance = {"f32": 2e-2, "bf16": 1e-1, "int8": 1e-1, "int4": 1e-1}[weights]
    return Case(name, _module(lambda: networks.qwen3_moe(length, weights)), weights, gguf=True, tolerance=tolerance, gib=1.0)


def _files(name: str, make: Callable[[], tuple[nn.Module, dict[str, torch.Tensor]]], *forms: str) -> list[Case]:
    """The file that torch.onnx exports of a model, and quantized ones; the reference computes these as they are written."""
    # Codes that differ by one at the edge between two, as sums have another order, meet in twelve layers.
    kinds = {"int8": ("int8", 1e-1), "qdq": ("int8", 1e-1), "nbits": ("int4", 1e-1)}
    found = [Case(f"onnx-{name}", _module(make), file="exported", gib=0.6)]
    for form in forms:
        weights, tolerance = kinds[form]
        found.append(Case(f"onnx-{name}-{form}", _module(make), weights, file=form, tolerance=tolerance, gib=0.6))
    return found


CASES: dict[str, Case] = {
    case.name: case
    for case in [
        _matmul(512, 512, 512),
        _matmul(1024, 1024, 1024, quick=True),
        _matmul(128, 4096, 4096),
        _matmul(8, 4096, 4096),
        _matmul(1, 4096, 4096, quick=True),
        _narrow("bf16", 1, 4),
        _narrow("bf16", 64, 1),
        _narrow("int8", 1, 6),
        _narrow("int8", 64, 1),
        _narrow("int4", 1, 12, quick=True),
        _narrow("int4", 64, 1),
        _row("softmax", quick=True),
        _row("layer_norm"),
        _row("gelu"),
        Case("attention-12x512x64", _module(lambda: networks.attention(12, 512, 64, False)), quick=True),
        Case("attention-causal-12x1024x64", _module(lambda: networks.attention(12, 1024, 64, True))),
        Case("mlp-b1", _module(lambda: networks.mlp(1))),
        Case("mlp-b128", _module(lambda: networks.mlp(128))),
        Case("bert-base-b1-s128", _module(lambda: networks.bert(1)), quick=True, gib=0.5),
        Case("bert-base-b8-s128", _module(lambda: networks.bert(8)), gib=0.6),
        Case("gpt2-prefill-128", _module(lambda: networks.gpt2(128)), gib=0.6),
        Case("gpt2-decode", _module(lambda: networks.gpt2(1)), gib=0.6),
        _llama(2048, 4, 128),
        _llama(2048, 4, 512),
        _llama(2048, 4, 1, quick=True),
        _llama(2048, 4, 2048),
        _llama(2048, 2, 8192),
        _llama(2048, 4, 1, past=8192),
        _llama(4096, 2, 128),
        _llama(4096, 2, 512),
        _llama(4096, 2, 1),
        *(_llama(2048, 4, length, weights) for weights in ("bf16", "int8", "int4") for length in (128, 1)),
        _bf16("bert-base-bf16-b1-s128", lambda: networks.bert(1)),
        _bf16("gpt2-bf16-prefill-128", lambda: networks.gpt2(128)),
        Case("resnet50-b1", _module(networks.resnet50), quick=True, gib=0.2),
        Case("resnet50-b8", _module(lambda: networks.resnet50(8)), gib=0.4),
        Case("densenet-121-b1", _module(vision.densenet)),
        Case("vit-base-b1", _module(vision.vit), gib=0.4),
        Case("whisper-encoder-small", _module(networks.whisper), gib=0.5),
        Case("mobilenet-v2-b1", _module(vision.mobilenet)),
        Case("efficientnet-b0-b1", _module(vision.efficientnet)),
        Case("regnet-y-400mf-b1", _module(vision.regnet)),
        Case("convnext-tiny-b1", _module(vision.convnext), gib=0.2),
        Case("swin-tiny-b1", _module(vision.swin), gib=0.2),
        Case("segformer-b0-b1", _module(vision.segformer)),
        Case("unet-256-b1", _module(vision.unet), gib=0.2),
        Case("wav2vec2-base-5s", _module(networks.wav2vec2), gib=0.4),
        Case("distilbert-b8-s128", _module(lambda: networks.distilbert(8)), gib=0.3),
        Case("qwen2-0.5bx4-prefill-128", _module(lambda: networks.qwen2(128)), gib=0.3),
        Case("qwen2-0.5bx4-decode", _module(lambda: networks.qwen2(1)), gib=0.3),
        Case("mixtral-1024x2-decode", _module(lambda: networks.mixtral(1)), gib=0.8),
        Case("mixtral-1024x2-prefill-128", _module(lambda: networks.mixtral(128)), gib=0.8),
        *(_mixture(length, weights) for weights in ("f32", "bf16", "int8", "int4") for length in (128, 1)),
        *_files("bert", lambda: networks.bert(1), "int8", "qdq", "nbits"),
        *_files("gpt2", lambda: networks.gpt2(128), "int8", "qdq"),
        *_files("llama", lambda: networks.llama(2048, 2, 128), "int8", "nbits"),
        *_files("resnet18", vision.resnet18, "qdq"),
        *_files("resnet50", networks.resnet50, "qdq"),
        *_files("mobilenet-v2", vision.mobilenet, "qdq"),
    ]
}


def select(patterns: list[str], quick: bool) -> list[Case]:
    """Cases whose names match any of the patterns, all of them without patterns; of those that ``--quick`` runs, or of all.

    Raises ValueError for a pattern that matches nothing.
    """
    chosen = [case for case in CASES.values() if case.quick or not quick or patterns]
    for pattern in patterns:
        if not fnmatch.filter(CASES, pattern):
            raise ValueError(f"expected cases to match {pattern!r}, got {', '.join(CASES)}")
    return [case for case in chosen if not patterns or any(fnmatch.fnmatch(case.name, p) for p in patterns)]
