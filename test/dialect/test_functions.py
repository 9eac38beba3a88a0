"""Reading and changing functions: names, inputs and weights, types."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relaxir.dialect import functions
from relaxir.dialect.bindings import func, ir
from relaxir.dialect.context import new_context
from relaxir.dialect.errors import RelaxError

CONTEXT = new_context()
TEXT = """
  func.func @main(%x: tensor<4xf32> {relax.name = "x"}, %w: tensor<4xf32>) -> (tensor<4xf32> {relax.name = "y"}, tensor<4xf32>)
      attributes {relax.num_input = 1 : i64} {
    return %w, %x : tensor<4xf32>, tensor<4xf32>
  }
  func.func @main_transform_params() attributes {relax.transform_for = @main} { return }
  func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
"""


@pytest.fixture
def module() -> Iterator[ir.Module]:
    with CONTEXT, ir.Location.unknown():
        yield ir.Module.parse(TEXT)


def find(module: ir.Module, name: str) -> func.FuncOp:
    return functions.find_function(module, name)


def test_a_transform_is_for_functions(module: ir.Module) -> None:
    function = find(module, "main_transform_params")
    function.attributes["relax.transform_for"] = ir.StringAttr.get("main")
    message = r"'func.func' op expected a function, or a list of them, for relax.transform_for, got \"main\""
    with pytest.raises(RelaxError, match=message):
        functions.transform_targets(function)


def test_finding(module: ir.Module) -> None:
    for op in (module, module.operation):
        assert [functions.name_of(f) for f in functions.functions(op)] == ["main", "main_transform_params", "declared"]
    message = "expected one of the functions @main, @main_transform_params, @declared, got @other"
    with pytest.raises(RelaxError, match=message):
        find(module, "other")
    with pytest.raises(RelaxError, match=r"expected one of the functions \(none\), got @f"):
        functions.find_function(ir.Module.create(), "f")


def test_visibility(module: ir.Module) -> None:
    assert [functions.is_private(f) for f in functions.functions(module)] == [False, False, True]


def test_bodies(module: ir.Module) -> None:
    main = find(module, "main")
    block = functions.body_of(main)
    assert block is not None
    assert functions.terminator(block).name == "func.return"
    assert functions.returned_values(main) == [block.arguments[1], block.arguments[0]]
    assert functions.body_of(find(module, "declared")) is None
    with pytest.raises(RelaxError, match="expected a function with a body, got the declaration @declared"):
        functions.returned_values(find(module, "declared"))


def test_inputs_and_weights(module: ir.Module) -> None:
    main = find(module, "main")
    assert functions.num_input(main) == 1
    assert functions.num_input(find(module, "declared")) is None
    functions.set_num_input(main, 2)
    assert functions.num_input(main) == 2


@pytest.mark.parametrize("value", ["3 : i64", "-1 : i64", '"one"'])
def test_inputs_that_cannot_be(module: ir.Module, value: str) -> None:
    main = find(module, "main")
    main.attributes["relax.num_input"] = ir.Attribute.parse(value)
    with pytest.raises(RelaxError, match=f"'func.func' op expected relax.num_input between 0 and 2, got {value}"):
        functions.num_input(main)


def test_transform_for(module: ir.Module) -> None:
    assert functions.transform_for(find(module, "main_transform_params")) == "main"
    assert functions.transform_for(find(module, "main")) is None


def test_names(module: ir.Module) -> None:
    main = find(module, "main")
    assert functions.argument_names(main) == ["x", None]
    assert functions.result_names(main) == ["y", None]
    assert functions.argument_names(find(module, "declared")) == [None]
    functions.set_names(main, [None, "w"], ["a", "b"])
    assert functions.argument_names(main) == [None, "w"]
    assert functions.result_names(main) == ["a", "b"]
    functions.set_names(main, [None, None], [None, None])
    assert "arg_attrs" not in main.attributes
    assert "res_attrs" not in main.attributes
    assert module.operation.verify()


def test_update_type(module: ir.Module) -> None:
    main = find(module, "main")
    block = functions.body_of(main)
    assert block is not None
    for argument in block.arguments:
        argument.set_type(ir.Type.parse("tensor<5xf32>"))
    functions.update_type(main)
    assert module.operation.verify()
    assert "tensor<4xf32>" not in str(main)
    declared = find(module, "declared")
    before = str(declared)
    functions.update_type(declared)
    assert str(declared) == before
