"""The analyses that passes rest on: lossless casts, symbols that types determine, calls, purity."""

from __future__ import annotations

import numpy as np
import pytest

from relaxir.dialect.analysis.lossless import is_lossless
from relaxir.dialect.analysis.purity import Purity
from relaxir.dialect.analysis.symbol_uses import bound_symbols, substitute_type
from relaxir.dialect.bindings import ir
from relaxir.dialect.call_graph import CallGraph, unreferenced_private_functions
from relaxir.dialect.context import new_context
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.functions import functions, name_of, transform_for, transform_targets
from relaxir.dialect.parser import parse_module
from relaxir.dialect.symbolic import parse
from relaxir.dialect.traversal import blocks_of, free_values, free_values_of_all, nested_operations
from support.module_generator import random_module

SMALL = ("i1", "i4", "i8", "i16", "ui4", "ui8", "ui16", "f16", "bf16", "f8E4M3FN", "f8E5M2")
ALL = (*SMALL, "i32", "i64", "ui32", "ui64", "f32", "f64")


def all_values(name: str) -> np.ndarray:
    """Every value of a dtype of at most 16 bits."""
    dtype = numpy_dtype(name)
    if name in ("i1", "i4", "ui4"):
        return np.arange(-8 if name == "i4" else 0, {"i1": 2, "i4": 8, "ui4": 16}[name]).astype(dtype)
    return np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype)


def keeps(values: np.ndarray, name: str) -> bool:
    with np.errstate(all="ignore"):
        here, there = values.astype(np.float64), values.astype(numpy_dtype(name)).astype(np.float64)
    return np.array_equal(there, here, equal_nan=True)


@pytest.mark.parametrize("source", SMALL)
def test_lossless_casts_keep_every_value(source):
    with new_context():
        types = {n: ir.Type.parse(n) for n in ALL}
        for wide in ALL:
            if is_lossless(types[source], types[wide], types[source]):
                assert keeps(all_values(source), wide), f"{source} -> {wide}"


@pytest.mark.parametrize(
    ("lossless", "pairs"),
    [
        (True, ["f16 f32", "bf16 f32", "f32 f64", "i8 f16", "i32 i64", "ui8 i16", "i1 f32"]),
        (False, ["f32 f16", "bf16 f16", "f16 bf16", "i32 f32", "i8 ui8", "f16 i32"]),
    ],
)
def test_usual_casts(lossless, pairs):
    with new_context():
        for pair in pairs:
            source, wide = map(ir.Type.parse, pair.split())
            assert is_lossless(source, wide, ir.Type.parse("f64")) == lossless, pair


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ((["n"],), {"n"}),
        ((["n * 2 + 1"],), {"n"}),
        ((["n * m"],), set()),
        ((["n * m"], ["m"]), {"n", "m"}),
        ((["n + m", "k"], ["k * m"]), {"k", "m", "n"}),
        ((["n // 2"],), set()),
        ((["n // 2"], ["n"]), {"n"}),
        (([],), set()),
    ],
)
def test_symbols_that_types_determine(dims, expected):
    with new_context():
        types = [_type(d) for d in dims] + [ir.Type.parse("index"), ir.Type.parse("tensor<?xf32>")]
        assert bound_symbols(types) == expected


def _type(dims: list[str]) -> ir.Type:
    sizes, symbols = "?x" * len(dims), ", ".join(f'"{d}"' for d in dims)
    return ir.Type.parse(f"tensor<{sizes}f32, {{sym = [{symbols}]}}>" if dims else "tensor<f32>")


def test_substitution_in_types():
    with new_context(), ir.Location.unknown():
        before = ir.Type.parse('tensor<?x?x4xf32, {sym = ["n * 2", "m"], vdevice = "cpu:0"}>')
        after = substitute_type(before, {"n": 3, "m": parse("k + 1")})
        assert after == ir.Type.parse('tensor<6x?x4xf32, {sym = ["k + 1"], vdevice = "cpu:0"}>')
        assert substitute_type(before, {"z": 1}) == before


CALLS = """
func.func @main(%x: tensor<4xf32>) { %0 = call @a(%x) : (tensor<4xf32>) -> tensor<4xf32>  return }
func.func private @a(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = call @b(%x) : (tensor<4xf32>) -> tensor<4xf32>  return %0 : tensor<4xf32> }
func.func private @b(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = call @c(%x) : (tensor<4xf32>) -> tensor<4xf32>  return %0 : tensor<4xf32> }
func.func private @c(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @b(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @leaf(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @leaf(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>  return %0 : tensor<4xf32> }
func.func private @self(%x: tensor<4xf32>) { call @self(%x) : (tensor<4xf32>) -> ()  return }
func.func private @dead(%x: tensor<4xf32>) { call @self(%x) : (tensor<4xf32>) -> ()  return }
"""  # noqa: E501


def test_recursion_and_order_of_calls():
    module = parse_module(CALLS, "-", new_context())
    graph = CallGraph(module.operation)
    assert graph.recursive == {"b", "c", "self"}
    order = [name for name, _ in graph.callees_first()]
    assert sorted(order) == sorted(name_of(f) for f in functions(module))
    assert order.index("leaf") < order.index("b") < order.index("a") < order.index("main")
    assert {name_of(f) for f in unreferenced_private_functions(module.operation)} == {"self", "dead"}


PURE = """
func.func private @declared(tensor<4xf32>)
func.func private @promised(tensor<4xf32>) attributes {relax.pure}
func.func private @computes(%x: tensor<4xf32>) { %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>  return }
func.func private @calls_pure(%x: tensor<4xf32>) { call @computes(%x) : (tensor<4xf32>) -> ()  call @promised(%x) : (tensor<4xf32>) -> ()  return }
func.func private @calls_declared(%x: tensor<4xf32>) { call @declared(%x) : (tensor<4xf32>) -> ()  return }
func.func private @recursive(%x: tensor<4xf32>) { call @recursive(%x) : (tensor<4xf32>) -> ()  return }
func.func private @stores(%m: memref<4xf32>, %i: index, %v: f32) { memref.store %v, %m[%i] : memref<4xf32>  return }
func.func private @hands_over(%s: !relax.output_sink, %x: tensor<4xf32>) { "relax.set_output"(%s, %x) {index = 0 : i64} : (!relax.output_sink, tensor<4xf32>) -> ()  return }
func.func private @inside(%x: tensor<4xf32>, %c: i1) { scf.if %c { func.call @declared(%x) : (tensor<4xf32>) -> () }  return }
func.func private @branches(%x: tensor<4xf32>, %c: i1) { %0 = scf.if %c -> tensor<4xf32> { scf.yield %x : tensor<4xf32> } else { scf.yield %x : tensor<4xf32> }  return }
"""  # noqa: E501


def test_purity():
    module = parse_module(PURE, "-", new_context())
    purity = Purity(CallGraph(module.operation))
    found = {}
    for function in functions(module):
        ops = [op for op in nested_operations(function.operation) if op.name != "func.return"]
        found[name_of(function)] = all(purity.is_pure(op) for op in ops)
    pure = {"declared", "promised", "computes", "calls_pure", "branches"}  # a declaration has no ops
    assert {name for name, is_pure in found.items() if is_pure} == pure


def test_targets_of_transform_functions():
    text = """
    func.func @a() attributes {relax.num_input = 0 : i64} { return }
    func.func @b() attributes {relax.num_input = 0 : i64} { return }
    func.func @c() attributes {relax.num_input = 0 : i64} { return }
    func.func @one() attributes {relax.transform_for = @a} { return }
    func.func @two() attributes {relax.transform_for = [@b, @c]} { return }
    """
    found = {name_of(f): (transform_for(f), transform_targets(f)) for f in functions(parse_module(text, "-", new_context()))}
    assert found == {
        **dict.fromkeys("abc", (None, [])), "one": ("a", ["a"]), "two": ("b", ["b", "c"]),
    }  # fmt: skip


@pytest.mark.parametrize("value", ["1 : i64", "[]", "[1 : i64]", '"main"'])
def test_bad_targets_are_refused_by_the_parser(value):
    text = f"func.func @f() attributes {{relax.transform_for = {value}}} {{ return }}"
    with pytest.raises(RelaxError, match=r"expected a function, or a list of them, for relax\.transform_for, got"):
        parse_module(text, "-", new_context())


def test_what_all_nested_operations_read_is_what_each_reads():
    context, compared = new_context(), 0
    for seed in range(20):
        module = parse_module(random_module(seed), "-", context)
        found = free_values_of_all(module.operation)
        for op in nested_operations(module.operation):
            first = next(blocks_of(op), None)
            if first is not None:
                assert found[first] == list(dict.fromkeys(free_values(op)))
                compared += len(found[first])
    assert compared > 50
