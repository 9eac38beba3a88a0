"""What is known of the torch values of a function while it is converted: tensors, numbers, sizes, elements that are numbers."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..dialect import ops, symbolic
from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.inference import normalize_axis
from ..dialect.op import EffectOp
from ..dialect.struct_info import TensorInfo
from ..dialect.symbolic import Dim, Expr
from .element_limits import largest_element
from .emit import cast, emit, emit_check, full, info_of, integer, match, multiply_all, reshape
from .ranges import larger, smaller
from .shown_keys import shows_all_a_key
from .torch_types import affine_dims, tensor_info
from .whole_numbers import LARGEST_FACTOR, masked, rounded, shifted

__all__ = [
    "ALIKE", "EXTREME", "EXTREMES", "KIND", "SIZES", "SYMBOL", "SYMBOLS", "Values", "is_read", "number_dtype", "op_key",
]  # fmt: skip

#: Argument attribute: ``input``, ``state``, ``param``, ``buffer`` or ``constant``; of results ``output`` or ``state``.
KIND = "relax.kind"
#: Argument attribute, while a program is imported: the integer that all elements of a weight are.
ALIKE = "relax.alike"

#: Attribute of an element that is a number, while a program is imported: the symbol that torch's shapes call it by.
SYMBOL = "relax.symbol"

#: Attributes of a symbol that is the smaller or the larger one of two sizes: which, an affine map to both, its symbols by name.
EXTREME, SIZES, SYMBOLS = "relax.extreme", "relax.sizes", "relax.symbols"

#: Operations that look at a tensor's type and read nothing of it.
_OF_TYPES = (
    "aten._assert_tensor_metadata", "bind_symbolic_shape", "aten.zeros_like", "aten.ones_like", "aten.full_like",
    "aten.empty_like", "aten.new_",
)  # fmt: skip


def is_read(op: ir.Operation, known: dict[ir.Operation, bool]) -> bool:
    """Whether something is made of an operation's results that is returned or stored; ``known`` remembers of which it is."""
    waiting = [] if op in known else [op]
    while waiting:
        reader = waiting[-1]
        users = [use.owner.operation for result in reader.results for use in result.uses]
        if op_key(reader).startswith(_OF_TYPES):
            known[reader] = False
        elif not users or any(known.get(user) for user in users):
            known[reader] = bool(users) or not reader.results
        elif unknown := next((user for user in users if user not in known), None):
            waiting.append(unknown)
            continue
        else:
            known[reader] = False
        waiting.pop()
    return known[op]


class Values:
    """What is known of the torch values of a function while it is converted.

    Attributes:
        tensors: the relax value of each torch tensor.
        lists: the relax values of each torch list of tensors.
        shapes: the shape that ``torch.bind_symbolic_shape`` states for a tensor.
        ranges: smallest and largest value of each symbol, None for no bound.
        weights: the relax arguments that are weights.
        alike: of weights all of whose elements are one known integer, that one.
        elements: of symbols that are elements of tensors, the torch number.
        defined: the symbols that arguments and casts have defined so far.
        read: of torch operations that were asked for, whether something returned or stored is made of their results.
        inlined: converts a graph of a higher-order operator, by name, on relax values; its results.
    """

    def __init__(self, inlined: Callable[[str, Sequence[ir.Value]], list[ir.Value]]) -> None:
        self.inlined = inlined
        self.tensors: dict[ir.Value, ir.Value] = {}
        self.lists: dict[ir.Value, list[ir.Value | None]] = {}
        self.shapes: dict[ir.Value, tuple[Dim, ...]] = {}
        self.ranges: dict[str, tuple[int, int | None]] = {}
        self.weights: set[ir.Value] = set()
        self.alike: dict[ir.Value, int] = {}
        self._numbers: dict[ir.Value, Any] = {}
        self._shown: dict[ir.Value, bool] = {}
        self._extremes: dict[str, Dim] = {}
        self._found = 0
        self.elements: dict[str, ir.Value] = {}
        self.defined: set[str] = set()
        self.read: dict[ir.Operation, bool] = {}

    def number(self, value: ir.Value) -> Any:
        """The Python value of a torch number, string or list of them; sizes are symbolic expressions.

        Raises:
            RelaxError: it is computed from the contents of a tensor, or by an op that is not known here.
        """
        if value not in self._numbers:
            self._numbers[value] = self._evaluate(value)
        return self._numbers[value]

    def new_symbol(self) -> str:
        """A name for a size that data decides."""
        self._found += 1
        return f"found_{self._found}"

    def is_from_data(self, value: ir.Value) -> bool:
        """Whether a torch number is computed when the model runs: from an element of a tensor, or as a float from sizes."""
        if isinstance(value, ir.BlockArgument):
            return False
        op = value.owner.operation
        name = f"torch.{op_key(op)}"
        if _is_float_of_sizes(op):
            return True
        known = name in _ARITHMETIC or name in _EXTREMES or name in _ON_ELEMENTS
        return name in _ELEMENTS or (known and any(self.is_from_data(v) for v in op.operands))

    def element(self, value: ir.Value) -> ir.Value:
        """Such a number as a tensor without dimensions, computed when the model runs; integers are i64, as Python's are here.

        Raises:
            RelaxError: it is computed in a way that is not known here.
        """
        if not self.is_from_data(value):
            number = self.number(value)
            return full(number, ir.F64Type.get() if isinstance(number, float) else integer())
        op = value.owner.operation
        name = f"torch.{op_key(op)}"
        if _is_float_of_sizes(op):
            floats = [cast(self.element(v), ir.F64Type.get()) for v in op.operands]
            return emit(_ON_FLOATS[_kind(op)], *floats)
        if name in _ELEMENTS:
            x = self.tensors[op.operands[0]]
            x = x if info_of(x).rank == 0 else reshape(x, ())
            return cast(x, integer()) if _ELEMENTS[name] == "int" else x
        if name in _SAME:
            return self.element(op.operands[0])
        if name not in _ON_ELEMENTS:
            raise RelaxError(f"expected a number that is computed when the model runs, got one by {op_key(op)}")
        return emit(_ON_ELEMENTS[name], *(self.element(v) for v in op.operands))

    def define(self, shape: Sequence[Dim]) -> None:
        """Makes sure of symbols that a cast to that shape reads; those that are dimensions alone it defines itself."""
        dims = [d for d in shape if isinstance(d, Expr)]
        own = {d.text for d in dims if d.text.isidentifier()}
        for name in sorted({n for d in dims for n in d.names} - own - self.defined):
            if name in self.elements:
                self._measure(name)
        self.defined |= own

    def _measure(self, name: str) -> None:
        """Defines a symbol that is an element: as the size of a tensor with so many elements, which nothing reads.

        Raises:
            RelaxError: nothing is known that the element is at most.
        """
        element = self.element(self.elements[name])
        high = self.ranges.get(name, (0, None))[1]
        high = largest_element(element, self.ranges) if high is None else high
        if high is None:
            raise RelaxError("expected a number with an upper limit to decide a size: torch._check(n <= 100) says one")
        count = reshape(element, (1,))
        whole = full(False, integer(1), (high,))
        part = emit(ops.DynamicStridedSlice, whole, full(0, integer(), (1,)), count, axes=[0])
        part = match(part, info_of(part).with_(shape=[symbolic.symbol(name)]))
        self.defined.add(name)
        emit_check(part)
        # Beyond the limit, or below 0, sizes would be others than the number.
        differs = emit(ops.NotEqual, count, full(symbolic.symbol(name), integer(), (1,)))
        emit_check(emit(ops.Take, full(0, integer(), (1,)), cast(differs, integer()), axis=0))

    def shows_all_a_key(self, mask: ir.Value) -> bool:
        """:func:`.shown_keys.shows_all_a_key`, once of a mask that layers share."""
        if mask not in self._shown:
            self._shown[mask] = shows_all_a_key(mask)
        return self._shown[mask]

    def bind_shape(self, op: ir.Operation) -> None:
        """Takes note of a ``torch.bind_symbolic_shape``."""
        value, *symbols = op.operands
        map_ = ir.AffineMapAttr(op.attributes["shape_expressions"]).value
        self.shapes[value] = tuple(affine_dims(map_, [self.number(s) for s in symbols]))

    def bind_symbol(self, op: ir.Operation) -> None:
        """Takes note of a ``torch.symbolic_int`` and its range."""
        name = ir.StringAttr(op.attributes["symbol_name"]).value
        if EXTREME in op.attributes:
            self._extremes[name] = self._numbers[op.results[0]] = self._extreme(op)
            return
        low, high = (ir.IntegerAttr(op.attributes[k]).value for k in ("min_val", "max_val"))
        self._numbers[op.results[0]] = symbolic.symbol(name)
        self.ranges[name] = (max(low, 0), None if high >= 2**62 else high)

    def _extreme(self, op: ir.Operation) -> Any:
        names = [ir.StringAttr(n).value for n in ir.ArrayAttr(op.attributes[SYMBOLS])]
        symbols: list[Dim] = [self._extremes[n] if n in self._extremes else symbolic.symbol(n) for n in names]
        sizes: list[Any] = affine_dims(ir.AffineMapAttr(op.attributes[SIZES]).value, symbols)
        return EXTREMES[ir.StringAttr(op.attributes[EXTREME]).value](*sizes, self.ranges)

    def declared(self, value: ir.Value) -> TensorInfo | None:
        """What torch says of a tensor: its type and the shape bound to it; None when it is no tensor."""
        info = tensor_info(value.type)
        if info is None or value not in self.shapes:
            return info
        return info.with_(shape=self.shapes[value])

    def _evaluate(self, value: ir.Value) -> Any:
        if isinstance(value, ir.BlockArgument):
            raise RelaxError("expected a number known at import, got an argument")
        op = value.owner.operation  # torch.operator has an attribute of that name, which its view shows instead
        name = f"torch.{op_key(op)}"
        if name == "torch.constant.none":
            return None
        if name == "torch.constant.bool":
            return bool(ir.IntegerAttr(op.attributes["value"]).value)
        if name.startswith("torch.constant."):
            return op.attributes["value"].value
        if name == "torch.prim.ListConstruct":
            return [self.number(v) for v in op.operands]
        if name in ("torch.aten.size.int", "torch.aten.sym_size.int"):
            return self._size(op)
        if name == "torch.aten.numel":
            return multiply_all(info_of(self.tensors[op.operands[0]]).shape)
        if SYMBOL in op.attributes:
            symbol = ir.StringAttr(op.attributes[SYMBOL]).value
            if symbol not in self.defined:
                self._measure(symbol)
            return symbolic.symbol(symbol)
        if name in _ROUNDINGS:
            return rounded(_ROUNDINGS[name], *self._fraction(op.operands[0]), self.ranges)
        if name in _ARITHMETIC or name in _EXTREMES:
            return self._compute(name, [self.number(v) for v in op.operands])
        raise RelaxError(f"expected a number known at import, got one computed by {op_key(op)}")

    def _fraction(self, value: ir.Value) -> tuple[int | Expr, int]:
        """A size times or by a scale, where floats lose nothing: of few bits, as 0.5, 1.75 and whole numbers are."""
        op = None if isinstance(value, ir.BlockArgument) else value.owner.operation
        if op is None or not _is_float_of_sizes(op) or _kind(op) not in ("mul", "div", "truediv"):
            raise RelaxError("expected a size that is computed from integers, or by a scale")
        size, scale = (self.number(v) for v in op.operands)
        if _kind(op) == "mul" and isinstance(size, float):
            size, scale = scale, size
        if not isinstance(size, int | Expr) or not isinstance(scale, int | float) or not math.isfinite(scale):
            raise RelaxError(f"expected a size and a number that is known at import, got {size} and {scale}")
        above, below = float(scale).as_integer_ratio()
        if not 0 < above < LARGEST_FACTOR or below > LARGEST_FACTOR:
            raise RelaxError(f"expected a size and a positive scale of few bits, as 0.5 and 1.75 are, got {scale}")
        return (size * above, below) if _kind(op) == "mul" else (size * below, above)

    def _size(self, op: ir.Operation) -> Dim:
        shape = info_of(self.tensors[op.operands[0]]).shape
        size = shape[normalize_axis(self.number(op.operands[1]), len(shape))]
        if size is None:
            raise RelaxError("expected a size that is known or symbolic, got an unknown one")
        return size

    def _compute(self, name: str, operands: list[Any]) -> Any:
        try:
            if name in _EXTREMES:
                return _EXTREMES[name](*operands, self.ranges)
            return _ARITHMETIC[name](*operands)
        except (TypeError, ZeroDivisionError):
            shown = ", ".join(map(str, operands))
            raise RelaxError(f"expected numbers that {name.removeprefix('torch.')} computes at import, got {shown}") from None


#: Factors that a power of a size is written as.
_MOST_FACTORS = 8

#: The smaller and the larger one of two sizes.
_EXTREMES: dict[str, Callable[..., Any]] = {"torch.python.sym_min": smaller, "torch.python.sym_max": larger}

#: The same by their names in torch's shapes.
EXTREMES: dict[str, Callable[..., Any]] = {"Min": smaller, "Max": larger}

#: What makes a whole number of a fraction.
_ROUNDINGS = {f"torch.python.{how}": how for how in ("ceil", "floor", "round", "trunc")}

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "torch.aten.add.int": operator.add,
    "torch.aten.sub.int": operator.sub,
    "torch.aten.mul.int": operator.mul,
    "torch.aten.floordiv.int": operator.floordiv,
    "torch.aten.remainder.int": operator.mod,
    "torch.aten.fmod.int": operator.mod,  # the importer's name for ``%`` of two sizes, which is Python's
    "torch.aten.neg.int": operator.neg,
    "torch.python.pow": lambda a, b: _power(a, b),
    "torch.python.rshift": lambda a, b: shifted(a, -b),
    "torch.python.lshift": shifted,
    "torch.python.and_": masked,
    "torch.python.sym_float": lambda x: x if isinstance(x, Expr) else float(x),
    "torch.aten.Int.bool": int,
    "torch.aten.Int.Scalar": lambda x: x if isinstance(x, Expr) else int(x),
    "torch.aten.Float.Scalar": lambda x: x if isinstance(x, Expr) else float(x),
    "torch.aten.Float.bool": float,
    "torch.aten.ScalarImplicit": lambda x: x,
}


#: Arithmetic on floats, by the operator's name without namespace and overload.
_ON_FLOATS: dict[str, type[EffectOp]] = {
    "add": ops.Add, "sub": ops.Subtract, "mul": ops.Multiply, "div": ops.Divide, "truediv": ops.Divide, "pow": ops.Power,
    "neg": ops.Negative, "_sym_sqrt": ops.Sqrt, "sqrt": ops.Sqrt,
}  # fmt: skip


def _kind(op: ir.Operation) -> str:
    return op_key(op).split(".")[1]


def _is_float_of_sizes(op: ir.Operation) -> bool:
    """Whether an op computes a float of numbers, which a size is not."""
    return len(op.results) == 1 and str(op.results[0].type) == "!torch.float" and _kind(op) in _ON_FLOATS


def _power(base: Any, exponent: Any) -> Any:
    """A whole power of a size, as a product."""
    if not isinstance(exponent, int) or not 0 <= exponent <= _MOST_FACTORS:
        raise TypeError
    return functools.reduce(operator.mul, [base] * exponent, 1)


#: Elements of tensors as numbers, and what they are then.
_ELEMENTS = {
    "torch.aten.Int.Tensor": "int", "torch.aten.IntImplicit": "int", "torch.aten.Float.Tensor": "float",
    "torch.aten.FloatImplicit": "float", "torch.aten.Bool.Tensor": "bool",
}  # fmt: skip

#: Arithmetic on integers that is done when the model runs.
_ON_ELEMENTS: dict[str, type[EffectOp]] = {
    "torch.aten.add.int": ops.Add,
    "torch.aten.sub.int": ops.Subtract,
    "torch.aten.mul.int": ops.Multiply,
    "torch.aten.floordiv.int": ops.FloorDivide,
    "torch.aten.remainder.int": ops.Mod,
    "torch.aten.neg.int": ops.Negative,
    "torch.aten.eq.int": ops.Equal,
    "torch.aten.ne.int": ops.NotEqual,
    "torch.aten.lt.int": ops.Less,
    "torch.aten.le.int": ops.LessEqual,
    "torch.aten.gt.int": ops.Greater,
    "torch.aten.ge.int": ops.GreaterEqual,
}

#: What says nothing new of an element.
_SAME = ("torch.aten.Int.bool", "torch.aten.Int.Scalar")  # fmt: skip


def number_dtype(value: Any) -> ir.Type:
    """The dtype that torch gives a Python number. Raises RelaxError for what is no number."""
    if isinstance(value, bool):
        return integer(1)
    if isinstance(value, int | Expr):
        return integer()
    if isinstance(value, float):
        return ir.F32Type.get()
    raise RelaxError(f"expected a number, got {value}")


def op_key(op: ir.Operation) -> str:
    """``aten.add.Tensor`` for the op that the torch dialect knows, or carries as ``torch.operator``, under that name."""
    name = ir.StringAttr(op.attributes["name"]).value if op.name == "torch.operator" else op.name
    return name.removeprefix("torch.")
