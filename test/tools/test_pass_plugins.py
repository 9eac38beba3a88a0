"""``relax-opt --load-pass-plugin``, ``--emit-bytecode`` and ``--no-implicit-module``."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from relaxir.tools import relax_opt

PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar

from relaxir.dialect.bindings import ir
from relaxir.extend import Pass


@dataclass(frozen=True)
class Mark(Pass):
    # Marks the module.

    name: ClassVar[str] = "acme-mark-loaded"
    text: str = ""

    def run(self, op):
        op.attributes["acme.mark"] = ir.StringAttr.get(self.text)
"""
FUNCTION = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model.mlir").write_text(FUNCTION)
    return tmp_path / "model.mlir"


def test_passes_of_a_file_are_flags(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "acme_loaded.py").write_text(PLUGIN)
    flags = [f"--load-pass-plugin={tmp_path / 'acme_loaded.py'}", "--acme-mark-loaded=text=loud"]
    assert relax_opt.run([*flags, str(model)]) == 0
    assert 'attributes {acme.mark = "loud"}' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "expected a Python module of passes as '{}', got FileNotFoundError: "),
        ("1 / 0", "expected a Python module of passes as '{}', got ZeroDivisionError: division by zero"),
        ("x = 1", "expected classes of passes in '{}', got none"),
        (PLUGIN.replace("acme-mark-loaded", "relax-canonicalize"), "expected a new pass name, got 'relax-canonicalize'"),
    ],
)
def test_plugin_mistakes(text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "acme_wrong.py"
    if text is not None:
        path.write_text(text)
    assert relax_opt.run(["--load-pass-plugin", str(path), "--help"]) == 1
    assert message.format(path) in capsys.readouterr().err


def test_bytecode_is_what_mlir_reads(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from relaxir.dialect.bindings import ir
    from relaxir.dialect.context import new_context

    assert relax_opt.run([str(model), "--emit-bytecode", "-o", str(tmp_path / "model.mlirbc")]) == 0
    assert relax_opt.run([str(tmp_path / "model.mlirbc")]) == 1
    assert "expected MLIR text, got MLIR bytecode" in capsys.readouterr().err
    assert relax_opt.run([str(tmp_path / "model.mlirbc"), "--accept-bytecode"]) == 0
    again = capsys.readouterr().out
    assert relax_opt.run([str(model)]) == 0
    assert capsys.readouterr().out == again
    with new_context():
        assert "@main" in str(ir.Module.parse((tmp_path / "model.mlirbc").read_bytes()))
    (tmp_path / "two.mlir").write_text(f"{FUNCTION}\n// -----\n{FUNCTION}")
    assert relax_opt.run([str(tmp_path / "two.mlir"), "--split-input-file", "--emit-bytecode"]) == 1
    assert "expected one module to write as bytecode, got 2" in capsys.readouterr().err


def test_bytecode_is_not_for_terminals(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", terminal)
    assert relax_opt.run([str(model), "--emit-bytecode"]) == 1
    assert "expected a file or a pipe for bytecode, got a terminal: -o FILE" in capsys.readouterr().err


def test_the_module_may_have_to_be_written(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert relax_opt.run([str(model), "--no-implicit-module"]) == 1
    assert "error: expected a module at the top of the input, got 'func.func'" in capsys.readouterr().err
    (tmp_path / "whole.mlir").write_text(f"module {{ {FUNCTION} }}")
    assert relax_opt.run([str(tmp_path / "whole.mlir"), "--no-implicit-module"]) == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [(b"main", "expected strings in UTF-8, got "), (b"func", "expected MLIR's bytecode, got damaged bytecode")],
)
def test_bytecode_of_names_that_are_no_text(
    name: bytes, message: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "model.mlirbc"
    assert relax_opt.run([str(model), "--emit-bytecode", "-o", str(path)]) == 0
    content = path.read_bytes()
    assert name in content
    path.write_bytes(content.replace(name, name[:1] + b"\xff" + name[2:]))
    assert relax_opt.run([str(path), "--accept-bytecode"]) == 1
    assert f"error: {message}" in capsys.readouterr().err
