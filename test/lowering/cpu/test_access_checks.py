"""Checked code: an access outside of its buffer ends the call with the op's place, and touches nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.dialect.traversal import nested_operations
from relaxir.lowering.arena import Arena, arena_of, write_arena
from relaxir.lowering.entries import entries_of
from relaxir.lowering.lower import lower
from relaxir.runtime.calls import int64_array, invoke, pointer_array
from relaxir.runtime.scratch import Scratch
from relaxir.tools import cli
from relaxir.weights.arrays import address
from support.stages import elements, executable_of, lowered

#: Elements beyond every buffer, and beyond what a process has: unchecked, a call would crash.
FAR = 1 << 40

TEXT = """
func.func @main(%x: tensor<?x37xf32, {sym = ["n"]}> {relax.name = "x"}, %i: tensor<5xi64> {relax.name = "i"})
    -> (tensor<5x37xf32> {relax.name = "y"}) {
  %e = "relax.sigmoid"(%x) : (tensor<?x37xf32, {sym = ["n"]}>) -> tensor<?x37xf32, {sym = ["n"]}>
  %c = "relax.cumsum"(%e) {axis = 0 : i64} : (tensor<?x37xf32, {sym = ["n"]}>) -> tensor<?x37xf32, {sym = ["n"]}>
  %t = "relax.take"(%c, %i) {axis = 0 : i64} : (tensor<?x37xf32, {sym = ["n"]}>, tensor<5xi64>) -> tensor<5x37xf32>
  return %t : tensor<5x37xf32>
}
"""
PRODUCT = """
func.func @main(%x: tensor<?x64xf32, {sym = ["n"]}> {relax.name = "x"}, %w: tensor<64x50xf32> {relax.name = "w"})
    -> tensor<?x50xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %y = "relax.matmul"(%x, %w) : (tensor<?x64xf32, {sym = ["n"]}>, tensor<64x50xf32>) -> tensor<?x50xf32, {sym = ["n"]}>
  return %y : tensor<?x50xf32, {sym = ["n"]}>
}
"""
X, ROWS, W = np.ones((9, 37), np.float32), np.array([0, 8, 3, 3, 1]), np.ones((64, 50), np.float32)


def shift(name: str, operand: int, by: int = FAR) -> Callable[[ir.Operation], None]:
    """Adds to an operand of every op of that name."""

    def plant(module: ir.Operation) -> None:
        for op in found(module, name):
            add(op, operand, by)

    return plant


def unmask(module: ir.Operation) -> None:
    """All lanes are active."""
    for op in found(module, "vector.create_mask"):
        with ir.InsertionPoint(op), op.location:
            lanes = ir.VectorType(op.results[0].type).shape[0]
            kind = op.operands[0].type
            every = ir.Operation.create("arith.constant", [kind], attributes={"value": ir.IntegerAttr.get(kind, lanes)})
            op.operands[0] = every.result


def lengthen(name: str) -> Callable[[ir.Operation], None]:
    """Adds to the last size of every view of that name which is known at run time."""

    def plant(module: ir.Operation) -> None:
        for op in found(module, name):
            if ir.MemRefType(op.results[0].type).has_static_shape:
                continue
            add(op, len(op.operands) - 1, FAR)

    return plant


def add(op: ir.Operation, operand: int, by: int) -> None:
    with ir.InsertionPoint(op), op.location:
        kind = op.operands[operand].type
        more = ir.Operation.create("arith.constant", [kind], attributes={"value": ir.IntegerAttr.get(kind, by)})
        op.operands[operand] = ir.Operation.create("arith.addi", [kind], [op.operands[operand], more.result]).result


def found(module: ir.Operation, name: str) -> list[ir.Operation]:
    ops = [op.operation for op in nested_operations(module) if op.name == name]
    assert ops, f"no {name} to plant a fault in"
    return ops


def planted(plant: Callable[[ir.Operation], None], text: str = TEXT) -> rx.Executable:
    """The module as checked code with a fault that a kernel template could have."""
    module = lowered(rx.Module.parse(text), upto="relax-check-accesses", checked=True)
    with module.context:
        plant(module)
    steps = elements(checked=True)
    lower(module, ",".join(steps[steps.index("relax-check-accesses") :]))
    return executable_of(module)


def test_checked_code_computes_the_same() -> None:
    executable = rx.compile(rx.Module.parse(TEXT), checked=True)
    np.testing.assert_array_equal(executable(X, ROWS), rx.compile(rx.Module.parse(TEXT))(X, ROWS))
    assert any(
        "relax.take: memref.load of" in a or "relax.take: vector.load of" in a for a in executable.manifest.accesses or ()
    )
    assert rx.compile(rx.Module.parse(TEXT)).manifest.accesses is None


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        (shift("vector.load", 1), r"-:\d+:8: relax\.\w+: vector.load of memref<\?xf32>: expected .* to 332, got 1099"),
        (shift("vector.load", 1, -FAR), r"-:4:8: relax.sigmoid: vector.load .* expected 0 to 332, got -1099"),
        (shift("vector.store", 2), r"-:4:8: relax.sigmoid: vector.store of memref<\?xf32>: expected .* to 332, got"),
        (shift("vector.maskedload", 1), r"-:\d+:8: relax.\w+: vector.maskedload of .*: expected 0 to"),
        (shift("memref.view", 1), r"@main: memref.view of memref<\?xi8>: expected 0 to \d+, got 1099"),
        (lengthen("memref.reinterpret_cast"), r"memref.reinterpret_cast of memref<\?x37xf32>: expected .* to 332, got 1099"),
        (lengthen("memref.view"), r"@main: memref.view of memref<\?xi8>: expected 0 to \d+, got"),
    ],
)  # fmt: skip
def test_faults_are_named_and_touch_nothing(plant: Callable[[ir.Operation], None], message: str) -> None:
    executable = planted(plant)
    for _ in range(2):  # a fault is of one call
        with pytest.raises(rx.RelaxError, match=message):
            executable(X, ROWS)


def test_lanes_beyond_a_mask_do_not_count_and_those_inside_do() -> None:
    text = """
      func.func @main(%x: tensor<37xf32>) -> tensor<37xf32> {
        %e = "relax.sigmoid"(%x) : (tensor<37xf32>) -> tensor<37xf32>
        return %e : tensor<37xf32>
      }"""
    assert rx.compile(rx.Module.parse(text), checked=True)(X[0]).shape == (37,)
    with pytest.raises(rx.RelaxError, match=r"relax.sigmoid: vector.masked\w+ of memref<37xf32>: expected 0 to 36, got"):
        planted(unmask, text)(X[0])


def test_faults_of_threads_and_of_preparation() -> None:
    executable = rx.compile(rx.Module.parse(PRODUCT), checked=True)
    executable.bind(executable.prepare({"w": W}))
    x = np.ones((3000, 64), np.float32)
    np.testing.assert_array_equal(executable(x), 64)
    executable = planted(shift("memref.load", 1), PRODUCT)
    executable.threads = 2
    executable.bind(executable.prepare({"w": W}))
    with pytest.raises(
        rx.RelaxError, match=r"entry 'main': -:\d+:8: relax.packed_matmul: memref.load of memref<\?xf32>: expected"
    ):
        executable(x)
    executable = planted(shift("vector.store", 2), PRODUCT)
    with pytest.raises(
        rx.RelaxError, match=r"preparation of w.*: -:\d+:8: relax.pack_weight: vector.store of memref<4096xf32>"
    ):
        executable.prepare({"w": W})


def test_an_arena_that_is_too_small() -> None:
    def shorten(module: ir.Operation) -> None:
        for function, _ in entries_of(module):
            arena = arena_of(function)
            write_arena(function, Arena(arena.groups, arena.reserved - 64))

    with pytest.raises(rx.RelaxError, match=r"@main: memref.view of memref<\?xi8>: expected 0 to"):
        planted(shorten)(np.ones((16, 37), np.float32), ROWS)


def test_a_loop_that_a_fault_would_keep_running_ends() -> None:
    text = """
      func.func @main(%x: tensor<i64>) -> tensor<i64> {
        %r = scf.while (%a = %x) : (tensor<i64>) -> tensor<i64> {
          %n = "relax.full"() {value = 9 : i64} : () -> tensor<i64>
          %more = "relax.less"(%a, %n) : (tensor<i64>, tensor<i64>) -> tensor<i1>
          %c = tensor.extract %more[] : tensor<i1>
          scf.condition(%c) %a : tensor<i64>
        } do {
        ^bb0(%a: tensor<i64>):
          %one = "relax.full"() {value = 1 : i64} : () -> tensor<i64>
          %b = "relax.add"(%a, %one) : (tensor<i64>, tensor<i64>) -> tensor<i64>
          scf.yield %b : tensor<i64>
        }
        return %r : tensor<i64>
      }"""
    assert rx.compile(rx.Module.parse(text), checked=True)(np.array(3)) == 9
    with pytest.raises(rx.RelaxError, match="expected 0 to"):
        planted(_beyond_scalars, text)(np.array(3))


def _beyond_scalars(module: ir.Operation) -> None:
    """Elements that are loaded one by one are read far away."""
    for op in found(module, "memref.load"):
        if len(op.operands) > 1:
            add(op, 1, FAR)


def test_addresses_are_aligned() -> None:
    executable = rx.compile(rx.Module.parse(TEXT), checked=True)
    arrays = [X, ROWS, np.empty((5, 37), np.float32)]
    function, scratch = executable._library.function("relaxir_main"), Scratch()
    for position, size in ((0, 4), (1, 8), (2, 4)):
        addresses = [address(a) + 2 * (i == position) for i, a in enumerate(arrays)]
        message = f"call: @main: address of argument {position} modulo {size}: expected 0 to 0, got 2"
        with pytest.raises(rx.RelaxError, match=message):
            invoke(function, pointer_array(addresses), int64_array([9]), scratch, "call")
    invoke(function, pointer_array([address(a) for a in arrays]), int64_array([9]), scratch, "call")


def test_artifacts_say_that_they_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.mlir").write_text(TEXT)
    path = str(tmp_path / "m.relax")
    assert cli.run(["compile", str(tmp_path / "m.mlir"), "-o", path, "--checked"]) == 0
    assert cli.run(["info", path]) == 0
    assert capsys.readouterr().out.count("\nchecked: ") == 2
    np.testing.assert_array_equal(rx.load(path)(X, ROWS), rx.compile(rx.Module.parse(TEXT))(X, ROWS))


@pytest.mark.parametrize("columns", [(0, 1), (1, 0), (0, 0), (3, 2)])
def test_views_of_nothing_are_no_faults(columns: tuple[int, int]) -> None:
    """A part of no columns, which is all of nothing, ends behind its beginning where rows are counted alone."""
    b = rx.Builder()
    with b.function("main"):
        x, y = b.input("x", (2, "n")), b.input("y", (2, "m"))
        b.output(b.concat([y, x, y], axis=1), b.pad(x, [0, 3], [0, 1]))
    module = b.build()
    arrays = [np.ones((2, c), np.float32) for c in columns]
    for got, want in zip(rx.compile(module, checked=True)(*arrays), rx.evaluate(module, "main", *arrays), strict=True):
        np.testing.assert_array_equal(got, want)
