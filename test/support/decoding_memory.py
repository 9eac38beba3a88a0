"""How much memory decoding a weight takes, against what the source says of it."""

from __future__ import annotations

import tracemalloc

from relaxir.weights.formats.encoded import EncodedSource

__all__ = ["assert_no_more_than_said"]


def assert_no_more_than_said(source: EncodedSource, name: str) -> None:
    """By NumPy, whose temporary arrays are counted; compiled code has fewer."""
    source.get(name)  # what is imported for it
    tracemalloc.start()
    try:
        weight = source.get(name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= weight.nbytes + source.beside(name)
