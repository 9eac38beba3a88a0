"""Writes a safetensors file as a stream: all specs first, then tensors in any order from any thread; survives a kill.

The file grows as ``<path>.partial`` with its journal ``<path>.journal`` (a key, then the tensors that are durably written with
their checksums, one JSON list a line) and is renamed when complete. Opened again with the same specs, metadata and resume key,
it continues with what is still as it was written.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import cast

import numpy as np

from ..dialect.checks import expect, expect_count, expect_flag, expect_text
from ..dialect.errors import ContentError, RelaxError
from .arrays import Array, ArraySpec
from .checksums import CHECKSUMS, Checksum, combined, placeholder
from .direct_file import DirectFile
from .files import open_own, os_errors, path_text, sync_folder, written_path
from .header import Layout, plan_layout
from .mapped_file import read_exactly
from .tensor_writer import TensorPlace, TensorWriter

__all__ = ["StreamWriter", "working_files"]

# Bytes between two fdatasync calls: what a crash can cost, and the bound of dirty pages. With this value 1.2 GB/s
# are written, as fast as they are read.
_FLUSH_BYTES = 256 << 20

# File systems without preallocation say one of these; then the size is set and space is taken page by page.
_NO_FALLOCATE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


class StreamWriter:
    """A safetensors file under construction. Use as a context manager, or call :meth:`close`, :meth:`suspend` or :meth:`abort`.

    Leaving the ``with`` block by an exception suspends when there is a resume key, else aborts, as by a ContentError: what is
    written from the same fails again.

    Attributes:
        done: names of the tensors that an earlier run already wrote durably; skip them.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        specs: Mapping[str, ArraySpec],
        metadata: Mapping[str, str] | None = None,
        *,
        resume_key: str | None = None,
        checksums: bool = False,
        flush_bytes: int = _FLUSH_BYTES,
        layout: Layout | None = None,
    ):
        """Lays the file out and takes its space on disk, or continues an interrupted one.

        Args:
            path: the final file.
            specs: every tensor it will hold.
            metadata: strings for the header; checksums in it, of a file that it was copied from, are computed anew.
            resume_key: says what the tensors are made from; a partial file of the same specs, metadata and key is continued.
                None always starts afresh and leaves nothing behind when it fails.
            checksums: whether the metadata gets those of all tensors (:mod:`.checksums`).
            flush_bytes: how much may be lost and written again after a crash.
            layout: where everything goes in a file of another format, without metadata and checksums then.

        Raises:
            RelaxError: a dtype or name that the format lacks, no space, no such folder, or another writer is at work.
        """
        self.path = path_text(path, "write")
        self._target = written_path(self.path)
        self.done: set[str] = set()
        self._partial, self._journal = working_files(self._target)
        _check_arguments(specs, metadata, resume_key, checksums, flush_bytes)
        self._specs = dict(specs)
        self._metadata = dict(metadata or {})
        checksums = checksums or CHECKSUMS in self._metadata  # those of another file are not this one's
        if checksums:
            self._metadata[CHECKSUMS] = placeholder(len(self._specs))
        if layout is not None and self._metadata:
            raise RelaxError(f"'{self.path}': expected metadata or checksums, or a layout that has its own, got both")
        self._layout = plan_layout(self._specs, self._metadata, self.path) if layout is None else layout
        self._resumable = resume_key is not None
        self._key = hashlib.sha256(self._layout.prefix + (resume_key or "").encode()).hexdigest()
        self._checksums: dict[str, str] | None = {} if checksums or self._resumable else None
        self._flush_bytes = flush_bytes
        self._lock = threading.Lock()
        self._written: set[str] = set()
        self._pending: list[str] = []
        self._pending_bytes = 0
        self._journal_bytes = 0
        self._closed = False
        with os_errors("write", self._partial):
            self._file = self._open_locked()
        self._direct = DirectFile(self._file)
        try:
            self._journal_file = self._start()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> StreamWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        elif self._resumable and not isinstance(error, ContentError):
            self.suspend()
        else:
            self.abort()

    def put(self, name: str, array: Array) -> None:
        """Writes one tensor; thread-safe. A non-contiguous array is copied first.

        Raises:
            RelaxError: the file has no such tensor, it was already written, its dtype or shape differs, or writing fails.
        """
        spec = self._specs.get(name)
        if spec is not None and (array.dtype != spec.dtype or array.shape != spec.shape):
            raise RelaxError(f"'{self.path}': tensor {name!r}: expected {spec}, got {ArraySpec.of(array)}")
        self.begin(name).put(array)

    def begin(self, name: str, then: Callable[[], None] | None = None) -> TensorWriter:
        """What takes a tensor's bytes in order, piece by piece; ``then`` is called when it has all of them.

        Raises:
            RelaxError: the file has no such tensor, or it was already written.
        """
        spec = self._specs.get(name)
        if spec is None:
            raise RelaxError(f"'{self.path}': expected a tensor of its layout, got {name!r}")
        with self._lock:
            if name in self._written or name in self.done:
                raise RelaxError(f"'{self.path}': tensor {name!r}: expected it once, got it twice")
            self._written.add(name)

        def finish(checksum: Checksum | None) -> None:
            self._finish(name, spec, checksum)
            if then is not None:
                then()

        place = TensorPlace(name, spec, self._layout.offsets[name], self._checksums is not None)
        return TensorWriter(place, self._direct, self._partial, finish)

    def _finish(self, name: str, spec: ArraySpec, checksum: Checksum | None) -> None:
        """Enters a tensor that is written."""
        with self._lock:
            if self._checksums is not None:
                self._checksums[name] = str(checksum)
            self._pending.append(name)
            self._pending_bytes += spec.nbytes
            if self._pending_bytes >= self._flush_bytes:
                self._flush()

    def close(self) -> None:
        """Makes everything durable and gives the file its name. Raises RelaxError when tensors are missing."""
        missing = [n for n in self._specs if n not in self.done and n not in self._written]
        if missing:
            self.suspend() if self._resumable else self.abort()
            raise RelaxError(
                f"'{self.path}': expected {len(self._specs)} tensors, got none for {len(missing)}, e.g. {missing[0]!r}"
            )
        try:
            with self._lock:
                self._flush()
            if CHECKSUMS in self._metadata:
                self._write_checksums()
            with os_errors("write", self.path):
                os.fsync(self._file)
                os.replace(self._partial, self._target)
                sync_folder(os.path.dirname(self._target))
                os.unlink(self._journal)
        except RelaxError:
            if not self._resumable:
                self.abort()
            raise
        finally:
            self._close_files()

    def suspend(self) -> None:
        """Stops here; what was put stays on disk for the next writer with the same key."""
        try:
            with self._lock:
                self._flush()
        finally:
            self._close_files()

    def abort(self) -> None:
        """Stops and removes what was written."""
        try:
            for path in (self._journal, self._partial):
                with os_errors("remove", path), contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        finally:
            self._close_files()

    def _open_locked(self) -> int:
        """The partial file, ours alone: two writers of one path would mix their tensors."""
        descriptor = open_own(self._partial)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            renamed = os.fstat(descriptor).st_ino != os.stat(self._partial).st_ino
        except (BlockingIOError, FileNotFoundError):
            renamed = True
        if renamed:
            os.close(descriptor)
            raise RelaxError(f"cannot write '{self.path}': expected no other writer, got one at work on '{self._partial}'")
        return descriptor

    def _start(self) -> int:
        """Continues when the journal is of the same key; else takes the space and writes the header and a new journal."""
        self.done = self._unharmed(self._journaled()) if self._resumable else set()
        if not self.done:
            self._begin()
        journal = open_own(self._journal)
        with os_errors("write", self._journal):
            if self.done:
                os.ftruncate(journal, self._journal_bytes)
            os.lseek(journal, 0, os.SEEK_END)
        return journal

    def _begin(self) -> None:
        with os_errors("write", self._journal), contextlib.suppress(FileNotFoundError):
            os.unlink(self._journal)
        try:
            self._reserve()
            self._write(memoryview(self._layout.prefix), 0)
            with os_errors("write", self._journal), os.fdopen(open_own(self._journal), "wb") as journal:
                os.fsync(self._file)
                journal.write(self._key.encode() + b"\n")
                journal.flush()
                os.fsync(journal.fileno())
        except RelaxError:
            os.unlink(self._partial)
            raise

    def _reserve(self) -> None:
        """Takes the space now: a full disk is known at once and not after an hour."""
        size = self._layout.size
        with os_errors(f"reserve {size} bytes for", self.path):
            os.ftruncate(self._file, 0)
            if hasattr(os, "posix_fallocate"):
                _preallocate(self._file, size)
            os.ftruncate(self._file, size)

    def _journaled(self) -> dict[str, Checksum]:
        """The tensors that a previous run wrote, when its key and its file match ours. A torn last line is dropped."""
        try:
            if not os.path.lexists(self._journal):
                return {}
            with os.fdopen(open_own(self._journal), "rb") as file:
                text = file.read()
        except OSError:
            return {}
        self._journal_bytes = text.rfind(b"\n") + 1
        key, *lines = text[: self._journal_bytes].split(b"\n")[:-1] or [b""]
        if key.decode(errors="replace") != self._key or os.fstat(self._file).st_size != self._layout.size:
            return {}
        if not self._has_our_prefix():
            return {}
        try:
            found = dict(json.loads(line) for line in lines)
            return {name: Checksum.parse(text) for name, text in found.items() if name in self._specs}
        except (ValueError, TypeError, AttributeError):
            return {}

    def _has_our_prefix(self) -> bool:
        """Whether the file begins as ours will; one that was killed at its end has its checksums already."""
        prefix, found = self._layout.prefix, os.pread(self._file, len(self._layout.prefix), 0)
        begin, end = self._checksums_place()
        return found[:begin] == prefix[:begin] and found[end:] == prefix[end:]

    def _checksums_place(self) -> tuple[int, int]:
        """Where in the file they are."""
        text = json.dumps(self._metadata.get(CHECKSUMS, "")).encode()
        key = json.dumps(CHECKSUMS).encode() + b":"
        begin = self._layout.prefix.find(key + text) + len(key) + 1 if CHECKSUMS in self._metadata else 0
        return begin, begin + len(text) - 2

    def _write_checksums(self) -> None:
        begin, _ = self._checksums_place()
        self._write(memoryview(combined(cast("dict[str, str]", self._checksums)).encode()), begin)

    def _unharmed(self, journaled: Mapping[str, Checksum]) -> set[str]:
        """Those that are still what was written; a disk may have lost, or somebody changed, what the journal says is there."""
        kept = {name: str(c) for name, c in journaled.items() if self._checksum_in_file(name) == c}
        self._checksums = kept
        return set(kept)

    def _checksum_in_file(self, name: str) -> Checksum:
        spec, offset = self._specs[name], self._layout.offsets[name]

        def read(begin: int, memory: memoryview) -> None:
            read_exactly(self._file, offset + begin, memory, self._partial, name)

        found = Checksum.read(name, spec, read)
        self._drop_cache(offset, spec.nbytes)
        return found

    def _write(self, view: memoryview, offset: int) -> None:
        with os_errors("write", self._partial):
            while len(view):
                count = os.pwrite(self._file, view, offset)
                view, offset = view[count:], offset + count

    def _flush(self) -> None:
        """Data first, then the journal that says so; then the written pages leave the page cache. Needs the lock."""
        if not self._pending:
            return
        with os_errors("write", self._partial):
            _sync_data(self._file)
            known = self._checksums or {}
            _write_all(self._journal_file, "".join(json.dumps([n, known.get(n)]) + "\n" for n in self._pending).encode())
            _sync_data(self._journal_file)
            for name in self._pending:
                self._drop_cache(self._layout.offsets[name], self._specs[name].nbytes)
        self.done.update(self._pending)
        self._pending, self._pending_bytes = [], 0

    def _drop_cache(self, offset: int, size: int) -> None:
        if size and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file, offset, size, os.POSIX_FADV_DONTNEED)

    def _close_files(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._direct.close()
        os.close(self._file)
        os.close(self._journal_file)


def _check_arguments(specs: object, metadata: object, resume_key: object, checksums: object, flush_bytes: object) -> None:
    expect(specs, Mapping, "specs as a mapping from names to specs")
    for name, spec in cast("Mapping[object, object]", specs).items():
        expect(spec, ArraySpec, f"a spec of tensor {name!r}")
        _check_spec(name, cast("ArraySpec", spec))
    if metadata is not None:
        expect(metadata, Mapping, "metadata as a mapping from names to texts")
        for item in cast("Mapping[object, object]", metadata).items():
            expect_text(item[0], "names of metadata as text")
            expect_text(item[1], "metadata as text")
    expect_text(resume_key, "a resume key as text", optional=True)
    expect_flag(checksums, "checksums")
    expect_count(flush_bytes, "a number of bytes from 1 on")


def _check_spec(name: object, spec: ArraySpec) -> None:
    expect(spec.dtype, np.dtype, f"the dtype of tensor {name!r}")
    expect(spec.shape, tuple, f"the shape of tensor {name!r} as a tuple")
    if not all(type(d) is int and d >= 0 for d in spec.shape):
        raise RelaxError(f"expected sizes as the shape of tensor {name!r}, got {list(spec.shape)}")


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def working_files(path: str) -> tuple[str, str]:
    """What is beside a file while it is written: its data so far, and its journal."""
    return path + ".partial", path + ".journal"


def _preallocate(descriptor: int, size: int) -> None:
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in _NO_FALLOCATE:
            raise


def _sync_data(descriptor: int) -> None:
    getattr(os, "fdatasync", os.fsync)(descriptor)
