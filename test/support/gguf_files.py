"""GGUF files by the ``gguf`` package, with blocks of random bytes."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from relaxir.weights.formats.gguf_file import BLOCKS

Kind = gguf.GGMLQuantizationType


def write(
    path: Path, tensors: dict[str, tuple[np.ndarray, Kind | None]], architecture: str = "other", heads: tuple[int, int] = (4, 2)
) -> Path:
    """A file of arrays, or of blocks as bytes ``[rows, bytes]`` of a type."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_head_count(heads[0])
    writer.add_head_count_kv(heads[1])
    writer.add_array("tokenizer.ggml.tokens", ["a", "bc", ""])
    writer.add_array("some.numbers", [1, 2, 3])
    for name, (array, kind) in tensors.items():
        writer.add_tensor(name, array, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def blocks(rng: np.random.Generator, name: str, rows: int, count: int, usual: bool = False) -> np.ndarray:
    """Random bytes; one row in four, or each, has fields of f16 that are finite and of usual size.

    No exponent of MXFP4 is 255: a NaN, with which GGML, which never writes it, computes as with a number.
    """
    kind = BLOCKS[name]
    raw = rng.integers(0, 256, (rows, count, kind.nbytes), np.uint8)
    step = 1 if usual else 4
    sizes = rng.uniform(0.001, 0.1, (rows, count, 2)).astype(np.float16)
    for i, field in enumerate(f for f in kind.fields.values() if f.dtype == "<f2"):
        raw[::step, :, field.offset : field.offset + 2] = sizes[::step, :, i : i + 1].view(np.uint8).reshape(-1, count, 2)
    if name == "MXFP4":  # exponents
        raw[:, :, 0] = np.minimum(raw[:, :, 0], 254)
        raw[::step, :, 0] = rng.integers(110, 130, raw[::step, :, 0].shape)
    return raw.reshape(rows, count * kind.nbytes)


def permuted(w: np.ndarray, heads: int) -> np.ndarray:
    """As the converter of llama.cpp does."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)
