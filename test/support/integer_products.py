"""Products with quantized weights of all kinds, as modules: dtypes, groups, zero points, rows, dtypes of activations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import relaxir as rx
from relaxir.compiler import default_pipeline
from relaxir.dialect.dtypes import numpy_dtype

__all__ = ["CASES", "INTEGER_PIPELINE", "RANGES", "Case", "module_of"]

#: The default one with quantized activations.
INTEGER_PIPELINE = default_pipeline(activations="int8")

#: Where integers of a dtype begin and end.
RANGES = {"i8": (-128, 128), "ui8": (0, 256), "i4": (-8, 8), "ui4": (0, 16)}


@dataclass(frozen=True)
class Case:
    """A product of ``m`` rows (a name: any number) with ``[n, k]`` integers; ``zero`` is a number, or one per group."""

    dtype: str
    m: int | str
    n: int
    k: int
    group: int = 0
    zero: int | None = 0
    activations: str = "f32"

    @property
    def groups(self) -> int:
        return self.k // self.group if self.group else 1


CASES = [
    Case("i8", "m", 70, 64), Case("i8", 1, 33, 100, zero=3), Case("ui8", 9, 40, 256, 32, None), Case("i8", 17, 1, 32),
    Case("i4", "m", 70, 128, 32), Case("ui4", 1, 129, 192, 64, None), Case("i4", 5, 31, 96, 16, None, "bf16"),
    Case("ui4", 13, 65, 256, zero=8), Case("i4", 1, 1, 64, 32), Case("ui4", 19, 1, 64, 32, None),
    Case("i8", "m", 64, 1024, 512, activations="f16"),
]  # fmt: skip


def module_of(cases: list[Case]) -> tuple[rx.Module, dict[str, dict[str, np.ndarray]]]:
    """A function per case, f0 and so on, and the weights of each."""
    builder, weights, rng = rx.Builder(), dict[str, dict[str, np.ndarray]](), np.random.default_rng(0)
    for number, case in enumerate(cases):
        name, integers, parameters = f"f{number}", numpy_dtype(case.dtype), (case.n, case.groups)
        held = {f"{name}.q": rng.integers(*RANGES[case.dtype], (case.n, case.k)).astype(integers)}
        held[f"{name}.s"] = rng.random(parameters, np.float32)
        with builder.function(name):
            x = builder.input("x", (case.m, case.k), case.activations)
            q = builder.weight(f"{name}.q", (case.n, case.k), case.dtype)
            s = builder.astype(builder.weight(f"{name}.s", parameters, "f32"), case.activations)
            if case.zero is None:
                held[f"{name}.z"] = rng.integers(*RANGES[case.dtype], parameters).astype(integers)
                zero = builder.weight(f"{name}.z", parameters, case.dtype)
            else:
                zero = builder.full((), case.zero, case.dtype)
            wide = builder.permute_dims(builder.dequantize(q, s, zero), axes=[1, 0])
            bias = builder.constant(np.linspace(-1, 1, case.n, dtype=np.float32))
            builder.output(builder.relu(builder.add(builder.astype(builder.matmul(x, wide), "f32"), bias)))
        weights[name] = held
    return builder.build(), weights
