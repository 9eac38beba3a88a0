"""Two tensors that should be equal: whether they are, and how far apart, in memory that does not grow with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from ..dialect.reference.numeric import is_float

__all__ = ["TOLERANCES", "Difference", "difference"]

Array = np.ndarray[Any, Any]

#: What results of a dtype may be off by, relative to the largest: sums in another order, a few in a row.
TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
#: Of narrower floats.
_NARROW = 0.25
#: Elements that are compared at once.
_CHUNK = 1 << 18


@dataclass(frozen=True)
class Difference:
    """How far a tensor is from the one that it should be.

    Attributes:
        equal: whether no element is farther off than the tolerance says.
        elements: how many there are.
        unequal: how many are farther off.
        max_abs: the largest absolute error of elements that are finite in both.
        max_rel: the largest error relative to the element that it should be, of finite ones that are not zero.
        max_ulp: the largest error in steps of the dtype; of integers the same as ``max_abs``.
        nan_expected: elements that should be NaN.
        nan_found: elements that are.
        place: the worst element: one where only one is NaN or infinite, else that of ``max_abs``; None without elements.
        expected: what it should be, as text.
        found: what it is, as text.
        reason: why the tensors cannot be compared, such as other shapes; empty if they can.
    """

    equal: bool
    elements: int = 0
    unequal: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: float = 0.0
    nan_expected: int = 0
    nan_found: int = 0
    place: tuple[int, ...] | None = None
    expected: str = ""
    found: str = ""
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return self.reason
        if self.elements and self.nan_expected == self.nan_found == self.elements:
            return f"all {self.elements} are NaN on both sides: nothing was compared"
        nans = f", NaN {self.nan_expected} -> {self.nan_found}" if self.nan_expected or self.nan_found else ""
        exact = self.place is None or not (self.unequal or self.max_abs)
        worst = "" if exact else f", worst at {list(self.place or ())}: {self.expected} -> {self.found}"
        errors = f"max abs {self.max_abs:.3g}, rel {self.max_rel:.3g}, ulp {self.max_ulp:.3g}"
        return f"{self.unequal} of {self.elements} differ, {errors}{nans}{worst}"


def difference(expected: Array, found: Array, tolerance: float | None = None) -> Difference:
    """Compares two tensors, of which mapped files are read a part at a time.

    Args:
        expected: what it should be.
        found: what it is.
        tolerance: what finite floats may be off by, relative to the largest finite one expected; :data:`TOLERANCES` by
            default. Integers and booleans are equal or not, NaN and infinities stand in the same places.
    """
    if expected.dtype != found.dtype:
        return Difference(False, reason=f"expected dtype {expected.dtype}, got {found.dtype}")
    if expected.shape != found.shape:
        return Difference(False, reason=f"expected shape {list(expected.shape)}, got {list(found.shape)}")
    comparison = _Comparison(expected.reshape(-1), found.reshape(-1), _tolerance(expected.dtype, tolerance))
    return comparison.difference(expected.shape)


def _tolerance(dtype: np.dtype[Any], given: float | None) -> float:
    if not is_float(dtype):
        return 0.0
    return TOLERANCES.get(dtype.name, _NARROW) if given is None else given


@dataclass
class _Comparison:
    expected: Array
    found: Array
    tolerance: float

    def difference(self, shape: tuple[int, ...]) -> Difference:
        allowed = self.tolerance * self._largest()
        unequal, abs_, rel, ulp, nans = 0, 0.0, 0.0, 0.0, [0, 0]
        worst: tuple[float, int] = (-1.0, 0)
        for start in range(0, self.expected.size, _CHUNK):
            want, got, off = self._off(slice(start, start + _CHUNK))
            finite = np.isfinite(want) & np.isfinite(got)
            unequal += int(np.count_nonzero(off > allowed))
            abs_ = max(abs_, off.max(initial=0, where=finite))
            rel = max(rel, (off / np.where(want == 0, np.inf, np.abs(want))).max(initial=0, where=finite))
            ulp = max(ulp, (off / self._step(want)).max(initial=0, where=finite))
            nans = [nans[0] + int(np.isnan(want).sum()), nans[1] + int(np.isnan(got).sum())]
            at = int(off.argmax())
            worst = max(worst, (float(off[at]), -(start + at)))
        place = None if worst[0] < 0 else tuple(int(i) for i in np.unravel_index(-worst[1], shape))
        want, got = ("" if place is None else str(a[-worst[1]]) for a in (self.expected, self.found))
        return Difference(
            not unequal, self.expected.size, unequal, float(abs_), float(rel), float(ulp), nans[0], nans[1], place, want, got
        )

    def _off(self, part: slice) -> tuple[Array, Array, Array]:
        """Both as f64, and how far they are apart: infinitely where one is NaN or infinite and the other is not the same."""
        want, got = (a[part].astype(np.float64) for a in (self.expected, self.found))
        with np.errstate(all="ignore"):
            off = np.abs(want - got)
        if not is_float(self.expected.dtype):  # beyond 53 bits neighbours are one number in f64
            return want, got, np.where(self.expected[part] == self.found[part], 0, np.maximum(off, 1))
        off[(want == got) | (np.isnan(want) & np.isnan(got))] = 0
        off[np.isnan(off)] = np.inf
        return want, got, off

    def _largest(self) -> float:
        """The largest finite element expected."""
        largest = 0.0
        for start in range(0, self.expected.size if self.tolerance else 0, _CHUNK):
            part = np.abs(self.expected[start : start + _CHUNK].astype(np.float64))
            largest = max(largest, float(part.max(initial=0, where=np.isfinite(part))))
        return largest

    def _step(self, want: Array) -> Array:
        """The distance of each number to the next one of the dtype."""
        if not is_float(self.expected.dtype):
            return np.ones_like(want)
        info = ml_dtypes.finfo(self.expected.dtype)
        least = float(info.smallest_normal)
        with np.errstate(all="ignore"):
            exponent = np.floor(np.log2(np.maximum(np.abs(np.where(np.isfinite(want), want, 0)), least)))
        return np.exp2(exponent) * float(info.eps)
