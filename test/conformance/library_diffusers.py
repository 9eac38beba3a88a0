"""Small models of diffusers: networks of images, volumes, films and sound, autoencoders, transformers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

__all__ = ["diffusers_models"]

_Inputs = Callable[[int], dict[str, torch.Tensor]]

#: Shapes of inputs behind the rows; a number alone is a limit of whole numbers, and 1 one of fractions.
_Shapes = dict[str, tuple[int, ...] | int]

_BLOCKS = {"block_out_channels": (32, 64), "layers_per_block": 1}
_CROSS = _BLOCKS | {
    "sample_size": 16,
    "in_channels": 4,
    "out_channels": 4,
    "cross_attention_dim": 24,
    "attention_head_dim": 8,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
}
_CODER = {
    "in_channels": 3,
    "out_channels": 3,
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "latent_channels": 4,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "block_out_channels": (32, 64),
}
_FLUX = {
    "patch_size": 1,
    "in_channels": 4,
    "num_layers": 1,
    "num_single_layers": 2,
    "attention_head_dim": 16,
    "num_attention_heads": 2,
    "joint_attention_dim": 32,
    "axes_dims_rope": [4, 4, 8],
}
_DIT = {"num_layers": 2, "num_attention_heads": 2, "attention_head_dim": 8, "in_channels": 4}
_LATENT: _Shapes = {"sample": (4, 16, 16), "timestep": 1000, "encoder_hidden_states": (7, 24)}

#: Of each class options, shapes of inputs, and whether it encodes and decodes them.
_MODELS: dict[str, tuple[dict[str, Any], _Shapes]] = {
    "UNet2DModel": (
        _BLOCKS
        | {
            "sample_size": 32,
            "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
            "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
        },
        {"sample": (3, 32, 32), "timestep": 1000},
    ),
    "UNet2DConditionModel": (_CROSS, _LATENT),
    "UNet2DConditionModel, linear": (
        _CROSS
        | {
            "use_linear_projection": True,
            "transformer_layers_per_block": 2,
            "attention_head_dim": (2, 4),
            "resnet_time_scale_shift": "scale_shift",
        },
        _LATENT,
    ),
    "UNet2DConditionModel, simple": (
        _CROSS
        | {
            "down_block_types": ("SimpleCrossAttnDownBlock2D", "ResnetDownsampleBlock2D"),
            "up_block_types": ("ResnetUpsampleBlock2D", "SimpleCrossAttnUpBlock2D"),
            "mid_block_type": "UNetMidBlock2DSimpleCrossAttn",
        },
        _LATENT,
    ),
    "ControlNetModel": (
        {k: v for k, v in _CROSS.items() if k not in ("sample_size", "out_channels", "up_block_types")}
        | {"conditioning_embedding_out_channels": (8, 16)},
        _LATENT | {"controlnet_cond": (3, 32, 32)},
    ),
    "AutoencoderKL": (_CODER, {"x": (3, 32, 48)}),
    "AutoencoderKLFlux2": (_CODER, {"x": (3, 32, 32)}),
    "AutoencoderTiny": (
        {
            "encoder_block_out_channels": (32, 32),
            "decoder_block_out_channels": (32, 32),
            "num_encoder_blocks": (1, 2),
            "num_decoder_blocks": (2, 1),
        },
        {"x": (3, 32, 48)},
    ),
    "VQModel": (_CODER | {"latent_channels": 3, "num_vq_embeddings": 32}, {"x": (3, 32, 32)}),
    "AutoencoderOobleck": (
        {
            "encoder_hidden_size": 12,
            "downsampling_ratios": [2, 4],
            "channel_multiples": [1, 2],
            "decoder_channels": 12,
            "decoder_input_channels": 6,
            "audio_channels": 2,
            "sampling_rate": 24000,
        },
        {"x": (2, 256)},
    ),
    "AutoencoderKLWan": (
        {
            "base_dim": 8,
            "z_dim": 4,
            "dim_mult": [1, 1, 1, 1],
            "num_res_blocks": 1,
            "temperal_downsample": [False, True, True],
        },
        {"x": (3, 9, 32, 32)},
    ),
    "AutoencoderKLCogVideoX": (
        {
            "down_block_types": ("CogVideoXDownBlock3D",) * 4,
            "up_block_types": ("CogVideoXUpBlock3D",) * 4,
            "block_out_channels": (8, 8, 8, 8),
            "latent_channels": 4,
            "layers_per_block": 1,
            "norm_num_groups": 2,
        },
        {"x": (3, 8, 32, 32)},
    ),
    "AutoencoderKLMochi": (
        {
            "latent_channels": 4,
            "encoder_block_out_channels": (32,) * 4,
            "decoder_block_out_channels": (32,) * 4,
            "layers_per_block": (1,) * 5,
        },
        {"x": (3, 7, 16, 16)},
    ),
    "DiTTransformer2DModel": (
        _DIT
        | {
            "out_channels": 8,
            "sample_size": 8,
            "patch_size": 2,
            "num_embeds_ada_norm": 8,
            "norm_num_groups": 4,
        },
        {"hidden_states": (4, 8, 8), "timestep": 8, "class_labels": 4},
    ),
    "PixArtTransformer2DModel": (
        _DIT
        | {
            "out_channels": 8,
            "sample_size": 8,
            "patch_size": 2,
            "cross_attention_dim": 16,
            "caption_channels": 12,
            "use_additional_conditions": False,
        },
        {"hidden_states": (4, 8, 8), "encoder_hidden_states": (5, 12), "timestep": 1000},
    ),
    "SD3Transformer2DModel": (
        _DIT
        | {
            "sample_size": 32,
            "patch_size": 1,
            "num_attention_heads": 4,
            "caption_projection_dim": 32,
            "joint_attention_dim": 32,
            "pooled_projection_dim": 64,
            "out_channels": 4,
            "qk_norm": "rms_norm",
            "dual_attention_layers": (0,),
            "pos_embed_max_size": 32,
        },
        {"hidden_states": (4, 16, 16), "encoder_hidden_states": (9, 32), "pooled_projections": (64,), "timestep": 1000},
    ),
    "FluxTransformer2DModel": (
        _FLUX | {"pooled_projection_dim": 32},
        {
            "hidden_states": (16, 4),
            "encoder_hidden_states": (9, 32),
            "pooled_projections": (32,),
            "timestep": 1,
            "img_ids": (-16, 3),
            "txt_ids": (-9, 3),
        },
    ),
    "ChromaTransformer2DModel": (
        _FLUX
        | {
            "approximator_num_channels": 8,
            "approximator_hidden_dim": 16,
            "approximator_layers": 1,
        },
        {"hidden_states": (16, 4), "encoder_hidden_states": (9, 32), "timestep": 1, "img_ids": (-16, 3), "txt_ids": (-9, 3)},
    ),
    "AuraFlowTransformer2DModel": (
        _DIT
        | {
            "sample_size": 16,
            "patch_size": 2,
            "num_mmdit_layers": 1,
            "num_single_dit_layers": 1,
            "num_attention_heads": 4,
            "caption_projection_dim": 32,
            "joint_attention_dim": 32,
            "out_channels": 4,
            "pos_embed_max_size": 64,
            "num_layers": None,
        },
        {"hidden_states": (4, 16, 16), "encoder_hidden_states": (9, 32), "timestep": 1},
    ),
    "WanTransformer3DModel": (
        _DIT
        | {
            "patch_size": (1, 2, 2),
            "attention_head_dim": 12,
            "out_channels": 4,
            "text_dim": 16,
            "freq_dim": 256,
            "ffn_dim": 32,
            "cross_attn_norm": True,
            "qk_norm": "rms_norm_across_heads",
            "rope_max_seq_len": 32,
        },
        {"hidden_states": (4, 2, 16, 16), "timestep": 1000, "encoder_hidden_states": (12, 16)},
    ),
    "SanaTransformer2DModel": (
        _DIT
        | {
            "patch_size": 1,
            "out_channels": 4,
            "num_layers": 1,
            "attention_head_dim": 4,
            "num_cross_attention_heads": 2,
            "cross_attention_head_dim": 4,
            "cross_attention_dim": 8,
            "caption_channels": 8,
            "sample_size": 32,
        },
        {"hidden_states": (4, 32, 32), "encoder_hidden_states": (8, 8), "timestep": 1000},
    ),
    "QwenImageTransformer2DModel": (
        {
            "in_channels": 16,
            "out_channels": 4,
            "num_layers": 2,
            "attention_head_dim": 16,
            "num_attention_heads": 3,
            "joint_attention_dim": 16,
            "axes_dims_rope": (8, 4, 4),
        },
        {"hidden_states": (16, 16), "encoder_hidden_states": (7, 16), "timestep": 1},
    ),
    "PriorTransformer": (
        {
            "num_attention_heads": 2,
            "attention_head_dim": 4,
            "num_layers": 2,
            "embedding_dim": 8,
            "num_embeddings": 7,
        },
        {"hidden_states": (8,), "timestep": 100, "proj_embedding": (8,), "encoder_hidden_states": (7, 8)},
    ),
    "StableAudioDiTModel": (
        _DIT
        | {
            "sample_size": 4,
            "attention_head_dim": 4,
            "num_key_value_attention_heads": 2,
            "out_channels": 4,
            "cross_attention_dim": 4,
            "time_proj_dim": 8,
            "global_states_input_dim": 8,
            "cross_attention_input_dim": 4,
        },
        {"hidden_states": (4, 8), "timestep": 1, "encoder_hidden_states": (7, 4), "global_hidden_states": (1, 8)},
    ),
    "UNet1DModel": (
        {
            "block_out_channels": (8, 8, 16, 16),
            "in_channels": 14,
            "out_channels": 14,
            "time_embedding_type": "positional",
            "use_timestep_embedding": True,
            "flip_sin_to_cos": False,
            "freq_shift": 1.0,
            "out_block_type": "OutConv1DBlock",
            "mid_block_type": "MidResTemporalBlock1D",
            "down_block_types": ("DownResnetBlock1D",) * 4,
            "up_block_types": ("UpResnetBlock1D",) * 3,
            "act_fn": "swish",
        },
        {"sample": (14, 16), "timestep": 100},
    ),
    "UNet3DConditionModel": (
        _CROSS
        | {
            "block_out_channels": (4, 8),
            "norm_num_groups": 4,
            "attention_head_dim": 2,
            "cross_attention_dim": 8,
            "down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"),
            "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D"),
        },
        {"sample": (4, 4, 16, 16), "timestep": 100, "encoder_hidden_states": (4, 8)},
    ),
    "UNetSpatioTemporalConditionModel": (
        _CROSS
        | {
            "cross_attention_dim": 32,
            "num_attention_heads": 8,
            "projection_class_embeddings_input_dim": 96,
            "addition_time_embed_dim": 32,
            "down_block_types": ("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
            "up_block_types": ("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"),
            "attention_head_dim": None,
        },
        {"sample": (2, 4, 16, 16), "timestep": 100, "encoder_hidden_states": (1, 32), "added_time_ids": (3,)},
    ),
    "T2IAdapter": ({"channels": [16, 32], "num_res_blocks": 1}, {"x": (3, 64, 64)}),
}

#: What else a class is called with.
_OPTIONS = {"QwenImageTransformer2DModel": lambda rows: {"img_shapes": [(1, 4, 4)] * rows}}


class _Coder(torch.nn.Module):
    """An autoencoder of what it encodes, without chance."""

    def __init__(self, model: Any):
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.model.encode(x)
        latent = found.latent_dist.mode() if hasattr(found, "latent_dist") else found[0]
        return self.model.decode(latent).sample


class _WithOptions(torch.nn.Module):
    def __init__(self, model: torch.nn.Module, options: Callable[[int], dict[str, Any]]):
        super().__init__()
        self.model, self.options = model, options

    def forward(self, **tensors: torch.Tensor) -> Any:
        return self.model(**tensors, **self.options(next(iter(tensors.values())).shape[0]))


def _made(name: str, options: dict[str, Any]) -> torch.nn.Module:
    import diffusers.models

    model = getattr(diffusers.models, name)(**{k: v for k, v in options.items() if v is not None})
    if name.startswith(("Autoencoder", "VQ")):
        return _Coder(model)
    return _WithOptions(model, _OPTIONS[name]) if name in _OPTIONS else model


def _drawn(shapes: _Shapes, rows: int) -> dict[str, torch.Tensor]:
    """A shape whose first number is negative is one of places, the same for all rows."""
    found: dict[str, torch.Tensor] = {}
    for name, shape in shapes.items():
        if isinstance(shape, int):
            found[name] = torch.rand(rows) if shape == 1 else torch.randint(shape, (rows,))
        elif shape[0] < 0:
            found[name] = torch.randint(4, (-shape[0], *shape[1:])).float()
        else:
            found[name] = torch.randn(rows, *shape)
    return found


def diffusers_models() -> Iterator[tuple[str, tuple[Callable[[], torch.nn.Module], _Inputs]]]:
    """Each model of the table above."""
    for name, (options, shapes) in _MODELS.items():
        yield name, (functools.partial(_made, name.partition(",")[0], options), functools.partial(_drawn, shapes))
