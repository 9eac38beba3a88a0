"""GGUF files whose header, length or split was changed: what opens is what the gguf package reads, or is refused by name.

A file is valid first (plain and in blocks, alone or with one of two names), then changed in one to three ways: bits, numbers of
4 or 8 bytes, what is put in or twice, the end of the file. What opens is read and decoded whole: an offset outside of the
file would end the process.
"""

from __future__ import annotations

import random
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np

from relaxir import RelaxError
from relaxir.weights.arrays import Array
from relaxir.weights.formats.gguf_file import BLOCKS, GgufTensors
from relaxir.weights.opening import decoded, open_tensors

__all__ = ["check"]

Rng = random.Random
Kind = gguf.GGMLQuantizationType

NUMBERS = [
    0, 1, 2, 3, 4, 5, 8, 9, 31, 32, 33, 255, 4096, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, 1 << 63,
    (1 << 64) - 1,
]  # fmt: skip
NAMES = ["t", "v", "blk.0.attn_q.weight", "output.weight", "ä", "a\nb", "a\0b", "x" * 60]


def check(seed: int) -> str | None:
    """Makes a file of the seed, changes it, and reads it."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "model.gguf")
        header = _write(rng, whole)
        if rng.random() < 0.1:
            whole = whole.rename(Path(folder, "model-00001-of-00002.gguf"))
            _write(rng, Path(folder, "model-00002-of-00002.gguf"))
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            content = rng.choice(MUTATIONS)(rng, bytearray(whole.read_bytes()), header)
            whole.write_bytes(content)
        return _read(whole)


def _write(rng: Rng, path: Path) -> int:
    """A valid file; gives where the tensors begin."""
    writer = gguf.GGUFWriter(path, rng.choice(["other", "llama", "qwen3"]))
    writer.add_head_count(2)
    writer.add_array("tokenizer.ggml.tokens", ["a", "bc", ""])
    writer.add_array("some.numbers", [1, 2, 3])
    if rng.random() < 0.3:
        writer.add_custom_alignment(rng.choice([8, 32, 64]))
    values = np.random.default_rng(rng.randrange(1 << 30))
    for name in rng.sample(NAMES, rng.randint(1, 3)):
        kind = rng.choice([None, None, *BLOCKS])
        writer.add_tensor(name, *_tensor(values, kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.stat().st_size - sum(t.n_bytes for t in gguf.GGUFReader(path).tensors)


def _tensor(values: np.random.Generator, kind: str | None) -> tuple[Array, None, Kind | None]:
    if kind is None:
        return values.standard_normal((4, 6), np.float32), None, None
    raw = values.integers(0, 256, (4, 2 * BLOCKS[kind].nbytes), np.uint8)
    return raw, None, Kind[kind]


def _read(path: Path) -> str | None:
    """Everything in it; where the package reads it, too, it must agree."""
    try:
        source = open_tensors(path)
        found = {name: source.get(name).tobytes() for name in source}
        weights = decoded(source)
        for name in weights:
            weights.get(name)
    except RelaxError as error:
        if path.name[:5] not in str(error):
            raise AssertionError(f"an error that names no file: {error}") from error
        return "refused"
    if isinstance(source, GgufTensors):
        _compare(source, path, found)
    return None


def _compare(source: GgufTensors, path: Path, found: dict[str, bytes]) -> None:
    try:
        other = gguf.GGUFReader(path)
    except Exception:  # it has no errors of its own
        return
    assert {t.name for t in other.tensors} == set(source.tensors), "other tensors than the package reads"
    for tensor in other.tensors:
        if not source.tensors[tensor.name].kind.fields:
            assert found[tensor.name] == tensor.data.tobytes(), f"other bytes than the package reads: {tensor.name!r}"


# -- mutations ---------------------------------------------------------------------------------------------------------


def _number(rng: Rng, content: bytearray, header: int) -> bytes:
    form = rng.choice(["<I", "<Q", "<Q", "<B"])
    size = struct.calcsize(form)
    at = rng.randrange(max(1, min(header, len(content)) - size))
    old = int.from_bytes(content[at : at + size], "little")
    value = rng.choice([*NUMBERS, old - 1, old + 1, old * 2, old ^ 1]) % (1 << (8 * size))
    content[at : at + size] = value.to_bytes(size, "little")
    return bytes(content)


def _bit(rng: Rng, content: bytearray, header: int) -> bytes:
    if content:
        content[rng.randrange(max(1, min(header, len(content))))] ^= 1 << rng.randrange(8)
    return bytes(content)


def _cut(rng: Rng, content: bytearray, header: int) -> bytes:
    end = rng.choice([header, len(content)])
    return bytes(content[: rng.randrange(end + 1)])


def _insert(rng: Rng, content: bytearray, header: int) -> bytes:
    at = rng.randrange(min(header, len(content)) + 1)
    content[at : at + rng.choice([0, 0, 1, 8])] = rng.randbytes(rng.choice([1, 4, 8]))
    return bytes(content)


def _repeat(rng: Rng, content: bytearray, header: int) -> bytes:
    at, size = rng.randrange(min(header, len(content)) + 1), rng.choice([8, 24, 60])
    return bytes(content[: at + size] + content[at:])


MUTATIONS: tuple[Callable[[Rng, bytearray, int], bytes], ...] = (_number, _number, _number, _bit, _cut, _insert, _repeat)
