"""A buffer of keys or values that calls write into, and what a model sees of it."""

from __future__ import annotations

from collections.abc import Callable

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.symbolic import Expr
from ..emit import emit, full, info_of, integer, require_at_least, sequence, slice_axis
from ..ranges import at_least

__all__ = ["Cache"]


class Cache:
    """A buffer with room for a number of tokens, of which the first ``used`` are there.

    Attributes:
        name: of the input.
        first, room: the buffer as a call finds it, and as it is after what was written last.
        axis: that of the tokens.
        written: what stands for all tokens after something was written.

    ``checked`` are numbers of tokens that are known to be 0 or more, of all caches.
    """

    def __init__(self, name: str, first: ir.Value, axis: int, used: Expr, known: frozenset[str], checked: set[Expr]):
        self.name, self.first, self.axis = name, first, axis
        self.room = first
        self.written: list[ir.Value] = []
        self._used, self._known, self._checked = used, known, checked

    @property
    def used(self) -> Expr:
        """How many tokens there are before the call. Raises RelaxError where no input says so."""
        missing = sorted(self._used.names - self._known)
        if missing:
            raise RelaxError(
                f"expected inputs whose shapes determine '{missing[0]}', how many tokens '{self.name}' has; "
                f"dims={{'{missing[0]}': ...}} says it in terms of {', '.join(sorted(self._known)) or 'numbers'}"
            )
        return self._used

    def require_past(self) -> None:
        """A check, once for all caches, that there are 0 or more: places below 0 are the last ones of the buffer."""
        used = self.used
        if used in self._checked or at_least(used, 0, {}):
            return
        self._checked.add(used)
        what = f"expected {used}, the number of tokens that '{self.name}' has, to be 0 or more"
        with ir.InsertionPoint.at_block_begin(self.first.owner):
            require_at_least(used, 0, f"{what}: masks and totals count new tokens, too")

    @property
    def is_here(self) -> bool:
        """Whether what is written now is written in every call: in the function itself, and no branch or loop of it."""
        return ir.InsertionPoint.current.block == self.first.owner

    def before(self) -> ir.Value:
        """What the model takes: the tokens that are there."""
        self.require_past()
        return slice_axis(self.room, self.axis, 0, self.used)

    def write(self, change: Callable[[ir.Value], ir.Value]) -> ir.Value:
        """The buffer after a change."""
        self.room = change(self.room)
        self.written.append(self.room)
        return self.room

    def append(self, new: ir.Value) -> ir.Value:
        """New tokens behind those that are there; all of them."""
        count = info_of(new).shape[self.axis]
        if count is None:
            raise RelaxError("expected new tokens whose number is known or symbolic")
        self.require_past()
        places = emit(ops.Add, sequence(0, count), full(self.used, integer()))
        room = self.write(lambda r: emit(ops.IndexCopy, r, places, new, axis=self.axis))
        self.written.append(slice_axis(room, self.axis, 0, self.used + count))
        return self.written[-1]
