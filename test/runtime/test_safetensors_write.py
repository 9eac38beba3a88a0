"""Writing safetensors as a stream: compatible, aligned, resumable after a kill, and never a half file under the final name."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch
from safetensors import safe_open

from relaxir import RelaxError
from relaxir.weights import ArraySpec, Checkpoint, LazyTensor, StreamWriter, write_safetensors
from relaxir.weights.arrays import address
from relaxir.weights.direct_file import DirectFile

F32 = np.dtype(np.float32)


def specs(count: int, size: int = 1000) -> dict[str, ArraySpec]:
    return {f"w{i}": ArraySpec(F32, (size,)) for i in range(count)}


def filled(i: int, size: int = 1000) -> np.ndarray:
    return np.full(size, i, np.float32)


def test_the_safetensors_package_reads_it(tmp_path: Path) -> None:
    arrays = {
        "bf16": torch.arange(3).to(torch.bfloat16),
        "fp8": torch.arange(3).to(torch.float8_e4m3fn),
        "mask": np.array([True, False]),
        "scalar": np.array(2.5),
        "empty": np.zeros((3, 0), np.int32),
        "transposed": np.arange(6, dtype=np.int16).reshape(2, 3).T,
        "weiß.名前": np.zeros(1, np.uint8),
    }
    write_safetensors(tmp_path / "a.safetensors", arrays, {"key": "välue"})
    with safe_open(tmp_path / "a.safetensors", "pt") as file:
        assert file.metadata() == {"key": "välue"}
        assert set(file.keys()) == set(arrays)
        for name, value in arrays.items():
            expected = value if isinstance(value, torch.Tensor) else torch.from_numpy(value.copy())
            got = file.get_tensor(name)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            assert torch.equal(got.to(torch.float64), expected.to(torch.float64))
    assert os.listdir(tmp_path) == ["a.safetensors"]


def test_empty_file(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "a.safetensors", {})
    assert list(Checkpoint(tmp_path / "a.safetensors")) == []
    with safe_open(tmp_path / "a.safetensors", "np") as file:
        assert list(file.keys()) == []


def test_every_element_is_aligned_and_big_tensors_lie_on_cache_lines(tmp_path: Path) -> None:
    arrays: dict[str, np.ndarray] = {"odd": np.zeros(3, np.int8), "double": np.zeros(3)}
    arrays |= {f"line{i}": np.zeros(16 * (i + 1), np.float32) for i in range(3)} | {"half": np.zeros(5, ml_dtypes.bfloat16)}
    write_safetensors(tmp_path / "a.safetensors", arrays)
    checkpoint = Checkpoint(tmp_path / "a.safetensors")
    assert all(checkpoint.get(name).flags.aligned for name in arrays)
    assert all(address(checkpoint.get(name)) % 64 == 0 for name in arrays if name.startswith("line"))


def test_tensors_of_whole_pages_lie_on_pages(tmp_path: Path) -> None:
    arrays = {"odd": filled(1, 1000), "line": filled(2, 16), "page": filled(3, 1024), "pages": filled(4, 4096)}
    write_safetensors(tmp_path / "a.safetensors", arrays)
    checkpoint = Checkpoint(tmp_path / "a.safetensors")
    assert all(address(checkpoint.get(name)) % 4096 == 0 for name in ("page", "pages"))
    assert all(np.array_equal(checkpoint.get(name), array) for name, array in arrays.items())


@pytest.mark.parametrize("has_direct", [True, False])
def test_large_tensors_go_past_the_page_cache_where_they_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_direct: bool
) -> None:
    """Pieces that begin on pages, in memory and in the file; the rest, and where the system has no such way, as always."""
    if not has_direct:
        monkeypatch.delattr(os, "O_DIRECT")
    values = np.arange(3_000_017, dtype=np.float32)
    places = [np.frombuffer(mmap.mmap(-1, 1 << 24), np.float32, values.size, offset) for offset in (0, 64)]
    path = tmp_path / "a.safetensors"
    with StreamWriter(path, {n: ArraySpec.of(values) for n in "ab"}, checksums=True) as writer:
        for name, place in zip("ab", places, strict=True):
            place[:] = values
            writer.put(name, place)
    checkpoint = Checkpoint(path)
    assert all(np.array_equal(checkpoint.get(name), values) for name in "ab")
    known = checkpoint.checksums()
    assert known is not None
    assert checkpoint.damaged(known, whole=True) == []


def test_a_disk_that_takes_no_direct_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one with larger blocks says: then the bytes go through the page cache."""
    real, refused = os.pwrite, list[int]()

    def refusing(descriptor: int, content: memoryview, offset: int) -> int:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            refused.append(offset)
            raise OSError(errno.EINVAL, "blocks")
        return real(descriptor, content, offset)

    monkeypatch.setattr(os, "pwrite", refusing)
    values = np.frombuffer(mmap.mmap(-1, 1 << 23), np.uint8)
    write_safetensors(tmp_path / "a.safetensors", {"w": values})
    assert len(refused) == 2
    np.testing.assert_array_equal(Checkpoint(tmp_path / "a.safetensors").get("w"), values)


def test_a_direct_write_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: DirectFile, descriptor: int, view: memoryview, offset: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(DirectFile, "_write_direct", failing)
    with pytest.raises(RelaxError, match=r"cannot write '.*a.safetensors.partial': No space left on device"):
        write_safetensors(tmp_path / "a.safetensors", {"w": np.frombuffer(mmap.mmap(-1, 1 << 23), np.uint8)})
    assert os.listdir(tmp_path) == []


def test_lazy_tensors_are_made_one_at_a_time(tmp_path: Path) -> None:
    alive = 0

    class Counted(np.ndarray):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def produce(i: int) -> np.ndarray:
        nonlocal alive
        alive += 1
        assert alive == 1
        return filled(i).view(Counted)

    lazy = {f"w{i}": LazyTensor(ArraySpec(F32, (1000,)), lambda i=i: produce(i)) for i in range(5)}
    write_safetensors(tmp_path / "a.safetensors", lazy)
    assert Checkpoint(tmp_path / "a.safetensors").get("w3")[7] == 3


def test_failed_write_leaves_nothing_and_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"w": np.arange(3)})
    wrong = {"w": LazyTensor(ArraySpec(F32, (2,)), lambda: np.zeros(3, np.float32))}
    with pytest.raises(RelaxError, match=r"tensor 'w': expected f32\[2\], got f32\[3\]"):
        write_safetensors(path, wrong)
    assert os.listdir(tmp_path) == ["a.safetensors"]
    assert Checkpoint(path).get("w").tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"w": np.zeros(1, ml_dtypes.int4)}, r"tensor 'w': expected a dtype that safetensors has, got i4\[1\]"),
        ({"w": np.zeros(1, ">f4")}, "tensor 'w': expected a dtype that safetensors has, got >f4"),
        ({"w": np.zeros(1, object)}, "tensor 'w': expected a dtype that safetensors has, got object"),
        ({"__metadata__": np.zeros(1)}, "expected a tensor name that safetensors can hold, got '__metadata__'"),
        ({"\ud800": np.zeros(1)}, "expected a tensor name that safetensors can hold"),
        ({"w": [1.0]}, "tensor 'w': expected an array .* got list"),
    ],
)
def test_what_the_format_cannot_hold(tmp_path: Path, tensors: dict[str, object], message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        write_safetensors(tmp_path / "a.safetensors", tensors)
    assert os.listdir(tmp_path) == []


def test_wrong_puts(tmp_path: Path) -> None:
    with StreamWriter(tmp_path / "a.safetensors", specs(1)) as writer:
        with pytest.raises(RelaxError, match="expected a tensor of its layout, got 'other'"):
            writer.put("other", filled(0))
        with pytest.raises(RelaxError, match=r"tensor 'w0': expected f32\[1000\], got f64\[1000\]"):
            writer.put("w0", np.zeros(1000))
        writer.put("w0", filled(0))
        with pytest.raises(RelaxError, match="tensor 'w0': expected it once, got it twice"):
            writer.put("w0", filled(0))


@pytest.mark.parametrize("shape", [(2.5,), (-1,), (True,)])
def test_shapes_that_are_no_sizes(tmp_path: Path, shape: tuple[object, ...]) -> None:
    with pytest.raises(RelaxError, match="expected sizes as the shape of tensor 'w', got "):
        StreamWriter(tmp_path / "a.safetensors", {"w": ArraySpec(F32, shape)})
    assert os.listdir(tmp_path) == []


def test_missing_tensors_make_no_file(tmp_path: Path) -> None:
    writer = StreamWriter(tmp_path / "a.safetensors", specs(2))
    writer.put("w0", filled(0))
    with pytest.raises(RelaxError, match=r"expected 2 tensors, got none for 1, e.g. 'w1'"):
        writer.close()
    assert os.listdir(tmp_path) == []


def test_targets_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(RelaxError, match=r"expected an existing folder, got '.*none'"):
        write_safetensors(tmp_path / "none" / "a.safetensors", {})
    with pytest.raises(RelaxError, match="expected a file name, got a folder"):
        write_safetensors(tmp_path, {})
    with pytest.raises(RelaxError, match=r"cannot write .*: embedded null byte"):
        write_safetensors(tmp_path / "a\0b", {})


def test_a_file_that_cannot_get_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(RelaxError, match=r"cannot write '.*a.safetensors': Input/output error"):
        write_safetensors(bytes(tmp_path / "a.safetensors"), {"w": np.zeros(1)})
    assert os.listdir(tmp_path) == []


def test_no_space_is_known_at_once(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with pytest.raises(RelaxError, match=r"cannot reserve \d+ bytes for '.*a.safetensors': File too large"):
            StreamWriter(tmp_path / "a.safetensors", specs(10, 1 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(tmp_path) == []


def test_two_writers_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    with StreamWriter(path, specs(1)) as writer:
        with pytest.raises(RelaxError, match=r"expected no other writer, got one at work on '.*a.safetensors.partial'"):
            StreamWriter(path, specs(1))
        writer.put("w0", filled(5))
    assert Checkpoint(path).get("w0")[0] == 5


def test_puts_from_many_threads_in_any_order(tmp_path: Path) -> None:
    with StreamWriter(tmp_path / "a.safetensors", specs(64), flush_bytes=10_000) as writer:
        threads = [
            threading.Thread(target=lambda k=k: [writer.put(f"w{i}", filled(i)) for i in range(63 - k, -1, -4)])
            for k in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    checkpoint = Checkpoint(tmp_path / "a.safetensors")
    assert all((checkpoint.get(f"w{i}") == i).all() for i in range(64))


def test_abort_removes_and_suspend_keeps(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    writer = StreamWriter(path, specs(3), resume_key="k")
    writer.put("w1", filled(1))
    writer.suspend()
    assert sorted(os.listdir(tmp_path)) == ["a.safetensors.journal", "a.safetensors.partial"]
    writer = StreamWriter(path, specs(3), resume_key="k")
    assert writer.done == {"w1"}
    writer.abort()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("change", ["key", "specs", "metadata", "no key", "size", "prefix", "journal", "no journal"])
def test_anything_else_starts_afresh(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.safetensors"
    writer = StreamWriter(path, specs(2), {"m": "1"}, resume_key="k")
    writer.put("w0", filled(9))
    writer.suspend()
    partial, journal = Path(f"{path}.partial"), Path(f"{path}.journal")
    if change == "size":
        os.truncate(partial, 10)
    if change == "prefix":
        partial.write_bytes(b"x" + partial.read_bytes()[1:])
    if change == "journal":
        journal.write_bytes(journal.read_bytes() + b"{broken\n")
    if change == "no journal":
        journal.unlink()
    key = {"key": "other", "no key": None}.get(change, "k")
    count, metadata = (3 if change == "specs" else 2), {"m": "2" if change == "metadata" else "1"}
    with StreamWriter(path, specs(count), metadata, resume_key=key) as writer:
        assert writer.done == set()
        for i in range(count):
            writer.put(f"w{i}", filled(i))
    assert Checkpoint(path).get("w0")[0] == 0
    assert os.listdir(tmp_path) == ["a.safetensors"]


KILLED = """
import os, sys
import numpy as np
from relaxir.weights import ArraySpec, StreamWriter
path, limit = sys.argv[1], int(sys.argv[2])
specs = {f"w{i}": ArraySpec(np.dtype(np.float32), (1 << 16,)) for i in range(20)}
with StreamWriter(path, specs, resume_key="k", flush_bytes=3 << 18) as writer:
    todo = [n for n in specs if n not in writer.done]
    for done, name in enumerate(todo):
        if done == limit:
            os.kill(os.getpid(), 9)
        writer.put(name, np.full(1 << 16, float(name[1:]), np.float32))
print(len(todo))
"""


def test_killed_twice_then_resumed(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    for limit in (8, 5):
        killed = subprocess.run([sys.executable, "-c", KILLED, path, str(limit)], capture_output=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert sorted(os.listdir(tmp_path)) == ["a.safetensors.journal", "a.safetensors.partial"]
        with open(f"{path}.journal", "ab") as journal:
            journal.write(b'"w19')  # a line torn by the kill
    last = subprocess.run([sys.executable, "-c", KILLED, path, "99"], capture_output=True, check=True, text=True)
    assert int(last.stdout) == 20 - 6 - 3  # flushed in blocks of three tensors: 6 of 8, then 3 of 5
    checkpoint = Checkpoint(path)
    assert all((checkpoint.get(f"w{i}") == i).all() for i in range(20))
    assert os.listdir(tmp_path) == ["a.safetensors"]
