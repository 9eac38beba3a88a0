"""What the builder is made of: a function being built, the caller's line, and Python values as IR knows them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import index
from types import CodeType, FrameType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..dialect.attributes import REQUIRED, Attr
from ..dialect.bindings import ext, func, ir, irdl
from ..dialect.checks import expect_no_mask
from ..dialect.dtypes import dtype_name, numpy_dtype
from ..dialect.errors import RelaxError, from_mlir_error
from ..dialect.op import EffectOp
from ..dialect.struct_info import TensorInfo
from ..dialect.symbolic import Dim, Expr, parse
from .value import Value

__all__ = [
    "Function", "array_value", "call_site", "caller", "check_shape", "errors_at", "method_of", "number_value", "parsed_bounds",
    "parsed_dims", "parsed_dtype",
]  # fmt: skip

#: Modules whose frames are not the caller's.
_OWN = (
    __name__,
    f"{__package__}.builder",
    f"{__package__}.value",
    f"{__package__}.subscripts",
    f"{__package__}.control_flow",
    f"{__package__}.layers",
    "contextlib",
)


class Function:
    """A function that a builder builds, and afterwards its handle for :meth:`relaxir.Builder.call`."""

    def __init__(self, name: str, private: bool, op: func.FuncOp):
        self.name = name
        self.private = private
        self.op = op
        self.block = op.add_entry_block()
        self.arguments: dict[str, Value] = {}
        self.weights: list[str] = []
        self.results: list[ir.Type] | None = None
        self.result_names: list[str | None] = []
        self.discarded = False
        self._blocks = [self.block]
        self._symbols: list[set[str]] = [set()]

    def __repr__(self) -> str:
        return f"<relaxir.Function: @{self.name}>"

    @property
    def current(self) -> ir.Block:
        """The block that ops go into: that of the innermost branch or loop, or of the function."""
        return self._blocks[-1]

    @property
    def place(self) -> ir.InsertionPoint:
        return ir.InsertionPoint(self.current)

    @contextmanager
    def inside(self, block: ir.Block) -> Generator[None]:
        """Makes a block of a branch or loop the current one. What a match_cast defines in it, ends with it."""
        self._blocks.append(block)
        self._symbols.append(set())
        try:
            yield
        finally:
            self._blocks.pop()
            self._symbols.pop()

    def reaches(self, block: ir.Block) -> bool:
        """Whether what is computed in a block may be used in the current one."""
        return any(block is b for b in self._blocks)

    def bind(self, dims: Sequence[Dim], *, argument: bool = False) -> None:
        """Makes the symbols of an argument or a match_cast known."""
        self._symbols[0 if argument else -1].update(name for d in dims if isinstance(d, Expr) for name in d.names)

    def known(self, dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """The same dimensions. Raises RelaxError when they mention a symbol that nothing defines."""
        symbols = set().union(*self._symbols)
        missing = sorted({name for d in dims if isinstance(d, Expr) for name in d.names} - symbols)
        if missing:
            raise RelaxError(f"expected symbols of @{self.name} ({', '.join(sorted(symbols)) or 'none'}), got {missing[0]}")
        return dims

    def check_arguments(self, operands: Sequence[ir.Value]) -> None:
        """Raises RelaxError when the operands of a call are not what the function takes."""
        wanted = [v.ir.type for v in self.arguments.values()]
        if len(wanted) != len(operands):
            raise RelaxError(f"expected {len(wanted)} arguments for @{self.name}, got {len(operands)}")
        for name, type_, operand in zip(self.arguments, wanted, operands, strict=True):
            if type_ != operand.type:
                got = f"tensor<{TensorInfo.of(operand)}>"
                raise RelaxError(f"expected tensor<{TensorInfo.of(type_)}> for argument '{name}' of @{self.name}, got {got}")


def caller() -> FrameType:
    """The innermost frame outside of the builder."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in _OWN:
        frame = frame.f_back
    return frame


def call_site(context: ir.Context, frame: FrameType) -> ir.Location:
    """Where a frame is, as an MLIR location with the column of the call."""
    positions = _positions(frame.f_code)
    at = frame.f_lasti // 2
    _, _, column, _ = positions[at] if at < len(positions) else (None, None, None, None)
    return ir.Location.file(frame.f_code.co_filename, frame.f_lineno, (column or 0) + 1, context=context)


@functools.lru_cache(maxsize=1024)
def _positions(code: CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    return list(code.co_positions())


@contextmanager
def errors_at(location: ir.Location) -> Generator[None]:
    """Gives errors that have no place this one."""
    try:
        yield
    except ir.MLIRError as error:
        raise from_mlir_error(error) from None
    except RelaxError as error:
        if error.location:
            raise
        raise RelaxError(error.args[0], location) from None


def method_of(cls: type[EffectOp]) -> Callable[..., Any]:
    """A builder method for an op: its operands, then its attributes, by position or by name."""
    operands, _, results, _ = ext.partition_fields(cls._fields)
    required = [k for k, spec in cls.attrs.items() if spec.default is REQUIRED]
    optional = [k for k in cls.attrs if k not in required]
    names = [o.name for o in operands]
    single, absent = irdl.Variadicity.single, inspect.Parameter.empty
    defaults = {o.name: absent if o.variadicity == single else None for o in operands} | dict.fromkeys(required, absent)
    signature = inspect.Signature(list(_parameters({"self": absent} | defaults | {k: cls.attrs[k].default for k in optional})))

    def build(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._at_caller():
            try:
                given = signature.bind(self, *args, **kwargs).arguments
            except TypeError as error:
                raise RelaxError(f"'{cls.OPERATION_NAME}' op {error}") from None
            missing = next((o.name for o in operands if o.variadicity == single and given[o.name] is None), None)
            if missing is not None:
                raise RelaxError(f"'{cls.OPERATION_NAME}' op expected a value for '{missing}', got None")
            attrs = {k: _coerced(k, spec, given[k]) for k, spec in cls.attrs.items() if given.get(k) is not None}
            values = self._emit_all(cls, [given.get(n) for n in names], attrs)
        return values[0] if len(results) == 1 else values

    build.__name__ = cls.OPERATION_NAME.removeprefix("relax.")
    build.__qualname__ = f"Builder.{build.__name__}"
    build.__doc__ = cls.__doc__
    build.__signature__ = signature  # type: ignore[attr-defined]
    return build


def _parameters(defaults: Mapping[str, Any]) -> Iterator[inspect.Parameter]:
    """Parameters with their defaults; one without behind one that has (an optional operand) is given by name, like the rest."""
    kind, is_open = inspect.Parameter.POSITIONAL_OR_KEYWORD, False
    for name, default in defaults.items():
        if default is inspect.Parameter.empty and is_open:
            kind = inspect.Parameter.KEYWORD_ONLY
        is_open = is_open or default is not inspect.Parameter.empty
        yield inspect.Parameter(name, kind, default=default)


def _coerced(name: str, spec: Attr, value: Any) -> Any:
    """Dtypes by name, and one integer where a list of them is wanted."""
    if name.endswith("dtype"):
        return parsed_dtype(value)
    if spec.expected.startswith("an i64 array") and hasattr(value, "__index__"):
        return [value]
    return value


def parsed_dtype(dtype: DTypeLike | ir.Type) -> ir.Type:
    """An element type from its MLIR name (``"bf16"``), a NumPy or torch dtype or its name, or an MLIR type.

    Raises RelaxError for others, among them NumPy's short names: its ``"i4"`` has four bytes, MLIR's four bits.
    """
    if isinstance(dtype, ir.Type):
        return dtype
    if isinstance(dtype, str):
        return ir.Type.parse(_of_long_name(dtype) or dtype_name(numpy_dtype(dtype)))
    if type(dtype).__module__ == "torch":  # torch itself is not imported for that; ml_dtypes has the same names
        dtype = str(dtype).removeprefix("torch.")
    try:
        return ir.Type.parse(dtype_name(dtype))
    except (TypeError, ValueError):
        raise RelaxError(f"expected a dtype such as 'f32', got {dtype!r}") from None


def _of_long_name(name: str) -> str | None:
    """The MLIR name of ``"float32"``; None for what NumPy and torch do not call a dtype in full."""
    try:
        dtype = np.dtype(name) if len(name) > 3 else None  # codes of NumPy's, some of which it has given up
        return dtype_name(dtype) if dtype is not None and dtype.name == name else None
    except (TypeError, ValueError, RelaxError):
        return None


def parsed_dims(shape: Sequence[int | str | Expr | None]) -> tuple[Dim, ...]:
    """A shape as dimensions. Raises RelaxError when one is neither a size of 0 or more nor an expression."""
    check_shape(shape)
    dims = parsed_bounds(shape)
    wrong = next((d for d in dims if isinstance(d, int) and not 0 <= d < 2**63), None)
    if wrong is not None:
        raise RelaxError(f"expected a dimension of 0 or more, got {wrong}")
    return dims


def check_shape(shape: object) -> None:
    """Raises RelaxError when this is no sequence of dimensions."""
    if isinstance(shape, str) or not hasattr(shape, "__iter__"):
        raise RelaxError(f"expected a shape such as ('n', 64), got {shape!r}")


def parsed_bounds(bounds: Sequence[int | str | Expr | None]) -> tuple[Dim, ...]:
    """Integers, also negative ones, and expressions. Raises RelaxError for anything else."""
    return tuple(_bound(d) for d in bounds)


def _bound(bound: Any) -> Dim:
    if bound is None or isinstance(bound, Expr):
        return bound
    if isinstance(bound, str):
        return parse(bound)
    try:
        return index(bound)
    except TypeError:
        raise RelaxError(f"expected a dimension such as 64 or 'n * 2', got {bound!r}") from None


def number_value(value: bool | int | float, element: ir.Type) -> bool | int | float:
    """A number for an element type. Raises RelaxError when the type cannot hold it (a fraction for an integer)."""
    if isinstance(element, ir.FloatType) and isinstance(value, int | float):
        return float(value)
    if isinstance(element, ir.IntegerType) and isinstance(value, int) and _fits(value, element):
        return bool(value) if element.width == 1 else int(value)
    raise RelaxError(f"expected a number of type {element}, got {value!r}")


def array_value(array: np.ndarray[Any, Any], element: ir.Type) -> np.ndarray[Any, Any]:
    """An array for an element type: floats are rounded as numbers are, integers must fit. Raises RelaxError for others."""
    expect_no_mask(array, "constant")
    dtype_name(array.dtype)  # refuses objects, strings and complex numbers
    with np.errstate(all="ignore"):
        found = array.astype(numpy_dtype(element))
    if not isinstance(element, ir.FloatType) and not (array.dtype.kind in "iub" and np.array_equal(found, array)):
        raise RelaxError(f"expected an array of type {element}, got one of {dtype_name(array.dtype)}")
    return found


def _fits(value: int, element: ir.IntegerType) -> bool:
    unsigned = element.is_unsigned or element.width == 1
    low, high = (0, 2**element.width) if unsigned else (-(2 ** (element.width - 1)), 2 ** (element.width - 1))
    return low <= value < high
