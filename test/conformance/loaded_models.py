"""Compares what ``relaxir.transformers.load`` makes of folders with transformers, called in the ways that users call it.

    .venv/bin/python test/conformance/loaded_models.py [--jobs N] [--sample N] [--keep FILE] [ARCHITECTURE/CLASS ...]

A folder holds a tiny model with random weights, as ``transformers_models.py`` has them; of an architecture each class that
generates, a classifier, and the plain model. Rows are padded on the left, on the right, or not at all, with their mask or
without it; tokens come at once or in two calls, and are generated, by beams, too. A line for each that is not right.

``--keep FILE`` writes what each gave as JSON lines, and takes what is there already: a run that was stopped goes on.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from model_runs import line_of, main_of, unlike
from tiny_inputs import candidates
from tiny_models import TooLargeError, architectures, models_of
from transformers.models.auto import modeling_auto as auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import relaxir

__all__ = ["check", "loaded_names"]

#: Tokens that a sequence can have.
LENGTH = 32

_CAUSAL = set[Any](auto.MODEL_FOR_CAUSAL_LM_MAPPING.values())

_CLASSES = (
    auto.MODEL_FOR_CAUSAL_LM_MAPPING,
    auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING,
    auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING,
    auto.MODEL_FOR_CTC_MAPPING,
    auto.MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING,
    auto.MODEL_MAPPING,
)

_Inputs = dict[str, torch.Tensor]


def loaded_names() -> list[str]:
    """Each architecture with each class that is compared, as ``llama/LlamaForCausalLM``."""
    return [f"{kind}/{cls.__name__}" for kind in architectures() for cls in _classes(kind)]


def _classes(kind: str) -> dict[type, None]:
    found = dict[type, None]()
    for mapping in _CLASSES:
        one = mapping.get(CONFIG_MAPPING[kind], None)
        found |= dict.fromkeys(one if isinstance(one, tuple) else () if one is None else (one,))
    return found


def check(name: str, is_open: bool) -> tuple[str, str]:
    """``right``, ``wrong``, ``refused``, ``failed``, or ``unbuilt``; and why."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RELAXIR_CACHE_DIR"] = f"{folder}/cache"
        try:
            model = _saved(name, f"{folder}/model")
        except Exception as error:
            return "unbuilt", line_of(error)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loaded = relaxir.transformers.load(f"{folder}/model", max_length=None if _is_of_sounds(model) else LENGTH)
            reasons = [reason for use in _uses(model) if (reason := _difference(use, model, loaded))]
        except relaxir.RelaxError as error:
            return "refused", str(error).replace(folder, "")
        except Exception as error:
            return "failed", line_of(error)
    return ("wrong", "; ".join(reasons)) if reasons else ("right", "")


def _saved(name: str, folder: str) -> Any:
    """A model that runs in PyTorch, as transformers reads its folder."""
    kind, class_name = name.split("/")
    cls = next(c for c in _classes(kind) if c.__name__ == class_name)
    last: Exception = TooLargeError("no small configuration")
    for model in models_of(kind, cls, is_decoder=cls in _CAUSAL):
        if isinstance(model, Exception):
            last = model
            continue
        for each in (model.config, *(getattr(model.config, n, None) for n in getattr(model.config, "sub_configs", {}))):
            if hasattr(each, "use_cache"):
                each.use_cache = cls.can_generate()
        try:
            model.save_pretrained(folder)
            read = cls.from_pretrained(folder, dtype=torch.float32).eval()
            next(_uses(read)).run(read)
        except Exception as error:
            last = error
            continue
        return read
    raise last


@dataclass(frozen=True)
class _Use:
    """A way to call a model.

    Attributes:
        label: of the way.
        given: arguments by name.
        way: ``call``, ``two calls``, or ``generate``.
        options: of ``generate``.
    """

    label: str
    given: _Inputs
    way: str = "call"
    options: tuple[tuple[str, Any], ...] = ()

    def run(self, model: Any) -> dict[str, torch.Tensor]:
        with torch.no_grad():
            if self.way == "generate":
                return {"tokens": model.generate(**self.given, **dict(self.options))}
            if self.way == "two calls":
                return self._in_two(model)
            return _tensors(model(**self.given))

    def _in_two(self, model: Any) -> dict[str, torch.Tensor]:
        tokens, mask = self.given["input_ids"], self.given["attention_mask"]
        half = tokens.shape[1] // 2
        first = model(input_ids=tokens[:, :half], attention_mask=mask[:, :half], use_cache=True)
        cache = {k: v for k, v in first.items() if k in ("cache", "past_key_values")}
        second = model(input_ids=tokens[:, half:], attention_mask=mask, use_cache=True, **cache)
        return {"logits": torch.cat([first.logits, second.logits], 1)}


def _tensors(output: Any) -> dict[str, torch.Tensor]:
    return {key: value for key, value in output.items() if isinstance(value, torch.Tensor)}


def _uses(model: Any) -> Iterator[_Use]:
    """The ways of a model, the plainest first."""
    if model.main_input_name == "pixel_values":
        yield from (_Use(f"{n} images", one) for n in (2, 1, 3) if (one := _images(model, n)))
        return
    if _is_of_sounds(model):
        yield from _sound_uses()
        return
    if model.main_input_name != "input_ids":
        yield _Use("plain", next(one for one in candidates(model, 2, 12) if one))
        return
    if model.can_generate() and model.config.is_encoder_decoder:
        yield from _seq2seq_uses(model)
        return
    more = next((one for one in (_images(model, 2),) if one), {}) if not model.can_generate() else {}
    tokens = _tokens(2, 7)
    yield _Use("plain", {"input_ids": tokens} | more)
    padded, masks = _padded(model, tokens)
    for side in ("left", "right"):
        yield _Use(f"padded on the {side}", {"input_ids": padded[side], "attention_mask": masks[side]} | more)
        yield _Use(f"padded on the {side} without a mask", {"input_ids": padded[side]} | more)
    yield _Use("longer", {"input_ids": _tokens(2, 13)} | more)
    if not more:
        yield _Use("a row", {"input_ids": _tokens(1, 9)})
    if not model.can_generate():
        return
    left = {"input_ids": padded["left"], "attention_mask": masks["left"]}
    yield _Use("in two calls", left, "two calls")
    yield from _generating(left)


def _is_of_sounds(model: Any) -> bool:
    return model.main_input_name == "input_values" and hasattr(model, "_get_feat_extract_output_lengths")


def _sound_uses() -> Iterator[_Use]:
    for rows, samples in ((2, 1600), (3, 2345), (1, 801)):
        sounds = torch.randn(rows, samples, generator=torch.Generator().manual_seed(samples))
        mask = torch.ones(rows, samples, dtype=torch.int64)
        mask[-1, samples * 2 // 3 :] = 0
        yield _Use(f"{samples} samples", {"input_values": sounds})
        yield _Use(f"{samples} samples, padded", {"input_values": sounds * mask, "attention_mask": mask})


def _seq2seq_uses(model: Any) -> Iterator[_Use]:
    padded, masks = _padded(model, _tokens(2, 9))
    given = {"input_ids": padded["right"], "attention_mask": masks["right"]}
    yield _Use("plain", {"input_ids": _tokens(2, 7), "decoder_input_ids": _tokens(2, 5)})
    yield _Use("padded", given | {"decoder_input_ids": _tokens(2, 5)})
    yield _Use("padded without a mask", {"input_ids": padded["right"], "decoder_input_ids": _tokens(2, 5)})
    yield _Use("padded answers", given | {"decoder_input_ids": _padded(model, _tokens(2, 5))[0]["right"]})
    yield from _generating(given)
    yield from _generating({"input_ids": padded["right"]})


def _generating(given: _Inputs) -> Iterator[_Use]:
    options = (("min_new_tokens", 8), ("max_new_tokens", 8), ("do_sample", False))
    yield _Use("generated", given, "generate", options)
    yield _Use("generated by beams", given, "generate", (*options, ("num_beams", 2)))


def _tokens(rows: int, count: int) -> torch.Tensor:
    return torch.randint(5, 80, (rows, count), generator=torch.Generator().manual_seed(rows + count))


def _padded(model: Any, tokens: torch.Tensor) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """With a first row that is shorter, and the masks; by the side that is padded."""
    pad = getattr(model.config.get_text_config(), "pad_token_id", None)
    left, mask = tokens.clone(), torch.ones_like(tokens)
    left[0, :3], mask[0, :3] = 0 if pad is None else pad, 0
    return {"left": left, "right": left.flip(1)}, {"left": mask, "right": mask.flip(1)}


def _images(model: Any, count: int) -> _Inputs | None:
    """What a model takes of images beside its tokens; nothing where it takes none."""
    for one in candidates(model, count, 12):
        if one and "pixel_values" in one:
            return {"pixel_values": one["pixel_values"]}
    return None


def _difference(use: _Use, model: Any, loaded: Any) -> str:
    """How results differ; empty where they do not, or transformers does not take the call."""
    try:
        wanted = use.run(model)
    except Exception:
        return ""
    try:
        got = use.run(loaded)
    except Exception as error:
        return f"{use.label}: {line_of(error)}"
    mask = use.given.get("attention_mask")
    for key, value in wanted.items():
        if key not in got:
            return f"{use.label}: no {key}"
        if (
            use.way != "generate"
            and mask is not None
            and value.shape[:2] == mask.shape
            and "decoder_input_ids" not in use.given
        ):
            value, got[key] = value[mask == 1], got[key][mask == 1]
        if reason := unlike([value], [got[key]]):
            return f"{use.label}: {key} {reason}"
    return ""


if __name__ == "__main__":
    main_of(__doc__ or "", loaded_names, check)
