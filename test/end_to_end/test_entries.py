"""Several functions in one executable: shared and different preparation, names, hand-written transforms."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import relaxir as rx
from relaxir.lowering.marks import LOWERED, WRITABLE

W = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_two_entries_share_what_they_prepare_alike() -> None:
    b = rx.Builder()
    for name in ("prefill", "decode"):
        with b.function(name):
            x = b.input("x", ("n", 4))
            b.output(b.matmul(x, b.permute_dims(b.weight("w", (3, 4)), axes=[1, 0])))
    executable = rx.compile(b.build())
    assert len(executable.manifest.prepared_weights) == 1
    executable.bind(executable.prepare({"w": W}))
    x = np.ones((2, 4), np.float32)
    for name in ("prefill", "decode"):
        np.testing.assert_array_equal(executable(x, entry=name), x @ W.T)


def test_one_name_for_two_preparations_is_told_apart() -> None:
    text = """
      func.func @{0}_transform_params(%w: tensor<3x4xf32> {{relax.name = "w"}}) -> (tensor<3x4xf32> {{relax.name = "p"}})
          attributes {{relax.num_input = 0 : i64, relax.transform_for = @{0}}} {{
        %p = "relax.{1}"(%w) : (tensor<3x4xf32>) -> tensor<3x4xf32>
        return %p : tensor<3x4xf32>
      }}
      func.func @{0}(%x: tensor<3x4xf32>, %p: tensor<3x4xf32> {{relax.name = "p"}}) -> tensor<3x4xf32>
          attributes {{relax.num_input = 1 : i64}} {{
        %y = "relax.add"(%x, %p) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
        return %y : tensor<3x4xf32>
      }}"""
    module = rx.Module.parse(text.format("a", "negative") + text.format("b", "square"))
    executable = rx.compile(module, pipeline="cse")
    assert set(executable.manifest.prepared_weights) == {"p", "b/p"}
    executable.bind(executable.prepare({"w": W}))
    zero = np.zeros((3, 4), np.float32)
    np.testing.assert_array_equal(executable(zero, entry="a"), -W)
    np.testing.assert_array_equal(executable(zero, entry="b"), W * W)


def test_a_transform_may_rename_a_weight() -> None:
    module = rx.Module.parse("""
      func.func @main_transform_params(%w: tensor<3x4xf32> {relax.name = "w"}) -> (tensor<3x4xf32> {relax.name = "p"})
          attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
        return %w : tensor<3x4xf32>
      }
      func.func @main(%x: tensor<3x4xf32>, %p: tensor<3x4xf32> {relax.name = "p"}) -> tensor<3x4xf32>
          attributes {relax.num_input = 1 : i64} {
        %y = "relax.add"(%x, %p) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
        return %y : tensor<3x4xf32>
      }""")
    executable = rx.compile(module, pipeline="cse")
    executable.bind(executable.prepare({"w": W}))
    np.testing.assert_array_equal(executable(np.zeros((3, 4), np.float32)), W)


def test_results_that_are_inputs_weights_or_one_another() -> None:
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", ("n", 4)), b.weight("w", (3, 4))
        y = b.add(x, 1.0)
        b.output(x, y, y, w, b.reshape(y, shape=("n * 4",)))
    executable = rx.compile(b.build())
    executable.bind(executable.prepare({"w": W}))
    x = np.ones((2, 4), np.float32)
    for want, got in zip((x, x + 1, x + 1, W, (x + 1).ravel()), executable(x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_failed_checks_name_the_place() -> None:
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", "m"))
        b.output(b.match_cast(x, ("n", "n")))
    executable = rx.compile(b.build())
    executable(np.zeros((3, 3), np.float32))
    with pytest.raises(rx.RelaxError, match=r"test_entries.py:\d+:\d+: .*expected"):
        executable(np.zeros((3, 4), np.float32))


def test_names_that_are_one_in_c_are_refused() -> None:
    b = rx.Builder()
    for name in ("a.b", "a_b"):
        with b.function(name):
            b.output(b.input("x", (2,)))
    with pytest.raises(rx.RelaxError, match=r"expected function names that differ in C, got @a\.b and @a_b"):
        rx.compile(b.build())


def test_unknown_targets_and_modules_are_refused() -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.input("x", (2,)))
    module = b.build()
    with pytest.raises(rx.RelaxError, match="expected target 'cpu' or 'cuda', got 'tpu'"):
        rx.compile(module, target="tpu")
    with pytest.raises(rx.RelaxError, match=r"expected a relaxir.Module or the path of one, got int"):
        rx.compile(1)  # pyright: ignore[reportArgumentType]
    model = torch.nn.Linear(2, 2)
    with pytest.raises(
        rx.RelaxError, match=r"got Linear: relaxir.from_torch imports what torch.export.export\(model, inputs\)"
    ):
        rx.compile(model)  # pyright: ignore[reportArgumentType]
    with pytest.raises(rx.RelaxError, match=r"got ExportedProgram: relaxir.from_torch imports it"):
        rx.compile(torch.export.export(model, (torch.ones(2),)))  # pyright: ignore[reportArgumentType]
    with pytest.raises(rx.RelaxError, match=r"expected a .mlir, .onnx or .pt2 file \(torch.export.save\), got 'func"):
        rx.compile("func.func @main()")
    with pytest.raises(rx.RelaxError, match="expected a public function to compile, got none"):
        rx.compile(rx.Module.parse("func.func private @f()"))


@pytest.mark.parametrize(
    ("attributes", "argument", "name"),
    [
        ('attributes {relax.entry = {name = "main"}}', "", "relax.entry"),
        ("attributes {relax.kernel}", "", "relax.kernel"),
        ("", "{bufferization.writable = true}", "bufferization.writable"),
    ],
)
def test_what_only_lowering_says_of_functions_is_refused(attributes: str, argument: str, name: str) -> None:
    """Code would read and write as much as the attribute says, or to what is the caller's."""
    text = f"func.func @main(%x: tensor<4xf32> {argument}) -> tensor<4xf32> {attributes} {{\n return %x : tensor<4xf32>\n}}"
    with pytest.raises(rx.RelaxError, match=f"'func.func' op expected no {name}, which lowering itself writes"):
        rx.compile(rx.Module.parse(text))


@pytest.mark.parametrize("place", ["MODULE", "ARGUMENT", "RESULT", "FUNCTION", "LOOP", "BODY", "CALL", "OP"])
def test_what_only_lowering_says_is_refused_wherever_it_is_said(place: str) -> None:
    """A loop whose iterations are said to be independent would be a race."""
    for name in (*LOWERED - {WRITABLE}, "llvm.something"):
        text = re.sub("<[A-Z]+>", "{}", PLACES.replace(f"<{place}>", f'{{{name} = "tile=8"}}'))
        module = rx.Module.parse(text, "f.mlir")
        with pytest.raises(
            rx.RelaxError, match=rf"f\.mlir:\d+:\d+: '[\w.]+' op expected no {name}, which lowering itself writes"
        ):
            rx.compile(module)


PLACES = """
module attributes <MODULE> {
  func.func private @f(%x: tensor<4xf32> <ARGUMENT>) -> (tensor<4xf32> <RESULT>) attributes <FUNCTION> {
    %0 = "relax.abs"(%x) <OP> : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %low = arith.constant 0 : index
    %high = arith.constant 9 : index
    %step = arith.constant 1 : index
    %0 = scf.for %i = %low to %high step %step iter_args(%a = %x) -> (tensor<4xf32>) {
      %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%a : tensor<4xf32>) outs(%x : tensor<4xf32>) {
      ^bb0(%e: f32, %o: f32):
        %v = math.exp %e : f32
        %w = arith.addf %v, %v <BODY> : f32
        linalg.yield %w : f32
      } -> tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    } <LOOP>
    %2 = call @f(%0) <CALL> : (tensor<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
"""
