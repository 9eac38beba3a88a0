"""Random ops for modules of shapes: elementwise, reductions, products of one row or of none, and what they start from.

Each step takes some of the values there are and returns what it makes; nothing where no value fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from relaxir.dialect.struct_info import TensorInfo
from relaxir.dialect.symbolic import Dim
from support.shape_values import DTYPES, ROUNDS, Emitter, Made, Sizes, dtype_of, is_float

__all__ = ["STEPS", "Step", "broadcast_partner", "exact", "one"]

Step = Callable[[Emitter, Sequence[Made]], list[Made]]

#: Sizes that constants have, and ranges are divided by: empty, one, around the widths of vectors.
SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 64, 65)
_SMOOTH = {"Tanh": 1.0, "Sigmoid": 1.0, "Sin": 1.0, "Cos": 1.0, "Erf": 1.0, "Exp": 60.0, "Gelu": 4.0, "Silu": 4.0}
#: How much larger an error of an operand, of at most 4, may get by those.
_STEEP = 60


def exact(values: Sequence[Made]) -> list[Made]:
    """Those whose elements are what they should be, to the last bit."""
    return [v for v in values if not v.error]


def one(em: Emitter, values: Sequence[Made], *dtypes: str, rank: int = 0) -> Made | None:
    """One of the values, of some dtypes (any, if none are given) and a least rank; later ones more often."""
    found = [v for v in values if v.rank >= rank and (not dtypes or v.dtype in dtypes)]
    if not found:
        return None
    return em.rng.choice(found[-4:] if em.rng.random() < 0.6 else found)


def _numbers(values: Sequence[Made]) -> list[Made]:
    return [v for v in values if v.dtype != "i1"]


def _axis(em: Emitter, made: Made) -> int:
    """An axis, the last one more often, sometimes counted from the end."""
    axis = made.rank - 1 if em.rng.random() < 0.4 else em.rng.randrange(made.rank)
    return axis - made.rank if em.rng.random() < 0.2 else axis


# -- elementwise ---------------------------------------------------------------------------------------------------------


def _unary(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, _numbers(values))
    if x is None:
        return []
    kind = em.rng.choice(("Negative", "Abs", "Sign", "Clip", "Relu", "Square", "StopLiftParams"))
    if kind == "Sign":
        return [] if x.error else em.op(kind, [x], 1)
    if kind == "Clip":
        low = 0 if x.dtype.startswith("u") else -2
        return em.op(kind, [x], min(x.bound, 5), x.error, min=low, max=5)
    if kind == "Square":
        return em.op(kind, [x], x.bound**2, 2 * x.bound * x.error + (em.rounding(x, x.bound**2) if x.error else 0))
    wraps = x.dtype.startswith("u") and kind == "Negative"
    return em.op(kind, [x], 255 if wraps else x.bound, x.error)


def _smooth(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, [v for v in values if v.bound <= 4 and is_float(v)])
    if x is None:
        return []
    kind = em.rng.choice(tuple(_SMOOTH))
    return em.op(kind, [x], _SMOOTH[kind], _STEEP * x.error + em.rounding(x, _SMOOTH[kind]))


def broadcast_partner(em: Emitter, x: Made, values: Sequence[Made]) -> Made | None:
    """Something that broadcasts with a value: another one, or a new one of the same, of ones, or of fewer dimensions."""
    fitting = [v for v in values if v.dtype == x.dtype and all(_broadcast(a, b) for a, b in zip(v.sizes, x.sizes, strict=True))]
    if fitting and em.rng.random() < 0.7:
        return em.rng.choice(fitting)
    first = em.rng.randrange(x.rank + 1)
    ones = [em.rng.random() < 0.3 for _ in range(x.rank)]
    if None in x.info.shape:
        ones = [o or d is None for o, d in zip(ones, x.info.shape, strict=True)]
    shape = [1 if o else d for o, d in zip(ones, x.info.shape, strict=True)][first:]
    sizes = tuple(tuple(1 if o else n for o, n in zip(ones, s, strict=True))[first:] for s in x.sizes)
    return em.full(shape, sizes, x.dtype, em.rng.randrange(2 if x.dtype == "i1" else 4))


def _broadcast(a: Sequence[int], b: Sequence[int]) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1], strict=False))


def _binary(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, _numbers(values))
    y = None if x is None else broadcast_partner(em, x, values)
    if x is None or y is None:
        return []
    if em.rng.random() < 0.5:
        x, y = y, x
    kind = em.rng.choice(("Add", "Subtract", "Maximum", "Minimum", "Multiply"))
    bound, error = {
        "Multiply": (x.bound * y.bound, x.bound * y.error + y.bound * x.error),
        "Maximum": (max(x.bound, y.bound), max(x.error, y.error)),
        "Minimum": (max(x.bound, y.bound), max(x.error, y.error)),
    }.get(kind, (x.bound + y.bound, x.error + y.error))
    if x.dtype == "ui8" and kind == "Subtract":
        bound = 255
    return em.op(kind, [x, y], bound, error + (em.rounding(x, bound) if error else 0))


def _compare(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, exact(values))
    y = None if x is None else broadcast_partner(em, x, exact(values))
    if x is None or y is None:
        return []
    return em.op(em.rng.choice(("Equal", "Less", "GreaterEqual", "LogicalAnd", "LogicalXor")), [x, y], 1)


def _where(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, values)
    y = None if x is None else broadcast_partner(em, x, values)
    if x is None or y is None:
        return []
    conditions = [v for v in values if v.dtype == "i1" and all(_broadcast(a, b) for a, b in zip(v.sizes, x.sizes, strict=True))]
    if not conditions:
        conditions = em.op("Less", [x, y], 1) if not x.error and not y.error else []
    if not conditions:
        return []
    return em.op("Where", [em.rng.choice(conditions), x, y], max(x.bound, y.bound), max(x.error, y.error))


def _astype(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, values)
    if x is None:
        return []
    fitting = [d for d, most in DTYPES.items() if d != x.dtype and x.bound <= most]
    if x.error:
        fitting = [d for d in ("f32", "f64", "f16", "bf16") if d in fitting]
    if any(v.dtype.startswith(("f", "bf")) for v in [x]) or x.dtype != "ui8":
        fitting = [d for d in fitting if d != "ui8"]  # of a negative number nobody says what that is
    if not fitting:
        return []
    dtype = em.rng.choice(fitting)
    made = em.op("AsType", [x], 1 if dtype == "i1" else x.bound, x.error, dtype=dtype_of(dtype))
    return [replace(m, error=m.error + (em.rounding(m, m.bound) if m.error else 0)) for m in made]


# -- reductions ----------------------------------------------------------------------------------------------------------


def _reduce(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, _numbers(values))
    if x is None:
        return []
    axes = None if em.rng.random() < 0.2 else [a for a in range(x.rank) if em.rng.random() < 0.6]
    count = max(math.prod(s) for s in x.sizes)
    kind = em.rng.choice(("Sum", "Sum", "Max", "Min", "Mean", "Prod"))
    attrs = {"axis": axes, "keepdims": em.rng.random() < 0.5}
    reduced = range(x.rank) if axes is None else axes
    empty = any(0 in [s[a] for a in reduced] for s in x.sizes)
    if kind in ("Max", "Min", "Mean") and empty and (is_float(x) or x.dtype != "i8"):
        kind = "Sum"  # infinities, NaN, and the least integer make all that follows alike
    if kind == "Prod" and x.bound > 1:
        kind = "Sum"
    if kind == "Sum":
        return em.op(kind, [x], count * x.bound, count * (x.error + (em.rounding(x, x.bound) if x.error else 0)), **attrs)
    if kind == "Mean":
        return em.op(kind, [x], x.bound, x.error + em.rounding(x, x.bound), **attrs)
    bound = 128 if empty else x.bound
    return em.op(kind, [x], bound, x.error * (count if kind == "Prod" else 1), **attrs)


def _argument(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, exact(values), rank=1)
    if x is None:
        return []
    made = em.op(em.rng.choice(("ArgMax", "ArgMin")), [x], 64, axis=_axis(em, x), keepdims=em.rng.random() < 0.5)
    return [replace(m, bound=max(1, *(max(s, default=1) for s in x.sizes))) for m in made]


def _running_sum(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, _numbers(exact(values)), rank=1)
    if x is None:
        return []
    count = max(max(s, default=1) for s in x.sizes)
    return em.op("CumSum", [x], count * x.bound, axis=_axis(em, x), exclusive=em.rng.random() < 0.5)


def _softmax(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, [v for v in values if is_float(v) and v.bound <= 64], rank=1)
    if x is None:
        return []
    kind = em.rng.choice(("Softmax", "LogSoftmax"))
    bound = 1 if kind == "Softmax" else 2 * x.bound + 8
    return em.op(kind, [x], bound, 2 * x.error + em.rounding(x, bound), axis=_axis(em, x))


def _norm(em: Emitter, values: Sequence[Made]) -> list[Made]:
    """Of integers only: of elements that are nearly equal a norm makes much of how little they differ."""
    x = one(em, [v for v in exact(values) if v.dtype in ("f32", "f64", "bf16") and v.bound <= 64], rank=1)
    if x is None:
        return []
    axes = sorted(em.rng.sample(range(x.rank), em.rng.choice((1, 1, min(2, x.rank)))))
    shape = [x.info.shape[a] for a in axes]
    if None in shape:
        return []
    sizes = tuple(tuple(s[a] for a in axes) for s in x.sizes)
    scale, shift = (em.full(shape, sizes, x.dtype, n) for n in (2, 1))
    count = max(1, *(math.prod(s) for s in sizes))
    bound = 2 * count**0.5 + 1
    if scale is None or shift is None:
        return []
    if em.rng.random() < 0.5:
        return em.op("RMSNorm", [x, scale], bound, 4 * em.rounding(x, bound), axes=axes)
    return em.op("LayerNorm", [x, scale, shift], bound, 64 * em.rounding(x, bound), axes=axes)


# -- products ------------------------------------------------------------------------------------------------------------


def _product(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, [v for v in values if v.dtype in ("f32", "f32", "f64", "bf16", "i32") and v.bound <= 64], rank=1)
    if x is None or x.info.shape[-1] is None:
        return []
    y = _right_factor(em, x, values)
    if y is None:
        return []
    turned = em.rng.random() < 0.3 and x.rank == y.rank == 2
    if turned:
        x, y = (em.single("PermuteDims", [v], v.bound, v.error, axes=[1, 0]) for v in (y, x))
    depth = max(1, *(s[-1] for s in x.sizes))
    bound = depth * x.bound * y.bound
    error = depth * (x.bound * y.error + y.bound * x.error)
    if bound > DTYPES[x.dtype] and x.dtype == "bf16":
        return []
    return em.op("MatMul", [x, y], bound, error + (em.rounding(x, bound) * depth if error else 0))


def _right_factor(em: Emitter, x: Made, values: Sequence[Made]) -> Made | None:
    """A matrix with as many rows as a value has columns: one there is, or of one number, or of constants."""
    rows, sizes = x.info.shape[-1], [s[-1] for s in x.sizes]
    fitting = [v for v in values if v.dtype == x.dtype and v.rank >= 1 and v.bound <= 64
               and all(s[-2 if v.rank > 1 else 0] == n for s, n in zip(v.sizes, sizes, strict=True))]  # fmt: skip
    if fitting and em.rng.random() < 0.7:
        return em.rng.choice(fitting)
    columns: list[tuple[Dim, tuple[int, ...]]] = [(n, (n,) * ROUNDS) for n in (1, 1, 0, 3, em.rng.choice(SIZES))]
    dim, counts = em.rng.choice([*columns, *em.dims()])
    if isinstance(rows, int) and isinstance(dim, int) and rows * dim < 600 and em.rng.random() < 0.5:
        return em.constant([rows, dim], x.dtype)
    return em.full([rows, dim], tuple(zip(sizes, counts, strict=True)), x.dtype, em.rng.randrange(4))


def _dequantized(em: Emitter, values: Sequence[Made]) -> list[Made]:
    """A weight of bytes, widened by groups or channels, and perhaps in a product."""
    w = one(em, values, "i8", rank=1)
    if w is None or w.error:
        return []
    axis = em.rng.randrange(w.rank)
    size = w.info.shape[axis]
    shape: list[Dim] = [] if size is None or em.rng.random() < 0.4 else [size]
    sizes: Sizes = tuple((s[axis],) if shape else () for s in w.sizes)
    scale, zero = em.full(shape, sizes, "f32", 2), em.full(shape, sizes, "i8", 1)
    if scale is None or zero is None:
        return []
    made = em.op("Dequantize", [w, scale, zero], 2 * (w.bound + 1), axis=axis)
    return [*made, *(p for m in made for p in _product(em, [*values[-3:], m]))]


def _attention(em: Emitter, values: Sequence[Made]) -> list[Made]:
    q = one(em, [v for v in values if v.dtype == "f32" and v.bound <= 8], rank=3)
    if q is None or None in q.info.shape:
        return []
    fitting = [v for v in values if v.known() == q.known() and v.bound <= 64]
    k, v = em.rng.choice(fitting), em.rng.choice(fitting)
    if any(0 in s for s in q.sizes) or k.bound > 8:
        return []  # of no keys at all the result is not a number
    error = 64 * (q.error * k.bound + k.error * q.bound) * v.bound + v.error + em.rounding(q, 64)
    return em.op("Attention", [q, k, v], v.bound, error, causal=em.rng.random() < 0.4)


def _windows(em: Emitter, values: Sequence[Made]) -> list[Made]:
    """A pool or a convolution of a matrix as an image of one channel."""
    x = one(em, [v for v in values if v.dtype == "f32" and v.rank == 2 and v.bound <= 64])
    if x is None:
        return []
    image = em.single("ExpandDims", [x], x.bound, x.error, axis=[0, 1])
    size = [em.rng.choice((1, 2, 3)) for _ in range(2)]
    attrs = {"strides": [em.rng.choice((1, 1, 2)) for _ in range(2)], "padding": [em.rng.choice((0, 0, 1)) for _ in range(4)]}
    if em.rng.random() < 0.5:
        weight = em.constant([em.rng.choice((1, 2, 5)), 1, *size], "f32")
        return em.op("Conv2D", [image, weight], 27 * x.bound, 27 * x.error + em.rounding(x, 27 * x.bound), **attrs)
    if any(p >= s for p, s in zip(attrs["padding"], size * 2, strict=True)):
        attrs["padding"] = [0] * 4
    kind = em.rng.choice(("MaxPool2D", "AvgPool2D"))
    return em.op(kind, [image], x.bound, x.error + em.rounding(x, x.bound), pool_size=size, **attrs)


def _create(em: Emitter, values: Sequence[Made]) -> list[Made]:
    dtype = em.rng.choice(("f32", "f32", "f32", "i32", "i64", "i8", "bf16", "f64", "i1", "ui8"))
    if em.rng.random() < 0.4:
        shape = [em.rng.choice(SIZES) for _ in range(em.rng.randrange(4))]
        return [em.constant(shape, dtype)] if math.prod(shape) < 400 else []
    dims = [em.rng.choice([*em.dims(), *((n, (n,) * ROUNDS) for n in SIZES[:8])]) for _ in range(em.rng.randrange(4))]
    if em.rng.random() < 0.3 and dtype in ("f32", "i32", "i64", "f64"):
        end, sizes = em.rng.choice([*em.dims(), (7, (7,) * ROUNDS), (0, (0,) * ROUNDS)])
        info = TensorInfo((end,), dtype_of(dtype))
        return em.op("Arange", [], 64, types=[(info, tuple((n,) for n in sizes))], start=[0], end=[end], step=[1])
    sizes = tuple(tuple(d[1][r] for d in dims) for r in range(ROUNDS))
    made = em.full([d[0] for d in dims], sizes, dtype, em.rng.randrange(2 if dtype == "i1" else 4))
    return [] if made is None else [made]


def _shape_value(em: Emitter, values: Sequence[Made]) -> list[Made]:
    if not em.dims():
        return []
    dim, sizes = em.rng.choice(em.dims())
    info = TensorInfo((), dtype_of(em.rng.choice(("f32", "i64"))))
    return em.op("ShapeValue", [], max(sizes), types=[(info, ((),) * ROUNDS)], value=[dim])


def _cast_match(em: Emitter, values: Sequence[Made]) -> list[Made]:
    """To unknown dimensions, to symbols that are new, or to those that are known."""
    x = one(em, values)
    if x is None:
        return []
    shape: list[Dim] = []
    for axis, dim in enumerate(x.info.shape):
        sizes = tuple(s[axis] for s in x.sizes)
        kind = em.rng.randrange(4)
        same = [d for d, known in em.dims() if known == sizes]
        if kind == 0:
            shape.append(None)
        elif kind == 1:
            shape.append(em.fresh_symbol(sizes) if not isinstance(dim, int) else dim)
        elif kind == 2 and same:
            shape.append(em.rng.choice(same))
        else:
            shape.append(sizes[0] if len(set(sizes)) == 1 and em.rng.random() < 0.5 else dim)
    # A dimension that was constant stays so, or the type would contradict it nowhere.
    return [em.cast(x, x.info.with_(shape=shape))]


STEPS: tuple[tuple[Step, int], ...] = (
    (_unary, 4), (_smooth, 3), (_binary, 8), (_compare, 2), (_where, 2), (_astype, 3), (_reduce, 4), (_argument, 1),
    (_running_sum, 1), (_softmax, 2), (_norm, 2), (_product, 7), (_dequantized, 2), (_attention, 1), (_windows, 1),
    (_create, 3), (_shape_value, 1), (_cast_match, 3),
)  # fmt: skip
