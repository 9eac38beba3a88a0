"""Where a caller wants results: its own arrays or tensors, checked to be what a call may write to."""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..dialect.errors import RelaxError
from ..lowering.manifest_specs import EntrySpec, TensorSpec
from ..weights.arrays import Array, ArraySpec, address, is_torch, to_numpy

__all__ = [
    "MemoryRanges",
    "arranged_outputs",
    "memory_range",
    "output_address",
    "trimmed",
    "writable_address",
    "writable_array",
]

# Looked up once: a call takes both for every result.
_addressof, _from_buffer = ctypes.addressof, ctypes.c_char.from_buffer


class MemoryRanges:
    """Ranges of memory by what is there, asked for what overlaps them."""

    def __init__(self, ranges: Iterable[tuple[int, int, str]]):
        """Args: ranges: first address, the one behind, and what is there."""
        self._ranges: list[tuple[int, int, str]] = []
        for first, last, what in sorted(r for r in ranges if r[0] < r[1]):
            if not self._ranges or last > self._ranges[-1][1]:  # one within another, as of a weight bound twice, says nothing
                self._ranges.append((first, last, what))
        self._firsts = [first for first, _, _ in self._ranges]

    def overlap(self, first: int, last: int) -> str | None:
        """What is in a range, if anything."""
        # What starts before the end of it and ends last is what overlaps it, if any does: ends grow with starts.
        position = bisect_left(self._firsts, last) - 1
        if first >= last or position < 0 or self._ranges[position][1] <= first:
            return None
        return self._ranges[position][2]


def memory_range(array: Array, what: str) -> tuple[int, int, str]:
    """Where a contiguous array lies."""
    first = address(array)
    return first, first + array.nbytes, what


def arranged_outputs(spec: EntrySpec, out: object, entry: str) -> list[object]:
    """What a caller gave, in the order of the outputs; None for those that a call is to make.

    Raises:
        RelaxError: there are too many or too few, one by an unknown name, or data decides how large one is.
    """
    specs = spec.outputs
    if spec.bounded:
        raise RelaxError(f"{entry}: expected no memory for results, the size of '{spec.bounded[0][0]}' is known after the call")
    is_mapping = isinstance(out, Mapping)
    found = list(cast("Sequence[object]", out)) if isinstance(out, (list, tuple)) else [out]
    if not is_mapping and len(found) == len(specs):
        return found
    names = [s.name for s in specs]
    expected = f"{len(names)} output{'' if len(names) == 1 else 's'} ({', '.join(names)})"
    if is_mapping:
        given = cast("Mapping[object, object]", out)
        unknown = [n for n in given if n not in names]
        if unknown:
            raise RelaxError(f"{entry}: expected {expected}, got one named '{unknown[0]}'")
        return [given.get(n) for n in names]
    raise RelaxError(f"{entry}: expected {expected}, got {len(found)}")


def trimmed(spec: EntrySpec, results: list[Any]) -> list[Any]:
    """The results without those that are sizes of others, and of these others the part that the sizes say.

    One that is on a device, and no tensor of torch's, is copied to the host.
    """
    if not spec.bounded:
        return results
    found = {o.name: r for o, r in zip(spec.outputs, results, strict=True)}
    for name, sizes in spec.bounded:
        shape = [int(n) for n in found.pop(sizes)]
        whole = found[name]
        found[name] = (whole if hasattr(whole, "__getitem__") else whole.numpy())[tuple(slice(n) for n in shape)]
    return list(found.values())


def writable_address(array: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> int | None:
    """Where an array lies that looks as most do: contiguous, aligned, writable; None for any other, which may be right, too."""
    if array.shape != shape or (array.dtype is not dtype and array.dtype != dtype):
        return None
    try:
        start = _addressof(_from_buffer(cast(Any, array)))
    except (TypeError, ValueError, BufferError):
        return None
    return None if start % dtype.alignment else start


def writable_array(value: object, what: str) -> Array:
    """A tensor of any library as an array over its memory, which code may write to as long as the tensor lives.

    Raises:
        RelaxError: it is none, has gaps, must not be written to, or may show a copy of its memory: a scalar, a negated view,
            zeros without memory, what has ``__array_interface__`` alone.
    """
    array = to_numpy(value, what)
    if not isinstance(value, np.ndarray) and array.nbytes and not _is_own(value, array, what):
        raise RelaxError(f"{what}: expected an array or a tensor that shows its own memory, got a copy of it")
    flags = array.flags
    if not (flags.writeable and flags.c_contiguous and flags.aligned):
        raise RelaxError(f"{what}: expected memory that is contiguous, aligned and writable")
    return array


def _is_own(value: object, array: Array, what: str) -> bool:
    """Whether the value shows the same memory again while the first array holds it, which one by its interface does not."""
    return (is_torch(value) or hasattr(value, "__dlpack__")) and address(to_numpy(value, what)) == address(array)


def output_address(spec: TensorSpec, value: object, expected: ArraySpec) -> int:
    """Where a call may write an output to.

    Raises:
        RelaxError: it has another dtype or shape, has gaps, must not be written to, or shows a copy of its memory.
    """
    what = f"output '{spec.name}'"
    if is_torch(value) and getattr(value, "requires_grad", False):
        raise RelaxError(f"{what}: expected a tensor that requires no gradient, got one that does")
    array = writable_array(value, what)
    if ArraySpec.of(array) != expected:
        raise RelaxError(f"{what}: expected {expected}, got {ArraySpec.of(array)}")
    return address(array)
