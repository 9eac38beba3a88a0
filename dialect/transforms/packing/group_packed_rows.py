"""Makes neighbours of the rows of a packed weight that one instruction of the target sums.

Before::

    %p = "relax.pack_weight"(%w) {layout = "tile 32"} : (tensor<769x3072xbf16>) -> tensor<96x769x32xbf16>
    %y = "relax.packed_matmul"(%x, %p) {layout = "tile 32", n = 3072 : i64} : (tensor<?x769xbf16, {sym = ["n"]}>, ...)

with ``bf16=2``, after::

    %p = "relax.pack_weight"(%w) {layout = "tile 32, rows 2"} : (tensor<769x3072xbf16>) -> tensor<96x385x32x2xbf16>
    %y = "relax.packed_matmul"(%x, %p) {layout = "tile 32, rows 2", n = 3072 : i64} : (tensor<?x769xbf16, {sym = ["n"]}>, ...)

Weights that anything else than products reads stay, as do those that become bf16 only behind what packs them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ...bindings import ir
from ...errors import RelaxError
from ...ops import PackedGroupedMatMul, PackedMatMul, PackWeight
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import TensorInfo
from ...weight_layouts import WeightLayouts

__all__ = ["GroupPackedRows"]


@dataclass(frozen=True)
class GroupPackedRows(Pass):
    """Packs weights that only products read in groups of rows.

    Attributes:
        bf16: how many rows of bf16 are a group; with 1 nothing changes. None: what the module's ``relax.weight_layouts`` say.
    """

    name: ClassVar[str] = "relax-group-packed-rows"
    bf16: int | None = None

    def run(self, op: ir.Operation) -> None:
        rows = WeightLayouts.of(op).bf16_rows if self.bf16 is None else self.bf16
        if rows < 1:
            raise RelaxError(f"expected a positive number of rows, got {rows}")
        if rows > 1:
            walk(op, _Grouping(rows).patterns())


@dataclass(frozen=True)
class _Grouping:
    """Groups of that many rows."""

    rows: int

    def patterns(self) -> Patterns:
        return [(PackWeight, self._group_rows)]

    def _group_rows(self, pack: PackWeight, rewriter: Rewriter) -> bool:
        if pack.layout.rows != 1 or not _is_for_products(pack):
            return False
        rows = TensorInfo.of(pack.x).shape[0]
        if not isinstance(TensorInfo.of(pack.x).dtype, ir.BF16Type) or not isinstance(rows, int) or rows < self.rows:
            return False
        layout = replace(pack.layout, rows=self.rows)
        for use in pack.result.uses:
            use.owner.attributes["layout"] = ir.StringAttr.get(str(layout))
        with rewriter.before(pack):
            return rewriter.replace(pack, PackWeight.create(pack.x, layout=layout))


def _is_for_products(pack: PackWeight) -> bool:
    """Whether packed products, and nothing else, read the weight."""
    readers = [use.owner for use in pack.result.uses]
    return bool(readers) and all(isinstance(r, PackedMatMul | PackedGroupedMatMul) and r.weight == pack.result for r in readers)
