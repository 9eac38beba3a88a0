"""What is to be checked of the symbols' values before compiled code runs: sizes inside of it, and bytes that it computes with.

Compiled code computes sizes, offsets and the arena's size in 64 bits, and takes dimensions to be 0 or more. Which values of the
symbols break that no run-time check inside of it could tell, as they move the buffers themselves; so the manifest says it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..dialect.analysis.inner_sizes import doubtful_sizes, greatest_safe, is_size, tensor_bytes
from ..dialect.analysis.symbol_uses import DEFINING_OPS, SymbolUses
from ..dialect.bindings import func
from ..dialect.errors import RelaxError
from ..dialect.functions import body_of
from ..dialect.symbolic import Expr, InnerSize, require_bounded
from ..dialect.traversal import nested_operations
from .arena import Arena
from .manifest_specs import EntrySpec

__all__ = ["inner_sizes", "with_arena"]

#: Symbols without a range are at least 0.
_LEAST = 0

_SCRATCH = "scratch memory:"


def inner_sizes(
    entry: func.FuncOp, symbols: set[str], private: Iterable[func.FuncOp]
) -> tuple[list[InnerSize], list[InnerSize]]:
    """What must be 0 or more, and what must be below 2**63, of a function's symbols.

    Of private functions, too, which may be part of it: calls compare types with their symbols.

    Raises:
        RelaxError: code could not compute the bytes of a tensor.
    """
    scopes = [(entry, symbols), *((f, symbols - _defined(f)) for f in private if body_of(f) is not None)]
    memory = [size for f, known in scopes for size in tensor_bytes(f, known)]
    for size in memory:
        _check_numbers(size)
    return [size for f, known in scopes for size in doubtful_sizes(f, known, _LEAST)], memory


def with_arena(spec: EntrySpec, arena: Arena) -> EntrySpec:
    """An entry with what its arena adds: sizes, bytes, and a value of the symbols up to which all bytes are below 2**63."""
    size = arena.size
    memory = [*spec.memory, InnerSize(size, _SCRATCH)] if isinstance(size, Expr) else list(spec.memory)
    # A group of buffers that is less than nothing would lay the next one over the one before.
    units = [InnerSize(u, _SCRATCH) for u in arena.groups if isinstance(u, Expr) and not is_size(u, _LEAST)]
    sizes = {s.expr: s for s in [*units, *spec.sizes[::-1]]}
    safe = greatest_safe([s.expr for s in memory])
    return replace(spec, sizes=tuple(reversed(sizes.values())), memory=tuple(memory), safe=safe)


def _defined(function: func.FuncOp) -> set[str]:
    """The symbols that ops of a function define: in it they may be others than those of its callers."""
    uses, inner = SymbolUses(), nested_operations(function.operation)
    return {s for op in inner if op.name in DEFINING_OPS for r in op.results for s in uses.of_type(r.type)}


def _check_numbers(size: InnerSize) -> None:
    """Raises RelaxError for bytes that code cannot compute."""
    try:
        require_bounded(size.expr)
    except RelaxError as error:
        raise RelaxError(f"{size.of} {error}") from None
