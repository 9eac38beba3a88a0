"""A torch op as conversion handlers see it: operands as relax values or Python values, results as declared; and the op map."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..dialect import symbolic
from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.inference import normalize_axis
from ..dialect.struct_info import TensorInfo
from ..dialect.symbolic import Dim, Expr
from .emit import cast, full, info_of, integer, multiply_all
from .torch_types import affine_dims, tensor_info

__all__ = ["ALIKE", "HANDLERS", "KIND", "Handler", "TorchOp", "UnmappedError", "Values", "handles", "number_dtype", "op_key"]

#: Argument attribute: ``input``, ``state``, ``param``, ``buffer`` or ``constant``; of results ``output`` or ``state``.
KIND = "relax.kind"
#: Argument attribute, while a program is imported: the integer that all elements of a weight are.
ALIKE = "relax.alike"


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

    def number(self, value: ir.Value) -> Any:
        """The Python value of a torch number, string or list of them; sizes are symbolic expressions.

        Raises:
            RelaxError: it is computed from the contents of a tensor, or by an op that is not known here.
        """
        if value not in self._numbers:
            self._numbers[value] = self._evaluate(value)
        return self._numbers[value]

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
        return number_dtype(self.number(index)), None

    def value_in(self, index: int, dtype: ir.Type) -> ir.Value:
        """An operand, tensor or number, as a tensor of that dtype."""
        if self.is_tensor(index):
            return cast(self.tensor(index), dtype)
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
