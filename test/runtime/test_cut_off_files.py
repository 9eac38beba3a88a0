"""Raw weights that are cut off after they were opened: an error, where touching a mapping would end the process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from relaxir import RelaxError
from relaxir.runtime.sources import open_source
from relaxir.weights import ArraySpec, StreamWriter, write_safetensors
from support.gguf_files import write

VALUES = np.random.default_rng(0).standard_normal((128, 256)).astype(np.float32)


def stored(path: Path) -> Path:
    write_safetensors(path / "w.safetensors", {"w": VALUES})
    return path / "w.safetensors"


def pickled(path: Path) -> Path:
    torch.save({"w": torch.from_numpy(VALUES)}, path / "w.pt")
    return path / "w.pt"


def blocks(path: Path) -> Path:
    kind = gguf.GGMLQuantizationType.Q8_0
    return write(path / "w.gguf", {"w": (gguf.quantize(VALUES, kind), kind)})


KINDS = [stored, pickled, blocks]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("kept", [0, 4096, 8192])
def test_reading_is_refused(tmp_path: Path, make: Callable[[Path], Path], kept: int) -> None:
    path = make(tmp_path)
    source = open_source(path).serving({"w": ArraySpec.of(VALUES)})
    os.truncate(path, kept)
    with pytest.raises(RelaxError, match=f"{path.name}': tensor 'w': expected a file that stays as it is while it is read"):
        source.read("w")


@pytest.mark.parametrize("make", KINDS)
def test_what_is_read_is_what_is_mapped(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    source = open_source(make(tmp_path)).serving({"w": ArraySpec.of(VALUES)})
    np.testing.assert_array_equal(source.read("w"), source.get("w"), strict=True)


def test_fields_of_blocks_are_read(tmp_path: Path) -> None:
    path = blocks(tmp_path)
    specs = {"w.d": ArraySpec(np.dtype(np.float16), (128, 8)), "w.qs": ArraySpec(np.dtype(np.int8), (128, 8, 32))}
    source = open_source(path).serving(specs)
    for name in specs:
        np.testing.assert_array_equal(source.read(name), source.get(name), strict=True)
    os.truncate(path, 4096)
    with pytest.raises(RelaxError, match="tensor 'w': expected a file that stays as it is"):
        source.read("w.qs")


# Cut off behind all that looks at a file's size, as another process may do it at any time.
CHECKS = """
import os, sys
import numpy as np
from relaxir import RelaxError
from relaxir.runtime.sources import open_source
from relaxir.runtime.verify import _Comparison
from relaxir.weights import ArraySpec, Checkpoint, StreamWriter

prepared, begun = sys.argv[1:]
specs = {"w": ArraySpec(np.dtype(np.float32), (128, 256))}
file = Checkpoint(prepared)
known = file.checksums()
comparison = _Comparison(open_source(prepared))
os.truncate(prepared, 4096)

def resume():
    look = StreamWriter._has_our_prefix
    StreamWriter._has_our_prefix = lambda writer: look(writer) and os.truncate(begun + ".partial", 4096) is None
    StreamWriter(begun, specs, resume_key="k")

for check in (
    lambda: file.damaged(known, True), lambda: file.damaged(known, False),
    lambda: comparison.put("w", np.ones((128, 256), np.float32)), resume,
):
    try:
        check()
    except RelaxError as error:
        print(error)
"""


def test_checking_is_refused(tmp_path: Path) -> None:
    """By checksums, whole or by their ends, against other arrays, and where an interrupted file is gone on with."""
    prepared, begun = tmp_path / "p.safetensors", tmp_path / "b.safetensors"
    with StreamWriter(prepared, {"w": ArraySpec.of(VALUES)}, checksums=True) as writer:
        writer.put("w", VALUES)
    writer = StreamWriter(begun, {"w": ArraySpec.of(VALUES)}, resume_key="k")
    writer.put("w", VALUES)
    writer.suspend()
    command = [sys.executable, "-c", CHECKS, str(prepared), str(begun)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    refused = "': tensor 'w': expected a file that stays as it is while it is read, got one that was cut off"
    assert done.stdout.splitlines() == [f"'{prepared}{refused}"] * 3 + [f"'{begun}.partial{refused}"]
