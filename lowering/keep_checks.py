"""Keeps relax ops that a call can fail in and that nothing may read, so that compiled code refuses what ``evaluate`` does.

Before::

    %0 = "relax.take"(%x, %i) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
    return %x

after::

    %0 = "relax.take"(%x, %i) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
    "relax.keep"(%0)
    return %x

MLIR drops pure ops that go unread, and what they would check with them. Checks are made where ops become linalg; then the op
goes, and the check stays. An op whose result surely gets to a result of a public function is left alone. What scalar operations
of other dialects ask is checked by then (:mod:`.check_scalars`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..dialect.analysis.inner_sizes import is_size
from ..dialect.analysis.known_sizes import KnownSizes, known_sizes
from ..dialect.bindings import func, ir
from ..dialect.functions import body_of, functions, is_private
from ..dialect.op import EffectOp, Op, attrs_of
from ..dialect.ops import Keep
from ..dialect.struct_info import TensorInfo, is_tensor
from ..dialect.symbolic import Dim
from ..dialect.traversal import nested_operations
from .lowering_pass import LoweringPass

__all__ = ["KeepChecks", "may_fail"]


@dataclass(frozen=True)
class KeepChecks(LoweringPass):
    """Keeps relax ops that may fail and that nothing may read."""

    name: ClassVar[str] = "relax-keep-checks"

    def run(self, op: ir.Operation) -> None:
        for function in functions(op):
            if body_of(function) is not None:
                _keep_in(function)


def _keep_in(function: func.FuncOp) -> None:
    ops = list(nested_operations(function.operation))
    needed = _surely_read(ops, is_private(function))
    doubtful = [op for op in ops if len(op.results) and not any(r in needed for r in op.results)]
    if not doubtful:
        return
    sizes = known_sizes(function)
    for op in doubtful:
        if may_fail(op, sizes):
            with ir.InsertionPoint.after(op), op.location:
                Keep.create(op.results[0])


# -- what may fail -------------------------------------------------------------------------------------------------


def may_fail(op: ir.Operation, sizes: KnownSizes) -> bool:
    """Whether there are calls that an op refuses, by values or by sizes."""
    if any(not _is_proven(r) for r in op.results):
        return True
    if op.name == "tensor.cast":
        return TensorInfo.of(op.results[0]).shape != TensorInfo.of(op.operands[0]).shape
    view = op.opview
    if not isinstance(view, EffectOp):
        return False
    if view.may_fail or not all(_is_possible(d) for d in _named(view)):
        return True
    of_op, needed = sizes.of(view)
    return bool(needed or of_op.unproven)


def _is_proven(value: ir.Value) -> bool:
    """Whether no size of a value is one that symbols may make impossible."""
    return not is_tensor(value) or all(map(_is_possible, TensorInfo.of(value).shape))


def _is_possible(dim: Dim) -> bool:
    return dim is None or isinstance(dim, int) or is_size(dim, 0)


def _named(op: EffectOp) -> Iterator[Dim]:
    """The sizes that an op's attributes name."""
    for name, value in attrs_of(op).items():
        yield from value or () if op.attrs[name].symbolic else ()


# -- what is read --------------------------------------------------------------------------------------------------


def _surely_read(ops: list[ir.Operation], private: bool) -> set[ir.Value]:
    """Values that get to results of the function, or to effects, by ways on which nothing is folded away.

    What a private function returns its callers may not read.
    """
    ends = ("func.call",) if private else ("func.call", "func.return")
    pending = [v for op in ops if _is_root(op, ends) for v in op.operands]
    found: set[ir.Value] = set()
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            pending += _read_with(value)
    return found


def _is_root(op: ir.Operation, ends: tuple[str, ...]) -> bool:
    view = op.opview
    return op.name in ends or (isinstance(view, EffectOp) and not isinstance(view, Op))


def _read_with(value: ir.Value) -> Iterator[ir.Value]:
    """What is read where a value is."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        around, number = owner.owner.operation, ir.BlockArgument(value).arg_number
        if around.name in _BY_ARGUMENT:
            yield from _BY_ARGUMENT[around.name](around, owner, number)
        return
    op = owner.operation
    if isinstance(op.opview, Op) or op.name == "tensor.cast":
        yield from op.operands
    elif op.name in _BY_RESULT:
        yield from _BY_RESULT[op.name](op, ir.OpResult(value).result_number)
    elif op.name.startswith("linalg."):
        arguments = op.regions[0].blocks[0].arguments
        yield from (v for v, a in zip(op.operands, arguments, strict=True) if any(True for _ in a.uses))


def _handed_on(region: ir.Region, position: int) -> ir.Value:
    """An operand of what a block of control flow ends with."""
    return list(region.blocks[0].operations)[-1].operands[position]


def _of_branches(branch: ir.Operation, number: int) -> Iterator[ir.Value]:
    yield from (_handed_on(region, number) for region in branch.regions)


def _of_loop(loop: ir.Operation, number: int) -> Iterator[ir.Value]:
    """Behind the bounds and the step come the values that a loop starts with."""
    yield loop.operands[3 + number]
    yield _handed_on(loop.regions[0], number)


def _in_loop(loop: ir.Operation, block: ir.Block, number: int) -> Iterator[ir.Value]:
    """The first argument is the turn."""
    yield from _of_loop(loop, number - 1) if number else ()


def _of_while(loop: ir.Operation, number: int) -> Iterator[ir.Value]:
    """What the first part hands to the second, and in the end on: behind the condition."""
    yield _handed_on(loop.regions[0], 1 + number)


def _in_while(loop: ir.Operation, block: ir.Block, number: int) -> Iterator[ir.Value]:
    if block == loop.regions[1].blocks[0]:
        yield from _of_while(loop, number)
        return
    yield loop.operands[number]
    yield _handed_on(loop.regions[1], number)


_BY_RESULT: dict[str, Callable[[ir.Operation, int], Iterator[ir.Value]]] = {
    "scf.for": _of_loop, "scf.if": _of_branches, "scf.while": _of_while,
}  # fmt: skip
_BY_ARGUMENT: dict[str, Callable[[ir.Operation, ir.Block, int], Iterator[ir.Value]]] = {
    "scf.for": _in_loop, "scf.while": _in_while,
}  # fmt: skip
