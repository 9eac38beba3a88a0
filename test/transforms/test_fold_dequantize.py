"""A spelled-out dequantization and the op that it becomes are bit for bit the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.context import new_context
from relaxir.dialect.dtypes import numpy_dtype
from support.contracts import check_contracts

RANGES = {"i4": (-8, 8), "ui4": (0, 16), "i8": (-128, 128), "ui8": (0, 256)}


def spelled(stored: str, wide: str, scale: tuple[int, ...], zero: tuple[int, ...] | None) -> str:
    def t(shape: tuple[int, ...], dtype: str) -> str:
        return f"tensor<{''.join(f'{d}x' for d in shape)}{dtype}>"

    shape = (6, 8)
    x, s = t(shape, wide), t(scale, wide)
    z = "" if zero is None else f', %z: {t(zero, stored)} {{relax.name = "z"}}'
    lines = [f'%0 = "relax.astype"(%q) {{dtype = {wide}}} : ({t(shape, stored)}) -> {x}']
    if zero is not None:
        lines.append(f'%1 = "relax.astype"(%z) {{dtype = {wide}}} : ({t(zero, stored)}) -> {t(zero, wide)}')
        lines.append(f'%2 = "relax.subtract"(%0, %1) : ({x}, {t(zero, wide)}) -> {x}')
    lines.append(f'%3 = "relax.multiply"({"%0" if zero is None else "%2"}, %s) : ({x}, {s}) -> {x}')
    return f"""func.func @main(%q: {t(shape, stored)} {{relax.name = "q"}}, %s: {s} {{relax.name = "s"}}{z}) -> {x}
    attributes {{relax.num_input = 0 : i64}} {{
  {chr(10).join(lines)}
  return %3 : {x}
}}"""


@pytest.mark.parametrize("wide", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize("stored", RANGES)
def test_every_element_is_the_same(stored: str, wide: str) -> None:
    rng, context = np.random.default_rng(1), new_context()
    low, high = RANGES[stored]
    for scale, zero in itertools.product([(), (8,), (6, 1), (6, 8)], [None, (), (1, 8), (6, 8)]):
        text = spelled(stored, wide, scale, zero)
        check_contracts(text, context, ["relax-fold-dequantize"])
        before = rx.Module.parse(text)
        after = before.run("relax-fold-dequantize")
        assert "relax.dequantize" in str(after)
        weights = {
            "q": rng.integers(low, high, (6, 8)).astype(numpy_dtype(stored)),
            "s": rng.normal(size=scale).astype(numpy_dtype(wide)),
            "z": rng.integers(low, high, zero or ()).astype(numpy_dtype(stored)),
        }
        weights = weights if zero is not None else {n: weights[n] for n in "qs"}
        want, got = (rx.evaluate(m, "main", weights=weights)[0] for m in (before, after))
        np.testing.assert_array_equal(got, want)
