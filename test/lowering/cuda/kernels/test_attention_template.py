"""Attention on GPUs: one kernel on tensor cores, of few rows by parts of the keys; on the emulator, against the reference."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.lowering.attention_mark import AttentionMark
from relaxir.lowering.cuda.cuda_target import ARCHITECTURES, CudaTarget
from relaxir.lowering.cuda.kernels.attention.make_plan import plan_few, plan_many, plan_warpgroups
from relaxir.lowering.cuda.kernels.attention.shape import AttentionShape
from relaxir.lowering.marks import ATTENTION
from support.emulated_cuda import plans, random

TARGETS = ("cuda:sm_80", "cuda:sm_90a")
#: Relative to the greatest value. bf16, f16: powers and results are rounded to them, 2^-9 and 2^-12 each; tf32: factors are,
#: 2^-11; f32: sums in another order, and of factors as two tf32 the product of the smaller parts is left out, 2^-22.
BOUNDS = {"bf16": 1e-2, "f16": 2e-3, "tf32": 3e-3, "f32": 4e-6}

Shape = tuple[int | str, ...]


def attention(
    q: Shape, k: Shape, v: Shape | None = None, mask: Shape | None = None, kind: str = "i1", dtype: str = "bf16",
    by_position: bool = False, **options: object,
) -> rx.Module:  # fmt: skip
    """One op; with ``by_position`` heads are behind positions in memory, as projections leave them."""
    b = rx.Builder()
    with b.function("main"):
        inputs = [b.input(n, s, dtype) for n, s in zip("qkv", (q, k, v or k), strict=True)]
        if by_position:
            inputs = [b.permute_dims(x, axes=[0, 2, 1, 3]) for x in inputs]
        masks = [] if mask is None else [b.input("mask", mask, kind)]
        y = b.attention(*inputs, *masks, **options)
        b.output(b.permute_dims(y, axes=[0, 2, 1, 3]) if by_position else y)
    return b.build()


@functools.lru_cache(maxsize=1)
def compiled(module: rx.Module, target: str) -> rx.Executable:
    """Once, for all calls of a test."""
    return rx.compile(module, target=target, device="emulated")


def agree(module: rx.Module, *inputs: np.ndarray, target: str = TARGETS[0], bound: float = BOUNDS["bf16"]) -> list[str]:
    """Asserts that the template takes it, and that its numbers are the reference's; gives the plans."""
    executable = compiled(module, target)
    got, (want,) = np.asarray(executable(*inputs)).astype(np.float64), rx.evaluate(module, "main", *inputs)
    want = np.asarray(want).astype(np.float64)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    seen = ~np.isnan(want)
    assert not seen.any() or np.abs(got - want)[seen].max() <= bound * max(1.0, np.abs(want[seen]).max())
    found = plans(executable)
    assert any(plan.startswith("attention ") for plan in found)
    return found


def drawn(seed: int) -> tuple[rx.Module, list[np.ndarray], float]:
    """A module and its inputs: types, sizes, strides, masks and what is known when code is made, all drawn.

    Fixed: two batch dimensions at most, heads in front of positions or behind; a mask hides a whole row by chance alone.
    """
    rng = np.random.default_rng(seed)
    pick = lambda *values: values[rng.integers(len(values))]  # noqa: E731
    dtype, groups, shared = pick("bf16", "f16", "f32"), int(rng.integers(1, 4)), pick(1, 1, 2, 5)
    batch = [int(n) for n in rng.integers(1, 3, rng.integers(1, 3))]
    rows, keys = pick(1, 2, 7, 16, 33, 70), pick(1, 5, 64, 65, 130)
    depth, width = (8 * int(rng.integers(1, 13)) for _ in range(2))
    shapes = [(*batch, groups * shared, rows, depth), (*batch, groups, keys, depth), (*batch, groups, keys, width)]
    open_ = rng.random(2) < 0.5
    names = [("n" if open_[0] else rows), ("m" if open_[1] else keys), ("m" if open_[1] else keys)]
    texts: list[Shape] = [(*s[:-2], name, s[-1]) for s, name in zip(shapes, names, strict=True)]
    by_position = len(batch) == 1 and rng.random() < 0.3
    if by_position:
        shapes, texts = ([(s[0], s[2], s[1], s[3]) for s in kind] for kind in (shapes, texts))
    inputs = [random(s, dtype, seed + i) for i, s in enumerate(shapes)]
    mask, kind = None, pick("i1", "f32", dtype)
    if rng.random() < 0.6:
        extents = list(zip((*batch, groups * shared, rows, keys), (*batch, groups * shared, names[0], names[1]), strict=True))
        kept = [(1, 1) if rng.random() < 0.4 else e for e in extents[int(rng.integers(0, len(extents) - 1)) :]]
        mask = tuple(name for _, name in kept)
        value = random(tuple(int(size) for size, _ in kept), kind, seed + 9)
        inputs.append(value if kind == "i1" else np.where(rng.random(value.shape) < 0.2, -np.inf, value).astype(value.dtype))
    options: dict[str, object] = {"causal": bool(rng.random() < 0.4)}
    if rng.random() < 0.3:
        options["scale"] = float(rng.choice([-0.3, 0.05, 1.0]))
    module = attention(*texts, mask=mask, kind=kind, dtype=dtype, by_position=by_position, **options)
    return module, inputs, BOUNDS[dtype]


@pytest.mark.parametrize("seed", range(16))
def test_drawn_attention(seed: int) -> None:
    module, inputs, bound = drawn(seed)
    agree(module, *inputs, target=TARGETS[seed % 2], bound=bound)


@pytest.mark.parametrize("target", TARGETS)
def test_how_many_rows_are_known_when_it_runs(target: str) -> None:
    """Few of them share their keys among blocks, and a second kernel adds up; others are tiles of a block each."""
    module = attention((1, 4, "n", 64), (1, 2, "m", 64), causal=True)
    for rows, keys in ((1, 200), (8, 70), (9, 70), (150, 150)):
        k = random((1, 2, keys, 64), "bf16", 1)
        (plan,) = agree(module, random((1, 4, rows, 64), "bf16"), k, random(k.shape, "bf16", 2), target=target)
    of_warps, of_groups = r"tile=\d+x\d+ warps=\dx1 stages=2 by=bf16 .*", "warpgroups=2 tile=128x128 stages=4 by=bf16"
    many = of_warps if target == TARGETS[0] else of_groups
    assert re.fullmatch(rf"attention {many} else tile=16x64 warps=1x4 .* blocks=\d+", plan)


@pytest.mark.parametrize(
    ("dtype", "depth", "width", "rows", "keys", "options"),
    [
        ("bf16", 128, 128, 70, 410, {}),
        ("f16", 80, 96, 70, 129, {}),
        ("f16", 88, 40, 140, 300, {"causal": True, "scale": -0.3}),
        ("bf16", 64, 64, 130, 600, {}),
        ("bf16", 96, 120, 40, 5, {"causal": True}),
    ],
)
def test_warpgroups(dtype: str, depth: int, width: int, rows: int, keys: int, options: dict[str, object]) -> None:
    """Ragged rows and keys, stages that go round, lines that zeros fill up, grouped queries, heads behind positions."""
    by_position = rows == 40
    shapes = [(1, 4, rows, depth), (1, 2, keys, depth), (1, 2, keys, width)]
    if by_position:
        shapes = [(a, c, b, d) for a, b, c, d in shapes]
    q, k, v = shapes
    module = attention(q, k, v, dtype=dtype, by_position=by_position, **options)
    inputs = [random(s, dtype, i) for i, s in enumerate(shapes)]
    (plan,) = (p for p in agree(module, *inputs, target=TARGETS[1], bound=BOUNDS[dtype]) if p.startswith("attention "))
    assert plan.startswith("attention warpgroups=")


@pytest.mark.parametrize(
    ("mask", "kind", "options"),
    [
        ((2, 1, "n", "m"), "i1", {}),
        ((4, "n", "m"), "bf16", {"causal": True}),
        ((2, 1, 1, "m"), "f32", {"scale": -0.3}),
        (("n", 1), "i1", {"causal": True}),
        (("m",), "i1", {"scale": 0.2}),
    ],
)
def test_masks_of_warpgroups(mask: Shape, kind: str, options: dict[str, object]) -> None:
    """Of all, of some heads or rows; tiles that are hidden, the first one too, or seen as a whole; rows that see nothing."""
    q, k = (2, 4, "n", 64), (2, 2, "m", 64)
    module, rng = attention(q, k, mask=mask, kind=kind, **options), np.random.default_rng(3)
    executable = rx.compile(module, target=TARGETS[1], device="emulated")
    assert "attention warpgroups=" in plans(executable)[0]
    for rows, keys in ((70, 410), (130, 129)):
        sizes = {"n": rows, "m": keys}
        shown = rng.random([sizes.get(s, s) for s in mask]) < 0.8
        if mask[-1] == "m":
            shown[..., :140], shown[..., 257:387] = False, True
            shown[..., :keys] |= keys < 140
        if "n" in mask:
            shown[..., [3, 50], :] = False
        added = np.where(shown, np.where(rng.random(shown.shape) < 0.5, 0.5, 0), -np.inf)
        inputs = [random((2, h, n, 64), "bf16", h) for h, n in ((4, rows), (2, keys), (2, keys))]
        given = [*inputs, shown if kind == "i1" else added.astype(numpy_dtype(kind))]
        got, (want,) = np.asarray(executable(*given)).astype(np.float32), rx.evaluate(module, "main", *given)
        np.testing.assert_allclose(got, np.asarray(want).astype(np.float32), atol=4 * BOUNDS["bf16"])


def test_what_warpgroups_do_not_take() -> None:
    """Few rows, many elements, and more dimensions than a descriptor has."""
    k = (1, 2, 300, 64)
    long = (1, 2, 300, 136)
    dims = (2, 2, 2, 2, 300, 64)
    for module in (attention((1, 2, 32, 64), k), attention(long, long), attention(dims, dims)):
        (plan,) = plans(rx.compile(module, target=TARGETS[1], device="emulated"))
        assert plan.startswith("attention tile=")


def test_no_rows_no_keys_and_rows_that_see_nothing() -> None:
    for target, sizes in zip(TARGETS, (((0, 5), (3, 0), (20, 0)), ((0, 5), (20, 0))), strict=True):
        module = attention((1, 2, "n", 32), (1, 2, "m", 32))
        for rows, keys in sizes:
            q, k = random((1, 2, rows, 32), "bf16"), random((1, 2, keys, 32), "bf16", 1)
            agree(module, q, k, k, target=target)
    mask = random((40, 40), "i1")
    mask[[0, 3, 17, 39]] = False
    for rows in (4, 40):
        k = random((1, 2, 40, 16), "bf16", 1)
        agree(attention((1, 2, rows, 16), (1, 2, 40, 16), mask=(rows, 40)), random((1, 2, rows, 16), "bf16"), k, k, mask[:rows])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("heads", [2, 4])
def test_the_mask_of_no_rows_is_not_read(heads: int, target: str) -> None:
    """Nothing is behind it in the first call, of which nothing was allocated before."""
    module, k = attention((2, heads, "n", 16), (2, 1, 16, 16), mask=("n", 16)), random((2, 1, 16, 16), "bf16", 1)
    for rows in (0, 1, 40, 0):
        agree(module, random((2, heads, rows, 16), "bf16"), k, k, random((rows, 16), "i1"), target=target)


def test_what_the_mask_hides_from_all_rows_is_not_computed() -> None:
    """Whatever is there, as in a cache that nothing was written to."""
    k = random((1, 2, 256, 32), "bf16", 1)
    mask = np.arange(256) < 60
    for rows, target in ((1, TARGETS[0]), (40, TARGETS[0]), (70, TARGETS[1])):
        q = random((1, 2, rows, 32), "bf16")
        want = rx.evaluate(attention(q.shape, k.shape, mask=(256,)), "main", q, k, k, mask)[0]
        empty = k.copy()
        empty[:, :, {1: 60, 40: 64, 70: 128}[rows] :] = np.nan  # of few rows, what is hidden is not even read
        executable = rx.compile(attention(q.shape, k.shape, mask=(256,)), target=target, device="emulated")
        got = np.asarray(executable(q, empty, empty, mask)).astype(np.float32)
        assert np.abs(got - np.asarray(want).astype(np.float32)).max() < BOUNDS["bf16"]


def test_masks_of_the_least_number_share_evenly_where_they_hide_everything() -> None:
    mask = np.full((20, 30), np.finfo(np.float32).min, np.float32)
    mask[5:, :7] = 0
    q, k = random((1, 1, 20, 16), "f32"), random((1, 1, 30, 16), "f32", 1)
    module = attention(q.shape, k.shape, mask=(20, 30), kind="f32", dtype="f32")
    agree(module, q, k, k, mask, bound=BOUNDS["f32"])


def test_f32_is_rounded_to_tf32_where_the_target_may() -> None:
    module = attention((1, 2, 20, 32), (1, 2, 50, 32), dtype="f32")
    q, k = random((1, 2, 20, 32), "f32"), random((1, 2, 50, 32), "f32", 1)
    assert "by=tf32 " in agree(module, q, k, k, target="cuda:sm_80+tf32", bound=BOUNDS["tf32"])[0]
    assert "by=tf32x3 " in agree(module, q, k, k, bound=BOUNDS["f32"])[0]


@pytest.mark.parametrize("target", [f"cuda:{name}" for name in ARCHITECTURES])
@pytest.mark.parametrize("element", ["bf16", "f32"])
def test_plans_fit_every_architecture(element: str, target: str) -> None:
    """Rows of 256 f32 leave a block of 99 KiB of shared memory room for tiles of 16 keys."""
    limit = ARCHITECTURES[target.removeprefix("cuda:")].shared_per_block
    for depth in range(8, 257, 8):
        shape = AttentionShape(element, depth, depth, None, 4, None, None, causal=True, mask="f32")
        for plan in (plan_many(shape, CudaTarget.parse(target)), plan_few(shape, CudaTarget.parse(target))):
            assert plan is not None
            assert plan.shared_bytes(depth, depth) <= limit
            assert plan.warp_keys >= 16
        grouped = plan_warpgroups(replace(shape, is_mapped=True), CudaTarget.parse(target))
        assert (grouped is not None) == (target == TARGETS[1] and element == "bf16" and 32 <= depth <= 128)
        assert grouped is None or grouped.shared_bytes(depth, depth) <= limit


@pytest.mark.parametrize(
    "module",
    [
        attention((1, 2, 5, 12), (1, 2, 7, 12)),
        attention((1, 2, 5, 16), (1, 2, 7, 16), dtype="f64"),
        attention((1, 2, 5, 264), (1, 2, 7, 264)),
        attention((1, 2, 5, "d"), (1, 2, 7, "d"), (1, 2, 7, 16)),
    ],
    ids=["twelve elements", "f64", "many elements", "elements known when it runs"],
)
def test_what_the_template_does_not_take(module: rx.Module) -> None:
    assert plans(rx.compile(module, target=TARGETS[0], device="emulated")) == ["general"]


def test_a_cache_that_is_state() -> None:
    """Keys and values of a step are put in their place, then all of the cache is read."""
    b = rx.Builder()
    with b.function("main"):
        position = b.input("position", (1,), "i64")
        q, k, v = (b.input(n, (1, 4 if n == "q" else 2, 1, 32), "bf16") for n in "qkv")
        mask = b.input("mask", (96,), "i1")
        caches = [
            b.index_copy(b.input(n, (1, 2, 96, 32), "bf16"), position, x, axis=2) for n, x in (("keys", k), ("values", v))
        ]
        b.output(b.attention(q, *caches, mask), *caches)
    module = b.build()
    rng = [random((1, 2, 96, 32), "bf16", i) for i in range(2)]
    inputs = [np.array([70]), random((1, 4, 1, 32), "bf16", 3), *(random((1, 2, 1, 32), "bf16", i) for i in (4, 5))]
    given = [*inputs, np.arange(96) <= 70, *rng]
    executable = rx.compile(module, target=TARGETS[0], device="emulated")
    for got, want in zip(executable(*given), rx.evaluate(module, "main", *given), strict=True):
        assert np.abs(np.asarray(got).astype(np.float32) - np.asarray(want).astype(np.float32)).max() < BOUNDS["bf16"] * 4
    assert any(p.startswith("attention tile=16x64") for p in plans(executable))


def marked(entries: str) -> str:
    """A kernel function with a mark of such entries."""
    arguments = ", ".join(f"%{i}: memref<2x{5 if i in (0, 3) else 7}x8xf32>" for i in range(4))
    return f"func.func private @f({arguments}) attributes {{{ATTENTION} = {{{entries}}}}} {{ return }}"


IDENTITY = "affine_map<(d0, d1, d2) -> (d0, d1, d2)>"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("causal = false", "expected relax.attention_kernel such as"),
        (f"causal = false, maps = [{IDENTITY}], scale = 1.0, sizes = [2, 7, 8]", "of 4 or 5 arguments, got 1 of 4"),
        (
            f"causal = false, maps = [{', '.join([IDENTITY] * 3)}, affine_map<(a, b, c) -> (a)>], "
            "scale = 1.0, sizes = [2, 7, 8]",
            "with maps to 3, 3, 3, 3 indices, got 3, 3, 3, 1",
        ),
    ],
)
def test_marks_that_do_not_fit(entries: str, message: str) -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(marked(entries))
        (function,) = module.body.operations
        with pytest.raises(rx.RelaxError, match=re.escape(message)):
            AttentionMark.of(function)
