"""Weights that are written for others: their own libraries read what the executable computes with, and so do we."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import gguf
import ml_dtypes
import numpy as np
import pytest
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from safetensors.torch import load_file

import relaxir as rx
from relaxir import RelaxError
from relaxir.lowering.target import Target
from relaxir.runtime import export
from relaxir.weights import write_safetensors
from relaxir.weights.formats.gguf_names import GGUF_ARCHITECTURES, file_name, model_name

LAYER = "model.layers.0.self_attn"
EMBED, NORM, QUERY, KEY = "model.embed_tokens.weight", "model.norm.weight", f"{LAYER}.q_proj.weight", f"{LAYER}.k_proj.weight"
CONFIG = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "vocab_size": 10, "rope_theta": 5e5,
    "tie_word_embeddings": False,
}  # fmt: skip
MODULE = rx.Module.parse(f"""
func.func @main(%x: tensor<64x64xf32>, %i: tensor<10xi64>, %e: tensor<10x64xf32> {{relax.name = "{EMBED}"}},
                %n: tensor<64xf32> {{relax.name = "{NORM}"}}, %q: tensor<64x64xf32> {{relax.name = "{QUERY}"}},
                %k: tensor<32x64xf32> {{relax.name = "{KEY}"}})
    -> (tensor<10x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x32xf32>)
    attributes {{relax.num_input = 2 : i64}} {{
  %0 = "relax.take"(%e, %i) {{axis = 0 : i64}} : (tensor<10x64xf32>, tensor<10xi64>) -> tensor<10x64xf32>
  %1 = "relax.multiply"(%x, %n) : (tensor<64x64xf32>, tensor<64xf32>) -> tensor<64x64xf32>
  %2 = "relax.permute_dims"(%q) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = "relax.matmul"(%x, %2) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = "relax.permute_dims"(%k) : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %5 = "relax.matmul"(%x, %4) : (tensor<64x64xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  return %0, %1, %3, %5 : tensor<10x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x32xf32>
}}
""")


@functools.cache
def compiled(weights: str | None = None) -> rx.Executable:
    return rx.compile(MODULE, weights=weights)


def raw() -> dict[str, np.ndarray[Any, Any]]:
    """With groups of zeros, of numbers that f16 has no scale for or hardly one, and whose extremes are of either sign."""
    rng = np.random.default_rng(0)
    found = {n: rng.standard_normal(s).astype(np.float32) for n, s in ((EMBED, (10, 64)), (QUERY, (64, 64)), (KEY, (32, 64)))}
    found[QUERY][0, :32], found[QUERY][1, :32], found[QUERY][2, :32] = 0, 1e-7, 5e5
    found[QUERY][3, :2] = 8, -8
    return found | {NORM: rng.standard_normal(64).astype(ml_dtypes.bfloat16)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "in"
    place.mkdir()
    write_safetensors(place / "model.safetensors", raw())
    (place / "config.json").write_text(json.dumps(CONFIG))
    return place


def values(executable: rx.Executable, weights: object) -> list[np.ndarray[Any, Any]]:
    """The weights that an executable computes with, or as far as that can be seen."""
    return list(executable.bind(executable.prepare(weights))(np.eye(64, dtype=np.float32), np.arange(10)))


def assert_equal(one: list[np.ndarray[Any, Any]], other: list[np.ndarray[Any, Any]]) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("weights", [None, "bf16", "q8_0", "q4_0"])
def test_gguf(folder: Path, weights: str | None) -> None:
    """Its library decodes what the executable computes with, under llama.cpp's names, and so does another executable."""
    executable, path = compiled(weights), folder.parent / "m.gguf"
    llama3 = {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4}
    scaling = llama3 | {"original_max_position_embeddings": 64, "rope_theta": 5e5}
    (folder / "config.json").write_text(json.dumps(CONFIG | {"rope_scaling": scaling}))
    report = executable.prepare(folder, path, format="gguf")
    assert "without a vocabulary: the folder has no tokenizer.json" in report.notes
    assert report.prepared_bytes < path.stat().st_size
    reader = gguf.GGUFReader(path)
    stored = {t.name: t for t in reader.tensors}
    assert stored.pop("rope_freqs.weight").data.tolist() == pytest.approx([1, 2.4417, *6 * [8]], rel=1e-3)
    kind = {None: "F32", "bf16": "BF16", "q8_0": "Q8_0", "q4_0": "Q4_0"}[weights]
    kinds = {"token_embd.weight": "F32", "output_norm.weight": "F32", "blk.0.attn_q.weight": kind, "blk.0.attn_k.weight": kind}
    assert {n: t.tensor_type.name for n, t in stored.items()} == kinds
    assert reader.get_field("llama.rope.freq_base").contents() == 5e5
    assert reader.get_field("llama.attention.head_count_kv").contents() == 2
    assert reader.get_field("general.file_type").contents() == {"F32": 0, "BF16": 32, "Q8_0": 7, "Q4_0": 2}[kind]
    got = values(executable, folder)
    decoded = gguf.dequantize(stored["blk.0.attn_k.weight"].data, stored["blk.0.attn_k.weight"].tensor_type)
    np.testing.assert_array_equal(decoded.reshape(2, 8, 2, 64).swapaxes(1, 2).reshape(32, 64), got[3].T)
    assert_equal(values(compiled(), path), got)


@pytest.mark.parametrize("weights", [None, "bf16", "int8", "int4", "q8_0"])
def test_safetensors(folder: Path, weights: str | None) -> None:
    executable, out = compiled(weights), folder.parent / "out"
    out.mkdir()
    executable.prepare(folder, out / "model.safetensors", format="safetensors", jobs=2)
    got = values(executable, folder)
    # Three bytes of a row leave 2**-23 of it, and their scales are rounded, where tile registers multiply them.
    rounding = 2.0**-21 if weights == "int8" and Target.host().weight_layouts.int8_exact else 0
    for a, b in zip(values(compiled(), out if weights not in (None, "bf16") else out / "model.safetensors"), got, strict=True):
        np.testing.assert_allclose(a, b, rtol=rounding)
    tensors = load_file(out / "model.safetensors")
    assert tensors[NORM].dtype == torch.bfloat16
    if weights in (None, "bf16"):
        assert tensors[KEY].dtype == (torch.float32 if weights is None else torch.bfloat16)
        return
    config = json.loads((out / "config.json").read_text())
    table = config.pop("quantization_config")
    assert (config, table["ignore"]) == (CONFIG, [EMBED.removesuffix(".weight")])
    how = table["config_groups"]["group_0"]["weights"]
    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**how), format=table["format"])
    layer = {n.removeprefix(f"{LAYER}.k_proj."): t for n, t in tensors.items() if f"{LAYER}.k_proj." in n}
    decoded = BaseCompressor.get_value_from_registry(table["format"]).decompress(layer, scheme)["weight"]
    np.testing.assert_allclose(decoded.numpy(), got[3].T, rtol=rounding)


@pytest.mark.parametrize("k", [2, 4])
def test_short_rows_of_eight_bits(tmp_path: Path, k: int) -> None:
    """Their shapes are those of four bits, too."""
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("n", k)), b.permute_dims(b.weight("l.weight", (24, k)))))
    module, out, eye = b.build(), tmp_path / "out", np.eye(k, dtype=np.float32)
    weight = np.random.default_rng(0).standard_normal((24, k)).astype(np.float32)
    write_safetensors(tmp_path / "in.safetensors", {"l.weight": weight})
    out.mkdir()
    rx.compile(module, weights="int8").prepare(tmp_path / "in.safetensors", out / "model.safetensors", format="safetensors")
    plain = rx.compile(module)
    got = plain.bind(plain.prepare(out))(eye).T
    np.testing.assert_allclose(got, weight, atol=np.abs(weight).max() / 254 * 1.01)


def test_pieces_and_interruptions_change_no_byte(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = compiled("q4_0")
    whole, path = folder.parent / "whole.gguf", folder.parent / "m.gguf"
    report = executable.prepare(folder, whole, format="gguf")
    monkeypatch.setattr(export, "_PIECE_BYTES", 2000)

    def fail(progress: rx.PrepareProgress) -> None:
        if progress.steps_done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        executable.prepare(folder, path, format="gguf", progress=fail)
    again = executable.prepare(folder, path, format="gguf")
    assert (again.steps_run, again.steps_skipped) == (2, 2)
    assert again.predicted_peak_bytes < report.predicted_peak_bytes
    assert path.read_bytes() == whole.read_bytes()


COLUMNS = """
func.func @main(%x: tensor<8x32xf32>, %a: tensor<32x64xf32> {relax.name = "a.weight"},
                %b: tensor<32x32xf32> {relax.name = "b.weight"}) -> (tensor<8x64xf32>, tensor<8x32xf32>)
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %a) : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
  %1 = "relax.negative"(%b) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %2 = "relax.matmul"(%x, %1) : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
  return %0, %2 : tensor<8x64xf32>, tensor<8x32xf32>
}
"""


@pytest.mark.parametrize("format", ["gguf", "safetensors"])
def test_groups_that_no_format_has(tmp_path: Path, format: str) -> None:
    raw = {"a.weight": np.ones((32, 64), np.float32), "b.weight": np.ones((32, 32), np.float32)}
    executable = rx.compile(rx.Module.parse(COLUMNS), weights="q8_0")
    text = (
        "'a.weight': .* got groups of its columns: .*{keep=a.weight}.*\n.*'b.weight': .* got groups of what is computed from it"
    )
    with pytest.raises(RelaxError, match=text):
        executable.prepare(raw, tmp_path / f"model.{format}", format=format)


def test_what_cannot_be_written_is_listed(folder: Path) -> None:
    path = folder.parent / "m.gguf"
    with pytest.raises(RelaxError, match=r"2 problems\n.*q_proj.*a scale in f16 per 32 inputs for Q8_0, got one in f32 per 64: "
                       r"compile with weights='q8_0'"):  # fmt: skip
        compiled("int8").prepare(folder, path, format="gguf")
    with pytest.raises(RelaxError, match=r"expected the name model\.safetensors"):
        compiled("int4").prepare(folder, folder.parent / "m.safetensors", format="safetensors")
    with pytest.raises(RelaxError, match=r"in/config\.json': expected none, or the one"):
        compiled("int4").prepare(raw(), folder / "model.safetensors", format="safetensors")
    assert not path.exists()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model_type", "gpt2", "expected a model_type of llama, .* got 'gpt2'"),
        ("hidden_size", None, "hidden_size: expected a number to write as GGUF, got None"),
        (
            "rope_scaling",
            {"rope_type": "dynamic"},
            "embeddings that are not scaled, or as linear, yarn or llama3, .* got 'dynamic'",
        ),
        ("rope_scaling", {"rope_type": "llama3"}, "factor: expected a number to write as GGUF, got None"),
    ],
)
def test_models_without_metadata_are_refused(folder: Path, key: str, value: object, message: str) -> None:
    (folder / "config.json").write_text(json.dumps(CONFIG | {key: value}))
    with pytest.raises(RelaxError, match=message):
        compiled().prepare(folder, folder.parent / "m.gguf", format="gguf")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": ["gguf"]}, "expected a format of safetensors, gguf or None, got \\['gguf'\\]"),
        ({"format": "onnx"}, "expected a format of safetensors, gguf or None, got 'onnx'"),
        ({"only": [KEY]}, "expected one file to write whole with format=, got only="),
        ({"dst": None}, "got no dst"),
        ({"memory_limit": 10}, "expected a memory limit of .* bytes or more, got 10"),
    ],
)
def test_options(folder: Path, options: dict[str, Any], message: str) -> None:
    given = {"src": folder, "dst": folder.parent / "m.gguf", "format": "gguf"} | options
    with pytest.raises(RelaxError, match=message):
        compiled().prepare(**given)


def test_arrays_keep_their_names(tmp_path: Path) -> None:
    """Without a configuration nothing is known of an architecture."""
    executable, path = compiled("q8_0"), tmp_path / "m.gguf"
    report = executable.prepare(raw(), path, format="gguf")
    assert "no config.json" in str(report)
    assert {t.name for t in gguf.GGUFReader(path).tensors} == set(raw())
    assert_equal(values(compiled(), path), values(executable, raw()))


@pytest.mark.parametrize("architecture", GGUF_ARCHITECTURES)
def test_names_of_files(architecture: str) -> None:
    """A model's name is that of one tensor: those of models come back."""
    stored = [f"blk.7.{name}.weight" for name in GGUF_ARCHITECTURES[architecture]] + ["output.weight", "output_norm.bias"]
    named = [model_name(architecture, n) for n in stored]
    assert [model_name(architecture, str(file_name(architecture, n))) for n in named] == named
    assert file_name(architecture, "model.layers.0.other.weight") is None


def test_the_router_of_mixtral_has_its_name_in_files() -> None:
    assert file_name("llama", "model.layers.3.block_sparse_moe.gate.weight") == "blk.3.ffn_gate_inp.weight"
