"""Of an executable that several processes run together, what one of them prepares and binds: its rank, its files."""

from __future__ import annotations

import os
from typing import TypeVar, cast

from ..dialect.errors import RelaxError
from ..lowering.manifest import Manifest
from ..weights.files import path_text
from .library import Library

__all__ = ["own_manifest", "own_path"]

_T = TypeVar("_T")

_SUFFIX = ".safetensors"


def own_manifest(manifest: Manifest, library: Library, rank: int = 0, world: int = 1) -> Manifest:
    """The manifest of one rank: the one that is asked for, or of the rank that this process is.

    Args:
        manifest: the executable's.
        library: its code, which knows its connection with the other ranks.
        rank, world: which one; 0 of 1 for this process's own.

    Raises:
        RelaxError: ``world`` is not as many as there are, or nothing says which rank this process is.
    """
    if manifest.ranks == 1:
        return manifest
    if (rank, world) == (0, 1):
        rank, world = library.collectives.communicator.rank, manifest.ranks
    if world != manifest.ranks or not 0 <= rank < world:
        raise RelaxError(f"expected a rank of {manifest.ranks}, as many as the executable is for, got rank {rank} of {world}")
    return manifest.of_rank(rank)


def own_path(manifest: Manifest, weights: _T) -> _T | str:
    """The file of a rank, for a name that all say: ``x.rank0of2.safetensors`` for ``x.safetensors``; other things stay."""
    if manifest.ranks == 1 or not isinstance(weights, str | os.PathLike):
        return weights
    path = path_text(cast("str | os.PathLike[str]", weights))
    mark = f".rank{manifest.rank}of{manifest.ranks}"
    return path if mark in os.path.basename(path) else f"{path.removesuffix(_SUFFIX)}{mark}{_SUFFIX}"
