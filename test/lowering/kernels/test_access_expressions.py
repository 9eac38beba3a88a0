"""Index expressions of kernels: whatever they simplify to has the value of the affine expression they were read from."""

import itertools

import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cpu.kernels.index_math import Floor, Linear, Size, from_affine

EXPRESSIONS = [
    "d0", "d0 + d1 * 3 - 5", "d0 floordiv 32", "d0 mod 32", "(d0 + 16) floordiv 32", "(d0 * 32 + d1) floordiv 32",
    "(d0 * 32 + d1) mod 32", "-d0 + 7", "(-d0 + 69) floordiv 4", "(-d0 * 3 + 200) mod 11", "d0 ceildiv 4",
    "((d0 + d1) floordiv 3) mod 5", "(d0 * 6 + 4) floordiv 4",
]  # fmt: skip


def parse(expression):
    return ir.AffineMapAttr(ir.Attribute.parse(f"affine_map<(d0, d1) -> ({expression})>")).value.results[0]


def value(linear, dims):
    total = linear.constant.static
    for atom, factor in linear.terms:
        if isinstance(atom, Floor):
            total += factor.static * (value(atom.inner, dims) // atom.divisor)
        else:
            total += factor.static * dims[atom]
    return total


def python(expression, dims):
    text = expression.replace("floordiv", "//").replace("mod", "%")
    if "ceildiv" in text:
        left, right = text.split("ceildiv")
        text = f"-(-({left}) // {right})"
    return eval(text, {}, {"d0": dims[0], "d1": dims[1]})


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_value_shift_and_lanes(expression):
    with ir.Context():
        linear = from_affine(parse(expression))
    for d0, d1 in itertools.product((0, 1, 15, 16, 31, 32, 48, 63), (0, 1, 5)):
        assert value(linear, (d0, d1)) == python(expression, (d0, d1))
        assert value(linear.shifted(0, 7, {}), (d0, d1)) == python(expression, (d0 + 7, d1))
    for start, width in ((0, 16), (16, 16), (32, 32), (48, 8)):
        try:
            form = linear.lanes(0, width, {0: width})
        except RelaxError:
            continue
        first = value(linear, (start, 3))
        for lane in range(width):
            moved = sum(
                r.factor.static
                * ((value(r.inner, (start, 3)) + r.step * lane) // r.divisor - value(r.inner, (start, 3)) // r.divisor)
                for r in form.ragged
            )
            assert first + form.step.static * lane + moved == python(expression, (start + lane, 3))


def test_packed_access_is_contiguous_when_the_vector_divides_the_panel():
    with ir.Context():
        panel, lane = from_affine(parse("d0 floordiv 32")), from_affine(parse("d0 mod 32"))
    offset = panel.scaled(Size.symbol((0, 1)).scaled(32)) + lane
    assert offset.lanes(0, 16, {0: 16}).contiguous
    assert not offset.lanes(0, 16, {0: 8}).contiguous
    assert not offset.lanes(0, 64, {0: 64}).contiguous


def test_a_tile_inside_a_panel_needs_no_division():
    inner = Linear.dim(0).scaled(32) + Linear.of(16)
    assert inner.floordiv(32) == Linear.dim(0)
    assert inner.mod(32) == Linear.of(16)
    assert (Linear.dim(0) + Linear.of(16)).floordiv(32, {0: 32}) == Linear.dim(0).floordiv(32)


def test_sizes_cancel():
    n = Size.symbol((0, 3))
    assert (n + n.scaled(-1)).static == 0
    assert (n * Size.of(2) + Size.of(1)).static is None
    assert (n * Size.symbol((0, 1))) == (Size.symbol((0, 1)) * n)


def test_symbols_in_maps_are_refused():
    with ir.Context():
        symbol = ir.AffineMapAttr(ir.Attribute.parse("affine_map<(d0)[s0] -> (d0 + s0)>")).value.results[0]
        with pytest.raises(RelaxError, match="expected an index map without symbols"):
            from_affine(symbol)
