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
        (
            PLUGIN.replace("acme-mark-loaded", "cse"),
            "expected a new pass name, got 'cse', which is one of MLIR's, of class Mark",
        ),
        (PLUGIN.replace("acme-mark-loaded", "output"), "expected a new pass name, got 'output', which is a flag of relax-opt"),
        (PLUGIN.replace("acme-mark-loaded", "o"), "expected a new pass name, got 'o', which is a flag of relax-opt"),
        (PLUGIN.replace("acme-mark-loaded", "any"), "expected a new pass name, got 'any', which pipelines nest passes under"),
        (
            PLUGIN.replace("acme-mark-loaded", "Acme A!"),
            "expected a pass name of lower-case letters, digits and dashes, got 'Acme A!', of class Mark of module acme_wrong",
        ),
        (PLUGIN.replace("def run", "def ran"), "expected a method 'run' of pass class Mark of module acme_wrong, got none"),
        (
            PLUGIN.replace("@dataclass(frozen=True)", ""),
            "expected @dataclass(frozen=True) on pass class Mark of module acme_wrong, which has the field 'text', got none",
        ),
        (
            PLUGIN.replace("text: str =", "sizes: list[int] ="),
            "expected field 'sizes' of pass class Mark of module acme_wrong to be one of bool, int, int | None, bool | None, "
            "float, str, tuple[str, ...], got list[int]",
        ),
        (
            PLUGIN.replace("text: str =", "text: 'Text' ="),
            "expected types of fields of pass class Mark of module acme_wrong that can be read, got NameError: ",
        ),
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


def test_a_file_may_be_named_twice(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "acme_twice.py"
    path.write_text(PLUGIN.replace("acme-mark-loaded", "acme-mark-twice"))
    flags = [f"--load-pass-plugin={path},{path}", f"--load-pass-plugin={tmp_path / '.' / 'acme_twice.py'}"]
    assert relax_opt.run([*flags, "--acme-mark-twice", str(model)]) == 0
    assert 'attributes {acme.mark = ""}' in capsys.readouterr().out


def test_an_option_without_default_is_required(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "acme_required.py"
    path.write_text(PLUGIN.replace("acme-mark-loaded", "acme-required").replace('text: str = ""', "text: str"))
    load = f"--load-pass-plugin={path}"
    assert relax_opt.run([load, "--acme-required", str(model)]) == 1
    assert "expected option 'text' of pass 'acme-required', got none" in capsys.readouterr().err
    assert relax_opt.run([load, "--acme-required=text={a b}", str(model)]) == 0
    assert 'attributes {acme.mark = "a b"}' in capsys.readouterr().out
    assert relax_opt.run([load, "--help"]) == 0
    assert "text=<a string>" in (shown := capsys.readouterr().out)
    assert "(required)" in shown


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
