"""Products with weights of 8 and 4 bits on tensor cores, on the emulator: sums of what weights stand for, to f32's rounding.

Draws hold: activations in bf16 or f16 (f32 is not rounded) of two or three dimensions, weights as matrices, groups of 16 to 128
rows or one of all, 5 rows of activations or more. Sizes, which of them are known, what follows the product and target vary.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.building.builder import Builder
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cuda.kernels.products.plan import check_plan, parse_plan
from relaxir.lowering.cuda.kernels.products.shape import FactorShape, ProductShape
from support.emulated_cuda import plans

AMPERE, HOPPER = "cuda:sm_80", "cuda:sm_90a"


@dataclass(frozen=True)
class Drawn:
    """One product.

    Attributes:
        rows: of activations; ``known``: whether they are in the type.
        steps: of the sum, in groups of so many with one scale, 0: all.
        batch: a leading dimension of activations, 0 for none.
        follows: whether a bias and an activation follow.
    """

    bits: int
    group: int
    rows: int
    known: bool
    steps: int
    columns: int
    dtype: str
    batch: int
    follows: bool
    target: str

    @staticmethod
    def of(seed: int) -> Drawn:
        rng = np.random.default_rng(seed)
        group = int(rng.choice([0, 16, 32, 64, 128]))
        steps = group * int(rng.integers(1, 4)) if group else 8 * int(rng.integers(2, 20))
        bits, rows, known, columns = (
            int(rng.choice([4, 8])),
            int(rng.integers(5, 90)),
            bool(rng.integers(2)),
            rng.integers(2, 150),
        )
        dtype, target = str(rng.choice(["bf16", "f16"])), str(rng.choice([AMPERE, HOPPER]))
        batch, follows = int(rng.choice([0, 0, 2])), bool(rng.integers(2))
        return Drawn(bits, group, rows, known, steps, int(columns), dtype, batch, follows, target)

    def module(self, rows: int) -> rx.Module:
        """With so many rows of activations; with ``0``, as drawn."""
        b = rx.Builder()
        with b.function("main"):
            shape = (rows or (self.rows if self.known else "n"), self.steps)
            x = b.input("x", shape if rows or not self.batch else (self.batch, *shape), self.dtype)
            y = b.matmul(x, b.permute_dims(self._weight(b), axes=[1, 0]), out_dtype="f32")
            b.output(b.relu(b.add(y, b.weight("b", (self.columns,), "f32"))) if self.follows and not rows else y)
        return b.build().run(f"relax-quantize-weights{{bits={self.bits} group={self.group}}}")

    def _weight(self, b: Builder) -> rx.Value:
        return b.weight("w", (self.columns, self.steps), self.dtype)


@pytest.mark.parametrize("seed", range(12))
def test_sums_are_those_of_what_weights_stand_for(seed: int) -> None:
    drawn, rng = Drawn.of(seed), np.random.default_rng(seed)
    kind = numpy_dtype(drawn.dtype)
    w, bias = rng.standard_normal((drawn.columns, drawn.steps)).astype(kind), rng.standard_normal(drawn.columns, np.float32)
    shape = (drawn.rows, drawn.steps)
    x = (rng.standard_normal((drawn.batch, *shape) if drawn.batch else shape) + 1).astype(kind)
    executable = rx.compile(drawn.module(0), drawn.target, device="emulated")
    weights = {"w": w} | ({"b": bias} if drawn.follows else {})
    executable.bind(executable.prepare(weights))
    assert any(p.startswith("tile=") for p in plans(executable)), plans(executable)
    (stands_for,) = rx.evaluate(drawn.module(drawn.steps), "main", np.eye(drawn.steps).astype(kind), weights={"w": w})
    want = x.astype(np.float64) @ stands_for.astype(np.float64)
    most = abs(x.astype(np.float64)) @ abs(stands_for.astype(np.float64))
    if drawn.follows:
        want, most = np.maximum(want + bias, 0), most + abs(bias)
    # A product, a scale and the bias; each sum's additions, each off by at most half a unit of what magnitudes come to.
    groups = drawn.steps // (drawn.group or drawn.steps)
    assert (abs(np.asarray(executable(x)) - want) <= (drawn.steps + groups + 3) * 2.0**-24 * most).all()


def zero_points(rows: int) -> rx.Module:
    """A weight of integers as a checkpoint has them, with scales and zero points for each 32 rows."""
    b = rx.Builder()
    with b.function("main"):
        x, q = b.input("x", (rows, 4096), "bf16"), b.weight("q", (4096, 128), "i8")
        scale, zero = b.weight("scale", (128, 128), "f32"), b.weight("zero", (128, 128), "i8")
        b.output(b.matmul(b.astype(x, "f32"), b.dequantize(q, scale, zero)))
    return b.build()


@pytest.mark.parametrize(("rows", "kernel"), [(6, "tile="), (2, "columns=")])
def test_zero_points_of_groups(rows: int, kernel: str) -> None:
    module, rng = zero_points(rows), np.random.default_rng(0)
    q, zero = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((4096, 128), (128, 128)))
    weights = {"q": q, "scale": rng.standard_normal((128, 128), np.float32), "zero": zero}
    x = rng.standard_normal((rows, 4096)).astype(ml_dtypes.bfloat16)
    executable = rx.compile(module, AMPERE, device="emulated")
    executable.bind(executable.prepare(weights))
    assert any(p.startswith(kernel) for p in plans(executable)), plans(executable)
    stands_for = np.repeat(weights["scale"], 32, axis=0) * (q - np.repeat(zero, 32, axis=0).astype(np.float64))
    most = abs(x.astype(np.float64)) @ abs(stands_for)
    assert (abs(np.asarray(executable(x)) - x.astype(np.float64) @ stands_for) <= (4096 + 128 + 2) * 2.0**-24 * most).all()


def test_stages_that_cut_groups() -> None:
    plan = "tile=64x32x32 warps=2x1x2 stages=3 by=bf16 copies=16:0 raster=8 store=8"
    check_plan(parse_plan(plan), shape(group=48), 166912)
    with pytest.raises(RelaxError, match="a part or a multiple of the 24 steps of k that have one scale, got 16"):
        check_plan(parse_plan(plan), shape(group=24), 166912)


def shape(group: int) -> ProductShape:
    return ProductShape(64, 64, 96, None, "bf16", FactorShape(True, 16), FactorShape(False, 0), 8, group=group)
