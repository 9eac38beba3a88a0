"""The operations of a kernel as a convolution by Winograd's filtering: products, results of them, and what is made of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from .....dialect.errors import RelaxError
from .....dialect.packed_layout import PackedLayout
from .....dialect.traversal import erase_with_users
from ....kernels.emit.buffers import Buffers
from ....kernels.structure.match import Contraction, MatchedGroup, find_group, match_contraction
from ....marks import LAYOUT, WINOGRAD
from ....winograd_loops import CHANNEL, products_places, results_places
from ..windows.frame import MadeFrame, find_frame

__all__ = ["WinogradGroup", "find_winograd", "is_products"]


@dataclass(frozen=True)
class WinogradGroup:
    """Operations that become one kernel.

    Attributes:
        products: sums of products of transformed tiles and filters.
        filled: the fill of these, where it is a ``linalg.generic`` already.
        results: what is made of them, with its fill and its epilogue.
        frame: what makes a frame around the image, where the kernel does.
    """

    products: ir.Operation
    filled: ir.Operation | None
    results: MatchedGroup
    frame: MadeFrame | None

    def contraction(self, memory: Buffers) -> Contraction:
        """The products. Raises RelaxError where marked operations are none."""
        found, results = match_contraction(self.products, memory), self.results.contraction
        if found is None or found.n != CHANNEL or not _reads(self.products, products_places(self._tile())):
            message = "'linalg.generic' op expected products of tiles and filters, as it is marked"
            raise RelaxError(message, self.products.location)
        if not _reads(results, results_places()) or results.operands[0] != self._sums:
            raise RelaxError("'linalg.generic' op expected results of products, as it is marked", results.location)
        return found

    def _tile(self) -> int:
        """Columns of a panel."""
        if LAYOUT not in self.products.attributes:
            return 1
        return PackedLayout.parse(ir.StringAttr(self.products.attributes[LAYOUT]).value).tile

    @property
    def _sums(self) -> ir.Value:
        return self.products.operands[len(self.products.operands) - 1]

    @property
    def operations(self) -> list[ir.Operation]:
        """All of them, last ones first."""
        group = self.results
        found = [group.epilogue, group.contraction, group.fill, self.products, self.filled]
        found += [] if self.frame is None else [self.frame.copy, self.frame.fill]
        return [op for op in found if op is not None]

    def erase(self) -> None:
        """Erases the operations, and the buffers between them."""
        sums, temporary, frame = self._sums, self.results.temporary, None if self.frame is None else self.frame.buffer
        for operation in self.operations:
            operation.erase()
        for buffer in (temporary, sums, frame):
            if buffer is not None:
                erase_with_users(buffer.owner.operation)


def find_winograd(found: Sequence[ir.Operation]) -> WinogradGroup | None:
    """The convolution that operations on buffers are marked as, None where none is. Raises RelaxError for a part of one."""
    marked = {ir.StringAttr(op.attributes[WINOGRAD]).value: op for op in found if WINOGRAD in op.attributes}
    if not marked:
        return None
    siblings = [o.operation for o in found[0].block.operations]
    products, results = marked.get("products"), marked.get("results")
    if products is None or results is None:
        raise RelaxError("'linalg.generic' op expected products and results, as it is marked", found[0].location)
    frame = find_frame(products.operands[0], found)
    return WinogradGroup(products, find_group(products, siblings).fill, find_group(results, siblings), frame)


def is_products(operation: ir.Operation) -> bool:
    """Whether an operation is marked as the products of such a convolution."""
    return WINOGRAD in operation.attributes and ir.StringAttr(operation.attributes[WINOGRAD]).value == "products"


def _reads(operation: ir.Operation, places: Sequence[Sequence[ir.AffineExpr]]) -> bool:
    """Whether operands are read and written at these places."""
    maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(operation.attributes["indexing_maps"])]
    return [list(m.results) for m in maps] == [list(place) for place in places]
