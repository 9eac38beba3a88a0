"""Inputs that a model of transformers takes, by what parameters of its forward are called and what its configuration says."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

__all__ = ["candidates"]

_Inputs = dict[str, torch.Tensor]

#: Channels of a sound's spectrum, sizes of images that are tried where the configuration's does not go through.
_BINS, _IMAGES = 80, (64, 224)

#: What wav2vec2-bert calls its bins.
_PROJECTED = "feature_projection_input_dim"


def candidates(model: Any, rows: int = 2, length: int = 12) -> Iterator[_Inputs | None]:
    """Inputs by name that may be what a model takes, the most likely ones first; of other sizes as many, in the same order.

    Tokens have a padded row. None stands for one that cannot be made.
    """
    parameters = inspect.signature(model.forward).parameters
    for makers in _choices(model, parameters):
        generator = torch.Generator().manual_seed(rows + length)
        make = _Maker(model.config, rows, length, generator)
        needed = [n for n, p in parameters.items() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        names = dict.fromkeys([*makers, *needed])
        try:
            yield {name: (makers.get(name) or _makers(name))(make) for name in names}
        except (KeyError, TypeError, AttributeError):
            yield None


_Make = Callable[["_Maker"], torch.Tensor]


def _makers(name: str) -> _Make:
    return _BY_NAME[name]


def _choices(model: Any, parameters: Mapping[str, Any]) -> Iterator[dict[str, _Make]]:
    """What to give, by name, and how it is made."""
    main = model.main_input_name if isinstance(model.main_input_name, str) else model.main_input_name[0]
    decoder: dict[str, _Make] = {}
    if "decoder_input_ids" in parameters and getattr(model.config, "is_encoder_decoder", False):
        decoder = {"decoder_input_ids": _Maker.answer}
    if "input_ids" in parameters and main in ("input_ids", "pixel_values"):
        text: dict[str, _Make] = {"input_ids": _Maker.tokens}
        mask: dict[str, _Make] = {"attention_mask": _Maker.mask} if "attention_mask" in parameters else {}
        box: dict[str, _Make] = {"bbox": _Maker.boxes} if "bbox" in parameters else {}
        yield text | mask | box | decoder
        yield text | box | decoder
        if "pixel_values" in parameters:
            for image in _images():
                yield text | mask | box | decoder | {"pixel_values": image}
        if "input_features" in parameters:
            yield text | mask | decoder | {"input_features": _Maker.spectrum}
        if "visual_feats" in parameters:
            yield text | mask | {"visual_feats": _Maker.regions, "visual_pos": _Maker.corners}
    names = dict.fromkeys([main, "pixel_values", "input_values", "input_features", "pixel_values_videos", "past_values"])
    for name in names:
        if name in parameters:
            yield from ({name: way} | decoder for way in _WAYS.get(name, lambda: ())())
        if name == "input_features" and "input_features_mask" in parameters:
            yield {name: _Maker.spectrum_by_time, "input_features_mask": _Maker.all_heard} | decoder
    yield {}


def _images() -> list[_Make]:
    return [_Maker.image, *(lambda make, size=size: make.image(size) for size in _IMAGES)]


class _Maker:
    """Makes tensors of so many rows, of so many tokens."""

    def __init__(self, config: Any, rows: int, length: int, generator: torch.Generator):
        self.config, self.rows, self.length, self.generator = config, rows, length, generator
        self.text = config.get_text_config() if hasattr(config, "get_text_config") else config
        vision = getattr(config, "vision_config", None) or config
        self.vision = getattr(vision, "backbone_config", None) or vision

    def _normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=self.generator)

    def tokens(self, count: int = 0) -> torch.Tensor:
        words = getattr(self.text, "vocab_size", None) or getattr(self.config, "vocab_size", None) or 50
        shape = self.rows, count or self.length
        return torch.randint(5, max(min(words, 80), 6), shape, generator=self.generator)

    def answer(self) -> torch.Tensor:
        """Tokens that a decoder begins with."""
        return self.tokens(self.length - 5)

    def mask(self) -> torch.Tensor:
        mask = torch.ones(self.rows, self.length, dtype=torch.int64)
        mask[-1, self.length - 3 :] = 0
        return mask

    def boxes(self) -> torch.Tensor:
        corner = torch.randint(0, 400, (self.rows, self.length, 2), generator=self.generator)
        return torch.cat([corner, corner + 100], -1)

    def embeddings(self) -> torch.Tensor:
        return self._normal(self.rows, self.length, self.text.hidden_size)

    def image(self, size: Any = None, frames: bool = False) -> torch.Tensor:
        channels = getattr(self.vision, "num_channels", None) or getattr(self.vision, "in_channels", None) or 3
        size = size or getattr(self.vision, "image_size", None) or getattr(self.vision, "img_size", None) or 64
        height, width = size if isinstance(size, list | tuple) else (size, size)
        count = getattr(self.vision, "num_frames", None) or (4 if frames else None)
        shape = (self.rows, count, channels, height, width) if count else (self.rows, channels, height, width)
        return self._normal(*shape)

    def film(self) -> torch.Tensor:
        return self.image(frames=True)

    def patches(self) -> torch.Tensor:
        """Of one image of 4 x 4 patches, each flattened."""
        side, depth = self.vision.patch_size, getattr(self.vision, "temporal_patch_size", 1)
        return self._normal(16, getattr(self.vision, "in_channels", 3) * depth * side * side)

    def grid(self) -> torch.Tensor:
        return torch.tensor([[1, 4, 4]])

    def _bins(self) -> int:
        parts = [self.config, *(getattr(self.config, n, None) for n in ("audio_config", "encoder_config"))]
        names = (
            "num_mel_bins",
            "input_feat_per_channel",
            "input_size",
            "feature_size",
            "input_dim",
            "feature_projection_input_dim",
        )
        sizes = (getattr(part, name, None) for part, name in itertools.product(parts, names))
        return next((size for size in sizes if isinstance(size, int)), _BINS)

    def spectrum(self) -> torch.Tensor:
        """As long as the positions of an encoder ask for."""
        audio = getattr(self.config, "audio_config", None) or self.config
        return self._normal(self.rows, self._bins(), 2 * (getattr(audio, "max_source_positions", None) or 64))

    def spectrum_by_time(self) -> torch.Tensor:
        return self._normal(self.rows, 64, self._bins())

    def spectrum_of_length(self) -> torch.Tensor:
        return self._normal(self.rows, self.config.max_length, self._bins())

    def all_heard(self) -> torch.Tensor:
        """A mask of ``spectrum_by_time`` or of ``spectrum``, which are as long as they say."""
        return torch.ones(self.rows, 64, dtype=torch.int64)

    def wave(self) -> torch.Tensor:
        return self._normal(self.rows, 2000)

    def long_wave(self) -> torch.Tensor:
        """A length that windows of 240, 320, 480, 640, 960, 1280 and 1920 divide."""
        return self._normal(self.rows, 3840)

    def regions(self) -> torch.Tensor:
        return self._normal(self.rows, 4, self.config.visual_feat_dim)

    def corners(self) -> torch.Tensor:
        return torch.rand(self.rows, 4, self.config.visual_pos_dim, generator=self.generator)

    def pair(self) -> torch.Tensor:
        return self._normal(self.rows, 2, 3, 64, 64)

    def wave_of_channel(self) -> torch.Tensor:
        return self._normal(self.rows, getattr(self.config, "audio_channels", None) or 1, 3840)

    def series(self) -> torch.Tensor:
        return self._normal(self.rows, self.config.context_length, self.config.num_input_channels)

    def one_series(self) -> torch.Tensor:
        return self._normal(self.rows, self.config.context_length)


_WAYS: Mapping[str, Callable[[], list[_Make]]] = {
    "pixel_values": lambda: [*_images(), _Maker.patches, _Maker.pair],
    "pixel_values_videos": lambda: [_Maker.film],
    "input_values": lambda: [
        _Maker.wave,
        _Maker.long_wave,
        _Maker.wave_of_channel,
        _Maker.spectrum_of_length,
        _Maker.spectrum_by_time,
    ],
    "input_features": lambda: [_Maker.spectrum, _Maker.spectrum_by_time],
    "past_values": lambda: [_Maker.series, _Maker.one_series],
    "inputs_embeds": lambda: [_Maker.embeddings],
    "hidden_states": lambda: [_Maker.patches, _Maker.embeddings],
}

_BY_NAME: Mapping[str, _Make] = {
    "input_ids": _Maker.tokens,
    "attention_mask": _Maker.mask,
    "decoder_input_ids": _Maker.answer,
    "inputs_embeds": _Maker.embeddings,
    "hidden_states": _Maker.patches,
    "pixel_values": _Maker.image,
    "pixel_values_videos": _Maker.film,
    "bbox": _Maker.boxes,
    "grid_thw": _Maker.grid,
    "image_grid_thw": _Maker.grid,
    "input_values": _Maker.wave,
    "input_features": _Maker.spectrum_by_time,
    "input_features_mask": _Maker.all_heard,
    "visual_feats": _Maker.regions,
    "visual_pos": _Maker.corners,
    "past_values_padding": lambda make: torch.zeros(make.rows, make.config.context_length, dtype=torch.int64),
    "freq": lambda make: torch.zeros(make.rows, 1, dtype=torch.int64),
}
