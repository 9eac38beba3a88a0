"""Walking, copying and erasing operations with values as the only keys: handles and hashes of ops do not survive changes."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from .bindings import ir

__all__ = [
    "Nested", "blocks_of", "clone_with", "erase_unused", "erase_with_users", "free_values", "free_values_of_all",
    "is_read_once", "is_unused", "nested_operations", "operations", "outermost", "run_nested", "substitute", "values_inside",
]  # fmt: skip

#: A step of a recursion, written as a generator: what it yields are steps that are answered by what these return.
Nested: TypeAlias = "Generator[Nested, Any, Any]"


def run_nested(first: Nested) -> Any:
    """Runs a recursion without Python's stack, whose limit 300 nested regions, or calls, would meet; returns its answer."""
    stack, answer = [first], None
    try:
        while stack:
            try:
                step = stack[-1].send(answer)
            except StopIteration as stop:
                stack.pop()
                answer = stop.value
            else:
                stack.append(step)
                answer = None
    finally:
        for left in reversed(stack):  # after an error: innermost first, as they have entered contexts
            left.close()
    return answer


def operations(block: ir.Block) -> list[ir.Operation]:
    """The operations of a block; a list, so the block may change while it is gone through."""
    return [op.operation for op in block.operations]


def blocks_of(op: ir.Operation) -> Iterator[ir.Block]:
    """The blocks of all regions of an op."""
    if not len(op.regions):
        return
    for region in op.regions:
        yield from list(region.blocks)


def nested_operations(op: ir.Operation) -> Iterator[ir.Operation]:
    """All operations inside of an op, without itself, outer ones first, in program order."""
    pending = [inner for block in blocks_of(op) for inner in operations(block)][::-1]
    while pending:
        inner = pending.pop()
        yield inner
        if len(inner.regions):
            pending += [o for block in blocks_of(inner) for o in operations(block)][::-1]


def free_values(op: ir.Operation) -> list[ir.Value]:
    """The values from outside that an op, or anything inside of it, reads."""
    read = list(op.operands)
    if len(op.regions):
        inside, own = values_inside(op)
        read += [value for value in inside if value not in own]
    return read


def values_inside(op: ir.Operation) -> tuple[list[ir.Value], set[ir.Value]]:
    """What operations inside of an op read, in program order, and the values that are made there."""
    read, made = list[ir.Value](), set[ir.Value]()
    for block in blocks_of(op):
        made.update(block.arguments)
    for inner in nested_operations(op):
        read += inner.operands
        made.update(inner.results)
        for block in blocks_of(inner):
            made.update(block.arguments)
    return read, made


def free_values_of_all(op: ir.Operation) -> dict[ir.Block, list[ir.Value]]:
    """What :func:`free_values` says of all operations with regions inside of an op, by their first blocks, each value once.

    One walk for all: asked one by one, an operation would be gone through as often as it is deep inside of others.
    """
    found: dict[ir.Block, list[ir.Value]] = {}
    for nested in reversed([o for o in nested_operations(op) if len(o.regions)]):
        blocks = list(blocks_of(nested))
        if not blocks:
            continue
        read, own = dict.fromkeys(nested.operands), set(blocks)
        for inner in (o for block in blocks for o in operations(block)):
            first = next(blocks_of(inner), None)
            values = inner.operands if first is None else found[first]
            read.update(dict.fromkeys(v for v in values if _block_of(v) not in own))
        found[blocks[0]] = list(read)
    return found


def _block_of(value: ir.Value) -> ir.Block:
    owner = value.owner
    return owner if isinstance(owner, ir.Block) else owner.operation.block


def outermost(op: ir.Operation) -> ir.Operation:
    """The op of the function's block that an op is, or is in."""
    parent = op.parent
    while parent is not None and parent.name != "func.func":
        op = parent.operation
        parent = op.parent
    return op


def is_unused(op: ir.Operation) -> bool:
    """Whether nothing reads any result of an op."""
    return all(next(iter(result.uses), None) is None for result in op.results)


def is_read_once(value: ir.Value) -> bool:
    """Whether a value is one operand of one op."""
    uses = iter(value.uses)
    return next(uses, None) is not None and next(uses, None) is None


def clone_with(op: ir.Operation, mapping: dict[ir.Value, ir.Value], where: ir.InsertionPoint) -> ir.Operation:
    """Copies an op, with operands replaced as ``mapping`` says, and enters its results there. Keeps the location."""
    clone = op.clone(ip=where).operation
    substitute(clone, mapping)
    mapping.update(zip(op.results, clone.results, strict=True))
    return clone


def substitute(op: ir.Operation, mapping: Mapping[ir.Value, ir.Value]) -> None:
    """Replaces operands of an op and of everything inside of it."""
    _substitute_operands(op, mapping)
    if len(op.regions):
        for inner in nested_operations(op):
            _substitute_operands(inner, mapping)


def _substitute_operands(op: ir.Operation, mapping: Mapping[ir.Value, ir.Value]) -> None:
    for position, value in enumerate(op.operands):
        new = mapping.get(value)
        if new is not None:
            op.operands[position] = new


def erase_with_users(op: ir.Operation) -> None:
    """Erases an op with all that reads its results, and what reads theirs: a buffer with its views, and views of these."""
    for result in op.results:
        while (use := next(iter(result.uses), None)) is not None:
            erase_with_users(use.owner.operation)
    op.erase()


def erase_unused(ops: Iterable[ir.Operation]) -> None:
    """Erases those of some side-effect-free ops, given in program order, that nothing reads; users go before producers."""
    for op in reversed(list(ops)):
        if is_unused(op):
            op.erase()
