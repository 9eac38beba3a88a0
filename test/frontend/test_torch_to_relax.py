"""The conversion on its own: torch dialect text in, relax text out; needs no torch."""

from __future__ import annotations

import textwrap

import pytest

from relaxir import RelaxError
from relaxir.dialect.bindings import dialect_module, ir
from relaxir.dialect.context import new_context
from relaxir.dialect.symbolic import parse
from relaxir.frontend.ranges import at_least, at_most
from relaxir.frontend.torch_to_relax import convert_modules

LINEAR = """
    func.func @main(%x: !torch.vtensor<[?,4],f32> {relax.kind = "input", relax.name = "x"},
                    %w: !torch.vtensor<[8,4],f32> {relax.kind = "param", relax.name = "fc.weight"},
                    %unused: !torch.vtensor<[8],f32> {relax.kind = "param", relax.name = "fc.other"},
                    %b: !torch.vtensor<[8],f32> {relax.kind = "buffer", relax.name = "fc.bias"}) -> !torch.vtensor<[?,8],f32> {
      %n = torch.symbolic_int "batch" {min_val = 1, max_val = 32} : !torch.int
      torch.bind_symbolic_shape %x, [%n], affine_map<()[s0] -> (s0, 4)> : !torch.vtensor<[?,4],f32>
      %0 = torch.aten.linear %x, %w, %b : !torch.vtensor<[?,4],f32>, !torch.vtensor<[8,4],f32>, !torch.vtensor<[8],f32> -> !torch.vtensor<[?,8],f32>
      return %0 : !torch.vtensor<[?,8],f32>
    }
"""  # noqa: E501


def converted(text):
    context = new_context()
    dialect_module("torch").register_dialect(context)
    with context:
        module = convert_modules([ir.Module.parse(textwrap.dedent(text))])
        assert module.operation.verify()
        return str(module)


def body(result, *operands, types):
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    return f"func.func @f({arguments}) -> {result} {{\n" + "\n".join(operands) + f"\n  return %r : {result}\n}}"


def test_linear_becomes_ops_on_the_weight_and_a_product():
    text = converted(LINEAR)
    assert '%arg2: tensor<8xf32> {relax.kind = "buffer", relax.name = "fc.bias"}' in text
    assert "fc.other" not in text
    assert "relax.num_input = 1 : i64, relax.symbol_ranges = {batch = [1, 32]}" in text
    lines = [line.strip() for line in text.splitlines()]
    assert lines[2:5] == [
        '%0 = "relax.permute_dims"(%arg1) {axes = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>',
        '%1 = "relax.matmul"(%arg0, %0) : (tensor<?x4xf32, {sym = ["batch"]}>, tensor<4x8xf32>)'
        ' -> tensor<?x8xf32, {sym = ["batch"]}>',
        '%2 = "relax.add"(%1, %arg2) : (tensor<?x8xf32, {sym = ["batch"]}>, tensor<8xf32>)'
        ' -> tensor<?x8xf32, {sym = ["batch"]}>',
    ]


def test_a_size_that_only_torch_knows_is_checked():
    tensor = "!torch.vtensor<[?],f32>"
    text = converted(
        body(
            "!torch.vtensor<[8],f32>",
            '  %n = torch.symbolic_int "n" {min_val = 0, max_val = 9} : !torch.int',
            f"  torch.bind_symbolic_shape %a0, [%n], affine_map<()[s0] -> (s0)> : {tensor}",
            f"  %r = torch.aten.relu %a0 : {tensor} -> !torch.vtensor<[8],f32>",
            types=[tensor],
        )
    )
    assert '"relax.match_cast"(%0) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<8xf32>' in text


def test_another_symbol_is_checked():
    tensor = "!torch.vtensor<[?],f32>"
    text = converted(
        body(
            tensor,
            '  %n = torch.symbolic_int "n" {min_val = 0, max_val = 9} : !torch.int',
            '  %m = torch.symbolic_int "m" {min_val = 0, max_val = 9} : !torch.int',
            f"  torch.bind_symbolic_shape %a0, [%n], affine_map<()[s0] -> (s0)> : {tensor}",
            f"  %r = torch.aten.relu %a0 : {tensor} -> {tensor}",
            f"  torch.bind_symbolic_shape %r, [%m], affine_map<()[s0] -> (s0 * 2)> : {tensor}",
            types=[tensor],
        )
    )
    assert '"relax.match_cast"(%0) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["m * 2"]}>' in text


def test_sizes_without_symbols_stay_unknown():
    tensor = "!torch.vtensor<[?,3],si64>"
    text = converted(body(tensor, f"  %r = torch.aten.neg %a0 : {tensor} -> {tensor}", types=[tensor]))
    assert '"relax.negative"(%arg0) : (tensor<?x3xi64>) -> tensor<?x3xi64>' in text


def test_an_op_without_handler_names_it():
    tensor = "!torch.vtensor<[3],f32>"
    with pytest.raises(RelaxError, match=r"1 x aten\.special_airy_ai: no relax form"):
        converted(
            body(tensor, f'  %r = torch.operator "torch.aten.special_airy_ai"(%a0) : ({tensor}) -> {tensor}', types=[tensor])
        )


def test_a_result_of_another_type_than_torch_declares_is_an_error():
    with pytest.raises(RelaxError, match=r"expected a result of 3xi64, got 3xf32|expected"):
        converted(
            body(
                "!torch.vtensor<[3],si64>",
                "  %r = torch.aten.relu %a0 : !torch.vtensor<[4],si64> -> !torch.vtensor<[3],si64>",
                types=["!torch.vtensor<[4],si64>"],
            )
        )


@pytest.mark.parametrize("type_", ["!torch.vtensor<[2],complex<f32>>", "!torch.tensor", "!torch.int", "!torch.vtensor<*,f32>"])
def test_arguments_that_are_no_tensors_of_real_numbers_are_refused(type_):
    with pytest.raises(RelaxError, match=r"argument 0: expected"):
        converted(f"func.func @f(%r: {type_}) {{\n  return\n}}")


@pytest.mark.parametrize(("text", "low", "high"), [
    ("n", 2, 8), ("n * 2 - 1", 3, 15), ("8 - n", 0, 6), ("n * m", 0, None), ("n - m", None, 8),
    ("n // 2", 1, 4),
    ("5", 5, 5), ("(n - 9) // 2", -4, -1), ("n % 4", 0, 3), ("8 // n", None, None), ("(m - 9) // 2", -5, None),
    ("(n // 2) * m", 0, None),
    ("((n - 9) // 2) * m", None, None),
])  # fmt: skip
def test_bounds_of_expressions(text, low, high):
    ranges, dim = {"n": (2, 8)}, parse(text)
    assert at_least(dim, -1000 if low is None else low, ranges) == (low is not None)
    assert low is None or not at_least(dim, low + 1, ranges)
    assert at_most(dim, 1000 if high is None else high, ranges) == (high is not None)
    assert high is None or not at_most(dim, high - 1, ranges)
