"""A torch op as conversion handlers see it: operands as relax values or Python values, results as declared; and the op map."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..dialect import ops, symbolic
from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.inference import is_float, normalize_axis
from ..dialect.op import EffectOp
from ..dialect.struct_info import TensorInfo
from ..dialect.symbolic import Dim, Expr
from .emit import cast, emit, emit_check, full, info_of, integer, match, multiply_all, reshape
from .torch_types import affine_dims, tensor_info

__all__ = [
    "ALIKE",
    "HANDLERS",
    "KIND",
    "SYMBOL",
    "Handler",
    "TorchOp",
    "UnmappedError",
    "Values",
    "handles",
    "number_dtype",
    "op_key",
]

#: Argument attribute: ``input``, ``state``, ``param``, ``buffer`` or ``constant``; of results ``output`` or ``state``.
KIND = "relax.kind"
#: Argument attribute, while a program is imported: the integer that all elements of a weight are.
ALIKE = "relax.alike"

#: Attribute of an element that is a number, while a program is imported: the symbol that torch's shapes call it by.
SYMBOL = "relax.symbol"


class UnmappedError(RelaxError):
    """The op map has nothing for an operator, or for this use of it; torch-mlir's own lowering of it may do."""


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
        self._varies: dict[ir.Value, bool] = {}
        self._found = 0
        self.elements: dict[str, ir.Value] = {}
        self.defined: set[str] = set()

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
        """Whether a torch number is an element of a tensor, or computed from one."""
        if isinstance(value, ir.BlockArgument):
            return False
        op = value.owner.operation
        name = f"torch.{op_key(op)}"
        known = name in _ARITHMETIC or name in _ON_ELEMENTS
        return name in _ELEMENTS or (known and any(self.is_from_data(v) for v in op.operands))

    def element(self, value: ir.Value) -> ir.Value:
        """Such a number as a tensor without dimensions, computed when the model runs; integers are i64, as Python's are here.

        Raises:
            RelaxError: it is computed in a way that is not known here.
        """
        if not self.is_from_data(value):
            return full(self.number(value), integer())
        op = value.owner.operation
        name = f"torch.{op_key(op)}"
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
        high = self.ranges.get(name, (0, None))[1]
        if high is None:
            raise RelaxError("expected a number with an upper limit to decide a size: torch._check(n <= 100) says one")
        count = reshape(self.element(self.elements[name]), (1,))
        whole = full(False, integer(1), (high,))
        part = emit(ops.DynamicStridedSlice, whole, full(0, integer(), (1,)), count, axes=[0])
        part = match(part, info_of(part).with_(shape=[symbolic.symbol(name)]))
        self.defined.add(name)
        emit_check(part)
        # Beyond the limit, or below 0, sizes would be others than the number.
        differs = emit(ops.NotEqual, count, full(symbolic.symbol(name), integer(), (1,)))
        emit_check(emit(ops.Take, full(0, integer(), (1,)), cast(differs, integer()), axis=0))

    def depends_on_input(self, value: ir.Value) -> bool:
        """Whether a relax value is computed from what the caller passes, beyond its sizes. Visits every value once in all."""
        pending = [value]
        while pending:
            current = pending[-1]
            operands = [] if isinstance(current, ir.BlockArgument) else list(current.owner.operands)
            unknown = [v for v in operands if v not in self._varies]
            if current not in self._varies and unknown:
                pending.extend(unknown)
                continue
            pending.pop()
            is_input = isinstance(current, ir.BlockArgument) and current not in self.weights
            self._varies[current] = is_input or any(self._varies[v] for v in operands)
        return self._varies[value]

    def bind_shape(self, op: ir.Operation) -> None:
        """Takes note of a ``torch.bind_symbolic_shape``."""
        value, *symbols = op.operands
        map_ = ir.AffineMapAttr(op.attributes["shape_expressions"]).value
        self.shapes[value] = tuple(affine_dims(map_, [self.number(s) for s in symbols]))

    def bind_symbol(self, op: ir.Operation) -> None:
        """Takes note of a ``torch.symbolic_int`` and its range."""
        name = ir.StringAttr(op.attributes["symbol_name"]).value
        low, high = (ir.IntegerAttr(op.attributes[k]).value for k in ("min_val", "max_val"))
        self._numbers[op.results[0]] = symbolic.symbol(name)
        self.ranges[name] = (max(low, 0), None if high >= 2**62 else high)

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
        if name in _ARITHMETIC:
            return self._compute(name, [self.number(v) for v in op.operands])
        raise RelaxError(f"expected a number known at import, got one computed by {op_key(op)}")

    def _size(self, op: ir.Operation) -> Dim:
        shape = info_of(self.tensors[op.operands[0]]).shape
        size = shape[normalize_axis(self.number(op.operands[1]), len(shape))]
        if size is None:
            raise RelaxError("expected a size that is known or symbolic, got an unknown one")
        return size

    def _compute(self, name: str, operands: list[Any]) -> Any:
        try:
            return _ARITHMETIC[name](*operands)
        except (TypeError, ZeroDivisionError):
            shown = ", ".join(map(str, operands))
            raise RelaxError(f"expected numbers that {name.removeprefix('torch.')} computes at import, got {shown}") from None


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "torch.aten.add.int": operator.add,
    "torch.aten.sub.int": operator.sub,
    "torch.aten.mul.int": operator.mul,
    "torch.aten.floordiv.int": operator.floordiv,
    "torch.aten.remainder.int": operator.mod,
    "torch.aten.fmod.int": operator.mod,  # the importer's name for ``%`` of two sizes, which is Python's
    "torch.aten.neg.int": operator.neg,
    "torch.aten.Int.bool": int,
    "torch.aten.Int.Scalar": lambda x: x if isinstance(x, Expr) else int(x),
    "torch.aten.Float.Scalar": lambda x: x if isinstance(x, Expr) else float(x),
    "torch.aten.Float.bool": float,
    "torch.aten.ScalarImplicit": lambda x: x,
}


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


class TorchOp:
    """One op of the torch dialect, while its handler runs."""

    def __init__(self, op: ir.Operation, values: Values):
        self.key = op_key(op)
        self.op = op
        self.values = values
        self.operands = list(op.operands)
        self.results = [values.declared(r) for r in op.results]

    @property
    def info(self) -> TensorInfo:
        """What torch declares of the first result."""
        found = self.results[0] if self.results else None
        if found is None:
            raise RelaxError("expected a tensor as result")
        return found

    @property
    def dtype(self) -> ir.Type:
        return self.info.dtype

    def is_used(self, index: int) -> bool:
        """Whether anything reads a result."""
        return next(iter(self.op.results[index].uses), None) is not None

    def is_tensor(self, index: int) -> bool:
        return self.operands[index] in self.values.tensors

    def tensor(self, index: int) -> ir.Value:
        """The relax value of an operand. Raises RelaxError when it is no tensor."""
        found = self.values.tensors.get(self.operands[index])
        if found is None:
            raise RelaxError(f"expected a tensor as operand {index}")
        return found

    def optional(self, index: int) -> ir.Value | None:
        """The relax value of an operand, None when it is absent."""
        return self.values.tensors.get(self.operands[index])

    def tensors(self, index: int) -> list[ir.Value]:
        """The relax values of a list of tensors, all present."""
        found = [v for v in self.optionals(index) if v is not None]
        if not found or len(found) != len(self.optionals(index)):
            raise RelaxError(f"expected a list of tensors as operand {index}")
        return found

    def optionals(self, index: int) -> list[ir.Value | None]:
        """The relax values of a list of tensors, None for an absent one."""
        value = self.operands[index]
        if value in self.values.lists:
            return self.values.lists[value]
        owner = None if isinstance(value, ir.BlockArgument) else value.owner.operation
        if owner is None or owner.name != "torch.prim.ListConstruct":
            raise RelaxError(f"expected a list of tensors as operand {index}")
        return [self.values.tensors.get(v) for v in owner.operands]

    def is_from_data(self, index: int) -> bool:
        """Whether an operand is a number that is computed from the elements of a tensor."""
        return index < len(self.operands) and not self.is_tensor(index) and self.values.is_from_data(self.operands[index])

    def is_number(self, index: int) -> bool:
        """Whether an operand is a number that is known at import, or a symbolic size."""
        return not self.is_tensor(index) and not self.is_from_data(index)

    def number_or_value(self, index: int) -> Any:
        """The Python value of an operand, or, where it is computed from elements, a tensor without dimensions."""
        if self.is_from_data(index):
            return self.values.element(self.operands[index])
        return self.number(index)

    def number(self, index: int, default: Any = None) -> Any:
        """The Python value of an operand; ``default`` for an operand that is not there or None."""
        if index >= len(self.operands):
            return default
        found = self.values.number(self.operands[index])
        return default if found is None else found

    def integer(self, index: int, what: str, default: int | None = None) -> int:
        """An operand that must be a Python integer. Raises RelaxError for a symbolic one."""
        found = self.number(index, default)
        if not isinstance(found, int):
            raise RelaxError(f"expected a constant {what}, got {found}")
        return int(found)

    def axis(self, index: int, rank: int) -> int:
        """An operand that is an axis, counted from the start."""
        return normalize_axis(self.integer(index, "axis"), max(rank, 1))

    def operand_dtype(self, index: int) -> tuple[ir.Type, int | None]:
        """Dtype and rank of an operand as promotion looks at it; a Python number has no rank."""
        if self.is_tensor(index):
            info = info_of(self.tensor(index))
            return info.dtype, info.rank
        if self.is_from_data(index):
            dtype = info_of(self.values.element(self.operands[index])).dtype
            return (ir.F32Type.get() if is_float(dtype) else dtype), None
        return number_dtype(self.number(index)), None

    def value_in(self, index: int, dtype: ir.Type) -> ir.Value:
        """An operand, tensor or number, as a tensor of that dtype."""
        if self.is_tensor(index):
            return cast(self.tensor(index), dtype)
        if self.is_from_data(index):
            return cast(self.values.element(self.operands[index]), dtype)
        return full(self.number(index), dtype)


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


Handler = Callable[[TorchOp], "ir.Value | Sequence[ir.Value | None]"]

#: The op map: how each torch op is written in relax, by its name in the torch dialect without ``torch.``.
HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Registers a function as the handler of these torch ops.

    A handler returns one relax value per result; None stands for a result that it cannot give and that nothing may use.
    """

    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
        return handler

    return register
