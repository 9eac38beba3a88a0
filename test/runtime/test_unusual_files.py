"""What a safetensors file may be though few are: names of megabytes, tensors without elements, tensors in any order."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaxir import RelaxError
from relaxir.weights import Checkpoint, write_safetensors
from support.hand_compiled import scaled_executable


def raw_file(path: Path, header: dict[str, Any], data: bytes) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_a_name_of_megabytes(tmp_path: Path) -> None:
    name, array = "n" * (2 << 20), np.arange(3, dtype=np.float32)
    checkpoint = Checkpoint(
        raw_file(tmp_path / "a.safetensors", {name: {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}, array.tobytes())
    )
    assert checkpoint.get(name).tolist() == [0, 1, 2]
    with pytest.raises(RelaxError, match="expected 2 weights, got 2 problems") as error:
        scaled_executable().prepare(tmp_path / "a.safetensors", tmp_path / "out.safetensors")
    assert len(str(error.value)) < 1000


def test_tensors_without_elements_anywhere(tmp_path: Path) -> None:
    whole = {"a": np.zeros((0, 3), np.float32), "b": np.ones(2, np.int8), "c": np.zeros((4, 0), np.int64)}
    write_safetensors(tmp_path / "a.safetensors", whole)
    checkpoint = Checkpoint(tmp_path / "a.safetensors")
    assert {n: checkpoint.get(n).shape for n in checkpoint} == {n: a.shape for n, a in whole.items()}


def test_tensors_in_another_order_than_their_bytes(tmp_path: Path) -> None:
    header = {
        "b": {"dtype": "I8", "shape": [2], "data_offsets": [4, 6]},
        "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
    }
    checkpoint = Checkpoint(raw_file(tmp_path / "a.safetensors", header, np.float32(5).tobytes() + b"\1\2"))
    assert (checkpoint.get("a").tolist(), checkpoint.get("b").tolist()) == ([5], [1, 2])


def test_prepared_weights_in_another_order_bind(tmp_path: Path) -> None:
    executable, path = scaled_executable(), tmp_path / "prepared.safetensors"
    executable.prepare({"w": np.array([1, 2, 3, 4], np.float32), "bias": np.array([1, 2, 3], np.int8)}, path)
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    text = json.dumps(dict(reversed(header.items())), separators=(",", ":")).encode().ljust(length)
    path.write_bytes(content[:8] + text + content[8 + length :])
    executable.bind(path, verify=True)
    assert executable(np.ones((1, 4), np.float32)).tolist() == [[2, 4, 6, 8]]
