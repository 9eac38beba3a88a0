"""Whether prepared weights are right: every byte against its checksum, and against what the raw weights give."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..dialect.errors import RelaxError
from ..lowering.manifest import Manifest
from ..weights.arrays import Array, ArraySpec
from .binding import check_bytes, checked_prepared
from .prepare import PrepareOptions, checked_source
from .scratch import Scratch
from .sinks import Taker, buffer_arrays, buffer_bytes
from .sources import AGAIN, WeightSource, problems_text
from .step_stream import Functions, StepStream

__all__ = ["verify_prepared"]

# Bytes of a file that are compared at once, so that they are still in the cache.
_CHUNK = 1 << 20


def verify_prepared(
    manifest: Manifest, functions: Functions, prepared: object, against: object | None, options: PrepareOptions
) -> int:
    """Compares prepared weights with their checksums and, if there are raw ones, with what these give.

    Returns:
        How many weights were compared.

    Raises:
        RelaxError: they are not of this executable, or differ (all are listed); or as :meth:`Executable.prepare`.
    """
    source = checked_prepared(manifest, prepared)
    names = list(manifest.prepared_weights)
    check_bytes(source, names, whole=True)
    if against is not None:
        raw = checked_source(manifest, against, options)
        sink = _Comparison(source)
        StepStream(manifest, functions, raw, sink, list(manifest.steps), options.progress).run(options.jobs)
        raw.check_unchanged()
        lines = [
            f"weight '{n}': expected what {raw.description} gives, got other bytes: {AGAIN}" for n in sorted(sink.different)
        ]
        if lines:
            raise RelaxError(problems_text(source.description, lines, len(names)))
    return len(names)


class _Comparison:
    """Takes results as a file would, and compares them with what is in one.

    Attributes:
        different: names of weights with other bytes.
    """

    def __init__(self, prepared: WeightSource):
        self.different: set[str] = set()
        self._prepared = prepared
        self.copy = self.put

    def buffer_bytes(self, specs: Sequence[ArraySpec]) -> int:
        return buffer_bytes(specs)

    def outputs(self, specs: Sequence[ArraySpec], buffer: Scratch) -> list[Array]:
        return buffer_arrays(specs, buffer)

    def put(self, name: str, array: Array) -> None:
        rows = np.atleast_1d(array)
        step = max(1, _CHUNK * len(rows) // max(rows.nbytes, 1))
        if not all(self._agrees(name, rows[i : i + step], i) for i in range(0, len(rows), step)):
            self.different.add(name)

    def begin(self, name: str, spec: ArraySpec) -> Taker:
        axis = next((i for i, size in enumerate(spec.shape) if size != 1), 0)
        filled, along = 0, math.prod(spec.shape[axis + 1 :])

        def put(piece: Array) -> None:
            nonlocal filled
            begin, filled = filled, filled + piece.size // max(1, along)
            if not _are_same(piece, self._prepared.read_part(name, {axis: [(begin, filled)]} if spec.shape else {})):
                self.different.add(name)

        return put

    def _agrees(self, name: str, rows: Array, begin: int) -> bool:
        """Whether these bytes are in the file from that row on, which is read: a view of a file may end the process."""
        stored = self._prepared.read_part(name, {0: [(begin, begin + len(rows))]} if self._prepared.spec(name).shape else {})
        return _are_same(rows, stored)


def _are_same(*arrays: Array) -> bool:
    """Whether both have the same bytes."""
    one, other = (np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in arrays)
    return np.array_equal(one, other)
