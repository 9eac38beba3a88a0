"""Kernels on sizes around the edges of tiles, vectors and blocks: families of functions of three sizes, and sizes for them.

Sizes are taken pairwise, not as a product: of 21 sizes for m, n and k, 441 triples hold every pair of every two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import relaxir as rx
from relaxir.building.value import Value
from relaxir.dialect.dtypes import dtype_name
from relaxir.dialect.symbolic import evaluate

__all__ = ["FAMILIES", "SIZES", "Family", "Function", "check", "module_of", "triples"]

#: One less, equal and one more than vectors and tiles of any target, small primes, and several tiles.
SIZES = (1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257)
#: Keys of attention around its blocks, which are longer than the sizes above.
_KEYS = {63: 383, 64: 384, 65: 385, 128: 512, 129: 513, 257: 769}
_GROUP = 32

Size = int | str
Build = Callable[[rx.Builder, str, str, Size, Size, Size], Value]

#: Relative to the largest value of the result, by its dtype and by the dtype of what is computed from: sums in another order,
#: polynomials, and one rounding to a narrow type.
TOLERANCE = {"f32": 1e-5, "f64": 1e-12, "bf16": 8e-3, "f16": 1e-3}


def triples(first: int = 0, count: int = len(SIZES) ** 2) -> Iterator[tuple[int, int, int]]:
    """Sizes (m, n, k); 21 in a row have every size once in every place, and all 441 every pair of any two."""
    for position in range(first, first + count):
        shift, i = divmod(position, len(SIZES))
        yield SIZES[i], SIZES[(i + 5 * shift + 8) % len(SIZES)], SIZES[(2 * i + 5 * shift + 3) % len(SIZES)]


@dataclass(frozen=True)
class Family:
    """Functions of one kind.

    Attributes:
        name: what they do.
        build: makes the result; given the builder, the function's name for its weights, the dtype and the sizes m, n, k.
        dynamic: the sizes among m, n and k that may be symbols; the others belong to weights.
        dtypes: those to build it for.
        limit: the greatest product of the sizes that is worth the time.
    """

    name: str
    build: Build
    dynamic: str = "mnk"
    dtypes: tuple[str, ...] = ("f32", "bf16", "f32", "f16", "f32", "f64")
    limit: int = 1 << 18


@dataclass(frozen=True)
class Function:
    """A family's function of these sizes; those in ``symbols`` are known when it is called only."""

    family: Family
    dtype: str
    sizes: tuple[int, int, int]
    symbols: str = ""

    @property
    def name(self) -> str:
        places = "_".join(s if s in self.symbols else str(n) for s, n in zip("mnk", self.sizes, strict=True))
        return f"{self.family.name}_{self.dtype}_{places}"


def _packed(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    return b.matmul(b.input("x", (m, k), dtype), b.weight(f"{f}.w", (k, n), dtype))


def _layer(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    x, skip = b.input("x", (m, k), dtype), b.input("skip", (m, n), dtype)
    weight = b.permute_dims(b.weight(f"{f}.w", (n, k), dtype), axes=[1, 0])
    return b.add(b.gelu(b.add(b.matmul(x, weight), b.weight(f"{f}.bias", (n,), dtype))), skip)


def _row(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    return b.matmul(b.input("x", (k,), dtype), b.weight(f"{f}.w", (k, n), dtype))


def _inputs(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    return b.matmul(b.input("x", (m, k), dtype), b.input("y", (k, n), dtype))


def _batched(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    y = b.permute_dims(b.input("y", (3, n, k), dtype), axes=[0, 2, 1])
    return b.matmul(b.input("x", (2, 1, m, k), dtype), y)


def _integers(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    return b.matmul(b.input("x", (m, k), dtype), b.weight(f"{f}.w", (k, n), dtype), out_dtype="i32")


def _int8(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    x, q, zero = b.input("x", (m, k), dtype), b.weight(f"{f}.q", (n, k), "i8"), b.weight(f"{f}.zero", (n,), "i8")
    wide = b.dequantize(q, b.weight(f"{f}.scale", (n,), dtype), zero, axis=0)
    return b.matmul(x, b.permute_dims(wide, axes=[1, 0]))


def _int4(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    assert isinstance(k, int)
    groups = -(-k // _GROUP)
    x = b.input("x", (m, groups * _GROUP), dtype)
    q, zero = b.weight(f"{f}.q", (groups * _GROUP, n), "i4"), b.weight(f"{f}.zero", (groups, n), "i4")
    wide = b.dequantize(q, b.weight(f"{f}.scale", (groups, n), dtype), zero, axis=0)
    return b.matmul(x, wide)


def _convolution(layout: str) -> Build:
    def build(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
        assert isinstance(k, int)
        outputs, inputs = min(k, 65), k % 4 + 1
        shape = (1, m, n, inputs) if layout == "NHWC" else (1, inputs, m, n)
        x, weight = b.input("x", shape, dtype), b.weight(f"{f}.w", (outputs, inputs, 3, 3), dtype)
        return b.relu(b.conv2d(x, weight, padding=[1, 1, 1, 1], strides=[1, 1 + k % 2], data_layout=layout))

    return build


def _attention(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    keys = _KEYS.get(n, n) if isinstance(n, int) else n
    q = b.input("q", (4, m, k), dtype)
    key, value = b.input("k", (2, keys, k), dtype), b.input("v", (2, keys, 9), dtype)
    return b.attention(q, key, value, causal=m != n)


def _softmax(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    return b.softmax(b.input("x", (m, n), dtype), axis=-1)


def _norms(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    x = b.input("x", (m, n), dtype)
    weights = [b.weight(f"{f}.{name}", (n,), dtype) for name in ("scale", "bias", "scale2")]
    return b.rms_norm(b.layer_norm(x, *weights[:2], axes=[-1], epsilon=1e-5), weights[2], axes=[-1], epsilon=1e-6)


def _elementwise(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    x, y = b.input("x", (m, 1, n), dtype), b.input("y", (k, 1), dtype)
    return b.maximum(b.multiply(b.silu(x), y), b.tanh(x))


def _reduction(axes: list[int]) -> Build:
    def build(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
        return b.sum(b.square(b.input("x", (m, n, k), dtype)), axis=axes)

    return build


def _search(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    return b.argmax(b.input("x", (m, n, k), dtype), axis=1)


def _gather(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    index = b.input("index", (m,), "i64")
    return b.take(b.weight(f"{f}.table", (n, k), dtype), index, axis=0)


def _turn(b: rx.Builder, f: str, dtype: str, m: Size, n: Size, k: Size) -> Value:
    return b.permute_dims(b.input("x", (m, n, k), dtype), axes=[2, 0, 1])


_NARROW = ("f32", "bf16", "f16")
FAMILIES = (
    Family("packed", _packed, "m", ("bf16", "f32", "bf16", "f16", "f32", "f64"), 1 << 22),
    Family("layer", _layer, "m", limit=1 << 22),
    Family("row", _row, "", limit=1 << 24),
    Family("inputs", _inputs, limit=1 << 22),
    Family("batched", _batched, limit=1 << 20),
    Family("integers", _integers, "m", ("i8", "i32"), 1 << 22),
    Family("int8", _int8, "m", _NARROW, 1 << 22),
    Family("int4", _int4, "m", _NARROW, 1 << 22),
    Family("nchw", _convolution("NCHW"), "m", limit=1 << 17),
    Family("nhwc", _convolution("NHWC"), "m", limit=1 << 17),
    Family("attention", _attention, "mn", limit=1 << 20),
    Family("softmax", _softmax, "mn", limit=1 << 22),
    Family("norms", _norms, "m", limit=1 << 22),
    Family("elementwise", _elementwise),
    Family("rows", _reduction([2])),
    Family("columns", _reduction([0])),
    Family("ends", _reduction([0, 2])),
    Family("search", _search),
    Family("gather", _gather, "m", ("f32", "bf16", "i8"), 1 << 22),
    Family("turn", _turn, dtypes=("f32", "i8", "f64", "f16")),
)


def module_of(functions: list[Function]) -> rx.Module:
    """A module with one function each."""
    builder = rx.Builder()
    for function in functions:
        m, n, k = (s if s in function.symbols else v for s, v in zip("mnk", function.sizes, strict=True))
        with builder.function(function.name):
            builder.output(function.family.build(builder, function.name, function.dtype, m, n, k))
    return builder.build()


def check(
    module: rx.Module, executable: rx.Executable, functions: list[Function], dynamic: list[tuple[int, int, int]]
) -> list[str]:
    """What differs from the reference semantics; functions with symbols are called with each of the ``dynamic`` sizes."""
    rng = np.random.default_rng(0)
    raw = {s.name: _values(rng, s.name, s.array.dtype, s.array.shape) for s in executable.manifest.raw_weights.values()}
    if raw:
        executable.bind(executable.prepare(raw))
    failures: list[str] = []
    for function in functions:
        own = {name: a for name, a in raw.items() if name.startswith(f"{function.name}.")}
        entry = executable.entries[function.name]
        for sizes in _calls(function, dynamic):
            values = dict(zip("mnk", sizes, strict=True))
            inputs = [
                _values(rng, s.name, s.dtype, tuple(evaluate(d, values) for d in s.shape), values["n"]) for s in entry.inputs
            ]
            (want,) = rx.evaluate(module, function.name, *inputs, weights=own)
            problem = _difference(want, executable(*inputs, entry=function.name), function.dtype)
            failures += [f"{function.name} of {sizes}: {problem}"] if problem else []
    return failures


def _calls(function: Function, dynamic: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    if not function.symbols:
        return [function.sizes]
    fixed = [(i, n) for i, (s, n) in enumerate(zip("mnk", function.sizes, strict=True)) if s not in function.symbols]
    found = {tuple(dict(fixed).get(i, v) for i, v in enumerate(sizes)) for sizes in [*dynamic, function.sizes]}
    return sorted(s for s in found if np.prod(s) <= function.family.limit)  # type: ignore[misc]


def _values(rng: np.random.Generator, name: str, dtype: np.dtype, shape: tuple[int, ...], rows: int = 1) -> np.ndarray:
    """Normal numbers, integers of the whole range, positive scales, and valid indices."""
    last = name.rpartition(".")[2]
    if last == "index":
        return rng.integers(-rows, rows, shape)
    if dtype_name(dtype) in ("i4", "i8", "i32"):
        edge = 8 if dtype_name(dtype) == "i4" else 128
        return rng.integers(-edge, edge, shape).astype(dtype)
    values = rng.uniform(0.5, 1, shape) if last.startswith("scale") else rng.standard_normal(shape)
    return values.astype(dtype)


def _difference(want: np.ndarray, got: np.ndarray, dtype: str) -> str | None:
    """What is wrong with a result, None when nothing is."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"expected {want.dtype}{want.shape}, got {got.dtype}{got.shape}"
    if dtype_name(want.dtype) not in TOLERANCE:
        return None if np.array_equal(want, got) else f"{int((want != got).sum())} of {want.size} elements differ"
    a, b = want.astype(np.float64), got.astype(np.float64)
    if not np.isfinite(b).all():
        return f"{int((~np.isfinite(b)).sum())} of {want.size} elements are no numbers"
    worst = float(np.abs(a - b).max(initial=0.0)) / max(1.0, float(np.abs(a).max(initial=0.0)))
    return f"off by {worst:.1e}" if worst > TOLERANCE[dtype_name(want.dtype)] else None
