"""What a module takes in MLIR goes when the module does: no context outlives what uses it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.passes import manager
from relaxir.dialect.passes.base import Pass
from relaxir.runtime.executable import Executable
from relaxir.tools import relax_opt

TEXT = """
func.func @main(%x: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"}, %w: tensor<4x8xf32> {relax.name = "w"})
    -> tensor<?x8xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %t = "relax.add"(%w, %w) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  return %y : tensor<?x8xf32, {sym = ["n"]}>
}
"""
X, W = np.ones((3, 4), np.float32), np.ones((4, 8), np.float32)


def parse() -> None:
    module = rx.Module.parse(TEXT)
    assert module.functions
    assert str(module)


def run() -> None:
    rx.Module.parse(TEXT).run("relax-lift-transform-params,canonicalize")


def evaluate() -> None:
    rx.evaluate(rx.Module.parse(TEXT), "main", X, weights={"w": W})


def build() -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(y=b.relu(b.input("x", ("n", 4))))
    b.build()


def compile_and_call() -> None:
    executable = rx.compile(rx.Module.parse(TEXT), cache=False)
    assert isinstance(executable, Executable)
    executable.bind(executable.prepare({"w": W}))
    executable(X)


def refuse() -> None:
    with pytest.raises(rx.RelaxError):
        rx.Module.parse(TEXT.replace("8xf32", "9xf32", 1))
    with pytest.raises(rx.RelaxError):
        rx.Module.parse(TEXT).run("relax-quantize-weights{bits=3}")
    with pytest.raises(rx.RelaxError):
        rx.compile(rx.Module.parse("module {}"))


@pytest.mark.parametrize("use", [parse, run, evaluate, build, compile_and_call, refuse])
def test_contexts_go_with_their_modules(use: Callable[[], None]) -> None:
    use()  # what is loaded once
    gc.collect()
    before = ir.Context._get_live_count()
    for _ in range(3):
        use()
    gc.collect()
    assert ir.Context._get_live_count() <= before


def test_contexts_go_with_a_run_of_a_tool(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(TEXT)

    def once() -> None:
        assert relax_opt.run([str(path), "--relax-lift-transform-params", "-o", str(tmp_path / "out.mlir")]) == 0

    once()
    gc.collect()
    before = ir.Context._get_live_count()
    once()
    gc.collect()
    assert ir.Context._get_live_count() <= before


def test_threads_make_contexts_at_once() -> None:
    found: list[str] = []
    start = threading.Barrier(8)

    def parse_often() -> None:
        start.wait()
        for _ in range(4):
            found.append(str(rx.Module.parse(TEXT)))

    threads = [threading.Thread(target=parse_often) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [str(rx.Module.parse(TEXT))] * 32


def test_dialects_that_are_seldom_used_come_with_what_has_them() -> None:
    context = new_context()
    assert not context.is_dialect_loaded("spirv")
    assert not context.is_dialect_loaded("gpu")
    text = "module { gpu.module @m { gpu.func @f() kernel { gpu.return } } func.func private @g(!spirv.ptr<f32, Function>) }"
    module = rx.Module.parse(text)
    assert "!spirv.ptr<f32, Function>" in str(module)
    assert str(module.run("gpu.module(cse)")) == str(module)
    assert manager.build("spirv.module(cse)", context).anchor == "builtin.module"
    assert context.is_dialect_loaded("spirv")


def test_passes_of_other_packages_may_make_ops_of_any_dialect() -> None:
    with new_context() as context:
        manager.Pipeline().add_pass(_OfAnotherPackage())
        assert context.is_dialect_loaded("spirv")
    with new_context() as context:
        manager.build("relax-lift-transform-params", context)
        assert not context.is_dialect_loaded("spirv")


class _OfAnotherPackage(Pass):
    name = "other-pass"

    def run(self, op: ir.Operation) -> None:
        del op
