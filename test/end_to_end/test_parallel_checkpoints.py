"""Quantized checkpoints on several ranks: each has its part of the file's own integers, and reads that alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.communicator import ThreadRank, thread_ranks
from relaxir.dialect.reports.sharding import ShardedWeights
from relaxir.weights import write_safetensors
from support import encoded_weights as write
from support import gguf_files
from support.file_reads import recorded_reads

Array = np.ndarray[Any, Any]

NAMES = ("up", "down")


def feed_forward(k: int, n: int) -> rx.Module:
    """Columns, then rows."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", (3, k))
        up, down = (b.weight(f"{name}.weight", shape) for name, shape in zip(NAMES, ((n, k), (k, n)), strict=True))
        h = b.relu(b.matmul(x, b.permute_dims(up)))
        b.output(b.matmul(h, b.permute_dims(down)))
    return b.build()


def gptq(folder: Path, k: int, n: int, **options: Any) -> tuple[Path, list[Array]]:
    tensors, meanings = dict[str, Array](), list[Array]()
    for i, (name, shape) in enumerate(zip(NAMES, ((n, k), (k, n)), strict=True)):
        own, meaning = write.gptq(np.random.default_rng(i), *shape, **options)
        tensors |= {f"{name}{end}": t for end, t in own.items()}
        meanings.append(meaning)
    write_safetensors(folder / "model.safetensors", tensors)
    config = {"quant_method": "gptq", "bits": 4, "group_size": 32}
    (folder / "config.json").write_text(json.dumps({"quantization_config": config}))
    return folder, meanings


def blocks(folder: Path, k: int, n: int, kind: str) -> tuple[Path, list[Array]]:
    number = gguf.GGMLQuantizationType[kind]
    per = gguf_files.BLOCKS[kind].elements
    raw = [
        gguf_files.blocks(np.random.default_rng(i), kind, rows, inputs // per, usual=True)
        for i, (rows, inputs) in enumerate(((n, k), (k, n)))
    ]
    named = {f"{name}.weight": (r, number) for name, r in zip(NAMES, raw, strict=True)}
    return gguf_files.write(folder / "m.gguf", named), [gguf.dequantize(r, number) for r in raw]


def check(module: rx.Module, path: Path, weights: list[Array], ranks: int) -> tuple[ShardedWeights, list[int]]:
    """Compares with the product of what the file means; the report, and bytes of prepared weights of each rank."""
    x = np.random.default_rng(9).standard_normal((3, weights[0].shape[1])).astype(np.float32)
    expected = np.maximum(x @ weights[0].T, 0) @ weights[1].T
    compiled = rx.compile(module, checkpoint=path, mesh=rx.Mesh(tp=ranks))
    compiled.save(path.parent / "m.relax")

    def call(rank: ThreadRank) -> tuple[Array, int]:
        executable = rx.load(path.parent / "m.relax")
        prepared = executable.prepare(path)
        executable.bind(prepared)
        return executable(x), sum(a.nbytes for a in prepared.values())

    found = thread_ranks(ranks, call)
    for got, _ in found:
        # Sums of up to 1024 products in another order, twice.
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    (section,) = [s for s in compiled.report.sections if isinstance(s, ShardedWeights)]
    return section, [nbytes for _, nbytes in found]


@pytest.mark.parametrize("ranks", [2, 4])
def test_words_and_groups_are_shared(tmp_path: Path, ranks: int) -> None:
    path, weights = gptq(tmp_path, 256, 256)
    section, sizes = check(feed_forward(256, 256), path, weights, ranks)
    assert {w.name for w in section.cut} == {f"{n}.{e}" for n in NAMES for e in ("qweight", "scales", "qzeros")}
    one = rx.compile(feed_forward(256, 256), checkpoint=path)
    whole = sum(w.array.nbytes for w in one.manifest.prepared_weights.values())
    assert sizes == [whole // ranks] * ranks


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_K", "Q6_K", "IQ4_NL"])
def test_blocks_are_shared(tmp_path: Path, kind: str) -> None:
    path, weights = blocks(tmp_path, 512, 1024, kind)
    section, _ = check(feed_forward(512, 1024), path, weights, 2)
    assert {w.name.partition(".")[0] for w in section.cut} == set(NAMES)
    assert not section.whole


def test_groups_that_ranks_would_cut_stay_whole(tmp_path: Path) -> None:
    """Of 96 inputs in groups of 32, two ranks have one group and a half each."""
    path, weights = gptq(tmp_path, 64, 96)
    section, _ = check(feed_forward(64, 96), path, weights, 2)
    reasons = {w.name: w.reason for w in section.whole}
    assert "down.qweight" in reasons
    assert "2 ranks cannot share" in reasons["down.qweight"]


@pytest.mark.parametrize("encode", [gptq, lambda *a: blocks(*a, "Q4_K")], ids=["gptq", "Q4_K"])
def test_a_rank_reads_its_bytes_alone(tmp_path: Path, encode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = encode(tmp_path, 512, 1024)
    executable = rx.compile(feed_forward(512, 1024), checkpoint=path, mesh=rx.Mesh(tp=2))
    read = recorded_reads(monkeypatch)
    executable.prepare(path, rank=1, world=2)
    different = np.zeros(max(end for _, end in read), bool)  # fields of one block are read with it, each for itself
    for begin, end in read:
        different[begin:end] = True
    total = sum(w.whole.array.nbytes if w.cut else 0 for w in executable.manifest.of_rank(1).raw_weights.values())
    assert different.sum() == total // 2
