"""Binding weights: only those prepared for this executable, in full; everything else is refused by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from relaxir import RelaxError
from relaxir.runtime.executable import Executable, PreparedWeights
from relaxir.weights import write_safetensors
from support.hand_compiled import entry, executable_of, manifest, scaled_executable, tensor

RAW = {"w": np.array([1, 2, 3, 4], np.float32), "bias": np.zeros(3, np.int8)}
MARK = {"relaxir.fingerprint": "f00d" * 16}
ONES = np.ones((2, 4), np.float32)


def test_file_and_mapping(tmp_path: Path) -> None:
    executable = scaled_executable()
    executable.prepare(RAW, tmp_path / "p.safetensors")
    for weights in (tmp_path / "p.safetensors", str(tmp_path / "p.safetensors"), executable.prepare(RAW)):
        assert executable.bind(weights) is executable
        assert executable(ONES).tolist() == [[2, 4, 6, 8]] * 2
    assert executable.is_bound
    os.unlink(tmp_path / "p.safetensors")  # mapped: the content stays while it is bound
    assert executable(ONES).tolist() == [[2, 4, 6, 8]] * 2


@pytest.mark.parametrize("as_file", [True, False])
@pytest.mark.parametrize(
    ("weights", "fingerprint", "message"),
    [
        (RAW, None, r"expected weights prepared for this executable .* got raw weights such as 'w': call prepare"),
        ({"v": ONES}, None, "got 1 tensors without a fingerprint: call prepare with the raw weights first and bind its result"),
        (RAW, "beef" * 16, r"\(fingerprint f00df00df00d\), got weights prepared for another one \(fingerprint beefbeefbeef\)"),
        ({"w": RAW["w"]}, "f00d" * 16, r"weight 'bias': expected i8\[3\], got none"),
        ({**RAW, "w": RAW["w"][:3]}, "f00d" * 16, r"weight 'w': expected f32\[4\], got f32\[3\]"),
        ({**RAW, "w": RAW["w"].astype(np.float16)}, "f00d" * 16, r"weight 'w': expected f32\[4\], got f16\[4\]"),
        ({**RAW, "z": ONES}, "f00d" * 16, "weight 'z': expected none of this name, got one"),
        ({"z": ONES}, "f00d" * 16, r"expected 2 weights, got 3 problems\n  weight 'w': .*\n  weight 'bias': .*\n  weight 'z'"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, as_file: bool, weights: dict[str, Any], fingerprint: str | None, message: str) -> None:
    source: object = weights if fingerprint is None else PreparedWeights(weights, fingerprint)
    if as_file:
        source = tmp_path / "x.safetensors"
        write_safetensors(source, weights, None if fingerprint is None else {"relaxir.fingerprint": fingerprint})
    executable = scaled_executable()
    with pytest.raises(RelaxError, match=message) as caught:
        executable.bind(source)
    assert ("x.safetensors" in str(caught.value)) == as_file
    assert not executable.is_bound


def test_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    executable = scaled_executable()
    executable.prepare(RAW, path)
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(RelaxError, match=r"'.*p.safetensors': tensor 'bias': .*\(truncated\)"):
        executable.bind(path)


def test_a_refused_bind_keeps_the_old_weights() -> None:
    executable = scaled_executable()
    executable.bind(executable.prepare(RAW))
    with pytest.raises(RelaxError, match="call prepare"):
        executable.bind(RAW)
    assert executable(ONES).tolist() == [[2, 4, 6, 8]] * 2


def test_not_weights() -> None:
    with pytest.raises(
        RelaxError, match="expected weights as a path, a Checkpoint or a mapping from names to arrays, got list"
    ):
        scaled_executable().bind([1])


def unlifted() -> Executable:
    """Preparation copies everything under its own name."""
    record = tensor("w", [], "i16")
    main = entry("main", "relaxir_copy", weights=[record], outputs=[tensor("y", [], "i16")])
    steps = [{"symbol": None, "gets": ["w"], "sets": ["w"], "arena_bytes": 0}]
    data = manifest(entries=[main], raw_weights=[record], prepared_weights=[record], steps=steps)
    return executable_of(data)


def test_raw_weights_bind_where_preparation_changes_nothing(tmp_path: Path) -> None:
    weights = {"w": torch.tensor(7, dtype=torch.int16), "other": torch.zeros(2)}
    assert unlifted().bind(weights)().tolist() == 7
    write_safetensors(tmp_path / "raw.safetensors", weights)
    assert unlifted().bind(tmp_path / "raw.safetensors")().tolist() == 7
    with pytest.raises(RelaxError, match=r"weight 'w': expected i16\[\], got none"):
        unlifted().bind({"other": weights["other"]})
    with pytest.raises(RelaxError, match="got weights prepared for another one"):
        unlifted().bind(PreparedWeights({"w": np.array(7, np.int16)}, "beef"))


def test_misaligned_weights_are_copied(tmp_path: Path) -> None:
    """Files of other writers may put a tensor anywhere."""
    text = b'{"__metadata__":{"relaxir.fingerprint":"%s"},"bias":{"dtype":"I8","shape":[3],"data_offsets":[0,3]},' % (
        b"f00d" * 16
    )
    text += b'"w":{"dtype":"F32","shape":[4],"data_offsets":[3,19]}}'
    data = bytes(3) + np.array([1, 1, 2, 2], np.float32).tobytes()
    (tmp_path / "odd.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    assert scaled_executable().bind(tmp_path / "odd.safetensors")(ONES).tolist() == [[1, 1, 2, 2]] * 2
