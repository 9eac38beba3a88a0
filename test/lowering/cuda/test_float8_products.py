"""Products of 8-bit floats, on the emulator: as floats of 16 bits, exactly, or by instructions that multiply them as they are.

The emulator sums in f32 what the hardware sums with fewer bits: how exact feature ``f8`` is on a GPU is not tested here.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cuda.cuda_target import CudaTarget
from support.emulated_cuda import kernels, plans

FORMATS = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Of very different sizes, with an offset, subnormal ones and the largest among them."""
    rng = np.random.default_rng(seed)
    found = (rng.standard_normal(shape) + 1) * rng.choice([2.0**-9, 0.25, 1, 32], shape)
    found[0, :2] = 2.0**-9, 448
    return found.astype(numpy_dtype(dtype))


def product(rows: int | str, steps: int, columns: int, dtype: str) -> rx.Module:
    """Of activations and weights, scaled by a number for each column."""
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", (rows, steps), dtype), b.weight("w", (steps, columns), dtype)
        b.output(b.multiply(b.matmul(x, w, out_dtype="f32"), b.weight("s", (columns,), "f32")))
    return b.build()


def scaled(rows: int, steps: int, columns: int, dtype: str, weight: str) -> rx.Module:
    """Of activations and what weights stand for, each column of which has a scale; large enough not to be prepared as f32."""
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", (rows, steps), dtype), b.weight("w", (steps, columns), weight)
        b.output(b.matmul(b.astype(x, "f32"), b.multiply(b.astype(w, "f32"), b.weight("s", (1, columns), "f32"))))
    return b.build()


def in_blocks(rows: int | str, steps: int, columns: int, dtype: str) -> rx.Module:
    """Of activations and weights ``[columns, steps]``, each 128 by 128 of which have one scale, as checkpoints have them."""
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", (rows, steps), dtype), b.weight("w", (columns, steps), "f8E4M3FN")
        scale = b.weight("s", (-(-columns // 128), -(-steps // 128)), "f32")
        each = b.repeat(b.repeat(scale, repeats=128, axis=0), repeats=128, axis=1)
        own = b.strided_slice(each, axes=[0, 1], begin=[0, 0], end=[columns, steps])
        wide = b.multiply(b.astype(w, "f32"), own)
        b.output(b.matmul(b.astype(x, "f32"), b.permute_dims(wide, axes=[1, 0])))
    return b.build()


def check_sums(found: np.ndarray, x: np.ndarray, stands_for: np.ndarray) -> None:
    """Sums of f32 are off by the rounding of k additions, and of a scale's product."""
    wide = x.astype(np.float64)
    want, most = wide @ stands_for, abs(wide) @ abs(stands_for)
    assert (abs(found - want) <= (x.shape[1] + 2) * 2.0**-24 * most).all()


@pytest.mark.parametrize(
    ("target", "kind", "sizes", "plan"),
    [
        ("sm_80", "e4m3", (19, 80, 40), " by=f16 copies=0:0 "),
        ("sm_90a", "e5m2", (70, 33, 37), " by=f16 copies=0:0 "),
        ("sm_89+f8", "e4m3", (40, 144, 48), " by=e4m3 copies=16:16 "),
        ("sm_90a+f8", "e5m2", (5, 100, 24), " by=e5m2 copies=4:4 "),
        ("sm_89+f8", "e4m3", (21, 35, 24), " by=e4m3 copies=0:0 "),
        ("sm_90a+f8", "e4m3", (70, 272, 72), "x128 stages=8 by=e4m3 "),
        ("sm_90a+f8", "e5m2", (130, 128, 136), "x128 stages=8 by=e5m2 "),
    ],
)
def test_factors_of_8_bits(target: str, kind: str, sizes: tuple[int, int, int], plan: str) -> None:
    rows, steps, columns = sizes
    x, w = numbers((rows, steps), FORMATS[kind], 1), numbers((steps, columns), FORMATS[kind], 2)
    scale = np.random.default_rng(3).random(columns, np.float32) + 0.5
    module = product("n" if rows == 19 else rows, steps, columns, FORMATS[kind])
    executable = rx.compile(module, f"cuda:{target}", device="emulated")
    executable.bind(executable.prepare({"w": w, "s": scale}))
    check_sums(np.asarray(executable(x)), x, w.astype(np.float64) * scale)
    assert any(plan in p for p in plans(executable)), plans(executable)


def test_weights_of_8_bits_are_multiplied_as_activations_are() -> None:
    x, w = numbers((6, 384), "bf16", 1), numbers((384, 1024), "f8E4M3FN", 2)
    scale = np.random.default_rng(3).random((1, 1024), np.float32) + 0.5
    executable = rx.compile(scaled(6, 384, 1024, "bf16", "f8E4M3FN"), "cuda:sm_90a+f8", device="emulated")
    executable.bind(executable.prepare({"w": w, "s": scale}))
    check_sums(np.asarray(executable(x)), x, w.astype(np.float64) * scale)
    assert any(" by=bf16 " in p for p in plans(executable)), plans(executable)


@pytest.mark.parametrize(
    ("target", "sizes", "dtype", "plan"),
    [
        ("sm_80", (21, 712, 1000), "bf16", " by=bf16 "),
        ("sm_90a+f8", (21, 512, 1024), "f16", " by=f16 "),
        ("sm_80", (5, 640, 1024), "f32", " by=fma "),
        ("sm_90a", (2, 712, 1000), "bf16", "columns=1 "),
    ],
)
def test_weights_with_a_scale_for_each_block(target: str, sizes: tuple[int, int, int], dtype: str, plan: str) -> None:
    rows, steps, columns = sizes
    x, w = numbers((rows, steps), dtype, 1), numbers((columns, steps), "f8E4M3FN", 2)
    scale = np.random.default_rng(3).random((-(-columns // 128), -(-steps // 128)), np.float32) + 0.5
    executable = rx.compile(in_blocks("n" if rows == 21 else rows, steps, columns, dtype), f"cuda:{target}", device="emulated")
    prepared = executable.prepare({"w": w, "s": scale})
    assert "float8_e4m3fn" in {array.dtype.name for array in prepared.values()}, "weights are prepared as wider numbers"
    executable.bind(prepared)
    each = scale.repeat(128, 0).repeat(128, 1)[:columns, :steps].astype(np.float64)
    check_sums(np.asarray(executable(x)), x, (w.astype(np.float64) * each).T)
    assert any(plan in p for p in plans(executable)), plans(executable)


def test_not_a_number_is_one_in_its_row_and_column() -> None:
    for target in ("cuda:sm_80", "cuda:sm_90a+f8"):
        x, w = numbers((40, 128), "f8E4M3FN", 1), numbers((128, 64), "f8E4M3FN", 2)
        x[3, 5] = w[7, 9] = ml_dtypes.float8_e4m3fn(np.nan)
        executable = rx.compile(product(40, 128, 64, "f8E4M3FN"), target, device="emulated")
        executable.bind(executable.prepare({"w": w, "s": np.ones(64, np.float32)}))
        expected = np.zeros((40, 64), np.bool_)
        expected[3], expected[:, 9] = True, True
        assert np.array_equal(np.isnan(np.asarray(executable(x))), expected)


@pytest.mark.parametrize(("target", "opcodes"), [("sm_89+f8", ["QMMA", "LDGSTS"]), ("sm_90a+f8", ["QGMMA", "UTMALDG"])])
def test_machine_code_multiplies_8_bits_without_local_memory(target: str, opcodes: list[str], tmp_path: Path) -> None:
    (found,) = kernels(product(4096, 4096, 4096, "f8E4M3FN"), tmp_path, f"cuda:{target}").values()
    found.check(has=opcodes)


def test_the_feature_asks_for_tensor_cores_that_have_it() -> None:
    assert CudaTarget.parse("cuda:sm_90a+tf32+f8").name == "cuda:sm_90a+tf32+f8"
    expected = "expected an architecture whose tensor cores multiply 8-bit floats for feature 'f8', got 'cuda:sm_86+f8'"
    with pytest.raises(RelaxError) as caught:
        CudaTarget.parse("cuda:sm_86+f8")
    assert str(caught.value) == expected
