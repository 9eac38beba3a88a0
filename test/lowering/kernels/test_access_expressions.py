"""Index expressions of kernels: whatever they simplify to has the value of the affine expression they were read from."""

import itertools
import random

import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.kernels.emit.linear_index import FloorDivision, Linear, Size, from_affine

EXPRESSIONS = [
    "d0", "d0 + d1 * 3 - 5", "d0 floordiv 32", "d0 mod 32", "(d0 + 16) floordiv 32", "(d0 * 32 + d1) floordiv 32",
    "(d0 * 32 + d1) mod 32", "-d0 + 7", "(-d0 + 69) floordiv 4", "(-d0 * 3 + 200) mod 11", "d0 ceildiv 4",
    "((d0 + d1) floordiv 3) mod 5", "(d0 * 6 + 4) floordiv 4", "(d0 mod 48) mod 32", "((d0 mod 48) mod 32) floordiv 5",
    "((-d0 + 70) mod 48 + d1) floordiv 7", "(d0 floordiv 3) floordiv 4", "(d0 floordiv 3 + 5) mod 4",
]  # fmt: skip


def random_expression(rng, depth):
    """Of two dimensions, with floordiv and mod inside of each other."""
    if depth == 0:
        return rng.choice(("d0", "d1", "d0", str(rng.randrange(9))))
    x, y = (random_expression(rng, rng.randrange(depth)) for _ in range(2))
    kinds = (f"({x} + {y})", f"({x}) * {rng.randrange(-4, 5)}", f"({x} - {y})")
    divisor = rng.choice((1, 2, 3, 5, 8, 16, 48))
    inner = random_expression(rng, depth - 1)
    return rng.choice((*kinds, f"(({inner}) floordiv {divisor})", f"(({inner}) mod {divisor})"))


EXPRESSIONS += [random_expression(random.Random(seed), 5) for seed in range(40)]


def parse(expression):
    return ir.AffineMapAttr(ir.Attribute.parse(f"affine_map<(d0, d1) -> ({expression})>")).value.results[0]


def value(linear, dims):
    total = linear.constant.static
    for atom, factor in linear.terms:
        if isinstance(atom, FloorDivision):
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
        form, first = linear.lanes(0, width, {0: width}), value(linear, (start, 3))
        for lane in range(width):
            moved = sum(r.factor.static * difference(r, (start, 3), lane, width) for r in form.ragged)
            assert first + form.step.static * lane + moved == python(expression, (start + lane, 3))


def difference(ragged, dims, lane, width):
    """By how much a floordiv differs from that of the first lane, which is within what it says it can be."""
    inner = value(ragged.inner, dims)
    moved = ragged.step * lane + sum(p.factor.static * difference(p, dims, lane, width) for p in ragged.parts)
    found = (inner + moved) // ragged.divisor - inner // ragged.divisor
    low, high = ragged.reach(width)
    assert low <= found <= high
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_value_within_bounds(expression):
    with ir.Context():
        linear = from_affine(parse(expression))
    for extents in ({0: 1, 1: 1}, {0: 5, 1: 3}, {0: 16, 1: 48}, {0: 33}):
        simple, (least, most) = linear.bounded(extents), linear.range(extents)
        for dims in itertools.product(range(extents[0]), range(min(3, extents.get(1, 60)))):
            assert value(simple, dims) == python(expression, dims)
            assert least <= value(simple, dims) <= most


def test_a_slice_of_a_slice_is_read_as_it_is():
    with ir.Context():
        linear = from_affine(parse("(d0 mod 48) mod 64"))
    assert linear.bounded({0: 32}) == Linear.dim(0)


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
    assert inner % 32 == Linear.of(16)
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
