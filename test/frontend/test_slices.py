"""Bounds of slices of symbolic dimensions, against Python's own for every size."""

from __future__ import annotations

from itertools import product

import pytest

from relaxir.dialect.symbolic import evaluate, symbol
from relaxir.frontend.slices import UncertainError, limited_bounds, slice_bound

_BOUNDS = (*range(-4, 5), 2**62, -(2**62))


@pytest.mark.parametrize("least", [0, 1])
def test_limited_bounds_are_pythons_for_every_size(least: int) -> None:
    size, ranges = symbol("n"), {"n": (least, None)}
    for begin, end in product(_BOUNDS, _BOUNDS):
        bounds = limited_bounds(begin, end, size, ranges)
        for n in range(least, 10):
            start, stop = (evaluate(bound, {"n": n}) for bound in bounds)
            assert 0 <= start <= stop <= n
            assert list(range(n))[start:stop] == list(range(n))[begin:end]
            assert limited_bounds(begin, end, n, {})[1] - limited_bounds(begin, end, n, {})[0] == stop - start


def test_bounds_that_are_outside_for_some_sizes_are_told_apart() -> None:
    n = symbol("n")
    assert slice_bound(3, n, {"n": (3, None)}) == 3
    assert str(slice_bound(-3, n, {"n": (3, None)})) == "n - 3"
    for bound in (3, -3):
        with pytest.raises(UncertainError, match="expected a slice bound that always lies inside of n"):
            slice_bound(bound, n, {"n": (2, None)})
