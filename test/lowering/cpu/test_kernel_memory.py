"""A kernel writes where it is told to: no copy, no memory of its own, whatever the dtype and the mask of an attention."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.parser import parse_module
from relaxir.dialect.relax import new_context
from relaxir.lowering.cpu import pipeline


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_attention_allocates_and_copies_nothing(monkeypatch, dtype, causal, masked):
    seen: list[str] = []
    lower = pipeline.lower_kernels
    monkeypatch.setattr(pipeline, "lower_kernels", lambda m, target: (seen.append(str(m)), lower(m, target)))
    b = rx.Builder()
    with b.function("main"):
        q = b.input("q", ("b", 4, "n", 64), dtype)
        k, v = (b.input(name, ("b", 2, "n", 64), dtype) for name in "kv")
        mask = [b.input("mask", ("b", 1, "n", "n"), "f32")] if masked else []
        b.output(b.attention(q, k, v, *mask, causal=causal))
    rx.compile(b.build())
    (text,) = seen
    kernels = text[text.index("func.func private") :]
    assert "memref.copy" not in kernels


def test_a_kernel_that_allocates_is_refused():
    text = """func.func private @k() attributes {relax.kernel} { %0 = memref.alloc() : memref<4xf32> return }"""
    module: ir.Module = parse_module(text, "-", new_context())
    with pytest.raises(RelaxError, match="expected a kernel without memory of its own, got a copy"):
        pipeline._check_kernels_allocate_nothing(module.operation)


@pytest.mark.parametrize("weight", [True, False])
@pytest.mark.parametrize("inner", [1, 3])
@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("rows", [1, 5, "m"])
def test_products_with_dimensions_of_one_need_no_memory_either(rows, columns, inner, weight):
    b = rx.Builder()
    with b.function("main"):
        x, c = b.input("x", (rows, inner), "f32"), b.input("c", (columns,), "f32")
        w = (b.weight if weight else b.input)("w", (inner, columns), "f32")
        b.output(b.relu(b.add(b.matmul(x, w), c)))
    made = rx.compile(b.build())
    rng = np.random.default_rng(0)
    shapes = ((2 if rows == "m" else rows, inner), (columns,), (inner, columns))
    xs, cs, ws = (rng.standard_normal(s, np.float32) for s in shapes)
    got = made.bind(made.prepare({"w": ws}))(xs, cs) if weight else made(xs, cs, ws)
    np.testing.assert_allclose(got, np.maximum(xs @ ws + cs, 0), rtol=1e-6, atol=1e-6)
