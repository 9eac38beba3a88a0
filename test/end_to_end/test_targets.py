"""Code for processors other than this one: it runs here, emulated where need be, and objects are read."""

from __future__ import annotations

import functools
import re

import ml_dtypes
import numpy as np
import pytest
from end_to_end.test_ops import FLOAT, ROWS, check, module_of
from end_to_end.test_quantized import model, weights

import relaxir as rx
from relaxir.lowering.archive import members
from relaxir.lowering.cpu.codegen import assembly, object_code
from relaxir.lowering.target import TARGETS, Target
from support.emulation import compile_for
from support.kept_kernels import kept
from support.object_files import undefined_symbols
from support.stages import llvm_text, lowered

#: What C runtimes have: memory, libm, and LLVM's OpenMP; kernels are in the other objects. Conversions of
#: bf16 and f16 are not among it.
RUNTIME = re.compile(
    r"mem(cpy|move|set)|relaxir_\w+|kernel\.[0-9a-f]{32}|__kmpc_\w+|_GLOBAL_OFFSET_TABLE_"
    r"|(acos|asin|atan|atan2|cos|cosh|sin|sinh|tan|tanh|acosh|asinh|atanh|erf|exp|exp2|expm1|log|log10|log1p|log2|pow|fmod"
    r"|floor|ceil|trunc|round|rint|nearbyint|roundeven|cbrt|fma)f?"
)
#: Vector instructions that a product must consist of.
INSTRUCTIONS = {
    "x86-64": r"\bmulps\b.*%xmm",
    "x86-64-v2": r"\bmulps\b.*%xmm",
    "x86-64-v3": r"\bvfmadd\w+ps\b.*%ymm",
    "x86-64-v4": r"\bvfmadd\w+ps\b.*%zmm",
    "znver3": r"\bvfmadd\w+ps\b.*%ymm",
    "znver4": r"\bvfmadd\w+ps\b.*%zmm",
    "znver5": r"\bvfmadd\w+ps\b.*%zmm",
    "sapphirerapids": r"\bvfmadd\w+ps\b.*%zmm",
    "aarch64": r"\bfmla\b.*v\d+\.4s",
    "neoverse-n1": r"\bfmla\b.*v\d+\.4s",
    "neoverse-v1": r"\bfmla\b.*v\d+\.4s",
    "apple-m1": r"\bfmla\.4s\b",
}


#: What lowers to conversions, calls, masks and tiles.
OPS = ("exp", "erf", "round", "floor", "mod", "isnan", "softmax", "argmax", "matmul", "conv2d", "astype", "take", "where")
CASES = [c for c in FLOAT if c.op in OPS]


@functools.cache
def llvm_ir(name: str, dtype: str, *ops: str) -> str:
    """The LLVM IR of some of these ops for a target."""
    cases = [c for c in CASES if c.op in ops]
    module = module_of(cases, dtype, None)
    return llvm_text(lowered(module, Target.parse(f"cpu:{name}", openmp=True), "symbol-dce"))


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v2", "x86-64-v3"])
def test_a_quantized_model_on_narrower_processors(name: str) -> None:
    module = rx.Module.parse(model("None", 96, "n"))
    executable, raw = rx.compile(module, target=f"cpu:{name}"), weights(96)
    executable.bind(executable.prepare(raw))
    for n in (1, 2, 5, 6, 7, 13, 33):
        ids = np.random.default_rng(n).integers(0, 50, n)
        (want,) = rx.evaluate(module, "main", ids, weights=raw)
        np.testing.assert_allclose(executable(ids), want, rtol=0, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("x86-64", "f32"), ("x86-64", "f16"), ("x86-64-v2", "bf16"), ("x86-64-v3", "f32"), ("x86-64-v4", "f32"),
        ("znver4", "bf16"),
    ],
)  # fmt: skip
def test_ops_on_other_processors(name: str, dtype: str) -> None:
    module = module_of(CASES, dtype, None)
    check(module, CASES, dtype, ROWS, compile_for(module, name))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_conversions_are_exact_without_instructions_for_them(dtype: str) -> None:
    builder = rx.Builder()
    with builder.function("widen"):
        builder.output(builder.astype(builder.input("x", ("n",), dtype), dtype="f32"))
    with builder.function("narrow"):
        builder.output(builder.astype(builder.input("x", ("n",), "f32"), dtype=dtype))
    executable = rx.compile(builder.build(), target="cpu:x86-64")
    narrow = np.float16 if dtype == "f16" else ml_dtypes.bfloat16
    every = np.arange(1 << 16, dtype=np.uint16).view(narrow)
    wide = every.astype(np.float32)
    np.testing.assert_array_equal(executable(every, entry="widen"), wide)
    # All of them, the midpoints between neighbours and what is just beside those, and random bits.
    near = wide.view(np.uint32)[:, None] + np.array([-(1 << 12) - 1, -(1 << 12), -1, 0, 1, 1 << 12, (1 << 12) + 1]).astype(
        np.uint32
    )
    bits = np.concatenate([near.reshape(-1), np.random.default_rng(0).integers(0, 1 << 32, 1 << 18, np.uint32)])
    values = bits.view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        want = values.astype(narrow)
    got = executable(values, entry="narrow")
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), np.isnan(values))
    numbers = ~np.isnan(values)
    np.testing.assert_array_equal(got[numbers].view(np.uint16), want[numbers].view(np.uint16))


@pytest.mark.parametrize("name", list(TARGETS))
def test_products_use_the_vectors_of_the_processor(name: str) -> None:
    target = Target.parse(f"cpu:{name}")
    text = assembly(llvm_ir(name, "f32", "matmul"), target)
    rows, columns = target.matmul_tile
    assert len(re.findall(INSTRUCTIONS[name], text)) >= rows * columns // target.lanes()


#: Every dtype without any of the instructions for it; the narrow ones as instructions come; NEON's libm and conversions.
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *(("x86-64", dtype) for dtype in ("f32", "f64", "bf16", "f16")), ("x86-64-v3", "bf16"), ("x86-64-v3", "f16"),
        ("znver5", "bf16"), ("znver5", "f16"), ("aarch64", "f32"), ("aarch64", "bf16"), ("aarch64", "f16"),
    ],
)  # fmt: skip
def test_objects_need_nothing_that_a_runtime_may_lack(name: str, dtype: str) -> None:
    with kept():
        objects = members(object_code(llvm_ir(name, dtype, *OPS), Target.parse(f"cpu:{name}")).archive()).values()
    undefined = {symbol for code in objects for symbol in undefined_symbols(code)}
    assert not [s for s in undefined if not RUNTIME.fullmatch(s)]


def test_macos_objects_are_macho() -> None:
    objects = members(object_code(llvm_ir("apple-m1", "f32", "matmul"), Target.parse("cpu:apple-m1")).archive())
    assert {code[:4] for code in objects.values()} == {b"\xcf\xfa\xed\xfe"}


@pytest.mark.parametrize("name", list(TARGETS))
def test_tiles_fit_the_registers(name: str) -> None:
    target = Target.parse(f"cpu:{name}")
    rows, columns = target.matmul_tile
    vectors = columns // target.lanes()
    assert rows * vectors + vectors + 1 <= target.vector_registers
    assert columns & (columns - 1) == 0


def test_unknown_targets_are_errors() -> None:
    with pytest.raises(rx.RelaxError, match=r"expected target 'cpu', or 'cpu:' and one of x86-64, .*, got 'cpu:pentium'"):
        Target.parse("cpu:pentium")
    with pytest.raises(rx.RelaxError, match="expected target 'cpu', got 'tpu'"):
        Target.parse("tpu")


def test_code_for_another_processor_does_not_run_here() -> None:
    foreign = "neoverse-v1" if Target.host().triple.startswith("x86_64") else "x86-64"
    with pytest.raises(rx.RelaxError, match="executable: expected code for"):
        rx.compile(rx.Module.parse(model("None", 96, "n")), target=f"cpu:{foreign}")
