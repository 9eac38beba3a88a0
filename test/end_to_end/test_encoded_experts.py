"""Experts in quantized checkpoints: products read their integers, also where a graph takes experts out one by one."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers

import relaxir as rx
from relaxir import checkpoint as checkpoints
from relaxir.checkpoint_at_once import side_by_side
from relaxir.dialect.reports.checkpoint import CheckpointWeights
from relaxir.dialect.reports.kernels import KernelSection
from relaxir.lowering.cpu import codegen
from relaxir.transformers.experts import EXPERTS
from relaxir.weights import Checkpoint, write_safetensors
from relaxir.weights.quantizing import quantized
from support import encoded_weights as write
from support import gguf_files, models

Kind = gguf.GGMLQuantizationType
TOKENS = torch.tensor([[3, 14, 15, 92, 65]])
#: Of each file's architecture the configuration, and what its layers have that models without experts have not.
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("mixtral", {"intermediate_size": 64, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen3moe": (
        "qwen3_moe",
        {"moe_intermediate_size": 64, "num_experts": 4, "num_experts_per_tok": 2, "head_dim": 16, "norm_topk_prob": True},
    ),
}
NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm",
    "mlp.gate": "ffn_gate_inp", "mlp.experts.down_proj": "ffn_down_exps",
}  # fmt: skip


class Logits(torch.nn.Module):
    """A model of transformers under its own names."""

    def __init__(self, architecture: str):
        super().__init__()
        kind, more = CONFIGS[architecture]
        heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
        config: Any = transformers.AutoConfig.for_model(
            kind, vocab_size=96, hidden_size=64, num_hidden_layers=1, **heads, **more
        )
        torch.manual_seed(0)
        whole: Any = transformers.AutoModelForCausalLM.from_config(config, experts_implementation=EXPERTS).eval()
        self.model, self.lm_head = whole.model, whole.lm_head
        for parameter in self.parameters():
            torch.nn.init.normal_(parameter, std=0.2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.lm_head(self.model(tokens, use_cache=False).last_hidden_state)


@cache
def imported(architecture: str) -> tuple[Logits, rx.Module]:
    model = Logits(architecture)
    with torch.no_grad(), models.quiet():
        return model, rx.from_torch(torch.export.export(model, (TOKENS,)))


def write_model(path: Path, architecture: str) -> dict[str, torch.Tensor]:
    """The model as llama.cpp's converter writes it, and what its weights mean under their own names."""
    model, tensors = imported(architecture)[0], dict[str, Any]()
    meaning: dict[str, torch.Tensor] = {}
    for name, parameter in model.named_parameters():
        value, own = parameter.detach().numpy(), name.removesuffix(".weight").removeprefix("model.layers.0.")
        prefix = "blk.0." if "layers" in name else ""
        kind = Kind.F32 if value.ndim == 1 or own == "mlp.gate" else Kind.Q4_0 if "experts" in own else Kind.Q8_0
        parts = {f"{prefix}{NAMES.get(own, '')}.weight": value}
        if own.endswith("gate_up_proj"):
            parts = {
                f"blk.0.ffn_{what}_exps.weight": part for what, part in zip(("gate", "up"), np.split(value, 2, 1), strict=True)
            }
        read = [gguf.dequantize(gguf.quantize(part, kind), kind) for part in parts.values()]
        meaning[name] = torch.from_numpy(np.concatenate(read, 1) if len(read) > 1 else read[0])
        heads = {"attn_q": 4, "attn_k": 2}.get(NAMES.get(own, ""), 1) if architecture == "llama" else 1
        for key, part in parts.items():
            tensors[key] = (gguf.quantize(gguf_files.permuted(part, heads) if heads > 1 else part, kind), kind)
    gguf_files.write(path, tensors, architecture)
    return meaning


@pytest.mark.parametrize("architecture", CONFIGS)
def test_gguf_of_a_whole_model(tmp_path: Path, architecture: str) -> None:
    path = tmp_path / "m.gguf"
    weights, (model, module) = write_model(path, architecture), imported(architecture)
    with torch.no_grad():
        expected = torch.func.functional_call(model, weights, (TOKENS,))
    for checkpoint in (None, path) if architecture == "llama" else (path,):
        exe = rx.compile(module, checkpoint=checkpoint)
        exe.bind(exe.prepare(path))
        # Sums of up to 96 products in another order, in f32.
        torch.testing.assert_close(exe(TOKENS), expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())
    (section,) = [s for s in exe.report.sections if isinstance(s, CheckpointWeights)]
    assert not [w for w in section.decoded if not w.reason.startswith("float32")]
    assert {w.name.rsplit(".", 1)[1] for w in section.kept if "experts" in w.name} == {"gate_up_proj", "down_proj"}


HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_experts_per_tok": 2}
MOE = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_experts_per_tok": 2}
AT_ONCE: dict[str, tuple[str, dict[str, Any]]] = {
    "mxfp4": ("gpt_oss", {**MOE, "intermediate_size": 32, "num_local_experts": 4, "head_dim": 16}),
    "fp8": ("mixtral", {**MOE, "intermediate_size": 32, "num_local_experts": 4}),
    "awq": ("qwen3_moe", {**MOE, "moe_intermediate_size": 32, "num_experts": 4, "head_dim": 16}),
}


class PlainLogits(torch.nn.Module):
    """A model of transformers, whose experts are multiplied with as transformers has it."""

    def __init__(self, kind: str, implementation: str, **sizes: Any):
        super().__init__()
        config: Any = transformers.AutoConfig.for_model(kind, vocab_size=96, num_hidden_layers=1, **sizes)
        torch.manual_seed(0)
        whole: Any = transformers.AutoModelForCausalLM.from_config(config, experts_implementation=implementation).eval()
        self.model, self.lm_head = whole.model, whole.lm_head

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.lm_head(self.model(tokens, use_cache=False).last_hidden_state)


def encoded_experts(method: str, weights: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """A checkpoint's tensors; the experts among the weights become what they mean."""
    rng, tensors = np.random.default_rng(0), dict[str, np.ndarray]()
    for name, value in list(weights.items()):
        count, *sizes = value.shape
        if not name.endswith(("gate_up_proj", "down_proj")):
            tensors[name] = value.numpy()
            continue
        if method == "mxfp4":  # the model has the inputs first
            parts, wide = write.mxfp4(rng, count, sizes[1], sizes[0])
            tensors |= {f"{name}{end}": tensor for end, tensor in parts.items()}
        elif method == "fp8":
            parts, wide = write.fp8_experts(rng, (count, *sizes), (count, sizes[0] // 16, sizes[1] // 16))
            tensors |= {f"{name}{end}": tensor for end, tensor in parts.items()}
        else:
            prefix, matrices = name.rpartition(".")[0], list[np.ndarray]()
            names = ("gate_proj", "up_proj") if name.endswith("gate_up_proj") else ("down_proj",)
            for e in range(count):
                made = [write.awq(rng, sizes[0] // len(names), sizes[1]) for _ in names]
                for which, (parts, _) in zip(names, made, strict=True):
                    tensors |= {f"{prefix}.{e}.{which}{end}": tensor for end, tensor in parts.items()}
                matrices.append(np.concatenate([wide for _, wide in made]))
            wide = np.stack(matrices)
        weights[name] = torch.from_numpy(np.ascontiguousarray(wide))
    return tensors


@pytest.mark.parametrize(
    ("method", "implementation"),
    [("mxfp4", "grouped_mm"), ("mxfp4", "batched_mm"), ("fp8", "batched_mm"), ("awq", "grouped_mm")],
)
def test_experts_that_a_model_reads_all_at_once(tmp_path: Path, method: str, implementation: str) -> None:
    """As torch.export gives them without more ado: nothing of an expert is wide, in the file, in memory, or in a call."""
    kind, sizes = AT_ONCE[method]
    model = PlainLogits(kind, implementation, **sizes)
    weights = {name: value.detach() for name, value in model.state_dict().items()}
    write_safetensors(tmp_path / "model.safetensors", encoded_experts(method, weights))
    config = {"quant_method": method, "weight_block_size": [16, 16], "bits": 4, "group_size": 32}
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": config}))
    with torch.no_grad(), models.quiet():
        rows = {1: torch.export.Dim("n", min=2, max=64)}
        exe = rx.compile(rx.from_torch(torch.export.export(model, (TOKENS,), dynamic_shapes=[rows])), checkpoint=tmp_path)
        expected = torch.func.functional_call(model, weights, (TOKENS,))
    exe.bind(exe.prepare(tmp_path))
    # Sums of up to 96 products in another order, in f32.
    torch.testing.assert_close(exe(TOKENS), expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())
    (section,) = [s for s in exe.report.sections if isinstance(s, CheckpointWeights)]
    assert section.decoded == ()
    assert len(section.kept) == (3 * 4 if method == "awq" else 2)
    stored = Checkpoint(tmp_path / "model.safetensors")
    held = sum(w.array.nbytes for n, w in exe.manifest.prepared_weights.items() if ".experts." in n)
    # Scales of 16 x 16 values (fp8) are prepared as those of 16.
    assert held <= 1.25 * sum(stored.spec(n).nbytes for n in stored if ".experts." in n)


@pytest.mark.parametrize("method", ["mxfp4", "awq"])
def test_loaded_for_a_gpu(tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of each expert together, times the matrix that the file's narrow tensors make side by side."""
    kind, sizes = AT_ONCE[method]
    model = PlainLogits(kind, "grouped_mm", **sizes)
    weights = {name: value.detach() for name, value in model.state_dict().items()}
    write_safetensors(tmp_path / "model.safetensors", encoded_experts(method, weights))
    own = {"architectures": [{"gpt_oss": "GptOssForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM"}[kind]]}
    how = {"quantization_config": {"quant_method": method, "bits": 4, "group_size": 32}}
    (tmp_path / "config.json").write_text(json.dumps(model.model.config.to_dict() | own | how))
    grouped: list[bool] = []
    monkeypatch.setattr(checkpoints, "side_by_side", lambda *a: grouped.append(True) or side_by_side(*a))
    with torch.no_grad(), models.quiet():
        expected = torch.func.functional_call(model, weights, (TOKENS,))
        got = rx.transformers.load(tmp_path, target="cuda:sm_80", device="emulated", max_length=8)(TOKENS).logits
    # Sums of up to 96 products in another order, in f32.
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())
    assert bool(grouped) == (method == "awq")  # the others are one tensor in the file


def one_by_one(count: int, k: int, n: int, turned: bool) -> rx.Module:
    """``x @ w[i]`` of each expert, of weights ``[count, n, k]``, or ``[count, k, n]`` where they are not turned."""
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", ("m", k)), b.weight("w", (count, n, k) if turned else (count, k, n))
        parts = [b.squeeze(b.strided_slice(w, axes=[0], begin=[i], end=[i + 1]), axis=[0]) for i in range(count)]
        b.output(*(b.matmul(x, b.permute_dims(p, axes=[1, 0]) if turned else p) for p in parts))
    return b.build()


@pytest.mark.parametrize("kind", ["mxfp4", "Q4_K", "Q6_K", "Q8_0"])
def test_experts_taken_one_by_one(tmp_path: Path, kind: str) -> None:
    rng, count, k, n = np.random.default_rng(0), 3, 256, 64
    bits = {"mxfp4": 4 + 8 / 32, "Q4_K": 4 + 2 * (8 / 32 + 16 / 256), "Q6_K": 6 + 8 / 16 + 16 / 256, "Q8_0": 8 + 16 / 32}
    if kind == "mxfp4":
        path, (tensors, weight) = tmp_path, write.mxfp4(rng, count, n, k)
        write_safetensors(path / "model.safetensors", {f"w{end}": tensor for end, tensor in tensors.items()})
        (path / "config.json").write_text('{"quantization_config": {"quant_method": "mxfp4"}}')
    else:
        raw = gguf_files.blocks(rng, kind, count * n, k // gguf_files.BLOCKS[kind].elements, usual=True)
        path = gguf_files.write(tmp_path / "m.gguf", {"w": (raw.reshape(count, n, -1), Kind[kind])})
        weight = gguf.dequantize(raw, Kind[kind]).reshape(count, n, k).swapaxes(1, 2)
    exe = rx.compile(one_by_one(count, k, n, turned=kind != "mxfp4"), checkpoint=path)
    exe.bind(exe.prepare(path, tmp_path / "prepared.safetensors"))
    x = rng.standard_normal((5, k), np.float32)
    for got, wide in zip(exe(x), weight, strict=True):
        # Sums of 256 products in another order, in f32.
        assert (np.abs(got - x @ wide) <= k * np.finfo(np.float32).eps * (np.abs(x) @ np.abs(wide))).all()
    assert sum(w.array.nbytes for w in exe.manifest.prepared_weights.values()) == bits[kind] / 8 * weight.size
    (kernels,) = [s.kernels for s in exe.report.sections if isinstance(s, KernelSection) and s.function == "main"]
    assert {kernel.kind for kernel in kernels} == {"contraction"}


@pytest.mark.parametrize("which", ["grouped", "chosen"])
def test_experts_share_their_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    """What is compiled does not grow with the number of experts, whose rows come from flags at other places."""
    found: list[int] = []
    units_of = codegen.units_of
    monkeypatch.setenv("RELAXIR_CACHE_DIR", "")  # kernels of other tests are no units
    monkeypatch.setattr(codegen, "units_of", lambda text: found.append(len(units := list(units_of(text)))) or units)
    rng, k, n = np.random.default_rng(0), 64, 32
    for count in (16, 24):
        raw = gguf_files.blocks(rng, "Q4_0", count * n, k // 32, usual=True)
        path = gguf_files.write(tmp_path / f"m{count}.gguf", {"w": (raw.reshape(count, n, -1), Kind.Q4_0)})
        b = rx.Builder()
        with b.function("main"):
            x = b.input("x", ("m", k))
            other = b.input("other", (count,) if which == "grouped" else ("m",), "i64")
            w = b.weight("w", (count, n, k))
            if which == "grouped":
                y = b.grouped_matmul(x, b.permute_dims(b.reshape(w, (count * n, k)), axes=[1, 0]), other)
            else:
                y = b.matmul(b.expand_dims(x, axis=[1]), b.permute_dims(b.take(w, other, axis=0), axes=[0, 2, 1]))
            b.output(y)
        exe = rx.compile(b.build(), checkpoint=path, cache=False)
        exe.bind(exe.prepare(path))
        rows, experts = rng.standard_normal((7, k), np.float32), np.array([0, 3, 3, count - 2, 5, 0, 9])
        experts = np.sort(experts) if which == "grouped" else experts
        got = exe(rows, np.searchsorted(experts, np.arange(count), "right") if which == "grouped" else experts)
        wide = gguf.dequantize(raw, Kind.Q4_0).reshape(count, n, k)
        expected = np.stack([wide[e] @ row for e, row in zip(experts, rows, strict=True)])
        # Sums of 64 products in another order, in f32.
        np.testing.assert_allclose(np.reshape(got, expected.shape), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    assert found[0] == found[1]


def test_a_model_s_experts_share_their_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """So do those that are exported one by one, whose shares are columns of one tensor."""
    found: list[int] = []
    units_of = codegen.units_of
    monkeypatch.setenv("RELAXIR_CACHE_DIR", "")  # kernels of other tests are no units
    monkeypatch.setattr(codegen, "units_of", lambda text: found.append(len(units := list(units_of(text)))) or units)
    for count in (8, 12):
        config: Any = transformers.AutoConfig.for_model(
            "mixtral",
            vocab_size=32,
            hidden_size=64,
            num_hidden_layers=1,
            intermediate_size=64,
            num_local_experts=count,
            **HEADS,
        )
        block: Any = transformers.AutoModelForCausalLM.from_config(config, experts_implementation=EXPERTS).eval()
        layer, rows = block.model.layers[0].mlp, torch.randn(1, 5, 64)
        with torch.no_grad(), models.quiet():
            exe = rx.compile(rx.from_torch(torch.export.export(layer, (rows,))), cache=False)
            exe.bind(exe.prepare({name: parameter.detach() for name, parameter in layer.named_parameters()}))
            # Sums of 64 products in another order, in f32.
            torch.testing.assert_close(exe(rows), layer(rows), rtol=1e-4, atol=1e-5)
    assert found[0] == found[1]


def test_each_expert_is_read_once_by_one_computation(tmp_path: Path) -> None:
    """Steps read their own part of the weight, whoever reads the others."""
    exe = rx.compile(one_by_one(4, 64, 48, turned=True))
    weight, x = np.random.default_rng(0).standard_normal((4, 48, 64), np.float32), np.ones((2, 64), np.float32)
    write_safetensors(tmp_path / "raw.safetensors", {"w": weight})
    assert len({s.symbol for s in exe.manifest.steps}) == 1
    assert [s.reads[0].ranges for s in exe.manifest.steps] == [((0, i, i + 1),) for i in range(4)]
    exe.bind(exe.prepare(tmp_path / "raw.safetensors", tmp_path / "prepared.safetensors", jobs=2))
    for source in (None, {"w": weight}):
        if source is not None:
            exe.bind(exe.prepare(source))
        for got, wide in zip(exe(x), weight, strict=True):
            np.testing.assert_allclose(got, x @ wide.T, rtol=1e-5, atol=1e-5)
    exe.update({"w": weight * np.float32(2)})
    np.testing.assert_allclose(exe(x)[3], 2 * x @ weight[3].T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("architecture", "weights"), [("llama", "q8_0"), ("qwen3moe", None)])
def test_written_as_gguf(tmp_path: Path, architecture: str, weights: str | None) -> None:
    """What the package decodes is what the executable computes with, bit by bit, and what reads the file computes the same."""
    model, module = imported(architecture)
    (tmp_path / "in").mkdir()
    write_safetensors(tmp_path / "in" / "model.safetensors", {n: p.detach().numpy() for n, p in model.named_parameters()})
    (tmp_path / "in" / "config.json").write_text(model.model.config.to_json_string(use_diff=False))
    exe, path = rx.compile(module, weights=weights), tmp_path / "m.gguf"
    exe.prepare(tmp_path / "in", path, format="gguf")
    reader = gguf.GGUFReader(path)
    stored = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in reader.tensors}
    for what, half in (("gate", 0), ("up", 1)):
        value = np.split(model.get_parameter("model.layers.0.mlp.experts.gate_up_proj").detach().numpy(), 2, 1)[half]
        found = quantized(value.reshape(-1, 64), 8, 32, scale="f16")  # as compiled code does, test_quantized
        wide = (found.integers.reshape(-1, 32) * found.scales.reshape(-1, 1)).reshape(value.shape)
        expected = value if weights is None else wide
        np.testing.assert_array_equal(stored[f"blk.0.ffn_{what}_exps.weight"], expected)
    assert stored["blk.0.ffn_down_exps.weight"].shape == (4, 64, 64)
    assert reader.get_field(f"{architecture}.expert_count").contents() == 4
    assert reader.get_field(f"{architecture}.expert_used_count").contents() == 2
    got = exe.bind(exe.prepare(tmp_path / "in"))(TOKENS)
    again = rx.compile(module)
    torch.testing.assert_close(again.bind(again.prepare(path))(TOKENS), got, rtol=1e-4, atol=1e-4 * got.abs().max().item())


def test_experts_that_llama_cpp_weighs_otherwise(tmp_path: Path) -> None:
    model, module = imported("qwen3moe")
    write_safetensors(tmp_path / "model.safetensors", {n: p.detach().numpy() for n, p in model.named_parameters()})
    config = model.model.config.to_dict()
    (tmp_path / "config.json").write_text(json.dumps(config | {"norm_topk_prob": False}))
    with pytest.raises(rx.RelaxError, match=r"norm_topk_prob: expected True, as llama.cpp has it for qwen3moe, got False"):
        rx.compile(module).prepare(tmp_path, tmp_path / "m.gguf", format="gguf")


@pytest.mark.parametrize(("implementation", "weights"), [("grouped_mm", None), ("grouped_mm", "int8"), (EXPERTS, "int4")])
def test_written_for_transformers(tmp_path: Path, implementation: str, weights: str | None) -> None:
    """Experts that the folder has one by one are so in the file, packed each: transformers computes the same from it."""
    model = PlainLogits("mixtral", implementation, **AT_ONCE["fp8"][1])
    whole: Any = transformers.AutoModelForCausalLM.from_config(model.model.config)
    whole.load_state_dict(model.state_dict())
    whole.save_pretrained(tmp_path / "in")
    with torch.no_grad(), models.quiet():
        exe = rx.compile(rx.from_torch(torch.export.export(model, (TOKENS,))), weights=weights)
    (tmp_path / "out").mkdir()
    exe.prepare(tmp_path / "in", tmp_path / "out" / "model.safetensors", format="safetensors")
    if weights is None:
        (tmp_path / "out" / "config.json").write_bytes((tmp_path / "in" / "config.json").read_bytes())
    before, after = (set(Checkpoint(tmp_path / place / "model.safetensors")) for place in ("in", "out"))
    packed = {name.removesuffix("_packed") for name in after if name.endswith("_packed")}
    experts = {name for name in after | packed if ".experts." in name and name.endswith(".weight")}
    assert experts == {name for name in before if ".experts." in name}
    assert bool(packed) == (weights is not None)
    with models.quiet():
        read: Any = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32).eval()
    with torch.no_grad():
        expected = read(TOKENS).logits
    exe.bind(exe.prepare(tmp_path / "in"))
    # Sums of up to 96 products in another order, in f32.
    torch.testing.assert_close(exe(TOKENS), expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())
