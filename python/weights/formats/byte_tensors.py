"""A source in which tensors of other dtypes are bytes, where a format has packed integers, and numbers of texts are tensors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np

from ..arrays import Array, ArraySpec
from ..source import DerivedSource, Ranges, TensorSource, ranges_of, read_all, read_part, reads_parts

__all__ = ["ByteTensors"]


class ByteTensors(DerivedSource):
    """Tensors under the names of another source; see :class:`~..source.TensorSource`.

    A tensor of bytes is a column ``[n, 1]`` or a row ``[1, n]``, as what it is made of.
    """

    def __init__(self, stored: TensorSource, as_bytes: Collection[str], made: Mapping[str, Array]):
        """Takes the other source.

        Args:
            stored: the tensors as the file has them.
            as_bytes: names of columns or rows that are bytes here.
            made: tensors that the source has beside its own; each belongs to a text of it, so its identity has them.
        """
        super().__init__(stored)
        self._as_bytes, self._made = frozenset(as_bytes), dict(made)
        self.path, self.metadata, self.files = stored.path, stored.metadata, stored.files
        self.is_interleaved = getattr(stored, "is_interleaved", False)

    @property
    def identity(self) -> str | None:
        """That of the other source."""
        return self._stored.identity

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._stored, *self._made]))

    def __contains__(self, name: object) -> bool:
        return name in self._made or name in self._stored

    def spec(self, name: str) -> ArraySpec:
        if name in self._made:
            return ArraySpec.of(self._made[name])
        found = self._stored.spec(name)
        if name not in self._as_bytes:
            return found
        axis = self._axis(name)
        shape = tuple(d * found.dtype.itemsize if i == axis else d for i, d in enumerate(found.shape))
        return ArraySpec(np.dtype(np.uint8), shape)

    def get(self, name: str) -> Array:
        return self._made[name] if name in self._made else self._viewed(name, self._stored.get(name))

    def read_all(self, names: Collection[str]) -> dict[str, Array]:
        """Each in memory of its own."""
        read = read_all(self._stored, [n for n in names if n not in self._made])
        return {n: self._made[n] if n in self._made else self._viewed(n, read[n]) for n in names}

    def read_part(self, name: str, ranges: Mapping[int, Ranges], place: Array | None = None) -> Array:
        """Of a tensor, what is in these ranges along some axes; of bytes, the elements that have them are read."""
        if name in self._made:
            return ranges_of(self._made[name], ranges)
        if name not in self._as_bytes:
            return read_part(self._stored, name, ranges, place)
        axis, size = self._axis(name), self._stored.spec(name).dtype.itemsize
        parts: list[Array] = []
        for begin, end in ranges.get(axis, [(0, self.spec(name).shape[axis])]):
            first = begin // size
            found = self._viewed(name, read_part(self._stored, name, {axis: [(first, -(-end // size))]}))
            parts.append(ranges_of(found, {**ranges, axis: [(begin - first * size, end - first * size)]}))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis)

    def reads_parts(self, name: str) -> bool:
        """Whether a part of a tensor takes no more memory than its bytes."""
        return name in self._made or reads_parts(self._stored, name)

    def _axis(self, name: str) -> int:
        """Along which the elements of a column or row lie."""
        return 0 if self._stored.spec(name).shape[-1] == 1 else 1

    def _viewed(self, name: str, array: Array) -> Array:
        if name not in self._as_bytes:
            return array
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return flat.reshape((-1, 1) if self._axis(name) == 0 else (1, -1))

    def _parts(self, name: str) -> Iterable[str]:
        return () if name in self._made else (name,)
