"""Devices: results before and after placing, compiled ones where all devices are this machine's, and lifting around placing."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.debugging.meaning import arguments_for, entry_functions, raw_weights, run_entry
from relaxir.dialect.bindings import ir
from relaxir.dialect.functions import name_of
from relaxir.dialect.op import op_class
from relaxir.dialect.struct_info import is_tensor, vdevice_of
from relaxir.dialect.traversal import nested_operations
from support.module_generator import random_module

TWO_CPUS = """
module attributes {relax.vdevices = ["cpu:0", "cpu:1"]} {
  func.func @main(%x: tensor<2x3xf32> {relax.name = "x"}, %w: tensor<3x4xf32> {relax.name = "w"},
      %v: tensor<4x5xf32> {relax.name = "v"})
      -> tensor<2x5xf32> attributes {relax.num_input = 1 : i64} {
    %x0 = "relax.hint_on_device"(%x) {vdevice = "cpu:0"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %0 = func.call @product(%x0, %w) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %1 = "relax.hint_on_device"(%0) {vdevice = "cpu:1"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %2 = "relax.matmul"(%1, %v) : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
    return %2 : tensor<2x5xf32>
  }
  func.func private @product(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
    %0 = "relax.matmul"(%x, %w) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
"""

WEIGHTS = """
module attributes {relax.vdevices = ["cpu:0", "cuda:0"]} {
  func.func @main(%x: tensor<4xf32> {relax.name = "x"}, %w: tensor<4xf32, {vdevice = "cpu:0"}> {relax.name = "w"},
      %v: tensor<4xf32> {relax.name = "v"}) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
    %0 = "relax.hint_on_device"(%w) {vdevice = "cuda:0"} : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32>
    %1 = "relax.negative"(%v) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "relax.hint_on_device"(%1) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "relax.add"(%0, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %4 = "relax.add"(%3, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %4 : tensor<4xf32>
  }
}
"""

REALIZE, LIFT = "relax-realize-vdevice", "relax-lift-transform-params"
LAZY = "relax-lazy-get-input,relax-lazy-set-output"


def check_meaning(module: rx.Module, after: rx.Module) -> None:
    operation = module.ir.operation
    for function in entry_functions(operation):
        name, rng = name_of(function), np.random.default_rng(0)
        inputs, raw = arguments_for(operation, name, rng), raw_weights(operation, name, rng)
        wanted = run_entry(operation, name, inputs, raw)
        for a, b in zip(wanted, run_entry(after.ir.operation, name, inputs, raw), strict=True):
            np.testing.assert_array_equal(a, b)


def test_input_module_is_unmodified():
    module = rx.Module.parse(TWO_CPUS)
    before = str(module)
    assert str(module.run(REALIZE)) != before
    assert str(module.run("relax-update-vdevice{from=cpu:0 to=cpu:1}")) != before
    assert str(module) == before


@pytest.mark.parametrize("pipeline", [REALIZE, f"{REALIZE},{LIFT}", f"{REALIZE},relax-update-vdevice{{from=cpu:1 to=cpu:0}}"])
def test_several_cpus_compute_what_one_does(pipeline):
    module = rx.Module.parse(TWO_CPUS)
    after = module.run(pipeline)
    check_meaning(module, after)
    rng = np.random.default_rng(1)
    x, raw = arguments_for(module.ir.operation, "main", rng)[0], raw_weights(module.ir.operation, "main", rng)
    executable = rx.compile(module.run(REALIZE))
    executable.bind(executable.prepare(raw))
    np.testing.assert_array_equal(executable(x), x @ raw["w"] @ raw["v"])


ORDERS = [f"{REALIZE},{LIFT}", f"{LIFT},{REALIZE}", f"{LIFT},{REALIZE},{LIFT}", f"{REALIZE},{LIFT},{REALIZE}"]


@pytest.mark.parametrize("pipeline", ORDERS)
def test_copies_of_weights_are_prepared(pipeline):
    """A weight hinted to another device is copied there once, in preparation; inference takes it on that device."""
    module = rx.Module.parse(WEIGHTS)
    after = module.run(pipeline)
    check_meaning(module, after)
    types = [str(a.type) for a in after.ir.body.operations[1].arguments]
    assert types == ['tensor<4xf32, {vdevice = "cuda:0"}>'] * len(types)
    assert '"relax.hint_on_device"' not in str(after)
    assert str(after).index('"relax.to_vdevice"') < str(after).index("@main(")


@pytest.mark.parametrize("pipeline", [*(f"{o},{LAZY}" for o in ORDERS), f"{LIFT},{LAZY},{REALIZE}"])
def test_lazy_weights_keep_their_devices(pipeline):
    module = rx.Module.parse(WEIGHTS)
    after = module.run(pipeline)
    check_meaning(module, after)
    assert str(after) == str(after.run(REALIZE))
    assert str(after).count('"relax.to_vdevice"') == 1


def test_lifting_and_placing_commute():
    module = rx.Module.parse(WEIGHTS)
    first, second = (module.run(order).run("relax-canonicalize") for order in ORDERS[:2])
    assert [str(a.type) for a in first.ir.body.operations[1].arguments] == [
        str(a.type) for a in second.ir.body.operations[1].arguments
    ]


def check_one_device_per_op(module: ir.Operation) -> None:
    for op in nested_operations(module):
        cls = op_class(op)
        if cls is not None and cls.same_vdevice:
            devices = {vdevice_of(v) for v in (*op.operands, *op.results) if is_tensor(v)}
            assert len(devices) < 2, f"expected one device, got {devices} in {op}"


@pytest.mark.parametrize("start", range(0, 60, 30))
def test_each_op_of_random_modules_is_on_one_device(start):
    placed = 0
    for text in map(random_module, range(start, start + 30)):
        if "vdevice" in text:
            after = rx.Module.parse(text).run(REALIZE)
            check_one_device_per_op(after.ir.operation)
            assert '"relax.hint_on_device"' not in str(after)
            placed += 1
    assert placed > 5
