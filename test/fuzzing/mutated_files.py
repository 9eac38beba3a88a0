"""Checkpoints whose header, index or length was changed: what opens is what the safetensors package reads, or is refused.

A file is valid first (any dtypes, ranks, names, metadata; alone, prepared, or in shards with an index), then changed in one to
three ways: bytes of the header, a value of the JSON, names twice, the announced length, the end of the file, the index. What
opens is read whole, so that an offset outside of the file would end the process; what binds must give the right result.
"""

from __future__ import annotations

import contextlib
import json
import random
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open

from relaxir import RelaxError
from relaxir.weights import ArraySpec, Checkpoint, StreamWriter
from relaxir.weights.arrays import Array
from support.hand_compiled import scaled_executable

__all__ = ["check"]

Rng = random.Random

DTYPES = [
    np.float32,
    np.float64,
    np.float16,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    np.int8,
    np.uint16,
    np.int64,
    np.bool_,
]
NAMES = ["w", "bias", "a.b.weight", "", "ä", "名", "x" * 300, "a\nb", "a\0b", 'q"q', "\\", "__metadata_", "../w", "1"]
ODD: list[Any] = [
    0, -1, 1, 2, 3, 7, 8, 9, 4095, 4096, 1 << 31, (1 << 32) - 1, 1 << 53, (1 << 63) - 1, 1 << 63, 1 << 64, 10**40,
    0.5, 1.0, 1e300, float("nan"), float("inf"), True, False, None, [], [0], [1, 2], [[]], [0, 0, 0], {}, {"dtype": "F32"},
    "", "F32", "F4", "F6_E2M3", "F8_E8M0", "BF16", "f32", "I4", "\ud800", "x" * 1000,
]  # fmt: skip
ODD_SHARDS = [
    "../x", "/etc/passwd", "", "\0", "\ud800", "gone", ".", "..", "model-0.safetensors/", "./model-0.safetensors", None, 3,
]  # fmt: skip
PIECES = [b"", b'"', b"{", b"}", b"[", b"]", b",", b":", b"9", b"\\", b"\xff", b" ", b"\n", b"e"]


def check(seed: int) -> str | None:
    """Makes a checkpoint of the seed, changes it, and reads it."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        if rng.random() < 0.2:
            return _check_prepared(rng, path)
        if rng.random() < 0.2:
            return _check_index(rng, Path(folder))
        _write(rng, path)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            rng.choice(MUTATIONS)(rng, path)
        return _read(path)


def _write(rng: Rng, path: Path) -> None:
    tensors = {name: _array(rng) for name in rng.sample(NAMES, rng.randint(0, 5))}
    metadata = {rng.choice(NAMES): rng.choice(NAMES) for _ in range(rng.randint(0, 2))}
    with StreamWriter(path, {n: ArraySpec.of(a) for n, a in tensors.items()}, metadata, checksums=rng.random() < 0.3) as writer:
        for name, array in tensors.items():
            writer.put(name, array)


def _array(rng: Rng) -> Array:
    shape = [rng.choice([0, 1, 1, 2, 3, 5, 16]) for _ in range(rng.randint(0, 3))]
    return np.array([rng.randint(0, 1) for _ in range(int(np.prod(shape)))]).astype(rng.choice(DTYPES)).reshape(shape)


def _read(path: Path) -> str | None:
    """Everything in it, twice; the package must agree, but for what it does not know."""
    try:
        checkpoint = Checkpoint(path)
    except RelaxError as error:
        if path.name not in str(error):
            raise AssertionError("an error that names no file") from error
        return "refused"
    found = {name: _bytes(checkpoint, name) for name in checkpoint}
    if any(content is None for content in found.values()):
        return "a dtype that NumPy lacks"
    try:
        with safe_open(path, "np") as file:
            assert set(file.keys()) == set(found), "other names than the package reads"
            assert (file.metadata() or {}) == checkpoint.metadata, "other metadata than the package reads"
            for name, content in found.items():
                with contextlib.suppress(AttributeError, TypeError):  # of dtypes that it has no NumPy name of
                    assert file.get_tensor(name).tobytes() == content, f"other bytes than the package reads: {name!r}"
    except SafetensorError as error:
        raise AssertionError(f"opened, and the package says {error}") from None
    return None


def _bytes(checkpoint: Checkpoint, name: str) -> bytes | None:
    checkpoint.prefetch(name)
    try:
        content = checkpoint.get(name).tobytes()
    except RelaxError:
        return None
    checkpoint.release(name)
    return content


def _check_prepared(rng: Rng, path: Path) -> str | None:
    """A prepared file in which anything was changed binds only if everything that counts is as it was."""
    raw = {"w": np.array([1, 2, 3, 4], np.float32), "bias": np.array([1, 2, 3], np.int8)}
    executable = _executable()
    executable.prepare(raw, path)
    whole = path.read_bytes()
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        rng.choice(MUTATIONS)(rng, path)
    changed = path.read_bytes()
    try:
        executable.bind(path, verify=True)
    except RelaxError:
        return "refused"
    result = executable(np.ones((1, 4), np.float32))
    assert result.tolist() == [[2, 4, 6, 8]], f"bound, and gives {result}: {changed!r} for {whole!r}"
    return None


def _executable() -> Any:
    if not _known:
        _known.append(scaled_executable())
    return _known[0]


_known: list[Any] = []


def _check_index(rng: Rng, folder: Path) -> str | None:
    """Shards with an index, in which names, or the shards, are changed."""
    weight_map: dict[str, Any] = {}
    for i in range(rng.randint(1, 3)):
        shard = folder / f"model-{i}.safetensors"
        _write(rng, shard)
        weight_map |= dict.fromkeys(Checkpoint(shard), shard.name)
        if rng.random() < 0.3:
            rng.choice(MUTATIONS)(rng, shard)
    if rng.random() < 0.7 and weight_map:
        weight_map[rng.choice([*weight_map, "more"])] = rng.choice(ODD_SHARDS)
    text = json.dumps({"weight_map": weight_map}).encode()
    if rng.random() < 0.3:
        text = _flipped(rng, text)
    (folder / "model.safetensors.index.json").write_bytes(text)
    try:
        checkpoint = Checkpoint(folder)
    except RelaxError:
        return "refused"
    for name in checkpoint:
        _bytes(checkpoint, name)
    assert all(Path(f).parent.resolve() == folder.resolve() for f in checkpoint.files), f"left the folder: {checkpoint.files}"
    return None


# -- mutations ---------------------------------------------------------------------------------------------------------


def _split(path: Path) -> tuple[bytes, bytes]:
    """Header text without its padding, and data."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8].ljust(8, b"\0"))
    return content[8 : 8 + min(length, len(content))].rstrip(b" "), content[8 + min(length, len(content)) :]


def _join(path: Path, text: bytes, data: bytes, length: int | None = None) -> None:
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length % (1 << 64)) + text + data)


def _flipped(rng: Rng, text: bytes) -> bytes:
    content = bytearray(text or b"{")
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(content))
        content[at : at + rng.randint(0, 1)] = rng.choice(PIECES)
        content = content or bytearray(b"{")
    return bytes(content)


def _change_bytes(rng: Rng, path: Path) -> None:
    text, data = _split(path)
    _join(path, _flipped(rng, text), data)


def _change_a_bit(rng: Rng, path: Path) -> None:
    content = bytearray(path.read_bytes() or b"\0")
    content[rng.randrange(min(len(content), rng.choice([8, 400, len(content)])))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _change_length(rng: Rng, path: Path) -> None:
    text, data = _split(path)
    _join(
        path,
        text,
        data,
        rng.choice([0, 1, 2, len(text) - 1, len(text) + 1, len(text) + len(data), 10**8, 10**8 + 1, 1 << 63, -1]),
    )


def _change_end(rng: Rng, path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(rng.choice([content[: rng.randrange(len(content) + 1)], content[:-1], content + b"\0", content + content]))


def _change_value(rng: Rng, path: Path) -> None:
    """Any value of the JSON becomes another one, goes, or moves under another name."""
    text, data = _split(path)
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return _change_bytes(rng, path)
    place, key = _place(rng, table)
    if place is not None:
        rng.choice([_replace, _remove, _rename])(rng, place, key)
    with contextlib.suppress(ValueError):
        _join(path, json.dumps(table, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass"), data)


def _place(rng: Rng, value: Any) -> tuple[Any, Any]:
    """A container within the value, and a key of it."""
    found: tuple[Any, Any] = (None, None)
    while isinstance(value, (dict, list)) and value:
        key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        found = (value, key)
        value = value[key]
        if rng.random() < 0.2:
            break
    return found


def _replace(rng: Rng, place: Any, key: Any) -> None:
    old = place[key]
    near = [old - 1, old + 1, old * 2] if type(old) is int else []
    place[key] = rng.choice([*near, *near, *ODD])


def _remove(rng: Rng, place: Any, key: Any) -> None:
    del place[key]


def _rename(rng: Rng, place: Any, key: Any) -> None:
    if isinstance(place, dict):
        place[rng.choice(["__metadata__", "dtype", "shape", "more", *NAMES, *place])] = place.pop(key)
    else:
        place.insert(0, place[key])


def _repeat_name(rng: Rng, path: Path) -> None:
    """The same name twice in one object, which JSON's readers accept."""
    text, data = _split(path)
    cut = text.find(b",") if rng.random() < 0.5 else text.rfind(b"}")
    part = text[1:cut] if cut > 1 else b'"w":1'
    _join(path, text[:1] + part + b"," + text[1:], data)


def _nest(rng: Rng, path: Path) -> None:
    text, data = _split(path)
    depth = rng.choice([10, 900, 100_000])
    at = text.find(rng.choice([b"[", b"{", b":"])) + 1
    _join(path, text[:at] + rng.choice([b"[", b'{"a":']) * depth + text[at:], data)


MUTATIONS: tuple[Callable[[Rng, Path], None], ...] = (
    _change_bytes, _change_a_bit, _change_length, _change_end, _change_value, _change_value, _change_value, _repeat_name, _nest,
)  # fmt: skip
