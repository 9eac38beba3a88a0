"""Packed weights as arrays: what each :class:`~relaxir.dialect.packed_layout.PackedLayout` means, and back to the matrix."""

from __future__ import annotations

import numpy as np

from ..packed_layout import PackedLayout, Word
from .numeric import Array, fresh

__all__ = ["in_words", "out_of_words", "packed", "unpacked"]


def packed(x: Array, layout: PackedLayout) -> Array:
    """A matrix ``[k, n]`` in panels, its elements as they are: a layout's words and offset are none of this function's."""
    k, n = x.shape
    panels, groups = -(-n // layout.tile), -(-k // layout.rows)
    padded = np.zeros((groups * layout.rows, panels * layout.tile), x.dtype)
    padded[:k, :n] = x
    moved = padded.reshape(groups, layout.rows, panels, layout.tile).transpose(2, 0, 3, 1)
    return fresh(moved if layout.has_neighbours else moved.reshape(panels, groups, layout.tile))


def unpacked(weight: Array, layout: PackedLayout, n: int) -> Array:
    """The matrix of ``n`` columns that was packed, taken out of words, with the rows that fill the last word or neighbours."""
    if layout.word is not None:
        weight = out_of_words(weight, layout.word, layout.rows, axis=1)
    rows = layout.rows if layout.has_neighbours else 1
    panels, groups, tile = weight.shape[:3]
    moved = weight.reshape(panels, groups, tile, rows).transpose(1, 3, 0, 2)
    return moved.reshape(groups * rows, panels * tile)[:, :n]


def in_words(values: Array, word: Word, rows: int, axis: int) -> Array:
    """Unsigned integers of a word's dtype as words, zeros in what is left of the last one."""
    moved = np.moveaxis(values & values.dtype.type((1 << word.bits) - 1), axis, -1)
    room = np.zeros((*moved.shape[:-1], -moved.shape[-1] % word.count), values.dtype)
    moved = np.concatenate([moved, room], -1)
    moved = moved.reshape(*moved.shape[:-1], moved.shape[-1] // word.count, word.count)
    return fresh(np.moveaxis(np.bitwise_or.reduce(moved << _places(moved, word, rows), -1), -1, axis))


def out_of_words(words: Array, word: Word, rows: int, axis: int) -> Array:
    """The integers of words, those of one after those of the other."""
    moved = np.moveaxis(words, axis, -1)[..., None]
    values = moved >> _places(moved, word, rows) & words.dtype.type((1 << word.bits) - 1)
    return np.moveaxis(values.reshape(*values.shape[:-2], values.shape[-2] * values.shape[-1]), -1, axis)


def _places(words: Array, word: Word, rows: int) -> Array:
    return np.asarray(word.places(rows), words.dtype)
