"""``load``: a folder that transformers wrote to a compiled model; code and prepared weights are kept, and found again."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable
from typing import Any

import torch
import transformers
from transformers import GenerationConfig, PreTrainedConfig, PreTrainedModel

from ..dialect.checks import expect_count
from ..dialect.errors import RelaxError, warn
from ..runtime.prepare import ProgressHook
from ..weights.files import path_text
from ..weights.folder_files import adapter_hint
from ..weights.opening import open_tensors
from .adjusting import tokens_at_once
from .compiled_model import CompiledModel
from .decoder import decoder_programs
from .encoder import encoder_program, image_size, input_names
from .encoder_decoder import encoder_decoder_programs, encoder_programs
from .encoding import CompiledEncoder
from .folder_executables import FolderExecutables
from .generating import CompiledForCausalLM
from .seq2seq import CompiledForSeq2Seq

__all__ = ["load"]

#: Tokens of a sequence where nobody says how many, and the model can have as many: a cache of 1 GiB for 8 billion parameters.
_LENGTH = 2048

#: Parts of models that read other things than tokens, by what these are.
_OTHER_PARTS = {"images": "vision_config", "sounds": "audio_config"}

#: What keys and values of tokens can be kept in.
_CACHES = {None: torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def load(
    folder: str | os.PathLike[str],
    weights: str | None = None,
    *,
    activations: str | None = None,
    kv_cache: str | None = None,
    max_length: int | None = None,
    batch: int = 1,
    target: str = "cpu",
    device: str | None = None,
    threads: int | None = None,
    jobs: int = 1,
    progress: ProgressHook | None = None,
) -> Any:
    """Compiles the model of a folder, prepares its weights, and gives what transformers can work with.

    Both are done once: the code is kept in the cache of :func:`relaxir.compile`, by the configuration, these options and all
    versions, and the weights in that of :meth:`Executable.load_weights`, by the code and what the files are.

    Args:
        folder: what ``save_pretrained`` writes: ``config.json`` and safetensors, in one file or shards. Products read the
            integers of quantized ones (GPTQ, AWQ, compressed-tensors, FP8, ...) as narrow as the files have them, where there
            is a kernel for that, as for ``relaxir.compile(checkpoint=)``; the report says which.
        weights: what weights of products are stored in, ``"bf16"``, ``"int8"`` or ``"int4"``; None keeps all numbers, in f32.
        activations: ``"int8"``: as for :func:`relaxir.compile`.
        kv_cache: what keys and values of tokens are kept in, ``"f16"`` or ``"bf16"``: half of the bytes, which decoding behind
            long prompts reads for each token. Scores are computed in f32 all the same. f16 rounds to 11 bits and holds up to
            65504, bf16 rounds to 8 and holds what f32 can. None keeps all numbers.
        max_length: how many tokens a sequence can have, the prompt's among them; by default as many as the model can, and at
            most 2048 where they are generated. Of sounds how many samples, by default any number.
        batch: of how many sequences at once the code that generates is made now; code for other numbers is made when they
            come. Code that does not generate takes any number.
        target, device: as for :func:`relaxir.compile`.
        threads: that run the model; None is one for each core.
        jobs: threads that prepare weights.
        progress: called after each step of the preparation.

    Returns:
        A :class:`~.generating.CompiledForCausalLM` of a model that generates tokens, or, where it has an encoder for what it
        reads, a :class:`~.seq2seq.CompiledForSeq2Seq`; else a :class:`~.encoding.CompiledEncoder`.

    Raises:
        RelaxError: there is no such folder or model, its architecture is none that can be compiled, a file is missing or
            malformed, an option is none of these.
    """
    path = path_text(folder)
    config = _config(path)
    model_class = _model_class(config, path)
    length = _length(config, max_length, model_class.can_generate())
    cache = _cache(kv_cache, model_class)
    threads = None if threads is None else expect_count(threads, "a number of threads from 1 on")
    expect_count(batch, "a number of sequences from 1 on")
    _warn_of_less(config, model_class)
    open_tensors(path)  # what is wrong with the files is said before the seconds that compiling takes
    source = FolderExecutables(path, config, model_class, weights, activations, target, device, threads, jobs, progress)
    if model_class.can_generate() and config.is_encoder_decoder:
        return _encoder_decoder(source, length, batch, cache)
    if model_class.can_generate():
        return _decoder(source, length, batch, cache)
    return _encoder(source, length, max_length)


def _decoder(source: FolderExecutables, length: int, batch: int, cache: torch.dtype) -> CompiledForCausalLM:
    def executable(rows: int) -> Any:
        key = str(length), str(rows), str(cache)
        return source.executable(key, lambda model: decoder_programs(model, rows, length, cache))

    config = copy.deepcopy(source.config)
    at_once, generation = tokens_at_once(source.skeleton, length), _generation_config(source.path)
    made = _named(source, CompiledForCausalLM)(config, executable, length, at_once, generation)
    made.executable(batch)
    return made


def _encoder_decoder(source: FolderExecutables, length: int, batch: int, cache: torch.dtype) -> CompiledForSeq2Seq:
    config = copy.deepcopy(source.config)
    most = getattr(config, "max_source_positions", None) or getattr(config, "max_position_embeddings", None) or _LENGTH

    def executable(rows: int) -> Any:
        key = "decoder", str(length), str(rows), str(cache)
        return source.executable(key, lambda model: encoder_decoder_programs(model, rows, length, most, cache))

    encoder = source.executable(("encoder", str(cache)), lambda model: encoder_programs(model, most, cache))
    name, generation = source.model_class.main_input_name, _generation_config(source.path)
    made = _named(source, CompiledForSeq2Seq)(config, encoder, executable, length, name, generation)
    made.executable(batch)
    return made


def _encoder(source: FolderExecutables, length: int, wanted: int | None) -> CompiledEncoder:
    names, image = input_names(source.model_class, source.config), image_size(source.path, source.config)
    most = wanted if "input_values" in names else length
    made = source.executable((str(most), str(image)), lambda model: {"main": encoder_program(model, names, most, image)})
    return _named(source, CompiledEncoder)(copy.deepcopy(source.config), made, source.model_class, names)


def _named(source: FolderExecutables, kind: type[CompiledModel]) -> Any:
    """The class under the name of the model's: pipelines look for the name of what they support."""
    return type(source.model_class.__name__, (kind,), {})


def _config(path: str) -> PreTrainedConfig:
    if not os.path.isdir(path):
        is_name = re.fullmatch(r"[\w.-]+/[\w.-]+", path) is not None and not os.path.lexists(path)
        hint = f": huggingface_hub.snapshot_download('{path}') gives one, if it is the name of a repository" if is_name else ""
        raise RelaxError(f"expected a folder with config.json and weights, got '{path}'{hint}")
    if not os.path.isfile(os.path.join(path, "config.json")):
        raise RelaxError(f"'{path}': expected a folder with config.json, got none{adapter_hint(path)}")
    config = _told(path, lambda: transformers.AutoConfig.from_pretrained(path))
    if hasattr(config, "quantization_config"):  # what the model is without; the folder's tensors are opened with it
        del config.quantization_config
    return config


def _generation_config(path: str) -> GenerationConfig | None:
    if not os.path.isfile(os.path.join(path, "generation_config.json")):
        return None
    return _told(path, lambda: GenerationConfig.from_pretrained(path))


def _told(path: str, read: Callable[[], Any]) -> Any:
    """What transformers reads; its complaints about a folder are one line."""
    try:
        return read()
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = (str(error) or type(error).__name__).strip().splitlines()[0]
        raise RelaxError(f"'{path}': expected a folder that transformers can read, got {reason}") from error


def _model_class(config: PreTrainedConfig, path: str) -> type[PreTrainedModel]:
    """The class that the configuration names, or else the architecture's for causal language models, or its plain one."""
    named = (config.architectures or [None])[0]
    found: Any = getattr(transformers, named, None) if named else None
    for auto in (transformers.AutoModelForCausalLM, transformers.AutoModel):
        found = found or auto._model_mapping.get(type(config), None)
    if found is None or isinstance(found, tuple):
        raise RelaxError(f"'{path}': expected an architecture that transformers has, got {named or config.model_type}")
    return found


def _warn_of_less(config: PreTrainedConfig, model_class: type[PreTrainedModel]) -> None:
    """Says what of a model is not there when it is compiled."""
    asked = [name for name in ("hidden_states", "attentions") if getattr(config, f"output_{name}", False)]
    if asked:
        warn(f"{model_class.__name__}: results have no {' and no '.join(asked)}, which config.json asks for")
    others = [kind for kind, part in _OTHER_PARTS.items() if getattr(config, part, None) is not None]
    if model_class.can_generate() and not config.is_encoder_decoder and others:
        warn(f"{model_class.__name__}: what is compiled generates from tokens alone, without {' and '.join(others)}")


def _cache(wanted: str | None, model_class: type[PreTrainedModel]) -> torch.dtype:
    """What keys and values are kept in."""
    if not (wanted is None or (isinstance(wanted, str) and wanted in _CACHES)):
        raise RelaxError(f"expected kv_cache as f16, bf16 or None, got {wanted!r}")
    if wanted is not None and not model_class.can_generate():
        raise RelaxError(f"expected a model that generates tokens where kv_cache is given, got {model_class.__name__}")
    return _CACHES[wanted]


def _length(config: PreTrainedConfig, wanted: int | None, generates: bool) -> int:
    """How many tokens a sequence can have."""
    text: Any = config.get_text_config(decoder=True)
    most: int | None = getattr(text, "max_target_positions", None) or getattr(text, "max_position_embeddings", None)
    most = None if most is not None and most < 1 else most  # XLNet says -1: positions are relative
    if wanted is None:
        return min(_LENGTH, most or _LENGTH) if generates else most or _LENGTH
    expect_count(wanted, "a number of tokens from 1 on as max_length")
    if generates and wanted < 2:
        raise RelaxError(f"expected max_length from 2 on, a token of a prompt and a new one, got {wanted}")
    if most is not None and wanted > most:
        raise RelaxError(f"expected max_length up to {most}, the model's max_position_embeddings, got {wanted}")
    return wanted
