"""Makes neighbours of the rows of a packed weight that one instruction of the target sums.

Before::

    %p = "relax.pack_weight"(%w) {layout = "tile 32"} : (tensor<769x3072xbf16>) -> tensor<96x769x32xbf16>
    %y = "relax.packed_matmul"(%x, %p) {layout = "tile 32", n = 3072 : i64} : (tensor<?x769xbf16, {sym = ["n"]}>, ...)

with ``bf16=2``, after::

    %p = "relax.pack_weight"(%w) {layout = "tile 32, rows 2"} : (tensor<769x3072xbf16>) -> tensor<96x385x32x2xbf16>
    %y = "relax.packed_matmul"(%x, %p) {layout = "tile 32, rows 2", n = 3072 : i64} : (tensor<?x769xbf16, {sym = ["n"]}>, ...)

Of filters, neighbours are channels, which are a multiple of so many. Weights that anything else than products reads stay, as do
those that become bf16 only behind what packs them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from ...bindings import ir
from ...errors import RelaxError
from ...ops import PackedConv2D, PackedGroupedMatMul, PackedMatMul, PackWeight
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
            walk(op, _Grouping(rows, WeightLayouts.of(op).columns).patterns())


@dataclass(frozen=True)
class _Grouping:
    """Groups of that many rows; those of filters in panels of that many columns, which instructions take whole."""

    rows: int
    columns: int

    def patterns(self) -> Patterns:
        return [(PackWeight, self._group_rows)]

    def _group_rows(self, pack: PackWeight, rewriter: Rewriter) -> bool:
        if pack.layout.rows != 1 or not _is_for_products(pack):
            return False
        rows, dtype = TensorInfo.of(pack.x).shape[0], TensorInfo.of(pack.x).dtype
        if not isinstance(dtype, ir.BF16Type) or not isinstance(rows, int) or rows < self.rows:
            return False
        if any(self._splits_channels(use.owner, rows) for use in pack.result.uses):
            return False
        layout = replace(pack.layout, rows=self.rows)
        for use in pack.result.uses:
            use.owner.attributes["layout"] = ir.StringAttr.get(str(layout))
        with rewriter.before(pack):
            return rewriter.replace(pack, PackWeight.create(pack.x, layout=layout))

    def _splits_channels(self, reader: ir.OpView, rows: int) -> bool:
        """Whether filters of so many rows have channels that are no multiple, or narrow panels, or images an unknown number."""
        if not isinstance(reader, PackedConv2D):
            return False
        if reader.groups > 1 and reader.layout.tile < self.columns:
            return True
        channels = rows // prod(reader.kernel_size)
        return bool(channels % self.rows) or not isinstance(TensorInfo.of(reader.x).shape[3], int)


def _is_for_products(pack: PackWeight) -> bool:
    """Whether packed products, and nothing else, read the weight."""
    readers = [use.owner for use in pack.result.uses]
    products = PackedConv2D | PackedGroupedMatMul | PackedMatMul
    return bool(readers) and all(isinstance(r, products) and r.weight == pack.result for r in readers)
