"""The last columns of results of 16 and 8 bits, whose neighbours are other rows."""

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.lowering.cpu.codegen import object_code
from relaxir.lowering.target import Target
from support.emulation import compile_for, generated


@pytest.mark.parametrize("name", ["x86-64-v4", "znver4", "aarch64"])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_no_row_writes_into_the_next_one(name: str, dtype: str) -> None:
    b, element = rx.Builder(), ml_dtypes.bfloat16 if dtype == "bf16" else np.float16
    with b.function("main"):
        x = b.input("x", (9, 65), dtype)
        b.output(b.matmul(x, b.weight("w", (65, 33), dtype)))
    executable, rng = compile_for(b.build(), name), np.random.default_rng(0)
    x, w = rng.standard_normal((9, 65)).astype(element), rng.standard_normal((65, 33)).astype(element)
    executable.bind(executable.prepare({"w": w}))
    want = x.astype(np.float32) @ w.astype(np.float32)
    # A result of about 8 is rounded to 8 bits (bf16).
    np.testing.assert_allclose(executable(x).astype(np.float32), want, rtol=2**-8, atol=1e-4)


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v4", "aarch64"])
@pytest.mark.parametrize("dtype", ["i8", "ui8", "i16", "f16", "bool"])
def test_neighbours_that_lie_apart(name: str, dtype: str) -> None:
    """Lanes are stored one by one where no instruction scatters them: an image in another layout, with channels around it."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", (2, 3, "h", 37), "f32")
        narrow = b.greater(x, b.full((), 0.5, "f32")) if dtype == "bool" else b.astype(x, dtype)
        b.output(b.pad(b.permute_dims(narrow, axes=[0, 2, 3, 1]), before=[0, 1, 1, 0], after=[0, 1, 2, 1]))
    module, x = b.build(), np.arange(2 * 3 * 5 * 37, dtype=np.float32).reshape(2, 3, 5, 37) % 100
    (want,) = rx.evaluate(module, "main", x)
    np.testing.assert_array_equal(compile_for(module, name)(x), want)


@pytest.mark.parametrize("name", ["znver4", "znver5", "sapphirerapids"])
@pytest.mark.parametrize("columns", [3, 4, 8, 16, 20])
def test_sums_that_are_rounded_and_widened_again(name: str, columns: int) -> None:
    """LLVM aborted over vectors of less than a register, where AVX-512 has instructions for bf16."""
    builder = rx.Builder()
    with builder.function("main"):
        x, y = builder.input("x", (4, 4), "bf16"), builder.input("y", (4, columns), "bf16")
        builder.output(builder.add(builder.matmul(x, y), builder.constant(np.array(1, ml_dtypes.bfloat16))))
    text = generated(builder.build(), name)
    assert object_code(text, Target.parse(f"cpu:{name}")).codes
