"""``--verify-semantics``: the pass that changes what a module computes is named, and lossy ones are held to what they state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import ClassVar

import pytest

import relaxir as rx
from relaxir.dialect.bindings import func, ir
from relaxir.dialect.ops import Dequantize, Negative, Quantize
from relaxir.dialect.passes import manager
from relaxir.dialect.passes import registry as pass_registry
from relaxir.dialect.passes.base import Pass
from relaxir.dialect.transforms.precision import exact_rows
from relaxir.dialect.traversal import nested_operations
from relaxir.tools import relax_opt

MODEL = """
func.func @main(%x: tensor<?x8xf32, {sym = ["n"]}> {relax.name = "x"}, %w: tensor<8x4xf32> {relax.name = "w"})
    -> (tensor<?x4xf32, {sym = ["n"]}> {relax.name = "y"}) attributes {relax.num_input = 1 : i64} {
  %h = "relax.matmul"(%x, %w) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<8x4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
  %y = "relax.negative"(%h) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return %y : tensor<?x4xf32, {sym = ["n"]}>
}
"""
#: What everything that rounds to integers, or to a narrower float, may be run with.
LOSSY = (
    "relax-quantize-weights{bits=4 group=4 scale=f16},relax-lift-transform-params",
    "relax-quantize-weights,relax-pack-weights{tile=8},relax-sink-growth,relax-quantize-activations{rows=4 unsigned=true}",
    "relax-to-mixed-precision,relax-quantize-weights{bits=4}",
    "relax-fold-batch-norm,func.func(relax-canonicalize,cse)",
)


@dataclass(frozen=True)
class DropNegative(Pass):
    """Takes ``relax.negative`` for what it reads."""

    name: ClassVar[str] = "test-drop-negative"

    def run(self, op: ir.Operation) -> None:
        for found in [o.opview for o in nested_operations(op) if isinstance(o.opview, Negative)]:
            found.result.replace_all_uses_with(found.operands[0])


@dataclass(frozen=True)
class DropNegativeAndStateIt(DropNegative):
    """The same, which says that it rounds."""

    name: ClassVar[str] = "test-drop-and-state"
    rounding: ClassVar[float] = 1e-3


@dataclass(frozen=True)
class DoubleScales(Pass):
    """Of weights that are rounded scales become twice as large: numbers are off by more than 8 bits allow."""

    name: ClassVar[str] = "test-double-scales"
    rounding: ClassVar[float] = inf

    def run(self, op: ir.Operation) -> None:
        for found in [o.opview for o in nested_operations(op) if isinstance(o.opview, Quantize)]:
            with ir.InsertionPoint(found.operation), found.location:
                double = ir.Operation.create("relax.add", [found.scale.type], [found.scale, found.scale]).result
            for reader in [found, *(u.owner.opview for u in found.result.uses if isinstance(u.owner.opview, Dequantize))]:
                reader.operation.operands[1] = double


@dataclass(frozen=True)
class Rename(Pass):
    """A function gets another name."""

    name: ClassVar[str] = "test-rename"

    def run(self, op: ir.Operation) -> None:
        for function in [o.opview for o in nested_operations(op) if isinstance(o.opview, func.FuncOp)]:
            function.attributes["sym_name"] = ir.StringAttr.get("other")


@pytest.fixture(autouse=True)
def _passes_of_this_file(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pass_registry, "_LOADERS", dict(pass_registry._LOADERS))
    pass_registry._loaded.cache_clear()
    for cls in (DropNegative, DropNegativeAndStateIt, DoubleScales, Rename):
        manager.register(cls.name, lambda cls=cls: cls)
    yield
    pass_registry._loaded.cache_clear()


@pytest.mark.parametrize(
    ("pipeline", "culprit", "told"),
    [
        ("relax-canonicalize,test-drop-negative,cse", "test-drop-negative", "of 20 differ"),
        ("test-drop-and-state", "test-drop-and-state", "of 20 differ"),
        ("builtin.module(cse,test-rename)", "test-rename", "there is no such function any more"),
        ("relax-quantize-weights,test-double-scales", "test-double-scales", "a number is rounded by more than the pass states"),
    ],
)
def test_pass_is_named(pipeline: str, culprit: str, told: str):
    module = rx.Module.parse(MODEL, "model.mlir")
    module.run(pipeline)
    with pytest.raises(rx.RelaxError, match=rf"pass '{culprit}' changed the meaning of @main, .*: .*{told}") as error:
        module.run(pipeline, verify_semantics=True)
    assert "model.mlir:2:1" in str(error.value) or culprit == "test-rename"


@pytest.mark.parametrize("pipeline", LOSSY)
def test_lossy_passes_keep_to_what_they_state(pipeline: str):
    assert str(rx.Module.parse(MODEL).run(pipeline, verify_semantics=True)) == str(rx.Module.parse(MODEL).run(pipeline))


#: What makes one row of floats several of integers, right to the rounding of f32.
EXACT = """relax-quantize-weights{bits=4 group=8 scale=f16},relax-pack-weights{tile=8},relax-sink-growth,
    relax-quantize-activations{rows=4 unsigned=true floats=false exact=true}"""


def _of_one_row(dtype: str) -> rx.Module:
    text = MODEL.replace('?x8xf32, {sym = ["n"]}', "1x8xf32").replace('?x4xf32, {sym = ["n"]}', "1x4xf32")
    return rx.Module.parse(text.replace("xf32", f"x{dtype}"))


@pytest.mark.parametrize(("dtype", "rows"), [("f32", 3), ("bf16", 2)])
def test_rows_of_integers_that_say_all_of_a_row_of_floats(dtype: str, rows: int):
    assert f"tensor<{rows}x8xi8>" in str(_of_one_row(dtype).run(EXACT, verify_semantics=True))


def test_rows_of_integers_that_do_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(exact_rows, "_ROWS", {32: 1})
    with pytest.raises(rx.RelaxError, match=r"'relax-quantize-activations.*' changed the meaning of @main"):
        _of_one_row("f32").run(EXACT, verify_semantics=True)


def test_what_is_beyond_the_reference_semantics_is_told():
    with pytest.warns(
        rx.RelaxWarning, match="not compared: 'relax-to-linalg' and what follows: 'tensor.empty' has no reference"
    ):
        rx.Module.parse(MODEL).run("relax-lift-transform-params,relax-to-linalg,cse", verify_semantics=True)


def test_functions_that_refuse_random_inputs_are_told():
    text = """
    func.func @main(%x: tensor<?x4xf32, {sym = ["n"]}>) -> tensor<7x4xf32> {
      %y = "relax.match_cast"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<7x4xf32>
      return %y : tensor<7x4xf32>
    }"""
    with pytest.warns(rx.RelaxWarning, match=r"not compared: @main: .*'relax.match_cast' op expected"):
        rx.Module.parse(text).run("cse", verify_semantics=True)


def test_relax_opt(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    path = tmp_path / "model.mlir"
    path.write_text(f"{MODEL}// -----\n{MODEL}")
    options = [str(path), "--split-input-file", "-o", str(tmp_path / "out.mlir")]
    assert relax_opt.run([*options, "--relax-canonicalize", "--relax-lift-transform-params", "--verify-semantics=2"]) == 0
    assert capfd.readouterr().err == "verify-semantics: 4 results compared\n"
    assert relax_opt.run([*options, "--relax-quantize-weights", "--verify-semantics=2"]) == 0
    assert capfd.readouterr().err == "verify-semantics: 4 results compared\n"
    assert relax_opt.run([*options, "--test-drop-negative", "--verify-semantics"]) == 1
    told = capfd.readouterr().err
    assert (
        told.count("error: pass 'test-drop-negative' changed the meaning of @main, on random inputs of seed 0: result 0:") == 2
    )
    assert f"{path}:2:1: error:" in told
