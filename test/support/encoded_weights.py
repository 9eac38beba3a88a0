"""Quantized checkpoints of every layout, written from random codes, scales and zero points, with the weights that these mean.

The writers are the formats' specifications once more, in NumPy, and know nothing of the decoders. Each takes a generator and
gives ``({end of a tensor's name: array}, weight in f32)`` of a layer with ``n`` outputs and ``k`` inputs.
"""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np

Arrays = dict[str, np.ndarray]
BF16 = np.dtype(ml_dtypes.bfloat16)
FP8 = np.dtype(ml_dtypes.float8_e4m3fn)


def words(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes along the last axis in words of 32 bits, lowest bits first, the last one filled up with zeros."""
    per = 32 // bits
    padded = np.concatenate([codes, np.zeros((*codes.shape[:-1], -codes.shape[-1] % per), codes.dtype)], -1)
    fields = padded.reshape(*codes.shape[:-1], -1, per).astype(np.uint64) << np.arange(0, 32, bits, dtype=np.uint64)
    return fields.sum(-1).astype(np.uint32).view(np.int32)


def parameters(
    rng: np.random.Generator, n: int, k: int, bits: int, group: int, symmetric: bool, dtype: Any, least_zero: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes ``[n, k]``, scales and zero points ``[n, groups]``."""
    groups = -(-k // group)
    codes = rng.integers(0, 1 << bits, (n, k))
    scales = rng.uniform(0.001, 0.02, (n, groups)).astype(dtype)
    zeros = np.full((n, groups), 1 << bits - 1) if symmetric else rng.integers(least_zero, 1 << bits, (n, groups))
    return codes, scales, zeros


def meaning(codes: np.ndarray, scales: np.ndarray, zeros: np.ndarray, index: np.ndarray) -> np.ndarray:
    return (codes - zeros[:, index]).astype(np.float32) * scales.astype(np.float32)[:, index]


def gptq(
    rng: np.random.Generator, n: int, k: int, bits: int = 4, group: int = 32, symmetric: bool = True, version: int = 1,
    act_order: bool = False, dtype: Any = np.float16, with_index: bool = True,
) -> tuple[Arrays, np.ndarray]:  # fmt: skip
    codes, scales, zeros = parameters(rng, n, k, bits, group, symmetric, dtype, least_zero=2 - version)
    index = np.arange(k) // group
    if act_order:
        index = rng.permutation(index)
    tensors = {
        ".qweight": words(codes, bits).T.copy(),
        ".qzeros": words((zeros - (version == 1)).T, bits),
        ".scales": scales.T.copy(),
    }
    tensors |= {".g_idx": index.astype(np.int32)} if with_index else {}
    return tensors, meaning(codes, scales, zeros, index)


def awq(rng: np.random.Generator, n: int, k: int, group: int = 32, dtype: Any = np.float16) -> tuple[Arrays, np.ndarray]:
    codes, scales, zeros = parameters(rng, n, k, 4, group, False, dtype)

    def ordered(x: np.ndarray) -> np.ndarray:
        return words(x.T.reshape(x.shape[1], -1, 8)[..., [0, 2, 4, 6, 1, 3, 5, 7]], 4)[..., 0]

    tensors = {".qweight": ordered(codes), ".qzeros": ordered(zeros), ".scales": scales.T.copy()}
    return tensors, meaning(codes, scales, zeros, np.arange(k) // group)


def compressed(
    rng: np.random.Generator, n: int, k: int, bits: int = 4, group: int = 32, symmetric: bool = True, act_order: bool = False,
    dtype: Any = BF16, packed_zeros: bool = True,
) -> tuple[Arrays, np.ndarray]:  # fmt: skip
    codes, scales, zeros = parameters(rng, n, k, bits, group, symmetric, dtype)
    index = np.arange(k) // group
    if act_order:
        index = rng.permutation(index)
    tensors = {".weight_packed": words(codes, bits), ".weight_scale": scales, ".weight_shape": np.array([n, k])}
    if not symmetric:
        old = (zeros - (1 << bits - 1)).astype(np.int8)
        tensors[".weight_zero_point"] = words(zeros.T, bits).T.copy() if packed_zeros else old
    tensors |= {".weight_g_idx": index.astype(np.int32)} if act_order else {}
    return tensors, meaning(codes, scales, zeros, index)


def fp8(
    rng: np.random.Generator, n: int, k: int, scheme: str = "block", block: int = 128, dtype: Any = np.float32
) -> tuple[Arrays, np.ndarray]:
    bytes_ = rng.integers(0, 127, (n, k), np.uint8) | (rng.integers(0, 2, (n, k), np.uint8) << 7)
    weight = bytes_.view(FP8)
    shape = {"block": (-(-n // block), -(-k // block)), "tensor": (), "one": (1,), "channel": (n, 1)}[scheme]
    if dtype == "e8m0":
        exponents = rng.integers(100, 130, shape, np.uint8)
        scale, wide = exponents.view(ml_dtypes.float8_e8m0fnu), np.ldexp(np.float32(1), exponents.astype(np.int32) - 127)
    else:
        scale = np.asarray(rng.uniform(0.001, 0.02, shape)).astype(dtype)
        wide = scale.astype(np.float32)
    full = wide[np.arange(n)[:, None] // block, np.arange(k) // block] if scheme == "block" else wide
    end = ".weight_scale_inv" if scheme == "block" else ".weight_scale"
    return {".weight": weight, end: np.asarray(scale)}, weight.astype(np.float32) * full


def fp8_experts(rng: np.random.Generator, shape: tuple[int, int, int], scales: tuple[int, ...]) -> tuple[Arrays, np.ndarray]:
    """Matrices in one tensor, with scales for blocks of 16 x 16, or of a shape that broadcasts."""
    count, n, k = shape
    bytes_ = rng.integers(0, 127, shape, np.uint8) | (rng.integers(0, 2, shape, np.uint8) << 7)
    scale = rng.uniform(0.001, 0.02, scales).astype(np.float32)
    of_blocks = scales == (count, -(-n // 16), -(-k // 16))
    wide = scale[:, np.arange(n)[:, None] // 16, np.arange(k) // 16] if of_blocks else scale
    wide = wide.reshape(count, 1, 1) if scales == (count,) else wide
    return {"": bytes_.view(FP8), "_scale_inv": scale}, bytes_.view(FP8).astype(np.float32) * wide


def mxfp4(rng: np.random.Generator, experts: int, rows: int, k: int) -> tuple[Arrays, np.ndarray]:
    """The weight is ``[experts, k, rows]``."""
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    codes = rng.integers(0, 16, (experts, rows, k // 32, 32), np.uint8)
    scales = rng.integers(110, 135, (experts, rows, k // 32), np.uint8)
    wide = values[codes] * np.ldexp(np.float32(1), scales[..., None].astype(np.int32) - 127)
    tensors = {"_blocks": codes[..., 0::2] | codes[..., 1::2] << 4, "_scales": scales}
    return tensors, wide.reshape(experts, rows, k).swapaxes(1, 2)


def nf4(
    rng: np.random.Generator, n: int, k: int, block: int = 64, nested: bool = True, dtype: str = "bfloat16"
) -> tuple[Arrays, np.ndarray]:
    table = np.sort(rng.standard_normal(16)).astype(np.float32)
    codes = rng.integers(0, 16, n * k + n * k % 2, np.uint8)
    blocks = -(-n * k // block)
    tensors: Arrays = {".weight": (codes[0::2] << 4 | codes[1::2])[:, None], ".weight.quant_map": table}
    state = {"quant_type": "nf4", "blocksize": block, "dtype": dtype, "shape": [n, k]}
    if nested:
        code, offset = np.sort(rng.standard_normal(256)).astype(np.float32), np.float32(rng.uniform(1, 2))
        outer = rng.uniform(0.1, 0.2, -(-blocks // 256)).astype(np.float32)
        stored = rng.integers(0, 256, blocks, np.uint8)
        absmax = code[stored] * outer[np.arange(blocks) // 256] + offset
        tensors |= {".weight.absmax": stored, ".weight.nested_absmax": outer, ".weight.nested_quant_map": code}
        state |= {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": float(offset)}
    else:
        absmax = rng.uniform(0.1, 2, blocks).astype(np.float32)
        tensors[".weight.absmax"] = absmax
    tensors[".weight.quant_state.bitsandbytes__nf4"] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    wide = table[codes[: n * k]] * absmax[np.arange(n * k) // block]
    rounded = wide if dtype == "float32" else wide.astype(BF16 if dtype == "bfloat16" else np.float16).astype(np.float32)
    return tensors, rounded.reshape(n, k)


def torchao(rng: np.random.Generator, n: int, k: int) -> tuple[Arrays, np.ndarray]:
    q, zero = rng.integers(-128, 128, (n, k), np.int8), rng.integers(-5, 6, (n, 2), np.int8)
    scale = rng.uniform(0.001, 0.002, (n, 2)).astype(np.float32)
    wide = (q.reshape(n, 2, -1).astype(np.float32) - zero[..., None]) * scale[..., None]
    return {"._weight_qdata": q, "._weight_scale": scale, "._weight_zero_point": zero}, wide.reshape(n, k)
