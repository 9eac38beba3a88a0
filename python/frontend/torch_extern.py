"""An operator of torch that a C function computes, as ``relax.call_extern``."""

from __future__ import annotations

from typing import Any

from ..dialect import ops
from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.extern_functions import dl_type
from ..dialect.symbolic import Expr
from .custom_operators import Extern, registered_operator
from .emit import cast, full, info_of, integer
from .torch_op import TorchOp
from .torch_types import is_tensor_list

__all__ = ["call_extern"]


def call_extern(op: TorchOp, extern: Extern) -> list[ir.Value]:
    """The results of the operator.

    Raises:
        RelaxError: a C function cannot get an argument or give a result of it.
    """
    kinds = _floats(op)
    tensors: list[ir.Value] = []
    arguments: list[Any] = []
    for index in range(len(op.operands)):
        if op.is_tensor(index):
            tensors.append(op.tensor(index))
        elif is_tensor_list(op.operands[index].type):
            tensors += [x for x in op.optionals(index) if x is not None]
        else:
            arguments += _numbers(op, index, kinds[index])
    for x in tensors:
        dl_type(info_of(x).dtype)
    attrs: dict[str, Any] = {"symbol": extern.symbol, "library": extern.library, "version": extern.version}
    numbers = [a for a in arguments if isinstance(a, ir.Value)]
    given = [... if isinstance(a, ir.Value) else a for a in arguments]
    made = ops.CallExtern.create(*tensors, *numbers, result_types=_types(op), arguments=given, **attrs)
    return list(made.results)


def _floats(op: TorchOp) -> list[bool]:
    """Of each argument, whether the operator's schema says that it is a float, or any number, which C gets as one.

    What the graph has does not tell: 2 may stand for 2.0.
    """
    operator = registered_operator(op.key.replace(".", "::", 1))
    kinds = [str(a.type) for a in operator._schema.arguments]
    return [any(name in kind for name in ("float", "number", "Scalar")) for kind in kinds]


def _numbers(op: TorchOp, index: int, is_float: bool) -> list[Any]:
    """What a C function gets of an argument that is no tensor; nothing of None. What is known at run time alone is a tensor."""
    if op.is_from_data(index):
        x = op.values.element(op.operands[index])
        return [cast(x, ir.F64Type.get()) if is_float else x]
    found = op.number(index)
    values: list[Any] = [] if found is None else list(found) if isinstance(found, list | tuple) else [found]
    for value in values:
        if not isinstance(value, bool | int | float | str | Expr):
            raise RelaxError(f"expected numbers and texts for a C function, got {value!r} as argument {index}")
    kind = ir.F64Type.get() if is_float else integer()
    return [full(v, kind) if isinstance(v, Expr) else float(v) if is_float and not isinstance(v, str) else v for v in values]


def _types(op: TorchOp) -> list[ir.Type]:
    """Those of the results, whose sizes are known before the call."""
    types: list[ir.Type] = []
    for index, info in enumerate(op.results):
        if info is None:
            raise RelaxError(f"expected tensors as results of a C function, got {op.op.results[index].type}")
        dl_type(info.dtype)
        unknown = {n for d in info.shape if isinstance(d, Expr) for n in d.names} - op.values.defined
        if None in info.shape or unknown:
            raise RelaxError("expected results of a C function whose sizes those of inputs decide, got sizes that data decides")
        types.append(info.type)
    return types
