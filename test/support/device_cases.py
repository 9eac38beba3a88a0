"""Modules of the sizes that large models have, one kind of kernel each: tables of device kernels are of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import relaxir as rx
from relaxir.building.builder import Builder
from relaxir.dialect.bindings import ir
from relaxir.lowering.cuda.compiler import CudaCompiler
from support.kept_kernels import kept

__all__ = [
    "CASES",
    "TARGETS",
    "Case",
    "attention",
    "decode_attention",
    "gate",
    "grouped_product",
    "least",
    "masked_attention",
    "product",
    "ptx_of",
    "ptx_of_module",
    "rms_norm",
    "softmax",
]

#: What kernels are looked at for: the last kind of GPU without, and the first with, a tensor memory accelerator.
TARGETS = ("cuda:sm_80", "cuda:sm_90a")

_HIDDEN, _INNER, _HEADS = 4096, 11008, 32

Build = Callable[[Builder], None]


@dataclass(frozen=True)
class Case:
    """A module.

    Attributes:
        build: makes it.
        weights: as for ``relaxir.compile``.
        targets: what its kernels are looked at for.
    """

    build: Build
    weights: str | None = None
    targets: tuple[str, ...] = TARGETS

    def module(self) -> rx.Module:
        builder = rx.Builder()
        with builder.function("main"):
            self.build(builder)
        return builder.build()


def product(rows: int | str, depth: int, width: int, epilogue: bool = False) -> Build:
    """``x @ w.T`` in bf16; with an epilogue ``gelu(x @ w.T + b)``."""

    def build(b: Builder) -> None:
        x, w = b.input("x", (rows, depth), "bf16"), b.weight("w", (width, depth), "bf16")
        y = b.matmul(x, b.permute_dims(w, axes=[1, 0]))
        b.output(b.gelu(b.add(y, b.weight("b", (width,), "bf16"))) if epilogue else y)

    return build


def product_of_f32(depth: int, width: int) -> Build:
    """``x @ w.T``."""

    def build(b: Builder) -> None:
        b.output(b.matmul(b.input("x", ("n", depth)), b.permute_dims(b.weight("w", (width, depth), "f32"), axes=[1, 0])))

    return build


def product_of_float8(depth: int, width: int) -> Build:
    """``x @ w`` of 8-bit floats, with a scale for each column."""

    def build(b: Builder) -> None:
        x, w = b.input("x", (_HIDDEN, depth), "f8E4M3FN"), b.weight("w", (depth, width), "f8E4M3FN")
        b.output(b.multiply(b.matmul(x, w, out_dtype="f32"), b.weight("s", (width,), "f32")))

    return build


def product_of_blocks(rows: int | str, depth: int, width: int) -> Build:
    """``x @ w.T`` in bf16 of weights of 8-bit floats, each 128 by 128 of which have one scale."""

    def build(b: Builder) -> None:
        x, w = b.input("x", (rows, depth), "bf16"), b.weight("w", (width, depth), "f8E4M3FN")
        scale = b.weight("s", (width // 128, depth // 128), "f32")
        wide = b.dequantize(w, scale, b.constant(np.float32(0)), out_dtype="f32")
        b.output(b.matmul(b.astype(x, "f32"), b.permute_dims(wide, axes=[1, 0])))

    return build


def gated_product(depth: int, width: int) -> Build:
    """``silu(x @ gate.T) * (x @ up.T)`` in bf16."""

    def build(b: Builder) -> None:
        x = b.input("x", ("n", depth), "bf16")
        gate, up = (b.matmul(x, b.permute_dims(b.weight(name, (width, depth), "bf16"), axes=[1, 0])) for name in ("gate", "up"))
        b.output(b.multiply(b.silu(gate), up))

    return build


def grouped_product(rows: int | str, depth: int, width: int, groups: int) -> Build:
    """Rows of which each group has a matrix of its own, in bf16, and relu."""

    def build(b: Builder) -> None:
        x, ends = b.input("x", (rows, depth), "bf16"), b.input("ends", (groups,), "i64")
        w = b.reshape(b.weight("w", (groups, width, depth), "bf16"), (groups * width, -1))
        b.output(b.relu(b.grouped_matmul(x, b.permute_dims(w, axes=[1, 0]), ends, out_dtype="bf16")))

    return build


def convolution(channels: int, size: int, filters: int, layout: str) -> Build:
    """3 x 3 of any number of square images in bf16, and relu."""

    def build(b: Builder) -> None:
        image = (size, size, channels) if layout == "NHWC" else (channels, size, size)
        x, w = b.input("x", ("n", *image), "bf16"), b.weight("w", (filters, channels, 3, 3), "bf16")
        b.output(b.relu(b.conv2d(x, w, padding=[1, 1, 1, 1], data_layout=layout, kernel_layout="OIHW")))

    return build


def softmax(width: int) -> Build:
    """Over rows, in f32."""
    return lambda b: b.output(b.softmax(b.input("x", ("n", width))))


def rms_norm(width: int) -> Build:
    """Over rows, in bf16."""
    return lambda b: b.output(b.rms_norm(b.input("x", ("n", width), "bf16"), b.weight("w", (width,), "bf16"), axes=[-1]))


def layer_norm(size: int, width: int) -> Build:
    """Over the channels of an image, in f32."""

    def build(b: Builder) -> None:
        x = b.input("x", (1, size, size, width))
        b.output(b.layer_norm(x, *(b.weight(name, (width,), "f32") for name in ("gain", "bias")), axes=[-1]))

    return build


def least(rows: int, width: int) -> Build:
    """The least of all elements, each times its column's scale."""

    def build(b: Builder) -> None:
        b.output(b.min(b.multiply(b.input("x", (rows, width)), b.input("scale", (width,))), axis=[0, 1]))

    return build


def gate(width: int) -> Build:
    """``silu(gate) * up`` in bf16."""

    def build(b: Builder) -> None:
        gate, up = (b.input(name, ("n", width), "bf16") for name in ("gate", "up"))
        b.output(b.multiply(b.silu(gate), up))

    return build


def attention(heads: int, width: int, dtype: str = "bf16") -> Build:
    """Causal, of one sequence."""

    def build(b: Builder) -> None:
        b.output(b.attention(*(b.input(name, (1, heads, "n", width), dtype) for name in ("q", "k", "v")), causal=True))

    return build


def masked_attention(heads: int, width: int) -> Build:
    """In f32, of sequences that are padded."""

    def build(b: Builder) -> None:
        inputs = [b.input(name, ("b", heads, "n", width)) for name in ("q", "k", "v")]
        b.output(b.attention(*inputs, b.input("mask", ("b", 1, 1, "n"), "i1")))

    return build


def attention_with_mask(heads: int, groups: int, width: int, kind: str) -> Build:
    """In bf16, of sequences whose mask all heads have; heads share keys."""

    def build(b: Builder) -> None:
        q, k, v = (b.input(n, ("b", heads if n == "q" else groups, "n", width), "bf16") for n in "qkv")
        b.output(b.attention(q, k, v, b.input("mask", ("b", 1, "n", "n"), kind)))

    return build


def decode_attention(heads: int, groups: int, width: int) -> Build:
    """A row of each head over a cache, in bf16; heads share keys."""

    def build(b: Builder) -> None:
        caches = [b.input(name, (1, groups, "n", width), "bf16") for name in ("k", "v")]
        b.output(b.attention(b.input("q", (1, heads, 1, width), "bf16"), *caches, b.input("mask", ("n",), "i1")))

    return build


def _embedding(b: Builder) -> None:
    tokens = b.input("tokens", ("n",), "i64")
    b.output(b.take(b.weight("w", (32000, _HIDDEN), "bf16"), tokens, axis=0))


def _cache(b: Builder) -> None:
    """Keys of a token put into a cache, in place."""
    keys = b.input("keys", (1, _HEADS, 1, _HIDDEN // _HEADS), "bf16")
    b.output(
        b.index_copy(b.input("cache", (1, _HEADS, 4096, _HIDDEN // _HEADS), "bf16"), b.input("at", (1,), "i64"), keys, axis=2)
    )


#: By name.
CASES = {
    "product": Case(product("n", _HIDDEN, _HIDDEN)),
    "product-bias-gelu": Case(product("n", _HIDDEN, _HIDDEN, epilogue=True)),
    "product-int8": Case(product("n", _HIDDEN, _HIDDEN), "int8"),
    "product-int4": Case(product("n", _HIDDEN, _HIDDEN), "int4"),
    "product-f32": Case(product_of_f32(_HIDDEN, _HIDDEN)),
    "product-f32-int4": Case(product_of_f32(_HIDDEN, _HIDDEN), "int4"),
    "product-split": Case(product(64, 4 * _HIDDEN, 512)),
    "product-float8": Case(product_of_float8(_HIDDEN, _HIDDEN), targets=("cuda:sm_89+f8", "cuda:sm_90a+f8")),
    "product-float8-blocks": Case(product_of_blocks("n", _HIDDEN, _HIDDEN)),
    "product-gated": Case(gated_product(_HIDDEN, _INNER)),
    "grouped": Case(grouped_product("n", _HIDDEN, _INNER, 8)),
    "grouped-int8": Case(grouped_product("n", _HIDDEN, _INNER, 8), "int8"),
    "grouped-int4": Case(grouped_product("n", _HIDDEN, _INNER, 8), "int4"),
    "grouped-rows": Case(grouped_product(8, _HIDDEN, _INNER, 8)),
    "grouped-rows-int4": Case(grouped_product(8, _HIDDEN, _INNER, 8), "int4"),
    "convolution": Case(convolution(64, 56, 64, "NHWC")),
    "convolution-nchw": Case(convolution(128, 28, 128, "NCHW")),
    "row": Case(product(1, _HIDDEN, _INNER)),
    "row-int8": Case(product(1, _HIDDEN, _INNER), "int8"),
    "row-int4": Case(product(1, _HIDDEN, _INNER), "int4"),
    "row-float8-blocks": Case(product_of_blocks(1, _HIDDEN, _INNER)),
    "softmax": Case(softmax(_HIDDEN)),
    "rms-norm": Case(rms_norm(_HIDDEN)),
    "layer-norm": Case(layer_norm(28, 192)),
    "gate": Case(gate(_INNER)),
    "attention": Case(attention(_HEADS, _HIDDEN // _HEADS)),
    "attention-64": Case(attention(12, 64)),
    "attention-f32-96": Case(attention(12, 96, "f32")),
    "attention-padded": Case(masked_attention(12, 64)),
    "attention-mask": Case(attention_with_mask(_HEADS, _HEADS // 4, _HIDDEN // _HEADS, "i1")),
    "attention-added": Case(attention_with_mask(12, 12, 64, "bf16")),
    "attention-decode": Case(decode_attention(_HEADS, _HEADS // 4, _HIDDEN // _HEADS)),
    "embedding": Case(_embedding),
    "least": Case(least(128, 768)),
    "running-sum": Case(lambda b: b.output(b.cumsum(b.input("x", ("n", _HIDDEN)), axis=1))),
    "sort": Case(lambda b: b.output(b.argsort(b.input("x", ("n", 32000)), axis=1, descending=True))),
    "transpose": Case(lambda b: b.output(b.permute_dims(b.input("x", ("n", _HIDDEN), "bf16"), axes=[1, 0]))),
    "index-copy": Case(_cache),
}


def ptx_of(case: Case, target: str) -> str:
    """The PTX of a case's kernels."""
    return ptx_of_module(case.module(), target, case.weights)


def ptx_of_module(module: rx.Module, target: str, weights: str | None = None) -> str:
    """The PTX of a module's kernels, weights stored as for ``relaxir.compile``."""
    compiler = CudaCompiler(target, {"cubin": False})
    laid_out = module.with_weight_layouts(compiler.weight_layouts)
    lowered: ir.Operation = laid_out.run(compiler.relax_pipeline(weights, None)).ir.operation
    compiler.lower(lowered, checked=False)
    with kept():
        return compiler.ptx(lowered)
