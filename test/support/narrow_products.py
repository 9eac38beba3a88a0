"""Products with weights that are stored narrow, against the reference: dtypes, groups, zero points, minima, codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from support.emulation import compile_for

__all__ = ["RANGES", "WEIGHTS", "Weight", "build", "check"]

#: Where integers of a dtype begin and end.
RANGES = {"i8": (-128, 128), "ui8": (0, 256), "i4": (-8, 8), "ui4": (0, 16)}
#: Bytes that are of fewer bits, as the ops say that make them.
PLANES = {"ui5": 31, "ui6": 63}
FLOATS = ("bf16", "f16", "f8E4M3FN")


@dataclass(frozen=True)
class Weight:
    """A weight ``[columns, depth]``; ``group`` is how many elements share a scale, 0 for all of a row.

    In place of zero points a group may have a minimum behind the scale (``low``); codes are looked up in a table (``codes``).
    """

    dtype: str
    columns: int
    depth: int
    group: int = 0
    zeros: bool = False
    low: bool = False
    codes: bool = False

    def arrays(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        shape, dtype = (self.columns, self.depth), numpy_dtype("ui8" if self.dtype in PLANES else self.dtype)
        if self.dtype in FLOATS and not self.group:
            return {"q": rng.normal(size=shape).astype(dtype)}
        groups = (self.columns, self.depth // self.group if self.group else 1)
        if self.dtype in PLANES:
            found = {"q": rng.integers(0, 256, shape, dtype), "s": rng.uniform(0.1, 1, groups).astype(np.float32)}
            more = (
                rng.uniform(-1, 1, groups).astype(np.float16) if self.low else np.array(PLANES[self.dtype] // 2 + 1, np.uint8)
            )
            return found | {"l" if self.low else "z": more}
        found = {"q": rng.integers(*RANGES[self.dtype], shape) if self.dtype in RANGES else rng.normal(size=shape)}
        found = {"q": found["q"].astype(dtype), "s": rng.uniform(0.1, 1, groups).astype(np.float32)}
        found |= {"l": rng.uniform(-1, 1, groups).astype(np.float16)} if self.low else {}
        found |= {"t": rng.normal(size=16).astype(np.float32)} if self.codes else {}
        return found | ({"z": rng.integers(*RANGES[self.dtype], groups).astype(dtype)} if self.zeros else {})


def build(rows: int | str, weights: list[Weight]) -> tuple[rx.Module, dict[str, np.ndarray]]:
    """A product with each weight, transposed as linear layers are."""
    b, rng, arrays = rx.Builder(), np.random.default_rng(1), dict[str, np.ndarray]()
    with b.function("main"):
        inputs = {d: b.input(f"x{d}", (rows, d)) for d in dict.fromkeys(w.depth for w in weights)}
        results = {}
        for i, weight in enumerate(weights):
            own = weight.arrays(rng)
            arrays |= {f"{name}{i}": array for name, array in own.items()}
            stored = "ui8" if weight.dtype in PLANES else weight.dtype
            dtypes = {"q": stored, "s": "f32", "z": stored, "l": "f16", "t": "f32"}
            taken = {name: b.weight(f"{name}{i}", array.shape, dtypes[name]) for name, array in own.items()}
            if weight.dtype in PLANES:
                known = b.bitwise_and(taken["q"], b.full((), PLANES[weight.dtype], "ui8"))
                wide = b.dequantize(known, taken["s"], taken["l" if weight.low else "z"])
            elif "s" not in taken:
                wide = b.astype(taken["q"], "f32")
            elif weight.low or weight.codes or weight.dtype in FLOATS:
                x = b.look_up(taken["q"], taken["t"]) if weight.codes else taken["q"]
                wide = b.dequantize(x, taken["s"], taken.get("l", b.full((), 0, "f32")))
            else:
                wide = b.dequantize(taken["q"], taken["s"], taken.get("z", b.full((), 0, weight.dtype)))
            results[f"y{i}"] = b.matmul(inputs[weight.depth], b.permute_dims(wide, axes=[1, 0]))
        b.output(**results)
    return b.build(), arrays


def check(rows: int | str, weights: list[Weight], counts: list[int], target: str | None = None) -> None:
    """Compiles products with weights, for this host or another one, and compares them for some numbers of rows."""
    module, arrays = build(rows, weights)
    executable = rx.compile(module) if target is None else compile_for(module, target)
    executable.bind(executable.prepare(arrays))
    for m in counts:
        rng = np.random.default_rng(m)
        inputs = [rng.normal(size=(m, d)).astype(np.float32) for d in dict.fromkeys(w.depth for w in weights)]
        got, want = executable(*inputs), rx.evaluate(module, "main", *inputs, weights=arrays)
        got = got if isinstance(got, tuple) else (got,)
        for g, w, weight in zip(got, want, weights, strict=True):
            np.testing.assert_allclose(g, w, rtol=0, atol=3e-6 * np.abs(w).max(), err_msg=str(weight))


#: Enough columns for several panels at once, and some behind the last whole panel; groups of whole words and of others.
WEIGHTS = [
    Weight("i4", 300, 128, 32),
    Weight("ui4", 272, 96, 48, zeros=True),
    Weight("i4", 256, 100, 20, zeros=True),
    Weight("i4", 259, 104),
    Weight("ui4", 256, 101, zeros=True),
    Weight("i4", 256, 36, 12),
    Weight("i8", 300, 77),
    Weight("ui8", 256, 128, 32, zeros=True),
    Weight("i8", 257, 99, 33, zeros=True),
    Weight("bf16", 300, 63),
    Weight("f16", 256, 64),
    Weight("f8E4M3FN", 256, 40),
    Weight("ui4", 256, 96, 32, low=True),
    Weight("ui4", 300, 96, 48, codes=True),
    Weight("f8E4M3FN", 272, 96, 32),
    Weight("ui8", 259, 96, 32, low=True),
    Weight("ui5", 259, 96, 32, low=True),
    Weight("ui6", 272, 96, 16),
    Weight("ui6", 300, 104),
    Weight("ui5", 256, 96, 16),
    Weight("ui6", 256, 100, 20),
]
