"""State dicts that torch.save wrote, and .npz files, as raw weights: never unpickled; folders of the former."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from relaxir import RelaxError
from relaxir.frontend.saved_program import load_exported_program
from relaxir.weights import Checkpoint, write_safetensors
from relaxir.weights.model_folder import read_config
from relaxir.weights.opening import open_tensors
from support.hand_compiled import doubling

RAW = {f"w{i}": torch.full((8,), float(i)) for i in range(4)}


@contextmanager
def refused(text: str) -> Iterator[None]:
    with pytest.raises(RelaxError) as error:
        yield
    assert text in str(error.value)


@pytest.mark.parametrize("content", [RAW, {"state_dict": RAW, "epoch": 3}, {k: v.bfloat16() for k, v in RAW.items()}])
@pytest.mark.parametrize("name", ["model.bin", "model.pt", "model.pth"])
def test_state_dicts(tmp_path: Path, content: dict[str, object], name: str) -> None:
    torch.save(content, tmp_path / name)
    doubling(4, 8).prepare(tmp_path / name, tmp_path / "out")
    out = Checkpoint(tmp_path / "out")
    assert [out.get(f"p{i}").tolist() for i in range(4)] == [[2.0 * i] * 8 for i in range(4)]


def test_folders_of_several_files(tmp_path: Path) -> None:
    torch.save({n: RAW[n] for n in ("w0", "w1")}, tmp_path / "pytorch_model-00001-of-00002.bin")
    torch.save({n: RAW[n] for n in ("w2", "w3")}, tmp_path / "pytorch_model-00002-of-00002.bin")
    where = {n: f"pytorch_model-0000{1 + (n > 'w1')}-of-00002.bin" for n in RAW}
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": where}))
    (tmp_path / "config.json").write_text('{"model_type": "none"}')
    for path in (tmp_path, index):
        source = open_tensors(path)
        assert source.config == {"model_type": "none"}
        assert sorted(source) == sorted(RAW)
        assert len(source.files) == 3
        assert doubling(4, 8).prepare(path)["p3"].tolist() == [6.0] * 8
    index.write_text(json.dumps({"weight_map": where | {"w4": "../pytorch_model.bin"}}))
    with refused(", got '../pytorch_model.bin'"):
        open_tensors(tmp_path)
    index.write_text(json.dumps({"weight_map": where | {"w4": where["w3"]}}))
    with refused("tensor 'w4': expected it in 'pytorch_model-00002-of-00002.bin', got a file without it"):
        open_tensors(tmp_path)


def test_a_folder_with_one_file(tmp_path: Path) -> None:
    torch.save(RAW, tmp_path / "pytorch_model.bin")
    assert doubling(4, 8).prepare(tmp_path)["p3"].tolist() == [6.0] * 8


def test_files_that_cannot_be_mapped(tmp_path: Path) -> None:
    """Of PyTorch before 1.6: they are in memory whole, which the prediction has."""
    path = tmp_path / "old.bin"
    torch.save(RAW, path, _use_new_zipfile_serialization=False)
    executable = doubling(4, 8)
    mapped = executable.prepare({n: t.numpy() for n, t in RAW.items()}, tmp_path / "mapped").predicted_peak_bytes
    report = executable.prepare(path, tmp_path / "out")
    assert Checkpoint(tmp_path / "out").get("p3").tolist() == [6.0] * 8
    assert report.predicted_peak_bytes == mapped + path.stat().st_size
    with refused("expected a memory limit of "):
        executable.prepare(path, tmp_path / "out", memory_limit=path.stat().st_size)


class Runs:
    """What a pickle could do."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch hacked",)


def test_nothing_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"w0": Runs()}, "a.pt")
    Path("b.bin").write_bytes(pickle.dumps({"w0": Runs()}))
    for name in ("a.pt", "b.bin"):
        with refused(f"'{name}': expected tensors that torch.save wrote, got more than these, which could run code"):
            open_tensors(name)
    assert not Path("hacked").exists()


def test_other_content(tmp_path: Path) -> None:
    (tmp_path / "garbage.pt").write_bytes(b"not a file" * 100)
    with refused("garbage.pt': expected tensors that torch.save wrote, got content of another kind"):
        open_tensors(tmp_path / "garbage.pt")
    torch.save({"w0": torch.ones(8)}, tmp_path / "cut.pt")
    (tmp_path / "cut.pt").write_bytes((tmp_path / "cut.pt").read_bytes()[:-200])
    with refused("cut.pt': expected tensors that torch.save wrote, got an archive that is cut off or damaged"):
        open_tensors(tmp_path / "cut.pt")
    (tmp_path / "pointer.bin").write_text("version https://git-lfs.github.com/spec/v1")
    with refused("pointer.bin': expected tensors that torch.save wrote, got a pointer of Git LFS"):
        open_tensors(tmp_path / "pointer.bin")
    readers = {"pointer.npz": open_tensors, "pointer.onnx": open_tensors, "pointer.pt2": load_exported_program}
    for name, read in readers.items():
        (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1")
        with refused("a pointer of Git LFS: 'git lfs pull' fetches what it stands for"):
            read(tmp_path / name)
    (tmp_path / "config.json").write_text("version https://git-lfs.github.com/spec/v1")
    with refused("config.json': expected a configuration in JSON, got a pointer of Git LFS"):
        read_config(str(tmp_path))
    with refused("x.gguf': expected a GGUF file, got a safetensors file"):
        write_safetensors(tmp_path / "x.gguf", {"w": np.zeros(1)})
        open_tensors(tmp_path / "x.gguf")
    np.save(tmp_path / "x.npy", np.zeros(3))
    with refused("x.npy': expected a safetensors file, got one array of NumPy"):
        open_tensors(tmp_path / "x.npy")
    torch.save({"w": torch.zeros(2).to_sparse()}, tmp_path / "sparse.pt")
    with refused("sparse.pt': weight 'w0': expected f32[8], got none"):
        doubling(1, 8).prepare(tmp_path / "sparse.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    with refused("list.pt': expected a state dict, got list without named tensors"):
        open_tensors(tmp_path / "list.pt")
    torch.save({"w": 1}, tmp_path / "numbers.pt")
    with refused("numbers.pt': expected a state dict, got dict without named tensors"):
        open_tensors(tmp_path / "numbers.pt")


def test_npz(tmp_path: Path) -> None:
    arrays = {n: t.numpy() for n, t in RAW.items()}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "raw.npz", **arrays)
        report = doubling(4, 8).prepare(tmp_path / "raw.npz", tmp_path / "out")
        assert report.extra_weights == ()
        assert Checkpoint(tmp_path / "out").get("p3").tolist() == [6.0] * 8
        assert open_tensors(tmp_path / "raw.npz").identity


def test_refused_npz(tmp_path: Path) -> None:
    path = tmp_path / "raw.npz"
    np.savez(path, w0=np.array([Runs()]), w1=np.arange(3))
    opened = open_tensors(path)  # the arrays beside it are read
    assert opened.get("w1").tolist() == [0, 1, 2]
    for read in (opened.spec, opened.get):
        with refused("raw.npz': array 'w0': expected numbers in .npy form, got an array of Python objects"):
            read("w0")
    np.savez(path, w0=np.arange(1000))
    content = bytearray(path.read_bytes())
    content[700] ^= 1
    path.write_bytes(content)
    with refused("raw.npz': array 'w0': expected numbers in .npy form, got Bad CRC-32"):
        open_tensors(path).get("w0")
    path.write_bytes(content[:500])
    with refused("raw.npz': expected an .npz file, got File is not a zip file"):
        open_tensors(path)


def test_a_file_that_was_written_to(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", w0=np.zeros(3))
    torch.save(RAW, tmp_path / "a.pt")
    for name in ("a.npz", "a.pt"):
        source = open_tensors(tmp_path / name)
        source.check_unchanged()
        with open(tmp_path / name, "ab") as file:
            file.write(b"x")
        with refused(f"{name}': expected a file that stays as it is while it is read, got one that was written"):
            source.check_unchanged()
        with refused(", got 'other'"):
            source.get("other")
