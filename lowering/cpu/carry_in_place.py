"""Loop-carried tensors in buffers of their own: each iteration's results are copied to where the next one reads them.

Before::

    scf.for ... iter_args(%a = %x, %b = %y) {
      ...
      scf.yield %v, %a
    }

after (upstream bufferization wants each yielded buffer to be the iteration argument's)::

      %t0 = bufferization.alloc_tensor() copy(%v)
      %t1 = bufferization.alloc_tensor() copy(%a)
      %c0 = bufferization.materialize_in_destination %t0 in %a
      %c1 = bufferization.materialize_in_destination %t1 in %b
      scf.yield %c0, %c1

Two copies, because what is yielded may be another iteration argument. One that is yielded as it is needs none. A loop starts
from copies of what others may read, and branches hand on copies where a loop's memory is among what they may hand on, or what a
kernel has written into that was there before.

What the deciding region of ``scf.while`` passes on has to be its own arguments, too. Anything else is computed where it is
read: at the start of the other region, and behind the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import ir
from ...dialect.functions import functions, name_of
from ...dialect.struct_info import is_tensor
from ...dialect.symbolic import Expr
from ...dialect.traversal import clone_with, free_values, operations
from ..entries import entries_of
from ..fusion.linalg_queries import owner_name
from ..lowering_pass import LoweringPass
from ..marks import KERNEL, LOOPS_ALLOCATE
from .trace import SizeTracer

__all__ = ["CarryInPlace", "carry_in_place", "copied"]


@dataclass(frozen=True)
class CarryInPlace(LoweringPass):
    """Lets loops write what they carry to where their next iteration reads it."""

    name: ClassVar[str] = "relax-carry-in-place"

    def run(self, op: ir.Operation) -> None:
        if carry_in_place(op, {name_of(f): e.spec.shapes for f, e in entries_of(op)}):
            op.attributes[LOOPS_ALLOCATE] = ir.UnitAttr.get(op.context)


def carry_in_place(module: ir.Operation, shapes: Mapping[str, Sequence[Sequence[int | Expr]]] | None = None) -> bool:
    """Inserts the copies in every ``scf.for`` and ``scf.while`` on plain tensors; in place.

    The loops of kernels write into what they carry already. A tensor that may change its shape from one iteration to the next
    stays as it is: the loop allocates.

    Args:
        module: the module.
        shapes: the dimensions of the arguments of its functions, by name, where these are known.

    Returns:
        Whether some loop allocates.
    """
    outer = [f for f in functions(module) if KERNEL not in f.attributes]
    for loop in [loop for f in outer for loop in _found(f.operation, "scf.while")]:
        _pass_arguments_on(loop)
    allocates = False
    for function in outer:
        loops = _found(function.operation, "scf.for", "scf.while")
        arguments = list(function.regions[0].blocks[0].arguments) if loops else []
        known = (shapes or {}).get(name_of(function), [])
        tracer = SizeTracer({a: list(s) for a, s in zip(arguments, known, strict=False)})
        fixed = [_fixed(loop, tracer) for loop in loops]
        _separate_choices(function.operation, loops)
        allocates = allocates or not all(all(f) for f in fixed)
        for loop, which in zip(loops, fixed, strict=True):
            _copy_into(loop, which)
            _copy_starts(loop)
    return allocates


def _fixed(loop: ir.Operation, tracer: SizeTracer) -> list[bool]:
    """Of what a loop carries, whether it has one shape throughout."""
    return [not is_tensor(a) or tracer.shape(a) is not None for a in _carried(loop, loop.regions[0].blocks[0])]


def _found(root: ir.Operation, *names: str) -> list[ir.Operation]:
    """The ops of these names inside of an op, inner ones first."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in names:
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return found


def _carried(loop: ir.Operation, block: ir.Block) -> list[ir.Value]:
    """The arguments of a region that hold a loop's state: those after the counter."""
    arguments = list[ir.Value](block.arguments)
    return arguments[1:] if loop.name == "scf.for" else arguments


def _pass_arguments_on(loop: ir.Operation) -> None:
    """Makes the deciding region of ``scf.while`` pass on its arguments, all of them and in order."""
    before, after = (region.blocks[0] for region in loop.regions)
    arguments, (*body, condition) = list(before.arguments), operations(before)
    flag, *passed = condition.operands
    if passed == arguments:
        return
    types = [a.type for a in arguments]
    with loop.location:
        new = ir.Operation.create("scf.while", types, list(loop.operands), regions=2, ip=ir.InsertionPoint(loop))
        ir.Operation.create("scf.condition", [], [flag, *arguments], ip=ir.InsertionPoint(condition))
    condition.erase()
    needed = _slice(body, passed)
    taken = list(after.arguments)
    mapping: dict[ir.Value, ir.Value] = {a: after.add_argument(a.type, loop.location) for a in arguments}
    _replace(taken, passed, needed, mapping, ir.InsertionPoint.at_block_begin(after))
    for position in reversed(range(len(taken))):
        after.erase_argument(position)
    mapping = dict(zip(arguments, new.results, strict=True))
    _replace(list(loop.results), passed, needed, mapping, ir.InsertionPoint(loop))
    before.append_to(new.regions[0])
    after.append_to(new.regions[1])
    loop.erase()


def _slice(body: Sequence[ir.Operation], values: Iterable[ir.Value]) -> list[ir.Operation]:
    """The ops of a body that values come from, in order."""
    wanted, found = set(values), list[ir.Operation]()
    for op in reversed(body):
        if any(r in wanted for r in op.results):
            wanted.update(free_values(op))
            found.append(op)
    return found[::-1]


def _replace(
    old: Sequence[ir.Value], new: Sequence[ir.Value], ops: Sequence[ir.Operation], mapping: dict[ir.Value, ir.Value],
    where: ir.InsertionPoint,
) -> None:  # fmt: skip
    """Uses of some values read others, which copies of ops compute from mapped values at a place."""
    for op in ops:
        clone_with(op, mapping, where)
    for value, other in zip(old, new, strict=True):
        value.replace_all_uses_with(mapping.get(other, other))


def _separate_choices(function: ir.Operation, loops: Sequence[ir.Operation]) -> None:
    """Gives branches copies of what they hand on from outside, where that, or what another branch hands on, is in the memory of
    a loop: bufferization takes all that a branch may be for one buffer, and refuses a loop that writes to it."""
    for select in _found(function, "arith.select") if loops else []:
        _copy_selected(select)
    memory = {v for loop in loops for v in (*loop.results, *(a for r in loop.regions for a in r.blocks[0].arguments))}
    for branch in _found(function, "scf.if"):
        yields = [operations(region.blocks[0])[-1] for region in branch.regions if len(branch.results)]
        for position, result in enumerate(branch.results):
            _copy_what_is_written_into(yields, position)
            if is_tensor(result) and any(y.operands[position] in memory for y in yields):
                memory.add(result)
                _copy_from_outside(branch, yields, position)


def _copy_what_is_written_into(yields: Iterable[ir.Operation], position: int) -> None:
    """Copies what a branch hands on where a kernel has written it into what was there before."""
    for end in yields:
        value = end.operands[position]
        into = value
        while owner_name(into) == "func.call":
            into = _destination(into)
        if into != value and owner_name(into) != "tensor.empty":
            with ir.InsertionPoint(end), end.location:
                end.operands[position] = copied(value)


def _copy_from_outside(branch: ir.Operation, yields: Iterable[ir.Operation], position: int) -> None:
    for end in yields:
        value = end.operands[position]
        if value.owner == end.block or (not isinstance(value, ir.BlockArgument) and value.owner.operation.block == end.block):
            continue
        with ir.InsertionPoint(end), branch.location:
            end.operands[position] = copied(value)


def _copy_selected(select: ir.Operation) -> None:
    """A copy of one of two tensors instead of either: bufferization takes that for both, and lets nobody write to them."""
    if not is_tensor(select.result):
        return
    flag, *choices = select.operands
    with ir.InsertionPoint(select), select.location:
        chosen = ir.Operation.create("scf.if", [select.result.type], [flag], regions=2)
        for region, value in zip(chosen.regions, choices, strict=True):
            with ir.InsertionPoint(region.blocks.append()):
                ir.Operation.create("scf.yield", [], [copied(value)])
    select.result.replace_all_uses_with(chosen.result)
    select.erase()


def _copy_starts(loop: ir.Operation) -> None:
    """Lets a loop start from copies of what others may read: it writes to the memory that it starts from."""
    for position, value in enumerate(loop.operands):
        if is_tensor(value) and not _only_here(value):
            with ir.InsertionPoint(loop), loop.location:
                loop.operands[position] = copied(value)


def _only_here(value: ir.Value) -> bool:
    """Whether a kernel makes a value that is used once, in memory of its own: some write into what they are given."""
    if owner_name(value) != "func.call" or len(list(value.uses)) != 1:
        return False
    into = _destination(value)
    return owner_name(into) == "tensor.empty" or _only_here(into)


def _destination(value: ir.Value) -> ir.Value:
    """What a kernel is given to write a result into: the last of its operands are those of its results."""
    call = value.owner.operation
    return call.operands[len(call.operands) - len(call.results) + ir.OpResult(value).result_number]


def _copy_into(loop: ir.Operation, fixed: Sequence[bool]) -> None:
    """Copies what the last region yields to the arguments that take it, where these have one shape, else to new memory unless
    it is in such already."""
    block = loop.regions[len(loop.regions) - 1].blocks[0]
    arguments, end = _carried(loop, block), operations(block)[-1]
    pairs = [
        (i, value, target)
        for i, (value, target) in enumerate(zip(end.operands, arguments, strict=True))
        if is_tensor(value) and value != target and (fixed[i] or not _made_in(block, value))
    ]
    with ir.InsertionPoint(end), end.location:
        copies = [(i, copied(value), target) for i, value, target in pairs]
        for i, value, target in copies:
            end.operands[i] = _written(value, target) if fixed[i] else value


def _made_in(block: ir.Block, value: ir.Value) -> bool:
    """Whether a kernel that a body calls makes a value, in memory of its own."""
    if owner_name(value) != "func.call" or value.owner.operation.block != block:
        return False
    into = _destination(value)
    return owner_name(into) == "tensor.empty" or _made_in(block, into)


def _written(value: ir.Value, into: ir.Value) -> ir.Value:
    return ir.Operation.create("bufferization.materialize_in_destination", [value.type], [value, into]).result


def copied(value: ir.Value) -> ir.Value:
    """A tensor in memory of its own. Had it a destination, what may alias that would be taken for overwritten."""
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 1, 0])}
    return ir.Operation.create("bufferization.alloc_tensor", [value.type], [value], attributes=segments).result
