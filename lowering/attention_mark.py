"""What a kernel of attention computes, as an attribute of its function: where elements of operands are, how scores are made.

::

    func.func private @attention_0(%q, %k, %v, %mask, %out) attributes {relax.kernel, relax.attention_kernel = {
      causal = false, scale = 1.250000e-01 : f64, sizes = [2, -1, 64],
      maps = [(b, h, i, d) -> (b, i, h, d), (b, g, j, d) -> (b, j, g, d), (b, g, j, e) -> (b, j, g, e),
              (b, h, i, j) -> (b, 0, 0, j), (b, h, i, e) -> (b, h, i, e)]}}

The maps are those of query, key, value, a mask if there is one, and the result, from the indices that the op has them at:
any number of batch indices, head (``g``: head of keys), row or key, element. Arguments between the operands and the result are
memory to work in. The body of the function is the same computation in loops: who builds another kernel need not read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..dialect.bindings import func, ir
from ..dialect.errors import RelaxError
from .marks import ATTENTION
from .plain_attributes import from_attribute, to_attribute

__all__ = ["AttentionMark"]

_UNKNOWN = -1


@dataclass(frozen=True)
class AttentionMark:
    """The attribute.

    Attributes:
        maps: of query, key, value, perhaps a mask, and the result.
        sizes: heads of keys, keys, and elements of a key; None for one that its operand's type says.
        scale: what scores are multiplied by.
        causal: whether row i sees the keys up to i only.
    """

    maps: tuple[ir.AffineMap, ...]
    sizes: tuple[int | None, ...]
    scale: float
    causal: bool

    @staticmethod
    def of(function: func.FuncOp) -> AttentionMark | None:
        """What a function is marked with, None for others. Raises RelaxError at one whose mark does not fit it."""
        if ATTENTION not in function.attributes:
            return None
        attribute = function.attributes[ATTENTION]
        try:
            mark = _parsed(attribute)
        except (KeyError, TypeError, ValueError):
            text = "{causal = false, maps = [...], scale = 0.125 : f64, sizes = [2, -1, 64]}"
            raise RelaxError(f"expected {ATTENTION} such as {text}, got {attribute}", function.location) from None
        mark._check(function)
        return mark

    def mark(self) -> dict[str, ir.Attribute]:
        """This, as a function says it."""
        entries = {
            "causal": self.causal,
            "maps": [ir.AffineMapAttr.get(m) for m in self.maps],
            "scale": ir.FloatAttr.get(ir.F64Type.get(), self.scale),
            "sizes": [_UNKNOWN if size is None else size for size in self.sizes],
        }
        return {ATTENTION: to_attribute(entries)}

    @property
    def has_mask(self) -> bool:
        return len(self.maps) == 5

    def operands(self, function: func.FuncOp) -> list[ir.Value]:
        """Query, key, value, perhaps a mask, and the result, as arguments of the function."""
        arguments = list(function.regions[0].blocks[0].arguments)
        return [*arguments[: len(self.maps) - 1], arguments[-1]]

    def _check(self, function: func.FuncOp) -> None:
        ranks = [_rank(a.type) for a in function.regions[0].blocks[0].arguments]
        if len(self.maps) not in (4, 5) or len(ranks) < len(self.maps):
            raise RelaxError(
                f"expected {ATTENTION} of 4 or 5 arguments, got {len(self.maps)} of {len(ranks)}", function.location
            )
        found = [len(m.results) for m in self.maps]
        expected = [*ranks[: len(found) - 1], ranks[-1]]
        dims = {m.n_dims for m in self.maps}
        if found != expected or len(dims) != 1 or min(dims) < 3:
            raise RelaxError(
                f"expected {ATTENTION} with maps to {_listed(expected)} indices, got {_listed(found)}", function.location
            )


def _parsed(attribute: ir.Attribute) -> AttentionMark:
    entries = ir.DictAttr(attribute)
    maps = tuple(ir.AffineMapAttr(m).value for m in ir.ArrayAttr(entries["maps"]))
    groups, keys, depth = from_attribute(entries["sizes"])
    sizes = tuple(None if size == _UNKNOWN else int(size) for size in (groups, keys, depth))
    return AttentionMark(maps, sizes, ir.FloatAttr(entries["scale"]).value, ir.BoolAttr(entries["causal"]).value)


def _rank(kind: ir.Type) -> int:
    return kind.rank if isinstance(kind, ir.ShapedType) else -1


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
