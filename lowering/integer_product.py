"""What a contraction of quantized integers multiplies, as an attribute of its ``linalg.generic``: who each input is.

::

    linalg.generic {relax.contraction, relax.integer_sums = {every = 32, roles = ["x", "x_scale", "weight", "scale", "zero",
        "x_sum"], layout = "tile 16, rows 4, u4x8", unsigned}} ins(...) outs(...)

Per step of k the body adds ``x_scale * scale * (x * integer of the weight - correction)``, where the correction, in the first
step of the ``every`` that have one scale, is ``x_sum * zero``: the sums of rows, computed once, take zero points out. Rows in
groups (:data:`~.marks.ROW_GROUPS`) have a matrix each by ``ends``, and others add 0. A kernel reads the roles and computes
whole groups of steps; what makes an input wider in the body, in front of that, it computes as it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.packed_layout import PackedLayout
from .marks import INTEGER_SUMS

__all__ = ["INTEGERS", "IntegerProduct"]

#: Whose integers instructions read from memory as they are.
INTEGERS = ("x", "weight")
_NEEDED = ("x", "x_scale", "weight", "scale")
_ROLES = (*_NEEDED, "zero", "x_sum", "ends")
_EXPECTED = '{every = 32 : i64, layout = "tile 16, rows 4", roles = ["x", "x_scale", "weight", "scale"], unsigned = true}'


@dataclass(frozen=True)
class IntegerProduct:
    """The attribute.

    Attributes:
        roles: who each input is; several inputs may be what one is computed from.
        layout: how the weight is packed.
        every: how many steps of k have one scale.
        is_unsigned: whether 8-bit integers of the weight are.
        zero: the zero point of all columns where it is known, else None: then it has a role, or there is none.
    """

    roles: tuple[str, ...]
    layout: PackedLayout
    every: int
    is_unsigned: bool
    zero: int | None = None

    @staticmethod
    def of(operation: ir.Operation) -> IntegerProduct | None:
        """What a ``linalg.generic`` is marked with, None for others. Raises RelaxError at one whose mark does not fit it."""
        if INTEGER_SUMS not in operation.attributes:
            return None
        attribute = operation.attributes[INTEGER_SUMS]
        try:
            product = _parsed(attribute)
        except (KeyError, TypeError, ValueError):
            raise RelaxError(f"expected {INTEGER_SUMS} such as {_EXPECTED}, got {attribute}", operation.location) from None
        except RelaxError as error:
            raise RelaxError(str(error), operation.location) from None
        product._check(operation)
        return product

    def mark(self) -> dict[str, ir.Attribute]:
        """This, as an operation says it."""
        i64 = ir.IntegerType.get_signless(64)
        entries: dict[str, ir.Attribute] = {
            "every": ir.IntegerAttr.get(i64, self.every),
            "layout": ir.StringAttr.get(str(self.layout)),
            "roles": ir.ArrayAttr.get([ir.StringAttr.get(r) for r in self.roles]),
            "unsigned": ir.BoolAttr.get(self.is_unsigned),
        }
        if self.zero is not None:
            entries["zero"] = ir.IntegerAttr.get(i64, self.zero)
        return {INTEGER_SUMS: ir.DictAttr.get(entries)}

    def with_inputs(self, counts: Sequence[int]) -> IntegerProduct:
        """The same where so many inputs stand in the place of each."""
        roles = tuple(role for role, count in zip(self.roles, counts, strict=True) for _ in range(count))
        return IntegerProduct(roles, self.layout, self.every, self.is_unsigned, self.zero)

    def _check(self, operation: ir.Operation) -> None:
        inputs = ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"])[0]
        if len(self.roles) != inputs:
            raise RelaxError(f"expected a role for each of {inputs} inputs, got {len(self.roles)}", operation.location)
        wrong = next((role for role in self.roles if role not in _ROLES), None)
        if wrong is not None:
            raise RelaxError(f"expected roles among {', '.join(_ROLES)}, got {wrong}", operation.location)
        missing = next((role for role in _NEEDED if role not in self.roles), None)
        twice = next((role for role in (*INTEGERS, "x_sum", "ends") if self.roles.count(role) > 1), None)
        if missing is not None or twice is not None:
            got = f"none that is {missing}" if missing is not None else f"several that are {twice}"
            raise RelaxError(f"expected one input of each role, got {got}", operation.location)
        if ("x_sum" in self.roles) != ("zero" in self.roles or self.zero is not None):
            raise RelaxError(
                f"expected x_sum where there are zero points, got roles {', '.join(self.roles)}", operation.location
            )


def _parsed(attribute: ir.Attribute) -> IntegerProduct:
    entries = ir.DictAttr(attribute)
    return IntegerProduct(
        tuple(ir.StringAttr(role).value for role in ir.ArrayAttr(entries["roles"])),
        PackedLayout.parse(ir.StringAttr(entries["layout"]).value),
        ir.IntegerAttr(entries["every"]).value,
        ir.BoolAttr(entries["unsigned"]).value,
        ir.IntegerAttr(entries["zero"]).value if "zero" in entries else None,
    )
