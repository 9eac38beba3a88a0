"""Numbers on the command line, refused with what they have to be."""

from __future__ import annotations

import argparse
import math

__all__ = ["seconds", "seed", "temperature", "tolerance"]


def seed(text: str) -> int:
    """Of what is random: a whole number from 0 on."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 on, got '{text}'")
    return int(text)


def seconds(text: str) -> float:
    """How long something lasts, from 0 on."""
    found = _number(text)
    if found is None or found < 0:
        raise argparse.ArgumentTypeError(f"expected a number of seconds from 0 on, got '{text}'")
    return found


def tolerance(text: str) -> float:
    """A relative error, from 0 on."""
    found = _number(text)
    if found is None or found < 0:
        raise argparse.ArgumentTypeError(f"expected a relative error from 0 on, got '{text}'")
    return found


def temperature(text: str) -> float:
    """Of tokens that are drawn, from 0, the likeliest, on."""
    found = _number(text)
    if found is None or found < 0:
        raise argparse.ArgumentTypeError(f"expected a temperature from 0 on, got '{text}'")
    return found


def _number(text: str) -> float | None:
    """A finite one."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
