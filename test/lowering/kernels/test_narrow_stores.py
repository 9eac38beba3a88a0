"""The last columns of results of 16 and 8 bits, whose neighbours are other rows."""

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from support.emulation import compile_for


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
