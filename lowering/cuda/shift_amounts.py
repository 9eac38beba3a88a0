"""Amounts of 64-bit shifts of which LLVM's back end for NVIDIA GPUs knows nothing.

Before::

    %y = arith.shli %x, %n : i64

after::

    %m = llvm.inline_asm "", "=l,0" %n : (i64) -> i64
    %y = arith.shli %x, %m : i64

PTX shifts by amounts of 32 bits, and those beyond the width shift all bits out. So LLVM 22 leaves a condition away that the
amount is less than 64, though of one like 2**32 + 1 the 1 alone is left; unless the condition is of another value.
"""

from __future__ import annotations

from ...dialect.bindings import ir
from ..kernels.emit.emitter import Emitter
from ..kernels.function_bodies import function_bodies

__all__ = ["hide_amounts"]

_SHIFTS = ("arith.shli", "arith.shrsi", "arith.shrui")
_WIDTH = 64


def hide_amounts(module: ir.Operation) -> None:
    """Hides the amounts in place, in every function; those that are constants, or of fewer bits, stay."""
    for function, block in function_bodies(module):
        emitter = Emitter(block)
        for operation in _found(function):
            with emitter.before(operation):
                operation.operands[1] = _hidden(emitter, operation.operands[1])


def _hidden(em: Emitter, amounts: ir.Value) -> ir.Value:
    """An amount, or a vector of them, whose elements become scalars anyway."""
    if not isinstance(amounts.type, ir.VectorType):
        return _hidden_scalar(em, amounts)
    elements = [em.lane(amounts, i) for i in range(amounts.type.shape[0])]
    return em.op("vector.from_elements", [_hidden_scalar(em, e) for e in elements], amounts.type)


def _hidden_scalar(em: Emitter, amount: ir.Value) -> ir.Value:
    i64, kind = em.integer(_WIDTH), amount.type
    is_index = isinstance(kind, ir.IndexType)
    word = em.op("arith.index_cast", [amount], i64) if is_index else amount
    attributes: dict[str, ir.Attribute] = {
        "asm_string": ir.StringAttr.get("", em.context), "constraints": ir.StringAttr.get("=l,0", em.context),
    }  # fmt: skip
    word = em.op("llvm.inline_asm", [word], i64, attributes)
    return em.op("arith.index_cast", [word], kind) if is_index else word


def _found(function: ir.Operation) -> list[ir.Operation]:
    found = list[ir.Operation]()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in _SHIFTS and _is_wide(operation.results[0].type) and not _is_constant(operation.operands[1]):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _is_wide(kind: ir.Type) -> bool:
    if isinstance(kind, ir.VectorType):
        return kind.rank == 1 and _is_wide(kind.element_type)
    return isinstance(kind, ir.IndexType) or (isinstance(kind, ir.IntegerType) and kind.width == _WIDTH)


def _is_constant(value: ir.Value) -> bool:
    return not isinstance(value, ir.BlockArgument) and value.owner.name == "arith.constant"
