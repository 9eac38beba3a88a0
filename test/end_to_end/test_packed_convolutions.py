"""Convolutions over single elements in NHWC, their filters packed when weights are prepared, against the reference."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype

TOLERANCE = {"f32": 1e-5, "bf16": 2e-2, "f16": 2e-3}
FILTERS = {"OIHW": (12, 20, 1, 1), "HWIO": (1, 1, 20, 12)}


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("layout", list(FILTERS))
@pytest.mark.parametrize("batch", ["n", 3])
def test_packed_filters_mean_what_filters_do(batch: str | int, layout: str, dtype: str) -> None:
    builder = rx.Builder()
    with builder.function("main"):
        x = builder.input("x", (batch, 5, 7, 20), dtype)
        w = builder.weight("w", FILTERS[layout], dtype)
        builder.output(builder.relu(builder.conv2d(x, w, data_layout="NHWC", kernel_layout=layout)))
    module, rng = builder.build(), np.random.default_rng(0)
    raw = {"w": rng.standard_normal(FILTERS[layout]).astype(numpy_dtype(dtype))}
    image = rng.standard_normal((3, 5, 7, 20)).astype(numpy_dtype(dtype))
    executable = rx.compile(module)
    executable.bind(executable.prepare(raw))
    assert '"relax.packed_conv2d"' in executable.module_text
    (want,) = rx.evaluate(module, "main", image, weights=raw)
    got = executable(image)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    scale = np.abs(want.astype(np.float64)).max()
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=0, atol=TOLERANCE[dtype] * scale)
