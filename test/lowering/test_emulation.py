"""The emulation of other processors' instructions, which the tests of their code rely on, against the manuals in NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from relaxir.lowering.cpu.codegen import object_code
from relaxir.lowering.target import Target
from relaxir.runtime.library import Library
from support.emulation import emulated

ELEMENTS = {"float": np.float32, "bfloat": ml_dtypes.bfloat16, "i32": np.int32, "i8": np.int8}
BF16_PAIRS = (
    "call <{n} x float> @llvm.x86.avx512bf16.dpbf16ps.{bits}(<{n} x float> %v0, <{m} x bfloat> %v1, <{m} x bfloat> %v2)"
)
NEON_PAIRS = "call <4 x float> @llvm.aarch64.neon.bfdot.v4f32.v8bf16(<4 x float> %v0, <8 x bfloat> %v1, <8 x bfloat> %v2)"
BYTE_QUADS = "call <{n} x i32> @llvm.x86.avx512.vpdpbusd.{bits}(<{n} x i32> %v0, <{m} x i8> %v1, <{m} x i8> %v2)"

SCALED = (
    "call <{n} x float> @llvm.x86.avx512.mask.scalef.ps.{bits}(<{n} x float> %v0, <{n} x float> %v1, <{n} x float> %v0, {rest})"
)


def run(instruction: str, element: str, lanes: int, *arguments: np.ndarray) -> np.ndarray:
    """Executes one instruction on %v0, %v1... which are vectors in memory."""
    names = {np.dtype(dtype): name for name, dtype in ELEMENTS.items()}
    lines = [f"%a{i} = getelementptr ptr, ptr %tensors, i64 {i}" for i in range(len(arguments) + 1)]
    lines += [f"%p{i} = load ptr, ptr %a{i}" for i in range(len(arguments) + 1)]
    lines += [f"%v{i} = load <{a.size} x {names[a.dtype]}>, ptr %p{i}, align 1" for i, a in enumerate(arguments)]
    lines += [f"%r = {instruction}", f"store <{lanes} x {element}> %r, ptr %p{len(arguments)}, align 1", "ret i64 0"]
    body = "\n".join(lines)
    text = f"define i64 @f(ptr %tensors, ptr %symbols, ptr %arena, i64 %bytes) {{\n{body}\n}}"
    function = Library.from_object(object_code(emulated(text), Target.host()).archive(), ["f"]).function("f")
    out = np.zeros(lanes, ELEMENTS[element])
    assert function((ctypes.c_void_p * 9)(*(a.ctypes.data for a in arguments), out.ctypes.data), None, None, 0) == 0
    return out


def normal(x: np.ndarray) -> np.ndarray:
    """Zero for what is below the normal numbers."""
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x).astype(np.float32)


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """``a * b + c`` rounded once: bf16 products are exact in f32, and long double holds the sum of these inputs."""
    return normal((a.astype(np.longdouble) * b + c).astype(np.float32))


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_bf16_pairs_are_added_one_after_the_other(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    instruction = BF16_PAIRS.format(n=lanes, m=2 * lanes, bits=32 * lanes)
    for scale in (1.0, 1e-19, 2.0**-126):
        total = (rng.standard_normal(lanes) * scale**2).astype(np.float32)
        a, b = ((rng.standard_normal(2 * lanes) * scale).astype(ml_dtypes.bfloat16) for _ in range(2))
        x, y = (normal(v.astype(np.float32)) for v in (a, b))
        want = fused(x[0::2], y[0::2], fused(x[1::2], y[1::2], normal(total)))
        np.testing.assert_array_equal(run(instruction, "float", lanes, total, a, b), want)


def to_odd(exact: np.ndarray) -> np.ndarray:
    """f32 of numbers of more digits: where one is inexact, its neighbour with an odd last bit."""
    near = exact.astype(np.float32)
    other = np.nextafter(near, np.where(exact > near, np.inf, -np.inf).astype(np.float32))
    return normal(np.where((near != exact) & (near.view(np.int32) % 2 == 0), other, near))


@pytest.mark.parametrize("scale", [1.0, 1e-10, 3e-19])
def test_neon_pairs_are_rounded_to_odd(scale: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(8):
        total = (rng.standard_normal(4) * scale**2).astype(np.float32)
        a, b = ((rng.standard_normal(8) * scale).astype(ml_dtypes.bfloat16) for _ in range(2))
        x, y = (normal(v.astype(np.float32)) for v in (a, b))
        products = normal(x * y).astype(np.longdouble)  # of 16 bits, so exact
        both = to_odd(products[0::2] + products[1::2])
        want = to_odd(normal(total).astype(np.longdouble) + both)
        np.testing.assert_array_equal(run(NEON_PAIRS, "float", 4, total, a, b), want)


def test_bf16_pairs_keep_what_is_no_number() -> None:
    total = np.array([np.inf, 1, 1, 1], np.float32)
    a = np.array([1, 1, np.inf, 1, np.nan, 1, 2, 3], ml_dtypes.bfloat16)
    b = np.array([1, 1, 0, 1, 1, 1, 4, 5], ml_dtypes.bfloat16)
    got = run(BF16_PAIRS.format(n=4, m=8, bits=128), "float", 4, total, a, b)
    np.testing.assert_array_equal(got, [np.inf, np.nan, np.nan, 24])


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_bytes_are_unsigned_times_signed(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    total = rng.integers(-(2**31), 2**31, lanes).astype(np.int32)
    a, b = (rng.integers(-128, 128, 4 * lanes).astype(np.int8) for _ in range(2))
    sums = (a.view(np.uint8).astype(np.int64) * b).reshape(-1, 4).sum(axis=1)
    got = run(BYTE_QUADS.format(n=lanes, m=4 * lanes, bits=32 * lanes), "i32", lanes, total, a, b)
    np.testing.assert_array_equal(got, (total + sums).astype(np.int32))


@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_bf16_is_rounded_and_widened(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    for _ in range(8):
        x = rng.integers(0, 2**32, lanes, np.uint32).view(np.float32)
        x = np.where(np.isnan(x), np.float32(0.1), x)
        with np.errstate(over="ignore"):
            want = x.astype(ml_dtypes.bfloat16)
        got = run(f"fptrunc <{lanes} x float> %v0 to <{lanes} x bfloat>", "bfloat", lanes, x)
        np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))
        wide = run(f"fpext <{lanes} x bfloat> %v0 to <{lanes} x float>", "float", lanes, want)
        np.testing.assert_array_equal(wide, want.astype(np.float32))
    (nan,) = run("fptrunc <1 x float> %v0 to <1 x bfloat>", "bfloat", 1, np.array([0x7F800001], np.uint32).view(np.float32))
    assert np.isnan(nan)


@pytest.mark.parametrize("signed", ["s", "u"])
def test_integers_become_bf16(signed: str) -> None:
    x = np.random.default_rng(0).integers(-(2**31), 2**31, 16).astype(np.int32)
    got = run(f"{signed}itofp <16 x i32> %v0 to <16 x bfloat>", "bfloat", 16, x)
    wide = (x if signed == "s" else x.view(np.uint32)).astype(np.float32)
    np.testing.assert_array_equal(got, wide.astype(ml_dtypes.bfloat16))


def test_unknown_instructions_are_not_dropped() -> None:
    with pytest.raises(AssertionError, match=r"no emulation of @llvm.x86.avx512.sitofp.round"):
        emulated("%x = call <8 x double> @llvm.x86.avx512.sitofp.round(<8 x i64> %y, i32 4)")


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_numbers_are_scaled_and_rounded_once(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    rest = "i16 -1, i32 4" if lanes == 16 else "i8 -1"
    instruction = SCALED.format(n=lanes, bits=32 * lanes, rest=rest)
    for low, high in ((-151, -120), (-20, 20), (100, 129)):
        x, n = rng.uniform(0.7, 1.5, lanes).astype(np.float32), rng.integers(low, high, lanes).astype(np.float32)
        with np.errstate(over="ignore", under="ignore"):
            want = (x.astype(np.float64) * 2.0**n).astype(np.float32)
        np.testing.assert_array_equal(run(instruction, "float", lanes, x, n), want)
    x[:2], n[1] = np.nan, np.nan
    assert np.isnan(run(instruction, "float", lanes, x, n)[:2]).all()


SIGNS = ("ss", "su", "us", "uu")
#: Those that have the instruction, if they do: both are the same then.
TILES = [emulated, str] if Target.host().multiplies_tiles("llvm.x86.tdpbssd") else [emulated]
TILES_OF_BF16 = [emulated, str] if Target.host().multiplies_tiles("llvm.x86.tdpbf16ps") else [emulated]


def run_tiles(instruction: str, edit: Callable[[str], str], c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Executes one instruction on tile registers that hold matrices: what the first of them holds then."""
    shapes = [(v.shape[0], v.shape[1] * v.itemsize) for v in (c, a, b)]
    configuration = bytearray(64)
    configuration[0] = 1
    for i, (rows, size) in enumerate(shapes):
        configuration[16 + 2 * i : 18 + 2 * i], configuration[48 + i] = size.to_bytes(2, "little"), rows
    lines = [f"%a{i} = getelementptr ptr, ptr %tensors, i64 {i}" for i in range(5)]
    lines += [f"%p{i} = load ptr, ptr %a{i}" for i in range(5)]
    lines.append("call void @llvm.x86.ldtilecfg(ptr %p0)")
    lines += [f"call void @llvm.x86.tileloadd64(i8 {i}, ptr %p{i + 1}, i64 {size})" for i, (_, size) in enumerate(shapes)]
    lines.append(f"call void @llvm.x86.{instruction}(i8 0, i8 1, i8 2)")
    lines.append(f"call void @llvm.x86.tilestored64(i8 0, ptr %p4, i64 {shapes[0][1]})")
    body = "\n".join([*lines, "call void @llvm.x86.tilerelease()", "ret i64 0"])
    text = f"define i64 @f(ptr %tensors, ptr %symbols, ptr %arena, i64 %bytes) {{\n{body}\n}}\n"
    function = Library.from_object(object_code(edit(text), Target.host()).archive(), ["f"]).function("f")
    out, given = np.zeros_like(c), np.frombuffer(bytes(configuration), np.uint8)
    tensors = (ctypes.c_void_p * 5)(*(v.ctypes.data for v in (given, c, a, b, out)))
    assert function(tensors, None, None, 0) == 0
    return out


@pytest.mark.parametrize("edit", TILES)
@pytest.mark.parametrize("signs", SIGNS)
@pytest.mark.parametrize(("rows", "words", "columns"), [(16, 16, 16), (5, 3, 16), (1, 16, 7)])
def test_tiles_of_bytes(edit: Callable[[str], str], signs: str, rows: int, words: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    c = rng.integers(-(2**31), 2**31, (rows, columns)).astype(np.int32)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((rows, 4 * words), (words, 4 * columns)))
    x, y = ((v.view(np.uint8) if s == "u" else v).astype(np.int64) for v, s in zip((a, b), signs, strict=True))
    matrix = y.reshape(words, columns, 4).transpose(0, 2, 1).reshape(4 * words, columns)
    np.testing.assert_array_equal(run_tiles(f"tdpb{signs}d", edit, c, a, b), (c + x @ matrix).astype(np.int32))


@pytest.mark.parametrize("edit", TILES_OF_BF16)
@pytest.mark.parametrize("scale", [1.0, 1e-19, 2.0**-126])
@pytest.mark.parametrize(("rows", "words"), [(16, 16), (3, 5)])
def test_tiles_of_bf16(edit: Callable[[str], str], scale: float, rows: int, words: int) -> None:
    """Even and odd elements are summed apart, then added, then to the sum; each step rounds once."""
    rng = np.random.default_rng(words)
    c = (rng.standard_normal((rows, 16)) * scale**2).astype(np.float32)
    a, b = ((rng.standard_normal(s) * scale).astype(ml_dtypes.bfloat16) for s in ((rows, 2 * words), (words, 32)))
    x, y = (normal(v.astype(np.float32)) for v in (a, b))
    halves = [np.zeros((rows, 16), np.float32) for _ in range(2)]
    for k in range(words):
        halves = [fused(x[:, 2 * k + i, None], y[k, i::2], half) for i, half in enumerate(halves)]
    want = normal(normal(c) + normal(halves[0] + halves[1]))
    np.testing.assert_array_equal(run_tiles("tdpbf16ps", edit, c, a, b), want)
