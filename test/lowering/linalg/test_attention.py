"""Attention keeps its meaning when lowered: grouped queries, masks, causality, rows that see nothing."""

from __future__ import annotations

import numpy as np
import pytest

from support.naive import Case, check


def attention(q: str, k: str, v: str, result: str, attributes: str = "", mask: str | None = None, dtype: str = "f32") -> Case:
    operands = [f"{s}:{dtype}" for s in (q, k, v)] + ([mask] if mask else [])
    return Case("attention", operands, f"{result}:{dtype}", attributes)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_dtypes(dtype: str) -> None:
    shapes = ("2, 4, 5, 8", "2, 4, 7, 8", "2, 4, 7, 33", "2, 4, 5, 33")
    check(attention(*shapes, dtype=dtype), attention(*shapes, "causal = true, scale = 0.3 : f64", dtype=dtype))


def test_grouped_queries_and_batches() -> None:
    check(
        attention("2, 6, 5, 8", "2, 2, 7, 8", "2, 2, 7, 8", "2, 6, 5, 8"),
        attention("2, 6, 5, 8", "2, 1, 7, 8", "2, 1, 7, 8", "2, 6, 5, 8"),
        attention("4, 5, 8", "4, 7, 8", "4, 7, 8", "4, 5, 8"),
        attention("2, 4, 5, 8", "1, 4, 7, 8", "1, 4, 7, 8", "2, 4, 5, 8"),
        attention("2, 3, 4, 5, 8", "1, 3, 4, 7, 8", "2, 1, 4, 7, 8", "2, 3, 4, 5, 8"),
        attention("b, 4, s, 8", "b, 2, t, 8", "b, 2, t, 8", "b, 4, s, 8"),
        attention("b, 4, s, 8", "b, 4, s, 8", "b, 4, s, 8", "b, 4, s, 8", "causal = true"),
        attention("1, 1, 1, 4", "1, 1, 1, 4", "1, 1, 1, 4", "1, 1, 1, 4"),
        b=2, s=5, t=40,
    )  # fmt: skip


def test_masks() -> None:
    shapes = ("2, 4, 5, 8", "2, 2, 7, 8", "2, 2, 7, 8", "2, 4, 5, 8")
    masks = ["2, 4, 5, 7", "5, 7", "2, 1, 1, 7", "7", "1, 1, 5, 7"]
    cases = [attention(*shapes, mask=f"{mask}:{dtype}") for mask in masks for dtype in ("f32", "i1")]
    wide = attention(*shapes, mask="5, 7:f32", dtype="bf16")
    check(*cases, wide, attention(*shapes, "causal = true", "5, 7:f32"))


def test_a_query_that_sees_no_key_is_nan() -> None:
    mask = np.ones((5, 7), np.bool_)
    mask[2] = False
    case = attention("1, 1, 5, 8", "1, 1, 7, 8", "1, 1, 7, 8", "1, 1, 5, 8", mask="5, 7:i1")
    (result,) = check(Case(case.name, case.operands, case.results, values={3: mask}))
    assert np.isnan(result[0, 0, 2]).all()
    assert np.isfinite(result[0, 0, 1]).all()


def test_other_tiles() -> None:
    check(attention("2, 4, 5, 8", "2, 2, 17, 8", "2, 2, 17, 12", "2, 4, 5, 12"), tile=16)
