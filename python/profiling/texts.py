"""Times and places as people read them."""

from __future__ import annotations

__all__ = ["plain_place", "seconds_text"]


def seconds_text(seconds: float) -> str:
    """With three digits or four, in a unit that fits."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{1e3 * seconds:.3f} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.1f} us"


def plain_place(where: str) -> str:
    """A place in the source without MLIR's quotes around the file."""
    return where.replace('"', "")
