"""Random modules of what large models are made of, of sizes up to some hundred: products, attention, convolutions, rows.

The other generators of graphs make many small operations; these are what kernels have templates for: tiles that are full,
ragged or alone, each element type with the layouts, weights and epilogues that choose another kernel, sizes of calls.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import relaxir as rx
from fuzzing.targets import compiled
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.functions import argument_names, body_of, find_function, num_input
from relaxir.dialect.struct_info import TensorInfo
from relaxir.dialect.symbolic import evaluate
from support.guard_pages import guarded_copy

__all__ = ["check", "check_text", "text"]

Value = Any
Array = np.ndarray[Any, Any]

_FLOATS = ("bf16", "f16", "f32", "f32")
_ROWS = (1, 2, 3, 4, 5, 8, 15, 16, 17, 32, 33, 63, 64, 65, 100, 130)
_COLUMNS = (1, 2, 7, 8, 16, 24, 31, 32, 33, 64, 72, 100, 128, 136)
_DEPTHS = (1, 3, 8, 16, 20, 24, 32, 33, 40, 64, 72, 96, 128, 160, 256)
_WIDTHS = (1, 2, 5, 16, 31, 32, 33, 64, 100, 128, 257, 512, 1030)
#: Of symbols, in each call.
_SIZES = {"n": (1, 5, 37, 130, 0), "m": (3, 64, 1, 17, 2), "h": (5, 14, 9, 8, 23), "w": (16, 5, 7, 11, 6)}
#: Of the largest element: sums in another order, rounded to the type, and what follows computes with that.
_TOLERANCE = {"f64": 1e-9, "f32": 2e-4, "f16": 8e-3, "bf16": 6e-2}
_CALLS = 2


def text(seed: int) -> str:
    """The module of a seed, written twice: inputs are in front of weights, and known after the first time."""
    first = _Writer(random.Random(seed), {})
    first.module()
    return _Writer(random.Random(seed), first.taken).module()


def check(seed: int) -> None:
    """Compares compiled code with the reference, for two sets of sizes; none is refused."""
    check_text(text(seed))


def check_text(text: str) -> None:
    """The same of a module."""
    module = rx.Module.parse(text)
    function = find_function(module.ir.operation, "main")
    block = body_of(function)
    assert block is not None
    names = [n or f"argument{i}" for i, n in enumerate(argument_names(function))]
    infos = {n: TensorInfo.of(a) for n, a in zip(names, block.arguments, strict=True)}
    count = num_input(function)
    inputs = names if count is None else names[:count]
    rng = np.random.default_rng(len(text))
    weights = {n: _values(n, infos[n], {}, rng) for n in names[len(inputs) :]}
    executable = compiled(module)
    executable.bind(executable.prepare(weights))
    first = int(rng.integers(0, 5))
    for call in range(_CALLS):
        sizes = {name: values[(first + call) % len(values)] for name, values in _SIZES.items()}
        arrays = [_values(n, infos[n], sizes, rng) for n in inputs]
        want = rx.evaluate(module, "main", *arrays, weights=weights)
        got = executable(*(guarded_copy(a, "end" if call else "start") for a in arrays))
        for i, (a, b) in enumerate(zip(want, got if isinstance(got, tuple) else (got,), strict=True)):
            _close(f"result {i} with {sizes}", a, np.asarray(b))


def _close(what: str, want: Array, got: Array) -> None:
    assert (want.shape, want.dtype) == (got.shape, got.dtype), f"{what}: expected {want.shape}, got {got.shape}"
    if want.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want, what)
        return
    a, b = want.astype(np.float64), got.astype(np.float64)
    kind = {"float64": "f64", "float32": "f32", "float16": "f16"}.get(want.dtype.name, "bf16")
    limit = _TOLERANCE[kind] * max(1.0, float(np.abs(a[np.isfinite(a)]).max(initial=0.0)))
    with np.errstate(invalid="ignore"):
        fine = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= limit)
    assert fine.all(), f"{what}: {int((~fine).sum())} of {a.size} differ: expected {a[~fine][:4]}, got {b[~fine][:4]}"


def _values(name: str, info: TensorInfo, sizes: dict[str, int], rng: np.random.Generator) -> Array:
    """Numbers around 0; names say of indices what they are below, of scales that they are small and positive."""
    shape = [d if isinstance(d, int) else evaluate(d, sizes) for d in info.shape if d is not None]
    kind = str(info.dtype)
    if name.startswith("index"):
        return rng.integers(0, int(name.split("_")[1]), shape).astype(numpy_dtype(kind))
    if name.startswith("ends"):
        rows = name.split("_")[1]
        return _ends(shape[0], sizes[rows] if rows in sizes else int(rows), rng).astype(numpy_dtype(kind))
    if name.startswith("scale"):
        return rng.uniform(0.01, 0.1, shape).astype(numpy_dtype(kind))
    if kind == "i1":
        return rng.random(shape) < 0.7
    if kind.startswith(("i", "ui")):
        return rng.integers(0 if kind.startswith("u") else -8, 8, shape).astype(numpy_dtype(kind))
    return (rng.standard_normal(shape) * (4 if kind.startswith("f8") else 1)).astype(numpy_dtype(kind))


def _ends(groups: int, rows: int, rng: np.random.Generator) -> Array:
    """Where groups of rows end: all over the rows, in front of the last ones, or of a few groups alone."""
    last = rows if rng.random() < 0.5 else int(rng.integers(0, rows + 1))
    ends = np.sort(rng.integers(0, last + 1, groups))
    return np.maximum(ends, last) if rng.random() < 0.2 else ends


class _Writer:
    """Writes one module of one to three kernels, each of what another made or of inputs of its own."""

    def __init__(self, rng: random.Random, known: dict[str, tuple[Any, ...]]):
        """Args: known: arguments, by name; of others, inputs are made where they are needed."""
        self.rng, self.b, self.known = rng, rx.Builder(), known
        self.taken, self.arguments = dict[str, tuple[Any, ...]](), dict[str, Value]()

    def module(self) -> str:
        kinds = (
            (self.product,) * 5
            + (self.grouped,) * 2
            + (self.attention,) * 3
            + (self.convolution,) * 2
            + (self.pooling,)
            + (self.rows,) * 3
            + (self.reduction,) * 2
            + (self.moves,) * 2
        )
        with self.b.function("main"):
            for is_weight in (False, True):
                for name, (weight, *argument) in self.known.items():
                    if weight == is_weight:
                        self.arguments[name] = (self.b.weight if weight else self.b.input)(name, *argument)
            made = [self.rng.choice(kinds)() for _ in range(self.rng.choice((1, 1, 2)))]
            self.b.output(*made)
        return str(self.b.build())

    # -- inputs ----------------------------------------------------------------------------------------------------------

    def size(self, sizes: tuple[int, ...], symbol: str = "") -> int | str:
        """One of some sizes, or a symbol's."""
        return symbol if symbol and self.rng.random() < 0.3 else self.rng.choice(sizes)

    def tensor(self, shape: tuple[int | str, ...], dtype: str, kind: str = "x") -> Value:
        """An input, or a weight where all sizes are known."""
        is_static = all(isinstance(d, int) for d in shape)
        is_weight = is_static and self.rng.random() < (0.9 if kind in ("weight", "scale") else 0.0)
        return self.argument(kind, is_weight, shape, dtype)

    def indices(self, shape: tuple[int | str, ...], below: int) -> Value:
        return self.argument(f"index_{below}", False, shape, self.rng.choice(("i64", "i32")))

    def argument(self, kind: str, is_weight: bool, shape: tuple[int | str, ...], dtype: str) -> Value:
        name = f"{kind}_{len(self.taken)}"
        self.taken[name] = (is_weight, shape, dtype)
        return self.arguments[name] if self.known else self.b.input(name, shape, dtype)

    # -- products --------------------------------------------------------------------------------------------------------

    def product(self) -> Value:
        rng, b = self.rng, self.b
        rows, columns, depth = (
            self.size(_ROWS, "n"),
            self.size(_COLUMNS, "m" if rng.random() < 0.3 else ""),
            rng.choice(_DEPTHS),
        )
        dtype = rng.choice((*_FLOATS, *_FLOATS, "i8", "f8E4M3FN"))
        batch: tuple[int | str, ...] = () if rng.random() < 0.7 else (self.size((1, 2, 3), "m"),)
        x = self.laid_out((*batch, rows, depth), dtype, "x")
        w = self.factor((*(batch if rng.random() < 0.5 else ()), depth, columns), dtype)
        out = {"i8": "i32", "f8E4M3FN": "f32"}.get(dtype)
        y = b.matmul(x, w, out_dtype=out) if out else b.matmul(x, w)
        if dtype == "i8":
            return y if rng.random() < 0.3 else b.multiply(b.astype(y, "f32"), self.tensor((columns,), "f32", "scale"))
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
            y = self.after(y, (*batch, rows, columns), out or dtype)
        return y

    def grouped(self) -> Value:
        """Rows in groups, each with its own columns of the right factor."""
        rng, b = self.rng, self.b
        rows, columns, depth = self.size(_ROWS, "n"), rng.choice(_COLUMNS), rng.choice(_DEPTHS)
        groups, dtype = rng.choice((1, 2, 3, 4, 7, 16)), rng.choice(_FLOATS)
        x = self.laid_out((rows, depth), dtype, "x")
        ends = self.argument(f"ends_{rows}", False, (groups,), rng.choice(("i64", "i32")))
        y = b.grouped_matmul(x, self.factor((depth, groups * columns), dtype), ends)
        for _ in range(rng.choice((0, 0, 1, 2))):
            y = self.after(y, (rows, columns), dtype)
        return y

    def laid_out(self, shape: tuple[int | str, ...], dtype: str, kind: str) -> Value:
        """A tensor of a shape, as it is or with its last two dimensions exchanged in memory."""
        if self.rng.random() < 0.5:
            return self.tensor(shape, dtype, kind)
        axes = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        return self.b.permute_dims(self.tensor((*shape[:-2], shape[-1], shape[-2]), dtype, kind), axes=axes)

    def factor(self, shape: tuple[int | str, ...], dtype: str) -> Value:
        """The right factor: as it is, or of integers or floats of 8 bits with scales."""
        rng, b, depth, columns = self.rng, self.b, shape[-2], shape[-1]
        if len(shape) > 2 or isinstance(columns, str) or dtype not in _FLOATS or rng.random() < 0.5:
            return self.laid_out(shape, dtype, "weight")
        groups = [g for g in (1, 2, 4, 8) if isinstance(depth, int) and depth % g == 0 and depth // g >= 8] or [1]
        stored, group = rng.choice(("i8", "i4", "i4", "f8E4M3FN")), rng.choice(groups)
        q = self.tensor((columns, depth), stored, "weight")
        scale = self.tensor((columns, group), "f32", "scale")
        zero = b.full((), 0, stored) if stored != "f8E4M3FN" else b.constant(np.float32(0))
        wide = b.dequantize(q, scale, zero, out_dtype="f32") if stored == "f8E4M3FN" else b.dequantize(q, scale, zero)
        wide = wide if dtype == "f32" else b.astype(wide, dtype)
        return b.permute_dims(wide, axes=[1, 0])

    def after(self, y: Value, shape: tuple[int | str, ...], dtype: str) -> Value:
        """What is fused with a product, or could be."""
        rng, b = self.rng, self.b
        kind = rng.choice(("bias", "activation", "residual", "gate", "norm", "sum", "cast"))
        if kind == "bias":
            return b.add(y, self.tensor(shape[-1:], dtype, "weight"))
        if kind == "activation":
            return getattr(b, rng.choice(("gelu", "silu", "relu", "tanh", "sigmoid")))(y)
        if kind == "norm":
            return b.softmax(y)
        if kind == "sum":
            return b.add(y, b.sum(y, axis=[-1], keepdims=True))
        if kind == "cast":
            return b.astype(b.multiply(b.astype(y, "f32"), b.constant(np.float32(0.5))), dtype)
        return (b.add if kind == "residual" else b.multiply)(y, self.laid_out(shape, dtype, "x"))

    # -- attention, convolutions -----------------------------------------------------------------------------------------

    def attention(self) -> Value:
        rng, b = self.rng, self.b
        dtype, width = rng.choice(_FLOATS), rng.choice((8, 16, 24, 32, 64, 64, 72, 128))
        groups, shared = rng.choice((1, 2, 3)), rng.choice((1, 1, 2, 4))
        batch, values = self.size((1, 1, 2), "m"), width if rng.random() < 0.8 else rng.choice((16, 40, 64))
        rows = self.size((1, 1, 2, 7, 16, 33, 64, 130), "n")
        keys = rows if rng.random() < 0.5 else self.size((1, 3, 16, 33, 65, 200), "m")
        causal = rng.random() < 0.4 and (rows == keys or (isinstance(rows, int) and isinstance(keys, int) and rows <= keys))
        q = self.heads(batch, groups * shared, rows, width, dtype)
        k, v = (self.heads(batch, groups, keys, n, dtype) for n in (width, values))
        if rng.random() < 0.5:
            return b.attention(q, k, v, causal=causal)
        shape = rng.choice(((keys,), (rows, keys), (batch, 1, 1, keys), (batch, 1, rows, keys)))
        return b.attention(q, k, v, self.tensor(shape, rng.choice(("i1", dtype))), causal=causal)

    def heads(self, batch: int | str, heads: int, rows: int | str, width: int, dtype: str) -> Value:
        """Heads in front of rows, or behind them in memory."""
        if self.rng.random() < 0.5:
            return self.tensor((batch, heads, rows, width), dtype)
        return self.b.permute_dims(self.tensor((batch, rows, heads, width), dtype), axes=[0, 2, 1, 3])

    def convolution(self) -> Value:
        rng, b = self.rng, self.b
        dtype, groups = rng.choice(_FLOATS), rng.choice((1, 1, 1, 2, 4))
        channels, filters = groups * rng.choice((1, 3, 4, 8, 16)), groups * rng.choice((1, 4, 8, 16, 24))
        x, (height, width), layout, moves = self.image(channels, dtype)
        sizes = {"O": filters, "I": channels // groups, "H": height, "W": width}
        kernel = rng.choice(("OIHW", "OIHW", "HWIO"))
        weight = self.tensor(tuple(sizes[name] for name in kernel), dtype, "weight")
        y = b.conv2d(x, weight, groups=groups, data_layout=layout, kernel_layout=kernel, **moves)
        if rng.random() < 0.5:
            y = b.add(y, self.tensor((filters, 1, 1) if layout == "NCHW" else (filters,), dtype, "weight"))
        return b.relu(y) if rng.random() < 0.5 else y

    def pooling(self) -> Value:
        rng, b = self.rng, self.b
        dtype = rng.choice((*_FLOATS, "i8"))
        x, window, layout, moves = self.image(rng.choice((1, 3, 8, 24)), dtype)
        kind = rng.choice(("max_pool2d", "avg_pool2d")) if dtype != "i8" else "max_pool2d"
        return getattr(b, kind)(x, pool_size=window, layout=layout, ceil_mode=rng.random() < 0.3, **moves)

    def image(self, channels: int, dtype: str) -> tuple[Value, tuple[int, int], str, dict[str, list[int]]]:
        """Images, a window that fits into them wherever they are, their layout, and how the window moves."""
        rng, layout = self.rng, self.rng.choice(("NCHW", "NHWC"))
        batch, height, width = self.size((1, 2), "m"), self.size((5, 7, 8, 12), "h"), self.size((5, 8, 14), "w")
        shape = (batch, channels, height, width) if layout == "NCHW" else (batch, height, width, channels)
        square, pad = rng.choice((1, 2, 3, 3, 5)), rng.choice((0, 1, 2))
        window = (square, square) if rng.random() < 0.7 else (rng.choice((1, 2, 3)), rng.choice((1, 3, 5)))
        dilation = [2, rng.choice((1, 2))] if max(window) <= 2 and rng.random() < 0.5 else [1, 1]
        padding = [pad] * 4 if rng.random() < 0.7 else [rng.choice((0, 1, 2)) for _ in range(4)]
        strides = [rng.choice((1, 1, 2))] * 2 if rng.random() < 0.8 else [rng.choice((1, 2, 3)), rng.choice((1, 2))]
        padding = [min(p, n - 1) for p, n in zip(padding, (*window, *window), strict=True)]
        return self.tensor(shape, dtype), window, layout, {"strides": strides, "padding": padding, "dilation": dilation}

    # -- rows, movement --------------------------------------------------------------------------------------------------

    def rows(self) -> Value:
        rng, b = self.rng, self.b
        dtype, rows, width = rng.choice(_FLOATS), self.size(_ROWS, "n"), rng.choice(_WIDTHS)
        x = self.laid_out((rows, width), dtype, "x") if rng.random() < 0.7 else self.tensor((2, rows, width), dtype)
        kind = rng.choice(("softmax", "layer_norm", "rms_norm", "sum", "max", "mean", "argmax", "cumsum", "argsort"))
        axis = rng.choice((-1, -1, -2)) if kind not in ("layer_norm", "rms_norm") else -1
        if kind in ("sum", "max", "mean"):
            keepdims = rng.random() < 0.5
            reduced = getattr(b, kind)(x if kind == "max" else b.multiply(x, x), axis=[axis], keepdims=keepdims)
            return b.subtract(x, reduced) if keepdims else reduced
        if kind == "argsort":
            return b.argsort(x, axis=axis, descending=rng.random() < 0.5)
        if kind in ("softmax", "argmax", "cumsum"):
            return getattr(b, kind)(x, axis=axis)
        gains = [self.tensor((width,), dtype, "weight") for _ in range(2 if kind == "layer_norm" else 1)]
        return getattr(b, kind)(x, *gains, axes=[-1])

    def reduction(self) -> Value:
        """Of any axes and any type, also of many elements to few, whose loops do not merge."""
        rng, b = self.rng, self.b
        dtype = rng.choice((*_FLOATS, "f64", "i8", "ui8", "i32", "i64"))
        shape = (self.size((1, 2, 5), "m"), self.size(_ROWS, "n"), rng.choice((1, 3, 64, 130, 300)))
        axes = rng.sample(range(3), rng.choice((1, 2, 2, 3, 3)))
        x, kind = self.tensor(shape, dtype), rng.choice(("sum", "max", "min"))
        if rng.random() < 0.4:
            x = b.multiply(x, self.tensor(shape[-1:], dtype, "weight"))
        if rng.random() < 0.2:
            x = b.astype(b.greater(x, b.full((), 0, dtype)), "i64")
        return getattr(b, kind)(x, axis=sorted(axes), keepdims=rng.random() < 0.3)

    def moves(self) -> Value:
        rng, b = self.rng, self.b
        dtype, rows, width = rng.choice((*_FLOATS, "i8", "i64")), self.size(_ROWS, "n"), rng.choice(_WIDTHS)
        kind = rng.choice(("transpose", "take", "concat", "copy", "slice"))
        if kind == "transpose":
            axes = rng.sample(range(3), 3)
            return b.permute_dims(self.tensor((rng.choice((1, 2, 5)), rows, width), dtype), axes=axes)
        if kind == "take":
            table = rng.choice((1, 7, 100))
            return b.take(self.tensor((table, width), dtype, "weight"), self.indices((rows,), table), axis=0)
        x = self.tensor((rows, width), dtype)
        if kind == "concat":
            return b.concat([x, self.tensor((self.size(_ROWS, "m"), width), dtype)], axis=0)
        if kind == "copy":
            places = rng.choice((1, 2, 5))
            cache = self.tensor((2, 8, width), dtype)
            return b.index_copy(cache, self.indices((places,), 8), self.tensor((2, places, width), dtype), axis=1)
        return b.strided_slice(x, axes=[1], begin=[rng.randrange(width)], end=[width], strides=[rng.choice((1, 1, 2))])
