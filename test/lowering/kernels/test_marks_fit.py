"""A mark that does not fit the operation it is on is an error there, with the line; nothing is computed from it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

import pytest

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.lower import lower
from support.stages import lowered, target_named

#: Products of integers in words, of what integers in words stand for, and of pairs of bf16; of rows in groups, too.
TEXTS = {
    "integers": """
func.func @main(%x: tensor<4x64xi8>, %a: tensor<4x2xf32>, %b: tensor<4x2xi32>, %w: tensor<2x8x32xui32>,
                %s: tensor<2x2x32xf32>, %z: tensor<2x2x32xi8>) -> tensor<4x64xf32> {
  %r = "relax.quantized_matmul"(%x, %a, %b, %w, %s, %z) {layout = "tile 32, rows 4, u4x8", n = 64 : i64}
    : (tensor<4x64xi8>, tensor<4x2xf32>, tensor<4x2xi32>, tensor<2x8x32xui32>, tensor<2x2x32xf32>, tensor<2x2x32xi8>)
    -> tensor<4x64xf32>
  return %r : tensor<4x64xf32>
}""",
    "grouped integers": """
func.func @main(%x: tensor<4x64xi8>, %a: tensor<4x1xf32>, %b: tensor<4x1xi32>, %w: tensor<6x16x32x4xi8>,
                %s: tensor<6x1x32xf32>, %z: tensor<i32>, %e: tensor<3xi64>) -> tensor<4x64xf32> {
  %r = "relax.quantized_grouped_matmul"(%x, %a, %b, %w, %s, %z, %e) {layout = "tile 32, rows 4", n = 192 : i64}
    : (tensor<4x64xi8>, tensor<4x1xf32>, tensor<4x1xi32>, tensor<6x16x32x4xi8>, tensor<6x1x32xf32>, tensor<i32>, tensor<3xi64>)
    -> tensor<4x64xf32>
  return %r : tensor<4x64xf32>
}""",
    "grouped pairs": """
func.func @main(%x: tensor<4x64xbf16>, %w: tensor<6x32x32x2xbf16>, %e: tensor<3xi64>) -> tensor<4x64xf32> {
  %r = "relax.packed_grouped_matmul"(%x, %w, %e) {layout = "tile 32, rows 2", n = 192 : i64, out_dtype = f32}
    : (tensor<4x64xbf16>, tensor<6x32x32x2xbf16>, tensor<3xi64>) -> tensor<4x64xf32>
  return %r : tensor<4x64xf32>
}""",
    "words": """
func.func @main(%x: tensor<4x64xf32>, %w: tensor<2x8x32xui32> {relax.name = "w"}, %s: tensor<2x2x32xf32> {relax.name = "s"})
    -> tensor<4x64xf32> attributes {relax.num_input = 1 : i64} {
  %z = "relax.constant"() {value = dense<8> : tensor<i8>} : () -> tensor<i8>
  %q = "relax.unpack_nibbles"(%w) {axis = 1 : i64, dtype = ui4, size = 64 : i64}
    : (tensor<2x8x32xui32>) -> tensor<2x64x32xui4>
  %d = "relax.dequantize"(%q, %s, %z) : (tensor<2x64x32xui4>, tensor<2x2x32xf32>, tensor<i8>) -> tensor<2x64x32xf32>
  %r = "relax.packed_matmul"(%x, %d) {layout = "tile 32", n = 64 : i64}
    : (tensor<4x64xf32>, tensor<2x64x32xf32>) -> tensor<4x64xf32>
  return %r : tensor<4x64xf32>
}""",
    "words of four rows": """
func.func @main(%x: tensor<4x64xf32>, %w: tensor<2x8x32xui32> {relax.name = "w"}, %s: tensor<2x2x32xf32> {relax.name = "s"})
    -> tensor<4x64xf32> attributes {relax.num_input = 1 : i64} {
  %z = "relax.constant"() {value = dense<8> : tensor<i8>} : () -> tensor<i8>
  %q = "relax.unpack_nibbles"(%w) {axis = 1 : i64, dtype = ui4, layout = "tile 32, rows 4, u4x8", size = 64 : i64}
    : (tensor<2x8x32xui32>) -> tensor<2x64x32xui4>
  %d = "relax.dequantize"(%q, %s, %z) : (tensor<2x64x32xui4>, tensor<2x2x32xf32>, tensor<i8>) -> tensor<2x64x32xf32>
  %r = "relax.packed_matmul"(%x, %d) {layout = "tile 32", n = 64 : i64}
    : (tensor<4x64xf32>, tensor<2x64x32xf32>) -> tensor<4x64xf32>
  return %r : tensor<4x64xf32>
}""",
    "planes": """
func.func @main(%x: tensor<4x64xf32>, %w: tensor<2x8x32xui32> {relax.name = "w"}, %h: tensor<2x4x32xui32> {relax.name = "h"},
                %s: tensor<2x2x32xf32> {relax.name = "s"}) -> tensor<4x64xf32> attributes {relax.num_input = 1 : i64} {
  %z = "relax.constant"() {value = dense<32> : tensor<ui8>} : () -> tensor<ui8>
  %q = "relax.unpack_planes"(%w, %h) {layout = "tile 32, rows 8, u2x16", size = 64 : i64}
    : (tensor<2x8x32xui32>, tensor<2x4x32xui32>) -> tensor<2x64x32xui8>
  %d = "relax.dequantize"(%q, %s, %z) : (tensor<2x64x32xui8>, tensor<2x2x32xf32>, tensor<ui8>) -> tensor<2x64x32xf32>
  %r = "relax.packed_matmul"(%x, %d) {layout = "tile 32", n = 64 : i64}
    : (tensor<4x64xf32>, tensor<2x64x32xf32>) -> tensor<4x64xf32>
  return %r : tensor<4x64xf32>
}""",
    "pairs": """
func.func @main(%x: tensor<4x64xbf16>, %w: tensor<2x32x32x2xbf16>) -> tensor<4x64xf32> {
  %r = "relax.packed_matmul"(%x, %w) {layout = "tile 32, rows 2", n = 64 : i64, out_dtype = f32}
    : (tensor<4x64xbf16>, tensor<2x32x32x2xbf16>) -> tensor<4x64xf32>
  return %r : tensor<4x64xf32>
}""",
}
ROLES = 'roles = ["x", "x_scale", "weight", "scale", "zero", "x_sum"]'
LAYOUT = 'layout = "tile 32, rows 4, u4x8"'
Edit = Callable[[str], str]


@functools.cache
def kernels(name: str) -> str:
    """What kernels are made of."""
    return str(lowered(rx.Module.parse(TEXTS[name]), target_named("cpu:znver4"), "", upto="relax-plan-contractions"))


def to(old: str, new: str) -> Edit:
    def edit(text: str) -> str:
        assert text.count(old) == 1, (old, text)
        return text.replace(old, new)

    return edit


def among_marks(name: str, value: str) -> Edit:
    """Another value for an attribute of the contraction."""
    return lambda text: re.sub(rf'{name} = (\{{[^}}]*\}}|"[^"]*")', f"{name} = {value}", text, count=1)


def roles(*names: str) -> Edit:
    return to(ROLES, f"roles = [{', '.join(json(n) for n in names)}]")


def roles_of_groups(*names: str) -> Edit:
    """The same where rows are in groups."""
    return to(ROLES.replace("]", ', "ends"]'), f"roles = [{', '.join(json(n) for n in names)}]")


def json(name: str) -> str:
    return f'"{name}"'


def with_input(like: int, element: str, then: Edit) -> Edit:
    """One more input of the contraction, read like another one; in the body it is ``%more``."""

    def edit(text: str) -> str:
        head, generic = text.split("linalg.generic {", 1)
        found = re.search(r"indexing_maps = \[(.*?)\](.*?)ins\((.*?) : (.*?)\)", generic)
        assert found is not None
        maps, values, types = (found[i].split(", ") for i in (1, 3, 4))
        maps = [*maps[:-1], maps[like], maps[-1]]
        inputs = f"ins({', '.join([*values, values[like]])} : {', '.join([*types, types[like]])})"
        generic = generic.replace(found[0], f"indexing_maps = [{', '.join(maps)}]{found[2]}{inputs}", 1)
        return then(f"{head}linalg.generic {{{generic}".replace(", %out: ", f", %more: {element}, %out: ", 1))

    return edit


#: What is edited, how, and what is said about it.
MISFITS: dict[str, tuple[str, Edit, str]] = {
    "form": ("integers", among_marks("relax.integer_sums", "unit"), "expected relax.integer_sums such as {every = 32"),
    "layout": ("integers", to(LAYOUT, 'layout = "32 columns"'), "expected a packed layout such as 'tile 16, rows 4"),
    "number of roles": ("integers", roles("x", "x_scale", "weight"), "expected a role for each of 6 inputs, got 3"),
    "unknown role": (
        "integers",
        roles("x", "x_scale", "weights", "scale", "zero", "x_sum"),
        "expected roles among x, x_scale, weight, scale, zero, x_sum, ends, got weights",
    ),
    "missing role": (
        "integers",
        roles("x", "x_scale", "weight", "x_scale", "zero", "x_sum"),
        "expected one input of each role, got none that is scale",
    ),
    "role twice": (
        "integers",
        roles("x", "x_scale", "weight", "scale", "weight", "x_sum"),
        "expected one input of each role, got several that are weight",
    ),
    "no sums": (
        "integers",
        roles("x", "x_scale", "weight", "scale", "zero", "zero"),
        "expected x_sum where there are zero points, got roles x, x_scale, weight, scale, zero, zero",
    ),
    "rows as a weight": (
        "integers",
        roles("weight", "x_scale", "x", "scale", "zero", "x_sum"),
        "expected x of i8, got i32",
    ),
    "words as bytes": ("integers", to(LAYOUT, 'layout = "tile 32, rows 4"'), "expected weight of i8, got i32"),
    "scales as sums": (
        "integers",
        roles("x", "x_sum", "weight", "scale", "zero", "x_scale"),
        "expected x_sum of i32, got f32",
    ),
    "scales of columns as those of rows": (
        "integers",
        roles("x", "scale", "weight", "x_scale", "zero", "x_sum"),
        "expected x_scale to be the same for all columns, got one for each",
    ),
    "groups": (
        "integers",
        to("every = 32 : i64", "every = 24 : i64"),
        "expected steps of whole groups of 24, 8 at once, got 64",
    ),
    "long groups": (
        "integers",
        to("every = 32 : i64", "every = 64 : i64"),
        "expected x_scale to be the same for 64 steps, got others among them",
    ),
    "panels": (
        "integers",
        to(LAYOUT, 'layout = "tile 16, rows 4, u4x8"'),
        "expected a weight that is read as it is packed, 'tile 16, rows 4, u4x8', got memref<2x8x32xi32>",
    ),
    "order in words": (
        "integers",
        to(LAYOUT, 'layout = "tile 32, rows 2, u4x8"'),
        "expected step 1 of a body as marked to give -116.0, got -140.0",
    ),
    "sums in other steps": ("integers", to("arith.cmpi eq,", "arith.cmpi ne,"), "expected step 0 of a body as marked to give"),
    "scale in two forms": (
        "integers",
        to(
            "%18 = arith.mulf %in_0, %in_2 : f32",
            "%a = arith.addf %in_2, %in_2 : f32\n %b = arith.mulf %in_0, %a : f32\n %18 = arith.mulf %b, %in_2 : f32",
        ),
        "expected the body to use one value that is computed from scale, got 2",
    ),
    "an operation that is not known": (
        "integers",
        to("arith.shrsi", "arith.ceildivsi"),
        "expected integer operations in a body with marks, got 'arith.ceildivsi'",
    ),
    "rows of all groups": (
        "grouped integers",
        to("arith.andi", "arith.ori"),
        "expected rows of other groups to add nothing",
    ),
    "no ends of groups": (
        "grouped integers",
        roles_of_groups("x", "x_scale", "weight", "scale", "zero", "x_sum", "zero"),
        "expected a left factor that relax.row_groups masks by ends of groups",
    ),
    "panels of groups": (
        "grouped pairs",
        among_marks("relax.layout", '"tile 16, rows 2"'),
        "expected a right operand that is read as it is packed, 'tile 16, rows 2', got (d0, d1, d2, d3) -> (d2 * 2 +",
    ),
    "rows that nothing masks": (
        "grouped pairs",
        lambda text: re.sub(r"arith.select (%\w+), (%\w+), %cst\w* : f32", r"arith.addf \2, \2 : f32", text),
        "expected a left factor that relax.row_groups masks by ends of groups",
    ),
    "form of a word": ("words", to('relax.word = "u4x8"', "relax.word"), 'expected relax.word such as "u4x8", got unit'),
    "width of a word": ("words", to('relax.word = "u4x8"', 'relax.word = "u4x4"'), "expected a word of i16, got i32"),
    "order in a word": (
        "words",
        to("%c2_i32 = arith.constant 2", "%c2_i32 = arith.constant 1"),
        "expected step 1 to take the integer at bit 4 of a word, 2, got 11",
    ),
    "rows of a word": (
        "words of four rows",
        to('relax.word = "rows 4, u4x8"', 'relax.word = "rows 2, u4x8"'),
        "expected step 1 to take the integer at bit 16 of a word, 9, got 10",
    ),
    "rows that there are not": (
        "words of four rows",
        to('relax.word = "rows 4, u4x8"', 'relax.word = "rows 3, u4x8"'),
        'expected relax.word such as "u4x8", got "rows 3, u4x8"',
    ),
    "two words": (
        "words",
        with_input(1, "i32", to("arith.shrui %in_0, %3", "arith.shrui %in_0, %more")),
        "expected integers of one word, got those of 2",
    ),
    "form of two words": (
        "planes",
        to('relax.word = "u4x8+u2x16"', 'relax.word = "u4x8+u4x8"'),
        'expected relax.word such as "u4x8", got "u4x8+u4x8"',
    ),
    "width of high bits": (
        "planes",
        to('relax.word = "u4x8+u2x16"', 'relax.word = "u4x8"'),
        "expected integers of one word, got those of 2",
    ),
    "order of high bits": (
        "planes",
        to("arith.muli %8, %c2 : index", "arith.muli %8, %c3 : index"),
        "expected step 8 to take the integer at bit 0 of a word, 12, got 44",
    ),
    "form of a layout": ("pairs", among_marks("relax.layout", "unit"), "expected relax.layout such as 'tile 16, rows 4, u4x8"),
    "panels of pairs": (
        "pairs",
        among_marks("relax.layout", '"tile 64, rows 2"'),
        "expected a right operand that is read as it is packed, 'tile 64, rows 2', got (d0, d1, d2) -> (d1 floordiv 32,",
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_a_mark_that_does_not_fit_is_an_error_at_its_operation(case: str) -> None:
    name, edit, message = MISFITS[case]
    text = edit(kernels(name))
    assert text != kernels(name)
    with new_context(), ir.Location.unknown():
        module = ir.Operation.parse(text, source_name="kernel.mlir")
        with pytest.raises(RelaxError, match=re.escape(message)) as error:
            lower(module, "relax-plan-contractions,relax-lower-kernels")
    lines = text.split("\n")
    first = next(i for i, line in enumerate(lines, 1) if "relax.contraction" in line)
    last = next(i for i, line in enumerate(lines, 1) if i > first and "linalg.yield" in line)
    place = re.match(r"kernel\.mlir:(\d+):", str(error.value))
    assert place is not None
    assert first <= int(place[1]) <= last


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_not_edited_is_lowered(name: str) -> None:
    with new_context(), ir.Location.unknown():
        module = ir.Operation.parse(kernels(name))
        lower(module, "relax-plan-contractions,relax-lower-kernels")
    assert "linalg.generic" not in str(module)
