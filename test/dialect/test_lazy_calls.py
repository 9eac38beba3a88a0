"""Reads and writes are told apart from other ops, in both styles; declarations of callbacks are checked."""

from __future__ import annotations

import pytest

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.lazy_calls import LazyCalls
from relaxir.dialect.parser import parse_module
from relaxir.dialect.traversal import nested_operations

MODULE = """
func.func private @read(index {relax.name = "index"}, i64 {relax.name = "rank"}) -> tensor<4xf32> attributes {relax.callback = "get_param"}
func.func private @read_by_name() -> tensor<4xf32> attributes {relax.callback = "get_param"}
func.func private @write(index {relax.name = "index"}, tensor<4xf32> {relax.name = "value"}) attributes {relax.callback = "set_output"}
func.func private @write_by_name(tensor<4xf32> {relax.name = "value"}) attributes {relax.callback = "set_output"}
func.func private @other(tensor<4xf32>) -> tensor<4xf32>
func.func @f(%p: !relax.param_provider, %s: !relax.output_sink, %rank: i64, %i: index) {
  %two = arith.constant 2 : index
  %a = "relax.get_param"(%p) {index = 0 : i64, name = "a"} : (!relax.param_provider) -> tensor<4xf32>
  %b = "relax.get_param"(%p) {name = "b"} : (!relax.param_provider) -> tensor<4xf32>
  %c = call @read(%two, %rank) {relax.name = "c"} : (index, i64) -> tensor<4xf32>
  %d = call @read(%i, %rank) : (index, i64) -> tensor<4xf32>
  %e = call @read_by_name() {relax.name = "e"} : () -> tensor<4xf32>
  %n = call @other(%e) : (tensor<4xf32>) -> tensor<4xf32>
  "relax.set_output"(%s, %a) {index = 1 : i64} : (!relax.output_sink, tensor<4xf32>) -> ()
  call @write(%two, %b) {relax.name = "w"} : (index, tensor<4xf32>) -> ()
  call @write_by_name(%c) {relax.name = "v"} : (tensor<4xf32>) -> ()
  return
}
"""  # noqa: E501


def test_reads_and_writes():
    module = parse_module(MODULE, "-", new_context())
    lazy = LazyCalls(module.operation)
    ops = [op for op in nested_operations(module.operation) if op.name != "func.func"]
    reads = [op for op in ops if lazy.is_read(op)]
    writes = [op for op in ops if lazy.is_write(op)]
    found = [lazy.describe(op) for op in reads]
    assert [(f.index, f.name) for f in found] == [(0, "a"), (None, "b"), (2, "c"), (None, None), (None, "e")]
    assert [f.value for f in found] == [op.results[0] for op in reads]
    handed = [lazy.describe(op) for op in writes]
    assert [(f.index, f.name) for f in handed] == [(1, None), (2, "w"), (None, "v")]
    assert [f.value for f in handed] == [op.results[0] for op in reads[:3]]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ('@f() attributes {relax.callback = "x"}', "expected 'get_param' or 'set_output' for relax.callback, got \"x\""),
        ("@f() attributes {relax.callback = 3}", "expected 'get_param' or 'set_output' for relax.callback, got 3"),
        (
            '@f(index) -> tensor<4xf32> attributes {relax.callback = "get_param"}',
            "expected a relax.name for every argument of a callback, got one without",
        ),
        (
            '@f(i64 {relax.name = "rank"}, tensor<4xf32> {relax.name = "value"}) attributes {relax.callback = "set_output"}',
            "expected the arguments of 'set_output' to start with value, got rank, value",
        ),
        (
            '@f(index {relax.name = "index"}) attributes {relax.callback = "set_output"}',
            "expected the arguments of 'set_output' to start with index and value, got index",
        ),
        (
            '@f(i64 {relax.name = "r"}, index {relax.name = "index"}) -> tensor<f32> attributes {relax.callback = "get_param"}',
            "expected the arguments of 'get_param' to start with index, got r, index",
        ),
        (
            '@f(i64 {relax.name = "index"}) -> tensor<4xf32> attributes {relax.callback = "get_param"}',
            "expected type index for the argument 'index' of a callback, got i64",
        ),
        (
            '@f(i64 {relax.name = "value"}) attributes {relax.callback = "set_output"}',
            "expected a tensor for the argument 'value' of a callback, got i64",
        ),
        ('@f() attributes {relax.callback = "get_param"}', "expected 'get_param' to return one tensor, got ()"),
        ('@f() -> index attributes {relax.callback = "get_param"}', "expected 'get_param' to return one tensor, got (index)"),
        (
            '@f(tensor<4xf32> {relax.name = "value"}) -> i1 attributes {relax.callback = "set_output"}',
            "expected 'set_output' to return nothing, got (i1)",
        ),
    ],
)
def test_broken_declarations(function: str, message: str):
    with pytest.raises(rx.DiagnosticError) as error:
        rx.Module.parse(f"func.func private {function}", "f.mlir")
    assert message in str(error.value)


def test_a_callback_with_a_body():
    text = 'func.func @f(%x: tensor<4xf32> {relax.name = "value"}) attributes {relax.callback = "set_output"} { return }'
    with pytest.raises(
        rx.DiagnosticError, match=r"f.mlir:1:1: 'func.func' op expected a declaration for relax.callback, got a body"
    ):
        rx.Module.parse(text, "f.mlir")


def test_a_module_without_lazy_io():
    module = ir.Module.parse("func.func @f(%x: f32) -> f32 { return %x : f32 }", new_context())
    lazy = LazyCalls(module.operation)
    assert not any(lazy.is_read(op) or lazy.is_write(op) for op in nested_operations(module.operation))
