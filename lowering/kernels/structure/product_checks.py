"""Whether a product of integers is what its mark says: element types, where inputs are read, and the body on sample numbers."""

from __future__ import annotations

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ...integer_product import IntegerProduct
from ..emit.linear_index import FloorDivision, Linear
from .match import Contraction
from .nest import Operand
from .roles import OF_ROWS, Roles
from .row_groups import GroupedContraction
from .sample import Number, Sample

__all__ = ["check_product"]

# Some number of each role, and of the sum before.
_NUMBERS: dict[str, Number] = {"x": -3, "x_scale": 2.0, "scale": 4.0, "zero": 7, "x_sum": 5}
_BEFORE = 100.0
# Eight different integers in a word; as a byte, one whose sign matters.
_WORD, _BYTE = 0x1FD96A2C, 200


def check_product(contraction: Contraction, roles: Roles) -> None:
    """Raises RelaxError at the contraction where its mark does not fit."""
    try:
        _check_types(roles)
        _check_places(contraction, roles)
        _check_body(contraction, roles)
    except RelaxError as error:
        if error.location is not None:
            raise
        raise RelaxError(str(error), contraction.nest.operation.location) from None


def _check_types(roles: Roles) -> None:
    layout = roles.product.layout
    wanted = {"x": 8, "x_sum": 32, "weight": 8 if layout.word is None else layout.word.width}
    for role, width in wanted.items():
        operand = roles.operand(role)
        if operand is not None and operand.argument.type != ir.IntegerType.get_signless(width, operand.argument.context):
            raise RelaxError(f"expected {role} of i{width}, got {operand.argument.type}")


def _check_places(contraction: Contraction, roles: Roles) -> None:
    k, n, layout = contraction.k, contraction.n, roles.product.layout
    depth, every = contraction.nest.extents[k].static, roles.product.every
    if depth is None or depth % every or every % layout.step:
        raise RelaxError(f"expected steps of whole groups of {every}, {layout.step} at once, got {depth}")
    for operand in roles.operands(*OF_ROWS):
        if n in operand.offset.dims():
            raise RelaxError(f"expected {roles.role_of(operand)} to be the same for all columns, got one for each")
    for operand in roles.operands("x_scale", "x_sum", "scale", "zero"):
        if not _is_steady(operand, k, every):
            raise RelaxError(f"expected {roles.role_of(operand)} to be the same for {every} steps, got others among them")
    weight = roles.operand("weight")
    assert weight is not None
    place = layout.place(Linear.dim(k), _column(contraction), Linear.floordiv)
    if weight.buffer is None or len(weight.buffer.strides) != len(place) or weight.buffer.linear(place) != weight.offset:
        raise RelaxError(f"expected a weight that is read as it is packed, '{layout}', got {weight.value.type}")


def _column(contraction: Contraction) -> Linear:
    """The column of the weight: of all groups together where rows are in such."""
    column, columns = Linear.dim(contraction.n), contraction.nest.extents[contraction.n]
    if not isinstance(contraction, GroupedContraction) or contraction.groups.dim is None:
        return column
    return column + Linear.dim(contraction.groups.dim).scaled(columns)


def _is_steady(operand: Operand, k: int, every: int) -> bool:
    """Whether what is read is the same for so many steps of k."""
    for atom, _ in operand.offset.terms:
        if atom == k or (not isinstance(atom, int) and k in atom.inner.dims() and not _is_by(atom, k, every)):
            return False
    return True


def _is_by(floor: FloorDivision, k: int, every: int) -> bool:
    return floor.inner == Linear.dim(k) and floor.divisor % every == 0


def _check_body(contraction: Contraction, roles: Roles) -> None:
    """Computes steps of the first two groups of integers that are read at once, and the first one of a second group."""
    product, layout = roles.product, roles.product.layout
    (result,) = contraction.nest.body()[1]
    given = {roles.value(role): _NUMBERS[role] for role in ("x_scale", "scale", "zero") if role in product.roles}
    given |= {o.argument: _NUMBERS[roles.role_of(o)] for o in roles.operands("x", "x_sum")}
    # The first row is of the first group, in front of which none ends.
    given |= {o.argument: 1 for o in roles.operands("ends")}
    given |= {op.results[0]: 0 for op in roles.operations if op.name == "memref.load" and "ends" in product.roles}
    (weight,), (before,) = roles.operands("weight"), contraction.nest.outputs
    given |= {weight.argument: _BYTE if layout.word is None else _WORD, before.argument: _BEFORE}
    for step in (*range(layout.step), product.every):
        found = Sample(given, {contraction.k: step}).of(result)
        if found != _expected(product, step):
            raise RelaxError(f"expected step {step} of a body as marked to give {_expected(product, step)}, got {found}")
    others = {o.argument: 0 for o in roles.operands("ends")}
    if others and Sample(given | others, {}).of(result) != _BEFORE:
        raise RelaxError("expected rows of other groups to add nothing")


def _expected(product: IntegerProduct, step: int) -> Number:
    word, integer = product.layout.word, _BYTE if product.is_unsigned else _BYTE - 256
    if word is not None:
        integer = _WORD >> word.places(product.layout.rows)[step % word.count] & (1 << word.bits) - 1
    zero = product.zero or (_NUMBERS["zero"] if "zero" in product.roles else 0)
    exact = _NUMBERS["x"] * integer - (_NUMBERS["x_sum"] * zero if step % product.every == 0 else 0)
    return _BEFORE + exact * _NUMBERS["x_scale"] * _NUMBERS["scale"]
