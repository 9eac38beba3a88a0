"""``.npz`` files: a path in, their arrays by name out, read when they are asked for; never unpickled."""

from __future__ import annotations

import contextlib
import os
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, BinaryIO, cast

import numpy as np

from ..dialect.errors import RelaxError
from .arrays import Array, ArraySpec
from .files import KIND_BYTES, name_on_disk, open_regular, other_kind

__all__ = ["NpzFile"]

_END = ".npy"

# What zipfile and NumPy raise for members that are damaged, encrypted, compressed in a way of their own, or no arrays.
_DAMAGED = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, SyntaxError, RuntimeError, NotImplementedError, MemoryError)


class NpzFile:
    """The arrays of one file; see :class:`.source.TensorSource`. zipfile compares each one with its CRC-32."""

    metadata: Mapping[str, str] = MappingProxyType({})
    config: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, path: str):
        """Reads the table of contents, and dtypes and shapes.

        Raises:
            RelaxError: it cannot be read, or holds something else than arrays. Those of Python objects are refused where one is
                asked for.
        """
        self.path = path
        self._file = open_regular(path)
        self._status = os.fstat(self._file.fileno())
        try:
            self._archive = zipfile.ZipFile(self._file)
        except _DAMAGED as error:
            kind = other_kind(os.pread(self._file.fileno(), KIND_BYTES, 0), is_archive=True)
            raise RelaxError(f"'{path}': expected an .npz file, got {kind or error}") from None
        members = [n for n in self._archive.namelist() if n.endswith(_END)]
        self._specs = {n.removesuffix(_END): self._spec_of(n) for n in members}
        if len(self._specs) < len(members):
            raise RelaxError(f"'{path}': expected names that differ, got one twice")

    @property
    def files(self) -> list[str]:
        """The file."""
        return [self.path]

    @property
    def identity(self) -> str:
        """Path, inode, size and times, and the checksums of all arrays."""
        s, sums = self._status, " ".join(f"{i.CRC:08x}" for i in self._archive.infolist())
        return f"{name_on_disk(self.path)} {s.st_ino} {s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {sums}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __contains__(self, name: object, /) -> bool:
        return name in self._specs

    def spec(self, name: str) -> ArraySpec:
        if name not in self._specs:
            raise RelaxError(f"'{self.path}': expected an array of this file, got {name!r}")
        found = self._specs[name]
        if found.dtype.hasobject:
            raise RelaxError(f"'{self.path}': array {name!r}: expected numbers in .npy form, got an array of Python objects")
        return found

    def get(self, name: str) -> Array:
        self.spec(name)
        with self._member(name + _END) as member:
            return np.lib.format.read_array(member, allow_pickle=False)

    def prefetch(self, name: str) -> None:
        """Nothing: arrays may be compressed, and are read as a whole."""

    def release(self, name: str) -> None:
        """Nothing is kept."""

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        """Raises RelaxError when the file was written to since it was opened."""
        now, was = os.fstat(self._file.fileno()), self._status
        if (now.st_size, now.st_mtime_ns) != (was.st_size, was.st_mtime_ns):
            text = "expected a file that stays as it is while it is read, got one that was written to"
            raise RelaxError(f"'{self.path}': {text}")

    def _spec_of(self, member: str) -> ArraySpec:
        with self._member(member) as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
            return ArraySpec(dtype, tuple(shape))

    @contextlib.contextmanager
    def _member(self, name: str) -> Generator[BinaryIO]:
        """One array's bytes; what goes wrong inside is an error that names file and array."""
        try:
            with self._archive.open(name) as member:
                yield cast("BinaryIO", member)
        except (*_DAMAGED, OSError) as error:
            what = f"'{self.path}': array {name.removesuffix(_END)!r}"
            raise RelaxError(f"{what}: expected numbers in .npy form, got {error}") from None
