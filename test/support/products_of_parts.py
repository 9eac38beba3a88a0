"""Products of integers whose rows are in parts, in MLIR: groups of steps, zero points, words, rows in groups, any sizes."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

import relaxir as rx

__all__ = ["ProductOfParts"]


@dataclass(frozen=True)
class ProductOfParts:
    """One product, in a function ``main`` that has all operands as inputs.

    Attributes:
        parts, rows, steps, columns: sizes; of rows a name: any number.
        outer: dimensions in front of rows.
        groups: of steps, with a scale each.
        matrices: of rows in groups: how many there are; 0: rows are in none.
        is_word: whether the weight is words of four bits.
        zero: whether the zero point is 0, another number, or one for each group of a column.
        out_dtype: of the result.
        has_row_scales: whether all groups of a row have one scale.
    """

    parts: int
    rows: int | str
    steps: int
    columns: int
    outer: tuple[int, ...] = ()
    groups: int = 1
    matrices: int = 0
    is_word: bool = False
    zero: str = "none"
    out_dtype: str = "f32"
    has_row_scales: bool = False

    @staticmethod
    def of(seed: int, side: int = 4) -> ProductOfParts:
        """One of a seed, for so many rows of the weight side by side."""
        rng = random.Random(seed)
        groups, matrices, is_word = rng.choice((1, 1, 2, 4)), rng.choice((0, 0, 1, 3)), rng.random() < 0.4
        steps = groups * (8 if is_word else side) * rng.choice((1, 2, 3, 8, 16, 32))
        return ProductOfParts(
            rng.choice((1, 2, 3, 3, 3, 5)), rng.choice((1, 2, 7, 8, 33, "m", "m", 0)), steps,
            rng.choice((7, 16, 33, 64, 100)), () if matrices else rng.choice(((), (), (1,), (2,), (2, 3))), groups, matrices,
            is_word, rng.choice(("none", "number", "each")), rng.choice(("f32", "f32", "bf16")),
            rng.random() < 0.5,
        )  # fmt: skip

    def module(self, tile: int, side: int) -> rx.Module:
        """The module, for panels of so many columns with so many rows side by side."""
        m, sym = ("?", f', {{sym = ["{self.rows}"]}}') if isinstance(self.rows, str) else (self.rows, "")
        outer = "".join(f"{d}x" for d in self.outer)
        rows = [f"tensor<{self.parts}x{outer}{m}x{last}{sym}>" for last in (f"{self.steps}xi8", *self._scales())]
        types = [*rows, *(f"tensor<{'x'.join(map(str, s))}x{t}>" for s, t in self._weights(tile, side))]
        types[-1] = "tensor<i32>" if self.zero != "each" else types[-1]
        columns = self.columns * max(1, self.matrices)
        result = f"tensor<{outer}{m}x{self.columns}x{self.out_dtype}{sym}>"
        names = ["%x", "%a", "%b", "%w", "%s", "%z"]
        number = {"none": 0, "number": 5}.get(self.zero)
        constant = f'%z = "relax.constant"() {{value = dense<{number}> : tensor<i32>}} : () -> tensor<i32>'
        made = "" if number is None else constant
        given = [f"{n}: {t}" for n, t in zip(names, types, strict=True) if number is None or n != "%z"]
        op = "quantized_matmul"
        if self.matrices:
            names, types, op = [*names, "%e"], [*types, f"tensor<{self.matrices}xi64>"], "quantized_grouped_matmul"
            given.append(f"%e: {types[-1]}")
        layout = f"tile {tile}, rows {side}{', u4x8' if self.is_word else ''}"
        out = "" if self.out_dtype == "f32" else f", out_dtype = {self.out_dtype}"
        return rx.Module.parse(f"""
func.func @main({", ".join(given)}) -> {result} {{
  {made}
  %r = "relax.{op}"({", ".join(names)}) {{layout = "{layout}", n = {columns} : i64{out}, parts = true}}
    : ({", ".join(types)}) -> {result}
  return %r : {result}
}}""")

    def arrays(self, tile: int, side: int, rows: int, seed: int) -> list[np.ndarray]:
        """Arguments of a call with so many rows."""
        rng = np.random.default_rng(seed)
        shape, every = (self.parts, *self.outer, rows), self.steps // self.groups
        x = rng.integers(-127, 128, (*shape, self.steps)).astype(np.int8)
        sums = x.reshape(*shape, self.groups, every).sum(-1, dtype=np.int32)
        (weight, dtype), (scales, _), (zeros, _) = self._weights(tile, side)
        high = 1 << 32 if dtype == "ui32" else 256
        found = [x, rng.random((*shape, 1 if self.has_row_scales else self.groups), np.float32), sums]
        found += [rng.integers(0, high, weight).astype(np.uint32 if dtype == "ui32" else np.uint8)]
        found += [rng.random(scales, np.float32)]
        found += [rng.integers(0, 16, zeros).astype(np.int32)] if self.zero == "each" else []
        ends = np.sort(rng.integers(0, rows + 1, self.matrices))
        return [*found, ends] if self.matrices else found

    def _scales(self) -> tuple[str, str]:
        return f"{1 if self.has_row_scales else self.groups}xf32", f"{self.groups}xi32"

    def _weights(self, tile: int, side: int) -> list[tuple[tuple[int, ...], str]]:
        panels = -(-self.columns * max(1, self.matrices) // tile)
        integers = (panels, self.steps // 8, tile) if self.is_word else (panels, self.steps // side, tile, side)
        scales = (panels, self.groups, tile)
        return [(integers, "ui32" if self.is_word else "ui8"), (scales, "f32"), (scales, "i32")]
