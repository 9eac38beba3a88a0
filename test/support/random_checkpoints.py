"""Random quantized checkpoints of small models: layers of a format in sizes of all kinds, beside plain ones, in shards."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np

import relaxir as rx
from relaxir.weights import write_safetensors
from relaxir.weights.formats.gguf_file import BLOCKS
from support import encoded_weights as write
from support import gguf_files

FORMATS = ("gptq", "awq", "compressed-tensors", "fp8", "bitsandbytes", "gguf")


@dataclass(frozen=True)
class RandomCheckpoint:
    """What was written, and a module of the plain architecture.

    Attributes:
        path: of the file or folder.
        module: products with all matrices, and look-ups of rows of one.
        weights: what the file means, by the module's names, in f32.
        quantized: those of them that are encoded.
        said: what was drawn, for messages.
    """

    path: Path
    module: rx.Module
    weights: dict[str, np.ndarray]
    quantized: tuple[str, ...]
    said: str

    def inputs(self, rng: np.random.Generator, rows: int) -> list[np.ndarray]:
        """One for each matrix in order, and numbers of rows."""
        found = [rng.standard_normal((rows, w.shape[1])).astype(np.float32) for w in self.weights.values()]
        return [rng.integers(0, len(self.weights["embed.weight"]), rows), *found]

    def expected(self, inputs: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Results and how far sums of f32 in another order may be from them."""
        ids, *others = inputs
        products = [(x @ w.T, w.shape[1] * np.finfo(np.float32).eps * (np.abs(x) @ np.abs(w).T))
                    for x, w in zip(others, self.weights.values(), strict=True)]  # fmt: skip
        looked_up = self.weights["embed.weight"][ids]
        return [(looked_up, np.zeros_like(looked_up)), *products]


def random_checkpoint(seed: int, path: Path) -> RandomCheckpoint:
    """A checkpoint of the format that the seed says in turn; all else is drawn."""
    rng, method = np.random.default_rng(seed), FORMATS[seed % len(FORMATS)]
    drawn = _gguf(rng, path) if method == "gguf" else _folder(rng, method, path)
    return RandomCheckpoint(drawn[0], _module(drawn[1]), *drawn[1:])


def _module(weights: dict[str, np.ndarray]) -> rx.Module:
    """Some of the matrices in a function that is called."""
    b = rx.Builder()
    with b.function("inner", private=True) as inner:
        first = next(iter(weights.values()))
        x, w = b.input("x", ("n", first.shape[1])), b.input("w", first.shape)
        b.output(b.matmul(x, b.permute_dims(w)))
    with b.function("main"):
        ids = b.input("ids", ("n",), "i64")
        inputs = [b.input(f"x{i}", ("n", w.shape[1])) for i, w in enumerate(weights.values())]
        taken = [b.weight(name, w.shape) for name, w in weights.items()]
        table = taken[list(weights).index("embed.weight")]
        products = [b.matmul(x, b.permute_dims(w)) for x, w in zip(inputs[1:], taken[1:], strict=True)]
        b.output(b.take(table, ids, axis=0), b.call(inner, inputs[0], taken[0]), *products)
    return b.build()


def _folder(rng: np.random.Generator, method: str, path: Path) -> tuple[Path, dict[str, np.ndarray], tuple[str, ...], str]:
    config, layer, said = _drawn_format(rng, method)
    tensors: write.Arrays = {}
    weights: dict[str, np.ndarray] = {}
    for i in range(2):
        n, k = _sizes(rng, method)
        parts, weights[f"m.{i}.weight"] = layer(rng, n, k)
        tensors |= {f"m.{i}{end}": array for end, array in parts.items()}
        said += f" {n}x{k}"
    plain = rng.standard_normal((33, 24)).astype(rng.choice([np.dtype(np.float32), write.BF16, np.dtype(np.float16)]))
    tensors["embed.weight"], weights["embed.weight"] = plain, plain.astype(np.float32)
    _write(rng, path, tensors)
    key = str(rng.choice(["quantization_config", "text_config", "compression_config"]))
    key = "quantization_config" if key == "compression_config" and method != "compressed-tensors" else key
    (path / "config.json").write_text(json.dumps({key: {"quantization_config": config} if key == "text_config" else config}))
    return path, weights, ("m.0.weight", "m.1.weight"), f"{said} in {key}"


def _write(rng: np.random.Generator, path: Path, tensors: write.Arrays) -> None:
    """In one file, or in two wherever a tensor happens to be."""
    if rng.random() < 0.5:
        write_safetensors(path / "model.safetensors", tensors)
        return
    shards = {name: f"model-0000{rng.integers(1, 3)}-of-00002.safetensors" for name in tensors}
    for shard in set(shards.values()):
        write_safetensors(path / shard, {n: t for n, t in tensors.items() if shards[n] == shard})
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))


def _sizes(rng: np.random.Generator, method: str) -> tuple[int, int]:
    """Whole words where a format has no others."""
    unit = 8 if method in ("gptq", "awq") else 1
    n, k = (int(rng.integers(2, 14)) * 8 + int(rng.integers(0, 8)) for _ in range(2))
    return n // unit * unit, k // unit * unit


def _drawn_format(rng: np.random.Generator, method: str) -> tuple[dict[str, Any], Any, str]:
    """The configuration, and what writes a layer."""
    group, bits = int(rng.choice([16, 32, 48])), int(rng.choice([4, 8]))
    dtype: Any = [np.float16, write.BF16, np.float32][rng.integers(3)]
    symmetric, ordered = bool(rng.random() < 0.5), bool(rng.random() < 0.4)
    said = f"{method} group {group} {np.dtype(dtype)} bits {bits} symmetric {symmetric} order {ordered}"
    config: dict[str, Any] = {"quant_method": method}
    if method == "gptq":
        version = int(rng.integers(1, 3))
        config |= {"bits": bits, "group_size": group} | (
            {} if symmetric else {"checkpoint_format": ["gptq", "gptq_v2"][version - 1]}
        )
        options: dict[str, Any] = {"bits": bits, "version": version, "act_order": ordered, "with_index": ordered or symmetric}
        return config, lambda r, n, k: write.gptq(r, n, k, group=group, symmetric=symmetric, dtype=dtype, **options), said
    if method == "awq":
        return config | {"w_bit": 4, "q_group_size": group}, lambda r, n, k: write.awq(r, n, k, group, dtype), said
    if method == "compressed-tensors":
        config |= {"config_groups": {"a": {"weights": {"group_size": group}}}}
        options = {"bits": bits, "symmetric": symmetric, "act_order": ordered, "packed_zeros": bool(rng.random() < 0.5)}
        return config, lambda r, n, k: write.compressed(r, n, k, group=min(group, k), dtype=dtype, **options), said
    if method == "fp8":
        scheme = str(rng.choice(["block", "tensor", "channel"]))
        scale: Any = "e8m0" if scheme == "block" and ordered else dtype
        return config | {"weight_block_size": [group, group]}, lambda r, n, k: write.fp8(r, n, k, scheme, group, scale), said
    nested, rounded = symmetric, str(rng.choice(["float32", "bfloat16", "float16"]))
    return config, lambda r, n, k: write.nf4(r, n, k, 64, nested, rounded), f"{said} nested {nested} {rounded}"


def _gguf(rng: np.random.Generator, path: Path) -> tuple[Path, dict[str, np.ndarray], tuple[str, ...], str]:
    """Matrices of random blocks; the one that is looked up is encoded, too."""
    tensors: dict[str, Any] = {}
    weights: dict[str, np.ndarray] = {}
    kinds = rng.choice(list(BLOCKS), 3)
    for name, kind in zip(("m.0", "m.1", "embed"), map(str, kinds), strict=True):
        n, count = int(rng.integers(3, 90)), int(rng.integers(1, 4))
        number = gguf.GGMLQuantizationType[kind]
        raw = gguf_files.blocks(rng, kind, n, count, usual=True)
        tensors[f"{name}.weight"], weights[f"{name}.weight"] = (raw, number), gguf.dequantize(raw, number)
    return gguf_files.write(path / "m.gguf", tensors), weights, tuple(weights), f"gguf {' '.join(kinds)}"
