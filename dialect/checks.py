"""Arguments of public functions, checked where they come in: callers need not use a type checker."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .errors import RelaxError

__all__ = ["expect", "expect_bytes", "expect_count", "expect_flag", "expect_no_mask", "expect_text", "whole_number"]


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
    number = whole_number(value)
    if number is None or number < 1:
        raise RelaxError(f"expected {what}, got {value!r}")
    return number


def expect_bytes(value: object, what: str) -> int:
    """The same, where a float may say it: ``8e9``."""
    return expect_count(int(value) if isinstance(value, float) and value.is_integer() else value, what)


def whole_number(value: object) -> int | None:
    """One of Python or NumPy; None for anything else, truth values among it."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None
