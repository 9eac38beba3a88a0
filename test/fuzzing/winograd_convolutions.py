"""Random chains of 3x3 convolutions by Winograd's filtering against direct ones.

Drawn are sizes, which of them are open, epilogues, CPUs, and elements that are infinite or NaN.
"""

from __future__ import annotations

import random

import numpy as np

import relaxir as rx
from fuzzing.targets import CPUS
from relaxir.compiler import default_pipeline
from support.emulation import compile_for
from support.guard_pages import guarded_copy

__all__ = ["check"]

# Of the largest result: a chain of up to three, of 16 times up to 300 products each.
_TOLERANCE = 2e-5
# Small images, too.
_ALL = default_pipeline().replace("relax-winograd-convolutions{gainful=true}", "relax-winograd-convolutions")
_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 15, 16, 17, 31, 33, 40)
_CHANNELS = (16, 17, 20, 24, 31, 32, 33, 48, 64, 65, 96, 100, 128, 160, 300)


class _Chain:
    """A function in the making."""

    def __init__(self, rng: random.Random):
        self.rng, self.builder = rng, rx.Builder()
        self.weights: dict[str, tuple[int, ...]] = {}

    def build(self) -> tuple[rx.Module, tuple[int, ...]]:
        """The module, and the sizes of its image."""
        rng, b = self.rng, self.builder
        channels, sizes = rng.choice(_CHANNELS), (rng.choice((1, 1, 2, 3)), rng.choice(_SIZES), rng.choice(_SIZES))
        open_ = [rng.random() < 0.3 for _ in sizes]
        with b.function("main"):
            x = b.input("x", (*(n if o else s for n, s, o in zip("nhw", sizes, open_, strict=True)), channels), "f32")
            results = [x]
            for _ in range(rng.choice((1, 1, 2, 3))):
                x, channels = self._convolution(x, channels), self.channels
                results.append(x)
            more = [rng.choice(results[1:])] if rng.random() < 0.3 else []  # what is read twice
            b.output(x, *more)
        return b.build(), (*sizes, results[0].shape[3])

    def _convolution(self, x, inputs: int):
        rng, b, name = self.rng, self.builder, f"w{len(self.weights)}"
        self.channels = rng.choice(_CHANNELS)
        layout = rng.choice(("HWIO", "HWIO", "OIHW"))
        shape = (3, 3, inputs, self.channels) if layout == "HWIO" else (self.channels, inputs, 3, 3)
        self.weights[name] = shape
        padding = [2, 2, 2, 2] if rng.random() < 0.2 else [rng.randint(1, 2) for _ in range(4)]
        y = b.conv2d(x, b.weight(name, shape, "f32"), padding=padding, data_layout="NHWC", kernel_layout=layout)
        for _ in range(rng.randint(0, 3)):
            y = self._epilogue(y, x)
        return y

    def _epilogue(self, y, x):
        rng, b, name = self.rng, self.builder, f"b{len(self.weights)}"
        kind = rng.choice(("bias", "scale", "relu", "silu", "residual", "gate"))
        if kind in ("bias", "scale"):
            self.weights[name] = (self.channels,)
            weight = b.weight(name, (self.channels,), "f32")
            return b.add(y, weight) if kind == "bias" else b.multiply(y, weight)
        if kind == "residual" and tuple(y.shape) == tuple(x.shape):
            return b.add(y, x)
        if kind == "gate":
            return b.multiply(y, b.sigmoid(y))
        return b.silu(y) if kind == "silu" else b.relu(y)


def check(seed: int) -> None:
    """Raises AssertionError where results are others."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    chain = _Chain(rng)
    module, shape = chain.build()
    target = rng.choice((None, None, *CPUS))
    checked = rng.random() < 0.1
    if target is None:
        executable = rx.compile(module, pipeline=_ALL, checked=checked)
    else:
        executable = compile_for(module, target.removeprefix("cpu:"), _ALL, checked=checked)
    weights = {name: numbers.standard_normal(s).astype(np.float32) for name, s in chain.weights.items()}
    values = numbers.standard_normal(shape).astype(np.float32)
    for _ in range(rng.choice((0, 0, 0, 1, 3)) if values.size else 0):
        values.flat[rng.randrange(values.size)] = rng.choice((np.inf, -np.inf, np.nan))
    x = guarded_copy(values, rng.choice(("start", "end")))
    executable.bind(executable.prepare(weights))
    executable.threads = rng.choice((1, 2, 3))
    found = executable(x)
    expected = rx.evaluate(module, "main", x, weights=weights)
    for got, want in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        assert got.shape == want.shape, f"expected {want.shape}, got {got.shape}"
        finite = np.isfinite(want)
        np.testing.assert_array_equal(np.asarray(got)[~finite], want[~finite])
        off, most = (np.abs(a[finite]).max(initial=0) for a in (np.asarray(got) - np.where(finite, want, 0), want))
        assert off <= _TOLERANCE * most, f"off by {off} of {most}"
