"""What ops that make or read packed weights require of them."""

from __future__ import annotations

from .errors import RelaxError
from .packed_layout import PackedLayout
from .size_relations import shape_text
from .struct_info import TensorInfo
from .symbolic import Dim

__all__ = ["require_columns", "require_elements", "require_panels"]


def require_elements(layout: PackedLayout, one_row: bool = False) -> PackedLayout:
    """The layout. Raises RelaxError for one of words or integers, which elements of any dtype are not in; or of neighbours."""
    if layout.word is not None or layout.offset or (one_row and layout.rows > 1):
        without = "a tile alone" if one_row else "a tile and rows alone"
        raise RelaxError(f"expected a layout of {without}, got '{layout}'")
    return layout


def require_panels(weight: TensorInfo, layout: PackedLayout, n: int, name: str = "n") -> None:
    """Raises RelaxError where a weight is not one of ``n`` columns in that layout, whatever rows it has."""
    shape, wanted = weight.shape, layout.shape(None, n)
    if len(shape) != len(wanted) or any(isinstance(d, int) and d != w for d, w in zip(shape[2:], wanted[2:], strict=True)):
        raise RelaxError(f"expected a weight of layout '{layout}', got {shape_text(shape)}")
    if not all(isinstance(d, int) for d in (shape[0], *shape[2:])):
        raise RelaxError(f"expected a packed weight of static panels, got {shape_text(shape)}")
    require_columns(shape[0], layout, n, name)


def require_columns(panels: Dim, layout: PackedLayout, n: int, name: str = "n") -> None:
    """Raises RelaxError where ``n`` columns are not so many panels."""
    if not isinstance(panels, int):
        raise RelaxError("expected a packed weight of static panels, got a dynamic number of them")
    least, most = (panels - 1) * layout.tile, panels * layout.tile
    if not least < n <= most:
        raise RelaxError(f"expected {name} in ({least}, {most}] for {panels} panels of {layout.tile}, got {n}")
