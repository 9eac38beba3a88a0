"""Preparing weights: every source and target, refusals that list all problems, interruption, threads, bounded memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import relaxir
from relaxir import RelaxError
from relaxir.runtime.executable import PreparedWeights
from relaxir.runtime.prepare import PrepareProgress
from relaxir.weights import Checkpoint, write_safetensors
from support.hand_compiled import doubling, entry, executable_of, manifest, scaled_executable, scaled_manifest, tensor

RAW = {"w": np.array([1, 2, 3, 4], np.float32), "bias": np.array([1, 2, 3], np.int8)}


def raw_file(folder: Path, count: int = 6, elements: int = 8) -> Path:
    path = folder / "raw.safetensors"
    write_safetensors(path, {f"w{i}": np.full(elements, i, np.float32) for i in range(count)})
    return path


def is_doubled(path: Path, count: int) -> bool:
    prepared = Checkpoint(path)
    return len(prepared) == count and all((prepared.get(f"p{i}") == 2 * i).all() for i in range(count))


def test_file_to_file(tmp_path: Path) -> None:
    save_file({**RAW, "unused": np.zeros(3)}, tmp_path / "raw.safetensors")
    executable = scaled_executable()
    report = executable.prepare(tmp_path / "raw.safetensors", tmp_path / "out.safetensors")
    got = load_file(tmp_path / "out.safetensors")
    assert {n: a.tolist() for n, a in got.items()} == {"w": [2, 4, 6, 8], "bias": [1, 2, 3]}
    metadata = Checkpoint(tmp_path / "out.safetensors").metadata
    checksums = metadata.pop("relaxir.checksums")
    assert len(checksums) == 2 * 16
    assert metadata == {
        "format": "relaxir",
        "relaxir.format": "1",
        "relaxir.fingerprint": executable.fingerprint,
        "relaxir.version": relaxir.__version__,
    }
    assert (report.raw_bytes, report.prepared_bytes, report.steps_run, report.steps_skipped) == (19, 19, 2, 0)
    assert (report.predicted_peak_bytes, report.extra_weights) == (96, ("unused",))
    assert "2 steps, 1 weight not used, predicted peak 96 B" in str(report)
    assert sorted(os.listdir(tmp_path)) == ["out.safetensors", "raw.safetensors"]


def test_every_kind_of_source(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", RAW)
    executable = scaled_executable()
    state = {n: torch.from_numpy(a) for n, a in RAW.items()}
    strided = {"w": np.repeat(RAW["w"], 2)[::2], "bias": RAW["bias"][::-1][::-1]}
    for source in (tmp_path, str(tmp_path / "model.safetensors"), Checkpoint(tmp_path), RAW, state, strided):
        prepared = executable.prepare(source)
        assert isinstance(prepared, PreparedWeights)
        assert prepared.fingerprint == executable.fingerprint
        assert {n: a.tolist() for n, a in prepared.items()} == {"w": [2, 4, 6, 8], "bias": [1, 2, 3]}
    executable.prepare(state, tmp_path / "out.safetensors")
    assert Checkpoint(tmp_path / "out.safetensors").get("w").tolist() == [2, 4, 6, 8]


def test_prepared_weights_in_memory_are_copies() -> None:
    raw = {n: a.copy() for n, a in RAW.items()}
    prepared = scaled_executable().prepare(raw)
    raw["bias"][:] = 0
    assert prepared["bias"].tolist() == [1, 2, 3]


def test_steps_with_several_inputs_and_outputs(tmp_path: Path) -> None:
    text = """define i64 @swap(ptr %t, ptr %s, ptr %a, i64 %n) {
      %pa = load ptr, ptr %t
      %q1 = getelementptr ptr, ptr %t, i64 1
      %pb = load ptr, ptr %q1
      %q2 = getelementptr ptr, ptr %t, i64 2
      %po = load ptr, ptr %q2
      %q3 = getelementptr ptr, ptr %t, i64 3
      %pp = load ptr, ptr %q3
      %va = load i8, ptr %pa
      %vb = load i64, ptr %pb
      store i64 %vb, ptr %po
      store i8 %va, ptr %pp
      ret i64 0
    }"""
    steps = [
        {"symbol": "swap", "gets": ["a", "b"], "sets": ["x", "y"], "arena_bytes": 0},
        {"symbol": None, "gets": ["b", "a"], "sets": ["b", "a"], "arena_bytes": 0},
    ]
    raw = [tensor("a", [1], "i8"), tensor("b", [1], "i64")]
    prepared = [tensor("x", [1], "i64"), tensor("y", [1], "i8"), *raw]
    executable = executable_of(manifest(steps=steps, raw_weights=raw, prepared_weights=prepared), text)
    executable.prepare({"a": np.array([3], np.int8), "b": np.array([5])}, tmp_path / "out.safetensors")
    out = Checkpoint(tmp_path / "out.safetensors")
    assert {n: out.get(n).tolist() for n in out} == {"x": [5], "y": [3], "a": [3], "b": [5]}


def test_all_problems_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "raw.safetensors"
    write_safetensors(path, {"w": np.zeros((2, 2), np.float32), "bias": np.zeros(3, np.int16)})
    text = (
        rf"'{path}': expected 2 weights, got 2 problems\n"
        r"  weight 'w': expected f32\[4\], got f32\[2, 2\]\n"
        r"  weight 'bias': expected i8\[3\], got i16\[3\]"
    )
    with pytest.raises(RelaxError, match=text):
        scaled_executable().prepare(path, tmp_path / "out.safetensors")
    with pytest.raises(RelaxError, match=r"^weights: weight 'w': expected f32\[4\], got none$"):
        scaled_executable().prepare({"bias": RAW["bias"]}, tmp_path / "out.safetensors")
    with pytest.raises(RelaxError, match=r"^weights: weight 'w': expected an array .*, got list$"):
        scaled_executable().prepare({**RAW, "w": [1.0]})
    assert os.listdir(tmp_path) == ["raw.safetensors"]


def test_refused_sources_and_targets(tmp_path: Path) -> None:
    executable = scaled_executable()
    write_safetensors(tmp_path / "raw.safetensors", RAW)
    executable.prepare(tmp_path / "raw.safetensors", tmp_path / "out.safetensors")
    (tmp_path / "link.safetensors").symlink_to("raw.safetensors")
    again = "expected raw weights, got weights that are already prepared \\(fingerprint f00df00df00d\\)"
    for source in (tmp_path / "out.safetensors", executable.prepare(RAW)):
        with pytest.raises(RelaxError, match=again):
            executable.prepare(source, tmp_path / "other.safetensors")
    os.link(tmp_path / "raw.safetensors", tmp_path / "hard.safetensors")
    os.link(tmp_path / "raw.safetensors", tmp_path / "written.partial")
    os.link(tmp_path / "raw.safetensors", tmp_path / "noted.journal")
    for target in ("raw.safetensors", "link.safetensors", "hard.safetensors", "written", "noted"):
        with pytest.raises(RelaxError, match="expected another file than the raw weights, got one of theirs"):
            executable.prepare(tmp_path / "raw.safetensors", tmp_path / target)
    with pytest.raises(RelaxError, match="expected 1 job or more, got 0"):
        executable.prepare(RAW, jobs=0)
    with pytest.raises(RelaxError, match="expected progress as a function, got bool"):
        executable.prepare(RAW, progress=True)
    with pytest.raises(RelaxError, match="expected weights as a path, a Checkpoint or a mapping from names to arrays, got int"):
        executable.prepare(3)
    with pytest.raises(RelaxError, match="got Linear: its state_dict is one"):
        executable.prepare(torch.nn.Linear(2, 2))
    with pytest.raises(RelaxError, match="expected an existing folder"):
        executable.prepare(RAW, tmp_path / "none" / "out.safetensors")
    with pytest.raises(RelaxError, match=r"cannot write 's3://x/y.safetensors': expected a file of this machine, got a URL"):
        executable.prepare(RAW, "s3://x/y.safetensors")
    for name in ("x.json", "x.safetensors.index.json", "x.gguf", "x.ckpt"):
        with pytest.raises(RelaxError, match=r"an end of the name that no other kind of file has|got one of an index"):
            executable.prepare(RAW, tmp_path / name)


def test_what_a_folder_has_beside_its_weights_is_not_replaced(tmp_path: Path) -> None:
    shards = {"w": "a.safetensors", "bias": "b.safetensors"}
    for name, shard in shards.items():
        write_safetensors(tmp_path / shard, {name: RAW[name]})
    texts = {"config.json": "{}", "model.safetensors.index.json": json.dumps({"weight_map": shards})}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    for name in texts:
        with pytest.raises(RelaxError, match="expected another file than the raw weights, got one of theirs"):
            scaled_executable().prepare(tmp_path, tmp_path / name)
    with pytest.raises(RelaxError, match="expected another file than the raw weights, got one of theirs"):
        scaled_executable().prepare(tmp_path, tmp_path / "model.safetensors", shard_size=100)
    assert {name: (tmp_path / name).read_text() for name in texts} == texts


def test_failed_check_names_the_weights(tmp_path: Path) -> None:
    text = "define i64 @relaxir_step(ptr %t, ptr %s, ptr %a, i64 %n) {\n ret i64 -1\n}\n" + object_main()
    executable = executable_of(scaled_manifest(), text)
    with pytest.raises(RelaxError, match="preparation of w: run-time check failed: expected n other than 13"):
        executable.prepare(RAW, tmp_path / "out.safetensors")
    assert os.listdir(tmp_path) == []


def object_main() -> str:
    return "define i64 @relaxir_main(ptr %t, ptr %s, ptr %a, i64 %n) {\n ret i64 0\n}\n"


def test_a_model_without_weights(tmp_path: Path) -> None:
    executable = executable_of(manifest(entries=[entry("main", "relaxir_main")]), object_main())
    executable.prepare({}, tmp_path / "out.safetensors")
    assert executable.bind(tmp_path / "out.safetensors")() == ()
    assert executable.prepare({}) == {}


@pytest.mark.parametrize("jobs", [1, 3])
def test_progress(tmp_path: Path, jobs: int) -> None:
    seen: list[PrepareProgress] = []
    doubling(6, 8).prepare(raw_file(tmp_path), tmp_path / "out.safetensors", jobs, seen.append)
    assert [p.steps_done for p in seen] == [1, 2, 3, 4, 5, 6]
    assert seen[-1] == PrepareProgress(6, 6, 192, 192, seen[-1].tensor)
    assert {p.tensor for p in seen} == {f"p{i}" for i in range(6)}
    assert is_doubled(tmp_path / "out.safetensors", 6)


def test_many_jobs_agree_with_one(tmp_path: Path) -> None:
    path = raw_file(tmp_path, 40, 64)
    executable = doubling(40, 64)
    report = executable.prepare(path, tmp_path / "out.safetensors", jobs=4)
    assert is_doubled(tmp_path / "out.safetensors", 40)
    assert report.predicted_peak_bytes == 4 * executable.manifest.peak_bytes
    assert len(executable.prepare(path, jobs=4)) == 40


def test_inputs_are_released_after_their_last_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    monkeypatch.setattr(Checkpoint, "release", lambda self, name: calls.update([f"release {name}"]))
    monkeypatch.setattr(Checkpoint, "prefetch", lambda self, name: calls.update([f"prefetch {name}"]))
    data = doubling(2, 4).manifest.data
    steps = [{"symbol": "relaxir_step", "gets": ["w0"], "sets": [f"p{i}"], "arena_bytes": 64} for i in range(2)]
    executable_of({**data, "steps": steps}).prepare(raw_file(tmp_path, 2, 4), tmp_path / "out.safetensors")
    assert calls == {"prefetch w0": 2, "release w0": 1}


class StopError(Exception):
    """What a user's progress hook may raise."""


@pytest.mark.parametrize("jobs", [1, 2])
def test_interrupted_then_resumed(tmp_path: Path, jobs: int) -> None:
    def stop(progress: PrepareProgress) -> None:
        if progress.steps_done == 4:
            raise StopError

    raw, out = raw_file(tmp_path), tmp_path / "out.safetensors"
    executable = doubling(6, 8)
    with pytest.raises(StopError):
        executable.prepare(raw, out, jobs, stop)
    assert not out.exists()
    report = executable.prepare(raw, out)
    assert report.steps_skipped >= 4
    assert report.steps_run + report.steps_skipped == 6
    assert is_doubled(out, 6)


def test_another_source_of_the_same_shapes_starts_afresh(tmp_path: Path) -> None:
    """Continuing would mix the weights of two models in one file."""

    def stop(progress: PrepareProgress) -> None:
        if progress.steps_done == 4:
            raise StopError

    raw, out = tmp_path / "raw.safetensors", tmp_path / "out.safetensors"
    executable = doubling(6, 8)
    write_safetensors(raw, {f"w{i}": np.full(8, 99, np.float32) for i in range(6)})
    with pytest.raises(StopError):
        executable.prepare(raw, out, 1, stop)
    report = executable.prepare(raw_file(tmp_path), out)
    assert report.steps_skipped == 0
    assert is_doubled(out, 6)


@pytest.mark.parametrize(("limit", "threads"), [(160, 1), (319, 1), (320, 2), (10**9, 4)])
def test_a_memory_limit_is_kept_by_fewer_threads(tmp_path: Path, limit: int, threads: int) -> None:
    report = doubling(6, 8).prepare(raw_file(tmp_path), tmp_path / "out.safetensors", 4, memory_limit=limit)
    assert report.predicted_peak_bytes == 160 * threads
    assert report.peak_bytes <= 160 * threads
    assert is_doubled(tmp_path / "out.safetensors", 6)


def test_a_memory_limit_that_is_too_low_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    raw = raw_file(tmp_path)
    for more in ({}, {"shard_size": 64}):
        with pytest.raises(RelaxError, match=r"a memory limit of 160 bytes or more, which preparing 'p0' takes, got 100"):
            doubling(6, 8).prepare(raw, tmp_path / "out.safetensors", memory_limit=100, **more)
    with pytest.raises(RelaxError, match="expected a memory limit of 1 byte or more, got 0"):
        doubling(6, 8).prepare(raw, tmp_path / "out.safetensors", memory_limit=0)
    with pytest.raises(RelaxError, match="expected a file to write with memory_limit=, got no dst"):
        doubling(6, 8).prepare(raw, memory_limit=1000)  # type: ignore[call-overload]
    assert os.listdir(tmp_path) == ["raw.safetensors"]


class Made(Mapping[str, object]):
    """Makes its tensors when they are asked for, which is all that Mapping's own methods do, too."""

    def __init__(self, tensors: dict[str, object]):
        self.tensors, self.asked = tensors, Counter[str]()

    def __getitem__(self, name: str) -> object:
        self.asked[name] += 1
        return self.tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


class MadeToo(dict[str, object]):
    """The same, as a dictionary."""

    asked: Counter[str]

    def __getitem__(self, name: str) -> object:
        self.asked[name] += 1
        return super().__getitem__(name)


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_mapping_makes_each_tensor_once(tmp_path: Path, jobs: int) -> None:
    executable = doubling(6, 8)
    tensors: dict[str, object] = {f"w{i}": np.full(8, i, np.float32) for i in range(6)}
    too = MadeToo(tensors)
    too.asked = Counter()
    for mapping in (Made(tensors), too):
        for prepare in (lambda m: executable.prepare(m, tmp_path / "o", jobs), lambda m: executable.prepare(m, jobs=jobs)):
            mapping.asked.clear()
            prepare(mapping)
            assert mapping.asked == dict.fromkeys(tensors, 1)
    assert is_doubled(tmp_path / "o", 6)
    made = Made(executable.prepare(tensors))
    made.fingerprint = executable.fingerprint
    executable.bind(made)
    assert made.asked == {f"p{i}": 1 for i in range(6)}


def test_a_mapping_that_makes_something_else_is_refused_when_it_does(tmp_path: Path) -> None:
    executable = scaled_executable()
    with pytest.raises(RelaxError, match=r"^weights: weight 'w': expected f32\[4\], got f32\[3\]$"):
        executable.prepare(Made({**RAW, "w": np.zeros(3, np.float32)}), tmp_path / "o")
    with pytest.raises(RelaxError, match=r"^weights: weight 'bias': expected i8\[3\], got none$"):
        executable.prepare(Made({"w": RAW["w"]}), tmp_path / "o")

    assert os.listdir(tmp_path) == []


def test_what_prepare_returns_can_be_bound(tmp_path: Path) -> None:
    ones = np.ones((2, 4), np.float32)
    for prepared in (lambda e: e.prepare(RAW, tmp_path / "o"), lambda e: e.prepare(RAW)):
        executable = scaled_executable()
        assert executable.bind(prepared(executable))(ones).tolist() == [[2, 4, 6, 8]] * 2
    report = scaled_executable().prepare(RAW, tmp_path / "o")
    assert os.fspath(report) == report.path == str(tmp_path / "o")


def change_times(path: Path, content: bytes) -> None:
    """Another content with the size, the header and the time that the file had."""
    before = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("replaced", [True, False])
def test_a_checkpoint_of_equal_size_header_and_time_starts_afresh(tmp_path: Path, replaced: bool) -> None:
    """Written over, or another file in its place: neither is mixed with what was prepared before."""

    def stop(progress: PrepareProgress) -> None:
        if progress.steps_done == 4:
            raise StopError

    raw, out = raw_file(tmp_path), tmp_path / "out.safetensors"
    content = raw.read_bytes()
    other = content[:-192] + np.full(48, 99, np.float32).tobytes()
    change_times(raw, other)
    executable = doubling(6, 8)
    with pytest.raises(StopError):
        executable.prepare(raw, out, 1, stop)
    if replaced:
        before = raw.stat()
        (tmp_path / "new").write_bytes(content)
        os.utime(tmp_path / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
        os.replace(tmp_path / "new", raw)
    else:
        change_times(raw, content)
    assert executable.prepare(raw, out).steps_skipped == 0
    assert is_doubled(out, 6)


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_damaged_parts_of_an_interrupted_preparation_are_made_again(tmp_path: Path, place: str) -> None:
    def stop(progress: PrepareProgress) -> None:
        if progress.steps_done == 4:
            raise StopError

    raw, out = raw_file(tmp_path), tmp_path / "out.safetensors"
    executable = doubling(6, 8)
    with pytest.raises(StopError):
        executable.prepare(raw, out, 1, stop)
    at = {"first": 4096, "middle": 4096 + 32 + 13, "last": 4096 + 4 * 32 - 1}[place]
    with open(f"{out}.partial", "r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    assert executable.prepare(raw, out).steps_skipped == 3
    assert is_doubled(out, 6)
    executable.bind(out, verify=True)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda path: os.truncate(path, 4200), "4200 bytes instead of 4288"),
        (lambda path: path.open("ab").write(b"x"), "4289 bytes instead of 4288"),
        (lambda path: path.write_bytes(path.read_bytes()), "(one that was written to|0 bytes instead of 4288)"),
    ],
)
def test_a_source_that_changes_meanwhile_is_refused(
    tmp_path: Path, change: Callable[[Path], object], got: str, jobs: int
) -> None:
    raw, out = raw_file(tmp_path), tmp_path / "out.safetensors"
    executable = doubling(6, 8)

    def disturb(progress: PrepareProgress) -> None:
        if progress.steps_done == 2:
            change(raw)
            os.utime(raw, ns=(1, 1))

    # Weights of later steps are read meanwhile: a read may be the first to see that the file is shorter for a moment.
    cut = r"tensor 'w\d': expected a file that stays as it is .*, got one that was cut off"
    shorter = r"\d+ bytes instead of 4288"
    for dst in (out, None):
        text = f"raw.safetensors': (expected a file that stays as it is .*, got ({got}|{shorter})|{cut})"
        with pytest.raises(RelaxError, match=text):
            executable.prepare(raw, dst, jobs, disturb)
        raw_file(tmp_path)
    assert not out.exists()
    assert executable.prepare(raw, out).steps_skipped == 0
    assert is_doubled(out, 6)


def test_a_source_that_is_replaced_or_removed_meanwhile_is_still_read(tmp_path: Path) -> None:
    raw, out = raw_file(tmp_path), tmp_path / "out.safetensors"
    executable = doubling(6, 8)

    def replace(progress: PrepareProgress) -> None:
        if progress.steps_done == 1:
            write_safetensors(raw, {f"w{i}": np.full(8, 99, np.float32) for i in range(6)})
        if progress.steps_done == 2:
            raw.unlink()

    executable.prepare(raw, out, 1, replace)
    assert is_doubled(out, 6)


def test_a_mapping_is_not_resumed(tmp_path: Path) -> None:
    """Nobody can tell whether it is the same one."""

    def stop(progress: PrepareProgress) -> None:
        raise StopError

    with pytest.raises(StopError):
        doubling(2, 4).prepare(
            {"w0": np.zeros(4, np.float32), "w1": np.zeros(4, np.float32)}, tmp_path / "o.safetensors", 1, stop
        )
    assert os.listdir(tmp_path) == []


KILLED = """
import os, sys
from support.hand_compiled import doubling
from relaxir.weights import StreamWriter
StreamWriter.__init__.__kwdefaults__["flush_bytes"] = 64  # two tensors
raw, out, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
report = doubling(6, 8).prepare(raw, out, 1, lambda p: p.steps_done == limit and os.kill(os.getpid(), 9))
print(report.steps_run, report.steps_skipped)
"""


def test_killed_then_resumed(tmp_path: Path) -> None:
    raw, out = raw_file(tmp_path), tmp_path / "out.safetensors"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", KILLED, str(raw), str(out)]
    killed = subprocess.run([*command, "3"], capture_output=True, env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not out.exists()
    resumed = subprocess.run([*command, "99"], capture_output=True, env=environment, check=True, text=True)
    assert resumed.stdout.split() == ["4", "2"]
    assert is_doubled(out, 6)
    assert sorted(os.listdir(tmp_path)) == ["out.safetensors", "raw.safetensors"]


BOUNDED = """
import resource, sys
import numpy as np
from support.hand_compiled import doubling
from relaxir.weights import ArraySpec, LazyTensor, write_safetensors
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
raw, out = sys.argv[1:3]
executable = doubling(24, 1 << 20)
doubling(1, 8).prepare({"w0": np.zeros(8, np.float32)}, out)
base = peak()
spec = ArraySpec(np.dtype(np.float32), (1 << 20,))
write_safetensors(raw, {f"w{i}": LazyTensor(spec, lambda i=i: np.full(1 << 20, i, np.float32)) for i in range(24)})
written = peak()
report = executable.prepare(raw, out)
print(written - base, peak() - base, report.predicted_peak_bytes)
"""


def test_memory_is_bounded_by_a_step(tmp_path: Path) -> None:
    """96 MiB of weights in tensors of 4 MiB: writing takes one tensor, preparing one in and one out."""
    raw, out = tmp_path / "raw.safetensors", tmp_path / "out.safetensors"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, str(raw), str(out)], capture_output=True, env=environment, check=True, text=True
    )
    written, prepared, predicted = map(int, done.stdout.split())
    slack = 4 << 20  # allocator and Python objects
    assert written <= (4 << 20) + slack
    assert prepared <= predicted + slack
    assert is_doubled(out, 24)
