"""Folders as people have them, whatever their files are called: what is read, or what would do."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

import relaxir as rx
from relaxir import RelaxError
from relaxir.weights import Checkpoint, write_safetensors
from relaxir.weights.opening import decoded, open_tensors
from support import gguf_files
from support.gguf_files import blocks
from support.hand_compiled import doubling

RAW = {f"w{i}": np.full(8, i, np.float32) for i in range(4)}
PARTS = ({n: RAW[n] for n in ("w0", "w1")}, {n: RAW[n] for n in ("w2", "w3")})


def filled(folder: Path, files: Mapping[str, object]) -> Path:
    """A folder with files: tensors as their name says, texts, or bytes."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Mapping) and name.endswith(".safetensors"):
            write_safetensors(path, content)
        elif isinstance(content, Mapping):
            torch.save({n: torch.tensor(a) for n, a in content.items()}, path)
        else:
            path.write_bytes(str(content).encode())
    return folder


TWO = {"x-00001-of-00002.safetensors": PARTS[0], "x-00002-of-00002.safetensors": PARTS[1]}
INDEX = json.dumps({"weight_map": {n: f for f, part in TWO.items() for n in part}})


@pytest.mark.parametrize(
    "files",
    [
        {"foo.safetensors": RAW, "config.json": "{}"},
        {"model.fp16.safetensors": RAW, "optimizer.pt": "", "training_args.bin": ""},
        {"consolidated.safetensors": RAW, "params.json": "{}"},
        {**TWO, "x.safetensors.index.json": INDEX},
        TWO,
        {"model.ckpt": RAW},
        {"weights.pth": RAW, "config.json": "{}"},
        {"model.safetensors": RAW, "other.safetensors": {}, "pytorch_model.bin": ""},
    ],
    ids=lambda f: next(iter(f)),
)
def test_names_that_leave_no_doubt(tmp_path: Path, files: dict[str, object]) -> None:
    prepared = doubling(4, 8).prepare(filled(tmp_path, files))
    assert [prepared[f"p{i}"].tolist() for i in range(4)] == [[2.0 * i] * 8 for i in range(4)]


def test_config_of_a_folder_with_other_names(tmp_path: Path) -> None:
    filled(tmp_path, {**TWO, "config.json": '{"model_type": "x"}'})
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.config == {"model_type": "x"}
    assert sorted(os.path.basename(f) for f in checkpoint.files) == list(TWO)


ADAPTER = {"adapter_config.json": '{"base_model_name_or_path": "meta/x"}', "adapter_model.safetensors": RAW}
REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "several": ({"a.safetensors": RAW, "b.safetensors": RAW}, "a.safetensors, b.safetensors: name the one to read"),
    "two kinds": ({"a.safetensors": RAW, "b.gguf": ""}, "a.safetensors, b.gguf: name the one to read"),
    "incomplete": ({"x-00002-of-00003.safetensors": RAW}, "x-00002-of-00003.safetensors, without numbers 1, 3"),
    "no index": ({"m-00001-of-00002.bin": RAW, "m-00002-of-00002.bin": RAW}, "m-00002-of-00002.bin without their index"),
    "adapter": (ADAPTER, "adapter_model.safetensors: an adapter of 'meta/x'; peft's merge_and_unload() makes one model of"),
    "adapter of nothing": (ADAPTER | {"adapter_config.json": "["}, "an adapter of a model; peft's"),
    "others": ({"tf_model.h5": "", "flax_model.msgpack": ""}, "got flax_model.msgpack, tf_model.h5"),
    "below": ({"original/a.safetensors": RAW}, "got no such file: weights are in 'original'"),
    "cache": ({"snapshots/abc/a.safetensors": RAW, "refs/main": "abc"}, "got no such file: weights are in 'snapshots/abc'"),
    "twice": ({**TWO, "x-00002-of-00002.safetensors": RAW}, "tensor 'w0': expected it in one file, got it in "),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_do(tmp_path: Path, case: str) -> None:
    files, message = REFUSED[case]
    with pytest.raises(RelaxError) as error:
        open_tensors(filled(tmp_path, files))
    assert message in str(error.value)


def test_an_adapters_tensors(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "a.safetensors", {"base_model.model.w0.lora_A.weight": RAW["w0"]})
    with pytest.raises(RelaxError, match="these are an adapter's: peft's merge_and_unload"):
        doubling(4, 8).prepare(tmp_path / "a.safetensors")


def test_links_of_a_folder_lead_nowhere_else(tmp_path: Path) -> None:
    filled(tmp_path, {"secret.safetensors": RAW})
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "x.safetensors").symlink_to("../secret.safetensors")
    with pytest.raises(RelaxError, match="which leads to"):
        open_tensors(tmp_path / "model")


# -- GGUF in several files ---------------------------------------------------------------------------------------------


def split(folder: Path, tensors: int = 3) -> list[Path]:
    """A model in three files, by gguf's own writer, and the same in one."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for name, most in (("x.gguf", 0), ("whole.gguf", 100)):
        writer = gguf.GGUFWriter(folder / name, "other", split_max_tensors=tensors if most == 0 else most)
        rng = np.random.default_rng(0)
        for i in range(4):
            writer.add_tensor(f"w{i}", np.full(8, i, np.float32))
            writer.add_tensor(f"q{i}", blocks(rng, "Q8_0", 4, 2, usual=True), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return sorted(folder.glob("x-*"))


def test_gguf_in_several_files(tmp_path: Path) -> None:
    parts = split(tmp_path / "m")
    assert len(parts) == 3
    whole = decoded(open_tensors(tmp_path / "m" / "whole.gguf"))
    (tmp_path / "m" / "whole.gguf").rename(tmp_path / "whole.gguf")
    for path in (parts[0], parts[2], tmp_path / "m"):
        source = open_tensors(path)
        assert len(source.files) == 3
        joined = decoded(source)
        assert sorted(joined) == sorted(whole)
        for name in whole:
            np.testing.assert_array_equal(joined.get(name), whole.get(name))
        source.check_unchanged()
    executable = doubling(4, 8)
    assert executable.prepare(parts[0])["p3"].tolist() == [6.0] * 8
    executable.prepare(tmp_path / "m", tmp_path / "out.safetensors", memory_limit=4096)
    with pytest.raises(RelaxError, match="expected another file than the raw weights, got one of theirs"):
        executable.prepare(parts[0], parts[1])


def test_gguf_files_that_do_not_belong_together(tmp_path: Path) -> None:
    parts = split(tmp_path / "m")
    other = tmp_path / "m" / "model.gguf"
    shutil.copy(parts[0], other)
    with pytest.raises(RelaxError, match=r"expected a name as x-00001-of-00003.gguf of one of 3 files, got 'model.gguf'"):
        open_tensors(other)
    second = parts[1].read_bytes()
    shutil.copy(parts[0], parts[1])
    with pytest.raises(RelaxError, match=r"x-00002-of-00003.gguf': split.no, split.count: expected 1, 3, got 0, 3"):
        open_tensors(parts[0])
    parts[1].unlink()
    with pytest.raises(RelaxError, match=r"x-00001-of-00003.gguf': expected 'x-00002-of-00003.gguf' beside it, got no such"):
        open_tensors(parts[0])
    parts[1].write_bytes(second.replace(b"w2", b"w0"))
    with pytest.raises(RelaxError, match="tensor 'w0': expected it in one of 3 files, got it in several"):
        open_tensors(parts[0])


def tied(inner: str) -> rx.Executable:
    """Looks up rows of one table and multiplies with another: one tensor of the file is both."""
    b = rx.Builder()
    with b.function("main"):
        ids = b.input("ids", ("n",), "i64")
        rows = b.take(b.weight("model.embed_tokens.weight", (48, 32)), ids, axis=0)
        middle = b.matmul(rows, b.permute_dims(b.weight(inner, (32, 32)), axes=[1, 0]))
        b.output(b.matmul(middle, b.permute_dims(b.weight("lm_head.weight", (48, 32)), axes=[1, 0])))
    return rx.compile(b.build())


@pytest.mark.parametrize("kept", ["model.embed_tokens.weight", "lm_head.weight"])
def test_tied_weights_of_shards_are_one_tensor(tmp_path: Path, kept: str) -> None:
    """Whichever of the two a folder has, in whichever shard; where its configuration says that they are two, one is missing."""
    rng = np.random.default_rng(0)
    table, inner = rng.standard_normal((48, 32), np.float32), rng.standard_normal((32, 32), np.float32)
    parts = [{"other": RAW["w0"]}, {"model.layers.0.mlp.weight": inner}, {kept: table}]
    shards = {f"{i}.safetensors": part for i, part in enumerate(parts)}
    index = json.dumps({"weight_map": {name: file for file, part in shards.items() for name in part}})
    filled(tmp_path, {**shards, "model.safetensors.index.json": index, "config.json": '{"tie_word_embeddings": true}'})
    exe = tied("model.layers.0.mlp.weight")
    report = exe.prepare(tmp_path, tmp_path / "prepared.safetensors", jobs=2)
    (other,) = {"model.embed_tokens.weight", "lm_head.weight"} - {kept}
    assert f"'{other}' read from '{kept}'" in report.notes
    exe.bind(tmp_path / "prepared.safetensors")
    ids = np.array([3, 47, 0])
    np.testing.assert_allclose(exe(ids), table[ids] @ inner.T @ table.T, rtol=1e-4, atol=1e-4)  # sums of 32 products, twice
    (tmp_path / "config.json").write_text('{"tie_word_embeddings": false}')
    with pytest.raises(RelaxError, match=f"weight '{other}': expected f32\\[48, 32\\], got none"):
        exe.prepare(tmp_path, tmp_path / "again.safetensors")


def test_tied_weights_of_gguf_are_one_tensor(tmp_path: Path) -> None:
    """llama.cpp's converter leaves out what the output layer shares with the embedding."""
    rng = np.random.default_rng(0)
    table, inner = rng.standard_normal((48, 32), np.float32), rng.standard_normal((32, 32), np.float32)
    kind = gguf.GGMLQuantizationType.F32
    path = write({"token_embd.weight": (table, kind), "blk.0.ffn_gate.weight": (inner, kind)}, tmp_path)
    exe = tied("model.layers.0.mlp.gate_proj.weight")
    prepared = exe.prepare(path)
    assert "'lm_head.weight' read from 'model.embed_tokens.weight'" in prepared.report.notes
    exe.bind(prepared)
    ids = np.array([3, 47, 0])
    np.testing.assert_allclose(exe(ids), table[ids] @ inner.T @ table.T, rtol=1e-4, atol=1e-4)  # sums of 32 products, twice


def write(tensors: dict[str, tuple[np.ndarray, gguf.GGMLQuantizationType]], folder: Path) -> Path:
    """A file of a Llama of one layer."""
    return gguf_files.write(folder / "m.gguf", tensors, "llama")
