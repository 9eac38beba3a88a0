"""Attention keeps its meaning when lowered: grouped queries, masks, causality, rows that see nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.lowering.linalg.key_blocks import KeyBlocks
from support.naive import Case, assert_close, check

#: Blocks of few keys, so that few keys are several.
FEW = KeyBlocks(keys=8, single=8, shown=8)
#: The same, two of them a part.
PARTS = KeyBlocks(keys=8, single=8, shown=8, parts=2)


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


@pytest.mark.parametrize("blocks", [None, FEW, PARTS])
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_where_there_are_no_keys_it_is_0(rows: int, blocks: KeyBlocks | None) -> None:
    shapes = ("b, 4, s, 8", "b, 2, t, 8", "b, 2, t, 8", "b, 4, s, 8")
    static = (f"2, 4, {rows}, 8", "2, 2, 0, 8", "2, 2, 0, 8", f"2, 4, {rows}, 8")
    cases = [attention(*shapes), attention(*shapes, mask="s, t:i1"), attention(*shapes, "causal = true"), attention(*static)]
    for result in check(*cases, key_blocks=blocks, b=2, s=rows, t=0):
        assert not result.any()


def test_a_query_that_sees_no_key_is_nan() -> None:
    mask = np.ones((5, 7), np.bool_)
    mask[2] = False
    case = attention("1, 1, 5, 8", "1, 1, 7, 8", "1, 1, 7, 8", "1, 1, 5, 8", mask="5, 7:i1")
    (result,) = check(Case(case.name, case.operands, case.results, values={3: mask}))
    assert np.isnan(result[0, 0, 2]).all()
    assert np.isfinite(result[0, 0, 1]).all()


def test_other_tiles() -> None:
    check(attention("2, 4, 5, 8", "2, 2, 17, 8", "2, 2, 17, 12", "2, 4, 5, 12"), tile=16)


def sized(rows: int | str, keys: int | str, attributes: str = "", mask: str | None = None, dtype: str = "f32") -> Case:
    """Grouped queries over that many rows and keys."""
    q, k = f"1, 2, {rows}, 4", f"1, 1, {keys}, 4"
    return attention(q, k, k, q, attributes, mask, dtype)


@pytest.mark.parametrize("keys", [1, 7, 8, 9, 29])
def test_edges_of_blocks(keys: int) -> None:
    for rows in (1, 31, 32, 33):
        given = [sized(rows, keys), sized(rows, keys, "causal = true"), sized(rows, keys, mask=f"{rows}, {keys}:f32")]
        open_ = [sized("n", "m"), sized("n", "m", "causal = true"), sized("n", "m", "causal = true", "n, m:i1")]
        check(*given, *open_, n=rows, m=keys, key_blocks=FEW)


@pytest.mark.parametrize("keys", [383, 384, 385, 511, 512, 513, 3 * 384 + 5])
def test_edges_of_blocks_as_they_are(keys: int) -> None:
    check(sized(33, keys), sized(7, keys, "causal = true"), sized("n", "m", "causal = true"), n=8, m=keys)


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
def test_dtypes_over_several_blocks(dtype: str) -> None:
    check(sized(5, 29, dtype=dtype), sized("n", "m", "causal = true", f"n, m:{dtype}", dtype), n=5, m=29, key_blocks=FEW)


def test_sizes_that_are_not_known() -> None:
    shapes = ("1, 2, n, d", "1, 2, m, d", "1, 2, m, w", "1, 2, n, w")
    few = [s.replace("n", "7") for s in shapes]
    cases = [attention(*s, f"scale = 0.5 : f64, causal = {c}") for s in (shapes, few) for c in ("true", "false")]
    check(*cases, n=35, m=9, d=5, w=3)


def test_rows_too_long_for_the_stack() -> None:
    for rows in (5, 32, 33, 64):
        check(attention(f"1, 2, {rows}, 2000", "1, 1, 9, 2000", "1, 1, 9, 3", f"1, 2, {rows}, 3"))


@pytest.mark.parametrize("low", [-np.inf, np.finfo(np.float32).min])
def test_keys_that_are_seen_late(low: float) -> None:
    """Whole blocks of keys that a row does not see, before those that it sees."""
    mask = np.zeros((5, 29), np.float32)
    mask[0, :20] = mask[1, 8:24] = mask[2, :28] = mask[3] = low
    case = sized(5, 29, mask="5, 29:f32")
    (result,) = check(Case(case.name, case.operands, case.results, values={3: mask}), key_blocks=FEW)
    assert np.isfinite(result[0, 0, [0, 1, 2, 4]]).all()


@pytest.mark.parametrize("rows", [1, 3, 9, 40])
@pytest.mark.parametrize("keys", [29, 5000])
def test_keys_of_tiny_weights_are_as_if_hidden(keys: int, rows: int) -> None:
    """Less than ``e ** -80`` of the largest weight is 0, not a number that a processor takes long for; what is more counts."""
    b = rx.Builder()
    with b.function("main"):
        q, k, v = (b.input(name, (1, 2, n, 8), "f32") for name, n in (("q", rows), ("k", keys), ("v", keys)))
        b.output(b.attention(q, k, v, b.input("mask", (rows, keys), "f32")))
    executable = rx.compile(b.build())
    v = np.zeros((1, 2, keys, 8), np.float32)
    v[:, :, ::3] = 1e30
    mask, hidden = np.zeros((rows, keys), np.float32), -(-keys // 3)
    for low in (-100.0, -81.0, -79.0):
        mask[:, ::3] = low
        got = np.asarray(executable(np.zeros((1, 2, rows, 8), np.float32), np.ones_like(v), v, mask))
        want = 0.0 if low < -80 else np.exp(low) * 1e30 * hidden / (keys - hidden)
        np.testing.assert_allclose(got, want, rtol=1e-4)  # a third of 5000 equal numbers are added up one by one, each rounded


def test_a_score_that_is_nan_or_infinite_stays_so() -> None:
    mask = np.zeros((5, 29), np.float32)
    mask[0, 3], mask[1, 25], mask[2, 12] = np.nan, np.nan, np.inf
    case = sized(5, 29, mask="5, 29:f32")
    with np.errstate(invalid="ignore"):
        (result,) = check(Case(case.name, case.operands, case.results, values={3: mask}), key_blocks=FEW)
    assert np.isnan(result[0, 0, :3]).all()
    assert np.isfinite(result[0, 0, 3:]).all()


@pytest.mark.parametrize("dtype", ["i1", "f32", "f16"])
@pytest.mark.parametrize("rows", [1, 3, 9])
def test_blocks_that_are_hidden_from_all_rows(rows: int, dtype: str) -> None:
    """The first one, some between others, the last one, all; per row, and the same ones for all rows and heads."""
    shown = np.zeros((rows, 40), np.bool_)
    shown[0, 9:12], shown[-1, 25:30] = True, True
    for value in (shown, shown[-1], np.zeros_like(shown)):
        mask = value if dtype == "i1" else np.where(value, 0.5, -np.inf).astype(numpy_dtype(dtype))
        text = f"{', '.join(map(str, mask.shape))}:{dtype}"
        wide = "f32" if dtype == "i1" else dtype
        symbolic = text.replace(f"{rows}, 40", "n, m").replace("40", "m")
        given = sized(rows, 40, mask=text, dtype=wide), sized("n", "m", mask=symbolic, dtype=wide)
        for case in given:
            (result,) = check(Case(case.name, case.operands, case.results, values={3: mask}), n=rows, m=40, key_blocks=FEW)
            hidden = np.broadcast_to(~value.any(-1, keepdims=True), (rows, 1)) if value.ndim == 2 else False
            assert np.array_equal(np.isnan(result[0, 0]), np.broadcast_to(hidden, result[0, 0].shape))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_one_row_by_parts_of_the_keys(dtype: str) -> None:
    mask = np.zeros((1, 75), numpy_dtype(dtype))
    mask[:, 5:40] = mask[:, 64:] = -np.inf
    plain = [sized(1, 75, dtype=dtype), sized(1, 32, dtype=dtype), sized(1, "m", dtype=dtype)]
    heads = attention("b, 6, 1, 4", "b, 3, m, 4", "b, 3, m, 2", "b, 6, 1, 2", dtype=dtype)
    alone = attention("2, 3, 1, 4", "2, 3, 75, 4", "2, 3, 75, 4", "2, 3, 1, 4", dtype=dtype)
    check(*plain, heads, alone, sized(1, 75, mask=f"1, 75:{dtype}", dtype=dtype), m=75, b=2, key_blocks=PARTS)
    case = sized(1, 75, mask=f"1, 75:{dtype}", dtype=dtype)
    for value in (mask, np.full_like(mask, -np.inf)):
        check(Case(case.name, case.operands, case.results, values={3: value}), key_blocks=PARTS)
    check(sized(1, "m", dtype=dtype), m=3, key_blocks=PARTS)


@pytest.mark.parametrize("rows", [1, 5, 40])
@pytest.mark.parametrize("symbolic", [False, True])
def test_a_cache_that_is_filled_step_by_step(rows: int, symbolic: bool) -> None:
    """What is beyond the rows' own positions is not looked at."""
    b = rx.Builder()
    with b.function("main"):
        q = b.input("q", (1, 4, "rows" if symbolic else rows, 16))
        k, v = (b.input(name, (1, 2, 700, 16)) for name in "kv")
        b.output(b.attention(q, k, v, b.input("mask", (1, 1, "rows" if symbolic else rows, 700), "i1")))
    module, rng = b.build(), np.random.default_rng(0)
    executable = rx.compile(module)
    for first in (0, 143, 144, 400, 700 - rows):
        q, k, v = (rng.standard_normal((1, h, n, 16), np.float32) for h, n in ((4, rows), (2, 700), (2, 700)))
        mask = np.arange(700) <= first + np.arange(rows)[:, None]
        (want,) = rx.evaluate(module, "main", q, k, v, mask[None, None])
        k[:, :, first + rows + 144 :] = v[:, :, first + rows + 144 :] = np.nan
        assert_close(executable(q, k, v, mask[None, None]), want)


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3", "cpu:x86-64"])
@pytest.mark.parametrize("shared", range(1, 10))
def test_one_row_of_heads_that_share_keys(shared: int, target: str) -> None:
    """Keys lie head by head, or with the heads of each key beside each other; a mask hides some."""
    b, rng = rx.Builder(), np.random.default_rng(shared)
    arrays, results = list[np.ndarray](), []
    with b.function("main"):
        for width, dtype in ((12, "f32"), (33, "f32"), (64, "f32"), (64, "f16")):
            keys = 600 + width
            shapes = [(1, 2 * shared, 1, width), (1, keys, 2, width), (1, 2, keys, width), (1, 1, 1, keys)]
            q, k, v, mask = (b.input(f"{n}{width}{dtype}", s, dtype) for n, s in zip("qkvm", shapes, strict=True))
            results.append(b.attention(q, b.permute_dims(k, [0, 2, 1, 3]), v, mask))
            arrays += [rng.standard_normal(s).astype(numpy_dtype(dtype)) for s in shapes[:3]]
            arrays.append(np.where(rng.random(shapes[3]) < 0.3, -np.inf, 0).astype(numpy_dtype(dtype)))
        b.output(*results)
    module = b.build()
    for got, want in zip(rx.compile(module, target=target)(*arrays), rx.evaluate(module, "main", *arrays), strict=True):
        assert_close(got, want)


@dataclass(frozen=True)
class Compiled:
    """Attention to compile: the sizes, which the types leave open where ``symbolic``, and what keys and values are stored in.

    Where that is another dtype, it is converted first.
    """

    batch: int
    heads: int
    groups: int
    rows: int
    keys: int
    causal: bool = False
    mask: bool = False
    symbolic: bool = False
    dtype: str = "f32"
    width: int = 8
    stored: str | None = None

    def module(self) -> rx.Module:
        b = rx.Builder()
        rows, keys = ("rows", "keys") if self.symbolic else (self.rows, self.keys)
        with b.function("main"):
            q = b.input("q", (self.batch, self.heads, rows, self.width), self.dtype)
            stored = self.stored or self.dtype
            k, v = (b.input(name, (self.batch, self.groups, keys, self.width), stored) for name in "kv")
            k, v = (x if stored == self.dtype else b.astype(x, dtype=self.dtype) for x in (k, v))
            mask = [b.input("mask", (1, self.heads, rows, keys), "f32")] if self.mask else []
            b.output(b.attention(q, k, v, *mask, causal=self.causal))
        return b.build()

    def inputs(self) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        mask = [(self.heads, self.rows, self.keys)] if self.mask else []
        shapes = [(self.heads, self.rows, self.width), *[(self.groups, self.keys, self.width)] * 2]
        dtypes = map(numpy_dtype, (self.dtype, *[self.stored or self.dtype] * 2))
        arrays = [rng.standard_normal((self.batch, *s)).astype(d) for s, d in zip(shapes, dtypes, strict=True)]
        return [*arrays, *(rng.standard_normal((1, *s), np.float32) for s in mask)]


@pytest.mark.parametrize(
    "case",
    [
        Compiled(1, 1, 1, 1, 1, causal=True),
        Compiled(1, 1, 1, 1, 9, mask=True),
        Compiled(1, 1, 1, 1, 600, causal=True, mask=True),
        Compiled(2, 4, 2, 1, 1000),
        Compiled(2, 4, 2, 1, 70, mask=True),
        Compiled(1, 4, 1, 1, 4000),
        Compiled(2, 4, 2, 1, 1300, mask=True, width=64),
        Compiled(1, 2, 2, 1, 3072, dtype="bf16"),
        Compiled(1, 4, 2, 6, 1000, causal=True),
        Compiled(1, 2, 2, 6, 1000, causal=True, mask=True),
        Compiled(1, 40, 1, 1, 100, mask=True),
        Compiled(1, 20, 2, 2, 600, mask=True, dtype="bf16"),
        Compiled(1, 4, 2, 7, 900, causal=True, mask=True, symbolic=True),
        Compiled(1, 1, 1, 32, 600, causal=True),
        Compiled(1, 3, 3, 100, 100, causal=True, width=64),
        Compiled(2, 4, 2, 40, 900, causal=True, mask=True, symbolic=True),
        Compiled(2, 4, 2, 3, 900, mask=True, symbolic=True),
        Compiled(2, 4, 2, 40, 900, mask=True, symbolic=True, dtype="bf16"),
        Compiled(1, 2, 1, 40, 900, dtype="f16"),
        Compiled(1, 2, 1, 40, 900, causal=True, dtype="f64"),
        Compiled(1, 2, 1, 40, 64, width=600),
        Compiled(1, 2, 1, 4, 64, width=600),
        Compiled(1, 2, 1, 7, 64, width=600, dtype="f16"),
        Compiled(1, 4, 2, 5, 30, causal=True, dtype="f16"),
        Compiled(1, 4, 4, 17, 1000, mask=True, dtype="f16", width=33),
        Compiled(2, 2, 2, 16, 450, causal=True, dtype="bf16", width=192),
        Compiled(1, 24, 1, 1, 900, dtype="f16", width=16),
        Compiled(1, 2, 1, 70, 0, dtype="f16"),
        Compiled(1, 8, 2, 1, 4000, stored="f16", width=64),
        Compiled(2, 3, 3, 1, 1300, mask=True, stored="bf16", width=33),
        Compiled(2, 16, 1, 1, 600, stored="f16", mask=True, width=40),
        Compiled(1, 4, 2, 40, 900, causal=True, stored="f16", symbolic=True),
        Compiled(1, 4, 2, 7, 900, mask=True, stored="bf16", symbolic=True),
        Compiled(1, 2, 1, 33, 700, stored="f16", width=600),
        Compiled(1, 2, 1, 40, 900, dtype="f64", stored="f32"),
        Compiled(1, 2, 1, 20, 90, dtype="f64", stored="f16"),
        Compiled(1, 2, 1, 20, 90, dtype="bf16", stored="f8E4M3FN"),
        Compiled(1, 2, 1, 20, 90, stored="f8E5M2"),
    ],
    ids=str,
)
def test_compiled_for_any_number_of_threads(case: Compiled) -> None:
    module, inputs = case.module(), case.inputs()
    (want,) = rx.evaluate(module, "main", *inputs)
    executable = rx.compile(module)
    executable.threads = 1
    got = executable(*inputs)
    assert_close(got, want)
    for threads in (2, 3, 7):
        executable.threads = threads
        np.testing.assert_array_equal(executable(*inputs), got)


def test_keys_and_values_of_two_dtypes_that_are_moved_and_read_elsewhere() -> None:
    """Values of another dtype than keys, keys that are permuted before and behind their conversion, which is read once more."""
    b, rng = rx.Builder(), np.random.default_rng(0)
    with b.function("main"):
        q, k = b.input("q", (1, 4, 20, 16), "f32"), b.input("k", (300, 1, 16, 2), "f16")
        wide = b.astype(b.permute_dims(k, [1, 0, 3, 2]), dtype="f32")
        keys, v = b.permute_dims(wide, [0, 2, 1, 3]), b.astype(b.input("v", (1, 2, 300, 16), "bf16"), dtype="f32")
        b.output(b.attention(q, keys, v), b.sum(wide, axis=[1, 2]))
    module = b.build()
    shapes = ((1, 4, 20, 16), "f32"), ((300, 1, 16, 2), "f16"), ((1, 2, 300, 16), "bf16")
    arrays = [rng.standard_normal(s).astype(numpy_dtype(d)) for s, d in shapes]
    for got, want in zip(rx.compile(module)(*arrays), rx.evaluate(module, "main", *arrays), strict=True):
        assert_close(got, want)
