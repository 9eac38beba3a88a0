"""Takes layers that are like their neighbours out of a function, until what is left of it has been lowered.

Before, with as many layers between::

    func.func @main(%x, %w0, %w1, ... %w31) -> (%y, %k0, ... %k31) {
      %1 = "relax.packed_matmul"(%x, %w0) ...
      ...
      %32 = "relax.packed_matmul"(%31, %w31) ...

after, with the arguments, and without results, of those that are gone::

    func.func @main(%x, %w0, %w1, ... %w31) -> (%y, %k0, ... %k3, %k27, ... %k31) {
      ...
      %4 = "relax.packed_matmul"(%3, %w3) ...
      %28 = "relax.packed_matmul"(%4, %w27) ...

It is a function as any other, of a model of fewer layers: what it becomes tells what layers become (:mod:`.lengthen`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialect.analysis.index_range import reads_inside
from ...dialect.bindings import func, ir
from ...dialect.functions import body_of
from ...dialect.op import EffectOp
from ..fusion.repeat_producers import FEW_READERS
from .layer_arguments import LayerArguments, chains_of
from .repetition import ARGUMENT, LayerReads, Repetition, find_repetition

__all__ = ["Shortened", "shorten"]

# How many stay in front: the first ones share kernels with what is in front of them. With one behind these are more than
# readers that are told apart by their number, so that what all layers read is lowered as if all of them were there.
_FRONT = max(3, FEW_READERS)
# So many have to go: of fewer, lowering takes less time than looking for them.
_LEAST = 2


@dataclass(frozen=True)
class Shortened:
    """What has been taken out of a function.

    Attributes:
        arguments: which of them are the same for all layers.
        removed: how many layers.
        returned: of each result that there was: the operation that made it, counted from the first one removed, and which of
            its results it was; None for what no layer made.
        result_attributes: those of all results that there were.
        locations: of the operations of layers that are there, and those removed, in order, from the first.
        period: how many operations a layer has.
        first_removed: how many of ``locations`` are in front of those removed.
    """

    arguments: LayerArguments
    removed: int
    returned: list[tuple[int, int] | None]
    result_attributes: ir.Attribute | None
    locations: list[ir.Location]
    period: int
    first_removed: int


def shorten(function: func.FuncOp, behind: int) -> Shortened | None:
    """Takes layers out, in place, in time linear in operations; None, and nothing changed, where there are few.

    Args:
        behind: how many stay behind those taken out.
    """
    block = body_of(function)
    if block is None or len(function.regions[0].blocks) > 1 or len(block.operations) < (_FRONT + behind + _LEAST) * 2:
        return None
    reads = LayerReads.of(block)
    found = find_repetition(reads, lambda one, other: True, _FRONT + behind + _LEAST)
    chains = None if found is None else chains_of(function, reads, found)
    if found is None or not chains:
        return None
    begin = _begin(reads, found)
    if begin is None:
        return None
    removed = (found.last - begin) // found.period - behind
    end = begin + removed * found.period
    gone = {a for n in range(begin, end) for m, a in reads.reads[n] if m == ARGUMENT} & {a for chain in chains for a in chain}
    arguments = LayerArguments.of(chains, gone, removed)
    moved = _moved(reads, found, begin, end)
    if removed < _LEAST or arguments is None or moved is None or _tell_apart(reads, found, begin):
        return None
    made = _record(function, reads, found, (begin, end), arguments)
    _remove(function, reads, begin, end, moved)
    return made


def _begin(reads: LayerReads, found: Repetition) -> int | None:
    """The first operation to go: of those a few layers behind the first one, where no argument is read before and behind."""
    last_read: dict[int, int] = {}
    first_read: dict[int, int] = {}
    for number in range(found.first, found.last):
        for maker, argument in reads.reads[number]:
            if maker == ARGUMENT:
                first_read.setdefault(argument, number)
                last_read[argument] = number
    spans = [(first_read[a], last_read[a]) for a in first_read if last_read[a] - first_read[a] < 2 * found.period]
    start = found.first + _FRONT * found.period
    for begin in range(start, start + found.period):
        if not any(first < begin <= last for first, last in spans):
            return begin
    return None


def _tell_apart(reads: LayerReads, found: Repetition, begin: int) -> bool:
    """Whether an operation of a layer may fail with a message that says which one it is, by its place.

    Indices that all layers have are looked at in the first one.
    """
    for number in range(begin - found.period, begin):
        op, other = reads.ops[number], reads.ops[number + found.period]
        may_fail = isinstance(op.opview, EffectOp) and op.opview.may_fail and not reads_inside(op.opview)
        if not may_fail or op.location == other.location:
            continue
        if not set(reads.reads[number]) & set(reads.reads[number + found.period]):
            return True
    return False


def _moved(reads: LayerReads, found: Repetition, begin: int, end: int) -> dict[tuple[int, int], tuple[int, int]] | None:
    """What operands, by operation and position, read without those in between; None where they are read from elsewhere."""
    moved: dict[tuple[int, int], tuple[int, int]] = {}
    for number in range(end, len(reads.ops)):
        for position, (maker, result) in enumerate(reads.reads[number]):
            if not found.first <= maker < end:
                continue
            if number >= found.last or maker < begin:
                return None
            moved[number, position] = maker - (end - begin), result
    return moved


def _record(
    function: func.FuncOp, reads: LayerReads, found: Repetition, span: tuple[int, int], arguments: LayerArguments
) -> Shortened:  # fmt: skip
    begin, _ = span
    returned = [(m - begin, r) if found.first <= m < found.last else None for m, r in reads.returned]
    results = function.attributes.get("res_attrs", None)
    locations = [op.location for op in reads.ops[found.first : found.last]]
    return Shortened(arguments, arguments.removed, returned, results, locations, found.period, begin - found.first)


def _remove(
    function: func.FuncOp, reads: LayerReads, begin: int, end: int, moved: dict[tuple[int, int], tuple[int, int]]
) -> None:  # fmt: skip
    for (number, position), (maker, result) in moved.items():
        reads.ops[number].operands[position] = reads.ops[maker].results[result]
    kept = [i for i, (maker, _) in enumerate(reads.returned) if not begin <= maker < end]
    if len(kept) < len(reads.returned):
        _return(function, reads.end, [reads.end.operands[i] for i in kept])
        if "res_attrs" in function.attributes:
            attributes = list(ir.ArrayAttr(function.attributes["res_attrs"]))
            function.attributes["res_attrs"] = ir.ArrayAttr.get([attributes[i] for i in kept])
    for op in reversed(reads.ops[begin:end]):
        op.erase()


def _return(function: func.FuncOp, end: ir.Operation, values: list[ir.Value]) -> None:
    """Returns other values, which the type of the function then says."""
    with ir.InsertionPoint(end), end.location:
        func.ReturnOp(values)
    end.erase()
    inputs = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs
    type_ = ir.FunctionType.get(inputs, [v.type for v in values])
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
