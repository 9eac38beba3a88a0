"""Columns of windows of floats: a vector of channels for each row, multiplied by a filter's and added at once."""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.memory import Memory, Point
from .row_loads import Row, RowLoads, Vector
from .shape import Windows

__all__ = ["FloatColumns"]


class FloatColumns(RowLoads):
    """Builds columns of the image and of filters, and sums of their products, for a vector of channels."""

    def __init__(self, windows: Windows, vector: Vector, emitter: Emitter, memory: Memory):
        super().__init__(windows, emitter.vector(vector.lanes, emitter.f32), vector, emitter, memory)

    def of_image(self, point: Point, tap: int, rows: Sequence[Row]) -> list[ir.Value]:
        """A column of some rows."""
        if self.is_outside(point, tap):
            return [self.frame()] * len(rows)
        place = point.at(self.windows.across, self.emitter.number(tap))
        return [self.row(place.at(self.windows.down, self.emitter.number(i)), row) for i, row in enumerate(rows)]

    def of_filter(self, tap: int, rows: int, above: int) -> list[ir.Value | None]:
        """A column of the filter with so many rows of nothing above it, in so many rows."""
        em, (height, _), windows = self.emitter, self.windows.window, self.windows
        place = Point().at(windows.across, em.number(tap))
        taps = [self.load(windows.filter, place.at(windows.down, em.number(i))) for i in range(height)]
        return [*[None] * above, *taps, *[None] * (rows - above - height)]

    def moved(self, numbered: tuple[int, Sequence[ir.Value | None]], rows: int, above: int) -> list[ir.Value | None]:
        """A column of the filter, which is there without rows above it, with some."""
        taps = [tap for tap in numbered[1] if tap is not None]
        return [*[None] * above, *taps, *[None] * (rows - above - len(taps))]

    def added(
        self, total: Sequence[ir.Value], column: Sequence[ir.Value], taps: Sequence[ir.Value | None]
    ) -> list[ir.Value]:  # fmt: skip
        """The sums with the products of a column added."""
        (found,) = total
        for image, tap in zip(column, taps, strict=False):  # a last row reads less than filters of two rows have
            if tap is not None:
                found = self.emitter.op("math.fma", [image, tap, found], self.kind)
        return [found]

    def corrections(self, filters: Sequence[Sequence[ir.Value | None]]) -> None:
        """Sums have nothing too much."""
        del filters
