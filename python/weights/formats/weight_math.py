"""Weight math: relax ops on a file's own tensors, as a small graph that NumPy evaluates and a compiler can emit.

A format says once how its tensors make a weight. What an op means is what the dialect's reference semantics say, so a weight
that is decoded here and one that compiled code decodes are the same, bit for bit. Imports no MLIR.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from ...dialect.dtypes import dtype_name, numpy_dtype
from ...dialect.errors import RelaxError
from ...dialect.reference.registry import reference_of
from ..arrays import Array, ArraySpec

__all__ = [
    "DTYPES", "MathValue", "argument", "arguments_of", "concat", "constant", "digest_of", "evaluate", "is_integer",
]  # fmt: skip

#: Attributes that are dtypes, by name here.
DTYPES = ("dtype", "out_dtype")


@dataclass(frozen=True, eq=False)
class MathValue:
    """The result of an op on other values.

    Attributes:
        op: the op's name without ``relax.``; empty for a tensor of the file.
        operands, attrs: what the op takes.
        spec: dtype and shape.
        name: of a tensor of the file, what the format calls it.
    """

    op: str
    operands: tuple[MathValue, ...]
    spec: ArraySpec
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    name: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.spec.dtype

    def astype(self, dtype: str) -> MathValue:
        wanted = numpy_dtype(dtype)
        return self if wanted == self.dtype else self._make("astype", self.shape, {"dtype": dtype}, wanted)

    def bitcast(self, dtype: str) -> MathValue:
        """The bits as another dtype of as many."""
        return self._make("bitcast", self.shape, {"dtype": dtype}, numpy_dtype(dtype))

    def reshape(self, *shape: int) -> MathValue:
        if prod(shape) != prod(self.shape):
            raise RelaxError(f"expected as many elements as {list(self.shape)}, got {list(shape)}")
        return self if shape == self.shape else self._make("reshape", shape, {})

    def permute(self, *axes: int) -> MathValue:
        return self._make("permute_dims", tuple(self.shape[a] for a in axes), {"axes": list(axes)})

    def take(self, indices: MathValue, axis: int) -> MathValue:
        shape = (*self.shape[:axis], *indices.shape, *self.shape[axis + 1 :])
        return MathValue("take", (self, indices), ArraySpec(self.dtype, shape), {"axis": axis})

    def part(self, axis: int, begin: int, end: int) -> MathValue:
        """The elements from ``begin`` to before ``end`` along an axis."""
        shape = _replaced(self.shape, axis, end - begin)
        return (
            self
            if shape == self.shape
            else self._make("strided_slice", shape, {"axes": [axis], "begin": [begin], "end": [end]})
        )

    def repeat(self, count: int, axis: int) -> MathValue:
        shape = _replaced(self.shape, axis, self.shape[axis] * count)
        return self if count == 1 else self._make("repeat", shape, {"repeats": count, "axis": axis})

    def unpack_nibbles(self, axis: int, size: int) -> MathValue:
        """Unsigned integers of four bits out of words, the lowest bits first."""
        shape = _replaced(self.shape, axis, size)
        return self._make("unpack_nibbles", shape, {"axis": axis, "dtype": "ui4", "size": size}, numpy_dtype("ui4"))

    def bytes_of_words(self, axis: int, size: int) -> MathValue:
        """Bytes out of words of 32 bits along an axis, the lowest first; as many as ``size``."""
        shifts = constant(np.array([0, 8, 16, 24], self.dtype).reshape([4] + [1] * (len(self.shape) - 1 - axis)))
        outer, inner = self.shape[: axis + 1], self.shape[axis + 1 :]
        spread = (self.reshape(*outer, 1, *inner) >> shifts).astype("ui8")
        return spread.reshape(*outer[:-1], outer[-1] * 4, *inner).part(axis, 0, size)

    def dequantize(self, scale: MathValue, zero: MathValue, dtype: str | None = None) -> MathValue:
        """``(x - zero) * scale`` per block, exact but for one rounding to the scale's dtype or the one that is named.

        A zero point of floats is subtracted behind the scale, as a further rounding.
        """
        attrs = {"axis": -1} | ({} if dtype is None else {"out_dtype": dtype})
        result = scale.dtype if dtype is None else numpy_dtype(dtype)
        return MathValue("dequantize", (self, scale, zero), ArraySpec(result, self.shape), attrs)

    def scaled(self, scale: MathValue, dtype: str | None = None) -> MathValue:
        """``x * scale`` per block."""
        return self.dequantize(scale, constant(np.zeros((), self.dtype if is_integer(self.dtype) else np.float32)), dtype)

    def look_up(self, table: MathValue) -> MathValue:
        """The entry of a table for each code."""
        return MathValue("look_up", (self, table), ArraySpec(table.dtype, self.shape))

    def __add__(self, other: MathValue | float) -> MathValue:
        return self._with("add", other)

    def __sub__(self, other: MathValue | float) -> MathValue:
        return self._with("subtract", other)

    def __mul__(self, other: MathValue | float) -> MathValue:
        return self._with("multiply", other)

    def __and__(self, other: MathValue | float) -> MathValue:
        return self._with("bitwise_and", other)

    def __or__(self, other: MathValue | float) -> MathValue:
        return self._with("bitwise_or", other)

    def __rshift__(self, other: MathValue | float) -> MathValue:
        return self._with("right_shift", other)

    def __lshift__(self, other: MathValue | float) -> MathValue:
        return self._with("left_shift", other)

    def _with(self, op: str, other: MathValue | float) -> MathValue:
        right = other if isinstance(other, MathValue) else constant(np.array(other, self.dtype))
        return MathValue(op, (self, right), ArraySpec(self.dtype, np.broadcast_shapes(self.shape, right.shape)))

    def _make(self, op: str, shape: tuple[int, ...], attrs: dict[str, Any], dtype: np.dtype[Any] | None = None) -> MathValue:
        return MathValue(op, (self,), ArraySpec(self.dtype if dtype is None else dtype, shape), attrs)


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is an integer, four-bit ones included."""
    return "i" in dtype_name(dtype)


def _replaced(shape: Sequence[int], axis: int, size: int) -> tuple[int, ...]:
    return tuple(size if i == axis else d for i, d in enumerate(shape))


def argument(name: str, spec: ArraySpec) -> MathValue:
    """A tensor of the file."""
    return MathValue("", (), spec, name=name)


def concat(left: MathValue, right: MathValue, axis: int) -> MathValue:
    """One after the other along an axis."""
    shape = _replaced(left.shape, axis, left.shape[axis] + right.shape[axis])
    return MathValue("concat", (left, right), ArraySpec(left.dtype, shape), {"axis": axis})


def constant(array: Array) -> MathValue:
    """A small table."""
    return MathValue("constant", (), ArraySpec.of(array), {"value": array})


def digest_of(*values: MathValue) -> str:
    """Tells one computation from another: ops, attributes, tables and the tensors of the file."""
    numbers: dict[int, int] = {}
    digest = hashlib.sha256()

    def visit(v: MathValue) -> int:
        if id(v) not in numbers:
            operands = [visit(o) for o in v.operands]
            attrs = {k: a.tobytes().hex() if isinstance(a, np.ndarray) else a for k, a in v.attrs.items()}
            digest.update(repr((v.op, operands, str(v.spec), attrs, v.name)).encode())
            numbers[id(v)] = len(numbers)
        return numbers[id(v)]

    digest.update(repr([visit(v) for v in values]).encode())
    return digest.hexdigest()


def arguments_of(value: MathValue) -> list[MathValue]:
    """The tensors of the file that a value is computed from, each once."""
    found: dict[int, MathValue] = {}
    pending = [value]
    while pending:
        v = pending.pop()
        if id(v) not in found:
            found[id(v)] = v
            pending += v.operands
    return [v for v in found.values() if not v.op]


def evaluate(value: MathValue, tensors: Mapping[str, Array]) -> Array:
    """What a value is, of a file's tensors by the format's names for them."""
    found: dict[int, Array] = {}
    uses = _uses(value)

    def visit(v: MathValue) -> Array:
        key = id(v)
        if key not in found:
            found[key] = tensors[v.name] if not v.op else _apply(v, [visit(o) for o in v.operands])
        result = found[key]
        uses[key] -= 1
        if not uses[key]:  # nothing else reads it: memory is that of what is still to be read
            del found[key]
        return result

    return visit(value)


def _uses(value: MathValue) -> dict[int, int]:
    counts: dict[int, int] = {}

    def count(v: MathValue) -> None:
        counts[id(v)] = counts.get(id(v), 0) + 1
        if counts[id(v)] == 1:
            for operand in v.operands:
                count(operand)

    count(value)
    return counts


def _apply(value: MathValue, operands: list[Array]) -> Array:
    meaning = reference_of(value.op)
    keywords = {k: numpy_dtype(v) if k in DTYPES else v for k, v in value.attrs.items()}
    keywords |= {"shape": value.shape} if meaning.wants_shape else {}
    keywords |= {"dtype": value.dtype} if meaning.wants_dtype else {}
    keywords |= {"strides": None} if value.op == "strided_slice" else {}
    function: Callable[..., Array] = meaning.function
    return function(*operands, **keywords)
