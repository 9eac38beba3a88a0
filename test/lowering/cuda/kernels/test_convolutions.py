"""Convolutions on GPUs are products whose left factor is read where windows are, on tensor cores where there is one."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from support.emulated_cuda import plans, random

AMPERE, HOPPER = "cuda:sm_80", "cuda:sm_90a"


@pytest.mark.parametrize(
    ("image", "filters", "layout", "attrs", "target"),
    [
        ((9, 7, 16), (24, 16, 3, 3), "NHWC", {"padding": [1, 1, 1, 1], "strides": [2, 1]}, AMPERE),
        ((6, 5, 3), (8, 3, 5, 3), "NHWC", {"padding": [2, 1, 2, 1], "dilation": [1, 2]}, AMPERE),
        ((5, 5, 32), (72, 32, 1, 1), "NHWC", {}, HOPPER),
        ((16, 6, 7), (9, 16, 3, 3), "NCHW", {}, AMPERE),
        ((16, 4, 8), (24, 16, 1, 1), "NCHW", {}, HOPPER),
        ((16, 4, 8), (24, 8, 3, 3), "NCHW", {"groups": 2, "padding": [1, 1, 1, 1]}, AMPERE),
        ((16, "h", "w"), (9, 16, 3, 3), "NCHW", {"padding": [1, 1, 1, 1], "strides": [2, 1]}, HOPPER),
        (("h", "w", 8), (24, 8, 3, 3), "NHWC", {}, AMPERE),
    ],
    ids=["strides", "dilation", "point", "channels-first", "channels-first-point", "groups", "any-size", "any-size-last"],
)
def test_implicit_products(
    image: tuple[int | str, ...], filters: tuple[int, ...], layout: str, attrs: dict[str, object], target: str
) -> None:
    """Of any number and size; each of two sums in f32 is off by half a unit of what magnitudes come to for each addition."""
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", ("n", *image), "bf16"), b.weight("w", filters, "bf16")
        b.output(b.relu(b.conv2d(x, w, data_layout=layout, kernel_layout="OIHW", out_dtype="f32", **attrs)))
    module, weights, given = (
        b.build(),
        {"w": random(filters, "bf16", 1)},
        random((2, *({"h": 6, "w": 7}.get(s, s) for s in image)), "bf16"),
    )
    executable = rx.compile(module, target, device="emulated")
    executable.bind(executable.prepare(weights))
    assert any(" by=bf16 " in plan for plan in plans(executable)), plans(executable)
    (want,) = rx.evaluate(module, "main", given, weights=weights)
    (most,) = rx.evaluate(module, "main", np.abs(given), weights={"w": np.abs(weights["w"])})
    assert (np.abs(np.asarray(executable(given)) - want) <= 2 * np.prod(filters[1:]) * 2.0**-24 * most).all()
