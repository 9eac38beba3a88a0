"""The checks by name: numbers of models against torch's, then times against those of torch and Triton.

A check returns lines: what was looked at, what was found, and whether it is what is hoped for. Wrong numbers raise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812

import relaxir as rx
from relaxir.weights.arrays import to_numpy
from support import models
from support.device_cases import attention, decode_attention, gate, product, rms_norm, softmax

from .decoding import decoding
from .place import Place

__all__ = ["CHECKS", "Line"]


@dataclass(frozen=True)
class Line:
    """What was found.

    Attributes:
        what: of which case.
        found: figures as text.
        ratio: to the peer, above 1: ours is faster; or a share of what the machine could do. None: nothing is compared.
        goal: what the ratio should be.
    """

    what: str
    found: str
    ratio: float | None = None
    goal: float | None = None


def _close(got: torch.Tensor, want: torch.Tensor, what: str, bound: float = 2e-2) -> None:
    """Raises AssertionError where numbers are farther apart than bf16 is coarse, 2**-8, times a few operations."""
    difference = (got.float().cpu() - want.float().cpu()).abs().max().item()
    scale = want.float().abs().max().item()
    assert difference <= bound * max(scale, 1e-6), f"{what}: off by {difference:.3g} of {scale:.3g}"


# -- numbers -----------------------------------------------------------------------------------------------------------

_MODELS = {"bert": models.bert, "gpt2": models.gpt2, "llama": models.llama, "resnet18": models.resnet18, "mlp": models.mlp}


def _model(place: Place, name: str) -> list[Line]:
    """A tiny model in f32 in two sizes, against torch on the CPU."""
    model = _MODELS[name]()
    program = model.export()
    module = rx.from_torch(program)
    executable = rx.compile(module, target=place.target, device=place.device)
    executable.bind(executable.prepare(models.weights_of(program, module)))
    worst = 0.0
    for batch in (1, 3):
        inputs = model.inputs(batch)
        got = executable(**inputs)
        for result, want in zip(got if isinstance(got, tuple) else (got,), model.eager(inputs), strict=True):
            difference = float(np.abs(to_numpy(result, "result") - want).max() / max(np.abs(want).max(), 1e-6))
            assert difference < 1e-3, f"{name}, batch {batch}: off by {difference:.3g} of the largest number"
            worst = max(worst, difference)
    return [Line(name, f"off by at most {worst:.1e} of the largest number")]


# -- times -------------------------------------------------------------------------------------------------------------


def _product(place: Place, size: int, epilogue: bool) -> list[Line]:
    n = place.size(size, 128)
    x, w, bias = place.random(n, n), place.random(n, n, seed=1), place.random(n, seed=2)
    executable = place.compiled(product("n", n, n, epilogue), {"w": w} | ({"b": bias} if epilogue else {}))
    want = F.gelu(F.linear(x, w, bias)) if epilogue else x @ w.T
    _close(executable(x), want, f"product of {n}")
    peer: Callable[[], object] = (lambda: F.gelu(F.linear(x, w, bias))) if epilogue else (lambda: torch.matmul(x, w.T))
    ours, theirs = place.times(lambda: executable(x), peer)
    rates = [2 * n**3 / seconds / 1e12 for seconds in (ours, theirs)]
    name = "with bias and gelu" if epilogue else "product"
    lines = [Line(f"{name} {n}", f"{rates[0]:.0f} TFLOP/s, torch {rates[1]:.0f}", theirs / ours, 1.0 if epilogue else 0.9)]
    return lines if epilogue else [*lines, *_triton(place, x, w, ours)]


def _triton(place: Place, x: torch.Tensor, w: torch.Tensor, ours: float) -> list[Line]:
    try:
        from .triton_product import triton_product
    except (ImportError, RuntimeError) as error:  # it is not installed, or finds no GPU
        return [Line(f"product {len(x)}, Triton", f"not measured: {error}")]
    _close(triton_product(x, w), x @ w.T, "Triton's product")
    (theirs,) = place.times(lambda: triton_product(x, w))
    return [Line(f"product {len(x)}, Triton", f"Triton {2 * len(x) ** 3 / theirs / 1e12:.0f} TFLOP/s", theirs / ours)]


def _rows(place: Place, kind: str) -> list[Line]:
    """Operations that move memory: their share of what a copy of as many bytes takes."""
    rows, width = place.size(8192, 4), place.size(8192, 128)
    x, w = place.random(rows, width, dtype=torch.float32 if kind == "softmax" else torch.bfloat16), place.random(width, seed=1)
    up = place.random(rows, width, seed=2)
    executable, arguments, peer = {
        "softmax": lambda: (place.compiled(softmax(width), {}), (x,), lambda: torch.softmax(x, -1)),
        "rms-norm": lambda: (place.compiled(rms_norm(width), {"w": w}), (x,), lambda: F.rms_norm(x, (width,), w, 1e-5)),
        "gate": lambda: (place.compiled(gate(width), {}), (x, up), lambda: F.silu(x) * up),
    }[kind]()
    _close(executable(*arguments), peer(), kind)
    moved = sum(a.nbytes for a in (*arguments, x))
    source = torch.empty(moved // 2, dtype=torch.uint8, device=place.torch_device)
    target = torch.empty_like(source)
    ours, theirs, copy = place.times(lambda: executable(*arguments), peer, lambda: target.copy_(source))
    found = f"{moved / ours / 1e12:.2f} TB/s, copy {moved / copy / 1e12:.2f}, torch {moved / theirs / 1e12:.2f}"
    return [Line(f"{kind} {rows} x {width}", found, copy / ours, 0.85)]


def _row_of_product(place: Place, precision: str | None) -> list[Line]:
    """One row times a matrix that no cache holds: its share of the time in which its bytes are copied."""
    depth, width = place.size(8192, 256), place.size(28672, 64)
    x, w = place.random(1, depth), place.random(width, depth, seed=1)
    executable = place.compiled(product(1, depth, width), {"w": w}, precision)
    _close(executable(x), x @ w.T, "row", 2e-2 if precision is None else 0.2)
    prepared = executable.manifest.prepared_weights.values()
    moved = sum(weight.array.nbytes for weight in prepared)
    source = torch.empty(moved // 2, dtype=torch.uint8, device=place.torch_device)
    target = torch.empty_like(source)
    ours, theirs, copy = place.times(lambda: executable(x), lambda: torch.matmul(x, w.T), lambda: target.copy_(source))
    found = f"{ours * 1e6:.1f} us, copy {copy * 1e6:.1f}, torch in bf16 {theirs * 1e6:.1f}"
    return [Line(f"row times {depth} x {width}, {precision or 'bf16'}", found, copy / ours, 0.85)]


def _attention(place: Place) -> list[Line]:
    heads, length, width = place.size(32, 2), place.size(4096, 32), place.size(128, 64)
    q, k, v = (place.random(1, heads, length, width, seed=i) for i in range(3))
    executable = place.compiled(attention(heads, width), {})
    peer = functools.partial(F.scaled_dot_product_attention, q, k, v, is_causal=True)
    _close(executable(q, k, v), peer(), "attention")
    ours, theirs = place.times(lambda: executable(q, k, v), peer)
    rates = [2 * heads * length**2 * width / seconds / 1e12 for seconds in (ours, theirs)]
    return [Line(f"attention of {length}", f"{rates[0]:.0f} TFLOP/s, torch {rates[1]:.0f}", theirs / ours, 0.9)]


def _attention_of_a_row(place: Place) -> list[Line]:
    """A token over a cache, whose heads share keys: its share of the time in which keys and values are copied."""
    heads, groups, length, width = place.size(32, 4), place.size(8, 2), place.size(32768, 96), place.size(128, 64)
    q = place.random(1, heads, 1, width)
    k, v = (place.random(1, groups, length, width, seed=i) for i in (1, 2))
    mask = torch.ones(length, dtype=torch.bool, device=place.torch_device)
    executable = place.compiled(decode_attention(heads, groups, width), {})
    peer = functools.partial(F.scaled_dot_product_attention, q, k, v, attn_mask=mask.view(1, 1, 1, -1), enable_gqa=True)
    _close(executable(k, v, q, mask), peer(), "attention of a row")
    moved = k.nbytes + v.nbytes
    source = torch.empty(moved // 2, dtype=torch.uint8, device=place.torch_device)
    target = torch.empty_like(source)
    ours, theirs, copy = place.times(lambda: executable(k, v, q, mask), peer, lambda: target.copy_(source))
    found = f"{ours * 1e6:.1f} us, copy {copy * 1e6:.1f}, torch {theirs * 1e6:.1f}"
    return [Line(f"attention of a row over {length}", found, copy / ours, 0.85)]


def _decode(place: Place, precision: str | None) -> list[Line]:
    ours, theirs, note = decoding(place, precision)
    what = f"Llama decode step, {precision or 'bf16'}"
    return [Line(what, f"{ours * 1e3:.3f} ms, torch.compile in bf16 {theirs * 1e3:.3f}; {note}", theirs / ours, 1.0)]


#: In the order in which they run: numbers first.
CHECKS: dict[str, Callable[[Place], list[Line]]] = {
    **{f"model-{name}": functools.partial(_model, name=name) for name in _MODELS},
    "product-4096": functools.partial(_product, size=4096, epilogue=False),
    "product-8192": functools.partial(_product, size=8192, epilogue=False),
    "product-bias-gelu": functools.partial(_product, size=4096, epilogue=True),
    **{kind: functools.partial(_rows, kind=kind) for kind in ("softmax", "rms-norm", "gate")},
    "row-bf16": functools.partial(_row_of_product, precision=None),
    "row-int4": functools.partial(_row_of_product, precision="int4"),
    "attention": _attention,
    "attention-decode": _attention_of_a_row,
    "decode-bf16": functools.partial(_decode, precision=None),
    "decode-int4": functools.partial(_decode, precision="int4"),
}
