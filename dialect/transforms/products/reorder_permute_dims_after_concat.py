"""Moves transpositions that come alike before a concatenation behind it, where there is one and it may meet a matrix product.

Before::

    %a = "relax.permute_dims"(%q) {axes = array<i64: 1, 0>} : (tensor<64x32xf32>) -> tensor<32x64xf32>
    %b = "relax.permute_dims"(%k) {axes = array<i64: 1, 0>} : (tensor<16x32xf32>) -> tensor<32x16xf32>
    %c = "relax.concat"(%a, %b) {axis = 1 : i64} : (tensor<32x64xf32>, tensor<32x16xf32>) -> tensor<32x80xf32>

after::

    %t = "relax.concat"(%q, %k) {axis = 0 : i64} : (tensor<64x32xf32>, tensor<16x32xf32>) -> tensor<80x32xf32>
    %c = "relax.permute_dims"(%t) {axes = array<i64: 1, 0>} : (tensor<80x32xf32>) -> tensor<32x80xf32>

Elements only move. Transpositions that something else reads, or that are in another block, stay: they would be done twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...bindings import ir
from ...inference import normalize_axis
from ...ops import Concat, PermuteDims
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...traversal import is_read_once
from .matrix_products import permutation

__all__ = ["ReorderPermuteDimsAfterConcat"]


@dataclass(frozen=True)
class ReorderPermuteDimsAfterConcat(Pass):
    """Concatenates first and transposes once."""

    name: ClassVar[str] = "relax-reorder-permute-dims-after-concat"
    anchor: ClassVar[str] = "any"

    def run(self, op: ir.Operation) -> None:
        walk(op, PATTERNS)  # one sweep is enough: what a rewrite enables comes after it


def transpose_the_whole(concat: Concat, rewriter: Rewriter) -> bool:
    first, second = concat.lhs.owner, concat.rhs.owner
    if not isinstance(first, PermuteDims) or not isinstance(second, PermuteDims):
        return False
    axes = permutation(first)
    if permutation(second) != axes or not all(_is_only_read_here(p, concat) for p in (first, second)):
        return False
    axis = axes[normalize_axis(concat.axis, len(axes))]
    with rewriter.before(concat):
        whole = Concat.create(first.x, second.x, axis=axis)
        result = PermuteDims.create(whole, axes=axes, result_types=[concat.result.type], loc=first.location)
    rewriter.discard(first, second)
    return rewriter.replace(concat, result)


def _is_only_read_here(permute: PermuteDims, concat: Concat) -> bool:
    return permute.operation.block == concat.operation.block and is_read_once(permute.result)


PATTERNS: Patterns = [(Concat, transpose_the_whole)]
