"""Products with packed weights whose panels are of any width, whatever the target's tiles are: the reference's numbers.

Each case is a function of one op. What a caller or a rewrite may vary is drawn: how many columns the last panel lacks, rows
(known, or only at run time), depth, groups, dtypes, zero points, which sizes types leave open. Arrays end, or begin, where
memory is inaccessible.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.runtime.executable import Executable
from support.emulation import compile_for
from support.guard_pages import ChildError, guarded_copy, in_child
from support.small_parts import small_parts

Array = np.ndarray[Any, Any]

#: How many cases are drawn of each width for a target and kind; 0: each target meets some widths.
TIMES = int(os.environ.get("RELAXIR_PANELS", "0"))
WIDTHS = (4, 8, 16, 32, 64)
#: No powers of two: no vector fits such panels.
ODD_WIDTHS = (1, 3, 6, 12, 24, 48)
TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "znver4", "neoverse-v1")
RANGES = {"i8": (-128, 128), "ui8": (0, 256), "ui32": (0, 1 << 32)}
#: By the largest element: f32 sums in another order, or one rounding of the result.
TOLERANCE = {"f64": 1e-13, "f32": 3e-6, "f16": 1e-3, "bf16": 8e-3}
#: More columns, for several panels at once, and more steps of k, for blocks.
MANY_COLUMNS, MANY_STEPS = 300, 1040


@dataclass(frozen=True)
class Case:
    """A function's text, and the arrays of each of its calls."""

    text: str
    calls: list[list[Array]]
    tolerance: float


class _Drawn:
    """Draws a case with panels of one width."""

    def __init__(self, seed: int, tile: int):
        self.rng, self.numbers, self.tile = random.Random(seed), np.random.default_rng(seed), tile
        self.panels = self.rng.choice((1, 1, 2, 3, 5, -(-MANY_COLUMNS // tile)))
        self.n = self.panels * tile - self.rng.choice((0, self.rng.randrange(tile), self.rng.randrange(tile)))
        self.counts = [self.rng.choice((*range(1, 10), 17, 40))]
        self.rows = str(self.counts[0])
        if self.rng.random() < 0.4:
            self.rows, self.counts = "m", [1, 2, *self.rng.sample(range(3, 10), 2), self.rng.choice((17, 40))]

    def case(self, name: str, operands: Sequence[str], lines: Sequence[str], calls: list[list[Array]], out: str) -> Case:
        """A function whose last line says how ``%r`` is made, as far as the types; ``operands`` are the arguments' types."""
        arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(operands))
        body = "\n".join(f"  {line}" for line in lines)
        dtype = out.split(",")[0].rstrip(">").rpartition("x")[2]
        text = f"func.func @{name}({arguments}) -> {out} {{\n{body} -> {out}\n  return %r : {out}\n}}"
        return Case(text, calls, TOLERANCE[dtype])

    def of_rows(self, *rest: int, dtype: str) -> str:
        """The type of a tensor with rows."""
        shape = "x".join(map(str, (*rest, dtype)))
        return f'tensor<?x{shape}, {{sym = ["m"]}}>' if self.rows == "m" else f"tensor<{self.rows}x{shape}>"

    def of(self, array: Array, dtype: str) -> str:
        """The type of a tensor, which may leave sizes open."""
        sizes = ["?" if self.rng.random() < 0.15 else str(s) for s in array.shape]
        return f"tensor<{'x'.join([*sizes, dtype])}>"

    def floats(self, dtype: str, *shape: int, low: float = -1) -> Array:
        return self.numbers.uniform(low, 1, shape).astype(numpy_dtype(dtype))

    def integers(self, dtype: str, *shape: int) -> Array:
        return self.numbers.integers(*RANGES[dtype], shape).astype(numpy_dtype(dtype))

    def packed(self, dtype: str, k: int, group: int = 1) -> Array:
        """A packed matrix; zeros where packing has them."""
        wide = np.zeros((-(-k // group) * group, self.panels * self.tile))
        wide[:k, : self.n] = self.numbers.uniform(-1, 1, (k, self.n))
        parts = wide.reshape(-1, group, self.panels, self.tile).transpose(2, 0, 3, 1)
        return np.ascontiguousarray(parts if group > 1 else parts[..., 0]).astype(numpy_dtype(dtype))


def quantized(d: _Drawn, name: str) -> Case:
    side, words, groups = d.rng.choice((2, 4)), d.rng.random() < 0.4, d.rng.choice((1, 1, 2, 3))
    every = d.rng.choice((8, 16, 32, 40, 64)) if words else side * d.rng.choice((1, 2, 7, 8, 16, 20))
    k, dtype = every * groups, "ui32" if words else d.rng.choice(("i8", "ui8"))
    weight = d.integers(dtype, *((d.panels, k // 8, d.tile) if words else (d.panels, k // side, d.tile, side)))
    scale = d.floats("f32", d.panels, groups, d.tile, low=0.1)
    operands = [
        d.of_rows(k, dtype="i8"), d.of_rows(groups, dtype="f32"), d.of_rows(groups, dtype="i32"),
        d.of(weight, dtype), f"tensor<{'x'.join(map(str, scale.shape))}xf32>",
    ]  # fmt: skip
    types, constant = list(operands), d.rng.choice((None, 0, 5))
    lines, zeros = list[str](), list[Array]()
    if constant is None:
        wide = d.rng.choice(("i8", "ui8", "i32"))
        zeros = [d.numbers.integers(0, 100, d.rng.choice(((), scale.shape))).astype(numpy_dtype(wide))]
        operands.append(d.of(zeros[0], wide))
        types.append(operands[-1])
    else:
        types.append("tensor<i32>")
        lines.append(f'%a5 = "relax.constant"() {{value = dense<{constant}> : tensor<i32>}} : () -> tensor<i32>')
    result = d.rng.choice(("f32", "f32", "bf16"))
    layout = f"tile {d.tile}, rows {side}" + (", u4x8" if words else "")
    attributes = f'layout = "{layout}", n = {d.n} : i64, out_dtype = {result}'
    lines.append(f'%r = "relax.quantized_matmul"(%a0, %a1, %a2, %a3, %a4, %a5) {{{attributes}}} : ({", ".join(types)})')
    calls = list[list[Array]]()
    for rows in d.counts:
        x = np.maximum(d.integers("i8", rows, k), -127)
        sums = x.reshape(rows, groups, every).sum(-1, dtype=np.int32)
        calls.append([x, d.floats("f32", rows, groups, low=0.1), sums, weight, scale, *zeros])
    return d.case(name, operands, lines, calls, d.of_rows(d.n, dtype=result))


def matmul(d: _Drawn, name: str) -> Case:
    dtype, group = d.rng.choice(("f32", "bf16", "bf16", "f16", "f64")), d.rng.choice((1, 2, 2, 4))
    k = d.rng.choice((1, 2, 7, 16, 33, 64, MANY_STEPS))
    weight, result = d.packed(dtype, k, group), dtype if dtype == "f64" else d.rng.choice((dtype, "f32"))
    operands = [d.of_rows(k, dtype=dtype), f"tensor<{'x'.join(map(str, weight.shape))}x{dtype}>"]
    layout = f"tile {d.tile}" + (f", rows {group}" if group > 1 else "")
    attributes = f'layout = "{layout}", n = {d.n} : i64, out_dtype = {result}'
    lines = [f'%r = "relax.packed_matmul"(%a0, %a1) {{{attributes}}} : ({", ".join(operands)})']
    calls = [[d.floats(dtype, rows, k), weight] for rows in d.counts]
    return d.case(name, operands, lines, calls, d.of_rows(d.n, dtype=result))


def dequantized(d: _Drawn, name: str) -> Case:
    """A product that reads packed integers, or words of four bits, as they are."""
    groups, words, has_zero = d.rng.choice((1, 1, 2, 3)), d.rng.random() < 0.5, d.rng.random() < 0.5
    every = d.rng.choice((8, 16, 24, 32, MANY_STEPS) if words else (4, 16, 24, 33, MANY_STEPS))
    k, dtype = every * groups, d.rng.choice(("ui4", "i4") if words else ("i8", "ui8"))
    stored = d.integers("ui32", d.panels, k // 8, d.tile) if words else d.integers(dtype, d.panels, k, d.tile)
    narrow, wide = (f"tensor<{d.panels}x{k}x{d.tile}x{t}>" for t in (dtype, "f32"))
    scale = d.floats("f32", d.panels, groups, d.tile, low=0.1)
    parameters = "x".join(map(str, scale.shape))
    held = [f"tensor<{d.panels}x{k // 8}x{d.tile}xui32>" if words else narrow, f"tensor<{parameters}xf32>"]
    operands, lines, zeros = [d.of_rows(k, dtype="f32"), *held], list[str](), list[Array]()
    zero_type = f"tensor<{parameters}xi8>" if has_zero else "tensor<i8>"
    if has_zero:
        operands.append(zero_type)
        zeros = [d.numbers.integers(0, 8, scale.shape).astype(np.int8)]
    else:
        lines.append('%a3 = "relax.constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>')
    if words:
        attributes = f"axis = 1 : i64, size = {k} : i64, dtype = {dtype}"
        lines.append(f'%q = "relax.unpack_nibbles"(%a1) {{{attributes}}} : ({held[0]}) -> {narrow}')
    source = "%q" if words else "%a1"
    lines += [
        f'%w = "relax.dequantize"({source}, %a2, %a3) {{axis = 0 : i64}} : ({narrow}, {held[1]}, {zero_type}) -> {wide}',
        f'%r = "relax.packed_matmul"(%a0, %w) {{layout = "tile {d.tile}", n = {d.n} : i64}} : ({operands[0]}, {wide})',
    ]
    calls = [[d.floats("f32", rows, k), stored, scale, *zeros] for rows in d.counts]
    return d.case(name, operands, lines, calls, d.of_rows(d.n, dtype="f32"))


def conv2d(d: _Drawn, name: str) -> Case:
    dtype, c, size = d.rng.choice(("f32", "bf16")), d.rng.choice((1, 3, 8)), d.rng.choice((1, 2, 3))
    groups = d.panels if d.n % d.tile == 0 and d.panels < 6 and d.rng.random() < 0.5 else 1
    height, width, padding = d.rng.choice((3, 5)), d.rng.choice((3, 7)), d.rng.choice((0, 1))
    weight = d.packed(dtype, size * size * c)
    operands = [
        d.of_rows(height, width, c * groups, dtype=dtype), f"tensor<{'x'.join(map(str, weight.shape))}x{dtype}>"
    ]  # fmt: skip
    attributes = (
        f'layout = "tile {d.tile}", channels = {d.n} : i64, kernel_size = array<i64: {size}, {size}>, '
        f"groups = {groups} : i64, "
        f"padding = array<i64: {', '.join([str(padding)] * 4)}>"
    )
    lines = [f'%r = "relax.packed_conv2d"(%a0, %a1) {{{attributes}}} : ({", ".join(operands)})']
    calls = [[d.floats(dtype, rows, height, width, c * groups), weight] for rows in d.counts]
    out = [s + 2 * padding - size + 1 for s in (height, width)]
    return d.case(name, operands, lines, calls, d.of_rows(*out, d.n, dtype=dtype))


MAKERS = {"quantized": quantized, "matmul": matmul, "dequantized": dequantized, "conv2d": conv2d}


def drawn(target: str, kind: str) -> Iterator[Case]:
    """Cases named f0, f1, and so on."""
    place = TARGETS.index(target)
    turned, odd = WIDTHS[place:] + WIDTHS[:place], ODD_WIDTHS[place:] + ODD_WIDTHS[:place]
    widths = [w for i in range(TIMES) for w in (*WIDTHS, odd[i % len(odd)])]
    if not TIMES:
        widths = [*turned[: 3 if kind == "quantized" else 1], odd[0]]
    seed = (place * len(MAKERS) + list(MAKERS).index(kind)) * 1000
    for i, width in enumerate(widths):
        yield MAKERS[kind](_Drawn(seed + i, width), f"f{i}")


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("target", TARGETS)
def test_panels_of_any_width(target: str, kind: str) -> None:
    cases = list(drawn(target, kind))
    module = rx.Module.parse("\n".join(case.text for case in cases))
    # Rows are few here: parts are of all of them, of one, or of some.
    with small_parts((64, 1, 3)[(TARGETS.index(target) + list(MAKERS).index(kind)) % 3]):
        executable = compile_for(module, target)
    for i, case in enumerate(cases):
        try:
            problem = in_child(lambda i=i, case=case: _problem(module, executable, f"f{i}", case))
        except ChildError as error:
            problem = str(error)
        assert problem is None, f"{problem}\n{case.text}"


def _problem(module: rx.Module, executable: Executable, entry: str, case: Case) -> str | None:
    """The first call whose numbers are not the reference's."""
    for i, arrays in enumerate(case.calls):
        (want,) = rx.evaluate(module, entry, *arrays)
        edge = "start" if i % 3 == 1 else "end"
        guarded = [guarded_copy(a, edge) for a in (*arrays, np.zeros_like(want))]
        got = executable(*guarded[:-1], entry=entry, out=guarded[-1])
        far = np.abs(got.astype(np.float64) - want.astype(np.float64)).max()
        limit = case.tolerance * np.abs(want.astype(np.float64)).max()
        if not far <= limit:
            return f"{far} is more than {limit} with {[a.shape for a in arrays]}"
    return None
