"""Safetensors checkpoints: a path in, zero-copy views of named tensors out, and named tensors in, a file out."""

from __future__ import annotations

import difflib
import functools
import hashlib
import mmap
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any

import numpy as np

from ..dialect.checks import expect
from ..dialect.errors import RelaxError
from .arrays import Array, ArraySpec, aligned_empty, to_numpy
from .checksums import CHECKSUMS, PAGE, SAMPLES, Checksum, read_sample, separated
from .files import inside, name_on_disk, open_regular, os_errors, path_text
from .folder_files import files_of_folder
from .header import Header, TensorEntry, parse_header, read_prefix
from .mapped_file import MappedFile
from .model_folder import CONFIG, INDEX, SINGLE, check_index, read_config, read_index
from .shard_names import index_path, missing_shards
from .source import Ranges, runs_of
from .writer import StreamWriter

__all__ = ["Checkpoint", "LazyTensor", "StreamWriter", "common_metadata", "write_safetensors"]


class _File(MappedFile):
    """One mapped safetensors file."""

    def __init__(self, path: str):
        with open_regular(path) as file, os_errors("read", path):
            super().__init__(path, file)
            length = read_prefix(file.read(8), self.size, path)
            self.header: Header = parse_header(file.read(length), self.size, path)
            self.map_content(file)

    @functools.cached_property
    def identity(self) -> str:
        """What tells this file from another, or from what it was before: times and numbers of the system, header, samples."""
        status = self.status
        known = (self.size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, self.header.digest, self._sampled())
        return " ".join(map(str, (name_on_disk(self.path), *known)))

    def _sampled(self) -> str:
        """A digest of the first and last page of up to so many tensors, evenly distributed over the file."""
        self.check_unchanged()
        digest, tensors = hashlib.sha256(), self.header.tensors
        places: list[tuple[str, int, int]] = []
        for name in islice(tensors, 0, None, -(-len(tensors) // SAMPLES) or 1):
            entry = tensors[name]
            places.append((name, entry.begin, min(entry.end, entry.begin + PAGE)))
            places.append((name, max(entry.begin, entry.end - PAGE), entry.end))
        for _, begin, end in places:  # all asked for before the first is waited for
            self.read_ahead(begin, end)
        for name, begin, end in places:
            page = bytearray(end - begin)
            self.read(begin, memoryview(page), name)
            digest.update(page)
        return digest.hexdigest()


class Checkpoint:
    """The tensors of a safetensors file, of a Hugging Face directory or of its ``model.safetensors.index.json``.

    Opening reads and checks the headers only. The files are mapped, not read: they must not be truncated while in use.

    Attributes:
        path: what was opened.
        metadata: the ``__metadata__`` entries on which all files agree.
    """

    def __init__(self, path: str | os.PathLike[str]):
        """Opens a checkpoint.

        Raises:
            RelaxError: it cannot be read, is truncated or malformed, a shard is missing, or a name leads out of its folder.
        """
        self.path = path_text(path)
        self._index, paths = self._places()
        self._files = [_File(path) for path in paths]
        self._where: Mapping[str, _File] | None = None  # all in one
        if self._index is not None:
            self._where = _open_shards(self._index)
            self._files = list(dict.fromkeys(self._where.values()))
        elif len(paths) > 1:
            self._where = _joined(self._files, self.path)
        self._names: Mapping[str, object] = self._files[0].header.tensors if self._where is None else self._where
        self.metadata = common_metadata([f.header.metadata for f in self._files])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    @property
    def config(self) -> Mapping[str, Any]:
        """The ``config.json`` of a folder, of an index or of a folder's single file; empty where there is none.

        Raises:
            RelaxError: it cannot be read, or is no JSON object.
        """
        folder, name = (self.path, SINGLE) if os.path.isdir(self.path) else os.path.split(self.path)
        has_one = name in (SINGLE, INDEX) and os.path.lexists(os.path.join(folder, CONFIG))
        return read_config(folder or ".") if has_one else {}

    @property
    def identity(self) -> str:
        """Changes when any of the files does: its path, inode, size, times, header, or the ends of its tensors (up to 256)."""
        return "\n".join(f.identity for f in self._files)

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        """Raises RelaxError when a file (of these tensors) is not what was opened any more."""
        for file in self._files if names is None else {self._find(name)[0] for name in names}:
            file.check_unchanged()

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(e.end - e.begin for _, e in map(self._find, self._names))

    @property
    def files(self) -> list[str]:
        """The safetensors files, without repetition, and their index."""
        return [*dict.fromkeys(f.path for f in self._files), *([] if self._index is None else [self._index])]

    def spec(self, name: str) -> ArraySpec:
        """Dtype and shape of a tensor. Raises RelaxError when there is none, or NumPy lacks its dtype."""
        file, entry = self._find(name)
        if entry.spec is None:
            raise RelaxError(f"'{file.path}': tensor {name!r}: expected a dtype that NumPy has, got {entry.dtype_name}")
        return entry.spec

    def get(self, name: str) -> Array:
        """A read-only view of a tensor in the mapped file; pages come in when they are touched. Raises as :meth:`spec`."""
        spec = self.spec(name)
        file, entry = self._find(name)
        return np.ndarray(spec.shape, spec.dtype, file.map, entry.begin)

    def read(self, name: str, place: Array | None = None) -> Array:
        """A tensor in memory of its own: touching a view ends the process where the file was cut off meanwhile, reading is
        refused. It is ``place`` if that is an array of its dtype and shape. Raises as :meth:`spec`, and when it cannot be read.
        """
        spec = self.spec(name)
        file, entry = self._find(name)
        fits = place is not None and place.dtype == spec.dtype and place.shape == spec.shape
        array = place if place is not None and fits else aligned_empty(spec.dtype, spec.shape)
        if spec.nbytes:
            file.read(entry.begin, array.reshape(-1).view(np.uint8).data, name)
        return array

    def read_all(self, names: Collection[str]) -> dict[str, Array]:
        """Each as :meth:`read` gives it."""
        return {name: self.read(name) for name in names}

    def read_part(self, name: str, ranges: Mapping[int, Ranges], place: Array | None = None) -> Array:
        """Of a tensor, what is in these ranges along some axes, one behind the other; only these bytes are read.

        It is ``place`` if that is an array of its dtype and shape. Raises as :meth:`read`.
        """
        spec = self.spec(name)
        file, entry = self._find(name)
        shape = tuple(sum(e - b for b, e in ranges[i]) if i in ranges else d for i, d in enumerate(spec.shape))
        fits = place is not None and place.dtype == spec.dtype and place.shape == shape
        array = place if place is not None and fits else aligned_empty(spec.dtype, shape)
        if not array.nbytes:
            return array
        runs = runs_of(spec.shape, spec.dtype.itemsize, ranges)
        file.read_runs(entry.begin, runs, array.reshape(-1).view(np.uint8).data, name)
        return array

    def read_pieces(self, name: str, axis: int, ranges: Ranges, place: Array) -> None:
        """Of a tensor, neighbouring ranges along an axis: all of one behind all of the other, in ``place``, of its dtype.

        They are read together, which takes one call of the system for a row of all. Raises as :meth:`read`.
        """
        spec = self.spec(name)
        file, entry = self._find(name)
        rows, line = prod(spec.shape[:axis]), prod(spec.shape[axis + 1 :]) * spec.dtype.itemsize
        memory, pieces, done = place.reshape(-1).view(np.uint8).data, list[tuple[memoryview, int]](), 0
        for begin, end in ranges:
            count = (end - begin) * line
            pieces.append((memory[done : done + rows * count], count))
            done += rows * count
        file.read_rows(entry.begin + ranges[0][0] * line, spec.shape[axis] * line, pieces, name)

    def bytes_reader(self, name: str) -> Callable[[int, memoryview], None]:
        """What fills memory with a tensor's bytes from one of them on; raises RelaxError when these cannot be read."""
        file, entry = self._find(name)
        return lambda begin, memory: file.read(entry.begin + begin, memory, name)

    def prefetch(self, name: str) -> None:
        """Starts reading a tensor into the page cache; takes no memory of the process."""
        file, entry = self._find(name)
        file.advise(mmap.MADV_WILLNEED, entry.begin // mmap.PAGESIZE * mmap.PAGESIZE, entry.end)

    def release(self, name: str) -> None:
        """Gives a tensor's whole pages back to the system; views of it stay valid and read them again."""
        file, entry = self._find(name)
        file.advise(mmap.MADV_DONTNEED, -(-entry.begin // mmap.PAGESIZE) * mmap.PAGESIZE, entry.end)

    def checksums(self) -> dict[str, Checksum] | None:
        """Those of all tensors; None where a file has none. Raises RelaxError when a file has another number of them."""
        found: dict[str, Checksum] = {}
        for file in self._files:
            text = file.header.metadata.get(CHECKSUMS)
            if text is None:
                return None
            found |= separated(text, file.header.tensors, f"'{file.path}'")
        return found

    def damaged(self, checksums: Mapping[str, Checksum], whole: bool) -> list[str]:
        """The tensors among these whose bytes do not have their checksum: by their ends, or by everything."""
        if not whole:
            for name in checksums:
                self._prefetch_ends(name)
        return [name for name, checksum in checksums.items() if not self._agrees(name, checksum, whole)]

    def _agrees(self, name: str, checksum: Checksum, whole: bool) -> bool:
        spec = self.spec(name)
        file, entry = self._find(name)

        def read(begin: int, memory: memoryview) -> None:
            file.read(entry.begin + begin, memory, name)

        if whole:
            return Checksum.read(name, spec, read) == checksum
        return read_sample(name, spec, read) == checksum.sample

    def _prefetch_ends(self, name: str) -> None:
        file, entry = self._find(name)
        for at in {entry.begin, max(entry.begin, entry.end - PAGE)}:
            file.read_ahead(at, min(at + PAGE, entry.end))

    def _find(self, name: str) -> tuple[_File, TensorEntry]:
        if not isinstance(name, str) or name not in self._names:
            raise RelaxError(f"'{self.path}': expected a tensor of this checkpoint, got {name!r}{self._hint(name)}")
        file = self._files[0] if self._where is None else self._where[name]
        return file, file.header.tensors[name]

    def _hint(self, name: object) -> str:
        near = difflib.get_close_matches(name, self._names, 1) if isinstance(name, str) else []
        return f", did you mean {near[0]!r}" if near else ""

    def _places(self) -> tuple[str | None, list[str]]:
        """The index to follow, or the files to open."""
        path = self.path
        if not os.path.isdir(path):
            index = self._index_of_file()
            return index, [path] if index is None else []
        found = files_of_folder(path, (".safetensors",))
        if found.index is None:
            return None, [inside(path, name, f"'{path}'") for name in found.files]
        return os.path.join(path, found.index), []

    def _index_of_file(self) -> str | None:
        """The index that a name stands for, which may be that of the file that it is the index of."""
        is_index, index = self.path.endswith(".json"), index_path(self.path)
        if os.path.lexists(self.path):
            return self.path if is_index else None
        if os.path.lexists(index):
            return index
        missing = missing_shards(self.path)
        if missing is not None:
            numbers, count = missing
            got = f"files without number {', '.join(map(str, numbers))}" if numbers else "the files without it"
            raise RelaxError(f"'{index}': expected {count} files and their index, got {got}: prepare again what is missing")
        return self.path if is_index else None


def _open_shards(index: str) -> dict[str, _File]:
    """The file of each tensor."""
    folder = os.path.dirname(index)
    weight_map = read_index(index)
    files = {name: _open_shard(index, folder, name) for name in dict.fromkeys(weight_map.values())}
    check_index(index, weight_map, {name: file.header.tensors for name, file in files.items()})
    return {tensor: files[shard] for tensor, shard in weight_map.items()}


def _joined(files: Iterable[_File], path: str) -> dict[str, _File]:
    """The file of each tensor of several that no index joins."""
    found: dict[str, _File] = {}
    for file in files:
        for tensor in file.header.tensors:
            other = found.setdefault(tensor, file)
            if other is not file:
                raise RelaxError(
                    f"'{path}': tensor {tensor!r}: expected it in one file, got it in '{other.path}' and '{file.path}'"
                )
    return found


def common_metadata(tables: list[dict[str, str]]) -> dict[str, str]:
    """The entries on which the metadata of all files agree."""
    first = tables[0] if tables else {}
    return {key: value for key, value in first.items() if all(t.get(key) == value for t in tables)}


def _open_shard(index: str, folder: str, name: str) -> _File:
    path = inside(folder or ".", name, f"'{index}'")
    if not os.path.exists(path):
        raise RelaxError(f"'{index}': expected the shard '{name}' beside it, got no such file")
    return _File(path)


@dataclass(frozen=True)
class LazyTensor:
    """A tensor that is made when it is written.

    Attributes:
        spec: its dtype and shape.
        produce: makes it; its memory is free again before the next one is made.
    """

    spec: ArraySpec
    produce: Callable[[], object]

    def __post_init__(self) -> None:
        expect(self.spec, ArraySpec, "a spec of what is produced")
        if not callable(self.produce):
            raise RelaxError(f"expected a function that produces a tensor, got {type(self.produce).__name__}")


def write_safetensors(
    path: str | os.PathLike[str], tensors: Mapping[str, object], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes tensors to one file, which appears under its name when it is complete.

    Args:
        path: the file; replaced when it exists.
        tensors: by name: NumPy, torch or DLPack tensors, or :class:`LazyTensor`, made one at a time.
        metadata: strings for the header.

    Raises:
        RelaxError: a tensor's dtype has no name in the format, a produced tensor is not as announced, the disk is full.
    """
    expect(tensors, Mapping, "tensors as a mapping from names to arrays")
    specs = {name: v.spec if isinstance(v, LazyTensor) else ArraySpec.of(_array(name, v)) for name, v in tensors.items()}
    with StreamWriter(path, specs, metadata) as writer:
        for name, value in tensors.items():
            writer.put(name, _array(name, value.produce() if isinstance(value, LazyTensor) else value))


def _array(name: str, value: object) -> Array:
    return to_numpy(value, f"tensor {name!r}")
