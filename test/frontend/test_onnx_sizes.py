"""ONNX models that compute with sizes and slice by them, for every size that a call may have, against ONNX Runtime."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relaxir as rx
from support.onnx_models import model

Array = np.ndarray[Any, Any]
_FLOAT, _INT64 = TensorProto.FLOAT, TensorProto.INT64
_node = helper.make_node


def _check(proto: onnx.ModelProto, calls: Sequence[dict[str, Array]], kind: int = _FLOAT) -> None:
    """The same results, of the same sizes, as ONNX Runtime's, which wants to know their element type."""
    proto.graph.output[0].type.tensor_type.elem_type = kind
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    executable = rx.compile(rx.from_onnx(proto))
    for inputs in calls:
        np.testing.assert_array_equal(
            executable(**inputs), session.run(None, inputs)[0], str({n: a.shape for n, a in inputs.items()})
        )


def _rows(n: int, columns: int = 2) -> Array:
    return np.arange(n * columns, dtype=np.float32).reshape(n, columns)


def _of_size(*nodes: onnx.NodeProto, **numbers: int | list[int]) -> onnx.ModelProto:
    """Nodes that compute ``y`` of ``n``, the number of rows of ``x``."""
    size = [_node("Shape", ["x"], ["shape"]), _node("Gather", ["shape", "first"], ["n"])]
    weights = {name: np.array(value, np.int64) for name, value in ({"first": 0} | numbers).items()}
    return model([*size, *nodes], {"x": (_FLOAT, ["N", 2])}, ["y"], weights)


@pytest.mark.parametrize(
    "names", [("None", "None"), ("?", "?"), ("-1", "-1"), ("if", "True"), ("größe", "gräße"), ("a b", "class")]
)
def test_names_of_sizes_that_are_no_symbols(names: tuple[str, str]) -> None:
    """Converters say ``None`` and ``?`` of what they know nothing of, which need not be the same size."""
    proto = model([_node("Neg", ["x"], ["y"])], {"x": (_FLOAT, list(names))}, ["y"])
    _check(proto, [{"x": _rows(3, 2)}, {"x": _rows(2, 5)}])


_ALIKE = [
    ("a-b", "a+b"), ("seq_len.1", "seq_len:1"), ("batch size", "batch_size"), ("batch_size", "batch size"), ("a//2", "a__2"),
    ("ü", "ufc"), ("class", "class_"), ("x_1", ""), ("1", "x_0"),
]  # fmt: skip


@pytest.mark.parametrize("names", _ALIKE)
def test_names_of_sizes_that_become_alike(names: tuple[str, str]) -> None:
    """Different names are different sizes, the same one is the same size in all inputs."""
    proto = model(
        [_node("Add", ["x", "z"], ["y"])], {"x": (_FLOAT, list(names)), "z": (_FLOAT, [names[0], names[1] or "columns"])}, ["y"]
    )
    _check(proto, [{"x": _rows(3, 5), "z": _rows(3, 5)}, {"x": _rows(4, 2), "z": _rows(4, 2)}])
    with pytest.raises(rx.RelaxError, match=r"expected (shape|dimension)"):
        rx.compile(rx.from_onnx(proto))(x=_rows(3, 5), z=_rows(5, 5))


_REFUSED_DIMS: list[tuple[dict[str, Any], str]] = [
    ({"dims": ["N"]}, "expected dims as a mapping, as {'batch': 1}, got list"),
    ({"dims": ""}, "expected dims as a mapping, as {'batch': 1}, got str"),
    ({"dims": {0: 2}}, "expected names of dimensions in dims, got int"),
    *(({"dims": {"N": v}}, f"expected a size or an expression for 'N', got {v!r}") for v in (2.5, None, True, [1], "?")),
    ({"dims": {"N": np.int64(-1)}}, "expected sizes from 0 on, got [-1, 2] of 'x'"),
    ({"entries": ["a"]}, "expected entries as a mapping, as {'prefill': {}, 'decode': {'sequence_length': 1}}, got list"),
    ({"entries": {1: {}}}, "expected names of entries, got int"),
    ({"entries": {"a": {}, "b": None}}, "expected sizes of entry 'b' as a mapping, as {'batch': 1}, got NoneType"),
    ({"entries": {"a": {"N": 2.5}}}, "expected a size or an expression for 'N', got 2.5"),
    ({"cache_length": 8.5}, "expected a cache_length of 1 token or more, got 8.5"),
    ({"cache_length": "8"}, "expected a cache_length of 1 token or more, got '8'"),
]


@pytest.mark.parametrize(("given", "message"), _REFUSED_DIMS)
def test_what_gives_no_sizes(given: dict[str, Any], message: str) -> None:
    proto = model([_node("Neg", ["x"], ["y"])], {"x": (_FLOAT, ["N", 2])}, ["y"])
    with pytest.raises(rx.RelaxError, match=re.escape(message)):
        rx.from_onnx(proto, **given)


def test_sizes_are_numbers_of_numpy_too() -> None:
    proto = model([_node("Neg", ["x"], ["y"])], {"x": (_FLOAT, ["N", 2])}, ["y"])
    module = rx.from_onnx(proto, dims={"N": np.int64(3)}, entries={"a": {}, "b": {"N": np.uint8(2)}})
    assert [str(f.inputs[0].shape) for f in module.functions.values()] == ["(3, 2)", "(2, 2)"]


def test_sizes_are_given_by_the_models_names_of_them() -> None:
    proto = model([_node("Neg", ["x"], ["y"])], {"x": (_FLOAT, ["batch_size", "batch size"])}, ["y"])
    executable = rx.compile(rx.from_onnx(proto, dims={"batch size": 2}))
    assert executable(_rows(3)).shape == (3, 2)
    with pytest.raises(rx.RelaxError, match="expected shape"):
        executable(_rows(3, 3))


@pytest.mark.parametrize("divisor", [1, 2, 4, -3])
@pytest.mark.parametrize("operator", ["Div", "Mod", "fmod"])
@pytest.mark.parametrize("less", [0, 5])
def test_sizes_are_divided_towards_zero(operator: str, divisor: int, less: int) -> None:
    """What is subtracted makes some dividends negative."""
    divide = _node("Mod", ["a", "by"], ["y"], fmod=1) if operator == "fmod" else _node(operator, ["a", "by"], ["y"])
    proto = _of_size(_node("Sub", ["n", "less"], ["a"]), divide, less=less, by=divisor)
    _check(proto, [{"x": _rows(n)} for n in range(1, 12)], _INT64)


@pytest.mark.parametrize("divide", [_node("Div", ["a", "by"], ["y"]), _node("Mod", ["a", "by"], ["y"], fmod=1)])
def test_negated_sizes_are_divided_towards_zero(divide: onnx.NodeProto) -> None:
    proto = _of_size(_node("Neg", ["n"], ["a"]), divide, by=4)
    _check(proto, [{"x": _rows(n)} for n in range(1, 9)], _INT64)


def test_divisors_that_may_have_either_sign() -> None:
    """No expression says which; elements do."""
    proto = _of_size(_node("Sub", ["less", "n"], ["by"]), _node("Div", ["less", "by"], ["y"]), less=5)
    _check(proto, [{"x": _rows(n)} for n in (1, 2, 4, 6, 9)], _INT64)


def test_a_slice_up_to_a_quotient_of_sizes() -> None:
    nodes = [_node("Neg", ["n"], ["a"]), _node("Div", ["a", "by"], ["b"]), _node("Neg", ["b"], ["end"])]
    proto = _of_size(*nodes, _node("Slice", ["x", "zero", "ends", "zero"], ["y"]), by=4, zero=[0])
    proto.graph.node.insert(len(proto.graph.node) - 1, _node("Unsqueeze", ["end", "zero"], ["ends"]))
    _check(proto, [{"x": _rows(n)} for n in (2, 6, 9)])


_LAST = 2**63 - 1


@pytest.mark.parametrize(
    ("begin", "end", "step"),
    [
        (0, 512, 1), (2, 5, 1), (-3, _LAST, 1), (-3, 8, 1), (1, -1, 1), (1, _LAST, 2), (0, -2, 1),
        (-4, -2, 1), (5, 2, 1), (2, -2, 3),
        (-1, -_LAST, -1), (-1, -_LAST, -2), (-2, -5, -1), (4, 1, -1), (4, -_LAST, -3), (1, 4, -1),
        (-8, 2**31 - 1, 1), (-_LAST, -_LAST, -1),
    ],
)  # fmt: skip
def test_slices_are_limited_to_a_symbolic_dimension(begin: int, end: int, step: int) -> None:
    weights = {"b": begin, "e": end, "a": 0, "s": step}
    proto = model(
        [_node("Slice", ["x", "b", "e", "a", "s"], ["y"])],
        {"x": (_FLOAT, ["N", 2])},
        ["y"],
        {name: np.array([value], np.int64) for name, value in weights.items()},
    )
    _check(proto, [{"x": _rows(n)} for n in (1, 2, 3, 4, 5, 6, 7, 9, 600)])


@pytest.mark.parametrize("size", ["N", 2])
def test_going_backwards_from_before_the_first_element_begins_there(size: int | str) -> None:
    """NumPy takes nothing."""
    weights = {name: np.array([value]) for name, value in (("b", -7), ("e", -9), ("a", 0), ("s", -1))}
    proto = model([_node("Slice", ["x", "b", "e", "a", "s"], ["y"])], {"x": (_FLOAT, [size, 2])}, ["y"], weights)
    _check(proto, [{"x": _rows(2)}])


def _sliced(begin: int, end: int) -> onnx.ModelProto:
    weights = {"b": np.array([begin]), "e": np.array([end])}
    return model([_node("Slice", ["x", "b", "e"], ["y"])], {"x": (_FLOAT, ["N", 2])}, ["y"], weights)


def test_one_from_an_end_is_one_whatever_the_size() -> None:
    """So it is broadcast; there is none in a dimension of size 0, which then is refused."""
    for begin, end in ((0, 1), (-1, _LAST)):
        module = rx.from_onnx(_sliced(begin, end))
        assert str(module.functions["main"].outputs[0]) == "f32[1, 2]"
        with pytest.raises(rx.RelaxError, match="expected a slice inside of dimension 0"):
            rx.compile(module)(_rows(0))


@pytest.mark.parametrize("index", [-1, -3, 2])
def test_one_element_of_a_symbolic_dimension(index: int) -> None:
    proto = model([_node("Gather", ["x", "i"], ["y"])], {"x": (_FLOAT, ["N", 2])}, ["y"], {"i": np.array(index)})
    _check(proto, [{"x": _rows(n)} for n in (3, 5, 9)])


@pytest.mark.parametrize("index", [0, 1, 3, -1, -2])
def test_one_element_by_a_slice_that_is_squeezed(index: int) -> None:
    """As tf2onnx writes ``x[index]``: it is taken to be there, which each call checks."""
    proto = _sliced(index, index + 1 if index != -1 else _LAST)
    proto.graph.node[0].output[0] = "s"
    proto.graph.node.append(_node("Squeeze", ["s", "axes"], ["y"]))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "axes"))
    executable = rx.compile(rx.from_onnx(proto))
    x = _rows(6)
    for size in (4, 6):
        np.testing.assert_array_equal(executable(x[:size]), x[:size][index])
    for size in range(index + 1 if index >= 0 else -index):
        with pytest.raises(rx.RelaxError, match=r"takes one element of dimension 0|a slice inside of dimension 0"):
            executable(x[:size])


def test_an_open_dimension_that_is_squeezed_is_of_size_one() -> None:
    proto = model([_node("Squeeze", ["x", "one"], ["y"])], {"x": (_FLOAT, [3, None])}, ["y"], {"one": np.array([1])})
    executable, x = rx.compile(rx.from_onnx(proto)), np.ones((3, 2), np.float32)
    np.testing.assert_array_equal(executable(x[:, :1]), x[:, 0])
    with pytest.raises(rx.RelaxError, match=r"y, which takes one element of dimension 1.*expected dimension 1 to be 1"):
        executable(x)


@pytest.mark.parametrize("rank", [0, 1])
def test_an_element_by_a_negated_size(rank: int) -> None:
    """It counts from the end; a table that is shorter has none."""
    index = [_node("Neg", ["n"], ["i"])] if not rank else [_node("Neg", ["n"], ["m"]), _node("Unsqueeze", ["m", "zero"], ["i"])]
    proto = _of_size(*index, _node("Gather", ["table", "i"], ["y"]), zero=[0], table=list(range(20, 28)))
    _check(proto, [{"x": _rows(n)} for n in (1, 5, 8)], _INT64)
    with pytest.raises(rx.RelaxError):
        rx.compile(rx.from_onnx(proto))(_rows(9))


def test_an_element_by_a_difference_of_sizes_of_either_sign() -> None:
    nodes = [_node("Sub", ["n", "less"], ["i"]), _node("Gather", ["table", "i"], ["y"])]
    _check(_of_size(*nodes, less=4, table=list(range(20, 28))), [{"x": _rows(n)} for n in (1, 3, 4, 11)], _INT64)


@pytest.mark.parametrize(("rows", "amounts"), [("N", [1, 0, 2, -1]), (3, [1, 2, 0, 0])])
def test_padding_by_a_number_that_a_call_tells(rows: int | str, amounts: list[int]) -> None:
    inputs = {"x": (_FLOAT, [rows, 2]), "v": (_FLOAT, [])}
    proto = model([_node("Pad", ["x", "p", "v"], ["y"])], inputs, ["y"], {"p": np.array(amounts)})
    _check(proto, [{"x": _rows(3), "v": np.array(n, np.float32)} for n in (2.5, np.inf)])


@pytest.mark.parametrize("upper", [0, 1])
def test_a_triangle_by_a_size(upper: int) -> None:
    nodes = [_node("Sub", ["n", "less"], ["k"]), _node("Trilu", ["x", "k"], ["y"], upper=upper)]
    _check(_of_size(*nodes, less=3), [{"x": _rows(n) + 1} for n in (1, 3, 4, 6)])


@pytest.mark.parametrize("operator", ["Min", "Max"])
def test_the_smaller_and_the_larger_size(operator: str) -> None:
    _check(
        _of_size(_node(operator, ["n", "five", "seven"], ["y"]), five=5, seven=7),
        [{"x": _rows(n)} for n in (1, 5, 6, 9)],
        _INT64,
    )


def test_a_slice_up_to_the_smaller_size() -> None:
    nodes = [_node("Min", ["n", "five"], ["m"]), _node("Unsqueeze", ["m", "zero"], ["end"])]
    proto = _of_size(*nodes, _node("Slice", ["x", "zero", "end"], ["y"]), five=5, zero=[0])
    _check(proto, [{"x": _rows(n)} for n in (1, 5, 6, 9)])


def test_the_largest_as_many_as_a_smaller_size_says() -> None:
    nodes = [_node("Min", ["n", "five"], ["m"]), _node("Unsqueeze", ["m", "zero"], ["k"])]
    proto = _of_size(*nodes, _node("TopK", ["x", "k"], ["y", "places"], axis=0), five=5, zero=[0])
    _check(proto, [{"x": _rows(n)} for n in (1, 5, 6, 9)])


def _constant(name: str, number: float, kind: int = _FLOAT) -> onnx.NodeProto:
    return _node("Constant", [], [name], value=helper.make_tensor(name, kind, [], [number]))


def _scaled(rounding: str, *nodes: onnx.NodeProto, kind: int = _FLOAT, **numbers: float) -> onnx.ModelProto:
    """``n`` as a float ``a``, what nodes make of it as ``f``, rounded, and as many zeros."""
    constants = [_constant(name, number, kind) for name, number in numbers.items()]
    rounded = [_node(rounding, ["f"], ["r"]), _node("Cast", ["r"], ["s"], to=_INT64)]
    zeros = [_node("Unsqueeze", ["s", "axes"], ["shape2"]), _node("ConstantOfShape", ["shape2"], ["y"])]
    return _of_size(*constants, _node("Cast", ["n"], ["a"], to=kind), *nodes, *rounded, *zeros, axes=[0])


@pytest.mark.parametrize("rounding", ["Identity", "Floor", "Ceil"])
@pytest.mark.parametrize("kind", [_FLOAT, TensorProto.DOUBLE])
@pytest.mark.parametrize(("operator", "by"), [("Mul", 0.5), ("Mul", 1.25), ("Mul", 3), ("Div", 4), ("Div", 3), ("Div", 7)])
def test_sizes_scaled_as_floats(operator: str, by: float, kind: int, rounding: str) -> None:
    """As ``interpolate(scale_factor=0.5, recompute_scale_factor=True)`` is exported."""
    proto = _scaled(rounding, _node(operator, ["a", "by"], ["f"]), kind=kind, by=by)
    assert "?" not in str(rx.from_onnx(proto).functions["main"].outputs[0])
    _check(proto, [{"x": _rows(n)} for n in range(1, 15)])


def test_sizes_of_several_steps_as_floats() -> None:
    """The least is another number, the sum of a product."""
    nodes = [_node("Mul", ["a", "half"], ["b"]), _node("Sub", ["b", "two"], ["c"]), _node("Neg", ["c"], ["d"])]
    more = [_node("Add", ["d", "ten"], ["e"]), _node("Max", ["e", "two", "half"], ["m"]), _node("Min", ["m", "ten"], ["f"])]
    proto = _scaled("Floor", *nodes, *more, half=0.5, two=2, ten=10)
    _check(proto, [{"x": _rows(n)} for n in (1, 2, 3, 10, 19, 20, 21, 25)])


def test_a_product_that_floats_round_is_computed_when_it_runs() -> None:
    """``floor(10 * 0.7)`` is 7 of f32, and 6 of what that 0.7 is."""
    nodes = [_node("Cast", ["n"], ["a"], to=_FLOAT), _node("Mul", ["a", "by"], ["b"]), _node("Floor", ["b"], ["y"])]
    proto = _of_size(_constant("by", 0.7), *nodes)
    _check(proto, [{"x": _rows(n)} for n in (3, 10, 20)])


@pytest.mark.parametrize("negated", [False, True])
def test_branches_of_other_ranks_where_a_size_is_one(negated: bool) -> None:
    """So torch exports ``x.squeeze(0)``: of an open size, a call with 1 has another rank and is refused."""

    def branch(operator: str, *operands: str) -> onnx.GraphProto:
        return helper.make_graph(
            [_node(operator, ["x", *operands], ["z"])], "b", [], [helper.make_tensor_value_info("z", _FLOAT, None)]
        )

    branches = [branch("Squeeze", "axes"), branch("Identity")]
    condition = [_node("Equal", ["n", "one"], ["c"]), *([_node("Not", ["c"], ["d"])] if negated else [])]
    first, second = branches[::-1] if negated else branches
    choice = _node("If", ["d" if negated else "c"], ["y"], then_branch=first, else_branch=second)
    proto = _of_size(*condition, choice, one=1, axes=[0])
    _check(proto, [{"x": _rows(n)} for n in (2, 3)])
    with pytest.raises(rx.RelaxError, match=r"expected N other than 1, for which results have another rank: .* \(N = 1\)"):
        rx.compile(rx.from_onnx(proto))(_rows(1))
    assert rx.compile(rx.from_onnx(proto, dims={"N": 1}))(_rows(1)).shape == (2,)


def test_all_sizes_of_one_are_squeezed() -> None:
    proto = model([_node("Squeeze", ["x"], ["y"])], {"x": (_FLOAT, ["N", 1, "M", 2])}, ["y"])
    _check(proto, [{"x": _rows(6).reshape(2, 1, 3, 2)}])
    with pytest.raises(rx.RelaxError, match="expected M other than 1, for which results have another rank"):
        rx.compile(rx.from_onnx(proto))(_rows(2).reshape(2, 1, 1, 2))
    assert rx.compile(rx.from_onnx(proto, dims={"M": 1}))(_rows(2).reshape(2, 1, 1, 2)).shape == (2, 2)


def test_pairs_of_amounts_in_the_order_of_dimensions() -> None:
    """So torch exports ``pad(x, (0, (4 - n % 4) % 4))``: pairs, the last dimension's first, reversed and transposed."""
    nodes = [
        *[_node("Mod", ["n", "four"], ["m"]), _node("Sub", ["four", "m"], ["l"]), _node("Mod", ["l", "four"], ["lacks"])],
        *[_node("Unsqueeze", ["lacks", "zero"], ["u"]), _node("Concat", ["none", "u"], ["p"], axis=0)],
        *[_node("Reshape", ["p", "pairs"], ["q"]), _node("Slice", ["q", "last", "far", "zero", "last"], ["r"])],
        *[_node("Transpose", ["r"], ["t"], perm=[1, 0]), _node("Reshape", ["t", "last"], ["s"])],
        *[_node("Cast", ["s"], ["amounts"], to=_INT64), _node("Pad", ["x", "amounts"], ["y"])],
    ]
    numbers: dict[str, Any] = {"four": 4, "zero": [0], "none": [0, 0, 0], "pairs": [-1, 2], "last": [-1], "far": [-(2**63) + 1]}
    _check(_of_size(*nodes, **numbers), [{"x": _rows(n)} for n in range(1, 9)])
