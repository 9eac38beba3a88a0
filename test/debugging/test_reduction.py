"""Modules made small: what is left is what the predicate asks for, whatever stands around it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

import relaxir as rx
from relaxir.debugging import Ending, command, dies, differs, ended, fails, reduced
from relaxir.tools import cli

MODEL = """
func.func private @helper(%a: tensor<?x64xf32, {sym = ["n"]}>) -> tensor<?x64xf32, {sym = ["n"]}> {
  %t = "relax.tanh"(%a) : (tensor<?x64xf32, {sym = ["n"]}>) -> tensor<?x64xf32, {sym = ["n"]}>
  return %t : tensor<?x64xf32, {sym = ["n"]}>
}
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = "relax.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @main(%x: tensor<?x64xf32, {sym = ["n"]}> {relax.name = "x"}, %c: i1, %k: index,
    %w: tensor<64x64xf32> {relax.name = "w"}, %b: tensor<64xf32> {relax.name = "b"})
    -> (tensor<?x64xf32, {sym = ["n"]}>, tensor<64xf32>) attributes {relax.num_input = 3 : i64} {
  %v = "relax.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %h = "relax.matmul"(%x, %v) : (tensor<?x64xf32, {sym = ["n"]}>, tensor<64x64xf32>) -> tensor<?x64xf32, {sym = ["n"]}>
  %e = "relax.exp"(%h) : (tensor<?x64xf32, {sym = ["n"]}>) -> tensor<?x64xf32, {sym = ["n"]}>
  %t = func.call @helper(%e) : (tensor<?x64xf32, {sym = ["n"]}>) -> tensor<?x64xf32, {sym = ["n"]}>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %k step %one iter_args(%a = %t) -> (tensor<?x64xf32, {sym = ["n"]}>) {
    %f = scf.if %c -> tensor<?x64xf32, {sym = ["n"]}> {
      %s = "relax.sqrt"(%a) : (tensor<?x64xf32, {sym = ["n"]}>) -> tensor<?x64xf32, {sym = ["n"]}>
      scf.yield %s : tensor<?x64xf32, {sym = ["n"]}>
    } else {
      %s = "relax.sin"(%a) : (tensor<?x64xf32, {sym = ["n"]}>) -> tensor<?x64xf32, {sym = ["n"]}>
      scf.yield %s : tensor<?x64xf32, {sym = ["n"]}>
    }
    scf.yield %f : tensor<?x64xf32, {sym = ["n"]}>
  }
  %u = "relax.add"(%r, %x) : (tensor<?x64xf32, {sym = ["n"]}>, tensor<?x64xf32, {sym = ["n"]}>)
      -> tensor<?x64xf32, {sym = ["n"]}>
  return %u, %b : tensor<?x64xf32, {sym = ["n"]}>, tensor<64xf32>
}
"""


def one_op(op: str) -> str:
    type_ = 'tensor<?x1xf32, {sym = ["n"]}>'
    return (
        f"module {{\n  func.func @main(%arg0: {type_}) -> {type_} {{\n"
        f'    %0 = "relax.{op}"(%arg0) : ({type_}) -> {type_}\n    return %0 : {type_}\n  }}\n}}\n'
    )


@pytest.mark.parametrize("op", ["exp", "sin"])
def test_one_op_is_left_of_branches_and_loops(op: str):
    asked = list[str]()
    small = reduced(MODEL, lambda text: (asked.append(text), f'"relax.{op}"' in text)[1])
    assert small == one_op(op)
    assert len(asked) == len(set(asked))


def test_what_stays_between_functions_stays():
    both = reduced(MODEL, lambda text: "call @helper" in text and '"relax.exp"' in text)
    assert [n for n in ("exp", "tanh", "matmul", "scf") if n in both] == ["exp"]
    assert "func.func private @helper" in both


def test_what_is_made_of_weights_stays_a_weight():
    def holds(text: str) -> bool:
        return '"relax.matmul"' in text and bool(rx.Module.parse(text).functions["main"].weights)

    small = reduced(MODEL, holds)
    assert holds(small)
    assert "permute_dims" not in small
    assert "tensor<1x1xf32>)" in small


def test_what_is_no_module_loses_lines_and_words():
    text = "module {\n  first line\n  a (needle in hay\n}\n"
    assert reduced(text, lambda t: "needle" in t) == "needle"


def test_a_module_that_is_not_interesting_is_refused():
    with pytest.raises(rx.RelaxError, match="expected a module that is interesting, got one that is not"):
        reduced(MODEL, lambda text: False)


def test_errors_of_passes(tmp_path: Path):
    predicate = fails("expected one of the functions", "relax-lift-transform-params{functions=gone}")
    assert not predicate("not a module")
    assert not fails("other", "relax-canonicalize")(MODEL)
    assert fails("no such text here", "unknown-pass")(MODEL) is False
    assert fails("unknown-pass", "unknown-pass")(MODEL)


def test_other_results():
    scaled = """
    func.func @main(%x: tensor<2x32xf32>, %w: tensor<32x32xf32> {relax.name = "w"}) -> tensor<2x32xf32>
        attributes {relax.num_input = 1 : i64} {
      %a = "relax.abs"(%x) : (tensor<2x32xf32>) -> tensor<2x32xf32>
      %y = "relax.matmul"(%a, %w) : (tensor<2x32xf32>, tensor<32x32xf32>) -> tensor<2x32xf32>
      return %y : tensor<2x32xf32>
    }
    """
    rounds = differs("relax-quantize-weights{bits=4}", tolerance=1e-6)
    assert rounds(scaled)
    assert not differs("relax-canonicalize")(scaled)
    assert not differs()(scaled)
    assert not rounds("not a module")
    constant = """
    module attributes {relax.constants = {k = dense<[1.0, 2.0]> : tensor<2xf32>}} {
      func.func @main(%x: tensor<2xf32>, %k: tensor<2xf32> {relax.name = "k"}) -> tensor<2xf32>
          attributes {relax.num_input = 1 : i64} {
        %y = "relax.add"(%x, %k) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        return %y : tensor<2xf32>
      }
    }
    """
    assert not differs()(constant)


def test_processes_that_die_or_hang(monkeypatch: pytest.MonkeyPatch):
    run = rx.Module.run

    def broken(module: rx.Module, pipeline: str) -> rx.Module:
        if '"relax.exp"' in str(module):
            os.kill(os.getpid(), signal.SIGSEGV)
        return run(module, pipeline)

    monkeypatch.setattr(rx.Module, "run", broken)
    assert dies("cse")(MODEL)
    assert not dies("cse")(one_op("sin"))
    assert ended(lambda: time.sleep(60), 0.1) == Ending("hung", text="more than 0.1 s")
    assert ended(lambda: os._exit(3), 10) == Ending("died", text="exit code 3")
    assert ended(lambda: signal.raise_signal(signal.SIGABRT), 10) == Ending("died", text="SIGABRT")
    assert ended(lambda: int("a"), 10) == Ending("raised", text="ValueError: invalid literal for int() with base 10: 'a'")
    assert ended(lambda: "x" * (1 << 20), 10) == Ending("returned", "x" * (1 << 20))


def test_commands(tmp_path: Path):
    assert command("grep -q needle")("needle\n")
    assert command("grep -q needle {}")("needle\n")
    assert not command("grep -q needle")("hay")
    assert not command("sleep 60", seconds=0.1)("hay")
    with pytest.raises(rx.RelaxError, match="cannot run 'no-such-program': No such file or directory"):
        command("no-such-program")("")
    with pytest.raises(rx.RelaxError, match="expected a command, got nothing"):
        command(" ")
    with pytest.raises(rx.RelaxError, match="expected a command, got ''': No closing quotation"):
        command("'")


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    Path("model.mlir").write_text(MODEL)
    error = ["--error", "no such text", "--pipeline", "relax-lift-transform-params{functions=gone}"]
    assert cli.run(["reduce", "model.mlir", "-o", "small.mlir", *error]) == 1
    assert capsys.readouterr().err == "error: 'model.mlir': expected an error with 'no such text' in it, got none\n"
    error[1] = "gone"
    assert cli.run(["reduce", "model.mlir", "-o", "small.mlir", *error]) == 0
    assert Path("small.mlir").read_text() == "module {\n}\n"
    assert capsys.readouterr().out == f"reduced model.mlir from {len(MODEL)} to 11 characters: small.mlir\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of the arguments --test --error --dies --differs is required"),
        (["--test", "true", "--target", "cpu"], "--test runs the command alone: expected no --pipeline and no --target"),
        (["--dies", "--target", "cpu", "--pipeline", "cse"], "expected --pipeline or --target, got both"),
        (["--dies", "--tolerance", "1"], "expected --tolerance with --differs"),
    ],
)
def test_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert cli.run(["reduce", "model.mlir", "-o", "small.mlir", *arguments]) == 2
    assert message in capsys.readouterr().err
