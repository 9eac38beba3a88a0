"""evaluate(): arguments, symbols, calls and errors of single ops, with every message it can give."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from relaxir.dialect import context
from relaxir.dialect.bindings import func, ir
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.reference.interpreter import evaluate

Array = np.ndarray[Any, Any]


CONTEXT = context.new_context()


def parse(text: str) -> ir.Module:
    with CONTEXT:
        return ir.Module.parse(text)


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


MODEL = parse("""
  func.func @main(%x: tensor<?x4xf16, {sym = ["n"]}> {relax.name = "x"}, %q: tensor<3x4xf32> {relax.name = "q.weight"})
      -> tensor<?x3xf16, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
    %t = "relax.permute_dims"(%q) {axes = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %h = "relax.astype"(%t) {dtype = f16} : (tensor<4x3xf32>) -> tensor<4x3xf16>
    %y = "relax.matmul"(%x, %h) : (tensor<?x4xf16, {sym = ["n"]}>, tensor<4x3xf16>) -> tensor<?x3xf16, {sym = ["n"]}>
    return %y : tensor<?x3xf16, {sym = ["n"]}>
  }
""")
X, Q = np.arange(8, dtype=np.float16).reshape(2, 4), np.eye(3, 4, dtype=np.float32)


# Arguments


def test_a_model() -> None:
    (y,) = evaluate(MODEL, "main", [X], {"q.weight": Q})
    np.testing.assert_array_equal(y, X[:, :3])
    assert y.dtype == np.float16


def test_an_operation_is_a_module_too() -> None:
    (y,) = evaluate(MODEL.operation, "main", [X], {"q.weight": Q})
    np.testing.assert_array_equal(y, X[:, :3])


@pytest.mark.parametrize(
    ("inputs", "weights", "message"),
    [
        ([], {"q.weight": Q}, "expected 1 inputs for @main, got 0"),
        ([X, X], {"q.weight": Q}, "expected 1 inputs for @main, got 2"),
        ([X], {}, "expected weights 'q.weight' of @main, got none"),
        ([X], None, "expected weights 'q.weight' of @main, got none"),
        ([X], {"q": Q}, "expected weights 'q.weight' of @main, got others"),
        ([X], {"q.weight": Q, "k.weight": Q}, "expected only weights 'q.weight' for @main, got 'k.weight'"),
        ([X.astype(np.float32)], {"q.weight": Q}, "expected input 'x' of dtype f16, got f32"),
        ([X.astype("M8[s]")], {"q.weight": Q}, r"expected input 'x' of dtype f16, got datetime64\[s\]"),
        ([X[0]], {"q.weight": Q}, r"expected input 'x' of shape \[n, 4\], got \[4\]"),
        ([X[:, :3]], {"q.weight": Q}, r"expected input 'x' of shape \[n, 4\], got \[2, 3\]"),
        ([X], {"q.weight": Q.T}, r"expected weight 'q.weight' of shape \[3, 4\], got \[4, 3\]"),
        ([X], {"q.weight": Q.astype(np.float64)}, "expected weight 'q.weight' of dtype f32, got f64"),
    ],
)
def test_arguments_that_do_not_fit(inputs: list[Array], weights: dict[str, Array] | None, message: str) -> None:
    with pytest.raises(RelaxError, match=f"^{message}$"):
        evaluate(MODEL, "main", inputs, weights)


def test_long_lists_of_weights_are_cut() -> None:
    arguments = ", ".join(f'%w{i}: tensor<f32> {{relax.name = "w{i}"}}' for i in range(8))
    module = parse(f"func.func @main({arguments}) attributes {{relax.num_input = 0 : i64}} {{ return }}")
    with pytest.raises(RelaxError, match=r"^expected weights 'w0', 'w1', 'w2', 'w3', 'w4' and 3 more of @main, got none$"):
        evaluate(module, "main", [])


def test_unknown_function() -> None:
    with pytest.raises(RelaxError, match="expected one of the functions @main, got @other"):
        evaluate(MODEL, "other", [])


def test_declaration() -> None:
    module = parse("func.func private @f(tensor<4xf32>) -> tensor<4xf32>")
    with pytest.raises(RelaxError, match="expected a function with a body, got the declaration @f"):
        evaluate(module, "f", [f32(1, 2, 3, 4)])


def test_without_num_input_everything_is_an_input() -> None:
    module = parse("""func.func @add(%x: tensor<2xf32>, %y: tensor<2xf32> {relax.name = "y"}) -> tensor<2xf32> {
      %0 = "relax.add"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }""")
    assert evaluate(module, "add", [f32(1, 2), f32(3, 4)])[0].tolist() == [4, 6]
    with pytest.raises(RelaxError, match="expected no weights for @add, got 'y'"):
        evaluate(module, "add", [f32(1, 2), f32(3, 4)], {"y": f32(3, 4)})
    with pytest.raises(RelaxError, match=r"expected input 'input0' of shape \[2\], got \[3\]"):
        evaluate(module, "add", [f32(1, 2, 3), f32(3, 4)])


def test_unnamed_weights_go_by_position() -> None:
    module = parse("""func.func @f(%x: tensor<2xf32>, %w: tensor<2xf32>) -> tensor<2xf32>
        attributes {relax.num_input = 1 : i64} {
      return %w : tensor<2xf32>
    }""")
    assert evaluate(module, "f", [f32(1, 2)], {"weight1": f32(3, 4)})[0].tolist() == [3, 4]


def test_lists_and_scalars_become_arrays() -> None:
    module = parse("""func.func @f(%x: tensor<2xf64>, %i: index, %c: i1, %s: f32) -> (tensor<2xf64>, tensor<1xf32>) {
      %t = tensor.from_elements %s : tensor<1xf32>
      return %x, %t : tensor<2xf64>, tensor<1xf32>
    }""")
    x, s = evaluate(module, "f", [[1.0, 2.0], 3, True, 0.5])
    assert x.tolist() == [1, 2]
    assert s.tolist() == [0.5]
    with pytest.raises(RelaxError, match=r"expected input 'input1' to be a number of type index, got float64 \[2\]"):
        evaluate(module, "f", [[1.0, 2.0], [1.0, 2.0], True, 0.5])
    with pytest.raises(RelaxError, match="expected input 'input3' to be a number of type f32, got <U1"):
        evaluate(module, "f", [[1.0, 2.0], 1, True, "s"])


def test_objects_pass_through() -> None:
    module = parse("""func.func @f(%o: !relax.object, %x: tensor<1xf32>) -> tensor<1xf32> { return %x : tensor<1xf32> }""")
    assert evaluate(module, "f", [object(), f32(1)])[0].tolist() == [1]


def test_results_are_the_callers() -> None:
    module = parse("""func.func @f(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
      %y = "relax.abs"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %x, %x, %y, %y : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    }""")
    x = f32(1, -2)
    results = evaluate(module, "f", [x])
    for i, result in enumerate(results):
        result[0] = 10 + i
    assert x.tolist() == [1, -2]
    assert [r[0] for r in results] == [10, 11, 12, 13]


def test_results_are_in_c_order() -> None:
    module = parse("func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> { return %x : tensor<2x3xf32> }")
    (y,) = evaluate(module, "f", [np.ones((3, 2), np.float32).T])
    assert y.flags.c_contiguous


# Symbols


def bind(signature: str, *arrays: Array) -> None:
    evaluate(parse(f"func.func @f({signature}) {{ return }}"), "f", list(arrays))


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def test_symbols_agree_across_arguments() -> None:
    two = '%x: tensor<?xf32, {sym = ["n"]}> {relax.name = "x"}, %y: tensor<?x?xf32, {sym = ["n", "m"]}> {relax.name = "y"}'
    bind(two, zeros(3), zeros(3, 5))
    bind(two, zeros(0), zeros(0, 0))
    message = "expected argument 'y' of @f at dimension 0 with size 3 .'n' from argument 'x' of @f at dimension 0., got 4"
    with pytest.raises(RelaxError, match=message):
        bind(two, zeros(3), zeros(4, 5))


def test_symbols_are_solved_for() -> None:
    double = '%x: tensor<?xf32, {sym = ["n * 2"]}>, %y: tensor<?xf32, {sym = ["n + 1"]}>'
    bind(double, zeros(6), zeros(4))
    with pytest.raises(RelaxError, match=r"expected a size of the form 'n [*] 2', got 5"):
        bind(double, zeros(5), zeros(4))
    with pytest.raises(RelaxError, match=r"'input1' of @f at dimension 0 with size 4 .'n [+] 1' from argument 'input0'.*got 5"):
        bind(double, zeros(6), zeros(5))
    with pytest.raises(RelaxError, match=r"expected a size of the form 'n [+] 4', got 3"):
        bind('%x: tensor<?xf32, {sym = ["n + 4"]}>', zeros(3))


def test_symbols_are_solved_in_any_order() -> None:
    first = '%x: tensor<?x?xf32, {sym = ["n * m", "k + m"]}>'
    chain = first + ', %y: tensor<?xf32, {sym = ["k"]}>, %z: tensor<?xf32, {sym = ["n"]}>'
    bind(chain, zeros(6, 5), zeros(3), zeros(3))
    with pytest.raises(RelaxError, match=r"expected a size of the form 'm \* n', got 7"):
        bind(chain, zeros(7, 5), zeros(3), zeros(3))


def test_divisions_are_checked_when_known() -> None:
    floor = '%x: tensor<?xf32, {sym = ["n // 2"]}>, %y: tensor<?xf32, {sym = ["n"]}>'
    bind(floor, zeros(3), zeros(7))
    with pytest.raises(RelaxError, match=r"with size 3 .*got 4"):
        bind(floor, zeros(4), zeros(7))
    with pytest.raises(RelaxError, match="expected no division by zero in '4 // n', got n = 0"):
        bind('%x: tensor<?xf32, {sym = ["4 // n"]}>, %y: tensor<?xf32, {sym = ["n"]}>', zeros(4), zeros(0))


def test_an_expression_that_nothing_solves_still_is_one_size() -> None:
    product = '%x: tensor<?xf32, {sym = ["n * m"]}>, %y: tensor<?xf32, {sym = ["m * n"]}>'
    bind(product, zeros(6), zeros(6))
    with pytest.raises(RelaxError, match=r"with size 6 .'m [*] n' from argument 'input0'.*got 7"):
        bind(product, zeros(6), zeros(7))


def test_shapes_come_from_symbols() -> None:
    module = parse("""func.func @f(%x: tensor<?xf32, {sym = ["n"]}>)
        -> (tensor<?x2xf32, {sym = ["n + 1"]}>, tensor<?xi64, {sym = ["n"]}>, tensor<i64>, tensor<?xf32, {sym = ["n - 1"]}>) {
      %0 = "relax.full"() {value = 1.0 : f64} : () -> tensor<?x2xf32, {sym = ["n + 1"]}>
      %1 = "relax.arange"() {start = [0], end = ["n"], step = [1]} : () -> tensor<?xi64, {sym = ["n"]}>
      %2 = "relax.shape_value"() {value = ["n * n"]} : () -> tensor<i64>
      %3 = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [1], end = ["n"]}
        : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n - 1"]}>
      return %0, %1, %2, %3
        : tensor<?x2xf32, {sym = ["n + 1"]}>, tensor<?xi64, {sym = ["n"]}>, tensor<i64>, tensor<?xf32, {sym = ["n - 1"]}>
    }""")
    for n in (1, 4):
        ones, counted, squared, tail = evaluate(module, "f", [np.arange(n, dtype=np.float32)])
        assert ones.shape == (n + 1, 2)
        assert counted.tolist() == list(range(n))
        assert squared == n * n
        assert tail.tolist() == list(range(1, n))


def test_a_symbol_without_a_value() -> None:
    module = parse("""func.func @f() -> tensor<?xf32, {sym = ["k"]}> {
      %0 = "relax.full"() {value = 1.0 : f64} : () -> tensor<?xf32, {sym = ["k"]}>
      return %0 : tensor<?xf32, {sym = ["k"]}>
    }""")
    with pytest.raises(RelaxError, match=r"'relax.full' op expected a value for every symbol of 'k', got none for k") as error:
        evaluate(module, "f", [])
    assert error.value.location is not None


def test_match_cast_binds_and_checks() -> None:
    module = parse("""func.func @f(%x: tensor<?x?xf32>) -> tensor<?xf32, {sym = ["n"]}> {
      %0 = "relax.match_cast"(%x) : (tensor<?x?xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
      %1 = "relax.full"() {value = 0.0 : f64} : () -> tensor<?xf32, {sym = ["n"]}>
      return %1 : tensor<?xf32, {sym = ["n"]}>
    }""")
    assert evaluate(module, "f", [zeros(3, 4)])[0].shape == (3,)
    message = "'relax.match_cast' op expected an operand with size 4 at dimension 1, got 5"
    with pytest.raises(RelaxError, match=message) as error:
        evaluate(module, "f", [zeros(3, 5)])
    assert str(error.value).startswith(str(error.value.location))


def test_match_cast_against_a_known_symbol() -> None:
    module = parse("""func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32, {sym = ["n"]}>) {
      %0 = "relax.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["n"]}>
      return
    }""")
    evaluate(module, "f", [zeros(3), zeros(3)])
    message = "expected an operand at dimension 0 with size 4 .'n' from argument 'input1' of @f at dimension 0., got 3"
    with pytest.raises(RelaxError, match=message):
        evaluate(module, "f", [zeros(3), zeros(4)])


# Calls


def test_callees_have_symbols_of_their_own() -> None:
    module = parse("""
      func.func private @ones(%x: tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}> {
        %0 = "relax.full"() {value = 1.0 : f64} : () -> tensor<?xf32, {sym = ["n"]}>
        return %0 : tensor<?xf32, {sym = ["n"]}>
      }
      func.func private @swap(%a: tensor<?xf32, {sym = ["n"]}>, %b: tensor<?xf32, {sym = ["n"]}>)
          -> (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>) {
        return %b, %a : tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>
      }
      func.func @main(%x: tensor<?xf32, {sym = ["n"]}>) -> (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>) {
        %0 = func.call @ones(%x) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}>
        %1:2 = func.call @swap(%0, %x) : (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>)
            -> (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>)
        return %1#0, %1#1 : tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>
      }
    """)
    first, second = evaluate(module, "main", [f32(5, 6)])
    assert first.tolist() == [5, 6]
    assert second.tolist() == [1, 1]


def test_endless_recursion() -> None:
    module = parse("""func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = func.call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }""")
    with pytest.raises(RelaxError, match="expected calls nested at most 1001 deep, got more") as error:
        evaluate(module, "f", [f32(1, 2)])
    assert error.value.location is not None


def test_deep_recursion_that_ends() -> None:
    """900 calls deep: far beyond what Python's own stack would carry."""
    module = parse("""func.func @count(%n: i64, %x: tensor<1xf32>) -> tensor<1xf32> {
      %zero = arith.constant 0 : i64
      %one = arith.constant 1 : i64
      %done = arith.cmpi eq, %n, %zero : i64
      %r = scf.if %done -> (tensor<1xf32>) {
        scf.yield %x : tensor<1xf32>
      } else {
        %less = arith.subi %n, %one : i64
        %y = "relax.add"(%x, %x) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
        %s = "relax.clip"(%y) {max = 8.0 : f64} : (tensor<1xf32>) -> tensor<1xf32>
        %c = func.call @count(%less, %s) : (i64, tensor<1xf32>) -> tensor<1xf32>
        scf.yield %c : tensor<1xf32>
      }
      return %r : tensor<1xf32>
    }""")
    assert evaluate(module, "count", [900, f32(1)])[0].tolist() == [8]


def test_calls_of_what_cannot_be_run() -> None:
    module = parse("""
      func.func private @extern(tensor<2xf32>) -> tensor<2xf32>
      func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
        %0 = func.call @extern(%x) : (tensor<2xf32>) -> tensor<2xf32>
        return %0 : tensor<2xf32>
      }
      func.func @branches(%c: i1) {
        cf.cond_br %c, ^bb1, ^bb1
      ^bb1:
        return
      }
      func.func @foreign(%x: tensor<2xf32>) -> tensor<2xf32> {
        %0 = math.exp %x : tensor<2xf32>
        return %0 : tensor<2xf32>
      }
    """)
    with pytest.raises(RelaxError, match="expected a function with a body, got the declaration @extern"):
        evaluate(module, "f", [f32(1, 2)])
    with pytest.raises(RelaxError, match="expected a function of one block, got several in @branches"):
        evaluate(module, "branches", [True])
    with pytest.raises(RelaxError, match=r"expected an op with reference semantics, got 'math.exp'") as error:
        evaluate(module, "foreign", [f32(1, 2)])
    assert error.value.location is not None


# Errors of single ops


def test_errors_of_ops_have_their_name_and_place() -> None:
    module = parse("""func.func @f(%x: tensor<4xf32>, %i: tensor<2xi64>) -> tensor<2xf32> {
      %0 = "relax.take"(%x, %i) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32> loc("model.py":12:5)
      return %0 : tensor<2xf32>
    }""")
    with pytest.raises(RelaxError, match=r"^model.py:12:5: 'relax.take' op expected indices in \[-4, 4\), got 9$"):
        evaluate(module, "f", [f32(1, 2, 3, 4), np.array([0, 9])])


def test_sizes_that_meet_only_at_run_time() -> None:
    module = parse("""func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "relax.add"(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }
    func.func @g(%x: tensor<?xf32>) -> tensor<4xf32> {
      %0 = "relax.abs"(%x) : (tensor<?xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }""")
    assert evaluate(module, "f", [zeros(3), zeros(3)])[0].shape == (3,)
    for size in (1, 2):  # what types do not say to be 1 does not repeat
        with pytest.raises(
            RelaxError,
            match=r"'relax.add' op expected broadcastable shapes, got \[\?\] and \[\?\]: "
            rf"expected dimension 0 of rhs to be {size}, got 3",
        ):
            evaluate(module, "f", [zeros(size), zeros(3)])
    assert evaluate(module, "g", [zeros(4)])[0].shape == (4,)
    with pytest.raises(
        RelaxError,
        match=r"'relax.abs' op expected result tensor<\?xf32>, got tensor<4xf32>: expected dimension 0 of x to be 4, got 3",
    ):
        evaluate(module, "g", [zeros(3)])


def test_dtypes_without_numpy() -> None:
    module = parse("func.func @f(%x: tensor<2xf80>) { return }")
    with pytest.raises(RelaxError, match="expected an element type such as 'f32', got f80"):
        evaluate(module, "f", [zeros(2)])


def test_many_results_and_split() -> None:
    module = parse("""func.func @f(%x: tensor<6xbf16>) -> (tensor<2xbf16>, tensor<2xbf16>) {
      %0:3 = "relax.split"(%x) {sections = 3 : i64} : (tensor<6xbf16>) -> (tensor<2xbf16>, tensor<2xbf16>, tensor<2xbf16>)
      return %0#2, %0#0 : tensor<2xbf16>, tensor<2xbf16>
    }""")
    last, first = evaluate(module, "f", [np.arange(6).astype(ml_dtypes.bfloat16)])
    assert last.tolist() == [4, 5]
    assert first.tolist() == [0, 1]


def test_poison_is_some_value_of_its_type() -> None:
    module = parse("""func.func @f(%x: tensor<?xf32, {sym = ["n"]}>) -> (tensor<?xf32, {sym = ["n"]}>, tensor<?x2xi8>, index) {
      %0 = ub.poison : tensor<?xf32, {sym = ["n"]}>
      %1 = ub.poison : tensor<?x2xi8>
      %2 = ub.poison : index
      return %0, %1, %2 : tensor<?xf32, {sym = ["n"]}>, tensor<?x2xi8>, index
    }""")
    found = evaluate(module, "f", [f32(1, 2, 3)])
    assert [(v.shape, str(v.dtype)) for v in found] == [((3,), "float32"), ((0, 2), "int8"), ((), "int64")]


# Modules that nobody verified, and very deep ones


def test_unverified_modules() -> None:
    with CONTEXT, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            empty = func.FuncOp("empty", ([], []))
            empty.add_entry_block()
            calls = func.FuncOp("calls", ([], []))
            with ir.InsertionPoint(calls.add_entry_block()):
                func.CallOp([], "missing", [])
    with pytest.raises(RelaxError, match="expected a block with a terminator"):
        evaluate(module, "empty", [])
    with pytest.raises(RelaxError, match=r"'func.call' op expected a function of the module, got @missing"):
        evaluate(module, "calls", [])


def test_very_deep_nesting() -> None:
    depth = 2000
    body = "scf.if %c { " * depth + "}" * depth
    assert evaluate(parse(f"func.func @f(%c: i1) {{ {body} return }}"), "f", [True]) == ()
