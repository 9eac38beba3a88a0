"""A kernel writes where it is told to: no copy, no memory of its own, whatever the dtype and the mask of an attention."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.parser import parse_module
from relaxir.lowering.cpu.lend_memory import lend_memory
from support.stages import lowered


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_attention_allocates_and_copies_nothing(dtype, causal, masked):
    b = rx.Builder()
    with b.function("main"):
        q = b.input("q", ("b", 4, "n", 64), dtype)
        k, v = (b.input(name, ("b", 2, "n", 64), dtype) for name in "kv")
        mask = [b.input("mask", ("b", 1, "n", "n"), "f32")] if masked else []
        b.output(b.attention(q, k, v, *mask, causal=causal))
    text = str(lowered(b.build(), upto="relax-lower-kernels"))
    kernels = text[text.index("func.func private") :]
    assert "memref.copy" not in kernels


def test_what_a_kernel_works_in_comes_from_its_callers():
    module: ir.Module = parse_module(
        """
        func.func @main(%x: memref<?x4xf32>) {
          %c = arith.constant 3 : index
          scf.for %i = %c to %c step %c { func.call @k(%x) : (memref<?x4xf32>) -> () }
          func.call @k(%x) : (memref<?x4xf32>) -> ()
          return
        }
        func.func private @k(%x: memref<?x4xf32>) attributes {relax.kernel} {
          %c = arith.constant 0 : index
          %n = memref.dim %x, %c : memref<?x4xf32>
          %m = arith.muli %n, %n : index
          %0 = memref.alloc(%m) : memref<?xf32>
          %1 = memref.load %0[%c] : memref<?xf32>
          %2 = memref.alloc() : memref<7xf32>
          memref.store %1, %2[%c] : memref<7xf32>
          scf.for %i = %c to %n step %n {
            %3 = memref.alloc(%i) : memref<?xf32>
            memref.store %1, %3[%c] : memref<?xf32>
          }
          return
        }""",
        "-",
        new_context(),
    )
    lend_memory(module.operation)
    assert module.operation.verify()
    main, kernel = map(str, module.body.operations)
    assert main.count("call @k(%arg0, %alloc") == 2
    assert main.count("memref.alloc()") == main.count("memref.alloc(%") == 2
    assert kernel.count("memref.alloc(") == kernel.count("memref.dealloc") == 1  # what is in the loop


# What contractions of these do not become tiles: a row, a column, a factor that is one number.
@pytest.mark.parametrize("last", ["tanh", "reshape"])
@pytest.mark.parametrize("sizes", [(1, 4, 5), ("n", 4, 5), (1, 1, 5), (6, 4, 1)])
@pytest.mark.parametrize("kind", ["full", "attention"])
def test_products_without_tiles(kind, sizes, last):
    rows, inner, columns = sizes
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", (rows, inner), "f32"), b.input("w", (inner, columns), "f32")
        if kind == "full":
            y = b.matmul(b.full((7, inner), 2.0, "f32"), w)
        else:
            y = b.matmul(b.softmax(b.matmul(x, b.permute_dims(b.astype(x, "f32"), axes=[1, 0])), axis=-1), b.matmul(x, w))
        b.output(b.tanh(y) if last == "tanh" else b.add(b.reshape(y, (-1,)), b.full((1,), 1.0, "f32")))
    module = b.build()
    rng = np.random.default_rng(0)
    xs, ws = (
        rng.standard_normal((3 if rows == "n" else rows, inner), np.float32),
        rng.standard_normal((inner, columns), np.float32),
    )
    (want,) = rx.evaluate(module, "main", xs, ws)
    np.testing.assert_allclose(rx.compile(module)(xs, ws), want, rtol=1e-5, atol=1e-6)


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
