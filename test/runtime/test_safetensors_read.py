"""Reading checkpoints: the safetensors package as oracle, and one malformed file per message."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from itertools import accumulate
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

from relaxir import RelaxError
from relaxir.weights import ArraySpec, Checkpoint, write_safetensors
from relaxir.weights.opening import decoded, open_tensors
from support.hand_compiled import doubling

F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
EMPTY = b'{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'


def file_of(path: Path, header: object, data: bytes = b"", length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def test_reads_what_the_safetensors_package_writes(tmp_path: Path) -> None:
    arrays = {
        "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
        "half": np.arange(3, dtype=np.float16),
        "mask": np.array([True, False, True]),
        "scalar": np.array(7, np.int64),
        "empty": np.zeros((0, 5), np.uint8),
        "odd": np.arange(3, dtype=np.int8),
    }
    save_file(arrays, tmp_path / "a.safetensors", {"who": "oracle"})
    checkpoint = Checkpoint(tmp_path / "a.safetensors")
    assert set(checkpoint) == set(arrays)
    assert checkpoint.metadata == {"who": "oracle"}
    for name, array in arrays.items():
        got = checkpoint.get(name)
        assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes())
        assert not got.flags.writeable


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.bfloat16, ml_dtypes.bfloat16),
        (torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
        (torch.float8_e5m2, ml_dtypes.float8_e5m2),
        (torch.bool, np.bool_),
        (torch.float64, np.float64),
        (torch.uint16, np.uint16),
    ],
)
def test_reads_every_dtype_torch_writes(tmp_path: Path, dtype: torch.dtype, expected: type) -> None:
    save_torch({"w": torch.tensor([0, 1, 2, 3]).to(dtype)}, tmp_path / "a.safetensors")
    got = Checkpoint(tmp_path / "a.safetensors").get("w")
    assert got.dtype == np.dtype(expected)
    assert got.astype(np.float64).tolist() == torch.tensor([0, 1, 2, 3]).to(dtype).to(torch.float64).tolist()


def test_released_pages_can_be_read_again(tmp_path: Path) -> None:
    array = np.arange(100_000, dtype=np.float32)
    write_safetensors(tmp_path / "a.safetensors", {"small": array[:3], "big": array, "empty": array[:0]})
    checkpoint = Checkpoint(tmp_path / "a.safetensors")
    view = checkpoint.get("big")
    for name in checkpoint:
        checkpoint.prefetch(name)
        checkpoint.release(name)
    assert np.array_equal(view, array)
    assert np.array_equal(checkpoint.get("small"), array[:3])


def test_views_outlive_the_checkpoint(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "a.safetensors", {"w": np.arange(4.0)})
    view = Checkpoint(tmp_path / "a.safetensors").get("w")
    os.unlink(tmp_path / "a.safetensors")
    assert view.tolist() == [0, 1, 2, 3]


def test_unknown_name_suggests_the_nearest(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "a.safetensors", {"layer.0.weight": np.zeros(1)})
    with pytest.raises(
        RelaxError, match=r"expected a tensor of this checkpoint, got 'layer.0.wieght', did you mean 'layer.0.weight'"
    ):
        Checkpoint(tmp_path / "a.safetensors").get("layer.0.wieght")


@pytest.mark.parametrize("dtype", ["F4", "C128", "F99", "I4"])
def test_a_dtype_numpy_lacks_is_refused_only_when_read(tmp_path: Path, dtype: str) -> None:
    """Also one that nobody knows."""
    header = {"q": {"dtype": dtype, "shape": [4], "data_offsets": [0, 2]}, "w": {**F32, "data_offsets": [2, 10]}}
    checkpoint = Checkpoint(file_of(tmp_path / "a.safetensors", header, b"\0" * 10))
    assert checkpoint.spec("w") == ArraySpec(np.dtype(np.float32), (2,))
    with pytest.raises(RelaxError, match="tensor 'q': expected a dtype that NumPy has, got " + dtype):
        checkpoint.get("q")


def test_other_tensors_of_a_file_with_an_unknown_dtype(tmp_path: Path) -> None:
    other = {"dtype": "C128", "shape": [1], "data_offsets": [32, 48]}
    header = {"w0": {**F32, "shape": [8], "data_offsets": [0, 32]}, "q": other}
    path = file_of(tmp_path / "a.safetensors", header, b"\0" * 48)
    assert doubling(1, 8).prepare(path).report.extra_weights == ("q",)
    with pytest.raises(RelaxError, match="expected a dtype that NumPy has, got C128"):
        doubling(1, 8).prepare(path, rename={"^w0$": "x", "^q$": "w0"})


MALFORMED = {
    "no prefix": (b"abc", "expected a safetensors file of at least 8 bytes, got 3"),
    "empty file": (b"", "expected a safetensors file of at least 8 bytes, got 0"),
    "pickle magic": (
        b"PK\x03\x04" + b"\0" * 60,
        "expected a safetensors file, got an archive, as torch.save writes it",
    ),
    "pointer": (
        b"version https://git-lfs",
        "expected a safetensors file, got a pointer of Git LFS: 'git lfs pull' fetches what",
    ),
    "page": (b"<!DOCTYPE html>", "expected a safetensors file, got a web page"),
    "huge header": (b"\xff" * 16, "expected a safetensors header of at most 100000000 bytes, got 18446744073709551615"),
    "half of all numbers": (struct.pack("<Q", 1 << 63), "header of at most 100000000 bytes, got 9223372036854775808"),
    "no header": (bytes(8), "expected a safetensors header that starts with '{', got b''"),
    "beyond the file": (struct.pack("<Q", 3) + b"{}", r"header of 3 bytes, got a file of 10 bytes \(truncated\)"),
    "truncated header": (struct.pack("<Q", 100) + b"{}", r"header of 100 bytes, got a file of 10 bytes \(truncated\)"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_file(tmp_path: Path, case: str) -> None:
    content, message = MALFORMED[case]
    (tmp_path / "bad.safetensors").write_bytes(content)
    with pytest.raises(RelaxError, match=message) as caught:
        Checkpoint(tmp_path / "bad.safetensors")
    assert "bad.safetensors" in str(caught.value)


HEADERS = {
    "no object": (b"[]", 0, "expected a safetensors header that starts with '{', got"),
    "no JSON": (b"{x}", 0, "expected a safetensors header in JSON"),
    "not UTF-8": (b'{"\xff": 1}', 0, "expected a safetensors header in JSON"),
    "too deep": (b'{"a":' + b"[" * 100_000, 0, "got too deep a nesting"),
    "constant": (b'{"a": NaN}', 0, "the constant NaN"),
    "huge number": (b'{"a": ' + b"9" * 10_000 + b"}", 0, "expected a safetensors header in JSON"),
    "duplicate name": (b'{"w":%s,"\\u0077":%s}' % (EMPTY, EMPTY), 0, "the name 'w' twice"),
    "duplicate metadata": (b'{"__metadata__":{},"__metadata__":{}}', 0, "the name '__metadata__' twice"),
    "duplicate field": (b'{"w":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', 8, "the name 'dtype' twice"),
    "number as a name": (b'{1:{}}', 0, "in JSON, got Expecting property name"),
    "no colon": (b'{"w"{}}', 0, "in JSON, got Expecting ':' delimiter"),
    "no comma": (b'{"w":%s "v":%s}' % (EMPTY, EMPTY), 0, "in JSON, got Expecting ',' delimiter"),
    "comma at the end": (b'{"w":%s,}' % EMPTY, 0, "expected a safetensors header in JSON"),
    "open end": (b'{"w":%s' % EMPTY, 0, "in JSON, got Expecting ',' delimiter"),
    "two objects": (b"{} {}", 0, "in JSON, got Extra data"),
    "surrogate": (b'{"\\ud800": {}}', 0, "which is not Unicode text"),
    "metadata": ({"__metadata__": {"a": 1}}, 0, "expected __metadata__ to map names to strings, got {'a': 1}"),
    "metadata list": ({"__metadata__": []}, 0, "expected __metadata__ to map names to strings"),
    "no entry": ({"w": 1}, 8, "tensor 'w': expected an object with dtype, shape and data_offsets, got 1"),
    "no dtype": ({"w": {"shape": [2], "data_offsets": [0, 8]}}, 8, "tensor 'w': expected a dtype out of .*, got None"),
    "bad dtype": ({"w": {**F32, "dtype": "f32"}}, 8, "tensor 'w': expected a dtype out of .*, got 'f32'"),
    "long dtype": ({"w": {**F32, "dtype": "F" * 33}}, 8, "tensor 'w': expected a dtype out of .*, got 'FFF"),
    "rank of another dtype": ({"w": {**F32, "dtype": "F99", "shape": [1] * 65}}, 8, "expected at most 64 dimensions"),
    "no shape": ({"w": {"dtype": "F32", "data_offsets": [0, 8]}}, 8, "tensor 'w': shape: expected a list of sizes, got None"),
    "negative": ({"w": {**F32, "shape": [-2]}}, 8, "tensor 'w': shape: expected a list of sizes, got"),
    "bool size": ({"w": {**F32, "shape": [True, 2]}}, 8, "tensor 'w': shape: expected a list of sizes"),
    "float size": ({"w": {**F32, "shape": [2.0]}}, 8, "tensor 'w': shape: expected a list of sizes"),
    "huge size": ({"w": {**F32, "shape": [1 << 64]}}, 8, "tensor 'w': shape: expected a list of sizes"),
    "huge product": ({"w": {**F32, "shape": [1 << 62, 1 << 62]}}, 8, "tensor 'w': expected at most 64 dimensions and"),
    "huge empty": ({"w": {**F32, "shape": [0, 1 << 62, 4], "data_offsets": [0, 0]}}, 0, "expected at most 64 dimensions and"),
    "rank": ({"w": {**F32, "shape": [1] * 64 + [2]}}, 8, "expected at most 64 dimensions"),
    "three offsets": ({"w": {**F32, "data_offsets": [0, 8, 8]}}, 8, "tensor 'w': expected data_offsets .* begin <= end"),
    "reversed": ({"w": {**F32, "data_offsets": [8, 0]}}, 8, r"tensor 'w': expected data_offsets \[begin, end\] with begin"),
    "size": ({"w": {**F32, "shape": [3]}}, 8, r"tensor 'w': expected 12 bytes for F32\[3\], got data_offsets that span 8"),
    "half a byte": ({"w": {"dtype": "F4", "shape": [3], "data_offsets": [0, 1]}}, 1, "expected 1.5 bytes"),
    "overlap": ({"a": F32, "b": {**F32, "data_offsets": [4, 12]}}, 12, r"offset 8, right after 'a', got 4 \(overlap"),
    "hole": ({"a": F32, "b": {**F32, "data_offsets": [12, 20]}}, 20, r"offset 8, right after 'a', got 12 \(hole"),
    "hole at start": ({"a": {**F32, "data_offsets": [4, 12]}}, 12, r"right after the header, got 4 \(hole\)"),
    "same place": ({"a": F32, "b": F32}, 8, r"\(overlap\)"),
    "truncated data": ({"w": F32}, 7, r"tensor 'w': expected a file of at least \d+ bytes, got \d+ \(truncated\)"),
    "trailing data": ({"w": F32}, 9, r"expected a file of \d+ bytes, got \d+ \(data that belongs to no tensor\)"),
}  # fmt: skip


@pytest.mark.parametrize("case", HEADERS)
def test_malformed_header(tmp_path: Path, case: str) -> None:
    header, size, message = HEADERS[case]
    path = file_of(tmp_path / "bad.safetensors", header, b"\0" * size)
    with pytest.raises(RelaxError, match=message) as caught:
        Checkpoint(path)
    assert "bad.safetensors" in str(caught.value)


def test_the_oracle_refuses_the_same_headers(tmp_path: Path) -> None:
    """The few that it accepts are told here, so that a difference is a decision."""
    accepted: set[str] = set()
    for case, (header, size, _) in HEADERS.items():
        path = file_of(tmp_path / "bad.safetensors", header, b"\0" * size)
        try:
            with safe_open(path, "np"):
                accepted.add(case)
        except Exception:  # its errors have no common base
            continue
    assert accepted <= {"rank", "huge empty", "duplicate name"}


MANY = """
import resource, sys
from relaxir.weights import Checkpoint
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
before = resident()
checkpoint = Checkpoint(sys.argv[1])
print(resident() - before, len(checkpoint), *checkpoint.get("layers.99998.weight"), checkpoint.spec("layers.7.weight"))
"""


def test_many_tensors_take_little_memory(tmp_path: Path) -> None:
    """100,000 of them, a header of 7 MB, last one first."""
    count, path = 100_000, tmp_path / "a.safetensors"
    ends = [0, *accumulate(2 * (i % 3) for i in range(count))]
    text = ",".join(
        f'"layers.{i}.weight":{{"dtype":"I16","shape":[{i % 3}],"data_offsets":[{ends[i]},{ends[i + 1]}]}}'
        for i in reversed(range(count))
    )
    file_of(path, f"{{{text}}}".encode(), b"\1\2" * (ends[-1] // 2))
    done = subprocess.run([sys.executable, "-c", MANY, path], capture_output=True, check=True, text=True).stdout
    grown, *found = done.split()
    assert found == [str(count), "513", "513", "i16[1]"]
    assert int(grown) < 30 << 20


def test_every_cut_is_refused_by_name(tmp_path: Path) -> None:
    """In any field: length, header, padding, data; a tensor is named where the header is whole."""
    write_safetensors(tmp_path / "a.safetensors", {"w": np.arange(3, dtype=np.int8), "v": np.zeros(2, np.int16)})
    content = (tmp_path / "a.safetensors").read_bytes()
    for kept in [*range(200), *range(4000, len(content))]:
        (tmp_path / "cut.safetensors").write_bytes(content[:kept])
        with pytest.raises(RelaxError, match=r"cut.safetensors': " + ("tensor '[wv]'" if kept >= 4096 else "")):
            Checkpoint(tmp_path / "cut.safetensors")


@pytest.mark.parametrize("name", ["a\nb", "a\0b", "\x1b[31m", "\u202eabc", "x" * 10_000_000], ids=lambda n: repr(n[:9]))
def test_odd_names(tmp_path: Path, name: str) -> None:
    """They are read as any other, and do no harm to what an error looks like."""
    path = file_of(tmp_path / "a.safetensors", {name: F32}, bytes(8))
    assert Checkpoint(path).get(name).tolist() == [0, 0]
    for tensor, size in (({**F32, "shape": [3]}, 8), (F32, 7), ({**F32, "dtype": "f32"}, 8), (1, 0)):
        with pytest.raises(RelaxError) as caught:
            Checkpoint(file_of(tmp_path / "a.safetensors", {name: tensor}, bytes(size)))
        text = str(caught.value)
        assert f"tensor {repr(name)[:60]}" in text
        assert text.isprintable()
        assert len(text) <= 4000


def test_missing_file_folder_and_kind(tmp_path: Path) -> None:
    with pytest.raises(RelaxError, match=r"cannot read '.*none.safetensors': No such file"):
        Checkpoint(tmp_path / "none.safetensors")
    with pytest.raises(
        RelaxError, match=r"expected model.safetensors or model.safetensors.index.json in the folder, got no such"
    ):
        Checkpoint(tmp_path)
    (tmp_path / "pytorch_model.bin").touch()
    with pytest.raises(RelaxError, match=r"in the folder, got pytorch_model.bin"):
        Checkpoint(tmp_path)
    with pytest.raises(RelaxError, match="cannot read '/dev/null': expected a regular file, got a character device"):
        Checkpoint("/dev/null")
    with pytest.raises(RelaxError, match=r"cannot read .*: embedded null byte"):
        Checkpoint("a\0b")


def shards(folder: Path, weight_map: dict[str, str] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model-1.safetensors", {"a": np.arange(3.0)}, {"format": "pt", "rank": "0"})
    write_safetensors(folder / "model-2.safetensors", {"b": np.arange(4.0), "c": np.arange(2)}, {"format": "pt", "rank": "1"})
    found = {"a": "model-1.safetensors", "b": "model-2.safetensors", "c": "model-2.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map or found}))
    return folder


def test_sharded_checkpoint(tmp_path: Path) -> None:
    for path in (shards(tmp_path), tmp_path / "model.safetensors.index.json"):
        checkpoint = Checkpoint(path)
        assert list(checkpoint) == ["a", "b", "c"]
        assert len(checkpoint) == 3
        assert checkpoint.get("b").tolist() == [0, 1, 2, 3]
        assert checkpoint.metadata == {"format": "pt"}
        assert checkpoint.nbytes == 24 + 32 + 16
        index = "model.safetensors.index.json"
        assert [os.path.basename(f) for f in checkpoint.files] == ["model-1.safetensors", "model-2.safetensors", index]


def test_single_file_goes_before_the_index(tmp_path: Path) -> None:
    shards(tmp_path)
    write_safetensors(tmp_path / "model.safetensors", {"whole": np.zeros(1)})
    assert list(Checkpoint(tmp_path)) == ["whole"]


def test_identity_follows_the_files(tmp_path: Path) -> None:
    before = Checkpoint(shards(tmp_path)).identity
    assert Checkpoint(tmp_path).identity == before
    write_safetensors(tmp_path / "model-1.safetensors", {"a": np.ones(3)}, {"format": "pt", "rank": "0"})
    assert Checkpoint(tmp_path).identity != before


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/passwd", "a/../../x", "..\\x", "", "\0"])
def test_index_names_stay_inside_the_folder(tmp_path: Path, name: str) -> None:
    write_safetensors(tmp_path / "x.safetensors", {"a": np.zeros(1)})
    with pytest.raises(RelaxError, match="expected the name of a file inside"):
        Checkpoint(shards(tmp_path / "model", {"a": name}))


def test_links_that_lead_outside_are_refused(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "secret.safetensors", {"a": np.zeros(1)})
    folder = shards(tmp_path / "model", {"a": "link.safetensors"})
    (folder / "link.safetensors").symlink_to("../secret.safetensors")
    with pytest.raises(RelaxError, match=r"expected a file inside .*, got 'link.safetensors', which leads to .*secret"):
        Checkpoint(folder)
    (folder / "link.safetensors").unlink()
    (folder / "link.safetensors").symlink_to("model-1.safetensors")
    assert Checkpoint(folder).get("a").tolist() == [0, 1, 2]


def test_hugging_face_cache_layout(tmp_path: Path) -> None:
    """There every file of a snapshot is a link to a blob of the same repository."""
    blobs, snapshot = tmp_path / "models--x" / "blobs", tmp_path / "models--x" / "snapshots" / "abc"
    shards(blobs)
    snapshot.mkdir(parents=True)
    for name in ("model-1.safetensors", "model-2.safetensors", "model.safetensors.index.json"):
        (snapshot / name).symlink_to(f"../../blobs/{name}")
    assert Checkpoint(snapshot).get("a").tolist() == [0, 1, 2]
    (snapshot / "model-1.safetensors").unlink()
    write_safetensors(tmp_path / "secret.safetensors", {"a": np.zeros(1)})
    (snapshot / "model-1.safetensors").symlink_to(tmp_path / "secret.safetensors")
    with pytest.raises(RelaxError, match="which leads to"):
        Checkpoint(snapshot)


INDEXES = {
    "no JSON": ("{", "expected an index in JSON"),
    "not UTF-8": (b"\xff\xfe\xff", "expected an index in JSON"),
    "too deep": ("[" * 100_000, "expected an index in JSON, got RecursionError"),
    "no object": ("[]", "expected a weight_map from tensor names to file names, got none"),
    "no map": ("{}", "expected a weight_map from tensor names to file names, got none"),
    "bad map": ('{"weight_map": {"a": 1}}', "expected a weight_map from tensor names to file names, got none"),
    "twice": ('{"weight_map": {"a": "x", "a": "y"}}', "a name twice"),
    "missing shard": ('{"weight_map": {"a": "gone"}}', "expected the shard 'gone' beside it, got no such file"),
    "missing tensor": ('{"weight_map": {"z": "model-1.safetensors"}}', "tensor 'z': expected it in 'model-1.safetensors', got"),
}  # fmt: skip


@pytest.mark.parametrize("case", INDEXES)
def test_malformed_index(tmp_path: Path, case: str) -> None:
    content, message = INDEXES[case]
    index = shards(tmp_path) / "model.safetensors.index.json"
    index.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(RelaxError, match=message):
        Checkpoint(tmp_path)


def test_truncated_shard_names_the_shard(tmp_path: Path) -> None:
    shard = shards(tmp_path) / "model-2.safetensors"
    os.truncate(shard, shard.stat().st_size - 1)
    with pytest.raises(RelaxError, match=r"model-2.safetensors': tensor 'c': .*\(truncated\)|model-2.*tensor 'b'"):
        Checkpoint(tmp_path)


def test_config_beside_a_checkpoint(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", {"w": np.zeros(2)})
    write_safetensors(tmp_path / "other.safetensors", {"w": np.zeros(2)})
    assert Checkpoint(tmp_path).config == {}
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    for path in (tmp_path, tmp_path / "model.safetensors"):
        assert Checkpoint(path).config == {"model_type": "llama"}
    assert Checkpoint(tmp_path / "other.safetensors").config == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "config.json': expected a configuration as a JSON object, got list"),
        ("{", "config.json': expected a configuration in JSON, got JSONDecodeError: .*"),
        ('{"a": 1, "a": 2}', "config.json': expected a configuration in JSON, got ValueError: a name twice"),
    ],
)
def test_malformed_config(tmp_path: Path, text: str, message: str) -> None:
    write_safetensors(tmp_path / "model.safetensors", {"w": np.zeros(2)})
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(RelaxError, match=message):
        _ = Checkpoint(tmp_path).config


def test_an_unknown_encoding_is_refused_by_name(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", {"w": np.zeros(2)})
    (tmp_path / "config.json").write_text('{"quantization_config": {"quant_method": "guesswork"}}')
    source = open_tensors(tmp_path)
    assert source.config["quantization_config"] == {"quant_method": "guesswork"}
    with pytest.raises(RelaxError, match=r"quantization_config.quant_method: expected one out of .*, got 'guesswork'$"):
        decoded(source)


def test_reading_what_was_cut_off_is_an_error(tmp_path: Path) -> None:
    """A view would end the process there (SIGBUS)."""
    write_safetensors(tmp_path / "a", {"w": np.arange(4096, dtype=np.float32), "empty": np.zeros((0, 3))})
    checkpoint = Checkpoint(tmp_path / "a")
    array = checkpoint.read("w")
    assert np.array_equal(array, checkpoint.get("w"))
    assert array.flags.writeable
    assert checkpoint.read("empty").shape == (0, 3)
    os.truncate(tmp_path / "a", 8192)
    message = "a': tensor 'w': expected a file that stays as it is while it is read, got one that was cut off"
    with pytest.raises(RelaxError, match=message):
        checkpoint.read("w")
    (tmp_path / "a").rename(tmp_path / "b")  # where nothing is left to compare with
    with pytest.raises(RelaxError, match=message):
        checkpoint.read("w")
