"""Quantized checkpoints as named tensors: every layout is decoded to what it means, bit for bit; what is wrong is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from relaxir import RelaxError
from relaxir.weights import ArraySpec, write_safetensors
from relaxir.weights.formats import encoded
from relaxir.weights.formats.encoded import EncodedSource
from relaxir.weights.opening import decoded, open_tensors
from relaxir.weights.source import ranges_of
from support import encoded_weights as write
from support.decoding_memory import assert_no_more_than_said

F32 = np.dtype(np.float32)
Writer = Callable[[np.random.Generator], tuple[write.Arrays, np.ndarray]]

#: The method, what else the configuration says, the writer, and how many outputs and inputs.
CASES: dict[str, tuple[str, dict[str, Any], Writer]] = {
    "gptq-v1": ("gptq", {"bits": 4, "group_size": 32}, partial(write.gptq, n=40, k=64)),
    "gptq-v1-said-v2": ("gptq", {"bits": 4, "group_size": 32, "checkpoint_format": "gptq_v2"}, partial(write.gptq, n=40, k=64)),
    "gptq-v2-said-v1": ("gptq", {"bits": 4, "group_size": 32}, partial(write.gptq, n=40, k=64, version=2)),
    "gptq-asymmetric": ("gptq", {"bits": 4, "group_size": 16}, partial(write.gptq, n=24, k=64, group=16, symmetric=False)),
    "gptq-asymmetric-v2": (
        "gptq", {"bits": 4, "group_size": 16, "checkpoint_format": "gptq_v2"},
        partial(write.gptq, n=24, k=64, group=16, symmetric=False, version=2),
    ),
    "gptq-act-order": ("gptq", {"bits": 4, "group_size": 32}, partial(write.gptq, n=40, k=96, act_order=True)),
    "gptq-8": ("gptq", {"bits": 8, "group_size": 32}, partial(write.gptq, n=12, k=64, bits=8, symmetric=False)),
    "gptq-8-symmetric": ("gptq", {"bits": 8, "group_size": 32}, partial(write.gptq, n=12, k=64, bits=8)),
    "gptq-one-group": ("gptq", {"bits": 4, "group_size": -1}, partial(write.gptq, n=8, k=48, group=48)),
    "gptq-last-group": ("gptq", {"bits": 4, "group_size": 32}, partial(write.gptq, n=16, k=40)),
    "gptq-bf16-no-index": (
        "gptq", {"bits": 4, "group_size": 32}, partial(write.gptq, n=16, k=64, dtype=write.BF16, with_index=False),
    ),
    "auto-round": (
        "auto-round", {"bits": 4, "group_size": 32, "packing_format": "auto_round:auto_gptq"},
        partial(write.gptq, n=16, k=64, symmetric=False),
    ),
    "awq": ("awq", {"bits": 4, "group_size": 32, "version": "gemm"}, partial(write.awq, n=40, k=64)),
    "awq-old-keys": ("awq", {"w_bit": 4, "q_group_size": 16}, partial(write.awq, n=16, k=48, group=16)),
    "awq-last-group": ("awq", {"bits": 4, "group_size": 32}, partial(write.awq, n=16, k=40)),
    "ct": ("compressed-tensors", {}, partial(write.compressed, n=21, k=64)),
    "ct-asymmetric": ("compressed-tensors", {}, partial(write.compressed, n=21, k=64, symmetric=False)),
    "ct-old-zeros": ("compressed-tensors", {}, partial(write.compressed, n=21, k=64, symmetric=False, packed_zeros=False)),
    "ct-channel-ragged": ("compressed-tensors", {}, partial(write.compressed, n=21, k=45, group=45)),
    "ct-last-group": (
        "compressed-tensors", {"config_groups": {"a": {"weights": {"group_size": 32}}}}, partial(write.compressed, n=21, k=76),
    ),
    "ct-last-group-of-half": (
        "compressed-tensors",
        {"config_groups": {"a": {"weights": {"group_size": 32}}}},
        partial(write.compressed, n=21, k=48),
    ),
    "ct-8": ("compressed-tensors", {}, partial(write.compressed, n=21, k=66, bits=8, group=33, symmetric=False, dtype=F32)),
    "ct-act-order": ("compressed-tensors", {}, partial(write.compressed, n=21, k=64, act_order=True, symmetric=False)),
    "ct-fp8": ("compressed-tensors", {}, partial(write.fp8, n=21, k=45, scheme="channel", dtype=write.BF16)),
    "fp8-block": ("fp8", {"weight_block_size": [128, 128]}, partial(write.fp8, n=256, k=128)),
    "fp8-ragged": ("fp8", {"weight_block_size": [128, 128]}, partial(write.fp8, n=200, k=300)),
    "fp8-small-blocks": ("fp8", {"weight_block_size": [16, 16]}, partial(write.fp8, n=40, k=24, block=16)),
    "fp8-e8m0": ("fp8", {"weight_block_size": [16, 16]}, partial(write.fp8, n=40, k=24, block=16, dtype="e8m0")),
    "fp8-tensor": ("fp8", {}, partial(write.fp8, n=20, k=24, scheme="tensor")),
    "fp8-one": ("fp8", {}, partial(write.fp8, n=20, k=24, scheme="one")),
    "nf4": ("bitsandbytes", {"load_in_4bit": True}, partial(write.nf4, n=48, k=36)),
    "nf4-large": ("bitsandbytes", {"load_in_4bit": True}, partial(write.nf4, n=512, k=96)),
    "nf4-plain": ("bitsandbytes", {"load_in_4bit": True}, partial(write.nf4, n=5, k=7, nested=False, dtype="float32")),
}  # fmt: skip


def folder(path: Path, method: str, config: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Path:
    write_safetensors(path / "model.safetensors", tensors)
    (path / "config.json").write_text(json.dumps({"quantization_config": {"quant_method": method, **config}}))
    return path


def opened(path: Path) -> EncodedSource:
    source = decoded(open_tensors(path))
    assert isinstance(source, EncodedSource)
    return source


@pytest.mark.parametrize("part", [1, 1 << 22], ids=["in parts", "whole"])
@pytest.mark.parametrize("name", CASES)
def test_a_weight_is_what_its_codes_mean(tmp_path: Path, name: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded, "_PART", part)
    method, config, writer = CASES[name]
    tensors, weight = writer(np.random.default_rng(7))
    bias = np.arange(3, dtype=np.float32)
    source = opened(folder(tmp_path, method, config, {**{f"a.b{e}": t for e, t in tensors.items()}, "a.b.bias": bias}))
    assert set(source) == {"a.b.weight", "a.b.bias"}
    assert source.spec("a.b.weight").shape == weight.shape
    served = source.serving({"a.b.weight": ArraySpec(F32, weight.shape)})
    got = served.get("a.b.weight")
    np.testing.assert_array_equal(got.view(np.uint32), weight.view(np.uint32))
    n, k = weight.shape
    for ranges in ({0: [(3, n - 1)]}, {0: [(n // 2, n)], 1: [(1, 3)]}, {0: [(0, 1), (2, n - 2)]}, {1: [(0, 2), (k - 1, k)]}):
        part = served.read_part("a.b.weight", ranges)
        np.testing.assert_array_equal(part, ranges_of(weight, ranges))
    np.testing.assert_array_equal(source.get("a.b.bias"), bias)


@pytest.mark.parametrize(
    "name", ["gptq-act-order", "gptq-8", "awq-last-group", "ct-old-zeros", "ct-8", "fp8-ragged", "fp8-e8m0", "nf4", "nf4-plain"]
)
def test_compiled_code_decodes_the_same(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded, "_COMPILED", 0)
    method, config, writer = CASES[name]
    tensors, weight = writer(np.random.default_rng(7))
    source = opened(folder(tmp_path, method, config, {f"w{e}": t for e, t in tensors.items()}))
    served = source.serving({"w.weight": ArraySpec(F32, weight.shape)})
    monkeypatch.setattr(encoded, "evaluate", None)
    np.testing.assert_array_equal(served.get("w.weight").view(np.uint32), weight.view(np.uint32))


@pytest.mark.parametrize(
    "name", ["gptq-v1", "gptq-act-order", "gptq-one-group", "gptq-8", "awq", "ct", "ct-act-order", "ct-fp8", "fp8-block", "nf4"]
)
def test_decoding_takes_no_more_than_is_said(tmp_path: Path, name: str) -> None:
    method, config, writer = CASES[name]
    tensors, _ = writer(np.random.default_rng(0), n=256, k=1056)
    source = opened(folder(tmp_path, method, config, {f"t{e}": t for e, t in tensors.items()}))
    assert_no_more_than_said(source, "t.weight")
    for ranges in ({0: [(64, 192)]}, {0: [(3, 64)]}, {0: [(0, 20), (200, 256)], 1: [(5, 1000)]}):
        assert_no_more_than_said(source, "t.weight", ranges)


def test_experts_of_four_bit_floats(tmp_path: Path) -> None:
    tensors, weight = write.mxfp4(np.random.default_rng(7), 3, 10, 64)
    source = opened(folder(tmp_path, "mxfp4", {}, {f"experts.gate_up_proj{e}": t for e, t in tensors.items()}))
    assert list(source) == ["experts.gate_up_proj"]
    got = source.get("experts.gate_up_proj")
    np.testing.assert_array_equal(got.view(np.uint32), np.ascontiguousarray(weight).view(np.uint32))


@pytest.mark.parametrize(
    "scales", [(3, 2, 4), (3, 24, 1), (3, 1, 64), (3, 1, 1), (3,), (1,), ()], ids=lambda s: "x".join(map(str, s)) or "scalar"
)
def test_experts_of_eight_bit_floats(tmp_path: Path, scales: tuple[int, ...]) -> None:
    tensors, weight = write.fp8_experts(np.random.default_rng(7), (3, 24, 64), scales)
    config = {"weight_block_size": [16, 16]}
    source = opened(folder(tmp_path, "fp8", config, {f"experts.down_proj{e}": t for e, t in tensors.items()}))
    assert list(source) == ["experts.down_proj"]
    np.testing.assert_array_equal(source.get("experts.down_proj").view(np.uint32), weight.view(np.uint32))
    part = source.read_part("experts.down_proj", {0: [(1, 3)], 1: [(3, 20)]})
    np.testing.assert_array_equal(part, weight[1:, 3:20])


def test_mxfp4_by_hand(tmp_path: Path) -> None:
    """Nibbles 0x21 are 0.5 and 1; the scale 128 is 2; 255 is NaN."""
    blocks = np.zeros((1, 1, 2, 16), np.uint8)
    blocks[0, 0, 0, 0], blocks[0, 0, 0, 1] = 0x21, 0x9F
    tensors = {"w_blocks": blocks, "w_scales": np.array([[[128, 255]]], np.uint8)}
    got = opened(folder(tmp_path, "mxfp4", {}, tensors)).get("w").reshape(-1)
    assert got[:4].tolist() == [1, 2, -12, -1]
    assert np.isnan(got[32:]).all()


def test_gptq_by_hand(tmp_path: Path) -> None:
    """One word of eight rows 0 to 7 in each of eight columns; zero points 3 stored as 2; act-order."""
    row_word = np.int32(0x76543210)
    tensors = {
        "w.qweight": np.full((1, 8), row_word), "w.qzeros": np.array([[0x22222222], [0x44444444]], np.int32),
        "w.scales": np.array([[0.5] * 8, [2.0] * 8], np.float16), "w.g_idx": np.array([0, 1, 0, 1, 0, 0, 1, 1], np.int32),
    }  # fmt: skip
    got = opened(folder(tmp_path, "gptq", {"bits": 4, "group_size": 4}, tensors)).get("w.weight")
    assert got.shape == (8, 8)
    assert got[0].tolist() == [-1.5, -8, -0.5, -4, 0.5, 1, 2, 4]


def test_a_zero_point_of_zero_borrows_from_its_neighbour(tmp_path: Path) -> None:
    """True zero points 3 0 5 8 0 0 15 1 as GPTQModel writes them: minus one in each field of the word, with its borrow."""
    true = np.array([3, 0, 5, 8, 0, 0, 15, 1])
    stored = (write.words(true[None], 4).view(np.uint32) - np.uint32(0x11111111)).view(np.int32)
    tensors = {
        "w.qweight": np.zeros((1, 8), np.int32), "w.qzeros": stored, "w.scales": np.ones((1, 8), np.float16),
    }  # fmt: skip
    got = opened(folder(tmp_path, "gptq", {"bits": 4, "group_size": 8}, tensors)).get("w.weight")
    assert (-got[:, 0]).tolist() == true.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_decoded_to_the_dtype_that_is_asked_for(tmp_path: Path, dtype: Any) -> None:
    tensors, weight = write.awq(np.random.default_rng(3), 16, 32)
    source = opened(folder(tmp_path, "awq", {"bits": 4, "group_size": 32}, {f"w{e}": t for e, t in tensors.items()}))
    spec = ArraySpec(np.dtype(dtype), (16, 32))
    serving = source.serving({"w.weight": spec})
    assert serving.spec("w.weight") == spec
    np.testing.assert_array_equal(serving.get("w.weight"), weight.astype(dtype))
    assert serving.identity != source.identity


def test_the_files_own_tensors_are_served_where_they_are_asked_for(tmp_path: Path) -> None:
    tensors, weight = write.fp8(np.random.default_rng(3), 16, 32, "channel")
    source = opened(folder(tmp_path, "fp8", {}, {f"w{e}": t for e, t in tensors.items()}))
    raw = source.serving({f"w{e}": ArraySpec.of(t) for e, t in tensors.items()})
    assert set(raw) == {"w.weight", "w.weight_scale"}
    np.testing.assert_array_equal(raw.get("w.weight").view(np.uint8), tensors[".weight"].view(np.uint8))
    np.testing.assert_array_equal(source.get("w.weight"), weight)


def changed(tensors: write.Arrays, end: str, value: Any) -> write.Arrays:
    return {e: value if e == end else t for e, t in tensors.items() if e != end or value is not None}


GPTQ = write.gptq(np.random.default_rng(0), 16, 64)[0]
CT = write.compressed(np.random.default_rng(0), 16, 64)[0]
NF4 = write.nf4(np.random.default_rng(0), 16, 64)[0]
NF4_STATE = ".weight.quant_state.bitsandbytes__nf4"
AWQ = write.awq(np.random.default_rng(0), 16, 64)[0]
FP8_EXPERTS = write.fp8_experts(np.random.default_rng(0), (2, 16, 32), (2, 1, 2))[0]
FP8 = write.fp8(np.random.default_rng(0), 16, 64)[0]
I32 = {"bits": 4, "group_size": 32}


@pytest.mark.parametrize(
    ("method", "config", "tensors", "message"),
    [
        ("gptq", {"bits": 3}, GPTQ, "quantization_config.bits: expected 4 or 8, got 3"),
        ("gptq", {"bits": "4"}, GPTQ, "quantization_config.bits: expected an integer, got '4'"),
        ("gptq", I32, changed(GPTQ, ".scales", None),
         "tensor 'w.scales': expected it beside the others of its layer, got none"),
        ("gptq", I32, changed(GPTQ, ".qzeros", np.zeros(3, np.int32)), "'w.qzeros': expected int32 of rank 2, got i32[3]"),
        ("gptq", I32, changed(GPTQ, ".qweight", np.zeros((0, 3), np.int32)),
         "'w.qweight': expected int32 of rank 2, got i32[0, 3]"),
        ("gptq", {"bits": 8, "group_size": 32}, changed(GPTQ, ".g_idx", None),
         "tensor 'w.scales': expected shape [1, 16], got [2, 16]"),
        ("gptq", {"bits": 4, "group_size": 16}, changed(GPTQ, ".g_idx", None),
         "'w.scales': expected shape [4, 16], got [2, 16]"),
        ("gptq", I32, changed(GPTQ, ".g_idx", np.full(64, 2, np.int32)), "'w.g_idx': expected groups from 0 to 1, got 2 to 2"),
        ("gptq", I32, changed(GPTQ, ".g_idx", np.zeros(63, np.int32)), "'w.g_idx': expected shape [64], got [63]"),
        ("awq", {"bits": 4, "version": "gemv"}, AWQ, "quantization_config: expected 4 bits of version gemm, got 4 of gemv"),
        ("awq", {"bits": 4, "group_size": 16}, AWQ, "tensor 'w.scales': expected shape [4, 16], got [2, 16]"),
        ("compressed-tensors", {}, changed(CT, ".weight_shape", np.array([16, 61])),
         "'w.weight_scale': expected groups that divide 61 inputs, or of a size in the configuration, none, got 2"),
        ("compressed-tensors", {}, changed(CT, ".weight_shape", np.array([16, 20])),
         "'w.weight_packed': expected [16, 3] (4 bits) or [16, 5] (8 bits), got [16, 8]"),
        ("compressed-tensors", {}, changed(CT, ".weight_shape", np.array([16, 0])),
         "'w.weight_shape': expected two sizes, got [16, 0]"),
        ("compressed-tensors", {}, changed(CT, ".weight_scale", np.ones((8, 2), np.float32)),
         "'w.weight_scale': expected shape [16, 2], got [8, 2]"),
        ("fp8", {"weight_block_size": [128]}, FP8, "quantization_config.weight_block_size: expected two sizes, got [128]"),
        ("fp8", {"weight_block_size": [8, 8]}, FP8, "'w.weight_scale_inv': expected shape [2, 8] or [] or [1], got [1, 1]"),
        ("fp8", {"weight_block_size": [8, 8]}, FP8_EXPERTS, "tensor 'w_scale_inv': expected shape [2, 2, 4] or [2, 16, 1] or"),
        ("bitsandbytes", {}, changed(NF4, NF4_STATE, np.frombuffer(b"{}", np.uint8)),
         "expected the state of a quantized matrix in JSON, got KeyError: 'shape'"),
        ("bitsandbytes", {}, changed(NF4, NF4_STATE, np.frombuffer(b"{", np.uint8)), "in JSON, got JSONDecodeError"),
        ("bitsandbytes", {}, changed(NF4, ".weight", np.zeros((128, 1), np.float16)),
         "'w.weight': expected shape [512, 1] or [1, 512], got [256, 1]"),
        ("bitsandbytes", {}, NF4 | {".weight.nested_offset": np.zeros((), np.float32)},
         "'w.weight.nested_offset': expected the offset in the state of the quantized matrix, got a tensor, too"),
        ("bitsandbytes", {}, changed(NF4, ".weight.absmax", np.zeros(3, np.uint8)),
         "'w.weight.absmax': expected shape [16], got [3]"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    tmp_path: Path, method: str, config: dict[str, Any], tensors: write.Arrays, message: str
) -> None:
    path = folder(tmp_path, method, config, {f"w{e}": t for e, t in tensors.items()})
    with pytest.raises(RelaxError) as caught:
        opened(path)
    assert message in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_mutated_metadata_is_refused_or_decoded(tmp_path: Path) -> None:
    """Whatever config.json and the tensors' dtypes and shapes say: a weight, or a RelaxError that names the file."""
    rng = random.Random(5)
    refused = 0
    for seed in range(150):
        name = rng.choice(list(CASES))
        method, config, writer = CASES[name]
        tensors = {f"w{e}": t for e, t in writer(np.random.default_rng(seed))[0].items()}
        path = tmp_path / str(seed)
        path.mkdir()
        _mutate(rng, config := dict(config), tensors)
        said = _refusal(folder(path, method, config, tensors))
        assert said is None or str(path) in said
        refused += said is not None
    assert refused > 30


def _refusal(path: Path) -> str | None:
    try:
        source = opened(path)
        for weight in source:
            source.get(weight)
    except RelaxError as error:
        return str(error)
    return None


def _mutate(rng: random.Random, config: dict[str, Any], tensors: write.Arrays) -> None:
    key = rng.choice(list(tensors))
    array = tensors[key]
    choice = rng.randrange(6)
    if choice == 0:
        del tensors[key]
    elif choice == 1:
        tensors[key] = array[: array.shape[0] // 2] if array.ndim else np.zeros((2, 2), array.dtype)
    elif choice == 2:
        tensors[key] = array.reshape(-1)
    elif choice == 3:
        tensors[key] = np.zeros(array.shape, rng.choice([np.int64, np.float64, np.uint8, np.float32]))
    elif choice == 4 and config:
        config[rng.choice(list(config))] = rng.choice([None, -3, 0, 7, "x", [1], {}, 2**40, True])
    elif array.size:
        raw = bytearray(np.ascontiguousarray(array).tobytes())
        raw[rng.randrange(len(raw))] = rng.randrange(256)
        tensors[key] = np.frombuffer(bytes(raw), array.dtype).reshape(array.shape)


@pytest.mark.parametrize(
    ("name", "config", "writer"),
    [
        ("quantize_config.json", {"bits": 4, "group_size": 32, "sym": True}, partial(write.gptq, n=16, k=64)),
        ("quant_config.json", {"w_bit": 4, "q_group_size": 32, "version": "GEMM"}, partial(write.awq, n=16, k=64)),
    ],
)
def test_files_that_old_packers_write(tmp_path: Path, name: str, config: dict[str, Any], writer: Writer) -> None:
    tensors, weight = writer(np.random.default_rng(7))
    write_safetensors(tmp_path / "model.safetensors", {f"w{e}": t for e, t in tensors.items()})
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / name).write_text(json.dumps(config))
    np.testing.assert_array_equal(opened(tmp_path).get("w.weight"), weight)


def test_most_symmetric_layers_say_the_version(tmp_path: Path) -> None:
    """One small layer whose zero points happen to be 7 says less than the others."""
    rng = np.random.default_rng(7)
    layers = [write.gptq(rng, 40, 64, version=2) for _ in range(2)]
    tensors = {f"{i}{e}": t for i, (parts, _) in enumerate(layers) for e, t in parts.items()}
    odd = write.gptq(rng, 8, 32, version=2)[0] | {".qzeros": np.full((1, 1), 0x77777777, np.int32)}
    tensors |= {f"a{e}": t for e, t in odd.items()}
    source = opened(folder(tmp_path, "gptq", {"bits": 4, "group_size": 32}, tensors))
    assert source.format == "gptq v2"
    np.testing.assert_array_equal(source.get("1.weight"), layers[1][1])


def test_methods_without_decoder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        RelaxError,
        match=r"quantization_config.quant_method: expected one out of awq, .*, got 'hqq'",
    ):
        opened(folder(tmp_path, "hqq", {"quant_type": "int4_weight_only"}, {"w": np.zeros(3, np.float32)}))
    (tmp_path / "config.json").write_text(json.dumps({"text_config": {"quantization_config": [1]}}))
    with pytest.raises(RelaxError, match=r"quantization_config: expected a JSON object, got list"):
        opened(tmp_path)
