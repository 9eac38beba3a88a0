"""File helpers of weight IO: operating system errors as ours, paths that stay inside their folder, durable renames."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator

from ..dialect.errors import RelaxError

__all__ = ["inside", "os_errors", "sync_folder"]


@contextlib.contextmanager
def os_errors(doing: str, path: str) -> Generator[None]:
    """Turns an error of the system inside the block into a RelaxError that says what was done to which file."""
    try:
        yield
    except OSError as error:
        raise RelaxError(f"cannot {doing} '{path}': {error.strerror or error}") from None
    except ValueError as error:  # a null byte in the path
        raise RelaxError(f"cannot {doing} {path!r}: {error}") from None


def inside(folder: str, name: str, source: str) -> str:
    """The path of a file that a folder's own files name.

    A name inside a model is a stranger's input: it must be relative, without ``..``, and no symbolic link may lead out of
    the folder. One layout is known and allowed: in a Hugging Face cache, ``snapshots/<revision>/f`` links to ``blobs/<hash>``
    of the same repository.

    Args:
        folder: where the model lies.
        name: a file name, with ``/`` as separator.
        source: what names it, for the message.

    Raises:
        RelaxError: the name leads outside.
    """
    parts = name.replace("\\", "/").split("/")
    if not name or name.startswith(("/", "\\")) or ".." in parts or "\0" in name or ":" in parts[0]:
        raise RelaxError(f"{source}: expected the name of a file inside '{folder}', got '{name}'")
    path = os.path.join(folder, name)
    root = _containment_root(os.path.realpath(folder))
    target = os.path.realpath(path)
    if os.path.commonpath([root, target]) != root:
        raise RelaxError(f"{source}: expected a file inside '{folder}', got '{name}', which leads to '{target}'")
    return path


def _containment_root(folder: str) -> str:
    parent = os.path.dirname(folder)
    repository = os.path.dirname(parent)
    is_cache = os.path.basename(parent) == "snapshots" and os.path.isdir(os.path.join(repository, "blobs"))
    return repository if is_cache else folder


def sync_folder(path: str) -> None:
    """Makes a rename inside the folder durable."""
    descriptor = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
