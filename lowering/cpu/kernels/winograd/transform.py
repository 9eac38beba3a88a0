"""Winograd's transformations of vectors, each lane one channel: a tile of the image, and sums of products to results."""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from .....dialect.winograd import OF_IMAGE, OF_RESULT
from ....kernels.emit.emitter import Emitter

__all__ = ["results_of", "transformed"]

_Matrix = Sequence[Sequence[int]]


def transformed(em: Emitter, tile: Sequence[ir.Value]) -> list[ir.Value]:
    """``B^T d B`` of 16 elements, row by row."""
    return _both_sides(em, OF_IMAGE, tile)


def results_of(em: Emitter, sums: Sequence[ir.Value]) -> list[ir.Value]:
    """``A^T m A`` of 16 sums: four results, row by row."""
    return _both_sides(em, OF_RESULT, sums)


def _both_sides(em: Emitter, matrix: _Matrix, values: Sequence[ir.Value]) -> list[ir.Value]:
    size = len(matrix[0])
    columns = [_times(em, matrix, values[x::size]) for x in range(size)]
    return [value for row in zip(*columns, strict=True) for value in _times(em, matrix, row)]


def _times(em: Emitter, matrix: _Matrix, values: Sequence[ir.Value]) -> list[ir.Value]:
    return [_sum(em, [(sign, v) for sign, v in zip(row, values, strict=True) if sign]) for row in matrix]


def _sum(em: Emitter, terms: Sequence[tuple[int, ir.Value]]) -> ir.Value:
    """Of terms with signs; one at least is added."""
    first, *others = sorted(terms, key=lambda term: -term[0])
    total = first[1]
    for sign, value in others:
        total = em.op("arith.addf" if sign > 0 else "arith.subf", [total, value], total.type)
    return total
