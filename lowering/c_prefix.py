"""Text of C names of entries, for what reads artifacts without MLIR; :mod:`.c_names` gives functions theirs."""

from __future__ import annotations

import re

from .manifest import Manifest

__all__ = ["DEFAULT", "in_c", "prefix_of"]

DEFAULT = "relaxir"


def in_c(name: str) -> str:
    """A function's name as a part of a C name."""
    return re.sub("[^0-9A-Za-z]", "_", name)


def prefix_of(manifest: Manifest) -> str:
    """How the C names of an executable's entries begin."""
    entry = next(iter(manifest.entries.values()), None)
    found = None if entry is None else re.fullmatch(f"(.+)_{in_c(entry.name)}_?", entry.symbol)
    return DEFAULT if found is None else found[1]
