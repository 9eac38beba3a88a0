"""Experts that files have one by one, prepared for a module that takes all of a layer in one tensor."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir import RelaxError
from relaxir.dialect.reports.checkpoint import CheckpointWeights
from relaxir.lowering import split_steps
from relaxir.runtime import memory_plan
from relaxir.runtime.joined_experts import JoinedExperts, joined_weight
from relaxir.runtime.sources import open_source
from relaxir.weights import Checkpoint, write_safetensors
from relaxir.weights.source import ranges_of
from support import encoded_weights as write

EXPERTS, INNER, HIDDEN = 3, 64, 128


def taking(one_by_one: bool = False, checkpoint: Path | None = None) -> rx.Executable:
    """A module that multiplies with experts, all at once or one after the other."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", HIDDEN))
        up = b.weight("layer.mlp.experts.gate_up_proj", (EXPERTS, 2 * INNER, HIDDEN))
        down = b.weight("layer.mlp.experts.down_proj", (EXPERTS, HIDDEN, INNER))
        if one_by_one:
            results = {}
            for e in range(EXPERTS):
                first, second = (b.squeeze(b.strided_slice(w, axes=[0], begin=[e], end=[e + 1]), axis=[0]) for w in (up, down))
                h = b.matmul(x, b.permute_dims(first, axes=[1, 0]))
                gate, inner = b.split(h, sections=2, axis=1)
                results[f"y{e}"] = b.matmul(b.multiply(gate, inner), b.permute_dims(second, axes=[1, 0]))
            b.output(**results)
        else:
            h = b.matmul(x, b.permute_dims(up, axes=[0, 2, 1]))
            inner = b.strided_slice(h, axes=[2], begin=[0], end=[INNER])
            b.output(y=b.matmul(inner, b.permute_dims(down, axes=[0, 2, 1])))
    return rx.compile(b.build(), checkpoint=checkpoint)


#: The same without a checkpoint, compiled once: who takes it binds weights of its own.
wide_taking = functools.cache(taking)


def matrices(names: Mapping[str, str], seed: int = 0) -> dict[str, np.ndarray]:
    """Those of all experts, by what a file calls the module and them."""
    rng = np.random.default_rng(seed)
    shapes = {"gate": (INNER, HIDDEN), "up": (INNER, HIDDEN), "down": (HIDDEN, INNER)}
    return {
        f"layer.{names['module']}.experts.{e}.{names[which]}.weight": rng.standard_normal(shape, np.float32)
        for e in range(EXPERTS)
        for which, shape in shapes.items()
    }


QWEN = {"module": "mlp", "gate": "gate_proj", "up": "up_proj", "down": "down_proj"}
MIXTRAL = {"module": "block_sparse_moe", "gate": "w1", "up": "w3", "down": "w2"}


def stacked(tensors: Mapping[str, np.ndarray], names: Mapping[str, str]) -> dict[str, np.ndarray]:
    """As the module takes them."""

    def of(which: str) -> list[np.ndarray]:
        return [tensors[f"layer.{names['module']}.experts.{e}.{names[which]}.weight"] for e in range(EXPERTS)]

    pairs = zip(of("gate"), of("up"), strict=True)
    return {
        "layer.mlp.experts.gate_up_proj": np.stack([np.concatenate(pair) for pair in pairs]),
        "layer.mlp.experts.down_proj": np.stack(of("down")),
    }


@pytest.mark.parametrize("names", [QWEN, MIXTRAL], ids=["qwen", "mixtral"])
@pytest.mark.parametrize("one_by_one", [True, False], ids=["one by one", "all"])
def test_files_are_as_of_stacked_experts(tmp_path: Path, names: Mapping[str, str], one_by_one: bool) -> None:
    exe, tensors = wide_taking(one_by_one), matrices(names)
    write_safetensors(tmp_path / "a.safetensors", tensors)
    write_safetensors(tmp_path / "b.safetensors", stacked(tensors, names))
    report = exe.prepare(tmp_path / "a.safetensors", tmp_path / "a.prepared.safetensors")
    exe.prepare(tmp_path / "b.safetensors", tmp_path / "b.prepared.safetensors")
    assert "2 weights joined of experts that are stored one by one" in str(report)
    assert report.extra_weights == ()
    assert (tmp_path / "a.prepared.safetensors").read_bytes() == (tmp_path / "b.prepared.safetensors").read_bytes()
    exe.verify(tmp_path / "a.prepared.safetensors", against=tmp_path / "a.safetensors")


@pytest.mark.parametrize("weights", [None, "int8"])
def test_many_experts_are_joined_a_few_at_a_time(weights: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a limit: into a file, in memory, and where a file is verified; the same bytes, in less memory."""
    monkeypatch.setattr(split_steps, "PIECE_BYTES", 16 << 10)
    monkeypatch.setattr(split_steps, "BLOCK_BYTES", 4 << 10)
    b = rx.Builder()
    with b.function("main"):
        x, ends = b.input("x", ("n", HIDDEN)), b.input("ends", (EXPERTS,), "i64")
        w = b.reshape(b.weight("layer.mlp.experts.gate_up_proj", (EXPERTS, 2 * INNER, HIDDEN)), (EXPERTS * 2 * INNER, HIDDEN))
        b.output(y=b.grouped_matmul(x, b.permute_dims(w, axes=[1, 0]), ends))
    exe, tensors = rx.compile(b.build(), weights=weights, cache=False), matrices(QWEN)
    source, whole, pieces = (tmp_path / f"{name}.safetensors" for name in ("raw", "whole", "pieces"))
    write_safetensors(source, tensors)
    most = exe.prepare(source, whole).peak_bytes
    monkeypatch.setattr(memory_plan, "_HELD_BYTES", 0)
    report = exe.prepare(source, pieces)
    assert report.peak_bytes <= report.predicted_peak_bytes < most
    assert pieces.read_bytes() == whole.read_bytes()
    held = exe.prepare(source)
    for name in (stored := Checkpoint(whole)):
        np.testing.assert_array_equal(held[name], stored.get(name))
    exe.verify(pieces, against=source)
    tensors["layer.mlp.experts.2.up_proj.weight"][-1, -1] = 100
    write_safetensors(source, tensors)
    with pytest.raises(RelaxError, match="got other bytes"):
        exe.verify(pieces, against=source)


def test_renamed_in_memory_and_in_other_files(tmp_path: Path) -> None:
    exe, tensors = wide_taking(), matrices(QWEN)
    write_safetensors(tmp_path / "a.safetensors", {f"model.{n}": t for n, t in tensors.items()})
    np.savez(tmp_path / "a.npz", **tensors)  # pyright: ignore[reportArgumentType]
    whole = exe.prepare(stacked(tensors, QWEN))
    for prepared in (
        exe.prepare(tmp_path / "a.safetensors", rename={"^model\\.": ""}),
        exe.prepare(tensors),
        exe.prepare(tmp_path / "a.npz"),
    ):
        for name, array in whole.items():
            np.testing.assert_array_equal(prepared[name], array)


@pytest.mark.parametrize("seed", range(20))
def test_parts(tmp_path: Path, seed: int) -> None:
    """Any ranges along any axes are those of the stacked tensor, in the memory that was given."""
    rng, tensors, name = np.random.default_rng(seed), matrices(QWEN), "layer.mlp.experts.gate_up_proj"
    write_safetensors(tmp_path / "a.safetensors", tensors)
    joined = joined_weight(name, EXPERTS, {n: n for n in tensors}, "here")
    assert joined is not None
    source, whole = JoinedExperts(open_source(tmp_path / "a.safetensors"), {name: joined}), stacked(tensors, QWEN)[name]
    ranges = {
        axis: [(int(b), int(e)) for b, e in np.sort(rng.choice(whole.shape[axis] + 1, 4, replace=False)).reshape(2, 2)]
        for axis in range(3)
        if rng.random() < 0.6
    }
    expected = ranges_of(whole, ranges)
    place = np.empty_like(expected, order="C")
    assert source.read_part(name, ranges, place) is place
    np.testing.assert_array_equal(place, expected)
    assert source.beside(name, ranges) == 0


FORMATS: dict[str, tuple[dict[str, Any], Callable[..., tuple[write.Arrays, np.ndarray]]]] = {
    "gptq": ({"bits": 4, "group_size": 32}, partial(write.gptq, symmetric=False, act_order=True)),
    "awq": ({"bits": 4, "group_size": 32, "version": "gemm"}, write.awq),
    "compressed-tensors": ({}, write.compressed),
    "fp8": ({"weight_block_size": [16, 16]}, partial(write.fp8, block=16)),
    "bitsandbytes": ({"load_in_4bit": True}, write.nf4),
}


def write_quantized(path: Path, method: str, names: Mapping[str, str], wide: str = "") -> dict[str, np.ndarray]:
    """A folder of experts one by one, encoded but for one; what they mean, as the module takes them."""
    rng, tensors, meaning = np.random.default_rng(1), dict[str, np.ndarray](), dict[str, np.ndarray]()
    for name, value in matrices(names).items():
        parts, meaning[name] = FORMATS[method][1](rng, *value.shape) if name != wide else ({".weight": value}, value)
        tensors |= {name.removesuffix(".weight") + end: array for end, array in parts.items()}
    write_safetensors(path / "model.safetensors", tensors)
    config = {"quantization_config": {"quant_method": method, **FORMATS[method][0]}}
    (path / "config.json").write_text(json.dumps(config))
    return stacked(meaning, names)


def outputs(exe: rx.Executable, source: object, x: np.ndarray) -> list[np.ndarray]:
    got = exe.bind(exe.prepare(source))(x)
    return list(got) if isinstance(got, tuple) else [got]


@pytest.mark.parametrize("method", FORMATS)
@pytest.mark.parametrize("one_by_one", [True, False], ids=["one by one", "all"])
def test_quantized_ones_stay_narrow(tmp_path: Path, method: str, one_by_one: bool) -> None:
    names = MIXTRAL if method == "gptq" else QWEN
    meaning, exe = write_quantized(tmp_path, method, names), taking(one_by_one, checkpoint=tmp_path)
    (section,) = [s for s in exe.report.sections if isinstance(s, CheckpointWeights)]
    assert (len(section.kept), section.decoded) == (3 * EXPERTS, ())
    x = np.random.default_rng(2).standard_normal((5, HIDDEN), np.float32)
    for got, wide in zip(outputs(exe, tmp_path, x), outputs(wide_taking(one_by_one), meaning, x), strict=True):
        # Sums of up to 128 products in another order, in f32, of a sum's own size.
        np.testing.assert_allclose(got, wide, rtol=1e-5, atol=1e-5 * np.abs(wide).max())
    stored = Checkpoint(tmp_path / "model.safetensors")
    prepared = sum(w.array.nbytes for w in exe.manifest.prepared_weights.values())
    # Scales of 16 x 16 values (fp8) are prepared as those of 16.
    assert prepared <= 1.25 * sum(stored.spec(n).nbytes for n in stored)


def test_one_that_is_wide_stays_so(tmp_path: Path) -> None:
    meaning = write_quantized(tmp_path, "awq", QWEN, wide="layer.mlp.experts.1.up_proj.weight")
    exe = taking(one_by_one=True, checkpoint=tmp_path)
    (section,) = [s for s in exe.report.sections if isinstance(s, CheckpointWeights)]
    assert (len(section.kept), section.decoded) == (3 * EXPERTS - 1, ())
    assert exe.manifest.raw_weights["layer.mlp.experts.1.up_proj.weight"].array.shape == (INNER, HIDDEN)
    x = np.random.default_rng(2).standard_normal((5, HIDDEN), np.float32)
    for got, wide in zip(outputs(exe, tmp_path, x), outputs(wide_taking(True), meaning, x), strict=True):
        np.testing.assert_allclose(got, wide, rtol=1e-5, atol=1e-5 * np.abs(wide).max())  # sums in another order, in f32


def columns(which: str) -> rx.Module:
    """One expert's product, read whole, or in columns that are none of one matrix."""
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", ("n", HIDDEN)), b.weight("layer.mlp.experts.gate_up_proj", (EXPERTS, 2 * INNER, HIDDEN))
        one = b.squeeze(b.strided_slice(w, axes=[0], begin=[1], end=[2]), axis=[0])
        y = b.matmul(x, b.permute_dims(one, axes=[1, 0]))
        if which == "split":
            b.output(*b.split(y, sections=2, axis=1))
        elif which == "four":
            b.output(*b.split(y, sections=4, axis=-1))
        elif which == "across":
            b.output(y=b.strided_slice(y, axes=[1], begin=[INNER - 8], end=[INNER + 8]))
        elif which == "second":
            b.output(y=b.strided_slice(y, axes=[1], begin=[INNER], end=[2 * INNER]))
        else:
            b.output(y=y, z=b.strided_slice(y, axes=[1], begin=[INNER], end=[2 * INNER]))
    return b.build()


@pytest.mark.parametrize("which", ["split", "four", "across", "second", "whole"])
def test_columns_of_one_expert(tmp_path: Path, which: str) -> None:
    meaning, module = write_quantized(tmp_path, "fp8", QWEN), columns(which)
    exe, x = rx.compile(module, checkpoint=tmp_path), np.random.default_rng(2).standard_normal((5, HIDDEN), np.float32)
    read = {"1.up_proj"} if which == "second" else {"1.gate_proj", "1.up_proj"}
    assert {".".join(n.split(".")[3:5]) for n in exe.manifest.raw_weights} == read
    for got, wide in zip(outputs(exe, tmp_path, x), outputs(rx.compile(module), meaning, x), strict=True):
        np.testing.assert_allclose(got, wide, rtol=1e-5, atol=1e-5 * np.abs(wide).max())  # sums in another order, in f32


def read_otherwise(checkpoint: Path | None = None) -> rx.Executable:
    """A module that adds up what experts have."""
    b = rx.Builder()
    with b.function("main"):
        x, up = b.input("x", ("n", HIDDEN)), b.weight("layer.mlp.experts.gate_up_proj", (EXPERTS, 2 * INNER, HIDDEN))
        b.output(y=b.matmul(x, b.permute_dims(up, axes=[0, 2, 1])), z=b.sum(up, axis=[0]))
    return rx.compile(b.build(), checkpoint=checkpoint)


def test_what_other_ops_read_is_decoded(tmp_path: Path) -> None:
    meaning = write_quantized(tmp_path, "gptq", QWEN)
    for exe in (read_otherwise(), read_otherwise(tmp_path)):
        prepared, expected = exe.prepare(tmp_path), exe.prepare(meaning)
        for name, array in expected.items():
            np.testing.assert_array_equal(prepared[name], array)
    (section,) = [s for s in exe.report.sections if isinstance(s, CheckpointWeights)]
    assert [w.name for w in section.decoded] == ["layer.mlp.experts.gate_up_proj"]
    assert "the module reads by something else than products: a model of transformers" in section.decoded[0].reason
    assert 'set_experts_implementation("relaxir")' in section.decoded[0].reason


#: The second input, but of rows for all experts.
MORE: dict[str, tuple[tuple[int | str, ...], str]] = {
    "grouped": ((EXPERTS,), "i32"), "chosen": (("n",), "i64"), "chosen, on the left": (("n",), "i64"),
    "batched": ((EXPERTS, "n", INNER), "f32"),
}  # fmt: skip


def all_at_once(which: str) -> rx.Module:
    """Products with all matrices of a weight, ``[experts, in, out]`` or ``[experts, out, in]``."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", INNER))
        if which in MORE:
            other = b.input("other", *MORE[which])
        w = b.weight("layer.mlp.experts.down_proj", (EXPERTS, HIDDEN, INNER))
        if which == "grouped":
            y = b.grouped_matmul(x, b.permute_dims(b.reshape(w, (EXPERTS * HIDDEN, INNER)), axes=[1, 0]), other)
        elif which == "chosen":
            y = b.matmul(b.expand_dims(x, axis=[1]), b.permute_dims(b.take(w, other, axis=0), axes=[0, 2, 1]))
        elif which == "chosen, on the left":
            y = b.matmul(b.take(w, other, axis=0), b.expand_dims(x, axis=[2]))
        else:
            y = b.matmul(other if which == "batched" else x, b.permute_dims(w, axes=[0, 2, 1]))
        b.output(y=y)
    return b.build()


@functools.cache
def wide_at_once(which: str) -> rx.Executable:
    """Without a checkpoint."""
    return rx.compile(all_at_once(which))


@pytest.mark.parametrize(
    ("which", "more"),
    [
        ("grouped", [np.array([2, 2, 4], np.int32)]),
        ("chosen", [np.array([2, 0, 0, -1, 2])]),
        ("chosen, on the left", [np.array([2, 0, 0, -1, 2])]),
        ("batched", [np.random.default_rng(3).standard_normal((EXPERTS, 5, INNER), np.float32)]),
        ("for all", []),
    ],
)
def test_products_with_all_experts(tmp_path: Path, which: str, more: list[np.ndarray]) -> None:
    """Rows of no group give 0, as before; so do numbers of experts count from the end."""
    meaning = write_quantized(tmp_path, "fp8", QWEN)
    x = np.random.default_rng(2).standard_normal((5, INNER), np.float32)
    exe, plain = rx.compile(all_at_once(which), checkpoint=tmp_path), wide_at_once(which)
    for executable, source in ((exe, tmp_path), (plain, meaning)):
        executable.bind(executable.prepare(source))
    (section,) = [s for s in exe.report.sections if isinstance(s, CheckpointWeights)]
    assert (len(section.kept), section.decoded) == (EXPERTS, ())
    got, wide = exe(x, *more), plain(x, *more)
    np.testing.assert_allclose(got, wide, rtol=1e-5, atol=1e-5 * np.abs(wide).max())  # sums in another order, in f32


def write_in_one(path: Path) -> dict[str, np.ndarray]:
    """A folder of experts in one tensor, of eight-bit floats."""
    name = "layer.mlp.experts.down_proj"
    tensors, wide = write.fp8_experts(np.random.default_rng(1), (EXPERTS, HIDDEN, INNER), (EXPERTS, HIDDEN // 16, INNER // 16))
    write_safetensors(path / "model.safetensors", {f"{name}{end}": tensor for end, tensor in tensors.items()})
    config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [16, 16]}}
    (path / "config.json").write_text(json.dumps(config))
    return {name: wide}


@pytest.mark.parametrize("method", ["gptq", "awq", "bitsandbytes", "in one tensor"])
def test_grouped_rows_on_a_gpu(tmp_path: Path, method: str) -> None:
    """One matrix for kernels of groups where the experts' tensors make one; weights are held once, as narrow as in the file."""
    module, is_one = all_at_once("grouped"), method == "in one tensor"
    meaning = write_in_one(tmp_path) if is_one else write_quantized(tmp_path, method, QWEN)
    x, ends = np.random.default_rng(2).standard_normal((5, INNER), np.float32), np.array([2, 2, 4], np.int32)
    exe, plain = rx.compile(module, "cuda:sm_80", device="emulated", checkpoint=tmp_path), wide_at_once("grouped")
    for executable, source in ((exe, tmp_path), (plain, meaning)):
        executable.bind(executable.prepare(source))
    got, wide = exe(x, ends), plain(x, ends)
    np.testing.assert_allclose(got, wide, rtol=1e-5, atol=1e-5 * np.abs(wide).max())  # sums in another order, in f32
    (section,) = [s for s in exe.report.sections if isinstance(s, CheckpointWeights)]
    assert (len(section.kept), section.decoded) == (1 if is_one else EXPERTS, ())
    held = sum(w.array.nbytes for w in exe.manifest.prepared_weights.values())
    assert held < (1.3 if is_one else 0.8) * EXPERTS * HIDDEN * INNER


def test_numbers_of_experts_are_checked(tmp_path: Path) -> None:
    write_quantized(tmp_path, "fp8", QWEN)
    exe = rx.compile(all_at_once("chosen"), checkpoint=tmp_path)
    exe.bind(exe.prepare(tmp_path))
    with pytest.raises(RelaxError, match="3"):
        exe(np.zeros((2, INNER), np.float32), np.array([0, EXPERTS]))


def refused(tensors: Mapping[str, np.ndarray]) -> str:
    with pytest.raises(RelaxError) as caught:
        wide_taking().prepare(tensors)
    return str(caught.value)


def test_too_few() -> None:
    tensors = matrices(QWEN)
    del tensors["layer.mlp.experts.2.up_proj.weight"]
    text = "weight 'layer.mlp.experts.gate_up_proj': expected 3 experts, got no 'layer.mlp.experts.2.up_proj.weight'"
    assert text in refused(tensors)


def test_too_many() -> None:
    tensors = matrices(QWEN)
    tensors["layer.mlp.experts.3.gate_proj.weight"] = tensors["layer.mlp.experts.2.gate_proj.weight"]
    text = "weight 'layer.mlp.experts.gate_up_proj': expected 3 experts, got 'layer.mlp.experts.3.gate_proj.weight'"
    assert text in refused(tensors)


def test_of_other_shapes() -> None:
    tensors = matrices(QWEN)
    tensors["layer.mlp.experts.1.up_proj.weight"] = np.zeros((INNER, HIDDEN + 1), np.float32)
    assert "tensor 'layer.mlp.experts.1.up_proj.weight': expected a matrix f32[64, 128], got f32[64, 129]" in refused(tensors)
    tensors = {n: t[:-1] if "_proj" in n and "down" not in n else t for n, t in matrices(QWEN).items()}
    assert "weight 'layer.mlp.experts.gate_up_proj': expected f32[3, 128, 128], got f32[3, 126, 128]" in refused(tensors)
