"""How much memory decoding a weight takes, against what the source says of it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping

from relaxir.weights.formats.encoded import EncodedSource
from relaxir.weights.source import Ranges

__all__ = ["assert_no_more_than_said"]


def assert_no_more_than_said(source: EncodedSource, name: str, ranges: Mapping[int, Ranges] | None = None) -> None:
    """Of a weight, or a part of it, by NumPy, whose temporary arrays are counted; compiled code has fewer."""
    source.get(name)  # what is imported for it
    tracemalloc.start()
    try:
        weight = source.get(name) if ranges is None else source.read_part(name, ranges)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= weight.nbytes + source.beside(name, ranges)
