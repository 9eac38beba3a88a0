"""Convolutional networks and vision transformers of transformers' configurations, with random weights and statistics."""

from __future__ import annotations

import torch
from torch import nn

from .networks import Made, _Output

__all__ = ["convnext", "efficientnet", "mobilenet", "regnet", "resnet18", "segformer", "swin", "vit"]


def _images(module: nn.Module, size: int = 224, output: str = "logits") -> Made:
    """One image, and norms whose statistics are not 0 and 1."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return _Output(module, output), {"x": torch.randn(1, 3, size, size)}


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


def vit() -> Made:
    """ViT-base."""
    from transformers import ViTConfig, ViTModel

    return _images(ViTModel(ViTConfig(attn_implementation="sdpa"), add_pooling_layer=False), output="last_hidden_state")
