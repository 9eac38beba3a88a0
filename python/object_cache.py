"""Compiled code on disk, found by what it was compiled from: a key and an entry in, the entry out, in this process or another.

A cache is a directory; each entry is a file named by its key, ``objects/<2 digits>/<key>``::

    sha256 of the rest | length of the JSON, 8 bytes | JSON: manifest and module text | object code

Writers write a file beside it and rename that, so a reader sees all of an entry or none, and what several write at once is the
same. An entry whose digest is wrong counts as missing, and is replaced. When the files exceed the limit, those go first that
were not used for longest. The digest finds damage, not malice: what is in the directory is executed, so one where others can
put files is not used, and compilation goes on without (:mod:`.trust`).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .dialect.errors import RelaxError
from .trust import untrusted_file, untrusted_folder
from .weights.files import open_regular

__all__ = ["EXPECTED", "CompiledModule", "ObjectCache", "key_of"]

_DIGEST = hashlib.sha256().digest_size
_LENGTH = 8

# Making room goes on to this share of the limit, so that not every store has to look through the directory and delete.
_KEPT = 0.9

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

    def untrusted(self) -> str | None:
        """Which folder makes it unsafe to use this cache, and why; None when it is safe."""
        return untrusted_folder(str(self.directory))

    def get(self, key: str) -> CompiledModule | None:
        """The entry; None when there is none that can be read, it is damaged, or others may have put it there."""
        path = self._path(key)
        if untrusted_folder(str(path.parent), _OWN_FOLDERS) is not None:
            return None
        try:
            with open_regular(str(path)) as file:
                if untrusted_file(os.fstat(file.fileno()), str(path)) is not None:
                    return None
                content = file.read()
            entry = _unpacked(content)
        except (RelaxError, OSError, ValueError, KeyError, TypeError):
            return None
        with contextlib.suppress(OSError):  # its time is that of its last use; a directory that cannot be written has none
            os.utime(path)
        return entry

    def put(self, key: str, entry: CompiledModule) -> None:
        """Stores an entry that is not beyond the limit, and makes room.

        Raises:
            OSError: it cannot be written, or others may write there, too.
        """
        content = _packed(entry)
        if len(content) > self._limit:
            return
        path = self._path(key)
        for folder in reversed((path.parent, *path.parent.parents)):
            if not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
        reason = untrusted_folder(str(path.parent), _OWN_FOLDERS)
        if reason is not None:
            raise PermissionError(errno.EPERM, f"{EXPECTED}, got {reason}")
        handle, name = tempfile.mkstemp(prefix=f"{key}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        self._make_room(path)

    def _path(self, key: str) -> Path:
        return self.directory / "objects" / key[:2] / key

    def _make_room(self, newest: Path) -> None:
        """Deletes files, the one unused for longest first; what another process deletes meanwhile is gone as well."""
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        if total <= self._limit:
            return
        for _, size, path in files:
            if total <= self._limit * _KEPT:
                return
            if path != newest:
                with contextlib.suppress(OSError):
                    path.unlink()
                total -= size

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """Time of last use, size and path of each entry, and of each file that a writer that died left behind."""
        now = time.time()
        for path in (self.directory / "objects").glob("*/*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                if not path.suffix or now - status.st_mtime > _WRITING:
                    yield status.st_mtime, status.st_size, path


def _packed(entry: CompiledModule) -> bytes:
    head = json.dumps({"manifest": entry.manifest, "module_text": entry.module_text}).encode()
    body = b"".join((len(head).to_bytes(_LENGTH, "little"), head, entry.object_code))
    return hashlib.sha256(body).digest() + body


def _unpacked(content: bytes) -> CompiledModule:
    """Raises ValueError, KeyError or TypeError when it is no entry."""
    body = memoryview(content)[_DIGEST:]
    if hashlib.sha256(body).digest() != content[:_DIGEST]:
        raise ValueError("damaged")
    end = _LENGTH + int.from_bytes(body[:_LENGTH], "little")
    head = json.loads(bytes(body[_LENGTH:end]))
    return CompiledModule(head["manifest"], head["module_text"], bytes(body[end:]))
