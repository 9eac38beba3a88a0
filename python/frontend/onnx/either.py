"""Results of branches of which one is taken when the model runs, and whose sizes may differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.struct_info import TensorInfo
from ...dialect.symbolic import Dim
from ..emit import emit, full, info_of, integer, sequence
from ..places import first_of
from .rounds import as_type, joined

__all__ = ["Either"]


class Either:
    """A result of two branches: where their sizes differ, as much memory as both need, and the sizes beside.

    Attributes:
        types: of what a branch yields for it.
    """

    def __init__(self, a: TensorInfo, b: TensorInfo):
        """Raises RelaxError where dtypes or ranks differ."""
        common = joined(a, b)
        sizes = [_larger(x, y) for x, y in zip(a.shape, b.shape, strict=True)]
        self._axes = [i for i, d in enumerate(common.shape) if d is None and sizes[i] is not None]
        self._info = common.with_(shape=[sizes[i] if d is None else d for i, d in enumerate(common.shape)])
        self.types = [self._info.type, *[TensorInfo((), integer()).type for _ in self._axes]]

    def given(self, value: ir.Value) -> list[ir.Value]:
        """What a branch yields for its result."""
        sizes: list[ir.Value] = []
        for axis in self._axes:
            info = info_of(value)
            size = info.shape[axis]
            assert size is not None
            shape = [self._info.shape[axis] if i == axis else d for i, d in enumerate(info.shape)]
            value = emit(ops.IndexCopy, full(0, info.dtype, shape), sequence(0, size), value, axis=axis)
            sizes.append(full(size, integer()))
        return [as_type(value, self._info), *sizes]

    def taken(self, values: Iterator[ir.Value], symbol: Callable[[], str]) -> ir.Value:
        """The result, of what the branch yielded; ``symbol`` gives names for sizes."""
        value = next(values)
        for axis in self._axes:
            value = first_of(value, next(values), symbol(), axis)
        return value


def _larger(a: Dim, b: Dim) -> Dim:
    """A size that neither is beyond."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return None if a is None or b is None else a + b
