"""Loop-carried tensors in buffers of their own: each iteration's results are copied to where the next one reads them.

Before::

    scf.for ... iter_args(%a = %x, %b = %y) {
      ...
      scf.yield %v, %a
    }

after (upstream bufferization wants each yielded buffer to be the iteration argument's)::

      %t0 = bufferization.materialize_in_destination %v in %empty0
      %t1 = bufferization.materialize_in_destination %a in %empty1
      %c0 = bufferization.materialize_in_destination %t0 in %a
      %c1 = bufferization.materialize_in_destination %t1 in %b
      scf.yield %c0, %c1

Two copies, because what is yielded may be another iteration argument. One that is yielded as it is needs none.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.functions import functions
from ...dialect.struct_info import TensorInfo, is_tensor
from ..linalg.kernel import KERNEL
from ..tensors import empty_like

__all__ = ["carry_in_place", "check_carried_shapes"]


def check_carried_shapes(module: ir.Operation) -> None:
    """Raises RelaxError where a loop carries a tensor of unknown shape: its buffer could not be of one size."""

    for loop in _loops(module):
        for value in _carried(loop):
            if is_tensor(value) and None in TensorInfo.of(value).shape:
                raise RelaxError(
                    f"'{loop.name}' op expected loop-carried tensors of known shape, got {value.type}", loop.location
                )


def carry_in_place(module: ir.Operation) -> None:
    """Inserts the copies in every ``scf.for`` and ``scf.while`` on plain tensors; in place.

    The loops of kernels write into what they carry already.
    """
    loops = [loop for f in functions(module) if KERNEL not in f.attributes for loop in _loops(f.operation)]
    for loop in loops:
        arguments = _carried(loop)
        for terminator in _ends(loop):
            offset = 1 if terminator.name == "scf.condition" else 0
            _copy_into(arguments, terminator, offset)


def _loops(module: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in ("scf.for", "scf.while"):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    return found


def _carried(loop: ir.Operation) -> list[ir.Value]:
    """The region arguments that hold a loop's state: those after the counter, or of the part that decides."""
    arguments = list(loop.regions[0].blocks[0].arguments)
    return arguments[1:] if loop.name == "scf.for" else arguments


def _ends(loop: ir.Operation) -> list[ir.Operation]:
    """The terminators of a loop's regions."""
    return [list(region.blocks[0].operations)[-1].operation for region in loop.regions]


def _copy_into(arguments: Sequence[ir.Value], terminator: ir.Operation, offset: int) -> None:
    """Copies what a terminator passes on to the arguments that take it. Only the region of the arguments can name them."""
    inside = terminator.block == arguments[0].owner if arguments else False
    targets = arguments if inside else list(terminator.block.arguments)
    pairs = [
        (i + offset, value, target)
        for i, (value, target) in enumerate(zip(list(terminator.operands)[offset:], targets, strict=False))
        if is_tensor(value) and value.type == target.type and value != target
    ]
    with ir.InsertionPoint(terminator), terminator.location:
        copies = [(i, _copy(value, empty_like(target)), target) for i, value, target in pairs]
        for i, value, target in copies:
            terminator.operands[i] = _copy(value, target)


def _copy(value: ir.Value, into: ir.Value) -> ir.Value:
    return ir.Operation.create("bufferization.materialize_in_destination", [value.type], [value, into]).result
