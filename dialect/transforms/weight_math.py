"""Weight math: which values of a function are, and small ops on weights that passes emit at the insertion point."""

from __future__ import annotations

from ..bindings import func, ir
from ..functions import body_of, num_input
from ..op import Op
from ..ops import AsType, ExpandDims, StopLiftParams
from ..struct_info import TensorInfo
from ..traversal import nested_operations

__all__ = ["cast", "compute_dtype", "is_weight_math", "known_values", "single_use", "spread"]


def known_values(function: func.FuncOp) -> set[ir.Value]:
    """The weights of a function, its constants, and what pure relax ops compute from those; nested regions included."""
    block, inputs = body_of(function), num_input(function)
    known: set[ir.Value] = set()
    if block is None:
        return known
    if inputs is not None:
        known.update(list(block.arguments)[inputs:])
    for op in nested_operations(function.operation):
        if is_weight_math(op, known):
            known.update(op.results)
    return known


def is_weight_math(op: ir.Operation, known: set[ir.Value]) -> bool:
    """Whether an op is a constant, or computes on weights and constants alone and may be lifted."""
    if op.name == "arith.constant":
        return True
    return isinstance(op.opview, Op) and op.name != StopLiftParams.OPERATION_NAME and all(v in known for v in op.operands)


def compute_dtype(*dtypes: ir.Type) -> ir.Type:
    """The float dtype that weight math is done in: f64 when one of them is, else f32."""
    return next((d for d in dtypes if isinstance(d, ir.F64Type)), ir.F32Type.get())


def cast(value: ir.Value, dtype: ir.Type) -> ir.Value:
    """The value in a dtype; itself when that is its own."""
    return value if TensorInfo.of(value).dtype == dtype else AsType.create(value, dtype=dtype).result


def spread(value: ir.Value, axes: list[int], rank: int) -> ir.Value:
    """A tensor with dimensions of size one inserted, so that its own are ``axes`` (ascending) of that many."""
    inserted = [i for i in range(rank) if i not in axes]
    return ExpandDims.create(value, axis=inserted).result if inserted else value


def single_use(value: ir.Value) -> ir.OpView | None:
    """The only op that reads a value, and reads it once; None when there are more or none."""
    uses = list(value.uses)
    return uses[0].owner if len(uses) == 1 else None
