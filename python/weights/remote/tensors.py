"""Tensors of a checkpoint elsewhere: safetensors, one file or a folder with its index, and GGUF."""

from __future__ import annotations

import difflib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ...dialect.errors import RelaxError
from ..arrays import Array, ArraySpec, aligned_empty
from ..checksums import CHECKSUMS, Checksum, separated
from ..formats.gguf_file import GgufTensors
from ..formats.gguf_split import SplitGguf, other_parts
from ..header import Header, TensorEntry, parse_header, read_prefix
from ..model_folder import CONFIG, INDEX, MAX_CONFIG_BYTES, MAX_INDEX_BYTES, SINGLE, check_index, parse_config, parse_index
from ..safetensors import common_metadata
from ..shard_names import index_path
from ..source import TensorSource
from .downloads import DOWNLOAD_BYTES, Downloads
from .places import Place
from .remote_file import NoFileError, RemoteFile, read_small
from .transport import HEAD_BYTES

__all__ = ["RemoteCheckpoint", "RemoteGguf", "open_remote"]

# Files are opened side by side: each takes a round trip or two.
_OPENING_THREADS = 8

_OTHERS = (".npz", ".bin", ".pt", ".pth", ".bin.index.json")


def open_remote(url: str) -> TensorSource:
    """The tensors of a URL, as they are stored.

    Args:
        url: of a safetensors file, a folder with one or with an index, an index, or a GGUF file.

    Raises:
        RelaxError: it cannot be read or is malformed.
    """
    place = Place(url)
    if place.file_name.endswith(_OTHERS):
        raise RelaxError(
            f"'{place.name}': expected safetensors or GGUF to read by ranges, got another format: download it first"
        )
    return _gguf(place) if place.file_name.endswith(".gguf") else RemoteCheckpoint(place)


def _gguf(place: Place) -> RemoteGguf | SplitGguf:
    """A GGUF file, with all others of its model where there are several."""
    downloads = Downloads()
    file = RemoteGguf(place, downloads)
    others = other_parts(file, place.file_name, lambda n: RemoteGguf(place.parent.inside(n, f"'{place.name}'"), downloads))
    if others is None:
        return file
    return SplitGguf(place.name, others, min(DOWNLOAD_BYTES, 2 * sum(f.size for f in others)))


class _Kept:
    """Tensors that are in use: each is downloaded once, and kept until it is released. Thread-safe."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def get(self, name: str, make: Callable[[], Array]) -> Array:
        with self._locks[name]:
            found = self._arrays.get(name)
            if found is None:
                found = self._arrays[name] = make()
            return found

    def release(self, name: str) -> None:
        self._arrays.pop(name, None)


class _File(RemoteFile):
    """One safetensors file, its header read and checked."""

    @classmethod
    def found(cls, place: Place) -> _File | None:
        """The file; None where there is none."""
        try:
            return cls(place)
        except NoFileError:
            return None

    def __init__(self, place: Place):
        super().__init__(place)
        prefix = self._read(0, min(8, self.size))
        length = read_prefix(prefix, self.size, self.path)
        self.header: Header = parse_header(self._read(8, length), self.size, self.path)
        text = self.header.metadata.get(CHECKSUMS)
        self.checksums = None if text is None else separated(text, self.header.tensors, f"'{self.path}'")

    def _read(self, begin: int, count: int) -> bytes:
        content = bytearray(count)
        self.read(begin, memoryview(content), "header")
        return bytes(content)


class RemoteCheckpoint:
    """The tensors of safetensors files; see :class:`..source.TensorSource`.

    Opening reads headers only. A tensor is in memory of the process from :meth:`get` until :meth:`release`.

    Attributes:
        ahead_bytes: memory that downloads take at most, beside tensors.
    """

    def __init__(self, place: Place):
        """Opens a file, an index, or a folder. Raises RelaxError when it cannot be read or is malformed."""
        self.path = place.name
        self._downloads, self._kept = Downloads(), _Kept()
        self._folder, self._where = self._opened(place)
        self._files = list(dict.fromkeys(self._where.values()))
        self.ahead_bytes = min(DOWNLOAD_BYTES, 2 * sum(f.size for f in self._files))
        self.metadata: Mapping[str, str] = common_metadata([f.header.metadata for f in self._files])
        self.files: list[str] = []  # none of this machine
        self._config: Mapping[str, Any] | None = None

    @property
    def config(self) -> Mapping[str, Any]:
        if self._config is None:
            self._config = {} if self._folder is None else _config(self._folder)
        return self._config

    @property
    def identity(self) -> str | None:
        """Changes when a file does: its size, header and ETag, or what else its server tells of it."""
        known = [(f.identity, f.header.digest) for f in self._files]
        return None if any(i is None for i, _ in known) else "\n".join(f"{i} {digest}" for i, digest in known)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says of how files were read."""
        return tuple(note for file in self._files for note in file.notes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __contains__(self, name: object) -> bool:
        return name in self._where

    def spec(self, name: str) -> ArraySpec:
        file, entry = self._find(name)
        if entry.spec is None:
            raise RelaxError(f"'{file.path}': tensor {name!r}: expected a dtype that NumPy has, got {entry.dtype_name}")
        return entry.spec

    def get(self, name: str) -> Array:
        self.spec(name)
        return self._kept.get(name, lambda: self._downloaded(name))

    def prefetch(self, name: str) -> None:
        file, entry = self._find(name)
        self._downloads.prefetch(file, entry.begin, entry.end, f"tensor {name!r}")

    def release(self, name: str) -> None:
        file, entry = self._find(name)
        self._kept.release(name)
        self._downloads.release(file, entry.begin, entry.end)

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        """Asks servers at the end, for all names; before that each answer tells."""
        if names is None:
            for file in self._files:
                file.check_unchanged()

    def _opened(self, place: Place) -> tuple[Place | None, dict[str, _File]]:
        """The folder, if its config.json is of these tensors, and the file of each of them."""
        name = place.file_name
        if name.endswith(".json"):
            return place.parent, _shards(place)
        file = _File.found(place if name.endswith(".safetensors") else place.inside(SINGLE, ""))
        if file is not None:
            folder = place.parent if name == SINGLE else None if name.endswith(".safetensors") else place
            return folder, dict.fromkeys(file.header.tensors, file)
        whole = name if name.endswith(".safetensors") else ""
        index = place.parent.inside(index_path(whole), "") if whole else place.inside(INDEX, "")
        return None if whole else place, _shards(index, f"'{place.name}': expected {whole or SINGLE}")

    def _find(self, name: str) -> tuple[_File, TensorEntry]:
        if name not in self._where:
            near = difflib.get_close_matches(str(name), self._where, 1)
            hint = f", did you mean {near[0]!r}" if near else ""
            raise RelaxError(f"'{self.path}': expected a tensor of this checkpoint, got {name!r}{hint}")
        file = self._where[name]
        return file, file.header.tensors[name]

    def _downloaded(self, name: str) -> Array:
        """A tensor; where the file has checksums, one that does not agree is downloaded once more."""
        file, entry = self._find(name)
        spec, what = self.spec(name), f"tensor {name!r}"
        array = aligned_empty(spec.dtype, spec.shape)
        content = array.reshape(-1).view(np.uint8).data if spec.nbytes else memoryview(b"")
        for _ in range(2):
            self._downloads.read(file, entry.begin, content, what)
            if file.checksums is None or Checksum.of(name, spec, content) == file.checksums[name]:
                array.flags.writeable = False
                return array
        raise RelaxError(f"'{file.path}': {what}: expected the bytes that its checksum is of, got others, twice")


def _shards(index: Place, other: str = "") -> dict[str, _File]:
    """The file of each tensor; ``other`` is what an error says of a file that could be there instead."""
    text = read_small(index, MAX_INDEX_BYTES, "an index")
    if text is None:
        what = (
            f"{other} or {index.file_name} there, got neither"
            if other
            else f"'{index.name}': expected an index, got no such file"
        )
        raise RelaxError(what)
    weight_map = parse_index(text, index.name)
    places = {name: index.parent.inside(name, f"'{index.name}'") for name in dict.fromkeys(weight_map.values())}
    with ThreadPoolExecutor(_OPENING_THREADS) as pool:
        files = dict(zip(places, pool.map(_File, places.values()), strict=True))
    check_index(index.name, weight_map, {name: file.header.tensors for name, file in files.items()})
    return {tensor: files[shard] for tensor, shard in weight_map.items()}


def _config(folder: Place) -> dict[str, Any]:
    place = folder.inside(CONFIG, "")
    text = read_small(place, MAX_CONFIG_BYTES, "a configuration")
    return {} if text is None else parse_config(text, place.name)


class RemoteGguf(GgufTensors):
    """The tensors of a GGUF file; see :class:`..source.TensorSource`; in memory from :meth:`get` to :meth:`release`."""

    def __init__(self, place: Place, downloads: Downloads):
        """Opens a file and reads its header. Raises RelaxError where it is not as the format has it."""
        self._file = RemoteFile(place)
        super().__init__(self._file.path, _Header(self._file))
        self.ahead_bytes = min(DOWNLOAD_BYTES, 2 * self.size)
        self._downloads, self._kept = downloads, _Kept()
        self.files: list[str] = []  # none of this machine

    @property
    def identity(self) -> str | None:
        """Changes when the file does: its size, header and ETag, or what else its server tells of it."""
        known = self._file.identity
        return None if known is None else f"{known} {self.digest}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says of how the file was read."""
        return self._file.notes

    def prefetch(self, name: str) -> None:
        tensor, entry, _ = self._part(name)
        self._downloads.prefetch(self._file, entry.begin, entry.begin + entry.nbytes, f"tensor {tensor!r}")

    def release(self, name: str) -> None:
        tensor, entry, _ = self._part(name)
        self._kept.release(tensor)
        self._downloads.release(self._file, entry.begin, entry.begin + entry.nbytes)

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        """Asks the server at the end, for all names; before that each answer tells."""
        if names is None:
            self._file.check_unchanged()

    def _bytes(self, tensor: str) -> tuple[Any, int]:
        return self._kept.get(tensor, lambda: self._downloaded(tensor)), 0

    def _downloaded(self, tensor: str) -> Array:
        entry = self.tensors[tensor]
        content = aligned_empty(np.dtype(np.uint8), (entry.nbytes,))
        self._downloads.read(self._file, entry.begin, content.data, f"tensor {tensor!r}")
        content.flags.writeable = False
        return content


class _Header:
    """The beginning of a file, of which more is read as more is needed: headers say not how long they are."""

    def __init__(self, file: RemoteFile):
        self._file, self._content = file, bytearray()

    def __len__(self) -> int:
        return self._file.size

    def __getitem__(self, part: slice) -> bytes:
        end, known = min(part.stop, len(self)), len(self._content)
        if end > known:
            more = bytearray(min(len(self), max(end, 2 * known, HEAD_BYTES)) - known)
            self._file.read(known, memoryview(more), "header")
            self._content += more
        return bytes(self._content[part])
