"""Names of the files of one checkpoint, as Hugging Face has them: ``x.safetensors`` as its parts and their index."""

from __future__ import annotations

import os
import re

from .files import os_errors

__all__ = ["index_path", "missing_shards", "shard_path"]

_END = ".safetensors"
_INDEX = ".index.json"


def index_path(path: str) -> str:
    """``x.safetensors.index.json``, which says what is in which part."""
    return path if path.endswith(_INDEX) else path + _INDEX


def shard_path(path: str, number: int, count: int) -> str:
    """``x-00002-of-00004.safetensors``; numbers begin at 1."""
    return f"{_stem(path)}-{number:05d}-of-{count:05d}{_END}"


def missing_shards(path: str) -> tuple[list[int], int] | None:
    """Which numbers of the parts of a checkpoint do not exist, and of how many; None where there are no parts at all.

    Of several sets, such as those of another number of ranks, one that lacks some goes first, since whoever writes a file of a
    set removes the index of another one; and then that of which the most are there.

    Raises:
        RelaxError: the folder cannot be read.
    """
    folder, stem = os.path.split(_stem(path))
    if not os.path.isdir(folder or "."):
        return None
    pattern = re.compile(re.escape(stem) + r"-(\d{5})-of-(\d{5})" + re.escape(_END))
    with os_errors("list", folder or "."):
        found = [m for name in os.listdir(folder or ".") if (m := pattern.fullmatch(name))]
    sets = dict[int, set[int]]()
    for match in found:
        sets.setdefault(int(match[2]), set()).add(int(match[1]))
    if not sets:
        return None
    count = max(sets, key=lambda c: (len(sets[c]) < c, len(sets[c]), c))
    return [n for n in range(1, count + 1) if n not in sets[count]], count


def _stem(path: str) -> str:
    return path.removesuffix(_INDEX).removesuffix(_END)
