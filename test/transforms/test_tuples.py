"""Private functions of random modules take and return nested tuples; expanded again, nothing is left of those."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import relaxir as rx
from relaxir.debugging.meaning import arguments_for, entry_functions, raw_weights, run_entry
from relaxir.dialect.bindings import func, ir
from relaxir.dialect.call_graph import CallGraph
from relaxir.dialect.context import new_context
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.functions import body_of, functions, is_private, name_of, returned_values
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from relaxir.dialect.transforms.cleanup.private_signatures import rebuilt_call, set_returned_values
from relaxir.dialect.tuples import leaf_types, pack, unpack
from support.module_generator import random_module

EXPAND = "relax-expand-tuple-arguments"


def nest(types: list[ir.Type]) -> ir.TupleType:
    """The first, and a tuple of the rest."""
    return ir.TupleType.get_tuple([types[0], ir.TupleType.get_tuple(types[1:])] if types else [])


def with_tuples(module: ir.Module) -> ir.Module:
    """Every private function takes one tuple and returns one (in place)."""
    calls = CallGraph(module.operation).calls()
    with module.context, ir.Location.unknown():
        for function in functions(module):
            if is_private(function) and body_of(function) is not None:
                _pack_signature(function)
                for call in calls.get(name_of(function), ()):
                    _pack_call(call)
    module.operation.verify()
    return module


def _pack_signature(function: func.FuncOp) -> None:
    block = body_of(function)
    old, values = list(block.arguments), returned_values(function)
    taken, returned = nest([a.type for a in old]), nest([v.type for v in values])
    new = block.add_argument(taken, function.location)
    for argument, leaf in zip(old, unpack(new, ir.InsertionPoint.at_block_begin(block), function.location), strict=True):
        argument.replace_all_uses_with(leaf)
    for position in reversed(range(len(old))):
        block.erase_argument(position)
    end = ir.InsertionPoint(list(block.operations)[-1])
    set_returned_values(function, [pack(returned, iter(returned_values(function)), end, function.location)])
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([taken], [returned]))


def _pack_call(call: ir.Operation) -> None:
    where = ir.InsertionPoint(call)
    bundle = pack(nest([v.type for v in call.operands]), iter(list(call.operands)), where, call.location)
    made = rebuilt_call(call, [bundle], [nest([r.type for r in call.results])])
    for old, leaf in zip(list(call.results), unpack(made.result, where, call.location), strict=True):
        old.replace_all_uses_with(leaf)
    call.erase()


def entry_results(module: ir.Operation, names: list[str]) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for name in names:
        rng = np.random.default_rng(7)
        found += run_entry(module, name, arguments_for(module, name, rng), raw_weights(module, name, rng))
    return found


def runnable(module: ir.Operation) -> list[str]:
    """Entries that can be run: some random ones cast a tensor to a size that it has not."""
    found: list[str] = []
    for name in map(name_of, entry_functions(module)):
        with contextlib.suppress(RelaxError):
            entry_results(module, [name])
            found.append(name)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_expanded_tuples_of_private_functions(seed: int):
    text = random_module(seed)
    plain = parse_module(text, "-", new_context())
    tupled = with_tuples(parse_module(text, "-", new_context()))
    assert not any(is_private(f) for f in functions(plain)) or "tuple<" in str(tupled)
    expanded = manager.run(tupled, EXPAND)
    assert "tuple<" not in str(expanded)
    assert str(manager.run(expanded, EXPAND)) == str(expanded)
    inlined = manager.run(tupled, "relax-inline-private-functions,relax-expand-tuple-arguments,canonicalize")
    names = runnable(plain.operation)
    want = entry_results(plain.operation, names)
    for module in (tupled.operation, expanded, inlined):
        for got, expected in zip(entry_results(module, names), want, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_leaves_of_nested_types():
    with new_context():
        f32, i1 = ir.F32Type.get(), ir.IntegerType.get_signless(1)
        assert leaf_types(nest([f32, i1, f32])) == [f32, i1, f32]
        assert leaf_types(nest([])) == []
        assert leaf_types(f32) == [f32]


@pytest.mark.parametrize(
    "pipeline", [None, "", "relax-lift-transform-params", "relax-inline-private-functions", "canonicalize"]
)
def test_tuples_compile_behind_any_passes(pipeline: str | None) -> None:
    """Of weights, of a private function, and at the boundary of one that is public."""
    module = rx.Module.parse("""
      func.func private @sum(%t: tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32> {
        %a, %b = builtin.unrealized_conversion_cast %t : tuple<tensor<4xf32>, tensor<4xf32>> to tensor<4xf32>, tensor<4xf32>
        %c = "relax.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        return %c : tensor<4xf32>
      }
      func.func @main(%x: tensor<4xf32>, %w: tuple<tensor<4xf32>> {relax.name = "p"}) -> tuple<tensor<4xf32>>
          attributes {relax.num_input = 1 : i64} {
        %a = builtin.unrealized_conversion_cast %w : tuple<tensor<4xf32>> to tensor<4xf32>
        %e = "relax.exp"(%a) : (tensor<4xf32>) -> tensor<4xf32>
        %t = builtin.unrealized_conversion_cast %x, %e : tensor<4xf32>, tensor<4xf32> to tuple<tensor<4xf32>, tensor<4xf32>>
        %r = call @sum(%t) : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
        %y = builtin.unrealized_conversion_cast %r : tensor<4xf32> to tuple<tensor<4xf32>>
        return %y : tuple<tensor<4xf32>>
      }""")
    executable = rx.compile(module, pipeline=pipeline)
    executable.bind(executable.prepare({"p.0": np.zeros(4, np.float32)}))
    np.testing.assert_array_equal(executable(np.arange(4, dtype=np.float32)), [1, 2, 3, 4])


def test_mistakes_in_a_pipeline_are_told_in_its_own_text() -> None:
    module = rx.Module.parse("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
    with pytest.raises(RelaxError, match=r"^expected '\}' for the '\{' at column 19 of 'relax-canonicalize\{'$"):
        rx.compile(module, pipeline="relax-canonicalize{")
