"""Prepared weights on disk, found by the executable and the raw weights that they were made of; see ``load_weights``.

A file is ``<cache>/weights/<executable>-<where the raw weights are>-<what they are>.safetensors``, three digests. When the raw
weights have changed, the new file takes the place of the old one. What several processes want at once, one of them prepares,
and the others wait: of each pair of the first two digests there is a lock. When the files exceed the limit, those go first that
were not used for longest, but none that is being prepared or bound; who has one mapped keeps it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path

from ..dialect.errors import RelaxError
from ..trust import untrusted_folder
from ..weights.files import open_own, os_errors
from .environment import cache_directory, weights_bytes

__all__ = ["cached_weights", "weights_folder"]

_DIGITS = 24
_OWN_FOLDERS = 2


def weights_folder() -> Path | None:
    """Where prepared weights are kept; None where nothing is, or where others could put weights of theirs."""
    cache = cache_directory()
    folder = None if cache is None else cache / "weights"
    return None if folder is None or untrusted_folder(str(folder), _OWN_FOLDERS) is not None else folder


@contextlib.contextmanager
def cached_weights(folder: Path, fingerprint: str, place: str, identity: str) -> Generator[Path]:
    """The path of a file of prepared weights, which is there or is to be made; nobody else makes it meanwhile.

    Args:
        folder: from :func:`weights_folder`.
        fingerprint: of the executable.
        place: where the raw weights are.
        identity: what they are, and how they are read.

    Raises:
        RelaxError: the folder cannot be written to, or the limit is no number.
    """
    limit = weights_bytes()
    stem = f"{fingerprint[:_DIGITS]}-{_digest(place)}"
    path = folder / f"{stem}-{_digest(identity)}.safetensors"
    with os_errors("write", str(folder)):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    reason = untrusted_folder(str(folder), _OWN_FOLDERS)
    if reason is not None:
        raise RelaxError(f"cannot keep weights in '{folder}': expected a folder that only this user can write to, got {reason}")
    lock = _locked(folder, stem, wait=True)
    assert lock is not None
    try:
        yield path
        for old in folder.glob(f"{stem}-*"):
            if not old.name.startswith(path.name):
                _remove(old)
        _make_room(folder, path, limit)
    finally:
        os.close(lock)


def _locked(folder: Path, stem: str, wait: bool) -> int | None:
    """A descriptor that holds the lock of these files until it is closed; None where it is taken and nobody waits."""
    lock = open_own(str(folder / f"{stem}.lock"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except BaseException:
        os.close(lock)
        raise
    return lock


def _make_room(folder: Path, newest: Path, limit: int) -> None:
    """Deletes files until the others are within the limit, but not the newest, whose time is now."""
    with contextlib.suppress(OSError):
        os.utime(newest, ns=(time.time_ns(), newest.stat().st_mtime_ns))  # a file's own time tells who maps it of changes
    files = sorted(_files(folder))
    total = sum(size for _, size, _ in files)
    for _, size, path in files:
        if total > limit and path != newest and _removed(folder, path):
            total -= size


def _files(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """Time of last use, size and path of each, and of what preparations that ended early left behind."""
    for path in folder.iterdir():
        if path.suffix != ".lock":
            with contextlib.suppress(OSError):
                status = path.stat()
                yield status.st_atime_ns, status.st_size, path


def _removed(folder: Path, path: Path) -> bool:
    """Deletes a file unless it is in use; whether that was done."""
    lock = _locked(folder, path.name.rpartition("-")[0], wait=False)
    if lock is None:
        return False
    try:
        return _remove(path)
    finally:
        os.close(lock)


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
