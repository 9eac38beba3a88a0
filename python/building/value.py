"""A tensor while a module is being built: its shape and dtype, and Python's operators as relax ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.struct_info import TensorInfo
from ..dialect.symbolic import Dim, Expr

__all__ = ["Number", "Value", "ValueLike"]

Number: TypeAlias = bool | int | float


class ValueScope(Protocol):
    """The function that a value belongs to."""

    name: str
    discarded: bool

    @property
    def current(self) -> ir.Block: ...


class Operators(Protocol):
    """What builds the ops of Python's operators: a :class:`relaxir.Builder`, which has a method for each."""

    def error(self, message: str) -> RelaxError: ...

    def like(self, other: ValueLike, value: Value) -> ValueLike: ...

    def __getattr__(self, name: str) -> Callable[..., Value]: ...


class Value:
    """A tensor of a function that a :class:`relaxir.Builder` is building.

    Operators build ops; a Python number or a NumPy array on one side takes the other side's dtype. Comparisons build ops too,
    so a value has no truth of its own and two values are the same only by ``is``. Subscripts are NumPy's basic ones, and one
    tensor or array of integers; what they say of a dimension whose size is a symbol is checked when the code runs.

    Attributes:
        shape: one dimension each: an int, a symbolic expression (which calculates with integers), or None when unknown.
        dtype: MLIR name of the element type, e.g. ``"f32"``.
        block: where it is computed: in the function, or in a branch or loop, outside of which it cannot be used.
    """

    __slots__ = ("_builder", "_function", "_value", "block", "dtype", "shape")
    #: NumPy leaves operators with an array in front to the methods below.
    __array_ufunc__ = None

    def __init__(self, builder: Operators, function: ValueScope, value: ir.Value, block: ir.Block | None = None):
        info = TensorInfo.of(value)
        self._builder = builder
        self._function = function
        self._value = value
        self.block = block or function.current
        self.shape: tuple[Dim, ...] = info.shape
        self.dtype = str(info.dtype)

    @property
    def function(self) -> ValueScope:
        """The function it belongs to."""
        return self._function

    @property
    def ir(self) -> ir.Value:
        """The MLIR value. Raises RelaxError when its function was given up because of an error."""
        if self._function.discarded:
            raise RelaxError(f"expected a value of a function, got one of @{self._function.name}, which an error ended")
        return self._value

    def __repr__(self) -> str:
        return f"<relaxir.Value: {self.dtype}[{', '.join('?' if d is None else str(d) for d in self.shape)}]>"

    __hash__ = object.__hash__

    @property
    def T(self) -> Value:  # noqa: N802  as in NumPy
        """The tensor with its dimensions in reverse order."""
        return self._builder.permute_dims(self)

    def reshape(self, *shape: int | str | Expr | tuple[int | str | Expr | None, ...] | None) -> Value:
        """As :meth:`relaxir.Builder.reshape`, of one shape or of its dimensions."""
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        return self._builder.reshape(self, given)

    def astype(self, dtype: DTypeLike) -> Value:
        """The elements in another dtype."""
        return self._builder.astype(self, dtype)

    def __iter__(self) -> NoReturn:
        raise self._builder.error("expected subscripts or split, got a loop over a tensor that is not computed yet")

    def __getitem__(self, given: object) -> Value:
        return self._builder.subscript(self, given)

    def __bool__(self) -> bool:
        raise self._builder.error("expected a number where Python wants a truth value, got a tensor that is not computed yet")

    def __add__(self, other: ValueLike) -> Value:
        return self._builder.add(self, self._like(other))

    def __radd__(self, other: ValueLike) -> Value:
        return self._builder.add(self._like(other), self)

    def __sub__(self, other: ValueLike) -> Value:
        return self._builder.subtract(self, self._like(other))

    def __rsub__(self, other: ValueLike) -> Value:
        return self._builder.subtract(self._like(other), self)

    def __mul__(self, other: ValueLike) -> Value:
        return self._builder.multiply(self, self._like(other))

    def __rmul__(self, other: ValueLike) -> Value:
        return self._builder.multiply(self._like(other), self)

    def __truediv__(self, other: ValueLike) -> Value:
        return self._quotient(self, self._like(other))

    def __rtruediv__(self, other: ValueLike) -> Value:
        return self._quotient(self._like(other), self)

    def _quotient(self, x: ValueLike, y: ValueLike) -> Value:
        """Of integers, Python's is no integer: ``divide`` is C's."""
        if "f" not in self.dtype:
            raise self._builder.error(f"expected floats for /, got {self.dtype}: // rounds down, divide towards 0")
        return self._builder.divide(x, y)

    def __floordiv__(self, other: ValueLike) -> Value:
        return self._builder.floor_divide(self, self._like(other))

    def __rfloordiv__(self, other: ValueLike) -> Value:
        return self._builder.floor_divide(self._like(other), self)

    def __mod__(self, other: ValueLike) -> Value:
        return self._builder.mod(self, self._like(other))

    def __rmod__(self, other: ValueLike) -> Value:
        return self._builder.mod(self._like(other), self)

    def __pow__(self, other: ValueLike) -> Value:
        return self._builder.power(self, self._like(other))

    def __rpow__(self, other: ValueLike) -> Value:
        return self._builder.power(self._like(other), self)

    def __matmul__(self, other: Value | np.ndarray[Any, Any]) -> Value:
        return self._builder.matmul(self, self._like(other))

    def __rmatmul__(self, other: np.ndarray[Any, Any]) -> Value:
        return self._builder.matmul(self._like(other), self)

    def __and__(self, other: ValueLike) -> Value:
        return self._builder.bitwise_and(self, self._like(other))

    def __or__(self, other: ValueLike) -> Value:
        return self._builder.bitwise_or(self, self._like(other))

    def __xor__(self, other: ValueLike) -> Value:
        return self._builder.bitwise_xor(self, self._like(other))

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __neg__(self) -> Value:
        return self._builder.negative(self)

    def __invert__(self) -> Value:
        return self._builder.bitwise_not(self)

    def __abs__(self) -> Value:
        return self._builder.abs(self)

    def __eq__(self, other: ValueLike) -> Value:  # type: ignore[override]  # as in NumPy
        return self._builder.equal(self, self._like(other))

    def __ne__(self, other: ValueLike) -> Value:  # type: ignore[override]
        return self._builder.not_equal(self, self._like(other))

    def __lt__(self, other: ValueLike) -> Value:
        return self._builder.less(self, self._like(other))

    def __le__(self, other: ValueLike) -> Value:
        return self._builder.less_equal(self, self._like(other))

    def __gt__(self, other: ValueLike) -> Value:
        return self._builder.greater(self, self._like(other))

    def __ge__(self, other: ValueLike) -> Value:
        return self._builder.greater_equal(self, self._like(other))

    def _like(self, other: ValueLike) -> ValueLike:
        return self._builder.like(other, self) if isinstance(other, np.ndarray) else other


ValueLike: TypeAlias = Value | Number | np.ndarray[Any, Any]
