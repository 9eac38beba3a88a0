"""How the kernels of a module's target want weights of products in memory: an attribute of the module, which passes read.

::

    module attributes {relax.weight_layouts = {bf16_rows = 2, columns = 32, int8_rows = 4, int8_unsigned = true}} {

``relax-set-target`` and ``relaxir.compile`` write it. Passes that rearrange weights read here what their options leave open.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import ClassVar

from .bindings import ir
from .errors import RelaxError

__all__ = ["WeightLayouts"]

# Fields that are written where they are not the defaults.
_OPTIONAL = {"int8_groups", "int8_exact", "panels"}


@dataclass(frozen=True)
class WeightLayouts:
    """What a target's kernels read weights as; the defaults are for a module that names no target.

    Attributes:
        columns: columns per panel; 1: matrices are packed column by column, those of floats, too, whatever ``panels`` says.
        bf16_rows: rows of a bf16 weight that are neighbours in a panel; 1: no row has one.
        int8_rows: the same of a weight of integers whose activations are integers, too; 1: such products are not made.
        int8_unsigned: whether 8-bit integers of such a weight are unsigned.
        int8_groups: whether such a weight may have integers of four bits, and groups of rows with scales of their own; else it
            has bytes, and each sum one scale. Written where it may not.
        int8_exact: how many rows of a weight of integers have to have one scale for products of bytes to take so little that
            rows of floats are several of bytes each, all digits of them; bytes with one scale for a column are enough. 0: they
            never do. Written where they do.
        panels: whether factors of matrix products are packed in panels and widened first, at run time as well; else products
            read them as they are, but for quantized weights. Written where they are not.
    """

    ATTRIBUTE: ClassVar[str] = "relax.weight_layouts"
    columns: int = 32
    bf16_rows: int = 1
    int8_rows: int = 4
    int8_unsigned: bool = True
    int8_groups: bool = True
    int8_exact: int = 0
    panels: bool = True

    @staticmethod
    def of(module: ir.Operation) -> WeightLayouts:
        """What a module says, or the defaults. Raises RelaxError where it says other fields, or numbers below 1."""
        name = WeightLayouts.ATTRIBUTE
        if name not in module.attributes:
            return WeightLayouts()
        attribute = module.attributes[name]
        found = {a.name: a.attr for a in attribute} if isinstance(attribute, ir.DictAttr) else {}
        expected = {f.name: ir.BoolAttr if isinstance(f.default, bool) else ir.IntegerAttr for f in fields(WeightLayouts)}
        required = expected.keys() - _OPTIONAL
        if not required <= found.keys() <= expected.keys() or not all(isinstance(a, expected[key]) for key, a in found.items()):
            raise RelaxError(f"expected {name} with {', '.join(sorted(required))}, got {attribute}", module.location)
        numbers = {k: ir.IntegerAttr(found[k]).value for k, kind in expected.items() if kind is ir.IntegerAttr and k in found}
        if min(numbers.values()) < 1:
            raise RelaxError(f"expected positive numbers in {name}, got {attribute}", module.location)
        flags = {key: ir.BoolAttr(found[key]).value for key, kind in expected.items() if kind is ir.BoolAttr and key in found}
        return WeightLayouts(**numbers, **flags)

    def write(self, module: ir.Operation) -> None:
        """Writes the attribute, in place."""
        with module.context:
            i64 = ir.IntegerType.get_signless(64)
            defaults = asdict(WeightLayouts())
            values = [(k, v) for k, v in asdict(self).items() if k not in _OPTIONAL or v != defaults[k]]
            module.attributes[self.ATTRIBUTE] = ir.DictAttr.get(
                {k: ir.BoolAttr.get(v) if isinstance(v, bool) else ir.IntegerAttr.get(i64, v) for k, v in values}
            )
