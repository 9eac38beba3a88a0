"""Headers of safetensors files made of random bytes and of random tables: a header or a RelaxError comes out."""

from __future__ import annotations

import random

from runtime import test_header_fuzz

__all__ = ["check"]

_TESTS = (test_header_fuzz.test_random_bytes, test_header_fuzz.test_random_tables, test_header_fuzz.test_layouts_parse_back)


def check(seed: int) -> None:
    """Feeds random bytes, of which hypothesis makes its choices, to one of the tests."""
    rng = random.Random(seed)
    rng.choice(_TESTS).hypothesis.fuzz_one_input(rng.randbytes(rng.randrange(1, 2000)))  # type: ignore[attr-defined]
