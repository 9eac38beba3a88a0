"""``relaxir info``, ``prepare`` and ``run`` on an artifact made by hand: what they print and write, and each mistake."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from relaxir.runtime.executable import Executable
from relaxir.tools import cli
from relaxir.weights import Checkpoint, write_safetensors
from support.hand_compiled import entry, executable_of, manifest, scaled_executable, tensor

W = np.array([1, 2, 3, 4], np.float32)
BIAS = np.array([1, 2, 3], np.int8)
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an artifact, raw and prepared weights, and an input; made once, for linking and syncing take time."""
    path = tmp_path_factory.mktemp("files")
    executable = scaled_executable()
    executable.save(path / "model.relax")
    write_safetensors(path / "raw.safetensors", {"w": W, "bias": BIAS})
    executable.prepare(path / "raw.safetensors", path / "prepared.safetensors")
    np.save(path / "x.npy", np.ones((2, 4), np.float32))
    return path


@pytest.fixture
def relaxir(files: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs the command line in a copy of the folder; gives exit code, stdout and stderr."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(arguments)
        return code, *capsys.readouterr()

    return call


def run_arguments(*more: str) -> tuple[str, ...]:
    return ("run", "model.relax", "--weights", "prepared.safetensors", *more, "-o", "out.npz")


def test_info(relaxir: Cli):
    code, out, err = relaxir("info", "model.relax")
    assert (code, err) == (0, "")
    assert out.splitlines()[:9] == [
        "entry main(x: f32[n, 4]) -> (y: f32[n, 4])",
        "  symbols: 1 <= n <= 512",
        "  weights: 1",
        "  checks: expected n other than 13",
        "raw weights: 2, 19 B",
        "prepared weights: 2, 19 B",
        "  copy: 2 -> 2, 19 B -> 19 B (w, bias)",
        "preparation: 2 steps, 1 computed, predicted peak 96 B",
        out.splitlines()[8],
    ]
    assert out.splitlines()[8].startswith("target: ")
    assert out.splitlines()[9] == f"fingerprint: {'f00d' * 16}"


def test_info_of_another_processor(relaxir: Cli):
    path = Path("model.relax/manifest.json")
    path.write_text(re.sub(r'"triple": "[^"]*"', '"triple": "riscv64-unknown-linux-gnu"', path.read_text()))
    code, out, _ = relaxir("info", "model.relax")
    assert code == 0
    assert "target: riscv64-unknown-linux-gnu" in out
    _, _, err = relaxir("run", "model.relax", "--random", "--dim", "n=1", "-o", "o.npz")
    assert err.startswith("error: 'model.relax': expected code for ")


def test_info_groups_what_is_lifted(relaxir: Cli):
    weights = [tensor(f"w{i}", [1024]) for i in range(4)]
    prepared = [w | {"sources": [w["name"]], "ops": ["astype", "permute_dims", "permute_dims"]} for w in weights]
    steps = [{"symbol": None, "gets": [w["name"]], "sets": [w["name"]], "arena_bytes": 0} for w in weights]
    symbols = [{"name": "n", "min": 1, "max": None}, {"name": "m", "min": None, "max": None}]
    main = entry("main", "relaxir_main", symbols=symbols, inputs=[tensor("x", ["n", "m"])])
    data = manifest(entries=[main], raw_weights=weights, prepared_weights=prepared, steps=steps, peak_bytes=5 * 2**30)
    executable_of(data).save("many.relax")
    code, out, _ = relaxir("info", "many.relax")
    assert code == 0
    assert "  symbols: n >= 1, m\n" in out
    assert "  astype, permute_dims x2: 4 -> 4, 16.0 KiB -> 16.0 KiB (w0, w1, ...)\n" in out
    assert "preparation: 4 steps, 0 computed, predicted peak 5.0 GiB\n" in out


def test_prepare(relaxir: Cli):
    code, out, err = relaxir("prepare", "model.relax", "raw.safetensors", "-o", "p.safetensors", "--jobs", "2")
    assert code == 0
    assert out.startswith("prepared p.safetensors: 19 B to 19 B in ")
    assert err.splitlines()[-1] == "prepare: 2 of 2 steps, 19 B of 19 B"
    np.testing.assert_array_equal(Checkpoint("p.safetensors").get("w"), 2 * W)


def test_prepare_shows_a_bar_on_a_terminal(relaxir: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    code, out, err = relaxir("prepare", "model.relax", "raw.safetensors", "-o", "prepared.safetensors")
    assert code == 0
    assert "19/19 bytes" in err
    assert "bias" in err
    assert out.startswith("prepared ")


def test_run(relaxir: Cli):
    code, out, err = relaxir(*run_arguments("--input", "x=x.npy"))
    assert (code, out, err) == (0, "y: [2, 4] float32\nwrote out.npz\n", "")
    with np.load("out.npz") as results:
        np.testing.assert_array_equal(results["y"], [2 * W, 2 * W])


def test_run_at_random(relaxir: Cli):
    results = []
    for seed in ([], ["7"], ["7"]):
        assert relaxir(*run_arguments("--random", *seed, "--dim", "n=5"))[0] == 0
        with np.load("out.npz") as archive:
            results.append(archive["y"])
    assert results[0].shape == (5, 4)
    assert not np.array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[1], results[2])


def test_random_inputs_take_sizes_from_given_ones(relaxir: Cli):
    main = entry(
        "main", "relaxir_main", symbols=[{"name": "n", "min": 1, "max": None}],
        inputs=[tensor("x", ["n", 4]), tensor("w", [4])], outputs=[tensor("y", ["n", 4])], checks=["expected n other than 13"],
    )  # fmt: skip
    executable_of(manifest(entries=[main])).save("two.relax")
    code, out, _ = relaxir("run", "two.relax", "--input", "x=x.npy", "--random", "-o", "out.npz")
    assert (code, out) == (0, "y: [2, 4] float32\nwrote out.npz\n")


def test_raw_bytes_of_bfloat16_are_read_back(relaxir: Cli):
    data = manifest(
        entries=[entry("main", "relaxir_copy", inputs=[tensor("x", [1], "bf16")], outputs=[tensor("y", [1], "bf16")])]
    )
    executable_of(data).save("copy.relax")
    np.save("half.npy", np.array([1.5], ml_dtypes.bfloat16))
    assert relaxir("run", "copy.relax", "--input", "x=half.npy", "-o", "out.npz")[0] == 0
    with np.load("out.npz") as archive:
        assert archive["y"].view(ml_dtypes.bfloat16) == 1.5


def test_run_replaces_the_file_and_leaves_no_other(relaxir: Cli):
    before = set(os.listdir())
    for _ in range(2):
        assert relaxir(*run_arguments("--input", "x=x.npy"))[0] == 0
    assert set(os.listdir()) == before | {"out.npz"}


def test_names_of_outputs_may_be_any(relaxir: Cli):
    outputs = [tensor("file", [1], "i16")]
    data = manifest(entries=[entry("a", "relaxir_copy", inputs=[tensor("x", [1], "i16")], outputs=outputs)])
    executable_of(data).save("copy.relax")
    assert relaxir("run", "copy.relax", "--random", "-o", "out.npz")[0] == 0
    with np.load("out.npz") as archive:
        assert archive.files == ["file"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the following arguments are required: COMMAND (see 'relaxir --help')"),
        (("nothing",), "argument COMMAND: invalid choice: 'nothing'.*"),
        (("show", "model.relax"), "argument COMMAND: invalid choice: 'show'.*"),
        (("compile", "m.mlir"), "the following arguments are required: -o/--output (see 'relaxir compile --help')"),
        (("info",), "the following arguments are required: MODEL (see 'relaxir info --help')"),
        (("info", "none.relax"), "'none.relax': expected an artifact directory, got nothing"),
        (("info", "x.npy"), "'x.npy': expected a module, got one array of NumPy: .*"),
        (("info", "."), "'.': expected manifest.json in an artifact directory, got none"),
        (("prepare", "none.relax", "raw.safetensors", "-o", "p"), "'none.relax': expected an artifact directory, got nothing"),
        (("prepare", "model.relax", "none.safetensors", "-o", "p"),
         "cannot read 'none.safetensors': No such file or directory"),
        (("prepare", "model.relax", "raw.safetensors", "-o", "none/p"),
         "cannot write 'none/p': expected an existing folder, got 'none'"),
        (("prepare", "model.relax", "raw.safetensors", "-o", "p", "--jobs", "0"),
         "argument --jobs: expected a number from 1 on, got '0' .*"),
        (("prepare", "model.relax", "raw.safetensors", "-o", "p", "--rank", "0"),
         "expected --rank and --world together, got one of them (see 'relaxir prepare --help')"),
        (("prepare", "model.relax", "raw.safetensors", "-o", "p/"),
         "cannot write 'p/': expected the name of a file, got one of a folder"),
        (("prepare", "model.relax", "raw.safetensors", "-o", "p.gguf"),
         "cannot write 'p.gguf': expected an end of the name that no other kind of file has, as .safetensors, got 'p.gguf'"),
        (("prepare", "model.relax", "raw.safetensors", "-o", "p.safetensors", "--format", "gguf"),
         "cannot write 'p.safetensors': expected an end of the name .gguf, got 'p.safetensors'"),
        (("prepare", "model.relax", "raw.safetensors", "-o", "p", "--jobs", "x"),
         "argument --jobs: expected a number from 1 on, got 'x' .*"),
        (("prepare", "model.relax", "x.npy", "-o", "p"), "'x.npy': .*"),
        (("run", "model.relax", "--input", "x=x.npy", "-o", "o.npz"), "expected --weights: entry 'main' has 1 weights"),
        (("run", "model.relax", "--input", "x=x.npy", "--weights", "raw.safetensors", "-o", "o.npz"),
         "'raw.safetensors': expected weights prepared for .*"),
        (run_arguments(), "expected --input x=FILE.npy (f32[n, 4]), or --random"),
        (run_arguments("--random"), "expected --dim n=SIZE for input 'x' (f32[n, 4])"),
        (run_arguments("--random", "--dim", "k=2"), "expected --dim for n, got 'k'"),
        (run_arguments("--random", "--dim", "n=1000"), ".*n.*512.*1000.*"),
        (run_arguments("--random", "--dim", "n=13"), ".*expected n other than 13.*"),
        (run_arguments("--random", "--dim", "n=2147483647"), ".*"),
        (run_arguments("--input", "z=x.npy"), "expected --input for x, got 'z'"),
        (run_arguments("--input", "x=none.npy"), "cannot read 'none.npy': No such file or directory"),
        (run_arguments("--input", "x=raw.safetensors"), "'raw.safetensors': expected an array in .npy form, got .*"),
        (run_arguments("--input", "x=empty.npy"), "'empty.npy': expected an array in .npy form, got .*"),
        (run_arguments("--input", "x=torn.npy"), "'torn.npy': expected an array in .npy form, got .*"),
        (run_arguments("--input", "x=many.npz"), "'many.npz': expected an array in .npy form, got a file .* b'PK.*"),
        (run_arguments("--input", "x=objects.npy"), "'objects.npy': expected an array in .npy form, got .*"),
        (run_arguments("--input", "x=double.npy"), ".*input 'x': expected dtype f32, got f64"),
        (run_arguments("--input", "x=wide.npy"), ".*'x'.*"),
        (run_arguments("--input", "x=x.npy", "--entry", "other"), "expected --entry to name one of main, got other"),
        (("run", "model.relax", "--input", "x=x.npy", "-o", "none/o.npz"),
         "cannot write 'none/o.npz': expected an existing folder, got 'none'"),
        (("compile", "none.mlir", "-o", "m.relax"), "cannot read 'none.mlir': No such file or directory"),
        (("compile", "x.npy", "-o", "m.relax"), "'x.npy': expected a module, got one array of NumPy: .*"),
        (("compile", "bad.mlir", "-o", "m.relax"), "bad.mlir:1:1: custom op 'garbage' is unknown .*"),
        (("compile", "good.mlir", "-o", "m.relax", "--pipeline", "no-such"), ".*'no-such'.*"),
        (
            ("import", "model.tflite", "-o", "m.mlir"),
            "expected a .pt2 file (torch.export.save) or an .onnx file, got 'model.tflite'",
        ),
        (
            ("import", "a=a.pt2", "b=b.onnx", "-o", "m.mlir"),
            "expected .pt2 files (torch.export.save), got 'b.onnx'",
        ),
        (("compile", "none.onnx", "-o", "m.relax"), "cannot read 'none.onnx': No such file or directory"),
        (("compile", "none.pt2", "-o", "m.relax"), "cannot read 'none.pt2': No such file or directory"),
        (("import", "none.onnx", "-o", "m.mlir"), "cannot read 'none.onnx': No such file or directory"),
        (("import", "none.pt2", "-o", "m.mlir"), "cannot read 'none.pt2': No such file or directory"),
        (("import", "a=none.pt2", "-o", "m.mlir"), "cannot read 'none.pt2': No such file or directory"),
        (("import", "a=a.pt2", "b.pt2", "-o", "m.mlir"),
         "expected a name for each of several programs, as prefill=b.pt2, got 'b.pt2'"),
        (("import", "a=a.pt2", "a=b.pt2", "-o", "m.mlir"), "expected distinct names of programs, got 'a' twice"),
    ],
)  # fmt: skip
def test_mistakes(relaxir: Cli, arguments: tuple[str, ...], message: str):
    Path("empty.npy").touch()
    Path("torn.npy").write_bytes(Path("x.npy").read_bytes()[:-5])
    Path("bad.mlir").write_text("garbage")
    Path("good.mlir").write_text("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
    np.savez("many.npz", x=np.ones(1))
    np.save("objects.npy", np.array([{}]), allow_pickle=True)
    np.save("double.npy", np.ones((2, 4)))
    np.save("wide.npy", np.ones((2, 5), np.float32))
    code, out, err = relaxir(*arguments)
    assert (code, out) == (2 if "(see 'relaxir" in err else 1, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    pattern = message if ".*" in message else re.escape(message)
    assert re.fullmatch(pattern, err.removeprefix("error: ").strip())
    assert not Path("out.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (run_arguments("--random", "--dim", "n"), "expected --dim NAME=SIZE, got 'n'"),
        (run_arguments("--random", "--dim", "n=-2"), "expected a size for --dim n, got '-2'"),
        (run_arguments("--random", "--dim", "n=2", "--dim", "n=3"), "expected --dim once for 'n', got it twice"),
        (run_arguments("--input", "x"), "expected --input NAME=FILE.npy, got 'x'"),
        (run_arguments("--input", "x=x.npy", "--input", "x=x.npy"), "expected --input once for 'x', got it twice"),
        (run_arguments("--random", "--dim", f"n={2**31}"), f"expected a size for --dim n, got '{2**31}'"),
        (run_arguments("--random", "--dim", "=2"), "expected --dim NAME=SIZE, got '=2'"),
        (run_arguments("--extern", "f="), "expected --extern FUNCTION=LIBRARY, got 'f='"),
        (("compile", "m.mlir", "-o", "m", "--dim", "n=1"), "--dim: of a .pt2 or .onnx file that is imported, got 'm.mlir'"),
        (
            ("compile", "m.mlir", "-o", "m", "--cache-length", "1"),
            "--cache-length: of a .pt2 or .onnx file that is imported, got 'm.mlir'",
        ),
        (("import", "a.pt2", "-o", "m.mlir", "--dim", "n"), "expected --dim NAME=INPUT.AXIS, got 'n'"),
    ],
)
def test_values_that_have_no_name(relaxir: Cli, arguments: tuple[str, ...], message: str):
    code, out, err = relaxir(*arguments)
    assert (code, out) == (2, "")
    assert err == f"error: {message} (see 'relaxir {arguments[0]} --help')\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("compile", "m.mlir", "-o", "m.relax"),
        ("profile", "m.mlir"),
        ("compare", "m.mlir", "m.mlir"),
        ("reduce", "m.mlir", "-o", "s.mlir"),
        ("tune", "m.mlir", "-o", "tables"),
    ],
)
@pytest.mark.parametrize("target", ["tpu", "cpu:nope", "cuda:sm_1"])
def test_a_target_that_nothing_compiles_for(relaxir: Cli, arguments: tuple[str, ...], target: str):
    code, out, err = relaxir(*arguments, "--target", target)
    assert (code, out) == (2, "")
    assert re.fullmatch(
        rf"error: argument --target: expected .*, got '{target}'.* \(see 'relaxir {arguments[0]} --help'\)\n", err
    )


@pytest.mark.parametrize("command", [[], ["frobnicate"], ["compile"], ["run", "model.relax", "--frobnicate"]])
def test_a_wrong_command_line_is_told_apart_by_the_exit_code(relaxir: Cli, command: list[str]):
    code, out, err = relaxir(*command)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: .* \(see 'relaxir.* --help'\)\n", err)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.pt2", b"PK\x03\x04...", "a PyTorch program: import it first, relaxir import 'a.pt2' -o MODEL.mlir"),
        ("a.onnx", b"\x08\x07", "an ONNX model: import it first, relaxir import 'a.onnx' -o MODEL.mlir"),
        ("a.safetensors", (2).to_bytes(8, "little") + b"{}", "weights (safetensors)"),
        ("a.gguf", b"GGUF\x03\x00\x00\x00", "a GGUF file"),
    ],
)
def test_a_file_of_another_kind_is_called_what_it_is(relaxir: Cli, name: str, content: bytes, kind: str):
    Path(name).write_bytes(content)
    imported = name.endswith((".pt2", ".onnx"))
    for command in (("info", name), *([] if imported else [("compile", name, "-o", "out.relax")])):
        assert relaxir(*command) == (1, "", f"error: '{name}': expected a module, got {kind}\n")
    assert relaxir("compile", "model.relax", "-o", "out.relax")[2] == (
        "error: 'model.relax': expected a module, got an artifact: relaxir.load reads it\n"
    )


def test_info_of_a_module(relaxir: Cli):
    Path("m.mlir").write_text("""
func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "relax.negative"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @main(%x: tensor<2xf32>, %w: tensor<2xf32>, %q: tensor<3xi4>) -> tensor<2xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.add"(%x, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = func.call @f(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}""")
    assert relaxir("info", "m.mlir") == (
        0,
        "private function @f(%input0: f32[2]) -> (f32[2])\n  weights: 0, 0 B\n  operations: 1 (1 negative)\n"
        "function @main(%input0: f32[2]) -> (f32[2])\n  weights: 2, 10 B\n  operations: 2 (1 add, 1 func.call)\n",
        "",
    )
    with open("m.mlir") as file:
        command = [sys.executable, "-m", "relaxir", "info", "-"]
        result = subprocess.run(command, stdin=file, capture_output=True, text=True, check=True)
    assert result.stdout == relaxir("info", "m.mlir")[1]


def test_entry_must_be_named_when_there_are_several(relaxir: Cli):
    entries = [
        entry(name, "relaxir_copy", inputs=[tensor("x", [1], "i16")], outputs=[tensor("y", [1], "i16")]) for name in "ab"
    ]
    executable_of(manifest(entries=entries)).save("two.relax")
    assert (
        relaxir("run", "two.relax", "--random", "-o", "o.npz")[2] == "error: expected --entry to name one of a, b, got none\n"
    )
    assert relaxir("run", "two.relax", "--random", "--entry", "b", "-o", "o.npz")[0] == 0


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "other"}', "[" * 100000])
def test_broken_manifest(relaxir: Cli, text: str):
    Path("model.relax/manifest.json").write_text(text)
    code, out, err = relaxir("info", "model.relax")
    assert (code, out) == (1, "")
    assert re.fullmatch(r"error: 'model\.relax.*manifest.*: expected .*\n", err)


def test_truncated_weights(relaxir: Cli):
    Path("torn.safetensors").write_bytes(Path("raw.safetensors").read_bytes()[:-3])
    code, _, err = relaxir("prepare", "model.relax", "torn.safetensors", "-o", "p")
    assert code == 1
    assert err.startswith("error: 'torn.safetensors': tensor 'bias': expected a file of at least ")


def test_missing_weight_is_named(relaxir: Cli):
    write_safetensors("less.safetensors", {"w": W})
    _, _, err = relaxir("prepare", "model.relax", "less.safetensors", "-o", "p")
    assert err == "error: 'less.safetensors': weight 'bias': expected i8[3], got none\n"


def test_results_cannot_be_written(relaxir: Cli):
    os.mkdir("taken.npz")
    _, _, err = relaxir("run", "model.relax", "--weights", "prepared.safetensors", "--input", "x=x.npy", "-o", "taken.npz")
    assert err == "error: cannot write 'taken.npz': expected a regular file, got a folder\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("arguments", "tool"),
    [
        (["cli", "info", "model.relax"], ""),
        (["relax_opt", "good.mlir"], "relax-opt: "),
        (["relax_opt", "--help"], "relax-opt: "),
    ],
)
def test_full_disk_is_one_line(relaxir: Cli, arguments: list[str], tool: str, unbuffered: str):
    """The process's own stdout is full: nothing can be printed, and no traceback is."""
    Path("good.mlir").write_text("func.func private @f()")
    module, *rest = arguments
    program = f"import sys; from relaxir.tools.{module} import main; sys.argv = {['tool', *rest]}; main()"
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-c", program],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert result.returncode == 1
    assert result.stderr == f"{tool}error: [Errno 28] No space left on device\n"


def test_full_disk_while_writing_results(relaxir: Cli, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    before = set(os.listdir())
    _, _, err = relaxir(*run_arguments("--input", "x=x.npy"))
    assert err == "error: cannot write 'out.npz': No space left on device\n"
    assert set(os.listdir()) == before


def test_interrupt(relaxir: Cli, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Executable, "prepare", interrupted)
    assert relaxir("prepare", "model.relax", "raw.safetensors", "-o", "p") == (130, "", "interrupted\n")


def test_help_and_version(capsys: pytest.CaptureFixture[str]):
    for flag in ("--help", "--version"):
        with pytest.raises(SystemExit) as stop:
            cli.run([flag])
        assert stop.value.code == 0
    out = capsys.readouterr().out
    commands = [
        "import",
        "compile",
        "info",
        "prepare",
        "verify",
        "plan",
        "tune",
        "view",
        "profile",
        "bench",
        "compare",
        "reduce",
        "run",
        "generate",
    ]
    assert re.findall(r"^    (\w+)", out, re.MULTILINE) == commands
    assert out.endswith("relaxir 0.1.0\n")


def test_running_an_artifact_imports_no_mlir(relaxir: Cli):
    code = (
        "import sys; from relaxir.tools import cli\n"
        f"assert cli.run({run_arguments('--input', 'x=x.npy')!r}) == 0\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('torch', 'torch_mlir')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"
