"""The symbols of one function call: sizes of arrays bind them, dimensions are evaluated with them. Imports no MLIR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import symbolic
from ..errors import RelaxError
from ..symbolic import Dim, Expr, dim_text

__all__ = ["Scope"]


@dataclass(frozen=True)
class _Binding:
    value: int
    source: str


class Scope:
    """Known dimensions by their canonical text: symbols, and expressions of which only the whole is known."""

    def __init__(self, outer: Scope | None = None):
        self._known: dict[str, _Binding] = {} if outer is None else dict(outer._known)
        self._pending: list[tuple[Expr, int, str]] = [] if outer is None else list(outer._pending)
        self._computed: dict[str, int] = {}

    def bind(self, shape: Sequence[Dim], sizes: Sequence[int], source: str) -> None:
        """Checks an array's sizes against a type's dimensions; symbols not known yet get their values from it.

        Args:
            shape: the type's dimensions, as many as there are sizes.
            sizes: the array's.
            source: what to call the array in messages, e.g. ``argument 'x'``.

        Raises:
            RelaxError: a size contradicts a constant, or what a symbol stands for.
        """
        for axis, (dim, size) in enumerate(zip(shape, sizes, strict=True)):
            if isinstance(dim, int) and dim != size:
                raise RelaxError(f"expected {source} with size {dim} at dimension {axis}, got {size}")
            if isinstance(dim, Expr):
                self._pending.append((dim, size, f"{source} at dimension {axis}"))
        self._settle()

    def resolve(self, dim: Dim) -> int:
        """The number that a dimension stands for. Raises RelaxError when a symbol has no value."""
        if isinstance(dim, int):
            return dim
        text = dim_text(dim)
        if text not in self._computed:
            self._computed[text] = self._evaluate(dim, text)
        return self._computed[text]

    def knows(self, dim: Dim) -> bool:
        """Whether :meth:`resolve` has a number for it."""
        return isinstance(dim, int) or (isinstance(dim, Expr) and self._is_known(dim))

    def try_resolve(self, dim: Dim) -> int | None:
        """Like :meth:`resolve`; None when a symbol has no value."""
        if not self.knows(dim):
            return None
        return self.resolve(dim)

    def values(self, dim: Expr) -> dict[str, int]:
        """The values of a dimension's symbols, of those that have one."""
        return {n: self._known[n].value for n in sorted(dim.names) if n in self._known}

    def _is_known(self, dim: Expr) -> bool:
        return dim.text in self._known or all(n in self._known for n in dim.names)

    def _evaluate(self, dim: Dim, text: str) -> int:
        if text in self._known:
            return self._known[text].value
        return symbolic.evaluate(dim, self.values(dim) if isinstance(dim, Expr) else {})

    def _settle(self) -> None:
        """Binds and checks pending dimensions until nothing changes; each round settles one or ends."""
        progress = True
        while progress and self._pending:
            waiting, self._pending = self._pending, []
            for dim, size, source in waiting:
                if not self._settle_one(dim, size, source):
                    self._pending.append((dim, size, source))
            progress = len(self._pending) < len(waiting)
        unique: dict[str, tuple[Expr, int, str]] = {}
        for dim, size, source in self._pending:
            self._set(dim.text, size, source)
            unique.setdefault(dim.text, (dim, size, source))
        self._pending = list(unique.values())

    def _settle_one(self, dim: Expr, size: int, source: str) -> bool:
        """Whether the dimension is done with: it was checked, or it gave its one unknown symbol a value."""
        values = self.values(dim)
        if len(values) == len(dim.names):
            self._check(dim, symbolic.evaluate(dim, values), size, source)
            return True
        solved = symbolic.solve(dim, size, values)
        if solved is None:
            return False
        name, value = solved
        self._set(name, value, source)
        return True

    def _check(self, dim: Expr, expected: int, size: int, source: str) -> None:
        if expected == size:
            return
        first = next((f" from {self._known[n].source}" for n in sorted(dim.names)), "")
        raise RelaxError(f"expected {source} with size {expected} ('{dim}'{first}), got {size}")

    def _set(self, text: str, value: int, source: str) -> None:
        known = self._known.get(text)
        if known is not None and known.value != value:
            raise RelaxError(f"expected {source} with size {known.value} ('{text}' from {known.source}), got {value}")
        if known is None:
            self._known[text] = _Binding(value, source)
