"""Raw weights that are cut off after they were opened: an error, where touching a mapping would end the process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from relaxir import RelaxError
from relaxir.runtime.sources import open_source
from relaxir.weights import ArraySpec, write_safetensors
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
