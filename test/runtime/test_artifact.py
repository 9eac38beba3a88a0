"""Artifacts: saved and loaded by both kinds of code, replaced at once, and refused when damaged or made for another machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import relaxir
from relaxir import RelaxError
from relaxir.lowering.manifest_specs import TargetSpec
from relaxir.runtime import artifact
from relaxir.runtime.cpu import check_target
from relaxir.runtime.cpu_features import known_features, lacking
from relaxir.runtime.executable import Executable
from relaxir.runtime.loading import load
from support.c_compiler import c_compiler
from support.hand_compiled import entry, executable_of, manifest, scaled_executable, tensor

RAW = {"w": np.array([1, 2, 3, 4], np.float32), "bias": np.zeros(3, np.int8)}
ONES = np.ones((2, 4), np.float32)


@pytest.fixture(params=["module.so", "module.o"])
def code_file(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kind of code that saving makes."""
    if request.param == "module.so":
        c_compiler()
    else:
        monkeypatch.setattr(shutil, "which", lambda name: None)
    return request.param


def returning(value: int) -> Executable:
    text = (
        f"define i64 @f(ptr %t, ptr %s, ptr %a, i64 %n) {{\n %p = load ptr, ptr %t\n store i16 {value}, ptr %p\n ret i64 0\n}}"
    )
    return executable_of(manifest(entries=[entry("main", "f", outputs=[tensor("y", [], "i16")])]), text)


def test_save_and_load(tmp_path: Path, code_file: str) -> None:
    executable = scaled_executable()
    executable.save(tmp_path / "m.relax")
    assert sorted(os.listdir(tmp_path / "m.relax")) == sorted(["manifest.json", "module.mlir", "module.h", code_file])
    assert os.listdir(tmp_path) == ["m.relax"]
    loaded = relaxir.load(tmp_path / "m.relax")
    assert (loaded.module_text, loaded.header, loaded.fingerprint) == ("module {}\n", executable.header, executable.fingerprint)
    assert loaded.bind(loaded.prepare(RAW))(ONES).tolist() == [[2, 4, 6, 8]] * 2
    assert "entry main(x: f32[n, 4]) -> (y: f32[n, 4])" in str(loaded.report)
    assert repr(loaded) == "<relaxir.Executable: main(x: f32[n, 4]) -> (y: f32[n, 4]); bound>"


def test_a_loaded_executable_saves_its_own_code(tmp_path: Path, code_file: str) -> None:
    """Even when its artifact was replaced by another model meanwhile."""
    returning(1).save(tmp_path / "a.relax")
    first = load(tmp_path / "a.relax")
    returning(2).save(tmp_path / "a.relax")
    first.save(tmp_path / "b.relax")
    assert load(tmp_path / "b.relax")().tolist() == 1


def test_a_replaced_artifact_is_loaded_anew(tmp_path: Path, code_file: str) -> None:
    """dlopen by itself returns the old library for an equal path."""
    loaded: list[Executable] = []
    for value in (1, 2, 3):
        returning(value).save(tmp_path / "a.relax")
        loaded.append(load(tmp_path / "a.relax"))
    assert [e().tolist() for e in loaded] == [1, 2, 3]
    loaded[0].save(tmp_path / "a.relax")
    assert [load(tmp_path / "a.relax")().tolist(), loaded[2]().tolist()] == [1, 3]


@pytest.mark.parametrize("at_once", [True, False])
def test_an_artifact_is_there_while_it_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool) -> None:
    path = tmp_path / "model.relax"
    scaled_executable().save(path)
    before = sorted(os.listdir(path))
    rename, seen = os.rename, list[bool]()

    def watched(source: str, target: str) -> None:
        seen.append(path.exists())
        rename(source, target)

    monkeypatch.setattr(os, "rename", watched)
    if not at_once:
        monkeypatch.setattr(artifact, "_swapped", lambda one, other: False)
    scaled_executable().save(path)
    assert seen == ([] if at_once else [True, False])
    assert (sorted(os.listdir(path)), os.listdir(tmp_path)) == (before, ["model.relax"])


def test_an_artifact_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.relax"
    scaled_executable().save(path)
    rename = os.rename

    def refused(source: str, target: str) -> None:
        if source.endswith("new"):
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(artifact, "_swapped", lambda one, other: False)
    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(RelaxError, match=r"cannot write '.*model.relax': Input/output error"):
        scaled_executable().save(path)
    assert os.listdir(tmp_path) == ["model.relax"]
    load(path)


def test_permissions_are_the_usual_ones(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        returning(1).save(tmp_path / "a.relax")
    finally:
        os.umask(old)
    assert (tmp_path / "a.relax").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "a.relax" / "manifest.json").stat().st_mode & 0o777 == 0o644


def test_what_saving_replaces(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").touch()
    (tmp_path / "empty").mkdir()
    for name in ("file", "folder"):
        with pytest.raises(
            RelaxError, match=rf"cannot write '.*{name}': expected nothing or an artifact there, got something else"
        ):
            returning(1).save(tmp_path / name)
    with pytest.raises(RelaxError, match=r"expected an existing folder, got '.*none'"):
        returning(1).save(tmp_path / "none" / "a.relax")
    returning(1).save(tmp_path / "empty")
    assert load(tmp_path / "empty")().tolist() == 1
    assert sorted(os.listdir(tmp_path)) == ["empty", "file", "folder"]


def test_what_running_does_not_need_may_be_removed(tmp_path: Path) -> None:
    """The code is there without the model's text, for who gives an artifact to others."""
    scaled_executable().save(tmp_path / "m.relax")
    header = (tmp_path / "m.relax" / "module.h").read_text()
    for name in ("module.mlir", "module.h"):
        (tmp_path / "m.relax" / name).unlink()
    loaded = load(tmp_path / "m.relax")
    assert (loaded.module_text, loaded.header) == ("", header)
    loaded.save(tmp_path / "again.relax")
    assert "module.mlir" not in os.listdir(tmp_path / "again.relax")


def test_a_symbolic_link_is_not_replaced(tmp_path: Path) -> None:
    scaled_executable().save(tmp_path / "m.relax")
    (tmp_path / "link.relax").symlink_to("m.relax")
    with pytest.raises(RelaxError, match="expected nothing or an artifact there, got a symbolic link"):
        scaled_executable().save(tmp_path / "link.relax")


def test_a_failing_linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/false")
    returning_one = returning(1)
    with pytest.raises(RelaxError, match="cannot link with '/bin/false -shared'"):
        returning_one.save(tmp_path / "a.relax")
    assert os.listdir(tmp_path) == []


def test_kernels_without_a_linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in an object of its own, in an archive, which other tools read as well."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    b = relaxir.Builder()
    with b.function("main"):
        b.output(b.softmax(b.input("x", ("n", 4), "f32"), axis=1))
    executable = relaxir.compile(b.build(), cache=False)
    executable.save(tmp_path / "a.relax")
    assert (tmp_path / "a.relax" / "module.a").read_bytes().startswith(b"!<arch>\n")
    loaded = relaxir.load(tmp_path / "a.relax")
    assert np.array_equal(loaded(ONES), executable(ONES))
    loaded.save(tmp_path / "again.relax")
    assert (tmp_path / "again.relax" / "module.a").read_bytes() == (tmp_path / "a.relax" / "module.a").read_bytes()


def test_nothing_to_save(tmp_path: Path) -> None:
    scaled = scaled_executable()
    executable = Executable(scaled.manifest.data, scaled._library)
    with pytest.raises(RelaxError, match="cannot save the executable: expected its object code or shared library, got neither"):
        executable.save(tmp_path / "a.relax")


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        data = json.loads((folder / "manifest.json").read_text())
        change(data)
        (folder / "manifest.json").write_text(json.dumps(data))

    return apply


def outside(folder: Path) -> None:
    (folder / "module.mlir").rename(folder.parent / "module.mlir")
    (folder / "module.mlir").symlink_to("../module.mlir")


DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "expected manifest.json in an artifact directory, got none"),
    "no JSON": (lambda f: (f / "manifest.json").write_text("{"), "expected a manifest in JSON, got JSONDecodeError"),
    "not UTF-8": (lambda f: (f / "manifest.json").write_bytes(b"\xff\xfe\xff"), "manifest in JSON, got UnicodeDecodeError"),
    "deep": (lambda f: (f / "manifest.json").write_text("[" * 100_000), "expected a manifest in JSON, got RecursionError"),
    "list": (lambda f: (f / "manifest.json").write_text("[]"), "manifest: expected an object, got list"),
    "version": (edit(lambda d: d.update(version=9)), "manifest.version: expected 1, got 9"),
    "format": (edit(lambda d: d.update(format="irpa")), "manifest.format: expected 'relaxir', got 'irpa'"),
    "field": (edit(lambda d: d["entries"][0].pop("inputs")), r"manifest.entries\[0\].inputs: expected a value, got none"),
    "symbol": (edit(lambda d: d["entries"][0].update(symbol="gone")), "expected the symbol 'gone'|cannot link.*gone"),
    "no code": (edit(lambda d: d.pop("code")), r"manifest.code.file: expected module.so or module.a or module.o, got None"),
    "code path": (edit(lambda d: d["code"].update(file="../x.so")), r"expected module.so or module.a or module.o, got '../x"),
    "hash": (edit(lambda d: d["code"].update(sha256="00")), "expected sha256 00, got [0-9a-f]{64}: the artifact is damaged"),
    "triple": (edit(lambda d: d["target"].update(triple="riscv64-x-linux-gnu")), "got code for riscv64-x-linux-gnu: compile"),
    "link": (outside, "expected a file inside '.*', got 'module.mlir', which leads to"),
    "module text": (lambda f: (f / "module.mlir").write_bytes(b"\xff"), "module.mlir': expected UTF-8 text, got other bytes"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged(tmp_path: Path, case: str, code_file: str) -> None:
    damage, message = DAMAGED[case]
    scaled_executable().save(tmp_path / "a.relax")
    damage(tmp_path / "a.relax")
    with pytest.raises(RelaxError, match=message):
        load(tmp_path / "a.relax")


def test_damaged_code(tmp_path: Path, code_file: str) -> None:
    returning(1).save(tmp_path / "a.relax")
    code = tmp_path / "a.relax" / code_file
    code.write_bytes(code.read_bytes()[:-1])
    with pytest.raises(RelaxError, match=rf"{code_file}: expected sha256 [0-9a-f]+, got [0-9a-f]+: the artifact is damaged"):
        load(tmp_path / "a.relax")
    code.unlink()
    with pytest.raises(RelaxError, match=rf"cannot read '.*{code_file}': No such file"):
        load(tmp_path / "a.relax")


def test_no_artifact(tmp_path: Path) -> None:
    with pytest.raises(RelaxError, match="expected an artifact directory, got nothing"):
        load(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(RelaxError, match="expected an artifact directory, got a file"):
        load(tmp_path / "file")


def test_a_library_the_system_refuses(tmp_path: Path) -> None:
    from relaxir.runtime.library import Library

    (tmp_path / "x.so").write_bytes(b"no library")
    with pytest.raises(RelaxError, match=rf"cannot load '{tmp_path}/x.so': .*{tmp_path}/x.so"):
        Library.open(str(tmp_path / "x.so"), [])


def test_features_by_the_kernel_are_those_that_llvm_knows() -> None:
    known = {name: there for name, there in llvm.get_host_cpu_features().items()}
    assert not lacking(name for name, there in known.items() if there)
    assert not [name for name, there in known.items() if name in known_features() and not there]
    assert lacking(["fly"]) == ["fly"]


def test_targets() -> None:
    triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
    architecture = triple.split("-")[0]
    check_target(TargetSpec(triple, cpu, llvm.get_host_cpu_features().flatten()), "a")
    check_target(TargetSpec(triple.replace("-unknown-", "-pc-"), "other", "-sve,-zdinx"), "a")
    with pytest.raises(
        RelaxError, match=rf"a: expected code for {triple}, got code for {architecture}-pc-windows-msvc: compile"
    ):
        check_target(TargetSpec(f"{architecture}-pc-windows-msvc", cpu, ""), "a")
    with pytest.raises(
        RelaxError, match=rf"a: expected code for this processor \({cpu}\), got code for m1, which needs fly, sing"
    ):
        check_target(TargetSpec(triple, "m1", "+sing,-dance,+fly"), "a")


@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_header_compiles(tmp_path: Path, language: str) -> None:
    main = entry(
        "*/ /*/ evil\n\\",
        "f",
        inputs=[tensor("*/", ["n"]), tensor("/*\x1b\u2028", ["n"])],
        symbols=[{"name": "n", "min": 1, "max": 8}],
        checks=["a */ b"],
    )
    header = executable_of(manifest(entries=[main]), object_with_f()).header
    (tmp_path / "module.h").write_text(header)
    (tmp_path / "user.c").write_text(
        '#include "module.h"\nint64_t (*g)(void *const *, const int64_t *, void *, int64_t) = f;\n'
    )
    command = [c_compiler(), "-x", language, "-Wall", "-Werror", "-fsyntax-only", "user.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "entry * / / * / evil\\n/" in header
    assert "tensors[0]: input * /: f32[n]" in header
    assert r"tensors[1]: input / *\x1b\u2028: f32[n]" in header
    assert "symbols[0]: n, from 1 to 8" in header


def object_with_f() -> str:
    return "define i64 @f(ptr %t, ptr %s, ptr %a, i64 %n) {\n ret i64 0\n}"


def test_a_c_program_runs_the_artifact(tmp_path: Path) -> None:
    scaled_executable().save(tmp_path / "a.relax")
    (tmp_path / "main.c").write_text("""
#include <stdio.h>
#include <stdlib.h>
#include "module.h"
int main(void) {
  float x[8] = {1, 1, 1, 1, 2, 2, 2, 2}, w[4] = {1, 2, 3, 4}, y[8];
  void *tensors[] = {x, w, y};
  int64_t symbols[] = {2};
  int64_t need = relaxir_main(tensors, symbols, NULL, 0);
  void *arena = aligned_alloc(64, need);
  int64_t status = relaxir_main(tensors, symbols, arena, need);
  printf("%d %d %g %g\\n", (int)need, (int)status, y[3], y[7]);
  return 0;
}""")
    subprocess.run([c_compiler(), "-Ia.relax", "main.c", "a.relax/module.so", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run(
        [str(tmp_path / "main")], cwd=tmp_path, env={"LD_LIBRARY_PATH": "."}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "128 0 4 8\n"
