"""Raw weights that change: bound ones and files, by the steps that read them, at once; what is verified, and what is cached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir import RelaxError
from relaxir.tools import cli
from relaxir.weights import Checkpoint, write_safetensors
from support.hand_compiled import doubling, executable_of

SIDE = 16
X = np.eye(2, SIDE, dtype=np.float32)


def weight(value: float) -> np.ndarray[Any, Any]:
    return np.full((SIDE, SIDE), value, np.float32)


RAW = {"a": weight(1), "b": weight(2), "c": weight(3)}


def products() -> rx.Executable:
    """``x a + x b`` by products that become one, times ``c``: a and b are prepared together, c alone."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", SIDE))
        a, other, c = (b.weight(name, (SIDE, SIDE), "f32") for name in RAW)
        joint = b.matmul(x, b.concat([a, other], axis=1))
        b.output(b.add(joint, b.concat([b.matmul(x, c)] * 2, axis=1)))
    return rx.compile(b.build())


@pytest.fixture(scope="module")
def compiled() -> rx.Executable:
    return products()


def result(a: float, b: float, c: float) -> np.ndarray[Any, Any]:
    return np.concatenate([np.full((2, SIDE), a + c), np.full((2, SIDE), b + c)], axis=1).astype(np.float32)


def test_update_runs_only_what_reads_the_weight(compiled: rx.Executable) -> None:
    exe = compiled.bind(compiled.prepare(RAW))
    assert np.array_equal(exe(X), result(1, 2, 3))
    before = dict(exe._held)
    assert exe.update({"c": weight(5)}) is exe
    assert np.array_equal(exe(X), result(1, 2, 5))
    assert sum(exe._held[n] is not before[n] for n in before) == 1
    exe.update({"a": weight(7), "b": weight(2)})
    assert np.array_equal(exe(X), result(7, 2, 5))


def test_refused_updates(compiled: rx.Executable) -> None:
    exe = compiled.bind(compiled.prepare(RAW))
    with pytest.raises(RelaxError, match="expected all raw weights that are prepared together, got 'a' without 'b'"):
        exe.update({"a": weight(1)})
    with pytest.raises(RelaxError, match="expected names of raw weights, got 'aa'"):
        exe.update({"aa": weight(1)})
    with pytest.raises(RelaxError, match="expected the name of a raw weight, got none"):
        exe.update({})
    with pytest.raises(RelaxError, match=r"weight 'c': expected f32\[16, 16\], got f32\[3\]"):
        exe.update({"c": np.zeros(3, np.float32)})
    with pytest.raises(RelaxError, match="expected weights as a mapping from names to arrays, got list"):
        exe.update([1])
    assert np.array_equal(exe(X), result(1, 2, 3))
    with pytest.raises(RelaxError, match="expected bound weights to update, got none: call prepare, then bind"):
        products().update({"c": weight(1)})


def test_calls_see_all_of_an_update_or_nothing(compiled: rx.Executable) -> None:
    """a and b change together, from one thread, while another one calls; binding swaps as well."""
    exe = compiled.bind(compiled.prepare(RAW))
    other = compiled.prepare({"a": weight(10), "b": weight(11), "c": weight(0)})
    wrong: list[Any] = []
    stop = threading.Event()

    def call() -> None:
        while not stop.is_set():
            y = exe(X)
            if y[0, -1] - y[0, 0] != 1 or not (y == np.repeat(y[:, [0, -1]], SIDE, axis=1)).all():
                wrong.append(y)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(40):
        exe.update({"a": weight(i), "b": weight(i + 1)})
        if i % 10 == 9:
            exe.bind(other)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert np.array_equal(exe(X), result(10, 11, 0))


def raw_file(folder: Path, count: int = 4, value: float = 0) -> Path:
    path = folder / "raw.safetensors"
    write_safetensors(path, {f"w{i}": np.full(8, i + value, np.float32) for i in range(count)})
    return path


def test_only_some_weights_of_a_file_are_prepared_again(tmp_path: Path) -> None:
    exe, out = doubling(4, 8), tmp_path / "out.safetensors"
    exe.prepare(raw_file(tmp_path), out)
    mapped = Checkpoint(out)
    write_safetensors(tmp_path / "part", {"w2": np.full(8, 50, np.float32)})
    report = exe.prepare(tmp_path / "part", out, only=["w2"])
    assert (report.steps_run, report.steps_skipped) == (1, 3)
    assert [Checkpoint(out).get(f"p{i}")[0] for i in range(4)] == [0, 2, 100, 6]
    assert mapped.get("p2")[0] == 4  # who has mapped the old file keeps it
    assert exe.verify(out) == 4
    assert sorted(os.listdir(tmp_path)) == ["out.safetensors", "part", "raw.safetensors"]


def test_refused_parts(tmp_path: Path) -> None:
    exe, out = doubling(4, 8), tmp_path / "out.safetensors"
    raw = raw_file(tmp_path)
    with pytest.raises(RelaxError, match="expected a prepared file as dst with only=, got none"):
        exe.prepare(raw, only=["w2"])
    with pytest.raises(RelaxError, match=r"cannot read '.*out\.safetensors': No such file"):
        exe.prepare(raw, out, only=["w2"])
    exe.prepare(raw, out)
    with pytest.raises(RelaxError, match=r"expected names of raw weights, got 'w22' \(near: w2"):
        exe.prepare(raw, out, only=["w22"])
    content = bytearray(out.read_bytes())
    content[4096 + 3] ^= 1
    out.write_bytes(content)
    with pytest.raises(RelaxError, match="weight 'p0': expected the bytes that prepare wrote, got others"):
        exe.prepare(raw, out, only=["w2"])
    exe.prepare(raw, out, only=["w0"])  # what is damaged is made again
    assert exe.verify(out, raw) == 4


def test_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exe, out = doubling(4, 8), tmp_path / "out.safetensors"
    raw = raw_file(tmp_path)
    exe.prepare(raw, out)
    assert exe.verify(out) == exe.verify(out, raw) == exe.verify(out, raw, jobs=2) == 4
    other = raw_file(tmp_path, value=1)
    text = r"got 4 problems\n  weight 'p0': expected what '.*raw.safetensors' gives, got other bytes: prepare the raw"
    with pytest.raises(RelaxError, match=text):
        exe.verify(out, other)
    products().save(tmp_path / "m.relax")
    write_safetensors(tmp_path / "abc", {f"x.{n}": w for n, w in RAW.items()})
    paths = [str(tmp_path / name) for name in ("m.relax", "abc", "p")]
    assert cli.run(["prepare", paths[0], paths[1], "-o", paths[2], "--rename", "^x\\.="]) == 0
    assert cli.run(["verify", paths[0], paths[2], "--against", paths[1], "--rename", "^x\\.="]) == 0
    assert f"weights of {paths[2]} against {paths[1]}\n" in capsys.readouterr().out
    write_safetensors(tmp_path / "abc", {"x.c": weight(9)})
    assert cli.run(["prepare", paths[0], paths[1], "-o", paths[2], "--rename", "^x\\.=", "--only", "c"]) == 0
    assert cli.run(["verify", paths[0], paths[2]]) == 0
    with open(paths[2], "r+b") as file:
        file.seek(5000)
        file.write(b"\xff")
    assert cli.run(["verify", paths[0], paths[2]]) == 1
    assert "expected the bytes that prepare wrote" in capsys.readouterr().err


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cache").mkdir(mode=0o700)
    monkeypatch.setenv("RELAXIR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("relaxir.runtime.weight_cache.untrusted_folder", lambda path, own: None)
    return tmp_path / "cache" / "weights"


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache that other processes trust, too."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        monkeypatch.setenv("RELAXIR_CACHE_DIR", folder)
        yield Path(folder) / "weights"


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.suffix == ".safetensors")


def test_loaded_weights_are_prepared_once(tmp_path: Path, cache: Path) -> None:
    write_safetensors(tmp_path / "raw", RAW)
    steps: list[object] = []
    exe = products().load_weights(tmp_path / "raw", progress=steps.append)
    assert np.array_equal(exe(X), result(1, 2, 3))
    (first,) = files(cache)
    count = len(steps)
    assert np.array_equal(products().load_weights(tmp_path / "raw", progress=steps.append)(X), result(1, 2, 3))
    assert len(steps) == count > 0
    write_safetensors(tmp_path / "raw", RAW | {"c": weight(4)})
    assert np.array_equal(products().load_weights(tmp_path / "raw")(X), result(1, 2, 4))
    assert files(cache) != [first]
    assert len(files(cache)) == 1
    assert np.array_equal(exe(X), result(1, 2, 3))  # mapped


def test_a_damaged_file_in_the_cache_is_made_again(tmp_path: Path, cache: Path) -> None:
    write_safetensors(tmp_path / "raw", RAW)
    products().load_weights(tmp_path / "raw")
    (path,) = files(cache)
    content = path.read_bytes()
    path.write_bytes(content[:5000])
    assert np.array_equal(products().load_weights(tmp_path / "raw")(X), result(1, 2, 3))
    assert path.read_bytes() == content


def test_several_threads_prepare_once(tmp_path: Path, cache: Path) -> None:
    write_safetensors(tmp_path / "raw", RAW)
    products().save(tmp_path / "m.relax")
    found: list[bool] = []
    steps: list[object] = []

    def load() -> None:
        exe = rx.load(tmp_path / "m.relax").load_weights(tmp_path / "raw", progress=steps.append)
        found.append(np.array_equal(exe(X), result(1, 2, 3)))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4
    assert len(steps) == 2
    assert len(files(cache)) == 1


LOAD = """
import sys
import numpy as np
import relaxir as rx
artifact, *raw = sys.argv[1:]
for path in raw:
    steps = []
    exe = rx.load(artifact).load_weights(path, progress=steps.append)
    print(len(steps), exe(np.eye(2, 16, dtype=np.float32))[0, 0], flush=True)
"""


def loaded(folder: Path, orders: list[list[int]]) -> list[list[str]]:
    """What processes print that run at once, each loading these raw weights in this order."""
    commands = [[sys.executable, "-c", LOAD, str(folder / "m.relax"), *(str(folder / f"raw{i}") for i in o)] for o in orders]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    return [process.communicate(timeout=60)[0].splitlines() for process in running]


def test_several_processes_prepare_once(tmp_path: Path, shared: Path) -> None:
    write_safetensors(tmp_path / "raw1", RAW)
    products().save(tmp_path / "m.relax")
    assert sorted(loaded(tmp_path, [[1]] * 3)) == [["0 4.0"], ["0 4.0"], ["2 4.0"]]
    assert len(files(shared)) == 1


def test_what_was_not_used_for_longest_makes_room(tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in (1, 2, 3):
        write_safetensors(tmp_path / f"raw{i}", RAW | {"a": weight(i)})
    exe = products()
    exe.save(tmp_path / "m.relax")
    exe.load_weights(tmp_path / "raw1")
    size = files(shared)[0].stat().st_size
    monkeypatch.setenv("RELAXIR_WEIGHTS_BYTES", str(2 * size))
    steps: list[object] = []
    for i, is_made in ((2, True), (1, False), (3, True), (1, False), (2, True)):
        del steps[:]
        assert exe.load_weights(tmp_path / f"raw{i}", progress=steps.append)(X)[0, 0] == i + 3
        assert bool(steps) is is_made
    assert len(files(shared)) == 2
    monkeypatch.setenv("RELAXIR_WEIGHTS_BYTES", str(size - 1))  # processes take each other's files away
    orders = [[1, 2, 3], [3, 2, 1], [2, 1, 3]]
    found = [[line.split()[1] for line in lines] for lines in loaded(tmp_path, orders)]
    assert found == [[f"{i + 3}.0" for i in order] for order in orders]
    exe.load_weights(tmp_path / "raw1")
    assert len(files(shared)) == 1
    monkeypatch.setenv("RELAXIR_WEIGHTS_BYTES", "much")
    with pytest.raises(RelaxError, match="expected a number of bytes from 1 on in RELAXIR_WEIGHTS_BYTES, got 'much'"):
        exe.load_weights(tmp_path / "raw1")


def test_without_a_cache_weights_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_safetensors(tmp_path / "raw", RAW)
    monkeypatch.setenv("RELAXIR_CACHE_DIR", "off")
    assert np.array_equal(products().load_weights(tmp_path / "raw")(X), result(1, 2, 3))
    assert np.array_equal(products().load_weights(RAW)(X), result(1, 2, 3))
    with pytest.raises(RelaxError, match="weight 'c': expected"):
        products().load_weights({"a": RAW["a"], "b": RAW["b"]})


def test_an_update_of_what_the_module_knows() -> None:
    data = doubling(1, 4).manifest.data
    known = {**data["raw_weights"][0], "value": "AACAPw=="}
    exe = executable_of({**data, "raw_weights": [known]})
    assert exe.prepare({})["p0"].tolist() == [2] * 4
    exe.bind(exe.prepare({})).update({"w0": np.full(4, 3, np.float32)})
    assert exe._held["p0"].tolist() == [6] * 4


def test_weights_that_a_configuration_makes_are_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tensors' files are the same, the configuration is another one."""
    monkeypatch.setenv("RELAXIR_CACHE_DIR", str(tmp_path / "cache"))
    b, folder = rx.Builder(), tmp_path / "raw"
    with b.function("main"):
        b.output(b.multiply(b.input("x", ("n", 4)), b.weight("model.rotary_emb.inv_freq", (4,))))
    module, x = b.build(), np.ones((1, 4), np.float32)
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", {"unread": np.zeros(1, np.float32)})
    for theta in (1e4, 5e5):
        sizes = {"hidden_size": 32, "num_attention_heads": 4, "rope_theta": theta}
        (folder / "config.json").write_text(json.dumps({"model_type": "llama", **sizes}))
        found = rx.compile(module).load_weights(folder)(x)
        np.testing.assert_allclose(found[0], 1 / theta ** (np.arange(0, 8, 2) / 8), rtol=1e-6)
