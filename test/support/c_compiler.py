"""The C compiler that the tests need; without one, code is saved as objects, which some of them are not about."""

from __future__ import annotations

import shutil

__all__ = ["c_compiler"]


def c_compiler() -> str:
    """Its path."""
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    assert found is not None, "the tests need a C compiler (CONTRIBUTING.md)"
    return found
