"""Within a memory limit, steps run on one piece of their weights after another: to the same bytes, and to no more memory."""

from __future__ import annotations

import copy
import functools
import json
import os
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gguf import GGMLQuantizationType

import relaxir as rx
from relaxir import RelaxError
from relaxir.lowering import split_steps
from relaxir.lowering.manifest import Manifest
from relaxir.runtime import memory_plan
from relaxir.weights import Checkpoint, write_safetensors
from relaxir.weights.formats import encoded
from relaxir.weights.formats.gguf_file import BLOCKS
from relaxir.weights.tensor_writer import TensorWriter
from support import encoded_weights, gguf_files


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of tests are some kilobytes."""
    monkeypatch.setattr(split_steps, "PIECE_BYTES", 16 << 10)
    monkeypatch.setattr(split_steps, "BLOCK_BYTES", 4 << 10)
    monkeypatch.setattr(memory_plan, "_COPY_BYTES", 4 << 10)


def layer(k: int, n: int, transposed: bool, dtype: str = "f32") -> rx.Module:
    """``x @ w`` with a bias and a table that is only read."""
    b = rx.Builder()
    with b.function("main"):
        x, ids = b.input("x", ("m", k), dtype), b.input("ids", ("m",), "i64")
        w = b.weight("w", (n, k) if transposed else (k, n), dtype)
        table = b.weight("table", (n, k), dtype)
        y = b.matmul(b.add(x, b.take(table, ids, axis=0)), b.permute_dims(w, axes=[1, 0]) if transposed else w)
        b.output(y)
    return b.build()


def values(executable: rx.Executable) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(5)
    return {n: rng.standard_normal(w.array.shape).astype(w.array.dtype) for n, w in executable.manifest.raw_weights.items()}


def same(one: Path, other: Path) -> bool:
    a, b = Checkpoint(one), Checkpoint(other)
    return list(a) == list(b) and all(a.get(n).tobytes() == b.get(n).tobytes() for n in a) and a.checksums() == b.checksums()


CASES: list[tuple[dict[str, Any], int, int, bool, str]] = [
    ({}, 64, 200, True, "f32"),
    ({}, 96, 160, False, "f32"),
    ({}, 96, 161, True, "bf16"),
    ({"weights": "bf16"}, 96, 130, True, "f32"),
    ({"weights": "int8"}, 64, 200, True, "f32"),
    ({"weights": "int4"}, 96, 200, False, "f32"),
    ({"weights": "int4"}, 64, 223, True, "f32"),
    ({"weights": "int8", "activations": "int8"}, 64, 200, True, "f32"),
    ({"weights": "int4", "activations": "int8"}, 64, 192, True, "f32"),
]


@pytest.mark.parametrize(("options", "k", "n", "transposed", "dtype"), CASES)
def test_pieces_make_the_bytes_that_the_whole_makes(
    tmp_path: Path, options: dict[str, Any], k: int, n: int, transposed: bool, dtype: str
) -> None:
    executable = rx.compile(layer(k, n, transposed, dtype), **options)
    raw, whole, pieces = (tmp_path / name for name in ("raw.safetensors", "whole.safetensors", "pieces.safetensors"))
    write_safetensors(raw, values(executable))
    peak = executable.prepare(raw, whole).peak_bytes
    assert any(s.parts is not None for s in executable.manifest.steps)
    low = least(executable, raw, pieces)
    for limit in (low, 2 * low):
        report = executable.prepare(raw, pieces, memory_limit=limit)
        assert same(whole, pieces)
        assert report.peak_bytes <= report.predicted_peak_bytes <= limit
        executable.verify(pieces)
        assert low < peak / 1.5
        assert transposed or limit == low or report.peak_bytes > low  # pieces across rows: several are read together


@pytest.mark.parametrize(
    ("options", "n", "dtype"),
    [
        ({"weights": "int4"}, 223, "f32"),
        ({"weights": "int8"}, 200, "bf16"),
        ({"weights": "int4", "activations": "int8"}, 192, "f32"),
    ],
)
def test_blocks_make_the_bytes_that_the_whole_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], n: int, dtype: str
) -> None:
    """They are in a cache, so that preparing takes less of both time and memory; what is made, and its name, stay."""
    module = layer(64, n, True, dtype)
    blocks = rx.compile(module, **options)
    monkeypatch.setattr(split_steps, "BLOCK_BYTES", 1 << 30)
    whole = rx.compile(module, **options)
    raw = values(blocks)
    for executable, name in ((blocks, "blocks"), (whole, "whole")):
        executable.prepare(raw, tmp_path / name)
    assert same(tmp_path / "blocks", tmp_path / "whole")
    parts = [[s.parts and s.parts.blocks for s in e.manifest.steps if s.symbol] for e in (blocks, whole)]
    assert parts[0][0] is not None
    assert parts[1] == [None]
    assert blocks.manifest.peak_bytes < whole.manifest.peak_bytes
    assert blocks.fingerprint == whole.fingerprint


@pytest.mark.parametrize(
    ("options", "n", "dtype", "stored"),
    [({}, 223, "f32", "f32"), ({}, 200, "bf16", "bf16"), ({"weights": "int4"}, 223, "f32", "bf16")],
)
def test_blocks_of_a_file_are_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], n: int, dtype: str, stored: str
) -> None:
    """Each call reads its range and is the only one that reads it; so the weight is never in memory as a whole."""
    executable = rx.compile(layer(64, n, True, dtype), **options)
    kind = np.float32 if stored == "f32" else ml_dtypes.bfloat16
    raw = {name: array.astype(kind) for name, array in values(executable).items()}
    write_safetensors(tmp_path / "raw", raw)
    pieces: list[tuple[int, int]] = []
    read_part, bytes_reader, row = Checkpoint.read_part, Checkpoint.bytes_reader, 64 * np.dtype(kind).itemsize

    def parts(self: Checkpoint, name: str, ranges: dict[int, list[tuple[int, int]]], place: Any = None) -> Any:
        pieces.extend(ranges[0] if name == "w" else [])
        return read_part(self, name, ranges, place)

    def reader(self: Checkpoint, name: str) -> Any:
        def read(begin: int, memory: memoryview) -> None:
            pieces.extend([(begin // row, (begin + len(memory)) // row)] if name == "w" else [])
            bytes_reader(self, name)(begin, memory)

        return read

    monkeypatch.setattr(Checkpoint, "read_part", parts)
    monkeypatch.setattr(Checkpoint, "bytes_reader", reader)
    mapped = executable.prepare(raw, tmp_path / "mapped")
    assert not pieces
    read = executable.prepare(tmp_path / "raw", tmp_path / "read")
    assert same(tmp_path / "mapped", tmp_path / "read")
    assert len(pieces) > 2
    pieces.sort()
    assert [end for _, end in pieces[:-1]] == [begin for begin, _ in pieces[1:]]
    assert (pieces[0][0], pieces[-1][1]) == (0, n)
    assert read.peak_bytes <= read.predicted_peak_bytes
    monkeypatch.undo()
    limit = least(executable, tmp_path / "raw", tmp_path / "less")
    assert executable.prepare(tmp_path / "raw", tmp_path / "less", memory_limit=limit).peak_bytes <= limit
    assert same(tmp_path / "less", tmp_path / "read")
    assert mapped.predicted_peak_bytes >= limit


def test_an_error_of_one_block_ends_those_of_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = rx.compile(layer(64, 1600, True), weights="int4")
    executable.threads = 3
    raw = values(executable)
    raw["w"][800, 5] = np.nan
    write_safetensors(tmp_path / "raw", raw)
    with pytest.raises(RelaxError, match="weight 'w': expected finite numbers to quantize, got NaN or infinity"):
        executable.prepare(tmp_path / "raw", tmp_path / "out")
    assert not [t for t in threading.enumerate() if t.name.startswith("relaxir-blocks")]


def test_threads_share_blocks_and_make_the_same_bytes(tmp_path: Path) -> None:
    executable = rx.compile(layer(64, 1600, True), weights="int4")
    raw = values(executable)
    write_safetensors(tmp_path / "raw", raw)
    for threads in (1, 3):
        executable.threads = threads
        executable.prepare(tmp_path / "raw", tmp_path / f"file{threads}")
        executable.prepare(raw, tmp_path / f"mapped{threads}")
    assert all(same(tmp_path / "file1", tmp_path / other) for other in ("file3", "mapped1", "mapped3"))


def least(executable: rx.Executable, raw: object, path: Path, **options: Any) -> int:
    """What the error says that would do."""
    with pytest.raises(RelaxError, match=r"a memory limit of (\d+) bytes or more, which preparing '.*' takes, got 1") as e:
        executable.prepare(raw, path, memory_limit=1, **options)
    return int(str(e.value).split("limit of ")[1].split()[0])


@functools.cache
def four_bits() -> rx.Executable:
    return rx.compile(layer(64, 200, True), weights="int4")


def prepared_both_ways(folder: Path, raw: object, **options: Any) -> rx.PrepareReport:
    """Prepares the whole and in pieces, holds the results to each other, and returns the second report."""
    executable = four_bits()
    executable.prepare(raw, folder / "whole.safetensors", **options)
    limit = least(executable, raw, folder / "pieces.safetensors", **options)
    report = executable.prepare(raw, folder / "pieces.safetensors", memory_limit=limit, **options)
    assert same(folder / "whole.safetensors", folder / "pieces.safetensors")
    assert report.peak_bytes <= report.predicted_peak_bytes == limit
    return report


def test_weights_of_another_dtype_are_converted_piece_by_piece(tmp_path: Path) -> None:
    raw = values(four_bits())
    write_safetensors(tmp_path / "raw.safetensors", {n: a.astype(ml_dtypes.bfloat16) for n, a in raw.items()})
    report = prepared_both_ways(tmp_path, tmp_path / "raw.safetensors")
    assert report.notes == ("2 weights widened from bf16 to f32",)


def kept(folder: Path, executable: rx.Executable, raw: object, **options: Any) -> tuple[int, int]:
    """Within any limit the bytes are the same, or the least that does is named; returns that, and what the whole takes."""
    whole, pieces = folder / "whole.safetensors", folder / "pieces.safetensors"
    free = executable.prepare(raw, whole, **options).predicted_peak_bytes
    low = least(executable, raw, pieces, **options)
    with pytest.raises(RelaxError, match=f"a memory limit of {low} bytes or more"):
        executable.prepare(raw, pieces, memory_limit=low - 1, **options)
    for limit in (low, low + low // 5, 2 * low, free):
        report = executable.prepare(raw, pieces, memory_limit=limit, **options)
        made = sorted(folder.glob("whole*"))  # ranks have one each
        assert made
        assert all(same(path, folder / path.name.replace("whole", "pieces")) for path in made)
        assert report.peak_bytes <= report.predicted_peak_bytes <= max(limit, low)
    return low, free


ENCODED: dict[str, tuple[dict[str, Any], Any]] = {
    "gptq": ({"bits": 4, "group_size": 32}, functools.partial(encoded_weights.gptq, act_order=True)),
    "awq": ({"bits": 4, "group_size": 32, "version": "gemm"}, encoded_weights.awq),
    "compressed-tensors": ({}, functools.partial(encoded_weights.compressed, symmetric=False)),
    "fp8": ({"weight_block_size": [16, 16]}, functools.partial(encoded_weights.fp8, block=16)),
    "bitsandbytes": ({"load_in_4bit": True}, encoded_weights.nf4),
}


@pytest.mark.parametrize("weights", [None, "int8"])
@pytest.mark.parametrize("method", [*ENCODED, "Q4_K", "Q8_0"])
def test_encoded_weights_are_decoded_in_pieces(
    tmp_path: Path, method: str, weights: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoded, "_PART", 1 << 10)
    rng, raw = np.random.default_rng(3), tmp_path / "raw"
    raw.mkdir()
    if method in ENCODED:
        config, writer = ENCODED[method]
        tensors = writer(rng, n=208, k=256)[0]
        write_safetensors(raw / "model.safetensors", {f"w{end}": tensor for end, tensor in tensors.items()})
        (raw / "config.json").write_text(json.dumps({"quantization_config": {"quant_method": method, **config}}))
    else:
        rows = gguf_files.blocks(rng, method, 208, 256 // BLOCKS[method].elements, usual=True)
        raw = gguf_files.write(tmp_path / "raw.gguf", {"w.weight": (rows, GGMLQuantizationType[method])})
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", ("m", 256), "f32"), b.weight("w.weight", (208, 256), "f32")
        b.output(b.matmul(x, b.permute_dims(w, axes=[1, 0])))
    low, free = kept(tmp_path, rx.compile(b.build(), weights=weights), raw)
    assert low < free


def test_ranks_of_a_mesh_prepare_their_part_in_pieces(tmp_path: Path) -> None:
    b = rx.Builder()
    with b.function("main"):
        up = b.matmul(b.input("x", ("m", 128), "f32"), b.permute_dims(b.weight("up", (256, 128), "f32"), axes=[1, 0]))
        b.output(b.matmul(b.relu(up), b.permute_dims(b.weight("down", (128, 256), "f32"), axes=[1, 0])))
    executable = rx.compile(b.build(), weights="int4", mesh=rx.Mesh(tp=2))
    rng, raw = np.random.default_rng(5), tmp_path / "raw.safetensors"
    write_safetensors(
        raw, {n: rng.standard_normal(w.whole.array.shape, np.float32) for n, w in executable.manifest.raw_weights.items()}
    )
    for rank in range(2):
        low, free = kept(tmp_path, executable, raw, rank=rank, world=2)
        assert low < free / 2


def test_arrays_in_memory_are_read_in_pieces(tmp_path: Path) -> None:
    prepared_both_ways(tmp_path, values(four_bits()))


def test_files_of_a_size_are_written_in_pieces(tmp_path: Path) -> None:
    raw = values(four_bits())
    write_safetensors(tmp_path / "raw.safetensors", raw)
    prepared_both_ways(tmp_path, tmp_path / "raw.safetensors", shard_size=20_000)


def test_ranks_prepare_in_pieces(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "raw.safetensors", values(four_bits()))
    for rank in range(2):
        limit = least(four_bits(), tmp_path / "raw.safetensors", tmp_path / "pieces.safetensors", rank=rank, world=2)
        for name, options in (("whole", {}), ("pieces", {"memory_limit": limit})):
            four_bits().prepare(
                tmp_path / "raw.safetensors", tmp_path / f"{name}.safetensors", rank=rank, world=2, **options
            )  # fmt: skip
    for number in (1, 2):
        one, other = (tmp_path / f"{name}-0000{number}-of-00002.safetensors" for name in ("whole", "pieces"))
        assert one.read_bytes() == other.read_bytes()


def test_single_weights_are_prepared_again_in_pieces(tmp_path: Path) -> None:
    raw, (whole, pieces) = values(four_bits()), (tmp_path / f"{name}.safetensors" for name in ("whole", "pieces"))
    for path in (whole, pieces):
        four_bits().prepare(raw, path)
    name = max(raw, key=lambda n: raw[n].nbytes)
    changed = {name: raw[name] * np.float32(2)}
    limit = least(four_bits(), changed, pieces, only=[name])
    assert limit < four_bits().manifest.peak_bytes
    four_bits().prepare(changed, whole, only=[name])
    four_bits().prepare(changed, pieces, only=[name], memory_limit=limit)
    assert whole.read_bytes() == pieces.read_bytes()


def test_an_interrupted_preparation_in_pieces_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = four_bits()
    raw, path = tmp_path / "raw.safetensors", tmp_path / "pieces.safetensors"
    write_safetensors(raw, values(executable))
    executable.prepare(raw, tmp_path / "whole.safetensors")
    limit, put, left = least(executable, raw, path), TensorWriter.put, iter(range(10))

    def failing(self: TensorWriter, array: np.ndarray[Any, Any]) -> None:
        if next(left, None) is None:
            raise OSError(5, "cannot write")
        put(self, array)

    monkeypatch.setattr(TensorWriter, "put", failing)
    with pytest.raises(OSError, match="cannot write"):
        executable.prepare(raw, path, memory_limit=limit)
    monkeypatch.setattr(TensorWriter, "put", put)
    report = executable.prepare(raw, path, memory_limit=limit)
    assert (report.steps_run, report.steps_skipped) == (2, 0)  # the first 10 pieces are of a weight that has 13
    assert same(tmp_path / "whole.safetensors", path)


def test_threads_run_steps_whole_where_the_limit_lets_one_and_in_pieces_below(tmp_path: Path) -> None:
    executable = four_bits()
    raw = values(executable)
    low = least(executable, raw, tmp_path / "out.safetensors")
    whole = executable.prepare(raw, tmp_path / "whole.safetensors").predicted_peak_bytes
    for limit, predicted in ((whole, whole), (2 * whole - 1, whole), (2 * whole, 2 * whole), (2 * low, 2 * low)):
        report = executable.prepare(raw, tmp_path / "out.safetensors", 2, memory_limit=limit)
        assert report.peak_bytes <= report.predicted_peak_bytes == predicted
        assert same(tmp_path / "whole.safetensors", tmp_path / "out.safetensors")


def test_a_step_whose_ops_want_all_of_a_weight_is_not_split() -> None:
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", ("m", 64), "f32"), b.weight("w", (200, 64), "f32")
        b.output(b.add(x, b.sum(b.cumsum(w, axis=0), axis=[0])))
    assert [s.parts for s in rx.compile(b.build()).manifest.steps] == [None]


@pytest.mark.parametrize(
    "ranges", [{0: [(1, 3), (4, 5)]}, {1: [(0, 2)]}, {0: [(2, 5)], 2: [(1, 4), (5, 6)]}, {2: [(0, 6)]}, {}]
)
def test_parts_of_a_tensor_along_several_axes(tmp_path: Path, ranges: dict[int, list[tuple[int, int]]]) -> None:
    array = np.arange(5 * 4 * 6, dtype=np.int16).reshape(5, 4, 6)
    write_safetensors(tmp_path / "a.safetensors", {"a": array})
    expected = array
    for axis, pieces in ranges.items():
        expected = np.take(expected, [i for b, e in pieces for i in range(b, e)], axis)
    np.testing.assert_array_equal(Checkpoint(tmp_path / "a.safetensors").read_part("a", ranges), expected, strict=True)


@pytest.mark.parametrize(("axis", "ranges"), [(1, [(1, 3), (3, 4)]), (2, [(0, 2), (2, 4), (4, 5)]), (0, [(2, 3), (3, 5)])])
def test_neighbouring_pieces_of_a_tensor_are_read_together(tmp_path: Path, axis: int, ranges: list[tuple[int, int]]) -> None:
    path, array = tmp_path / "a.safetensors", np.arange(5 * 4 * 6, dtype=np.int16).reshape(5, 4, 6)
    write_safetensors(path, {"a": array})
    expected = [np.take(array, range(b, e), axis).reshape(-1) for b, e in ranges]
    checkpoint, place = Checkpoint(path), np.empty(sum(e.size for e in expected), np.int16)
    checkpoint.read_pieces("a", axis, ranges, place)
    np.testing.assert_array_equal(place, np.concatenate(expected))
    os.truncate(path, path.stat().st_size - 200)
    with pytest.raises(RelaxError, match="tensor 'a': expected a file that stays as it is while it is read, got one that was"):
        checkpoint.read_pieces("a", axis, ranges, place)
    with pytest.raises(RelaxError, match="tensor 'a': expected a file that stays as it is while it is read, got one that was"):
        checkpoint.read_part("a", {axis: ranges[-1:]})


def test_more_pieces_than_one_call_of_the_system_fills(tmp_path: Path) -> None:
    array = np.arange(3 * 2500, dtype=np.int16).reshape(3, 2500)
    write_safetensors(tmp_path / "a.safetensors", {"a": array})
    place = np.empty(array.size, np.int16)
    Checkpoint(tmp_path / "a.safetensors").read_pieces("a", 1, [(i, i + 1) for i in range(2500)], place)
    np.testing.assert_array_equal(place, array.T.reshape(-1))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("gets", [[0]], r"parts.gets: expected an axis and a size each, or neither, got \[0\]"),
        ("gets", [[0, 0]], r"parts.gets: expected an axis and a size each, or neither, got \[0, 0\]"),
        ("gets", [[3, 32]], r"parts.gets: expected 7 pieces of each weight, got \[\(3, 32\)\]"),
        ("count", 8, r"parts.gets: expected 8 pieces of each weight"),
        ("sets", [[0, 1], [2, 5]], r"parts.sets: expected pieces along the first dimension that is not 1"),
        ("last", None, r"parts.last: expected a function for a last piece that is smaller alone, got None"),
        ("blocks", 0, r"parts.blocks: expected 1 or more where the step has the symbol of its blocks, got 0"),
        ("blocks", None, r"parts.blocks: expected 1 or more where the step has the symbol of its blocks, got None"),
        ("gets", [[1, 10]], r"parts.gets: expected blocks along the first dimension that is not 1, got \[\(1, 10\)\]"),
    ],
)
def test_pieces_of_a_manifest_that_do_not_fit(field: str, value: Any, message: str) -> None:
    data = copy.deepcopy(dict(four_bits().manifest.data))
    parts = next(s["parts"] for s in data["steps"] if "parts" in s)
    parts.pop(field) if value is None else parts.update({field: value})
    with pytest.raises(RelaxError, match=message):
        Manifest.of(data)
