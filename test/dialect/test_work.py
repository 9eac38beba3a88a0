"""The estimate of a function's work, per kind of op and through calls and regions; proofs about sizes with symbols."""

from __future__ import annotations

import pytest

import relaxir
from relaxir.dialect.analysis.size_bounds import is_at_most, symbol_ranges
from relaxir.dialect.analysis.work import Work, elements, product_flops, work
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.functions import find_function
from relaxir.dialect.parser import parse_module
from relaxir.dialect.reports.report import Report
from relaxir.dialect.reports.work import WorkSection
from relaxir.dialect.struct_info import TensorInfo, tensor_type
from relaxir.dialect.symbolic import parse


def work_of(text: str, name: str = "f") -> Work:
    module = parse_module(text, "-", new_context())
    return work(find_function(module, name))


def work_of_op(op: str, operands: str, result: str) -> tuple[object, object]:
    types = operands.split(" ") if operands else []
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    values = ", ".join(f"%a{i}" for i in range(len(types)))
    name, _, attributes = op.partition(" ")
    text = f'%0 = "relax.{name}"({values}) {{{attributes}}} : ({", ".join(types)}) -> {result}'
    found = work_of(f"func.func @f({arguments}) -> {result} {{ {text}\n return %0 : {result} }}")
    assert found.notes == ()
    return found.flops, found.bytes


@pytest.mark.parametrize(
    ("op", "operands", "result", "flops", "moved"),
    [
        ("matmul", "tensor<2x3xf32> tensor<3x5xf32>", "tensor<2x5xf32>", 2 * 2 * 3 * 5, 4 * (6 + 15 + 10)),
        ("matmul", "tensor<3xf16> tensor<7x3x5xf16>", "tensor<7x5xf16>", 2 * 7 * 3 * 5, 2 * (3 + 105 + 35)),
        ('packed_matmul layout = "tile 8", n = 5 : i64', "tensor<2x3xf32> tensor<1x3x8xf32>", "tensor<2x5xf32>",
         60, 4 * (6 + 24 + 10)),
        ('quantized_matmul layout = "tile 8, rows 4", n = 12 : i64',
         "tensor<16xi8> tensor<2xf32> tensor<2xi32> tensor<2x4x8x4xui8> tensor<2x2x8xf32> tensor<i32>", "tensor<12xf32>",
         2 * 12 * 16, 16 + 8 + 8 + 256 + 128 + 4 + 48),
        ('quantized_matmul layout = "tile 8, rows 4", n = 12 : i64, parts = true',
         "tensor<3x2x16xi8> tensor<3x2x2xf32> tensor<3x2x2xi32> tensor<2x4x8x4xui8> tensor<2x2x8xf32> tensor<i32>",
         "tensor<2x12xf32>", 2 * 3 * 2 * 12 * 16, 96 + 48 + 48 + 256 + 128 + 4 + 96),
        ("conv2d", "tensor<1x4x8x8xf32> tensor<6x4x3x3xf32>", "tensor<1x6x6x6xf32>", 2 * 216 * 36, 4 * (256 + 216 + 216)),
        ('conv2d data_layout = "NHWC", kernel_layout = "HWIO"', "tensor<1x8x8x4xf32> tensor<3x3x4x6xf32>",
         "tensor<1x6x6x6xf32>", 2 * 216 * 36, 4 * (256 + 216 + 216)),
        ('packed_conv2d channels = 6 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 8"',
         "tensor<1x8x8x4xf32> tensor<1x36x8xf32>", "tensor<1x6x6x6xf32>", 2 * 216 * 36, 4 * (256 + 288 + 216)),
        ('packed_quantized_conv2d channels = 6 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 8, rows 4"',
         "tensor<1x8x8x4xi8> tensor<1x9x8x4xi8> tensor<i8>", "tensor<1x6x6x6xi32>", 2 * 216 * 36, 256 + 288 + 1 + 4 * 216),
        ('winograd_conv2d channels = 6 : i64, layout = "tile 8"',
         "tensor<1x9x8x4xf32> tensor<1x64x8xf32>", "tensor<1x7x6x6xf32>", 2 * 12 * 6 * 64, 4 * (288 + 512 + 252)),
        ("attention", "tensor<1x2x3x4xf32> tensor<1x2x5x4xf32> tensor<1x2x5x6xf32>", "tensor<1x2x3x6xf32>",
         30 * (8 + 12 + 5), 4 * (24 + 40 + 60 + 36)),
        ("add", "tensor<2x3xf32> tensor<3xf32>", "tensor<2x3xf32>", 6, 4 * (6 + 3 + 6)),
        ("softmax", "tensor<2x3xf16>", "tensor<2x3xf16>", 30, 2 * 12),
        ("sum axis = array<i64: 1>", "tensor<2x3xf32>", "tensor<2xf32>", 6, 4 * 8),
        ("max_pool2d pool_size = array<i64: 2, 2>", "tensor<1x1x3x3xf32>", "tensor<1x1x2x2xf32>", 16, 4 * 13),
        ("astype dtype = f16", "tensor<6xf32>", "tensor<6xf16>", 0, 36),
        ("permute_dims", "tensor<2x3xi8>", "tensor<3x2xi8>", 0, 12),
        ("concat", "tensor<2xi4> tensor<3xi4>", "tensor<5xi4>", 0, 1 + 2 + 3),
        ("take", "tensor<100x4xf32> tensor<3xi64>", "tensor<3x4xf32>", 0, 2 * 48 + 24),
        ("reshape", "tensor<2x3xf32>", "tensor<6xf32>", 0, 0),
        ("strided_slice axes = array<i64: 0>, begin = [1], end = [3]", "tensor<6xf32>", "tensor<2xf32>", 0, 0),
        ("strided_slice axes = array<i64: 0>, begin = [0], end = [6], strides = array<i64: 2>", "tensor<6xf32>",
         "tensor<3xf32>", 0, 36),
        ("full value = 1.0 : f64", "", "tensor<6xf32>", 0, 24),
        ("greater", "tensor<6xf32> tensor<6xf32>", "tensor<6xi1>", 6, 54),
    ],
)  # fmt: skip
def test_work_of_ops(op, operands, result, flops, moved):
    assert work_of_op(op, operands, result) == (flops, moved)


X = 'tensor<?x4xf32, {sym = ["n"]}>'


def test_work_with_symbols():
    found = work_of(f'func.func @f(%x: {X}) -> {X} {{ %0 = "relax.exp"(%x) : ({X}) -> {X}\n return %0 : {X} }}')
    assert (str(found.flops), str(found.bytes)) == ("n * 4", "n * 32")
    assert found.at({"n": 3}) == Work(12, 96)
    assert str(found) == "n * 4 operations, n * 32 bytes"
    assert found + found.at({"n": 1}) == Work(found.flops + 4, found.bytes + 32)


def test_work_of_calls_and_regions():
    text = f"""
    func.func private @g(%x: {X}) -> {X} {{ %0 = "relax.exp"(%x) : ({X}) -> {X}
      return %0 : {X} }}
    func.func private @declared(%x: {X})
    func.func private @again(%x: {X}) {{ call @again(%x) : ({X}) -> ()
      return }}
    func.func @f(%x: {X}, %c: i1, %i: index, %u: tensor<?xf32>, %d: tensor<4xf32>) {{
      %0 = call @g(%x) : ({X}) -> {X}
      %1 = call @g(%0) : ({X}) -> {X}
      call @declared(%x) : ({X}) -> ()
      call @again(%x) : ({X}) -> ()
      %2 = scf.if %c -> {X} {{
        %3 = "relax.negative"(%x) : ({X}) -> {X}
        scf.yield %3 : {X}
      }} else {{
        scf.yield %x : {X}
      }}
      %4 = scf.for %k = %i to %i step %i iter_args(%a = %x) -> ({X}) {{
        %5 = "relax.add"(%a, %x) : ({X}, {X}) -> {X}
        scf.yield %5 : {X}
      }}
      %6 = "relax.exp"(%u) : (tensor<?xf32>) -> tensor<?xf32>
      %7 = tensor.cast %d : tensor<4xf32> to tensor<?xf32>
      return
    }}
    """
    found = work_of(text)
    assert str(found.flops) == "n * 16"
    assert str(found.bytes) == "n * 144"
    assert found.notes == (
        "all branches of scf.if counted",
        "call of @again not counted",
        "call of @declared not counted",
        "relax.exp of unknown size not counted",
        "scf.for counted as one iteration",
        "tensor.cast not counted",
    )
    assert str(found).startswith("n * 16 operations, n * 144 bytes (all branches")
    assert work_of(text, "declared") == Work()


def test_sizes_of_products():
    with new_context(), ir.Location.unknown():
        wide, tall, unknown = (TensorInfo.of(tensor_type(s, ir.F32Type.get())) for s in (["n", 4], [4, "m"], [4, None]))
        assert str(product_flops(wide, tall)) == "m * n * 8"
        assert product_flops(wide, unknown) is None
        assert str(elements(wide)) == "n * 4"
        assert elements(unknown) is None


@pytest.mark.parametrize(
    ("small", "large", "ranges", "proven"),
    [
        ("3", "3", {}, True),
        ("4", "3", {}, False),
        ("n", "n * 2", {}, True),
        ("n * 2", "n", {}, False),
        ("n + 1", "n * 2", {}, True),  # a symbol is 1 or more
        ("n + 2", "n * 2", {}, False),
        ("n + 2", "n * 2", {"n": (2, None)}, True),
        ("n", "8", {"n": (1, 8)}, True),
        ("n", "8", {"n": (1, 9)}, False),
        ("n", "8", {}, False),
        ("n * m", "n + m", {"n": (1, 2), "m": (1, 2)}, True),
        ("n * m", "n + m", {"n": (1, 2)}, False),
        ("n * n", "4", {"n": (1, 2)}, False),  # not linear, so corners prove nothing
        ("n // 2", "n", {}, False),
        ("a + b + c + d + e + f + g", "7", dict.fromkeys("abcdefg", (1, 1)), False),  # too many corners
        ("n", "n * 1 + n * 0", {}, True),
    ],
)
def test_proofs_about_sizes(small, large, ranges, proven):
    assert is_at_most(parse(small), parse(large), ranges) == proven


def test_ranges_of_symbols():
    text = "func.func @f() attributes {relax.symbol_ranges = {n = [1, 8], m = [0], k = [2, -1]}} { return }"
    module = parse_module(f"{text} func.func @g() {{ return }}", "-", new_context())
    assert symbol_ranges(find_function(module, "f")) == {"n": (1, 8), "m": (0, None), "k": (2, None)}
    assert symbol_ranges(find_function(module, "g")) == {}


def test_pipelines_report_the_run_time_work_they_change():
    text = """func.func @main(%x: tensor<?x4xf32, {sym = ["n"]}>, %a: tensor<4x8xf32>, %b: tensor<8x4xf32>)
        -> tensor<?x4xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
      %0 = "relax.matmul"(%a, %b) : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
      %1 = "relax.matmul"(%x, %0) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
      return %1 : tensor<?x4xf32, {sym = ["n"]}>
    }"""
    module = relaxir.Module.parse(text).run("cse")
    assert not any(isinstance(s, WorkSection) for s in module.report.sections)
    lifted = module.run("relax-lift-transform-params").run("relax-pack-weights{tile=8}").run("cse")
    (section,) = (s for s in lifted.report.sections if isinstance(s, WorkSection))
    assert (section.function, section.flops_before, section.flops_after) == ("main", "n * 32 + 256", "n * 32")
    bytes_of_packing = 4 * 4 * 4 + 4 * 8 * 4
    assert section.bytes_after == f"n * 32 + {bytes_of_packing + 4 * 8 * 4}"
    assert "n * 32 operations instead of n * 32 + 256" in str(lifted.report)
    assert Report.of_json(lifted.report.as_json()).sections == lifted.report.sections
