"""Convolutional networks and vision transformers with random weights and statistics, most of transformers' configurations."""

from __future__ import annotations

import torch
from torch import nn

from .networks import Made, _Output

__all__ = ["convnext", "densenet", "efficientnet", "mobilenet", "regnet", "resnet18", "segformer", "swin", "unet", "vit"]


def _images(module: nn.Module, size: int = 224, output: str = "logits") -> Made:
    """One image, and norms whose statistics are not 0 and 1."""
    return _Output(_normed(module), output), {"x": torch.randn(1, 3, size, size)}


def _normed(module: nn.Module) -> nn.Module:
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return module


def resnet18() -> Made:
    """ResNet-18."""
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], layer_type="basic", num_labels=1000)
    return _images(ResNetForImageClassification(config))


def mobilenet() -> Made:
    """MobileNetV2, padded as in PyTorch."""
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    return _images(MobileNetV2ForImageClassification(MobileNetV2Config(tf_padding=False, num_labels=1000)))


def efficientnet() -> Made:
    """EfficientNet-B0."""
    from transformers import EfficientNetConfig, EfficientNetForImageClassification

    config = EfficientNetConfig(width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280, num_labels=1000)
    return _images(EfficientNetForImageClassification(config))


def regnet() -> Made:
    """RegNet-Y 400MF."""
    from transformers import RegNetConfig, RegNetForImageClassification

    config = RegNetConfig(hidden_sizes=[48, 104, 208, 440], depths=[1, 3, 6, 6], groups_width=8, num_labels=1000)
    return _images(RegNetForImageClassification(config))


def convnext() -> Made:
    """ConvNeXt tiny."""
    from transformers import ConvNextConfig, ConvNextForImageClassification

    return _images(ConvNextForImageClassification(ConvNextConfig(num_labels=1000)))


def swin() -> Made:
    """Swin tiny."""
    from transformers import SwinConfig, SwinForImageClassification

    return _images(SwinForImageClassification(SwinConfig(num_labels=1000)))


def segformer() -> Made:
    """SegFormer-B0 on an image of 512."""
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    return _images(SegformerForSemanticSegmentation(SegformerConfig(num_labels=150)), 512)


class _UNet(nn.Module):
    """U-Net (https://arxiv.org/abs/1505.04597) with padded and normalised convolutions, four levels."""

    def __init__(self, channels: int = 32, levels: int = 4):
        super().__init__()
        widths = [channels << i for i in range(levels + 1)]
        self.down = nn.ModuleList(self._twice(a, b) for a, b in zip([3, *widths], widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.merge = nn.ModuleList(self._twice(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(channels, 1, 1)

    @staticmethod
    def _twice(inputs: int, outputs: int) -> nn.Sequential:
        first, second = (nn.Conv2d(n, outputs, 3, padding=1, bias=False) for n in (inputs, outputs))
        return nn.Sequential(first, nn.BatchNorm2d(outputs), nn.ReLU(), second, nn.BatchNorm2d(outputs), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = list[torch.Tensor]()
        for i, block in enumerate(self.down):
            x = block(nn.functional.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for up, merge, seen in zip(self.up, self.merge, reversed(kept[:-1]), strict=True):
            x = merge(torch.cat([seen, up(x)], 1))
        return self.head(x)


class _DenseNet(nn.Module):
    """DenseNet-121 (https://arxiv.org/abs/1608.06993): each layer reads what all before it in its block have made."""

    def __init__(self, growth: int = 32, layers: tuple[int, ...] = (6, 12, 24, 16)):
        super().__init__()
        width, parts = 2 * growth, list[nn.Module]()
        stem = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        for i, count in enumerate(layers):
            if i:
                parts.append(nn.Sequential(*self._convolution(width, width // 2, 1), nn.AvgPool2d(2)))
                width //= 2
            block = nn.ModuleList()
            for _ in range(count):
                block.append(nn.Sequential(*self._convolution(width, 4 * growth, 1), *self._convolution(4 * growth, growth, 3)))
                width += growth
            parts.append(block)
        self.stem, self.parts = nn.Sequential(*stem), nn.ModuleList(parts)
        self.norm, self.head = nn.BatchNorm2d(width), nn.Linear(width, 1000)

    @staticmethod
    def _convolution(inputs: int, outputs: int, size: int) -> list[nn.Module]:
        return [nn.BatchNorm2d(inputs), nn.ReLU(), nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for part in self.parts:
            for layer in part if isinstance(part, nn.ModuleList) else [part]:
                made = layer(x)
                x = torch.cat([x, made], 1) if isinstance(part, nn.ModuleList) else made
        return self.head(torch.relu(self.norm(x)).mean((2, 3)))


def densenet() -> Made:
    """DenseNet-121 on one image."""
    return _normed(_DenseNet()), {"x": torch.randn(1, 3, 224, 224)}


def unet() -> Made:
    """U-Net on an image of 256."""
    return _normed(_UNet()), {"x": torch.randn(1, 3, 256, 256)}


def vit() -> Made:
    """ViT-base."""
    from transformers import ViTConfig, ViTModel

    return _images(ViTModel(ViTConfig(attn_implementation="sdpa"), add_pooling_layer=False), output="last_hidden_state")
