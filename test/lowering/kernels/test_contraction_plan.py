"""Plans of contractions: they fit whatever they are made for, read back as they print, and edited ones are refused or right."""

from __future__ import annotations

import itertools
import random as chance
from dataclasses import replace

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cpu.kernels.contraction.check_plan import check_plan
from relaxir.lowering.cpu.kernels.contraction.contraction_plan import parse_plan
from relaxir.lowering.cpu.kernels.contraction.plan import plan_contraction
from relaxir.lowering.cpu.kernels.contraction.shape import BufferShape, ByteShape, ContractionShape, GroupShape, IntegerShape
from relaxir.lowering.target import TARGETS, Target
from support.contractions import MARK, MULTIPLY_ADD, SCALED_MULTIPLY_ADD, packed
from support.kernel_harness import Compiled, function, generic, memref, narrower, random

TARGET = {name: Target.parse(f"cpu:{name}", openmp=True) for name in TARGETS}
SIZES = (1, 2, 3, 5, 6, 7, 8, 9, 12, 13, 16, 24, 25, 33, 64, 100, 128, 129, 197, 512, 1025, 4096)


def panels(bits: int, columns: int, steps: int = 1) -> BufferShape:
    """A matrix in panels of so many columns, of whose rows each holds so many steps."""
    rows = () if steps == 1 else ((steps, columns),)
    return BufferShape(bits, columns if steps == 1 else 0, rows, (columns,))


def shape_of(rng: chance.Random, target: Target) -> ContractionShape:
    """A product as lowering makes them, of any kind."""
    size = lambda: rng.choice((None, *SIZES))  # noqa: E731
    columns, depth = rng.choice((target.matmul_tile[1], 32, 8)), rng.choice(SIZES) * 128
    plain = ContractionShape(size(), size(), rng.choice((None, *SIZES)), rng.choice(("f32", "f64", "i32")))
    kinds = {
        "plain": plain,
        "packed": replace(plain, buffers=(panels(plain.bits, columns),)),
        "batches": replace(plain, batch=(size(), size()), shared=(size(),)),
        "window": replace(plain, outer=(3, 3), buffers=(panels(32, columns),)),
        "vector": replace(plain, rows=1, has_rows=False),
        "few columns": replace(plain, columns=rng.randint(1, 16), element="f32", folds=True),
        "lines": replace(
            plain, columns=rng.choice((None, 64, 128)),
            buffers=(BufferShape(plain.bits, rng.choice((None, 64, 5000)), is_line=True),),
        ),
        "bf16": replace(plain, element="f32", operations=1, is_cast_bf16=True, buffers=(panels(16, columns),)),
        "pairs": ContractionShape(size(), size(), depth, operations=1, is_cast_bf16=True, dot_panel=columns),
        "int8": ContractionShape(
            size(), size(), depth, operations=2, buffers=(panels(8, columns),), group=GroupShape(0, rng.randint(1, 5))
        ),
        "int4": ContractionShape(
            size(), size(), depth, operations=7, buffers=(panels(32, columns, 8),),
            group=GroupShape(rng.choice((0, 32, 128)), 5, has_word=True, has_zero=rng.random() < 0.5),
        ),
        "integers": ContractionShape(
            size(), rng.choice(SIZES), depth, operations=2, buffers=(panels(8, columns),),
            integers=IntegerShape(columns, rng.choice((2, 4)), 4, False, rng.random() < 0.5, 32, rng.random() < 0.5),
        ),
        "bytes": ContractionShape(
            size(), size(), 4, "i32", outer=(3, 48), bytes=ByteShape(4, columns, rng.random() < 0.5, rng.random() < 0.5)
        ),
    }  # fmt: skip
    return kinds[rng.choice(list(kinds))]


@pytest.mark.parametrize("name", TARGETS)
def test_every_plan_fits_and_reads_back_as_it_prints(name: str) -> None:
    rng, target = chance.Random(list(TARGETS).index(name)), TARGET[name]
    for _ in range(400):
        shape = shape_of(rng, target)
        plan = plan_contraction(shape, target)
        check_plan(plan, shape, target)
        assert parse_plan(str(plan)) == plan
        assert plan_contraction(shape, target) == plan


@pytest.mark.parametrize("name", TARGETS)
def test_a_tile_and_what_it_reads_fit_the_registers(name: str) -> None:
    target = TARGET[name]
    for element in ("f32", "f64", "i32"):
        tile = plan_contraction(ContractionShape(64, 64, 64, element), target).tile
        per_vector = -(-tile.lanes * int(element[1:]) // target.vector_bits)
        assert (tile.rows * tile.vectors + 1) * per_vector + 1 <= target.vector_registers


@pytest.mark.parametrize("name", TARGETS)
def test_more_rows_keep_what_many_rows_gain_from(name: str) -> None:
    """A panel that is computed once, and blocks, stay with more rows; panels at once become fewer."""
    rng, target = chance.Random(1), TARGET[name]
    for _ in range(60):
        shape = shape_of(rng, target)
        if not shape.has_rows:
            continue
        plans = [plan_contraction(replace(shape, rows=rows, columns=4096), target) for rows in SIZES]
        for few, many in itertools.pairwise(plans):
            assert many.stage is not None or few.stage is None or many.split is not None
            assert many.blocks is not None or few.blocks is None or many.split is not None
            assert many.split is not None or few.split is None
            assert many.panels <= few.panels


@pytest.mark.parametrize("name", TARGETS)
def test_more_steps_keep_blocks(name: str) -> None:
    for rows in (None, 64, 1024):
        plans = [plan_contraction(ContractionShape(rows, 4096, depth), TARGET[name]) for depth in (64, 1024, 1025, 4096, 9999)]
        assert [p.blocks is not None for p in plans] == [False, False, True, True, True]
        assert all(p.blocks is None or (p.blocks.depth <= 256 and p.blocks.depth % 8 == 0) for p in plans)


def test_sizes_that_are_not_known_change_neither_tile_nor_sums() -> None:
    rng = chance.Random(2)
    for name, target in TARGET.items():
        shape = shape_of(rng, target)
        known, unknown = (plan_contraction(replace(shape, rows=rows), target) for rows in (64, None))
        assert (known.tile, known.sums, known.instruction) == (unknown.tile, unknown.sums, unknown.instruction), name


def test_threads_share_what_has_enough_iterations_and_enough_to_do() -> None:
    target = TARGET["znver4"]
    assert plan_contraction(ContractionShape(4, 16, 16), target).threads == ()
    assert plan_contraction(ContractionShape(64, 64, 512), target).threads == ("parts",)
    assert plan_contraction(ContractionShape(8, 4096, 512), target).threads == ("columns",)
    assert plan_contraction(ContractionShape(64, 64, 512, batch=(2, 12)), target).threads == ("batch1", "parts")
    assert plan_contraction(ContractionShape(64, 64, 512), replace(target, openmp=False)).threads == ()


#: Of products of the benchmark, as they are compiled for a machine of each kind.
GOLDEN = {
    ("matmul 8 x 4096 x 4096", "znver4"): "tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=5:8192 threads=columns",
    ("matmul 8 x 4096 x 4096", "znver3"):
        "tile=6x2x8 sums=fma accumulators=8 unroll=4 fetch=3:8192 parts=128:16384:8388608 threads=parts",
    ("matmul 128 x 4096 x 4096", "znver4"):
        "tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=5:8192 blocks=128x256x128:24 threads=blocks",
    ("matmul 2048 x 4096 x 4096", "znver4"):
        "tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=5:8192 blocks=128x1024x128:24 copied-left=yes threads=blocks",
    ("matmul m x 4096 x 4096", "znver4"):
        "tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=5:8192 blocks=128x1024x128:24:16 copied-left=yes "
        "threads=blocks+columns+rows",
    ("llama bf16 decode", "znver4"):
        "tile=8x2x16 sums=dot instruction=llvm.x86.avx512bf16.dpbf16ps.512 accumulators=8 unroll=2 stream-bytes=128 "
        "fetch=5:4096 threads=columns",
    ("llama bf16 decode", "znver3"): "tile=6x2x8 sums=words accumulators=8 unroll=4 panels=4 fetch=2:8192 threads=columns",
    ("llama int4 decode", "znver4"):
        "tile=8x2x16 sums=groups accumulators=8 group-accumulators=8 unroll=4 group-unroll=8 panels=4 scaled-left=yes "
        "fetch=1:8192 threads=columns",
    ("llama int4 decode", "znver3"):
        "tile=6x2x8 sums=groups accumulators=8 group-accumulators=4 unroll=4 group-unroll=8 panels=2 scaled-left=yes "
        "fetch=1:8192 threads=columns",
    ("scores of 8 heads", "znver4"):
        "tile=8x1x8 sums=folded accumulators=8 unroll=4 fold=2 fetch=1:8192 parts=128:16384:8388608 threads=parts",
    ("scores of 8 heads", "znver3"):
        "tile=6x1x8 sums=fma accumulators=8 unroll=4 fetch=3:8192 parts=128:16384:8388608 threads=parts",
    ("values of 8 heads", "znver4"): "tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=1:8192",
    ("values of 4 heads", "znver4"): "tile=4x4x16 sums=fma accumulators=8 unroll=4 fetch=1:8192",
    ("values of 4 heads", "znver3"): "tile=6x2x8 sums=fma accumulators=8 unroll=4 fetch=1:8192 threads=columns",
    ("llama int4 prefill", "znver4"):
        "tile=8x2x16 sums=groups accumulators=8 group-accumulators=8 unroll=4 group-unroll=8 fetch=1:8192 stage=tile:8 "
        "blocks=128x128x256:8 threads=blocks",
}  # fmt: skip


@pytest.mark.parametrize(("product", "name"), GOLDEN)
def test_golden(product: str, name: str) -> None:
    target = TARGET[name]
    columns = target.matmul_tile[1]
    group = GroupShape(32, 5, has_word=True, has_zero=True)
    words = (panels(32, columns, 8), BufferShape(32, 0, ((32, columns),), (columns,)))
    shapes = {
        "matmul 8 x 4096 x 4096": ContractionShape(8, 4096, 4096, buffers=(panels(32, columns),)),
        "matmul 128 x 4096 x 4096": ContractionShape(128, 4096, 4096, buffers=(panels(32, columns),)),
        "matmul 2048 x 4096 x 4096": ContractionShape(2048, 4096, 4096, buffers=(panels(32, columns),)),
        "matmul m x 4096 x 4096": ContractionShape(None, 4096, 4096, buffers=(panels(32, columns),)),
        "llama bf16 decode": ContractionShape(
            1, 2048, 2048, operations=1, is_cast_bf16=True, buffers=(panels(16, columns),), dot_panel=columns
        ),
        "llama int4 decode": ContractionShape(1, 2048, 2048, operations=7, buffers=words, group=group),
        "scores of 8 heads": ContractionShape(None, 8, 64, buffers=(BufferShape(32, 8, is_line=True),), folds=True),
        "values of 8 heads": ContractionShape(8, 64, None, buffers=(BufferShape(32, 64, is_line=True),)),
        "values of 4 heads": ContractionShape(4, 64, None, buffers=(BufferShape(32, 64, is_line=True),)),
        "llama int4 prefill": ContractionShape(128, 2048, 2048, operations=7, buffers=words, group=group),
    }
    assert str(plan_contraction(shapes[product], target)) == GOLDEN[product, name]


@pytest.mark.parametrize(("rows", "height"), [(49, 7), (42, 7), (48, 8), (50, 8), (256, 8)])
def test_blocks_have_tiles_of_one_height_where_as_many_fill_their_rows(rows: int, height: int) -> None:
    target = Target.parse("cpu:x86-64-v4", openmp=True)
    plan = plan_contraction(ContractionShape(rows, 512, 2048, buffers=(panels(32, 32),)), target)
    assert plan.blocks is not None
    assert plan.tile.rows == height


def test_the_report_has_a_line_for_each_contraction() -> None:
    builder = rx.Builder()
    with builder.function("main"):
        x, w = builder.input("x", (64, 96)), builder.weight("w", (96, 160))
        builder.output(builder.relu(builder.matmul(x, w)))
    executable = rx.compile(builder.build(), cache=False)
    (kernel,) = [k for s in executable.report.sections if s.kind == "kernels" for k in s.kernels if k.kind == "contraction"]
    assert str(parse_plan(kernel.plan)) == kernel.plan
    assert f"  {kernel.name}  {kernel.plan}" in str(executable.report).splitlines()


# -- edited plans ----------------------------------------------------------------------------------------------------

PACKED = ["(m, n, k) -> (m, k)", "(m, n, k) -> (n floordiv 16, k, n mod 16)", "(m, n, k) -> (m, n)"]
AVX2 = narrower(256)


def product(rows, n: int, k: int, plan: str) -> Compiled:
    """A product with that plan: compiled for vectors of 256 bits."""
    types = [f"memref<{rows}x{k}xf32>", memref((-(-n // 16), k, 16)), f"memref<{rows}x{n}xf32>"]
    body = generic(PACKED, "ppr", types, MULTIPLY_ADD, f'{MARK}, relax.plan = "{plan}"')
    return Compiled(function(types, body), AVX2)


def scaled(rows, n: int, k: int, plan: str) -> Compiled:
    """A product with int8 weights that have a scale per column."""
    types = [f"memref<{rows}x{k}xf32>", memref((-(-n // 16), k, 16), "i8"), memref((n,)), f"memref<{rows}x{n}xf32>"]
    maps = [PACKED[0], PACKED[1], "(m, n, k) -> (n)", PACKED[2]]
    body = generic(maps, "ppr", types, SCALED_MULTIPLY_ADD, f'{MARK}, relax.plan = "{plan}"')
    return Compiled(function(types, body), AVX2)


def widened(rows, n: int, k: int, plan: str) -> Compiled:
    """A product with bf16 weights."""
    types = [f"memref<{rows}x{k}xf32>", memref((-(-n // 16), k, 16), "bf16"), f"memref<{rows}x{n}xf32>"]
    body = "  %w = arith.extf %x1 : bf16 to f32\n" + MULTIPLY_ADD.replace("%x0, %x1", "%x0, %w")
    return Compiled(function(types, generic(PACKED, "ppr", types, body, f'{MARK}, relax.plan = "{plan}"')), AVX2)


KINDS = {"product": (product, ("fma",)), "scaled": (scaled, ("fma", "groups")), "widened": (widened, ("fma", "words"))}


def edited(rng: chance.Random, kind: str) -> str:
    """A plan of random fields, most of which fit."""
    rows, vectors, lanes = rng.choice((1, 2, 3, 4, 5, 6)), rng.choice((1, 2)), rng.choice((2, 4, 8))
    fields = [f"tile={rows}x{vectors}x{lanes}", f"sums={rng.choice(KINDS[kind][1])}"]
    fields += [f"accumulators={rng.choice((1, 2, 4, 8, 16))}", f"unroll={rng.choice((1, 2, 4, 8))}"]
    optional = [
        f"panels={rng.choice((2, 3))}", f"fetch={rng.randint(1, 6)}:{rng.choice((1024, 8192))}",
        f"stage={rng.choice(('tile', 'before'))}:{rng.choice((rows, 2 * rows))}", f"group-unroll={rng.choice((1, 2, 8))}",
        f"blocks={rows * rng.choice((1, 2))}x{vectors * lanes * rng.choice((1, 3))}x{rng.choice((2, 8, 14))}:{rows}",
        f"blocks={rows}x{16 * vectors * lanes}x{rng.choice((2, 8, 14))}:{rows}:9",
        "copied-left=yes",
        f"parts={rng.choice((1, 2, 64))}:{rng.choice((1, 100))}:{rng.choice((1, 100000))}",
    ]  # fmt: skip
    return " ".join([*fields, *(field for field in optional if rng.random() < 0.4)])


@pytest.mark.parametrize("kind", KINDS)
def test_an_edited_plan_that_fits_is_right(kind: str) -> None:
    rng, built = chance.Random(kind), 0
    n, k = 37, 33
    element = {"product": "f32", "scaled": "i8", "widened": "bf16"}[kind]
    a, b, scale = random((19, k)), random((k, n), element, 1), random((n,), seed=2)
    weights = [packed(b, 16), scale] if kind == "scaled" else [packed(b, 16)]
    wide = b.astype(np.float64) * (scale if kind == "scaled" else 1)
    while built < 14:
        rows = rng.choice(("?", 1, 2, 19))
        try:
            compiled = KINDS[kind][0](rows, n, k, edited(rng, kind))
        except RelaxError:
            continue
        built += 1
        for count in (0, 1, 5, 19) if rows == "?" else (rows,):
            c = np.ones((count, n), np.float32)
            compiled(np.ascontiguousarray(a[:count]), *weights, c)
            want = 1 + a[:count].astype(np.float64) @ wide
            np.testing.assert_allclose(c, want, rtol=1e-5, atol=1e-5 * np.abs(want).max(initial=1))


def test_code_is_built_as_an_edited_plan_says() -> None:
    """Two rows of one vector: 2 multiply-adds a step, 2 steps an iteration and one behind."""
    text = product(2, 32, 33, "tile=2x1x8 sums=fma accumulators=1 unroll=2").text
    assert text.count("llvm.intr.fmuladd") == 2 * (2 + 1)


BASE = "tile=6x2x8 sums=fma accumulators=8 unroll=4"
REFUSED = {
    "tile=6x2": "expected rows x vectors x lanes, such as tile=8x2x16, got 'tile=6x2'",
    "sums=mul": "expected fma, words, groups, dot, integers, bytes or folded, got 'sums=mul'",
    "accumulators=0": "expected a positive number of accumulators, got 'accumulators=0'",
    "unroll=x": "expected a positive number of steps, got 'unroll=x'",
    "panels=0": "expected a positive number of panels, got 'panels=0'",
    "fetch=5": "expected rows and bytes ahead, such as fetch=5:8192, got 'fetch=5'",
    "stage=later:3": "expected tile or before and a number of rows, or blocks, such as stage=tile:8, got 'stage=later:3'",
    "blocks=1x2:3": "expected rows x columns x depth and a number of rows, such as blocks=128x256x256:24, got 'blocks=1x2:3'",
    "copied-left=yes": "expected a plan with blocks whose rows can be copied, got copied-left=yes",
    "copied-left=no": "expected copied-left=yes, got 'copied-left=no'",
    "blocks=1x2x3:4:5:6": "such as blocks=128x256x256:24, got 'blocks=1x2x3:4:5:6'",
    "scaled-left=no": "expected scaled-left=yes, got 'scaled-left=no'",
    "stream-bytes=": "expected a positive number of bytes, got 'stream-bytes='",
    "loop-above=": "expected a positive number of vectors, got 'loop-above='",
    "depth=3": "each once and with a value, got 'depth=3'",
    "tile=6x3x8": "expected a plan with a power of two of vectors, got tile=6x3x8",
    "tile=6x2x6": "expected a plan with a power of two of lanes, got tile=6x2x6",
    "tile=6x2x16": "expected a plan with at most 8 lanes, got tile=6x2x16",
    "tile=8x2x8": "expected a plan with a tile of 16 registers, got tile=8x2x8",
    "unroll=3": "expected a plan with a power of two of at most 64 steps, got unroll=3",
    "accumulators=3": "expected a plan with a power of two of accumulators that registers hold, got accumulators=3",
    "sums=integers": "expected a plan with sums of floats or integers as they are, got sums=integers",
    "sums=groups": "expected a plan with sums of what has groups, got sums=groups",
    "sums=words": "expected a plan with words of bf16 in whole panels, got sums=words",
    "sums=dot": "expected a plan with dot products of pairs of bf16 in whole panels, got sums=dot",
    "sums=folded": "expected a plan with folded sums of all columns, several steps in a vector, got sums=folded",
    "fold=x": "expected a positive number of steps, got 'fold=x'",
    "instruction=llvm.x": "expected a plan with no instruction, got instruction=llvm.x",
    "panels=8": "expected a plan with panels for 16 registers, got panels=8",
    "scaled-left=yes": "expected a plan with scaled rows where they are few, and of words, got scaled-left=yes",
    "stage=tile:blocks": "expected a plan with blocks to stage, got stage=tile:blocks",
    "blocks=7x32x8:6": "expected a plan with blocks of tiles of 6x2x8, got blocks=7x32x8:6",
    "blocks=6x32x9:6": "expected a plan with an even number of steps, got blocks=6x32x9:6",
    "blocks=6000x1600x8:6": "expected a plan with sums of at most 1048576 bytes, got blocks=6000x1600x8:6",
    "parts=1:2": "expected rows and elements of both factors, such as parts=128:16384:8388608, got 'parts=1:2'",
    "joined=yes": "expected a plan with rows of one shared loop that are a multiple of a tile's, got joined=yes",
    "joined=no": "expected joined=yes, got 'joined=no'",
    "threads=lanes": "expected a plan with loops among columns, rows, got threads=lanes",
}


@pytest.mark.parametrize("field", REFUSED)
def test_a_plan_that_does_not_fit_is_an_error_at_the_operation(field: str) -> None:
    name = field.partition("=")[0]
    plan = " ".join([*(part for part in BASE.split() if not part.startswith(f"{name}=")), field])
    with pytest.raises(RelaxError) as caught:
        product(64, 32, 33, plan)
    assert caught.value.args[0].startswith("'linalg.generic' op expected")
    assert caught.value.args[0].endswith(REFUSED[field])
    assert caught.value.location is not None


@pytest.mark.parametrize(
    ("fields", "shape", "expected"),
    [
        ("panels=2", ContractionShape(1, None, 64), "one panel at once where columns are unknown or rows many, got panels=2"),
        ("stage=before:6", ContractionShape(64, 64, None), "no stage, got stage=before:6"),
        ("stage=tile:6", ContractionShape(64, 64, 64, "i32"), "stage=before, as there is no tile for it, got stage=tile:6"),
        ("stage=before:6", ContractionShape(64, 64, 1 << 20), "a panel that fits the stack, got stage=before:6"),
        ("blocks=6x32x8:6", ContractionShape(64, 64, None), "no blocks, got blocks=6x32x8:6"),
        ("parts=64:1:1", ContractionShape(64, 64, 64, has_rows=False), "no parts, got parts=64:1:1"),
        ("blocks=6x32x8:6 parts=64:1:1", ContractionShape(64, 64, 640), "no parts, got parts=64:1:1"),
        (
            "stage=tile:blocks blocks=6x32x24:6",
            ContractionShape(64, 64, 640, group=GroupShape(32, 3)),
            "blocks of whole groups that fit the stack, got blocks=6x32x24:6",
        ),
    ],
)
def test_a_plan_that_does_not_fit_a_shape(fields: str, shape: ContractionShape, expected: str) -> None:
    with pytest.raises(RelaxError) as caught:
        check_plan(parse_plan(f"{BASE} {fields}"), shape, AVX2)
    assert caught.value.args[0] == f"expected a plan with {expected}"


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (
            BASE.replace("fma", "groups") + " blocks=6x32x32:6",
            "blocks of sums that take some steps, got sums=groups",
        ),
        (BASE.replace("fma", "integers"), "sums of floats or integers as they are, got sums=integers"),
        (BASE.replace("fma", "bytes"), "neighbouring bytes in whole panels, got sums=bytes"),
    ],
)
def test_sums_that_do_not_fit(plan: str, expected: str) -> None:
    with pytest.raises(RelaxError) as caught:
        check_plan(parse_plan(plan), ContractionShape(64, 64, 640, operations=2, group=GroupShape(32, 3)), AVX2)
    assert caught.value.args[0] == f"expected a plan with {expected}"


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (BASE, "sums of integers that are scaled, got sums=fma"),
        (BASE.replace("fma", "integers"), "vectors inside of panels of 4, got tile=6x2x8"),
    ],
)
def test_products_of_integers_need_sums_of_integers(plan: str, expected: str) -> None:
    integers = IntegerShape(4, 2, 2, False, False, 32, False)
    with pytest.raises(RelaxError) as caught:
        check_plan(parse_plan(plan), ContractionShape(64, 64, 640, integers=integers), AVX2)
    assert caught.value.args[0] == f"expected a plan with {expected}"


def test_a_plan_without_a_tile() -> None:
    with pytest.raises(RelaxError, match="expected a plan with tile, got 'sums=fma accumulators=8 unroll=4'"):
        parse_plan("sums=fma accumulators=8 unroll=4")
