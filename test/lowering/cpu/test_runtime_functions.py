"""What compiled code calls of the C runtime: memory is copied and filled, threads are started, and nothing else."""

from __future__ import annotations

import re

import numpy as np
import pytest

import relaxir as rx
from relaxir.lowering.cpu.codegen import assembly
from relaxir.lowering.llvm_text import bf16_as_integers
from relaxir.lowering.target import TARGETS
from support.stages import llvm_text, lowered, target_named

_CALL = re.compile(r"^\s+(?:callq?|jmpq?|bl|b)\s+_?([a-zA-Z][\w.$]*|__[\w.$]+)", re.M)
_LABEL = re.compile(r"^_?([\w.$]+):", re.M)
_KNOWN = re.compile(r"mem(?:cpy|move|set)|b?zero|__kmpc_\w+|omp_\w+")


def _module(dtype: str) -> rx.Module:
    """Values of a dtype that blocks hand on to others: sorts, branches, loops, scalars of a row, state of a scan."""
    b = rx.Builder()
    with b.function("sorts"):
        order = b.argsort(b.input("x", (9, "n", 4), dtype), axis=0)
        y = b.input("y", ("n", 7), dtype)
        b.output(b.strided_slice(order, axes=[0], begin=[0], end=[1]), b.gather_elements(y, b.argsort(y, axis=1), axis=1))
    with b.function("rows"):
        x, y = b.input("x", ("n", 33), dtype), b.input("y", (33,), dtype)
        b.output(b.softmax(x), b.cumsum(x, axis=1), b.max(x, axis=[1]), b.argmax(x, axis=1), b.maximum(x, y))
    with b.function("moves"):
        x, i = b.input("x", ("n", 5), dtype), b.input("i", (3,), "i64")
        b.output(b.take(x, i, axis=0), b.concat([x, x], axis=1), b.where(b.greater(x, x), x, b.relu(x)), b.astype(x, "f64"))
    with b.function("integers"):
        kinds = ["i8", "ui8", "i16", "i32", "i64", "ui64", "i1"]
        b.output(*(b.astype(b.input(f"from_{kind}", ("n", 5), kind), dtype) for kind in kinds))
    with b.function("to_integers"):
        x = b.input("x", ("n", 5), dtype)
        b.output(*(b.astype(x, kind) for kind in kinds))
    with b.function("products"):
        x, w = b.input("x", ("n", 40), dtype), b.weight("w", (40, 24), dtype)
        b.output(b.gelu(b.matmul(x, w)))
    return b.build()


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("name", TARGETS)
def test_narrow_floats_need_none(name: str, dtype: str) -> None:
    target = target_named(f"cpu:{name}")
    text = assembly(llvm_text(lowered(_module(dtype), target)), target)
    called = set(_CALL.findall(text)) - set(_LABEL.findall(text))
    assert not {function for function in called if not _KNOWN.fullmatch(function)}


def test_bf16_that_is_moved_alone_is_moved_as_integers() -> None:
    text = """
@"a bfloat" = constant [2 x bfloat] [bfloat 0xR3F80, bfloat 0xRBF80]
declare <8 x bfloat> @llvm.masked.load.v8bf16.p0(ptr, i32, <8 x i1>, <8 x bfloat>)
define bfloat @bfloat(ptr %bfloat, <4 x bfloat> %x) { ; "bfloat"
  %y = select i1 true, bfloat 0xR8000, bfloat %z
"""
    assert (
        bf16_as_integers(text)
        == """
@"a bfloat" = constant [2 x i16] [i16 16256, i16 -16512]
declare <8 x i16> @llvm.masked.load.v8i16.p0(ptr, i32, <8 x i1>, <8 x i16>)
define i16 @bfloat(ptr %bfloat, <4 x i16> %x) { ; "bfloat"
  %y = select i1 true, i16 -32768, i16 %z
"""
    )


@pytest.mark.parametrize(
    "line",
    ["%2 = fadd bfloat %0, %1", "%2 = fptrunc float %0 to bfloat", "%2 = fcmp olt <4 x bfloat> %0, %1",
     "%2 = sitofp i32 %0 to bfloat"],
)  # fmt: skip
def test_what_computes_in_bf16_stays(line: str) -> None:
    assert bf16_as_integers(f"  {line}\n") == f"  {line}\n"


def test_sorts_of_bf16_link_here() -> None:
    """Whatever this processor has."""
    executable = rx.compile(_module("bf16"))
    x = np.random.default_rng(0).standard_normal((9, 3, 4)).astype(np.float32).astype("bfloat16")
    y = x.reshape(-1)[:21].reshape(3, 7)
    first, ordered = executable(x, y, entry="sorts")
    np.testing.assert_array_equal(first, x.argsort(axis=0, kind="stable")[:1])
    np.testing.assert_array_equal(ordered, np.sort(y, axis=1))
