"""What relax-opt says to every mistake on the command line or in the input: one line, exit code 1, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from relaxir.tools.relax_opt import run

ADD = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "add.mlir"
    path.write_text(ADD)
    return path


def refusal(capfd: pytest.CaptureFixture[str], *argv: object) -> str:
    """What relax-opt prints to stderr when it refuses; it must print nothing else."""
    assert run([str(a) for a in argv]) == 1
    captured = capfd.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--nonsense"], "relax-opt: error: unknown command line argument '--nonsense', see 'relax-opt --help'\n"),
        (["--splt-input-file"], "unknown command line argument '--splt-input-file', did you mean 'split-input-file'\n"),
        (["--canonicaliz"], "unknown command line argument '--canonicaliz', did you mean 'canonicalize'\n"),
        (["---"], "unknown command line argument '---'"),
        (["--verify-each=maybe"], "expected true or false for '--verify-each', got 'maybe'\n"),
        (["--emit=asm"], "expected mlir or script for '--emit', got 'asm'\n"),
        (["--verify-diagnostics=some"], "expected all or only-expected for '--verify-diagnostics', got 'some'\n"),
        (["--mlir-elide-elementsattrs-if-larger=-1"], "expected a count of 0 or more"),
        (["--mlir-elide-elementsattrs-if-larger=many"], "expected a count of 0 or more"),
        (["-o"], "expected a value for '--output'"),
        (["--pass-pipeline"], "expected a value for '--pass-pipeline'"),
        (["--pass-pipeline=cse", "--canonicalize"], "expected either --pass-pipeline or passes as flags, got both\n"),
        (["one.mlir", "two.mlir"], "expected one input, got 'one.mlir' and 'two.mlir'\n"),
    ],
)
def test_command_line(argv: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert message in refusal(capfd, *argv)


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("builtin.module(relax-nope)", "expected the name of a pass, got 'relax-nope'"),
        ("canonicalise", "did you mean 'canonicalize'"),
        ("builtin.module(cse", "expected ')'"),
        ("builtin.module(cse))", "expected balanced brackets"),
        ("canonicalize{max-iterations=x}", "canonicalize"),
        ("canonicalize{nope=1}", "pass 'canonicalize' has no option named 'nope'"),
        ("cse,,cse", "expected the name of a pass, got nothing"),
        ("nope.op(cse)", "expected an op to nest passes under, got 'nope.op'"),
        ("builtin.module(affine-parallelize)", "affine-parallelize"),
        ("cse)\x00(", "expected"),
        ("\udcff", "expected"),
    ],
)
def test_pipeline(pipeline: str, message: str, source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    error = refusal(capfd, source, f"--pass-pipeline={pipeline}")
    assert "relax-opt: error: " in error
    assert message in error


def test_pass_options_as_a_flag(source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "pass 'canonicalize' has no option named 'nope'" in refusal(capfd, source, "--canonicalize=nope=1")


def test_pipeline_on_the_wrong_op(source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "error: " in refusal(capfd, source, "--sharding-propagation")


def test_missing_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "missing.mlir"
    expected = f"relax-opt: error: cannot open input file '{path}': No such file or directory\n"
    assert refusal(capfd, path) == expected


def test_folder_as_input(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "cannot open input file" in refusal(capfd, tmp_path)


def test_null_byte_in_a_path(source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "cannot open input file" in refusal(capfd, "a\0b")
    assert "cannot open output file" in refusal(capfd, source, "-o", "a\0b")


def test_output_into_a_missing_folder(source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    error = refusal(capfd, source, "-o", tmp_path / "none" / "out.mlir")
    assert "cannot open output file" in error


def test_output_is_not_touched_after_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept, bad = tmp_path / "kept.mlir", tmp_path / "bad.mlir"
    kept.write_text("before")
    bad.write_text("func.func {")
    refusal(capfd, bad, "-o", kept)
    assert kept.read_text() == "before"


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        (b"\xff\xfe", "", "expected UTF-8 text, got the byte 0xff at 0"),
        (b"ML\xefR\x01", "", "expected MLIR text, got MLIR bytecode"),
        (b"module attributes {a = " + b"[" * 100_000 + b"]" * 100_000 + b"} {}", "", "levels of nesting, got"),
        (b'"builtin.module"() ({\n' * 20_000 + b"}) : () -> ()\n" * 20_000, "", "levels of nesting, got"),
        (b"func.func @f() {", ":1:15", "expected operation name in quotes"),
        (b"nonsense", ":1:1", "nonsense"),
        (b'"relax.nope"() : () -> ()', ":1:1", "unregistered operation 'relax.nope'"),
        (b'"foo.bar"() : () -> ()', ":1:10", "unregistered dialect"),
        (b"func.func private @f()\nfunc.func private @f()", ":2:1", "redefinition of symbol named 'f'"),
        (b'func.func @f() {\n  "relax.add"() : () -> ()\n  return\n}', ":2:3", "op expects exactly 2 operands"),
        (b"func.func @f(%x: tensor<?xf32, {sym = []}>) { return }", ":1:1", "expected one 'sym' expression"),
        (b"func.func private @f() attributes {relax.num_input = 3 : i64}", ":1:1", "relax.num_input between 0 and 0"),
    ],
)
def test_input(content: bytes, place: str, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "input.mlir"
    path.write_bytes(content)
    error = refusal(capfd, path)
    assert error.startswith(f"{path}{place}: error: ")
    assert message in error
    assert "Traceback" not in error


@pytest.mark.parametrize("content", [b"", b"\n", b"// a comment\n", b"\xef\xbb\xbf"[:0]])
def test_empty_input(content: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.mlir"
    path.write_bytes(content)
    assert run([str(path)]) == 0
    assert capfd.readouterr().out == "module {\n}\n"


def test_unregistered_dialect_allowed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "foreign.mlir"
    path.write_text('"foo.bar"() : () -> ()')
    assert run([str(path), "--allow-unregistered-dialect"]) == 0
    assert '"foo.bar"() : () -> ()' in capfd.readouterr().out


def test_bad_regular_expression_in_a_designator(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "designator.mlir"
    path.write_text("// expected-error-re {{a {{(}} b}}\n")
    assert f"{path}:1:4: expected a valid regular expression" in refusal(capfd, path, "--verify-diagnostics")


def test_caret_counts_characters_where_mlir_counts_bytes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "umlaut.mlir"
    path.write_text('\tmodule attributes {a = "äöü"} { nonsense }\n')
    error, line, caret = refusal(capfd, path).splitlines()[:3]
    assert error.startswith(f"{path}:1:")
    assert line[len(caret) - 1 :].startswith("nonsense")
    assert caret == "\t" + " " * (len(caret) - 2) + "^"


def test_colour_only_on_a_terminal(source: Path) -> None:
    """A child with a pseudo-terminal as stderr prints in colour, one with a pipe does not."""
    pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
    source.write_text("nonsense")
    command = [sys.executable, "-c", "from relaxir.tools.relax_opt import main; main()", str(source)]
    plain = subprocess.run(command, capture_output=True, check=False)
    assert b"\x1b[" not in plain.stderr
    ours, theirs = pty.openpty()
    child = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=theirs, check=False)
    os.close(theirs)
    shown = os.read(ours, 65536)
    os.close(ours)
    assert child.returncode == plain.returncode == 1
    assert b"\x1b[1;31merror: \x1b[0m" in shown


def test_a_file_whose_name_is_no_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.mlir")
    Path(path).write_text(ADD)
    assert run([path, "--mlir-print-debuginfo"]) == 0
    assert '"\ufffd.mlir":2'.strip('"') in capfd.readouterr().out.replace("\\EF\\BF\\BD", "\ufffd")
    Path(path).write_text(ADD.replace("add", "bad"))
    assert "\ufffd.mlir:2:" in refusal(capfd, path)
