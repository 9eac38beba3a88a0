"""Whatever a path leads to is read, written, or refused by name, at once, and nothing else is touched."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from relaxir import RelaxError
from relaxir.frontend.saved_program import load_exported_program
from relaxir.tools import cli, relax_opt
from relaxir.tools.cli_io import read_npy, write_npz
from relaxir.weights import Checkpoint, StreamWriter, write_safetensors
from relaxir.weights.files import open_own, replacing
from support.hand_compiled import scaled_executable

RAW = {"w": np.array([1, 2, 3, 4], np.float32), "bias": np.array([1, 2, 3], np.int8)}
MODULE = "func.func @main() {\n  return\n}\n"


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    """Whoever waits for the other end of a pipe fails."""
    signal.alarm(20)
    yield
    signal.alarm(0)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


def listening(path: Path) -> None:
    os.chdir(path.parent)  # the whole path may be too long for a socket
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


KINDS = {"a pipe": pipe, "a character device": device, "a folder": folder, "a socket": listening}


def of_artifact(name: str) -> Callable[[Path, Callable[[Path], None]], object]:
    def read(place: Path, make: Callable[[Path], None]) -> object:
        artifact = place / "model.relax"
        scaled_executable().save(artifact)
        (artifact / name).unlink()
        make(artifact / name)
        return rx.load(artifact)

    return read


def shard(place: Path, make: Callable[[Path], None]) -> object:
    make(place / "a.safetensors")
    (place / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "a.safetensors"}}))
    return Checkpoint(place)


def named(name: str, read: Callable[[Path], object]) -> Callable[[Path, Callable[[Path], None]], object]:
    def made(place: Path, make: Callable[[Path], None]) -> object:
        make(place / name)
        return read(place / name)

    return made


READERS = {
    "weights": named("w.safetensors", Checkpoint),
    "weights to prepare": named("w.safetensors", lambda p: scaled_executable().prepare(p)),
    "weights to bind": named("w.safetensors", lambda p: scaled_executable().bind(p)),
    "the file of a folder": named("model.safetensors", lambda p: Checkpoint(p.parent)),
    "an index": named("model.safetensors.index.json", lambda p: Checkpoint(p.parent)),
    "a shard": shard,
    "a module": named("m.mlir", rx.Module.load),
    "an exported program": named("m.pt2", lambda p: load_exported_program(str(p))),
    "an array": named("x.npy", lambda p: read_npy(str(p), np.dtype(np.float32))),
    "a manifest": of_artifact("manifest.json"),
    "code": of_artifact("module.so"),
    "the text of an artifact": of_artifact("module.mlir"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_only_regular_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    of_folder = "of a folder" in reader or reader in ("an index", "a shard", "a manifest", "code", "the text of an artifact")
    leads_out = of_folder and kind == "a character device"  # a link out of the folder is refused before
    got = "which leads to '/dev/zero'" if leads_out else f"expected a regular file, got {kind}"
    if kind == "a folder" and reader.startswith("weights"):
        got = r"expected model.safetensors or model.safetensors.index.json in the folder, got no such file"
    with pytest.raises(RelaxError, match=got) as caught:
        READERS[reader](tmp_path, KINDS[kind])
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_relax_opt_reads_regular_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    KINDS[kind](tmp_path / "in.mlir")
    assert relax_opt.run(["in.mlir"]) == 1
    assert capfd.readouterr().err == (
        f"relax-opt: error: cannot open input file 'in.mlir': expected a regular file, got {kind}\n"
    )


def test_texts_may_come_from_what_is_open_already() -> None:
    """``relax-opt <(command)`` and /dev/stdin; nothing at all in /dev/null."""
    reader, writer = os.pipe()
    os.write(writer, MODULE.encode())
    os.close(writer)
    assert list(rx.Module.load(f"/dev/fd/{reader}").functions) == ["main"]
    os.close(reader)
    assert not rx.Module.load("/dev/null").functions
    with pytest.raises(RelaxError, match="cannot read '/dev/fd/999': Bad file descriptor"):
        rx.Module.load("/dev/fd/999")


# -- writing -----------------------------------------------------------------------------------------------------------


def save_module(path: Path) -> None:
    rx.Module.parse(MODULE).save(path)


def save_results(path: Path) -> None:
    write_npz(str(path), {"y": np.arange(3)})


WRITERS: dict[str, Callable[[Path], object]] = {"a module": save_module, "results": save_results}


@pytest.mark.parametrize("writer", WRITERS)
def test_devices_and_pipes_are_written_and_stay(tmp_path: Path, writer: str) -> None:
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    WRITERS[writer](link)
    assert link.is_symlink()
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    WRITERS[writer](tmp_path / "pipe")
    assert len(os.read(reader, 1 << 16)) > 10
    os.close(reader)
    assert sorted(os.listdir(tmp_path)) == ["null", "pipe"]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("kind", ["a folder", "a socket"])
def test_what_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    KINDS[kind](tmp_path / "out")
    with pytest.raises(RelaxError, match=f"cannot write '.*out': expected a regular file, got {kind}"):
        WRITERS[writer](tmp_path / "out")


@pytest.mark.parametrize("writer", [*WRITERS.values(), lambda p: write_safetensors(p, RAW)])
def test_links_are_followed(tmp_path: Path, writer: Callable[[Path], object]) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file")
    for _ in range(2):  # new, then replaced
        writer(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert os.listdir(tmp_path / "there") == ["file"]


def test_a_replaced_file_keeps_its_rights_and_a_failed_one_its_content(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    save_module(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask()
    path.chmod(0o640)
    save_module(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.mlir"]


def interrupted(path: Path) -> None:
    with replacing(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


RELAXIR = [sys.executable, "-c", "from relaxir.tools.cli import main; main()"]
RELAX_OPT = [sys.executable, "-c", "from relaxir.tools.relax_opt import main; main()"]


def test_stdout_by_its_name(tmp_path: Path) -> None:
    """What is redirected to a file is neither replaced nor cut off."""
    (tmp_path / "m.mlir").write_text(MODULE)
    out = tmp_path / "out"
    out.write_text("before\n")
    for name in ("/dev/stdout", "/proc/self/fd/1"):
        with out.open("a") as file:
            subprocess.run([*RELAX_OPT, str(tmp_path / "m.mlir"), "-o", name], stdout=file, check=True)
    assert out.read_text().count("func.func @main") == 2
    assert out.read_text().startswith("before\n")


@pytest.mark.parametrize("kind", KINDS)
def test_weights_go_to_regular_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    KINDS[kind](tmp_path / "out")
    before = os.lstat(tmp_path / "out")
    with pytest.raises(RelaxError, match=f"cannot write '.*out': expected a file name, got {kind}"):
        scaled_executable().prepare(RAW, tmp_path / "out")
    assert os.lstat(tmp_path / "out") == before
    assert os.listdir(tmp_path) == ["out"]


def test_weights_go_to_no_open_pipe() -> None:
    reader, writer = os.pipe()
    with pytest.raises(RelaxError, match=rf"cannot write '/dev/fd/{writer}': expected a file name, got a pipe"):
        scaled_executable().prepare(RAW, f"/dev/fd/{writer}")
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("suffix", ["partial", "journal"])
@pytest.mark.parametrize("resume_key", [None, "k"])
def test_links_beside_the_output_are_not_followed(tmp_path: Path, suffix: str, resume_key: str | None) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    specs = {n: Checkpoint(_written(tmp_path)).spec(n) for n in RAW}
    for link, got in ((Path.symlink_to, "a symbolic link"), (Path.hardlink_to, "one with 2 ")):
        beside = tmp_path / f"o.{suffix}"
        link(beside, victim)
        if suffix == "partial" or resume_key is not None:
            with pytest.raises(RelaxError, match=rf"cannot write '.*o.{suffix}': expected .*, got {got}"):
                StreamWriter(tmp_path / "o", specs, resume_key=resume_key)
        else:  # a journal that nobody wants is removed, which leaves what it leads to as it is
            StreamWriter(tmp_path / "o", specs).abort()
        beside.unlink(missing_ok=True)
        (tmp_path / "o.partial").unlink(missing_ok=True)
    assert victim.read_text() == "precious"


def _written(folder: Path) -> Path:
    write_safetensors(folder / "raw.safetensors", RAW)
    return folder / "raw.safetensors"


def test_own_files_are_regular(tmp_path: Path) -> None:
    for kind, make in KINDS.items():
        path = tmp_path / kind.split()[-1]
        if kind != "a socket":
            make(path)
            with pytest.raises(RelaxError, match="expected a regular file, got"):
                open_own(str(path))


@pytest.mark.parametrize(
    "argv",
    [
        ["import", "m.pt2", "-o", "-"],
        ["compile", "m.mlir", "-o", "-"],
        ["prepare", "m.relax", "w", "--output=-"],
        ["run", "m.relax", "-o", "-"],
    ],
)
def test_a_hyphen_is_no_file_name_where_stdout_tells_what_was_done(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(argv) == 2
    assert "argument -o/--output: expected a file name, got '-'" in capsys.readouterr().err


def test_reproducers_go_to_devices_too(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(MODULE)
    (tmp_path / "null").symlink_to(os.devnull)
    flag = f"--mlir-pass-pipeline-crash-reproducer={tmp_path / 'null'}"
    assert relax_opt.run([str(tmp_path / "m.mlir"), "--cse", flag, "-o", os.devnull]) == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


# -- paths that are none -----------------------------------------------------------------------------------------------

PATHS: list[object] = ["a\0b", "\ud800", "", 3, None, 2.5, ["x"], b"\xff\0", b""]


@pytest.mark.parametrize("path", PATHS, ids=repr)
def test_paths_that_no_file_can_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: object) -> None:
    monkeypatch.chdir(tmp_path)
    executable = scaled_executable()
    calls: list[Callable[[object], object]] = [
        Checkpoint, rx.load, rx.Module.load, rx.Module.parse(MODULE).save, executable.save,
        lambda p: write_safetensors(p, RAW), lambda p: StreamWriter(p, {}),
    ]  # fmt: skip
    if path is not None:
        calls += [executable.bind, executable.prepare, lambda p: executable.prepare(RAW, p)]
    for call in calls:
        with pytest.raises(RelaxError):
            call(path)
    assert os.listdir(tmp_path) == []


def test_names_in_an_index_that_no_file_can_have(tmp_path: Path) -> None:
    for name in ("\ud800", "a\0b", ""):
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
        with pytest.raises(RelaxError, match=r"index\.json': expected the name of a file inside"):
            Checkpoint(tmp_path)


def test_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives a path may begin it with ``~/``; a name inside of a model's files is a name."""
    (tmp_path / "home").mkdir()
    (tmp_path / "model").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "model")
    executable = scaled_executable()
    write_safetensors("~/raw.safetensors", RAW)
    assert executable.prepare(Path("~/raw.safetensors"), "~/out").path == str(tmp_path / "home" / "out")
    executable.bind("~/out")
    Path("model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": "~/raw.safetensors"}}))
    with pytest.raises(RelaxError, match=r"expected the shard '~/raw.safetensors' beside it, got no such file"):
        Checkpoint("model.safetensors.index.json")


def test_names_that_are_no_unicode(tmp_path: Path) -> None:
    """Names of files are bytes; what stands for such a one can go on after an interruption, and is printed as it is."""
    executable, folder = scaled_executable(), tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    write_safetensors(folder / "raw.safetensors", RAW)
    executable.bind(executable.prepare(folder, folder / "out"))
    executable.prepare(folder / "raw.safetensors", folder / "parts", shard_size=8)
    np.savez(folder / "raw.npz", **RAW)
    executable.bind(executable.prepare(folder / "raw.npz", folder / "out"))
    (folder / "raw.npz").unlink()
    executable.save(folder / "model.relax")
    command = [
        *RELAXIR,
        "prepare",
        os.fsencode(folder / "model.relax"),
        os.fsencode(folder / "raw.safetensors"),
        "-o",
        os.fsencode(folder / "out"),
    ]
    told = subprocess.run(command, capture_output=True, check=True, env=os.environ | {"LC_ALL": "C.UTF-8"})
    assert b"prepared " + os.fsencode(folder / "out") in told.stdout


def test_streams_that_are_closed(tmp_path: Path) -> None:
    """A number that is free would be given to the next file, and what is printed would go there."""
    executable = scaled_executable()
    write_safetensors(tmp_path / "raw.safetensors", RAW)
    executable.save(tmp_path / "model.relax")
    command = shlex.join([*RELAXIR, "prepare", "model.relax", "raw.safetensors", "-o", "out.safetensors"])
    done = subprocess.run(["sh", "-c", f"{command} <&- >&- 2>&-"], cwd=tmp_path, check=False)
    assert done.returncode == 0
    executable.verify(tmp_path / "out.safetensors")
    told = subprocess.run(["sh", "-c", f"{command} >&-"], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert (told.returncode, told.stderr.splitlines()[-1]) == (0, "prepare: 2 of 2 steps, 19 B of 19 B")


def test_one_file_of_several(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model-00001-of-00002.safetensors", {"w": RAW["w"]})
    with pytest.raises(RelaxError, match=r"'bias': expected .*\n  it is one file of several: give their folder, or its index"):
        scaled_executable().prepare(tmp_path / "model-00001-of-00002.safetensors")
