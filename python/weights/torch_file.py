"""PyTorch checkpoints (``.bin``, ``.pt``, ``.pth``): a path in, the tensors of a state dict by name out.

They are pickles, and those run code. So ``torch.load`` reads them with ``weights_only=True``, which takes tensors and plain
containers alone, and maps the file: tensors are read when they are used. Files of PyTorch before 1.6, of which many are still
around, cannot be mapped: they are read into memory whole, which the predicted peak has.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import warnings
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np

from ..dialect.errors import RelaxError
from .arrays import Array, ArraySpec, address, aligned_empty, is_torch, to_numpy
from .files import KIND_BYTES, inside, name_on_disk, open_regular, other_kind
from .mapped_file import read_exactly
from .model_folder import check_index, read_config, read_index

__all__ = ["TorchCheckpoint"]

_CONTAINERS = ("state_dict", "model_state_dict", "model")


#: What does where tensors are of classes of their own.
_SAFE = "save the model as safetensors, or export it by torch.export and import the program"

_SINGLE = "pytorch_model.bin"
_INDEX = "pytorch_model.bin.index.json"


class TorchCheckpoint:
    """The tensors of a file, of a Hugging Face folder or of its index; see :class:`.source.TensorSource`.

    Attributes:
        ahead_bytes: memory of files that cannot be mapped.
    """

    metadata: Mapping[str, str] = MappingProxyType({})

    def __init__(self, path: str):
        """Reads all but the tensors' bytes.

        Raises:
            RelaxError: torch is not installed, a file cannot be read, or holds something else than named tensors.
        """
        self.path = path
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        has_single = os.path.isdir(path) and os.path.lexists(os.path.join(path, _SINGLE))
        is_sharded = path.endswith(".json") or (os.path.isdir(path) and not has_single)
        self._folder = folder if is_sharded or has_single else None
        index = os.path.join(folder, _INDEX) if os.path.isdir(path) else path
        shards = read_index(index) if is_sharded else {}
        self._indexes = [index] if is_sharded else []
        names = list(dict.fromkeys(shards.values())) if is_sharded else [_SINGLE if has_single else os.path.basename(path)]
        is_own = is_sharded or has_single  # else the user named the file itself
        self._where = {name: inside(folder or ".", name, f"'{path}'") if is_own else path for name in names}
        self._opened = {p: open_regular(p) for p in self._where.values()}
        self._status = {p: os.fstat(file.fileno()) for p, file in self._opened.items()}
        tables = {name: _named_tensors(_loaded(p), p) for name, p in self._where.items()}
        check_index(index, shards, tables)
        self.ahead_bytes = sum(s.st_size for p, s in self._status.items() if not zipfile.is_zipfile(p))
        self._mapped = {p: _mappings(status.st_ino) for p, status in self._status.items()}
        self._paths = {t: self._where[shard] for t, shard in shards.items()} if is_sharded else {}
        self._tensors = {t: tables[shard][t] for t, shard in shards.items()} if is_sharded else tables[names[0]]

    @property
    def config(self) -> Mapping[str, Any]:
        """The folder's ``config.json``; empty where there is none. Raises RelaxError when it is no JSON object."""
        has_one = self._folder is not None and os.path.lexists(os.path.join(self._folder, "config.json"))
        return read_config(self._folder or ".") if has_one else {}

    @property
    def files(self) -> list[str]:
        """All that are read."""
        return [*self._where.values(), *self._indexes]

    @property
    def identity(self) -> str:
        """Paths, inodes, sizes and times."""
        known = ((name_on_disk(p), s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for p, s in self._status.items())
        return "\n".join(" ".join(map(str, one)) for one in known)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __contains__(self, name: object, /) -> bool:
        return name in self._tensors

    def spec(self, name: str) -> ArraySpec:
        return ArraySpec.of(self.get(name))

    def get(self, name: str) -> Array:
        if name not in self._tensors:
            raise RelaxError(f"'{self.path}': expected a tensor of this checkpoint, got {name!r}")
        return to_numpy(self._tensors[name], f"'{self.path}': tensor {name!r}")

    def read_all(self, names: Collection[str]) -> dict[str, Array]:
        """In memory of their own, where torch's mapping tells where in the file they are."""
        return {name: self._read(name) for name in names}

    def _read(self, name: str) -> Array:
        array = self.get(name)
        path = self._paths.get(name) or next(iter(self._where.values()))
        where, end = address(array), address(array) + array.nbytes
        place = next((m for m in self._mapped[path] if m.begin <= where < end <= m.end), None)
        if place is None or not array.flags.c_contiguous:
            return array
        found = aligned_empty(array.dtype, array.shape)
        content = found.reshape(-1).view(np.uint8).data
        read_exactly(self._opened[path].fileno(), where - place.begin + place.offset, content, path, name)
        return found

    def prefetch(self, name: str) -> None:
        """Nothing: torch does not say where a tensor lies."""

    def release(self, name: str) -> None:
        """Nothing: mapped pages go when memory is short."""

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        """Raises RelaxError when a file was written to since it was opened; one that is gone is still mapped."""
        for path, was in self._status.items():
            with contextlib.suppress(OSError):
                now = os.stat(path)
                if now.st_ino == was.st_ino and (now.st_size, now.st_mtime_ns) != (was.st_size, was.st_mtime_ns):
                    text = "expected a file that stays as it is while it is read, got one that was written to"
                    raise RelaxError(f"'{path}': {text}")


class _Mapping(NamedTuple):
    """A part of a file in memory: addresses, and what of the file is at the first."""

    begin: int
    end: int
    offset: int


def _mappings(inode: int) -> list[_Mapping]:
    """Where a file is mapped, by the system's list; none where there is no such list."""
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
        fields = [line.split(maxsplit=5) for line in lines]
        places = [(*f[0].split("-"), f[2]) for f in fields if int(f[4]) == inode]
        return [_Mapping(*(int(number, 16) for number in place)) for place in places]
    return []


def _loaded(path: str) -> object:
    try:
        import torch
    except ImportError:
        raise RelaxError(f"'{path}': expected torch to be installed to read it; pip install relaxir[torch]") from None
    try:
        mapped = zipfile.is_zipfile(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch's own calls
            return cast("object", torch.load(path, map_location="cpu", weights_only=True, mmap=mapped))
    except Exception as error:  # torch's reader fails in as many ways as there are damaged files
        with open_regular(path) as file:
            begin = file.read(KIND_BYTES)
        is_pickle = zipfile.is_zipfile(path) or begin.startswith(b"\x80")
        reason = None if is_pickle else _other_content(begin, error)
        if reason is None and "torchao." in str(error):
            reason = f"tensors of torchao, which could run code: {_SAFE}"
        if reason is None and isinstance(error, pickle.UnpicklingError) and "nsupported" in str(error):
            reason = "more than these, which could run code: save the state_dict()"
        if reason is None:
            first = re.split(r"[.\n]", str(error), maxsplit=1)[0]  # advice on how to run the pickle follows
            reason = f"{type(error).__name__}: {first}"
        raise RelaxError(f"'{path}': expected tensors that torch.save wrote, got {reason}") from None


def _other_content(begin: bytes, error: Exception) -> str | None:
    """What a file is that torch does not read, by its first bytes; None where the error says it."""
    if begin.startswith(b"PK\x03\x04"):
        return "an archive that is cut off or damaged"
    return other_kind(begin) or ("content of another kind" if isinstance(error, pickle.UnpicklingError) else None)


def _named_tensors(loaded: object, path: str) -> dict[str, Any]:
    """The tensors of a state dict, which may be inside of what trainers write."""
    table = cast("Mapping[object, object]", loaded) if isinstance(loaded, Mapping) else {}
    inner = next((table[key] for key in _CONTAINERS if isinstance(table.get(key), Mapping)), None)
    table = cast("Mapping[object, object]", inner) if inner is not None else table
    found = {name: value for name, value in table.items() if isinstance(name, str) and is_torch(value)}
    own = next((name for name, value in found.items() if hasattr(value, "tensor_data_names")), None)
    if own is not None:  # of a package that was imported, whose classes torch.load then knows
        kind = type(found[own]).__name__
        raise RelaxError(f"'{path}': tensor {own!r}: expected a plain tensor, got one of class {kind}: {_SAFE}")
    if not found:
        raise RelaxError(f"'{path}': expected a state dict, got {type(loaded).__name__} without named tensors")
    return found
