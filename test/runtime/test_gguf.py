"""GGUF files as named tensors: values are those of the ``gguf`` package, names those of transformers; refusals."""

from __future__ import annotations

import random
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from transformers import Qwen2MoeConfig, Qwen2MoeForCausalLM

from relaxir import RelaxError
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.weights import ArraySpec
from relaxir.weights.formats import encoded
from relaxir.weights.formats.encoded import EncodedSource
from relaxir.weights.formats.gguf_file import BLOCKS
from relaxir.weights.formats.gguf_names import GGUF_ARCHITECTURES, model_name
from relaxir.weights.opening import decoded, open_tensors
from support.decoding_memory import assert_no_more_than_said
from support.gguf_files import blocks, permuted, write

Kind = gguf.GGMLQuantizationType

#: Tensors of an architecture that its dense models do not have: experts, fused or separate projections, biases of factors.
NOT_IN_DENSE_MODELS = (
    "exp",
    "gate_inp",
    "attn_qkv",
    "attn_q.",
    "attn_k.",
    "attn_v.",
    "ffn_gate",
    "factors",
    "output.weight",
    "dense_",
)


def opened(path: Path) -> EncodedSource:
    source = decoded(open_tensors(path))
    assert isinstance(source, EncodedSource)
    return source


def equal_bits(got: np.ndarray, want: np.ndarray) -> None:
    """Equal, NaN where there is NaN: which one is the processor's choice."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.nan_to_num(got).view(np.uint32), np.nan_to_num(want).view(np.uint32))


@pytest.mark.parametrize("part", [1, 1 << 22], ids=["in parts", "whole"])
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_are_what_gguf_says(tmp_path: Path, name: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded, "_PART", part)
    raw = blocks(np.random.default_rng(3), name, 24 if part == 1 else 400, 3)
    source = opened(write(tmp_path / "m.gguf", {"t": (raw, Kind[name])}))
    assert list(source) == ["t"]
    with np.errstate(all="ignore"):
        equal_bits(source.get("t"), gguf.dequantize(raw, Kind[name]))


def test_an_exponent_of_255_is_nan(tmp_path: Path) -> None:
    raw = blocks(np.random.default_rng(3), "MXFP4", 2, 2, usual=True)
    raw[1, BLOCKS["MXFP4"].nbytes] = 255
    got = opened(write(tmp_path / "m.gguf", {"t": (raw, Kind["MXFP4"])})).get("t")
    np.testing.assert_array_equal(np.isnan(got), np.repeat([[False, False], [False, True]], 32, axis=1))


@pytest.mark.parametrize("name", BLOCKS)
def test_decoding_takes_no_more_than_is_said(tmp_path: Path, name: str) -> None:
    raw = blocks(np.random.default_rng(3), name, 64, 4096 // BLOCKS[name].elements, usual=True)
    source = opened(write(tmp_path / "m.gguf", {"t": (raw, Kind[name])}))
    assert_no_more_than_said(source, "t")


@pytest.mark.parametrize("name", BLOCKS)
def test_compiled_code_decodes_blocks_alike(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded, "_COMPILED", 0)
    raw = blocks(np.random.default_rng(3), name, 24, 3)
    source = opened(write(tmp_path / "m.gguf", {"t": (raw, Kind[name])}))
    monkeypatch.setattr(encoded, "evaluate", None)
    with np.errstate(all="ignore"):
        equal_bits(source.get("t"), gguf.dequantize(raw, Kind[name]))


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_floats(tmp_path: Path, kind: str) -> None:
    array = np.random.default_rng(1).standard_normal((5, 6)).astype(np.float32)
    raw = gguf.quantize(array, Kind[kind])
    source = opened(write(tmp_path / "m.gguf", {"t": (raw, Kind[kind]), "v": (array[0], None)}))
    equal_bits(source.get("t"), gguf.dequantize(raw, Kind[kind]))
    equal_bits(source.get("v"), array[0])


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "granite"])
@pytest.mark.parametrize("part", [1, 1 << 22], ids=["in parts", "whole"])
def test_names_and_rows_of_architectures(tmp_path: Path, architecture: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded, "_PART", part)
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((n, 32)).astype(np.float32) for n in (32, 16, 16))
    stored = {n: gguf.quantize(permuted(w, h) if architecture != "qwen2" and h else w, Kind.Q8_0)
              for n, w, h in (("q", q, 4), ("k", k, 2), ("v", v, 0))}  # fmt: skip
    tensors = {f"blk.1.attn_{n}.weight": (raw, Kind.Q8_0) for n, raw in stored.items()}
    tensors |= {"token_embd.weight": (q, None), "output_norm.weight": (q[0], None), "rope_freqs.weight": (q[1], None)}
    source = opened(write(tmp_path / "m.gguf", tensors, architecture))
    layer = "model.layers.1.self_attn."
    assert set(source) == {
        f"{layer}q_proj.weight", f"{layer}k_proj.weight", f"{layer}v_proj.weight", "model.embed_tokens.weight",
        "model.norm.weight", "rope_freqs.weight",
    }  # fmt: skip
    for name, w in (("q", q), ("k", k), ("v", v)):
        want = gguf.dequantize(gguf.quantize(w, Kind.Q8_0), Kind.Q8_0)
        equal_bits(source.get(f"{layer}{name}_proj.weight"), want)
    assert source.config["tie_word_embeddings"]


@pytest.mark.parametrize("architecture", GGUF_ARCHITECTURES)
def test_names_are_those_that_gguf_has(architecture: str) -> None:
    number = next(a for a, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    table = gguf.get_tensor_name_map(number, 3)
    own = [t for t in gguf.MODEL_TENSORS[number] if "rope" not in t.name.lower() and "rot" not in t.name.lower()]
    stored = [f"{gguf.TENSOR_NAMES[t].format(bid=2)}.weight" for t in own]
    named = {n: model_name(architecture, n) for n in stored}
    for name, ours in named.items():
        if ours != name:
            wanted = name if ours.endswith(".weight") else name.removesuffix(".weight")  # experts are no module's weight
            assert table.get_name(ours, try_suffixes=(".weight",)) == wanted
    unknown = {n for n, ours in named.items() if ours == n}
    assert not {n for n in unknown if not any(part in n for part in NOT_IN_DENSE_MODELS)}


def test_experts(tmp_path: Path) -> None:
    """Under the names and in the shapes that transformers' own model has; what the two tensors are joined of are blocks."""
    config = Qwen2MoeConfig(
        vocab_size=64, hidden_size=64, moe_intermediate_size=32, shared_expert_intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=4, num_key_value_heads=2, num_experts=4, num_experts_per_tok=2,
    )  # fmt: skip
    with torch.device("meta"):
        wanted = {n: tuple(p.shape) for n, p in Qwen2MoeForCausalLM(config).named_parameters()}
    rng = np.random.default_rng(0)

    def wide(*shape: int) -> tuple[np.ndarray, None]:
        return rng.standard_normal(shape, np.float32), None

    def narrow(kind: str, experts: int, rows: int, inputs: int) -> tuple[np.ndarray, Kind]:
        size = BLOCKS[kind].elements
        return blocks(rng, kind, experts * rows, inputs // size, usual=True).reshape(experts, rows, -1), Kind[kind]

    tensors = {f"{n}.weight": wide(64, 64) for n in ("token_embd", "output", "blk.0.attn_q", "blk.0.attn_output")}
    tensors |= {
        f"{n}.weight": wide(64) for n in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm", "blk.0.ffn_gate_inp_shexp")
    }
    tensors |= {f"blk.0.attn_{n}.weight": wide(32, 64) for n in "kv"} | {"blk.0.attn_q.bias": wide(64)}
    tensors |= {f"blk.0.attn_{n}.bias": wide(32) for n in "kv"} | {"blk.0.ffn_gate_inp.weight": wide(4, 64)}
    tensors |= {f"blk.0.ffn_{n}_shexp.weight": wide(32, 64) for n in ("gate", "up")}
    tensors |= {"blk.0.ffn_down_shexp.weight": wide(64, 32), "blk.0.ffn_gate_exps.weight": narrow("Q4_0", 4, 32, 64)}
    tensors |= {"blk.0.ffn_down_exps.weight": narrow("Q8_0", 4, 64, 32)}
    joined = "model.layers.0.mlp.experts.gate_up_proj"
    for kind in ("Q8_0", "Q4_0"):
        tensors["blk.0.ffn_up_exps.weight"] = narrow(kind, 4, 32, 64)
        source = opened(write(tmp_path / "m.gguf", tensors, "qwen2moe"))
        assert {n: source.spec(n).shape for n in source} == wanted
        halves = [gguf.dequantize(*tensors[f"blk.0.ffn_{n}_exps.weight"]) for n in ("gate", "up")]
        equal_bits(source.get(joined), np.concatenate(halves, 1))
        equal_bits(source.read_part(joined, {0: [(1, 3)]}), np.concatenate(halves, 1)[1:3])
        equal_bits(source.get("model.layers.0.mlp.experts.down_proj"), gguf.dequantize(*tensors["blk.0.ffn_down_exps.weight"]))
        assert_no_more_than_said(source, joined)
        assert source.weights[joined].narrow == ("4 bits, a scale per 32" if kind == "Q4_0" else None)
    tensors["blk.0.ffn_up_exps.weight"] = narrow("Q8_0", 4, 16, 64)
    with pytest.raises(RelaxError, match=r"expected experts of one shape, got \[4, 32, 64\] and \[4, 16, 64\]"):
        opened(write(tmp_path / "m.gguf", tensors, "qwen2moe"))


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f64"])
@pytest.mark.parametrize(
    ("architecture", "more"),
    [("gemma", 1), ("gemma2", 1), ("gemma3", 1), ("gemma-embedding", 1), ("gemma3n", 0), ("gemma4", 0), ("qwen2", 0)],
)
def test_norms_of_gemma(tmp_path: Path, architecture: str, more: int, dtype: str) -> None:
    """As ``convert_hf_to_gguf.py`` writes them (``norm_shift``), whatever dtype a module wants, and whatever their name is."""
    norm = np.array([0.5, -0.25, 3], np.float32)
    tensors = {n: (norm + more, None) for n in ("blk.0.attn_norm.weight", "blk.0.another_norm.weight")}
    tensors["blk.0.attn_q.bias"] = (norm, None)
    source = opened(write(tmp_path / "m.gguf", tensors, architecture))
    served = source.serving(dict.fromkeys(source, ArraySpec(numpy_dtype(dtype), (3,))))
    assert len(list(served)) == 3
    for name in served:
        got = served.get(name)
        assert got.dtype == numpy_dtype(dtype)
        np.testing.assert_array_equal(got.astype(np.float32), norm)


def test_integers_and_wide_floats_are_the_file_s(tmp_path: Path) -> None:
    tensors = {"a": np.array([1, 1 << 30], np.int32), "b": np.array([1 / 3, 2]), "output_norm.weight": np.array([1 / 3])}
    kinds = {"a": Kind.I32, "b": Kind.F64, "output_norm.weight": Kind.F64}
    path = write(tmp_path / "m.gguf", {n: (t.view(np.uint8), kinds[n]) for n, t in tensors.items()}, "gemma3")
    served = opened(path).serving(
        {"a": ArraySpec(np.dtype(np.int32), (2,)), "b": ArraySpec(np.dtype(np.float64), (2,)),
         "model.norm.weight": ArraySpec(np.dtype(np.float64), (1,))}
    )  # fmt: skip
    for name, want in (("a", tensors["a"]), ("b", tensors["b"]), ("model.norm.weight", tensors["output_norm.weight"] - 1)):
        got = served.get(name)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_fields_are_served_where_they_are_asked_for(tmp_path: Path) -> None:
    raw = blocks(np.random.default_rng(3), "Q4_0", 4, 2)
    source = opened(write(tmp_path / "m.gguf", {"t": (raw, Kind.Q4_0)}))
    served = source.serving({"t.d": ArraySpec(np.dtype(np.float16), (4, 2)), "t.qs": ArraySpec(np.dtype(np.uint8), (4, 2, 16))})
    assert set(served) == {"t.d", "t.qs"}
    np.testing.assert_array_equal(served.get("t.qs"), raw.reshape(4, 2, 18)[:, :, 2:])


def sample(path: Path) -> Path:
    return write(path, {"t": (blocks(np.random.default_rng(3), "Q4_0", 4, 2), Kind.Q4_0), "v": (np.ones(3, np.float32), None)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b"GGML" + b[4:], "expected GGUF of version 2 or 3, got b'GGML' of version 3"),
        (lambda b: b"version https://git-lfs" + b, "expected a GGUF file, got a pointer of Git LFS"),
        (lambda b: b[:4] + b"\x09" + b[5:], "got b'GGUF' of version 9"),
        (lambda b: b[:20], "expected a GGUF file, got 20 bytes"),
        (lambda b: b[:40], "more bytes of header, got"),
        (lambda b: b[:-40], "(truncated?)"),
        (lambda b: b[:8] + b"\xff" * 8 + b[16:], "expected "),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, change: object, message: str) -> None:
    path = sample(tmp_path / "m.gguf")
    path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(RelaxError) as caught:
        opened(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_type_without_decoder_is_named(tmp_path: Path) -> None:
    raw = np.zeros((2, 40), np.uint8)
    path = write(tmp_path / "m.gguf", {"t": (raw, Kind.Q8_1)})
    with pytest.raises(RelaxError, match=r"tensor 't': expected one of the types float32, .*Q6_K, .*, got type 9$"):
        opened(path)


def test_mutated_headers_are_refused_or_read(tmp_path: Path) -> None:
    path = sample(tmp_path / "m.gguf")
    whole, rng = path.read_bytes(), random.Random(1)
    header = whole.index(b"v") + 64
    refused = 0
    for _ in range(600):
        raw = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            raw[rng.randrange(header)] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        path.write_bytes(bytes(raw[: rng.randrange(len(raw))] if rng.random() < 0.2 else raw))
        said = _refusal(path)
        refused += said is not None
        assert said is None or str(path) in said
    assert refused > 100


def _refusal(path: Path) -> str | None:
    try:
        source = opened(path)
        for name in source:
            source.get(name)
    except RelaxError as error:
        return str(error)
    return None
