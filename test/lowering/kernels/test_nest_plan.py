"""Plans of loop nests: they print and parse, what does not fit is refused, and what fits gives the same numbers."""

from __future__ import annotations

import itertools
import random as chance
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cpu.kernels.nest.nest_plan import NestPlan, check_plan, parse_plan
from relaxir.lowering.cpu.kernels.nest.vector_plan import make_plan
from relaxir.lowering.kernels.emit.buffers import Buffers
from relaxir.lowering.kernels.structure.combiners import combiners
from relaxir.lowering.kernels.structure.nest import Nest, collapse, read_nest
from relaxir.lowering.target import Target
from support.kernel_harness import Compiled, arrays_for, function, generic, memref, read

PLANS = [
    NestPlan((), None, 0, 0, False),
    NestPlan((0, 2, 1), None, 0, 0, False),
    NestPlan((0, 1), 1, 16, 64, True),
    NestPlan((0, 1), 1, 16, 64, True, fetch=8192),
    NestPlan((2, 0, 1), 1, 8, 8, False, tile=0),
    NestPlan((0, 2, 1, 3), 2, 8, 16, False, block=4),
    NestPlan((1, 0), 0, 16, 64, False, streamed=True),
]


@dataclass(frozen=True)
class Example:
    """A nest of integers, whose sums are the same in any order: maps, kinds of loops, sizes, body, and what it means."""

    maps: tuple[str, ...]
    kinds: str
    sizes: tuple[int, ...]
    body: str

    def text(self, plan: str = "", dynamic: bool = False) -> str:
        arrays = arrays_for(list(self.maps), self.named_sizes, "i32")
        types = [memref(a.shape, "i32", dynamic) for a in arrays]
        mark = f', relax.plan = "{plan}"' if plan else ""
        return function(types, generic(list(self.maps), self.kinds, types, self.body, mark))

    @property
    def named_sizes(self) -> dict[str, int]:
        return dict(zip("ijk", self.sizes, strict=False))

    @contextmanager
    def nest(self) -> Iterator[Nest]:
        """The nest, which lives as long as its module."""
        with ir.Context(), ir.Location.unknown():
            module = ir.Module.parse(self.text())
            operation = module.body.operations[0].regions[0].blocks[0].operations[0].operation
            yield collapse(read_nest(operation, Buffers(operation.location)))


_ADD = "  %y = arith.addi %x0, %x1 : i32\n  linalg.yield %y : i32"
_TOTAL = "  %s = arith.addi %x1, %x0 : i32\n  linalg.yield %s : i32"
_TAPS = "  %p = arith.muli %x0, %x1 : i32\n  %s = arith.addi %x2, %p : i32\n  linalg.yield %s : i32"
EXAMPLES = {
    "transposed": Example(("(i, j) -> (j, i)", "(i, j) -> (j)", "(i, j) -> (i, j)"), "pp", (19, 37), _ADD),
    "three loops": Example(("(i, j, k) -> (k, i, j)", "(i, j, k) -> (j)", "(i, j, k) -> (i, j, k)"), "ppp", (5, 7, 19), _ADD),
    "sum": Example(("(i, j) -> (i, j)", "(i, j) -> (i)"), "pr", (9, 83), _TOTAL),
    "sum down": Example(("(i, j) -> (i, j)", "(i, j) -> (j)"), "rp", (23, 83), _TOTAL),
    "taps": Example(("(i, j, k) -> (i + k, j)", "(i, j, k) -> (k, j)", "(i, j, k) -> (i, j)"), "ppr", (11, 37, 3), _TAPS),
}  # fmt: skip


def fitting(nest: Nest, count: int, seed: int) -> list[NestPlan]:
    """Plans that fit, at random, of each kind."""
    dims, draw = list(nest.extents), chance.Random(seed)
    across = {"horizontal": True}
    kinds = [{}, across, across | {"fetch": 64}, {"streamed": True}, *({"tile": d} for d in dims), {"block": 2}, {"block": 4}]
    every = [
        NestPlan(order, vector, width, width * wide, **({"horizontal": False} | kind))
        for order in itertools.permutations(dims)
        for vector in dims
        for width, wide in ((1, 1), (2, 4), (4, 1), (16, 2), (32, 1))
        for kind in kinds
    ]
    found: dict[str, list[NestPlan]] = {}
    for plan in [*every, *(NestPlan(order, None, 0, 0, False) for order in itertools.permutations(dims))]:
        if fits(plan, nest):
            found.setdefault(f"{plan.horizontal} {plan.streamed} {plan.tile} {plan.block} {plan.fetch}", []).append(plan)
    return [plan for plans in found.values() for plan in draw.sample(plans, min(count, len(plans)))]


def fits(plan: NestPlan, nest: Nest, rows: int = 0) -> bool:
    try:
        check_plan(plan, nest, combiners(nest) is not None, rows)
    except RelaxError:
        return False
    return True


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_plan_is_what_its_line_says(plan: NestPlan) -> None:
    assert parse_plan(str(plan)) == plan


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_whatever_fits_gives_the_same_numbers(name: str, dynamic: bool) -> None:
    example = EXAMPLES[name]
    arrays = arrays_for(list(example.maps), example.named_sizes, "i32")
    *inputs, out = arrays
    seen = [read(a, m, example.named_sizes) for a, m in zip(inputs, example.maps, strict=False)]
    reduced = example.kinds.find("r")
    of_two = np.add if reduced < 0 else np.multiply
    each = seen[0] if len(seen) == 1 else of_two(*seen)
    want = each if reduced < 0 else out + each.sum(reduced)
    with example.nest() as nest:
        plans = fitting(nest, 2, seed=len(name))
    assert len(plans) > 3
    for plan in plans:
        got = out.copy()
        Compiled(example.text(str(plan), dynamic))(*inputs, got)
        np.testing.assert_array_equal(got, want, err_msg=str(plan))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("sum", "oder=1", "expected a plan of order, vector, width, wide, horizontal, tile, block, streamed, fetch, each once"),
        ("sum", "vector=1 width=4 wide=4", "expected a plan with order, got"),
        ("sum", "order=0+1 vector=1 width=4", "expected a plan with wide, got"),
        ("sum", "order=0+x", "expected loops, such as order=0+2+1, or order=none, got 'order=0+x'"),
        ("sum", "order=0+1 vector=x width=4 wide=4", "expected a loop, such as vector=1, got 'vector=x'"),
        ("sum", "order=0+1 vector=1 width=0 wide=4", "expected a positive number of lanes, got 'width=0'"),
        ("sum", "order=0+1 block=0", "expected a positive number of iterations, got 'block=0'"),
        ("sum", "order=0+1 streamed=1", "expected streamed=yes, got 'streamed=1'"),
        ("sum", "order=0+1 tile=a", "expected a loop, such as tile=0, got 'tile=a'"),
        ("sum", "order=0+1 horizontal=no", "expected horizontal=yes, got 'horizontal=no'"),
        ("sum", "order=0+1 fetch=a", "expected a positive number of bytes, got 'fetch=a'"),
        ("sum", "order=0+1 vector=0 width=4 wide=4 fetch=64", "one reduction along the vector inside of another loop"),
        ("sum", "order=0+1 fetch=64", "a vector, got"),
        ("sum", "order=0", "each of the loops [0, 1] once"),
        ("sum", "order=1+0", "loops over reductions inside of the others"),
        ("sum", "order=0+1 block=2", "a vector, got"),
        ("sum", "order=0+1 vector=2 width=4 wide=4", "a vector along a loop inside of rows"),
        ("sum", "order=0+1 vector=0 width=3 wide=3", "powers of two, wide of 1 to 16 times width"),
        ("sum", "order=0+1 vector=0 width=128 wide=128", "at most 64 lanes"),
        ("sum", "order=0+1 vector=1 width=4 wide=4 horizontal=yes block=2", "one of horizontal, tile, block and streamed"),
        ("sum", "order=0+1 vector=1 width=4 wide=4", "horizontal for a vector along a reduction, and no other"),
        ("sum", "order=0+1 vector=0 width=4 wide=4 tile=1", "no tile in a nest with reductions or rows"),
        ("sum", "order=1+0 vector=0 width=4 wide=4 streamed=yes", None),
        ("sum down", "order=1+0 vector=1 width=4 wide=4 streamed=yes", "the vector's loop as the innermost one, got"),
        ("transposed", "order=0+1 vector=1 width=4 wide=4 streamed=yes", "one result, contiguous along the vector"),
        ("transposed", "order=0+1 vector=1 width=4 wide=4 tile=1", "the tile's loop just outside of the vector's"),
        ("transposed", "order=0+1 vector=1 width=4 wide=8 tile=0", "a tile of width=wide"),
        ("transposed", "order=0+1 vector=0 width=4 wide=4", "the vector's loop as the innermost one that is no reduction"),
        ("transposed", "order=0+1 vector=0 width=4 wide=4 block=2", "a block of at most 16 of a loop inside"),
    ],
)
def test_what_does_not_fit(name: str, text: str, message: str | None) -> None:
    with EXAMPLES[name].nest() as nest:
        if message is None:
            check_plan(parse_plan(text), nest, combines=True)
            return
        with pytest.raises(RelaxError) as error:
            check_plan(parse_plan(text), nest, combines=True)
    assert message in str(error.value)


def test_rows_come_first_and_lanes_split_what_they_can() -> None:
    with EXAMPLES["sum"].nest() as nest:
        along = parse_plan("order=0+1 vector=1 width=4 wide=4 horizontal=yes")
        with pytest.raises(RelaxError, match="no vector along what lanes cannot split"):
            check_plan(along, nest, combines=False)
        check_plan(along, nest, combines=True, rows=1)
    with EXAMPLES["three loops"].nest() as three, pytest.raises(RelaxError, match=r"the loops \[0\] of rows first"):
        check_plan(parse_plan("order=1+0+2 vector=2 width=4 wide=4"), three, combines=False, rows=1)


def test_results_are_written_along_their_rows_though_two_operands_are_read_across() -> None:
    maps = ("(i, j) -> (j, i)", "(i, j) -> (j, i)", "(i, j) -> (i, j)")
    with Example(maps, "pp", (64, 64), _ADD).nest() as nest:
        plan = make_plan(nest, Target.parse("cpu:znver4"))
    assert (plan.vector, plan.tile) == (1, 0)
