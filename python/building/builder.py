"""``relaxir.Builder``: modules built in Python, op by op, with shapes inferred and errors at the caller's line.

    b = Builder()
    with b.function("main"):
        x = b.input("x", ("n", 64))
        w = b.weight("fc.weight", (64, 64))
        b.output(b.relu(b.matmul(x, b.permute_dims(w, axes=[1, 0]))))
    module = b.build()

Every op of the dialect is a method: operands first, then attributes, by position or by name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..dialect.bindings import func, ir
from ..dialect.context import new_context, operations
from ..dialect.dtypes import dtype_name, numpy_dtype
from ..dialect.elements import from_numpy
from ..dialect.errors import RelaxError
from ..dialect.extern_functions import allow_extern
from ..dialect.functions import set_names, set_num_input
from ..dialect.op import EffectOp
from ..dialect.ops import Arange, BroadcastTo, CallExtern, Concat, Constant, Full, MatchCast, Reshape, ShapeValue, Split
from ..dialect.struct_info import TensorInfo
from ..dialect.symbolic import Dim, Expr
from ..module import Module
from ..weights.arrays import is_torch, to_numpy
from ..weights.files import path_text
from .arguments import (
    Function,
    array_value,
    call_site,
    caller,
    check_shape,
    errors_at,
    method_of,
    number_value,
    parsed_bounds,
    parsed_dims,
    parsed_dtype,
)
from .control_flow import ControlFlow
from .layers import Layer, Parameter, with_weights
from .subscripts import subscript
from .value import Number, Value, ValueLike

__all__ = ["Builder", "Function"]

#: A shape as users write it: ints, symbols and expressions of them; ``"?"`` or None is unknown.
ShapeLike = Sequence[int | str | Expr | None]

_Layer = TypeVar("_Layer", bound=Layer)


class Builder(ControlFlow):
    """Builds one module; :meth:`build` ends it.

    A mistake raises RelaxError where it is made, located at the line of Python that made it. An error that leaves a
    ``with b.function(...)`` block removes that function.
    """

    def __init__(self) -> None:
        self._context = new_context()
        with self._context, ir.Location.unknown():
            self._module = ir.Module.create()
        self._open: list[Function] = []
        self._functions: dict[str, Function] = {}
        self._built = False

    if TYPE_CHECKING:  # the ops without a method of their own below are added to the class at the end of this file

        def __getattr__(self, name: str) -> Callable[..., Value]: ...

    # Functions

    @contextmanager
    def function(self, name: str, *, private: bool = False) -> Generator[Function]:
        """Opens a function; ops go into the innermost open one. It ends with the block, after :meth:`output`.

        Args:
            name: the function's name, distinct in the module.
            private: whether only :meth:`call` reaches it. Its arguments are all inputs.
        """
        with self._at_caller():
            scope = self._begin(name, private)
        try:
            yield scope
            with self._at_caller():
                self._end(scope)
        except BaseException:
            self._discard(scope)
            raise
        finally:
            self._open.remove(scope)

    def input(self, name: str, shape: ShapeLike, dtype: DTypeLike = "f32") -> Value:
        """An argument given at each call. Symbols in its shape may be used from here on. Comes before the weights."""
        with self._at_caller():
            scope = self._scope()
            if scope.weights:
                raise RelaxError(f"expected every input before the first weight, got input '{name}' after '{scope.weights[0]}'")
            if name in scope.arguments:
                raise RelaxError(f"expected distinct argument names, got '{name}' twice")
            return self._argument(scope, name, shape, dtype)

    def weight(self, name: str, shape: ShapeLike, dtype: DTypeLike = "f32") -> Value:
        """A weight of a public function, by its name in the checkpoint. The same name again is the same (tied) weight."""
        with self._at_caller():
            scope = self._scope()
            if scope.private:
                raise RelaxError(f"expected weight '{name}' in a public function, @{scope.name} gets its weights as inputs")
            if name in scope.arguments:
                return self._tied(scope, name, shape, dtype)
            value = self._argument(scope, name, shape, dtype)
            scope.weights.append(name)
            return value

    def layer(self, layer: _Layer, name: str = "") -> _Layer:
        """A copy of a layer whose parameters are weights of the open function, named by attribute: ``layers.0.up``.

        Args:
            layer: an object of a class derived from :class:`relaxir.Layer`, which stays as it is; layers, and lists, tuples
                and dictionaries of them, may be in it. What is there twice is one (tied) weight.
            name: what the names begin with, as ``"model"``.
        """

        def weight(path: str, parameter: Parameter) -> Value:
            return self.weight(path, parameter.shape, parameter.dtype)

        with self._at_caller():
            return cast("_Layer", with_weights(layer, name, weight))

    def output(self, /, *values: Value, **named: Value) -> None:
        """Returns values from the open function; ``output(logits=y)`` names the result."""
        with self._at_caller() as location:
            scope = self._scope()
            results = [*values, *named.values()]
            if not results:
                raise RelaxError(f"expected at least one value to return from @{scope.name}")
            if scope.current is not scope.block:
                raise RelaxError(f"expected output(...) of @{scope.name} outside of branches and loops")
            operands = self._operands(scope, results, "output")
            func.ReturnOp(operands, loc=location, ip=ir.InsertionPoint(scope.block))
            scope.results = [v.type for v in operands]
            scope.result_names = [*(None for _ in values), *named]

    def call(self, function: Function, *arguments: ValueLike) -> Value | tuple[Value, ...]:
        """Calls a finished function of this builder; several results come as a tuple."""
        with self._at_caller() as location:
            scope = self._scope()
            if not isinstance(function, Function) or self._functions.get(function.name) is not function:
                raise RelaxError(f"expected a function of this builder, got {function!r}")
            if function in self._open or function.results is None:
                raise RelaxError(f"expected a finished function, @{function.name} is still being built")
            operands = self._operands(scope, arguments, f"argument of @{function.name}")
            function.check_arguments(operands)
            call = func.CallOp(function.results, function.name, operands, loc=location, ip=scope.place)
            values = tuple(Value(self, scope, r) for r in call.operation.results)
        return values[0] if len(values) == 1 else values

    def build(self) -> Module:
        """The finished, verified module. The builder takes nothing more after this.

        Raises:
            RelaxError: a function is still open, or there is none.
        """
        with self._at_caller():
            self._check_open()
            if self._open or not self._functions:
                raise RelaxError(f"expected finished functions, got {f'@{self._open[-1].name} open' if self._open else 'none'}")
            module = Module(self._module)
            module.verify()
            self._built = True
        return module

    # Ops whose result the operands do not determine, and those that are more than one op

    def constant(self, value: ArrayLike, dtype: DTypeLike | None = None) -> Value:
        """A table in the IR, for small data. Without a dtype an array keeps its own, Python floats are f32, ints i64."""
        with self._at_caller():
            array = _constant_array(value, dtype)
            type_ = ir.RankedTensorType.get(list(array.shape), parsed_dtype(array.dtype))
            return self._emit(Constant, [], {"value": from_numpy(array, type_)})

    def full(self, shape: ShapeLike, value: Number, dtype: DTypeLike = "f32") -> Value:
        """A tensor of that shape, every element ``value``."""
        with self._at_caller():
            element = parsed_dtype(dtype)
            return self._emit(Full, [], {"value": number_value(value, element)}, self._info(shape, element))

    def arange(self, start: Dim | str, end: Dim | str = None, step: Dim | str = 1, *, dtype: DTypeLike = "i64") -> Value:
        """``start, start + step, ...`` below ``end``; with one bound it is the end. Bounds are ints or symbolic."""
        with self._at_caller():
            bounds = (0, start, step) if end is None else (start, end, step)
            first, last, stride = self._scope().known(parsed_bounds(bounds))
            if first is None or last is None or stride is None or stride == 0:
                raise RelaxError(f"expected known bounds and a step other than 0, got {first}, {last} and {stride}")
            forward = not isinstance(stride, int) or stride > 0
            count = (last - first + stride - 1) // stride if forward else (first - last - stride - 1) // -stride
            info = TensorInfo((max(count, 0) if isinstance(count, int) else count,), parsed_dtype(dtype))
            return self._emit(Arange, [], {"start": [first], "end": [last], "step": [stride]}, info)

    def shape_value(self, value: Dim | str, dtype: DTypeLike = "i64") -> Value:
        """A scalar tensor with the value of a symbolic expression."""
        with self._at_caller():
            known = self._scope().known(parsed_bounds([value]))
            return self._emit(ShapeValue, [], {"value": known}, TensorInfo((), parsed_dtype(dtype)))

    def reshape(self, x: Value, shape: ShapeLike) -> Value:
        """The elements in row-major order under another shape; one dimension may be -1, it is computed."""
        with self._at_caller():
            info = self._info_of(x, Reshape)
            return self._emit(Reshape, [x], {}, info.with_(shape=self._dims(_completed(info.shape, shape))))

    def broadcast_to(self, x: Value, shape: ShapeLike) -> Value:
        """The operand repeated to a shape by NumPy's broadcasting rule."""
        with self._at_caller():
            info = self._info_of(x, BroadcastTo)
            return self._emit(BroadcastTo, [x], {}, info.with_(shape=self._dims(shape)))

    def match_cast(self, x: Value, shape: ShapeLike) -> Value:
        """The operand under another shape, checked at run time; new symbols in it are defined by that."""
        with self._at_caller():
            dims = parsed_dims(shape)
            result = self._emit(MatchCast, [x], {}, self._info_of(x, MatchCast).with_(shape=dims))
            self._scope().bind(dims)
            return result

    def concat(self, values: Sequence[Value], axis: int = 0) -> Value:
        """Two or more tensors one after the other along an axis."""
        with self._at_caller():
            items = list(values) if isinstance(values, Iterable) and not isinstance(values, Value) else [values]
            if len(items) < 2:
                raise RelaxError(f"expected two or more tensors to concat, got {len(items)}")
            result = items[0]
            for item in items[1:]:
                result = self._emit(Concat, [result, item], {"axis": axis})
            return result

    def split(self, x: Value, sections: int, axis: int = 0) -> tuple[Value, ...]:
        """Equal parts along an axis."""
        with self._at_caller():
            return self._emit_all(Split, [x], {"sections": sections, "axis": axis})

    def call_extern(
        self,
        symbol: str,
        operands: Sequence[Value],
        results: Sequence[tuple[ShapeLike, DTypeLike]],
        *,
        library: str | os.PathLike[str] = "",
        arguments: Sequence[int | float | bool | str | Value] = (),
        version: str = "",
    ) -> tuple[Value, ...]:
        """What a C function of another library writes: :mod:`relaxir.dialect.extern_functions` says how it is called.

        Args:
            symbol: its name in C.
            operands: the tensors that it reads.
            results: shape and dtype of each tensor that it writes; symbols are those of the function.
            library: which has it, as the system's loader takes it; empty: the process itself.
            arguments: numbers and strings that it takes behind the tensors; also values without dimensions.
            version: of what it computes: weights that another version prepared are refused.
        """
        with self._at_caller():
            if not isinstance(operands, list | tuple) or not isinstance(results, list | tuple):
                raise RelaxError(f"expected lists of tensors and of results for '{symbol}', got {operands!r} and {results!r}")
            if not all(isinstance(r, list | tuple) and len(r) == 2 for r in results):
                raise RelaxError(f"expected pairs of shape and dtype as results of '{symbol}', got {results!r}")
            infos = [self._info(shape, parsed_dtype(dtype)) for shape, dtype in results]
            path = "" if library == "" else path_text(library, "load")
            if not isinstance(arguments, list | tuple):
                raise RelaxError(f"expected a list of arguments for '{symbol}', got {arguments!r}")
            numbers = [a for a in arguments if isinstance(a, Value)]
            given = [... if isinstance(a, Value) else a for a in arguments]
            attrs = {"symbol": symbol, "library": path, "arguments": given, "version": version}
            values = self._emit_all(CallExtern, [*operands, *numbers], attrs, infos)
            allow_extern(path, symbol)
            return values

    def subscript(self, x: Value, given: object) -> Value:
        """``x[given]``: :func:`~.subscripts.subscript`."""
        return subscript(self, x, given)

    def like(self, other: ValueLike, value: Value) -> ValueLike:
        """The other side of an operator: an array becomes a constant of the value's dtype."""
        if not isinstance(other, np.ndarray):
            return other
        with self._at_caller():
            return self.constant(array_value(other, parsed_dtype(value.dtype)))

    def error(self, message: str) -> RelaxError:
        """An error located at the caller's line, to raise."""
        return RelaxError(message, call_site(self._context, caller()))

    # Inside

    @contextmanager
    def _at_caller(self) -> Generator[ir.Location]:
        """Builds at, and blames, the line of Python outside of this package's builder."""
        location = call_site(self._context, caller())
        with self._context, location, errors_at(location):
            yield location

    def _begin(self, name: str, private: bool) -> Function:
        self._check_open()
        if not isinstance(name, str) or not name:
            raise RelaxError(f"expected a name for the function, got {name!r}")
        if name in self._functions:
            raise RelaxError(f"expected distinct function names, got @{name} twice")
        op = func.FuncOp(name, ([], []), visibility="private" if private else None, ip=ir.InsertionPoint(self._module.body))
        scope = Function(name, private, op)
        self._functions[name] = scope
        self._open.append(scope)
        return scope

    def _end(self, scope: Function) -> None:
        if scope.results is None:
            raise RelaxError(f"expected output(...) before the end of @{scope.name}")
        inputs = [a.type for a in scope.block.arguments]
        scope.op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, scope.results))
        set_names(scope.op, list(scope.arguments), scope.result_names)
        if not scope.private:
            set_num_input(scope.op, len(scope.arguments) - len(scope.weights))
        scope.op.operation.verify()

    def _discard(self, scope: Function) -> None:
        scope.discarded = True
        del self._functions[scope.name]
        scope.op.operation.erase()

    def _check_open(self) -> None:
        if self._built:
            raise RelaxError("expected a builder before build(), make a new one")

    def _scope(self) -> Function:
        self._check_open()
        if not self._open:
            raise RelaxError("expected an open function, use 'with b.function(...)'")
        if self._open[-1].results is not None:
            raise RelaxError(f"expected nothing after output(...) of @{self._open[-1].name}")
        return self._open[-1]

    def _argument(self, scope: Function, name: str, shape: ShapeLike, dtype: DTypeLike) -> Value:
        if not isinstance(name, str) or not name:
            raise RelaxError(f"expected a name for the argument, got {name!r}")
        dims = parsed_dims(shape)
        location = ir.Location.name(name, ir.Location.current)
        value = scope.block.add_argument(TensorInfo(dims, parsed_dtype(dtype)).type, location)
        scope.bind(dims, argument=True)
        scope.arguments[name] = Value(self, scope, value, scope.block)
        return scope.arguments[name]

    def _tied(self, scope: Function, name: str, shape: ShapeLike, dtype: DTypeLike) -> Value:
        value = scope.arguments[name]
        wanted = TensorInfo(parsed_dims(shape), parsed_dtype(dtype))
        if name not in scope.weights or TensorInfo.of(value.ir) != wanted:
            raise RelaxError(f"expected '{name}' as before, tensor<{TensorInfo.of(value.ir)}>, got tensor<{wanted}>")
        return value

    def _operands(self, scope: Function, operands: Sequence[ValueLike | None], what: str) -> list[ir.Value]:
        tensors = [o for o in operands if isinstance(o, Value)]
        for value in tensors:
            if value.function is not scope:
                raise RelaxError(f"expected values of @{scope.name}, got one of @{value.function.name} ({what})")
            if not scope.reaches(value.block):
                raise RelaxError(f"expected values of @{scope.name}, got one of a branch or loop that has ended ({what})")
        return [self._operand(o, tensors, what) for o in operands if o is not None]

    def _operand(self, operand: ValueLike, tensors: Sequence[Value], what: str) -> ir.Value:
        if isinstance(operand, Value):
            return operand.ir
        if isinstance(operand, np.generic):
            operand = operand.item()
        if isinstance(operand, np.ndarray):
            return self.constant(operand).ir
        if not isinstance(operand, bool | int | float) or not tensors:
            raise RelaxError(f"expected a value of the builder{' or a number' if tensors else ''}, got {operand!r} ({what})")
        element = TensorInfo.of(tensors[-1].ir).dtype
        return self._emit(Full, [], {"value": number_value(operand, element)}, TensorInfo((), element)).ir

    def _value(self, scope: Function, value: ir.Value) -> Value:
        return Value(self, scope, value)

    def _info_of(self, x: Value, cls: type[EffectOp]) -> TensorInfo:
        """The type of an op's one operand."""
        if not isinstance(x, Value):
            raise RelaxError(f"expected a value of the builder, got {x!r} ({cls.OPERATION_NAME})")
        (operand,) = self._operands(self._scope(), [x], cls.OPERATION_NAME)
        return TensorInfo.of(operand)

    def _info(self, shape: ShapeLike, element: ir.Type) -> TensorInfo:
        return TensorInfo(self._dims(shape), element)

    def _dims(self, shape: ShapeLike) -> tuple[Dim, ...]:
        return self._scope().known(parsed_dims(shape))

    def _emit(
        self, cls: type[EffectOp], operands: Sequence[ValueLike | None], attrs: dict[str, Any], result: TensorInfo | None = None
    ) -> Value:
        (value,) = self._emit_all(cls, operands, attrs, None if result is None else [result])
        return value

    def _emit_all(
        self,
        cls: type[EffectOp],
        operands: Sequence[ValueLike | None],
        attrs: dict[str, Any],
        results: Sequence[TensorInfo] | None = None,
    ) -> tuple[Value, ...]:
        scope = self._scope()
        values = self._operands(scope, operands, cls.OPERATION_NAME)
        types = None if results is None else [info.type for info in results]
        try:
            op = cls.create(*values, result_types=types, ip=scope.place, **attrs)
        except RelaxError as error:
            named = str(error).startswith(f"'{cls.OPERATION_NAME}'")
            raise error if named else RelaxError(f"'{cls.OPERATION_NAME}' op {error}") from None
        try:
            op.verify()
        except ir.MLIRError:
            op.erase()
            raise
        return tuple(Value(self, scope, r) for r in op.results)


def _constant_array(value: ArrayLike, dtype: DTypeLike | None) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray) or is_torch(value) or hasattr(value, "__dlpack__"):
        array = to_numpy(value, "constant")
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
    else:
        try:
            array = np.asarray(value)
        except ValueError:
            raise RelaxError("expected a rectangular array of numbers") from None
    if dtype is not None:
        array = _converted(array, numpy_dtype(parsed_dtype(dtype)))
    elif not isinstance(value, np.ndarray | np.generic) and array.dtype == np.float64:
        array = array.astype(np.float32)
    return array


def _converted(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    dtype_name(array.dtype)  # refuses objects, strings and complex numbers
    return array.astype(dtype)


def _completed(before: Sequence[Dim], shape: ShapeLike) -> list[int | str | Expr | None]:
    """The shape with its -1, if any, replaced by what the number of elements leaves."""
    check_shape(shape)
    holes = [i for i, d in enumerate(shape) if isinstance(d, int) and d == -1]
    if not holes:
        return list(shape)
    if len(holes) > 1:
        raise RelaxError(f"expected at most one dimension of -1, got {len(holes)}")
    rest = parsed_dims([d for i, d in enumerate(shape) if i != holes[0]])
    if None in before or None in rest or 0 in rest:
        raise RelaxError("expected known, non-zero dimensions beside -1")
    total, divisor = _product(before), _product(rest)
    missing = total // divisor
    if missing * divisor != total:
        raise RelaxError(f"expected dimensions that divide {total} elements, got {divisor}")
    return [missing if i == holes[0] else d for i, d in enumerate(shape)]


def _product(dims: Sequence[Dim]) -> int | Expr:
    total: int | Expr = 1
    for dim in dims:
        total = total * dim  # pyright: ignore[reportOperatorIssue]  None was refused
    return total


def _is_built_by_hand(cls: type[EffectOp]) -> bool:
    """IO ops take no tensors and come from passes; ops without inference have methods above."""
    return cls.infer is None


for _cls in operations():
    _name = _cls.OPERATION_NAME.removeprefix("relax.")
    if not _is_built_by_hand(_cls) and _name not in vars(Builder):
        setattr(Builder, _name, method_of(_cls))
