"""Prepared weights on disk, found by the executable and the raw weights that they were made of; see ``load_weights``.

A file is ``<cache>/weights/<executable>-<where the raw weights are>-<what they are>.safetensors``, three digests. When the raw
weights have changed, the new file takes the place of the old one; nothing else is deleted. What several processes want at once,
one of them prepares, and the others wait.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Generator
from pathlib import Path

from ..dialect.errors import RelaxError
from ..trust import untrusted_folder
from ..weights.files import open_own, os_errors
from .environment import cache_directory

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
        RelaxError: the folder cannot be written to.
    """
    stem = f"{fingerprint[:_DIGITS]}-{_digest(place)}"
    path = folder / f"{stem}-{_digest(identity)}.safetensors"
    with os_errors("write", str(folder)):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    reason = untrusted_folder(str(folder), _OWN_FOLDERS)
    if reason is not None:
        raise RelaxError(f"cannot keep weights in '{folder}': expected a folder that only this user can write to, got {reason}")
    lock = open_own(str(folder / f"{stem}.lock"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path
        for old in folder.glob(f"{stem}-*"):
            if not old.name.startswith(path.name):
                with contextlib.suppress(OSError):
                    old.unlink()
    finally:
        os.close(lock)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
