"""Within a memory limit, steps whose results come from several weights run segment by segment: to the same bytes."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir import RelaxError
from relaxir.lowering import split_steps
from relaxir.lowering.manifest import Manifest
from relaxir.runtime import memory_plan
from relaxir.weights import Checkpoint, write_safetensors
from support.transform_generator import random_transform


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of tests are some kilobytes."""
    monkeypatch.setattr(split_steps, "PIECE_BYTES", 16 << 10)
    monkeypatch.setattr(split_steps, "BLOCK_BYTES", 4 << 10)
    monkeypatch.setattr(memory_plan, "_COPY_BYTES", 4 << 10)


COMBINE = "relax-combine-parallel-matmul,relax-reorder-permute-dims-after-concat"
Weight = Callable[..., Any]


def side_by_side(*sizes: int, k: int = 96, turned: bool = True) -> rx.Module:
    """Products of one input with several weights, which become one with all of them side by side."""
    b = rx.Builder()
    with b.function("main"):
        x, made = b.input("x", ("m", k)), []
        for i, n in enumerate(sizes):
            w = b.weight(f"w{i}", (n, k) if turned else (k, n))
            made.append(b.matmul(x, b.permute_dims(w, axes=[1, 0]) if turned else w))
        b.output(*made)
    return b.build().run(COMBINE)


def product(make: Callable[[rx.Builder], Any], k: int = 96) -> rx.Module:
    """A product with a weight that is made of others."""
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("m", k)), make(b)))
    return b.build()


def merged(b: rx.Builder, name: str = "w", n: int = 200, k: int = 96) -> Any:
    """A weight and an adapter's product, transposed."""
    low, high = b.weight(f"{name}.a", (8, k)), b.weight(f"{name}.b", (n, 8))
    return b.permute_dims(b.add(b.weight(name, (n, k)), b.multiply(b.matmul(high, low), 0.5)), axes=[1, 0])


def heads_turned(b: rx.Builder) -> Any:
    """Rows of each head in another order, as between two conventions of rotary embeddings."""
    w = b.reshape(b.weight("w", (256, 96)), (8, 16, 2, 96))
    return b.permute_dims(b.reshape(b.permute_dims(w, axes=[0, 2, 1, 3]), (256, 96)), axes=[1, 0])


def shared_heads(b: rx.Builder) -> Any:
    """Each head of a weight several times."""
    w = b.repeat(b.reshape(b.weight("w", (128, 96)), (8, 16, 96)), repeats=4, axis=0)
    return b.permute_dims(b.reshape(w, (512, 96)), axes=[1, 0])


def padded(b: rx.Builder) -> Any:
    return b.permute_dims(b.pad(b.weight("w", (512, 90)), before=[0, 2], after=[0, 4]), axes=[1, 0])


def one_of_several() -> rx.Module:
    """Parts of one weight, which several products read."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("m", 96))
        q, k, v = b.split(b.weight("w", (3 * 160, 96)), sections=3, axis=0)
        b.output(*(b.matmul(x, b.permute_dims(w, axes=[1, 0])) for w in (q, k, v)))
    return b.build()


def stacked(count: int = 4) -> rx.Module:
    """Experts that a checkpoint has one by one, as one tensor."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", (count, "m", 96))
        made = None
        for i in range(count):
            w = b.expand_dims(b.permute_dims(b.weight(f"w{i}", (160, 96)), axes=[1, 0]), axis=[0])
            made = w if made is None else b.concat([made, w], axis=0)
        assert made is not None
        b.output(b.matmul(x, made))
    return b.build()


def few_large() -> rx.Module:
    """Experts in one tensor, each of them larger than a piece."""
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", (2, "m", 96)), b.permute_dims(b.weight("w", (2, 400, 96)), axes=[0, 2, 1])))
    return b.build()


CASES: dict[str, tuple[Callable[[], rx.Module], dict[str, Any]]] = {
    "combined": (lambda: side_by_side(128, 64, 64), {}),
    "combined, borders within panels": (lambda: side_by_side(100, 50, 47), {}),
    "combined, [in, out]": (lambda: side_by_side(128, 90, 64, turned=False), {}),
    "combined in int4": (lambda: side_by_side(200, 90, 64), {"weights": "int4"}),
    "merged": (lambda: product(merged), {}),
    "merged, one column in the last panel": (lambda: product(lambda b: merged(b, n=257)), {}),
    "merged in int4": (lambda: product(merged), {"weights": "int4"}),
    "merged, then combined": (
        lambda: product(lambda b: b.concat([merged(b, "q", 128), merged(b, "k", 64), merged(b, "v", 70)], axis=1)),
        {},
    ),
    "heads turned": (lambda: product(heads_turned), {}),
    "heads repeated": (lambda: product(shared_heads), {}),
    "padded": (lambda: product(padded), {}),
    "one of several": (one_of_several, {}),
    "stacked": (stacked, {}),
    "few large": (few_large, {}),
}


def same(one: Path, other: Path) -> bool:
    a, b = Checkpoint(one), Checkpoint(other)
    return list(a) == list(b) and all(a.get(n).tobytes() == b.get(n).tobytes() for n in a) and a.checksums() == b.checksums()


@pytest.mark.parametrize("case", CASES)
def test_segments_make_the_bytes_that_the_whole_makes(tmp_path: Path, case: str) -> None:
    make, options = CASES[case]
    executable = rx.compile(make(), **options)
    rng, raw = np.random.default_rng(5), tmp_path / "raw.safetensors"
    write_safetensors(
        raw, {n: rng.standard_normal(w.array.shape, np.float32) for n, w in executable.manifest.raw_weights.items()}
    )
    whole, pieces = tmp_path / "whole.safetensors", tmp_path / "pieces.safetensors"
    free = executable.prepare(raw, whole).predicted_peak_bytes
    with pytest.raises(RelaxError, match=r"a memory limit of (\d+) bytes or more, which preparing") as error:
        executable.prepare(raw, pieces, memory_limit=1)
    low = int(str(error.value).split("limit of ")[1].split()[0])
    assert low < free / 1.5
    for limit, jobs in ((low, 1), (2 * low, 2)):
        report = executable.prepare(raw, pieces, jobs, memory_limit=limit)
        assert report.peak_bytes <= report.predicted_peak_bytes <= limit
        assert same(whole, pieces)


def test_random_transforms_in_pieces_of_a_few_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_steps, "PIECE_BYTES", 64)
    monkeypatch.setattr(split_steps, "BLOCK_BYTES", 64)
    found = [check_random(seed, tmp_path / str(seed)) for seed in (5, 6, 10)]
    assert sum(found)


def check_random(seed: int, folder: Path) -> int:
    """Holds a random preparation in the least memory to one in any; gives how many steps have segments."""
    module = rx.Module.parse(random_transform(seed, size=(5, 15, 30)[seed % 3], lazy=False, regions=seed % 4 == 0))
    executable, rng = rx.compile(module), np.random.default_rng(seed)
    raw = {n: rng.integers(-4, 5, w.array.shape).astype(w.array.dtype) for n, w in executable.manifest.raw_weights.items()}
    folder.mkdir()
    write_safetensors(folder / "raw", raw)
    executable.prepare(folder / "raw", folder / "whole")
    with pytest.raises(RelaxError, match="a memory limit of") as error:
        executable.prepare(folder / "raw", folder / "pieces", memory_limit=1)
    low = int(str(error.value).split("limit of ")[1].split()[0])
    assert executable.prepare(folder / "raw", folder / "pieces", memory_limit=low).peak_bytes <= low
    assert same(folder / "whole", folder / "pieces"), f"seed {seed}"
    return sum(bool(s.segments) for s in executable.manifest.steps)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("gets", [[3]], r"segments\[0\]: expected parts of the step's tensors, got TensorPart\(position=3"),
        ("gets", [[0, 0, 0, 1000]], r"segments\[0\]: expected parts of the step's tensors"),
        ("gets", [[0, 0, 5, 5]], r"segments\[0\].gets: expected a position, and an axis, a begin and an end each, got \[0, 0"),
        ("gets", [["0"]], r"segments\[0\].gets: expected a position, and an axis, a begin and an end each, got \['0'\]"),
        ("made", [0, 0, 4, 8], r"segments\[0\].made: expected what is behind the parts before it"),
        ("made", [0, 0, 0, 3], r"segments\[0\].parts.sets: expected 4 pieces"),
    ],
)
def test_segments_of_a_manifest_that_do_not_fit(field: str, value: Any, message: str) -> None:
    data = copy.deepcopy(dict(combined().manifest.data))
    next(s for s in data["steps"] if "segments" in s)["segments"][0][field] = value
    with pytest.raises(RelaxError, match=message):
        Manifest.of(data)


def test_segments_that_leave_something_out() -> None:
    data = copy.deepcopy(dict(combined().manifest.data))
    next(s for s in data["steps"] if "segments" in s)["segments"].pop()
    with pytest.raises(RelaxError, match=r"steps\[0\].segments: expected all of the results, got"):
        Manifest.of(data)


@functools.cache
def combined() -> rx.Executable:
    return rx.compile(side_by_side(128, 64, 64))
