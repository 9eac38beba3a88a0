"""GGUF models of several files, as llama.cpp's ``gguf-split`` writes them: the path of one in, the tensors of all out.

Each file, ``x-00001-of-00003.gguf``, says of how many it is one; the first one has the model's metadata.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from ...dialect.errors import RelaxError
from ..arrays import Array, ArraySpec
from ..files import inside
from ..source import Ranges, read_all, read_part, reads_parts
from .gguf_file import GgufFile, GgufTensors

__all__ = ["SplitGguf", "open_gguf", "other_parts"]

_COUNT, _NUMBER = "split.count", "split.no"
_NAME = re.compile(r"(.*)-(\d{5})-of-(\d{5})(\.gguf)")

Tensors = TypeVar("Tensors", bound=GgufTensors)

#: More files than any model has; names of files are made by a number in the file.
_MOST = 10_000


def open_gguf(path: str | os.PathLike[str]) -> GgufFile | SplitGguf:
    """A file, with all others of its model where there are several. Raises RelaxError as :class:`.gguf_file.GgufFile`."""
    file = GgufFile(path)
    folder = os.path.dirname(file.path)

    def other(name: str) -> GgufFile:
        place = inside(folder or ".", name, f"'{file.path}'")
        if not os.path.exists(place):
            raise RelaxError(f"'{file.path}': expected '{name}' beside it, got no such file")
        return GgufFile(place)

    parts = other_parts(file, os.path.basename(file.path), other)
    return file if parts is None else SplitGguf(file.path, parts)


def other_parts(file: Tensors, name: str, other: Callable[[str], Tensors]) -> list[Tensors] | None:
    """All files of a model in order; None for a model of one file.

    Args:
        file: one of them.
        name: what it is called.
        other: opens another one by name.

    Raises:
        RelaxError: the names are not those of such files, or they say something else than their names.
    """
    count = file.values.get(_COUNT, 0)
    if count in (0, 1):
        return None
    found = _NAME.fullmatch(name)
    if type(count) is not int or not 1 < count <= _MOST or found is None or int(found[3]) != count:
        raise RelaxError(f"'{file.path}': expected a name as x-00001-of-{count:05}.gguf of one of {count} files, got '{name}'")
    names = [f"{found[1]}-{i + 1:05d}-of-{count:05d}{found[4]}" for i in range(count)]
    parts = [file if n == name else other(n) for n in names]
    for i, part in enumerate(parts):
        got = (part.values.get(_NUMBER), part.values.get(_COUNT))
        if got != (i, count):
            raise RelaxError(f"'{part.path}': {_NUMBER}, {_COUNT}: expected {i}, {count}, got {got[0]}, {got[1]}")
    return parts


class SplitGguf:
    """The tensors of several files as those of one, see :class:`.gguf_file.GgufTensors`.

    Attributes:
        values: the metadata, numbers and texts.
        tensors: types and shapes by the files' names.
        ahead_bytes: memory that downloads take at most.
    """

    metadata: Mapping[str, str] = MappingProxyType({})
    is_interleaved = True

    def __init__(self, path: str, parts: Sequence[GgufTensors], ahead_bytes: int = 0):
        """Joins files. Raises RelaxError where two of them have a tensor of the same name."""
        self.path = path
        self._files: Sequence[Any] = parts
        self.values: dict[str, Any] = parts[0].values
        self.tensors = {name: entry for part in parts for name, entry in part.tensors.items()}
        self._of = {name: part for part in parts for tensor in part.tensors for name in part.parts(tensor).values()}
        if len(self.tensors) != sum(len(part.tensors) for part in parts):
            names = [name for part in parts for name in part.tensors]
            twice = next(n for n in names if names.count(n) > 1)
            raise RelaxError(f"'{path}': tensor {twice!r}: expected it in one of {len(parts)} files, got it in several")
        self.files = [f for part in parts for f in getattr(part, "files", ())]
        self.ahead_bytes = ahead_bytes

    @property
    def config(self) -> Mapping[str, Any]:
        """As of one file."""
        return dict(self._files[0].config) | {"tie_word_embeddings": "output.weight" not in self.tensors}

    @property
    def identity(self) -> str | None:
        """Changes when one of the files does."""
        known = [getattr(part, "identity", None) for part in self._files]
        return None if None in known else "\n".join(map(str, known))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says of how files were read."""
        return tuple(note for part in self._files for note in getattr(part, "notes", ()))

    def parts(self, name: str) -> dict[str, str]:
        """The names of a tensor's fields, by what the format calls them."""
        return next(part for part in self._files if name in part.tensors).parts(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __contains__(self, name: object) -> bool:
        return name in self._of

    def spec(self, name: str) -> ArraySpec:
        return self._file(name).spec(name)

    def get(self, name: str) -> Array:
        return self._file(name).get(name)

    def read_all(self, names: Collection[str]) -> dict[str, Array]:
        """Of each file those that it has, together."""
        groups: dict[Any, list[str]] = {}
        for name in names:
            groups.setdefault(self._file(name), []).append(name)
        return {name: array for file, own in groups.items() for name, array in read_all(file, own).items()}

    def reads_parts(self, name: str) -> bool:
        """Whether a part of a tensor takes no more memory than its bytes."""
        return reads_parts(self._file(name), name)

    def read_part(self, name: str, ranges: Mapping[int, Ranges], place: Array | None = None) -> Array:
        """Of a tensor or field, what is in these ranges along some axes."""
        return read_part(self._file(name), name, ranges, place)

    def prefetch(self, name: str) -> None:
        self._file(name).prefetch(name)

    def release(self, name: str) -> None:
        self._file(name).release(name)

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        for file in self._files if names is None else {self._file(name) for name in names}:
            file.check_unchanged(None)

    def _file(self, name: str) -> Any:
        """The file of a field; of no known name the first one, which says so."""
        return self._of.get(name, self._files[0])
