"""Sizes and rates as people write them: text in, bytes, or bytes in a second, out."""

from __future__ import annotations

import argparse
import re

__all__ = ["byte_count", "byte_rate", "count"]

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kKMGT]i?)?(B|bit)?", re.ASCII)
_PREFIXES = "KMGT"


def byte_count(text: str) -> int:
    """``5GB``, ``1.5GiB`` or ``4096`` as bytes. Raises argparse.ArgumentTypeError for anything else."""
    match = _SIZE.fullmatch(text)
    count = round(_number(match)) if match and match[3] != "bit" else 0
    if count < 1:
        raise argparse.ArgumentTypeError(f"expected a size such as 5GB or 512MiB, got '{text}'")
    return count


def count(text: str) -> int:
    """A number of at least 1. Raises argparse.ArgumentTypeError for anything else."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got '{text}'")
    return int(text)


def byte_rate(text: str) -> float:
    """``3GB/s`` or ``25Gbit/s`` as bytes in a second. Raises argparse.ArgumentTypeError for anything else."""
    match = _SIZE.fullmatch(text.removesuffix("/s"))
    rate = _number(match) / (8 if match[3] == "bit" else 1) if match and text.endswith("/s") else 0
    if not rate:
        raise argparse.ArgumentTypeError(f"expected a rate such as 3GB/s or 25Gbit/s, got '{text}'")
    return rate


def _number(match: re.Match[str]) -> float:
    prefix = (match[2] or "").replace("k", "K")
    base = 1024 if prefix.endswith("i") else 1000
    return float(match[1]) * (base ** (_PREFIXES.index(prefix[0]) + 1) if prefix else 1)
