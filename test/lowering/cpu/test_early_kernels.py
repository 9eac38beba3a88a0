"""Kernels that are built before all else: which ones, and that code is the same as without."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import relaxir as rx
from relaxir import RelaxError
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.functions import functions, name_of
from relaxir.dialect.parser import parse_module
from relaxir.lowering.cpu import codegen, early_kernels
from relaxir.lowering.cpu.early_kernels import build_early
from relaxir.lowering.cpu.llvm_worker import Units
from relaxir.lowering.set_target import set_target
from relaxir.lowering.target import Target
from support.kernel_functions import LENT_MEMORY, PLAIN
from support.stages import target_named

KERNELS = (
    PLAIN
    + LENT_MEMORY
    + """
func.func @main(%x: memref<64xf32>, %y: memref<8x8xf32>, %s: index) {
  call @plain(%x, %s) : (memref<64xf32>, index) -> ()
  call @of_other_types(%x, %s) : (memref<64xf32>, index) -> ()
  call @works_in_lent_memory(%x) : (memref<64xf32>) -> ()
  return
}
func.func private @of_other_types(%x: memref<64xf32>, %s: index) attributes {relax.kernel} {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%s] : memref<64xf32>
  memref.store %v, %x[%c0] : memref<64xf32>
  return
}
"""
)


def planned() -> ir.Operation:
    module = parse_module(KERNELS, "-", new_context())
    set_target(module.operation, target_named())
    return module.operation


def test_what_callers_lend_memory_to_stays() -> None:
    module = planned()
    early = build_early(module, target_named(), processes=1)
    assert early is not None
    names = [name_of(f) for f in functions(module)]
    assert {"main", "works_in_lent_memory"} < set(names)
    (symbol,) = early.queue.compiled(Units(codegen._machine(target_named())))
    assert sorted(set(names) - {"main", "works_in_lent_memory"}) == [f"{symbol}..0", f"{symbol}..1"]
    assert str(module).count(f"call @{symbol}..") == 2


@pytest.mark.parametrize("reason", ["nobody compiles", "templates of others"])
def test_nothing_is_built_early_where(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    if reason == "templates of others":
        monkeypatch.setattr(early_kernels, "plugins", lambda group: ("one",))
    module = planned()
    before = str(module)
    assert build_early(module, target_named(), processes=0 if reason == "nobody compiles" else 1) is None
    assert str(module) == before


SHAPES = ((40, 48), (48, 24), (24, 56))


def model() -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", (3, 40), "f32")
        for i, shape in enumerate(SHAPES):
            x = b.softmax(b.matmul(x, b.weight(f"w{i}", shape, "f32")))
        b.output(x, b.sin(x))
    return b.build()


def test_code_is_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And found in the cache for the next model; with a dump, which shows all of it, too."""
    monkeypatch.setenv("RELAXIR_CACHE_DIR", str(tmp_path / "cache"))
    taken: list[int] = []

    def spy(module: ir.Operation, target: Target, processes: int) -> early_kernels.EarlyKernels | None:
        early = build_early(module, target, processes)
        taken.append(0 if early is None else len(early.kept))
        return early

    made, expected = model(), rx.compile(model(), cache=False)
    monkeypatch.setattr("relaxir.lowering.cpu.compiler.build_early", spy)
    monkeypatch.setattr(codegen, "_KERNELS", 1)
    monkeypatch.setattr(codegen, "_processors", lambda: 3)
    for _ in range(2):
        found = rx.compile(made)
        assert found._object_code == expected._object_code
        assert str(found.report) == str(expected.report)
        shutil.rmtree(tmp_path / "cache" / "objects")
    assert taken[0] > 3
    assert taken[1] == 0
    assert rx.compile(made, dump=tmp_path / "dump")._object_code == expected._object_code
    assert len(taken) == 2


def test_what_llvm_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*arguments: object) -> bytes:
        raise RuntimeError("no such instruction")

    monkeypatch.setenv("RELAXIR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(codegen, "_KERNELS", 1)
    monkeypatch.setattr(codegen, "_processors", lambda: 2)
    monkeypatch.setattr(codegen, "_elsewhere", refuse)
    monkeypatch.setattr(codegen.Units, "object", refuse)
    with pytest.raises(RelaxError, match=r"LLVM cannot compile for .*: no such instruction"):
        rx.compile(model(), cache=False)
