"""Rows in groups, each with the matrix of its group, on every target by emulation: against the reference semantics.

Groups are empty, of one row, ragged, of more rows than a block, or all of one; rows behind the last group give 0, and what
follows makes of it. Ends may say anything: no row is written but those that exist.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

import relaxir as rx
from relaxir.compiler import default_pipeline
from relaxir.dialect.bindings import ir
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.functions import functions, name_of
from relaxir.dialect.traversal import nested_operations
from relaxir.lowering.cpu.codegen import assembly
from relaxir.lowering.target import TARGETS, Target
from support.emulation import compile_for, generated
from support.stages import lowered, target_named

_WEIGHTS = (None, "bf16", "int8", "int4", "q8_0")


@dataclass(frozen=True)
class Grouped:
    """A grouped product.

    Attributes:
        rows: how many, or the name of their number.
        steps, columns: of the matrix of each of so many groups.
        weights, activations: as :func:`relaxir.compile` has them.
        follows: whether a bias and an activation follow.
        result: its dtype.
        is_transposed: whether matrices are [columns, steps], as PyTorch has them; else [steps, columns].
    """

    rows: int | str
    steps: int
    columns: int
    groups: int
    dtype: str = "f32"
    weights: str | None = None
    activations: str | None = None
    follows: bool = False
    result: str = "f32"
    ends: str = "i64"
    is_transposed: bool = True

    def add_to(self, b: rx.Builder, name: str) -> None:
        """Adds a function of this name."""
        with b.function(name):
            x, ends = b.input("x", (self.rows, self.steps), self.dtype), b.input("ends", (self.groups,), self.ends)
            shape = (self.groups, *((self.columns, self.steps) if self.is_transposed else (self.steps, self.columns)))
            w = b.weight(f"{name}.w", shape, self.dtype)
            w = w if self.is_transposed else b.permute_dims(w, axes=[0, 2, 1])
            w = b.permute_dims(b.reshape(w, (self.groups * self.columns, self.steps)), axes=[1, 0])
            y = b.grouped_matmul(x, w, ends, out_dtype=self.result)
            b.output(b.relu(b.add(y, b.weight(f"{name}.b", (self.columns,), self.result))) if self.follows else y)

    def numbers(self, name: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Weights."""
        shape = (self.groups, *((self.columns, self.steps) if self.is_transposed else (self.steps, self.columns)))
        found = {f"{name}.w": rng.standard_normal(shape).astype(numpy_dtype(self.dtype))}
        return found | (
            {f"{name}.b": rng.standard_normal(self.columns).astype(numpy_dtype(self.result))} if self.follows else {}
        )

    def ends_of(self, rows: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Where groups end, in several ways."""
        some = np.sort(rng.integers(0, rows + 1, self.groups))
        for found in (some, np.full(self.groups, rows), np.minimum(np.arange(1, self.groups + 1), rows), 0 * some):
            yield found.astype(numpy_dtype(self.ends))


def _random_case(rng: random.Random, activations: str | None, weights: str | None) -> Grouped:
    steps, columns = rng.choice([(32, 64), (64, 48), (96, 36), (128, 32), (32, 7), (64, 1), (256, 96), (64, 256), (36, 288)])
    if weights in ("int4", "q8_0"):
        steps = -(-steps // 32) * 32
    elif rng.random() < 0.3:
        steps = rng.choice([1, 5, 31, 33])
    dtype = rng.choice(["f32", "f32", "bf16", "f16"]) if weights != "bf16" else "f32"
    return Grouped(
        rng.choice(["m", "m", 1, 3, 8, 40]), steps, columns, rng.choice([1, 2, 5, 16]), dtype, weights, activations,
        rng.random() < 0.5, rng.choice(["f32", dtype]), rng.choice(["i64", "i32"]), rng.random() < 0.7,
    )  # fmt: skip


def _tolerance(case: Grouped) -> float:
    """Of the largest result: sums and results of 16 bits are rounded, and rows of integers are."""
    if case.activations is not None:
        return 2e-2
    return 1e-2 if "16" in f"{case.dtype} {case.result} {case.weights}" else 2e-5


@pytest.mark.parametrize("activations", [None, "int8"])
@pytest.mark.parametrize("weights", _WEIGHTS)
@pytest.mark.parametrize("name", TARGETS)
def test_results_are_the_reference_semantics(name: str, weights: str | None, activations: str | None) -> None:
    seed = f"{name} {weights} {activations}"
    chance, rng = random.Random(seed), np.random.default_rng(list(seed.encode()))
    cases = {f"f{i}": _random_case(chance, activations, weights) for i in range(2)}
    builder = rx.Builder()
    for entry, case in cases.items():
        case.add_to(builder, entry)
    module, pipeline = builder.build(), default_pipeline(weights, activations)
    held = {k: v for entry, case in cases.items() for k, v in case.numbers(entry, rng).items()}
    target = Target.parse(f"cpu:{name}")
    rounded = module.with_weight_layouts(target.weight_layouts).run(pipeline.replace("relax-lift-transform-params,", ""))
    executable = compile_for(module, name, pipeline)
    executable.bind(executable.prepare(held))
    for entry, case in cases.items():
        own = {k: v for k, v in held.items() if k.startswith(f"{entry}.")}
        for rows in (0, 1, 2, 7, 70) if isinstance(case.rows, str) else (case.rows,):
            x = rng.standard_normal((rows, case.steps)).astype(numpy_dtype(case.dtype))
            for ends in case.ends_of(rows, rng):
                (want,) = rx.evaluate(rounded, entry, x, ends, weights=own)
                got = executable(x, ends, entry=entry)
                assert (got.dtype, got.shape) == (want.dtype, want.shape)
                difference = np.abs(got.astype(np.float64) - want.astype(np.float64)).max(initial=0)
                assert difference <= _tolerance(case) * np.abs(want.astype(np.float64)).max(initial=1e-6), (case, rows, ends)


@pytest.mark.parametrize("ends", [[-5, 200, 3, 1], [9, 9, 2, 0], [2**62, -(2**62), 1, 2**40]])
@pytest.mark.parametrize("weights", [None, "int4"])
def test_ends_that_are_none_write_nothing_else(weights: str | None, ends: list[int]) -> None:
    """Checked code says where it would."""
    case, builder, rng = Grouped("m", 32, 40, 4, weights=weights, follows=True), rx.Builder(), np.random.default_rng(0)
    case.add_to(builder, "main")
    executable = rx.compile(builder.build(), weights=weights, checked=True, cache=False)
    executable.bind(executable.prepare(case.numbers("main", rng)))
    assert executable(rng.standard_normal((7, 32), np.float32), np.array(ends)).shape == (7, 40)


def test_matrices_of_groups_without_rows_are_not_read() -> None:
    """What is not a number in them is in no result, which it would be in a sum of all groups."""
    case, builder, rng = Grouped("m", 32, 64, 4), rx.Builder(), np.random.default_rng(0)
    case.add_to(builder, "main")
    held = case.numbers("main", rng)
    held["main.w"][[0, 2]] = np.nan
    executable = rx.compile(builder.build(), cache=False)
    executable.bind(executable.prepare(held))
    assert np.isfinite(executable(rng.standard_normal((9, 32), np.float32), np.array([0, 4, 4, 8]))).all()


@pytest.mark.parametrize(
    ("name", "weights", "activations", "sums"),
    [
        ("znver4", None, None, "fma"),
        ("znver4", "bf16", None, "dot"),
        ("x86-64-v4", "int4", None, "groups"),
        ("znver4", "int8", None, "integers"),
        ("znver4", "int4", None, "integers"),
        ("znver4", "int4", "int8", "integers"),
    ],
)
def test_a_group_is_a_product_of_its_rows(name: str, weights: str | None, activations: str | None, sums: str) -> None:
    """Its kernel has the plan of one whose rows are any number."""
    case, builder = Grouped("m", 256, 512, 4, weights=weights), rx.Builder()
    case.add_to(builder, "main")
    pipeline = default_pipeline(weights, activations)
    text = str(lowered(builder.build(), target_named(f"cpu:{name}"), pipeline, upto="relax-plan-loops"))
    assert text.count("relax.row_groups") == 1
    assert f"sums={sums} " in text
    assert text.count("relax.plan = ") == 1


@pytest.mark.parametrize("rows", ["m", 8, 40])
@pytest.mark.parametrize(("weights", "columns"), [(None, 480), ("bf16", 512), ("int8", 272), ("int4", 480), ("q8_0", 512)])
def test_threads_share_all_groups(weights: str | None, columns: int, rows: int | str) -> None:
    """They begin once; columns that are left over, with an input added in place, are those of one thread."""
    case, builder, rng = Grouped(rows, 256, columns, 8, weights=weights, follows=True), rx.Builder(), np.random.default_rng(0)
    case.add_to(builder, "main")
    executable = rx.compile(builder.build(), weights=weights, cache=False)
    executable.bind(executable.prepare(case.numbers("main", rng)))
    for count in (1, 9, 40, 300) if isinstance(rows, str) else (rows,):
        x = rng.standard_normal((count, 256), np.float32)
        for ends in case.ends_of(count, rng):
            executable.threads = 1
            want = executable(x, ends)
            for threads in (2, 3, 7):
                executable.threads = threads
                np.testing.assert_array_equal(executable(x, ends), want)


def test_a_team_goes_through_all_groups() -> None:
    """And what is written, is written in loops that its threads share: 30 panels, of which a single row takes four at once."""
    case, builder = Grouped("m", 256, 480, 8, weights="bf16"), rx.Builder()
    case.add_to(builder, "main")
    target = Target.parse("cpu:znver3", openmp=True)
    module = lowered(builder.build(), target, default_pipeline("bf16"), upto="relax-lend-memory")
    (kernel,) = (f for f in functions(module) if name_of(f).startswith("contraction"))
    names = [op.name for op in nested_operations(kernel.operation)]
    assert names.count("omp.parallel") == 1
    assert names.index("omp.parallel") < names.index("scf.for") < names.index("omp.wsloop")
    stores = [op for op in nested_operations(kernel.operation) if op.name in ("vector.store", "memref.store")]
    inside = [op for op in stores if _is_in(op, "omp.parallel")]
    assert inside
    assert all(_is_in(op, "omp.wsloop") for op in inside)


def _is_in(op: ir.Operation, name: str) -> bool:
    around = op.parent
    while around is not None and around.operation.name != name:
        around = around.operation.parent
    return around is not None


def test_columns_that_fill_no_vector_are_packed_by_groups() -> None:
    """48 columns are three panels of 16; 7 are none, and their matrices stay."""
    for columns, packed in ((48, 'layout = "tile 16"'), (7, "")):
        builder = rx.Builder()
        Grouped("m", 32, columns, 3).add_to(builder, "main")
        layouts = Target.parse("cpu:x86-64-v4").weight_layouts
        text = str(builder.build().with_weight_layouts(layouts).run(default_pipeline()))
        assert ("relax.packed_grouped_matmul" in text) == bool(packed)
        assert packed in text


def test_one_token_multiplies_bytes() -> None:
    """As many rows as groups, or fewer, are one of each on the average: int4 takes the instructions of a single row."""
    for rows, sums in ((8, "integers"), (9, "groups")):
        builder = rx.Builder()
        Grouped(rows, 64, 64, 8).add_to(builder, "main")
        text = str(lowered(builder.build(), target_named("cpu:znver4"), default_pipeline("int4"), upto="relax-plan-loops"))
        assert f"sums={sums} " in text


def test_rows_of_bytes_are_multiplied_as_such() -> None:
    builder = rx.Builder()
    Grouped("m", 64, 64, 8).add_to(builder, "main")
    text = assembly(generated(builder.build(), "znver4", default_pipeline("int4", "int8")), Target.parse("cpu:znver4"))
    assert "vpdpbusd" in text
