"""Models that tests, the benchmark and the demo import: BERT, GPT-2, Llama, ResNet-18 and an MLP, tiny or of real size.

Weights are random with a fixed seed; nothing is downloaded. All are in evaluation mode, attention is sdpa, caches are off.
"""

from __future__ import annotations

import hashlib
import logging
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
import torch
from torch import nn
from torch.export import Dim, ExportedProgram
from torch.nn import functional as F  # noqa: N812
from torch.utils import _pytree as pytree

import relaxir
from relaxir.weights.arrays import to_numpy


@dataclass(frozen=True)
class Model:
    """A torch model with inputs to export it for.

    Attributes:
        name: which model and size.
        module: the model, in evaluation mode.
        make_inputs: inputs by parameter name for a batch size and a sequence length (or image size).
        dynamic: whether batch, and sequence length where there is one, are exported as symbols.
        shape: batch size and sequence length (or image size) that it is exported for.
    """

    name: str
    module: nn.Module
    make_inputs: Callable[[int, int], dict[str, torch.Tensor]]
    dynamic: bool
    shape: tuple[int, int]

    def inputs(self, batch: int | None = None, length: int | None = None) -> dict[str, torch.Tensor]:
        """Inputs of the exported or of another size; the same ones each time."""
        torch.manual_seed(1)
        return self.make_inputs(batch or self.shape[0], length or self.shape[1])

    def export(self) -> ExportedProgram:
        """The ``torch.export.ExportedProgram`` for :attr:`shape`: of tiny models that are equal, one in a process.

        Tests of a dozen files want the same ones, and torch takes a second for each. One whose weights a test has changed
        since, as :meth:`to` changes those of its model, is not taken again.
        """
        weights = self.module.state_dict()
        if sum(tensor.numel() for tensor in weights.values()) > _TINY:
            return self._exported()
        config = getattr(self.module, "config", None)
        digest = _digest(weights)
        key = (type(self.module), str(self.module), str(config), self.dynamic, self.shape, _digest(self.inputs()), digest)
        if key not in _EXPORTED or _digest(_EXPORTED[key].state_dict) != digest:
            _EXPORTED[key] = self._exported()
        return _EXPORTED[key]

    def _exported(self) -> ExportedProgram:
        with torch.no_grad(), quiet():
            # torch.export takes a batch of one for a constant.
            inputs = self.inputs(max(2, self.shape[0])) if self.dynamic else self.inputs()
            return torch.export.export(self.module, (), inputs, dynamic_shapes=self._dynamic_shapes())

    def eager(self, inputs: dict[str, torch.Tensor]) -> list[np.ndarray]:
        """What torch itself computes: every output, as a NumPy array (bf16 as ml_dtypes)."""
        with torch.no_grad():
            found = self.module(**{k: v.clone() for k, v in inputs.items()})
        return [to_numpy(t, "output") for t in pytree.tree_leaves(found) if isinstance(t, torch.Tensor)]

    def to(self, dtype: torch.dtype) -> Model:
        """The same model with parameters of another dtype; changes this one's."""
        return replace(self, module=self.module.to(dtype))

    def _dynamic_shapes(self) -> dict[str, dict[int, Dim]] | None:
        if not self.dynamic:
            return None
        batch, seq = Dim("batch", min=1, max=32), Dim("seq", min=2, max=max(64, 4 * self.shape[1]))
        return {
            name: {0: batch, 1: seq} if not value.is_floating_point() else {0: batch} for name, value in self.inputs().items()
        }


#: Numbers that the weights of a tiny model are at most.
_TINY = 1_000_000

#: Programs of tiny models, by model, inputs and what their weights were.
_EXPORTED: dict[Any, ExportedProgram] = {}


def _digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """Of names, types, sizes and numbers."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(to_numpy(tensor.detach().contiguous(), name).tobytes())
    return digest.hexdigest()


def quiet() -> warnings.catch_warnings[None]:
    """Export and transformers warn about much that is no concern here."""
    logging.getLogger("torch.export").setLevel(logging.ERROR)
    return warnings.catch_warnings(action="ignore")


def weights_of(program: ExportedProgram, module: relaxir.Module) -> dict[str, np.ndarray]:
    """The arrays for the weights of ``main``, by name, without a copy."""
    from relaxir.frontend.torch_stored import stored_together

    tensors = stored_together({"main": program}).tensors
    return {w.name: to_numpy(tensors[w.name].detach(), w.name) for w in module.functions["main"].weights}


def _ids(vocabulary: int, masked: bool = False) -> Callable[[int, int], dict[str, torch.Tensor]]:
    def make(batch: int, length: int) -> dict[str, torch.Tensor]:
        inputs = {"input_ids": torch.randint(0, vocabulary, (batch, length))}
        if masked:  # the first row is padded at the left, so that its first queries see nothing under a causal mask
            inputs["attention_mask"] = torch.ones(batch, length, dtype=torch.int64)
            inputs["attention_mask"][0, : length // 3] = 0
        return inputs

    return make


def _built(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    with quiet():
        return make().eval()


def bert(tiny: bool = True, dynamic: bool = True, masked: bool = False, layers: int = 12) -> Model:
    """BERT: 2 layers of 64, or BERT-base, of which ``layers``."""
    from transformers import BertConfig, BertModel

    small = dict(vocab_size=200, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                 intermediate_size=128, max_position_embeddings=64)  # fmt: skip
    config = BertConfig(**(small if tiny else {"num_hidden_layers": layers}), attn_implementation="sdpa")
    module = _built(lambda: BertModel(config))
    shape = (2, 16) if tiny else (1, 128)
    return Model(f"bert-{'tiny' if tiny else 'base'}", module, _ids(config.vocab_size, masked), dynamic, shape)


def gpt2(tiny: bool = True, dynamic: bool = True, masked: bool = False, layers: int = 12) -> Model:
    """GPT-2, its embedding tied to the head: 2 layers of 64, or GPT-2 small, of which ``layers``."""
    from transformers import GPT2Config, GPT2LMHeadModel

    small = dict(vocab_size=200, n_embd=64, n_layer=2, n_head=4, n_positions=64)
    config = GPT2Config(**(small if tiny else {"n_layer": layers}), attn_implementation="sdpa", use_cache=False)
    module = _built(lambda: GPT2LMHeadModel(config))
    return Model(f"gpt2-{'tiny' if tiny else 'small'}", module, _ids(config.vocab_size, masked), dynamic, (2, 16))


def llama(tiny: bool = True, dynamic: bool = True, masked: bool = False, tied: bool = False, layers: int = 4) -> Model:
    """Llama with grouped queries: 2 layers of 64, or ``layers`` of 2048."""
    from transformers import LlamaConfig, LlamaForCausalLM

    small = dict(vocab_size=200, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                 intermediate_size=128, max_position_embeddings=128)  # fmt: skip
    large = dict(vocab_size=32000, hidden_size=2048, num_hidden_layers=layers, num_attention_heads=32, num_key_value_heads=8,
                 intermediate_size=8192, max_position_embeddings=2048)  # fmt: skip
    config = LlamaConfig(**(small if tiny else large), tie_word_embeddings=tied, attn_implementation="sdpa", use_cache=False)
    module = _built(lambda: LlamaForCausalLM(config))
    shape = (2, 16) if tiny else (1, 64)
    return Model(f"llama-{'tiny' if tiny else '2048x4'}", module, _ids(config.vocab_size, masked), dynamic, shape)


class _Block(nn.Module):
    """Two 3x3 convolutions around a shortcut."""

    def __init__(self, channels: int, out: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(x)) + shortcut)


class ResNet18(nn.Module):
    """He et al., Deep Residual Learning for Image Recognition, arXiv:1512.03385; parameters named as in torchvision."""

    def __init__(self, width: int = 64, classes: int = 1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        for i in range(1, 5):
            stride = 1 if i == 1 else 2
            layer = nn.Sequential(_Block(widths[i - 1], widths[i], stride), _Block(widths[i], widths[i], 1))
            setattr(self, f"layer{i}", layer)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8 * width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def resnet18(tiny: bool = True, dynamic: bool = True) -> Model:
    """ResNet-18 with random running statistics: width 8 on 64x64 images, or width 64 on 224x224."""

    def make() -> nn.Module:
        module = ResNet18(8, 10) if tiny else ResNet18()
        for part in module.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)
        return module

    def inputs(batch: int, size: int) -> dict[str, torch.Tensor]:
        return {"x": torch.randn(batch, 3, size, size)}

    return Model(f"resnet18-{'tiny' if tiny else '64'}", _built(make), inputs, dynamic, (2, 64) if tiny else (1, 224))


class Mlp(nn.Module):
    """Two linear layers around a gelu."""

    def __init__(self, features: int = 16, hidden: int = 32):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x)))


def mlp(dynamic: bool = True) -> Model:
    """A small multilayer perceptron on ``x[batch, 16]``."""
    return Model("mlp", _built(Mlp), lambda batch, _: {"x": torch.randn(batch, 16)}, dynamic, (4, 16))
