"""Checked code for GPUs: an access of a kernel outside of its buffer is named by its op, and touches nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from end_to_end.test_backends import PRODUCT
from end_to_end.test_both_devices import CPU_AND_GPU, array
from end_to_end.test_cuda_checks import on_device

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.dialect.traversal import nested_operations
from relaxir.lowering.cpu.check_accesses import HOST_FAULT, CheckAccesses
from relaxir.lowering.cuda.check_device_accesses import FAULT, CheckDeviceAccesses
from relaxir.lowering.marks import DEVICE
from relaxir.runtime.cuda import entry

#: Elements beyond every buffer, in either direction.
FAR = 1 << 40
TEXT = """
func.func @main(%x: tensor<?x37xf32, {sym = ["n"]}> {relax.name = "x"}, %i: tensor<5xi64> {relax.name = "i"})
    -> (tensor<5x37xf32> {relax.name = "y"}) {
  %e = "relax.sigmoid"(%x) : (tensor<?x37xf32, {sym = ["n"]}>) -> tensor<?x37xf32, {sym = ["n"]}>
  %s = "relax.softmax"(%e) {axis = 1 : i64} : (tensor<?x37xf32, {sym = ["n"]}>) -> tensor<?x37xf32, {sym = ["n"]}>
  %t = "relax.take"(%s, %i) {axis = 0 : i64} : (tensor<?x37xf32, {sym = ["n"]}>, tensor<5xi64>) -> tensor<5x37xf32>
  return %t : tensor<5x37xf32>
}
"""
# What writes the result: nothing reads what a fault leaves out.
LAST = """
func.func @main(%x: tensor<?x37xf32, {sym = ["n"]}> {relax.name = "x"})
    -> (tensor<?x37xf32, {sym = ["n"]}> {relax.name = "y"}) {
  %e = "relax.sigmoid"(%x) : (tensor<?x37xf32, {sym = ["n"]}>) -> tensor<?x37xf32, {sym = ["n"]}>
  return %e : tensor<?x37xf32, {sym = ["n"]}>
}
"""
HALF = """
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<64x16xbf16>) -> tensor<16x16xf32> {
  %y = "relax.matmul"(%x, %w) {out_dtype = f32} : (tensor<16x64xbf16>, tensor<64x16xbf16>) -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}
"""
X, ROWS = array(3, 37), np.array([0, 2, 1, 1, 0])
FACTORS = [array(*shape).astype("bfloat16") for shape in ((16, 64), (64, 16))]
Plant = Callable[[ir.Operation], None]


def shift(name: str, operand: int, by: int = FAR, where: str = "gpu.func") -> Plant:
    """Adds to an operand of every op of that name in kernels, or elsewhere; a pointer's is one to a multiple of 2 bytes."""

    def plant(module: ir.Operation) -> None:
        around = [op for op in nested_operations(module) if op.name == where and DEVICE not in op.attributes]
        found = [op for outer in around for op in nested_operations(outer) if op.name == name and len(op.operands) > operand]
        assert found, f"no {name} to plant a fault in"
        for op in found:
            with ir.InsertionPoint(op), op.location:
                op.operands[operand] = _moved(op.operands[operand], by)

    return plant


def _moved(value: ir.Value, by: int) -> ir.Value:
    if isinstance(value.type, ir.IndexType):
        more = ir.Operation.create("arith.constant", [value.type], attributes={"value": ir.IntegerAttr.get(value.type, by)})
        return ir.Operation.create("arith.addi", [value.type], [value, more.result]).result
    attributes = {
        "elem_type": ir.TypeAttr.get(ir.IntegerType.get_signless(16)),
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([-(2**31)]),
        "noWrapFlags": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0),
    }
    i64 = ir.IntegerType.get_signless(64)
    more = ir.Operation.create("arith.constant", [i64], attributes={"value": ir.IntegerAttr.get(i64, by)})
    return ir.Operation.create("llvm.getelementptr", [value.type], [value, more.result], attributes).result


def planted(monkeypatch: pytest.MonkeyPatch, text: str, plant: Plant, pass_: type = CheckDeviceAccesses) -> rx.Executable:
    """A module as checked code with a fault that a template could have."""
    run = pass_.run

    def run_on_faulty(self: object, op: ir.Operation) -> None:
        with op.context:
            plant(op)
        run(self, op)

    monkeypatch.setattr(pass_, "run", run_on_faulty)
    return rx.compile(rx.Module.parse(text), "cuda:sm_80", device="emulated", checked=True, cache=False)


def test_checked_code_computes_the_same_and_names_accesses() -> None:
    made = [rx.compile(rx.Module.parse(TEXT), "cuda:sm_80", device="emulated", checked=c) for c in (True, False)]
    np.testing.assert_array_equal(*(e(X, ROWS) for e in made))
    places = [e.manifest.data["cuda"].get("accesses") for e in made]
    assert any("relax.take: memref.load of memref" in p for p in places[0])
    assert places[1] is None
    assert (entry._FAULT, entry._HOST_FAULT) == (FAULT, HOST_FAULT)


@pytest.mark.parametrize(
    ("text", "plant", "message"),
    [
        (TEXT, shift("memref.load", 1), r"entry 'main': -:\d+:8: relax\.\w+.*: memref.load of memref<\S+>: expected an access"),
        (TEXT, shift("memref.load", 1, -FAR), r"memref.load of memref<\S+>: expected an access inside of its buffer, got one"),
        (LAST, shift("vector.store", 2), r"relax.sigmoid.*: vector.store of memref<\?xf32>: expected an access inside"),
        (TEXT, shift("memref.store", 2, 1000), r"-:\d:8: relax\.\w+.*: memref.store of memref<.*>: expected an access"),
        (HALF, shift("nvvm.cp.async.shared.global", 1, 16 * 64), r"relax.matmul: nvvm.cp.async.shared.global of memref<\d+x"),
    ],
)  # fmt: skip
def test_faults_are_named_and_touch_nothing(
    monkeypatch: pytest.MonkeyPatch, text: str, plant: Plant, message: str
) -> None:  # fmt: skip
    """The emulator, which looks at all memory, finds nothing."""
    executable = planted(monkeypatch, text, plant)
    inputs = {TEXT: (X, ROWS), LAST: (X,), HALF: FACTORS}[text]
    for _ in range(2):  # a fault is of one call
        with pytest.raises(rx.RelaxError, match=message):
            executable(*inputs)


def test_a_fault_is_raised_where_a_deferred_check_is(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = planted(monkeypatch, HALF, shift("nvvm.cp.async.shared.global", 1))
    result = executable(*(on_device(executable, a) for a in FACTORS))
    with pytest.raises(rx.RelaxError, match=r"relax.matmul: nvvm.cp.async.shared.global of"):
        result.numpy()


def test_faults_of_preparation_and_of_the_hosts_part(monkeypatch: pytest.MonkeyPatch) -> None:
    of_step = shift("vector.store", 2, where="func.func")
    executable = planted(monkeypatch, PRODUCT, of_step, CheckAccesses)
    with pytest.raises(rx.RelaxError, match=r"preparation of w.*: @copy_0: vector.store of memref<960xf32>: expected 0 to 959"):
        executable.prepare({"w": np.ones((40, 24), np.float32)})
    # Of so many columns that each element of a row is read alone, whatever vectors this machine has.
    text = CPU_AND_GPU.replace("FIRST", "cuda:0").replace("SECOND", "cpu:0").replace("x5xf32", "x70xf32")
    monkeypatch.undo()
    executable = planted(monkeypatch, text, shift("memref.load", 1, where="func.func"), CheckAccesses)
    with pytest.raises(rx.RelaxError, match=r"entry 'main': -:\d+:\d+: relax.matmul: memref.load of .*: expected an access"):
        executable(array(2, 3), array(3, 4), array(4, 70))
