"""Compiled code on disk, found by what it was compiled from: a key and an entry in, the entry out, in this process or another.

A cache is a directory; each entry is a file named by its key, ``objects/<2 digits>/<key>``::

    sha256 of the rest | length of the JSON, 8 bytes | JSON: manifest and module text | object code

and each kernel, of which other modules may have the same, one in ``kernels/<2 digits>/<key>``: sha256 of the rest, object code.

Writers write a file beside it and rename that, so a reader sees all of an entry or none, and what several write at once is the
same. An entry whose digest is wrong counts as missing, and is replaced. When the files exceed the limit, those go first that
were not used for longest; the length of a file, ``used``, tells how much they take (:class:`_UsedSpace`). The digest finds
damage, not malice: what is in the directory is executed, so one where others can put files is not used, and compilation goes on
without (:mod:`.trust`).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .dialect.errors import RelaxError
from .trust import untrusted_file, untrusted_folder
from .weights.files import open_regular

__all__ = ["EXPECTED", "CompiledModule", "KernelCache", "ObjectCache", "key_of"]

_DIGEST = hashlib.sha256().digest_size
_LENGTH = 8

# Making room goes on to this share of the limit, so that not every store has to delete.
_KEPT = 0.9

# What files take together is counted in these units, each rounded up.
_UNIT = 1024

_OBJECTS, _KERNELS, _USED = "objects", "kernels", "used"

# The directory, the folder of all entries, and that of an entry.
_OWN_FOLDERS = 3

#: What a folder to execute code from is.
EXPECTED = "expected a folder that only this user can write to"

# Seconds after which a file beside an entry is no longer being written.
_WRITING = 3600


@dataclass(frozen=True)
class CompiledModule:
    """What compilation gives.

    Attributes:
        manifest: JSON object.
        module_text: MLIR text after the relax passes.
        object_code: the object file.
    """

    manifest: dict[str, Any]
    module_text: str
    object_code: bytes


def key_of(*parts: str) -> str:
    """The key of what these texts determine."""
    digest = hashlib.sha256()
    for part in parts:
        text = part.encode("utf-8", "surrogatepass")
        digest.update(len(text).to_bytes(_LENGTH, "little"))
        digest.update(text)
    return digest.hexdigest()


class ObjectCache:
    """Entries in a directory, safe under readers and writers in any number of threads and processes."""

    def __init__(self, directory: Path, limit: int):
        """Args: directory: made when the first entry is stored; limit: bytes that its files may have together."""
        self.directory = directory
        self._limit = limit
        self._used = _UsedSpace(directory / _USED)

    def untrusted(self) -> str | None:
        """Which folder makes it unsafe to use this cache, and why; None when it is safe."""
        return untrusted_folder(str(self.directory))

    def get(self, key: str) -> CompiledModule | None:
        """The entry; None when there is none that can be read, it is damaged, or others may have put it there."""
        body = _read(self._path(_OBJECTS, key))
        try:
            return None if body is None else _unpacked(body)
        except (ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, entry: CompiledModule) -> None:
        """Stores an entry that is not beyond the limit, and makes room.

        Raises:
            OSError: it cannot be written, or others may write there, too.
        """
        body, path = _packed(entry), self._path(_OBJECTS, key)
        if _DIGEST + len(body) <= self._limit:
            self._write(path, body)
        self._make_room(path)

    def kernels(self, compiler: str) -> KernelCache:
        """The kernels that are kept beside the entries; ``compiler`` says what compiles them."""
        return KernelCache(lambda text: self._path(_KERNELS, key_of(compiler, text)), self._write)

    def _write(self, path: Path, body: bytes) -> None:
        _write(path, body)
        self._used.add(_DIGEST + len(body))

    def _path(self, kind: str, key: str) -> Path:
        return self.directory / kind / key[:2] / key

    def _make_room(self, newest: Path) -> None:
        """Deletes files, the one unused for longest first; what another process deletes meanwhile is gone as well."""
        used = self._used.bytes()
        if used is not None and used <= self._limit:
            return
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        kept = total if total <= self._limit else self._limit * _KEPT
        for _, size, path in files:
            if total <= kept:
                break
            if path != newest:
                with contextlib.suppress(OSError):
                    path.unlink()
                total -= size
        self._used.set(total, used)

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """Time of last use, size and path of each entry, and of each file that a writer that died left behind."""
        now = time.time()
        for path in (p for kind in (_OBJECTS, _KERNELS) for p in (self.directory / kind).glob("*/*")):
            with contextlib.suppress(OSError):
                status = path.stat()
                if not path.suffix or now - status.st_mtime > _WRITING:
                    yield status.st_mtime, status.st_size, path


class _UsedSpace:
    """How much files take together, which the length of a file tells: as many bytes as they have units, rounded up.

    Who stores something makes the file longer, which several can do at once; who looked at all files gives it the right length.
    Looking at 5,000 files takes 85 ms (Zen 4), and each compilation stores something.
    """

    def __init__(self, path: Path):
        self._path = path

    def bytes(self) -> int | None:
        """At least what files take; None when nobody knows."""
        try:
            return self._path.stat().st_size * _UNIT
        except OSError:
            return None

    def add(self, size: int) -> None:
        """``size`` bytes more."""
        with contextlib.suppress(OSError):
            end = os.open(self._path, os.O_WRONLY | os.O_APPEND)  # where nobody has looked yet, there is no file
            try:
                os.write(end, bytes(_units(size)))
            finally:
                os.close(end)

    def set(self, total: int, counted: int | None) -> None:
        """Files take ``total`` bytes, which counted as ``counted`` before someone looked: others may have stored more since."""
        with contextlib.suppress(OSError):
            since = 0 if counted is None else max(0, (self.bytes() or 0) - counted) // _UNIT
            with open(self._path, "ab") as file:
                file.truncate(_units(total) + since)


def _units(size: int) -> int:
    return -(-size // _UNIT)


class KernelCache:
    """Compiled kernels by the text that they are compiled from. Room is made for them when the entry of their module is put."""

    def __init__(self, path_of: Callable[[str], Path], write: Callable[[Path, bytes], None]):
        self._path_of, self._write = path_of, write

    def get(self, text: str) -> bytes | None:
        """The code; None when there is none that can be read, it is damaged, or others may have put it there."""
        body = _read(self._path_of(text))
        return None if body is None else bytes(body)

    def put(self, text: str, code: bytes) -> None:
        """Keeps code, where that can be written: what stands in the way is said of the entry of its module."""
        with contextlib.suppress(OSError):
            self._write(self._path_of(text), code)


def _read(path: Path) -> memoryview | None:
    """What was written; None when it is not there, is damaged, or others may have put it there."""
    if untrusted_folder(str(path.parent), _OWN_FOLDERS) is not None:
        return None
    try:
        with open_regular(str(path)) as file:
            if untrusted_file(os.fstat(file.fileno()), str(path)) is not None:
                return None
            content = file.read()
    except (RelaxError, OSError):
        return None
    body = memoryview(content)[_DIGEST:]
    if hashlib.sha256(body).digest() != content[:_DIGEST]:
        return None
    with contextlib.suppress(OSError):  # its time is that of its last use; a directory that cannot be written has none
        os.utime(path)
    return body


def _write(path: Path, body: bytes) -> None:
    """Raises OSError when it cannot be written, or others may write there, too."""
    for folder in reversed((path.parent, *path.parent.parents)):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    reason = untrusted_folder(str(path.parent), _OWN_FOLDERS)
    if reason is not None:
        raise PermissionError(errno.EPERM, f"{EXPECTED}, got {reason}")
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(body).digest())
            file.write(body)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _packed(entry: CompiledModule) -> bytes:
    head = json.dumps({"manifest": entry.manifest, "module_text": entry.module_text}).encode()
    return b"".join((len(head).to_bytes(_LENGTH, "little"), head, entry.object_code))


def _unpacked(body: memoryview) -> CompiledModule:
    """Raises ValueError, KeyError or TypeError when it is no entry."""
    end = _LENGTH + int.from_bytes(body[:_LENGTH], "little")
    head = json.loads(bytes(body[_LENGTH:end]))
    return CompiledModule(head["manifest"], head["module_text"], bytes(body[end:]))
