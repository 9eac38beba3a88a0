"""Which files of a folder are its weights: a folder in, an index or files out.

The names of Hugging Face go first: ``model.safetensors`` or its index, else ``pytorch_model.bin`` or its index. Without them
the only index of safetensors in the folder is taken, else its only file of weights, else the complete set of numbered ones
(``x-00001-of-00002.safetensors``), for an index says nothing that their headers do not say.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..dialect.errors import RelaxError
from .files import os_errors
from .json_text import parse_json
from .model_folder import INDEX, SINGLE

__all__ = ["MERGING", "FolderFiles", "adapter_hint", "files_of_folder"]

#: What weights are in: ends of names. Files of PyTorch may also be of an optimizer, so they count where there are no others.
_MAIN, _TORCH = (".safetensors", ".gguf", ".npz", ".onnx"), (".bin", ".pt", ".pth", ".ckpt")
_WEIGHTS = _MAIN + _TORCH
_TORCH_SINGLE, _TORCH_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
_ANY_INDEX = ".safetensors.index.json"
_ADAPTER = "adapter_config.json"
_NUMBERED = re.compile(r"(.+)-(\d{5})-of-(\d{5})(\.safetensors|\.gguf|\.bin)")

#: What an error lists of a folder: what people take for weights, or look for beside them.
_LISTED = (*_WEIGHTS, ".json", ".h5", ".msgpack", ".ot", ".incomplete", ".partial")
_SHOWN = 5

#: What to do about an adapter.
MERGING = "peft's merge_and_unload() makes one model of both, save_pretrained() writes that"


@dataclass(frozen=True)
class FolderFiles:
    """The weights of a folder, by names in it: an index, or files; several are safetensors whose tensors belong together."""

    index: str | None
    files: Sequence[str]


def files_of_folder(folder: str, ends: tuple[str, ...] = _WEIGHTS) -> FolderFiles:
    """What is read of a folder.

    Args:
        folder: its path.
        ends: of names that may be taken.

    Raises:
        RelaxError: it cannot be listed, or it is not clear what its weights are; what is there is said, and what would do.
    """
    with os_errors("list", folder):
        names = sorted(os.listdir(folder))
    for single, index in ((SINGLE, INDEX), (_TORCH_SINGLE, _TORCH_INDEX)):
        if single.endswith(ends) and single in names:
            return FolderFiles(None, [single])
        if single.endswith(ends) and index in names:
            return FolderFiles(index, [])
    weights = next((w for e in (_MAIN, _TORCH) if (w := [n for n in names if n.endswith(e) and n.endswith(ends)])), [])
    found = None if _ADAPTER in names else _clear(weights, [n for n in names if n.endswith(_ANY_INDEX)])
    if found is not None:
        return found
    got = _listing(names) + _hint(folder, names, weights)
    raise RelaxError(f"'{folder}': expected {SINGLE} or {INDEX} in the folder, got {got}")


def _clear(weights: Sequence[str], indexes: Sequence[str]) -> FolderFiles | None:
    """What is read where names are other ones; None where it is not clear."""
    if len(indexes) == 1:
        return FolderFiles(indexes[0], [])
    if len(weights) == 1 and _NUMBERED.fullmatch(weights[0]) is None:
        return FolderFiles(None, weights)
    if indexes or _missing(weights) != [] or weights[0].endswith(_TORCH):
        return None
    return FolderFiles(None, weights[:1] if weights[0].endswith(".gguf") else weights)


def _missing(weights: Sequence[str]) -> list[int] | None:
    """Which numbers are not there of one set of numbered files; None where they are something else."""
    found = [_NUMBERED.fullmatch(name) for name in weights]
    sets = {(m[1], m[3], m[4]) for m in found if m is not None}
    if len(sets) != 1 or None in found:
        return None
    numbers = {int(m[2]) for m in found if m is not None}
    ((_, count, _),) = sets
    return [n for n in range(1, int(count) + 1) if n not in numbers]


def _listing(names: Sequence[str]) -> str:
    shown = [n for n in names if n.endswith(_LISTED)]
    return ", ".join(shown[:_SHOWN]) + (", ..." if len(shown) > _SHOWN else "") if shown else "no such file"


def _hint(folder: str, names: Sequence[str], weights: Sequence[str]) -> str:
    """What would do, where that can be told."""
    if _ADAPTER in names:
        return adapter_hint(folder)
    missing = _missing(weights)
    if missing == []:
        return " without their index"
    if missing:
        return f", without {'number' if len(missing) == 1 else 'numbers'} {', '.join(map(str, missing[:_SHOWN]))}"
    if weights:
        return ": name the one to read"
    below = _folders_with_weights(folder, names)
    return f": weights are in {' and '.join(map(repr, below))}" if below else ""


def adapter_hint(folder: str) -> str:
    """What to do about a folder that has an adapter in place of a model, as the end of a message; empty for others."""
    return f": an adapter of {_base(folder)}; {MERGING}" if os.path.lexists(os.path.join(folder, _ADAPTER)) else ""


def _base(folder: str) -> str:
    """The model that an adapter is for."""
    try:
        with open(os.path.join(folder, _ADAPTER), "rb") as file:
            found = parse_json(file.read(1 << 20))
        base = found["base_model_name_or_path"]
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        base = None
    return repr(base) if isinstance(base, str) else "a model"


def _folders_with_weights(folder: str, names: Sequence[str]) -> list[str]:
    """Folders below that have weights, at most three; those of a Hugging Face cache are two below."""
    found: list[str] = []
    for name in names:
        inner = [name, *(os.path.join(name, n) for n in _listed(folder, name))] if name == "snapshots" else [name]
        found += [n for n in inner if any(f.endswith(_WEIGHTS) for f in _listed(folder, n))]
    return found[:3]


def _listed(folder: str, name: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(folder, name)))
    except OSError:
        return []
