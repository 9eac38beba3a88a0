"""Index arithmetic as kernels are built: constants are added last and once, equal operations are one."""

from __future__ import annotations

import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.lowering.kernels.emit.emitter import Emitter


@pytest.fixture
def parts():
    """An emitter at the end of a function, and the function's two arguments."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @f(%x: index, %y: index) { return }")
        block = module.body.operations[0].regions[0].blocks[0]
        emitter = Emitter(block)
        last = list(block.operations)[-1].operation
        with emitter.before(last):
            yield emitter, *block.arguments


def text(value: ir.Value) -> str:
    """What a value is, with the values of constants."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return "xy"[value.arg_number]
    if owner.name == "arith.constant":
        return str(ir.IntegerAttr(owner.attributes["value"]).value)
    sign = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*"}[owner.name]
    return f"({sign.join(text(v) for v in owner.operands)})"


def test_constants_are_added_last_and_once(parts):
    em, x, y = parts
    further = em.add(em.add(x, em.number(3)), em.number(4))
    assert text(further) == "(x+7)"
    assert text(em.add(em.number(1), further)) == "(x+8)"
    assert text(em.add(further, em.add(y, em.number(1)))) == "((x+y)+8)"
    assert text(em.mul(further, em.number(32))) == "((x*32)+224)"
    assert text(em.mul(em.number(32), further)) == "((x*32)+224)"
    assert text(em.sub(further, em.add(y, em.number(9)))) == "((x-y)+-2)"
    assert em.add(further, em.number(-7)) == x
    assert em.constant(2, em.index) == em.number(2)


def test_what_cancels_is_a_constant(parts):
    em, x, _ = parts
    assert text(em.sub(em.add(x, em.number(5)), x)) == "5"
    assert text(em.sub(em.number(5), em.number(7))) == "-2"
    assert text(em.sub(em.number(0), x)) == "(0-x)"
    assert text(em.mul(em.number(3), em.number(4))) == "12"
    assert text(em.mul(em.add(x, em.number(5)), em.number(0))) == "0"
    assert em.mul(x, em.number(1)) == x


def test_a_product_of_sums_is_one_of_values(parts):
    em, x, y = parts
    assert text(em.mul(em.add(x, em.number(1)), y)) == "((x+1)*y)"


def test_equal_operations_are_one_in_a_block_and_not_in_another(parts):
    em, x, y = parts
    inside = []
    total = em.add(x, y)
    assert em.add(x, y) == total
    em.loop(em.number(0), x, 1, lambda i, _: (inside.append(em.add(x, y)), ())[1])
    assert inside[0] != total
    assert em.add(x, y) == total


def test_other_types_are_left_as_they_are(parts):
    em, _, _ = parts
    one = em.constant(1, em.i32)
    assert text(em.add(em.add(one, one), one)) == "((1+1)+1)"
