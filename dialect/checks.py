"""Arguments of public functions, checked where they come in: callers need not use a type checker."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .errors import RelaxError

__all__ = ["expect", "expect_count", "expect_flag", "expect_no_mask", "expect_text"]


def expect(value: object, kind: type[Any] | tuple[type[Any], ...], what: str) -> None:
    """Raises RelaxError when a value is of another type than expected; ``what`` says what that is."""
    if not isinstance(value, kind):
        raise RelaxError(f"expected {what}, got {type(value).__name__}")


def expect_text(value: object, what: str, optional: bool = False) -> None:
    """Raises RelaxError when this is no text that can be written down (half characters cannot)."""
    if optional and value is None:
        return
    expect(value, str, what)
    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise RelaxError(f"expected {what}, got {value!r}, which is not Unicode text") from None


def expect_no_mask(value: object, what: str) -> None:
    """Refuses arrays some of whose elements are hidden: what is behind the mask would be computed with."""
    if isinstance(value, np.ma.MaskedArray):
        raise RelaxError(f"{what}: expected an array without mask, got a MaskedArray")


def expect_flag(value: object, what: str) -> None:
    """Raises RelaxError when this is neither true nor false."""
    if type(value).__name__ not in ("bool", "bool_"):  # Python's or NumPy's
        raise RelaxError(f"expected {what} as True or False, got {type(value).__name__}")


def expect_count(value: object, what: str) -> int:
    """A whole number from 1 on, of Python or NumPy. Raises RelaxError for anything else; ``what`` says what is expected."""
    try:
        number = operator.index(value) if not isinstance(value, bool) else 0  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number < 1:
        raise RelaxError(f"expected {what}, got {value!r}")
    return number
