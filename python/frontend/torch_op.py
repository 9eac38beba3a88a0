"""A torch op as conversion handlers see it: operands as relax values or Python values, results as declared; and the op map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.inference import is_float, normalize_axis
from ..dialect.struct_info import TensorInfo
from .emit import cast, full, info_of
from .torch_values import Values, is_read, number_dtype, op_key

__all__ = ["HANDLERS", "Handler", "TorchOp", "UnmappedError", "handles"]


class UnmappedError(RelaxError):
    """The op map has nothing for an operator, or for this use of it; torch-mlir's own lowering of it may do."""


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
        """Whether anything reads a result that is read itself: torch.export leaves reads of results that nobody asked for."""
        return any(is_read(use.owner.operation, self.values.read) for use in self.op.results[index].uses)

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
