"""Values of symbolic dimensions while lowering: expressions to ``index`` values that dominate the insertion point."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import contextmanager

from ...dialect.analysis.inner_sizes import is_size
from ...dialect.bindings import ir
from ...dialect.symbolic import Dim, Expr, divisors
from ...dialect.symbolic_arith import emit_index
from .scalar import Scalar

__all__ = ["Symbols"]


class Symbols:
    """The expressions whose values are known; entering a region and leaving it again is :meth:`scope`."""

    def __init__(self, check: Callable[[ir.Value, str], None]):
        """Args: check: emits a run-time check of a truth value, with the message of its failure."""
        self._values: dict[str, ir.Value] = {}
        self._check = check
        self._sizes: Mapping[str, Callable[[], ir.Value]] = {}
        self._checked: set[Hashable] = set()

    @contextmanager
    def scope(self) -> Generator[None]:
        """Values that are computed inside are forgotten at the end: they do not dominate what follows."""
        outer = self._values, self._checked
        self._values, self._checked = dict(outer[0]), set(outer[1])
        try:
            yield
        finally:
            self._values, self._checked = outer

    @contextmanager
    def function(self, sizes: Mapping[str, Callable[[], ir.Value]] | None = None) -> Generator[None]:
        """A scope that knows nothing: symbols belong to a function.

        Args:
            sizes: names that need no binding, with what emits their values.
        """
        outer = self._values, self._checked, self._sizes
        self._values, self._checked, self._sizes = {}, set(), sizes or {}
        try:
            yield
        finally:
            self._values, self._checked, self._sizes = outer

    def knows(self, dim: Dim) -> bool:
        """Whether :meth:`value` has a value for it."""
        return isinstance(dim, Expr) and (dim.text in self._values or all(self._has(n) for n in _names(dim)))

    def is_new_check(self, relation: Hashable) -> bool:
        """Whether nothing has been checked that is the same here; notes it."""
        if relation in self._checked:
            return False
        self._checked.add(relation)
        return True

    def _has(self, name: str) -> bool:
        return name in self._values or name in self._sizes

    def _named(self, name: str) -> ir.Value:
        found = self._values.get(name)
        if found is None:
            found = self._values[name] = self._sizes[name]()
        return found

    def value(self, dim: Expr) -> ir.Value:
        """The value of a known expression; ops that compute it are emitted at the insertion point, once per scope."""
        found = self._values.get(dim.text)
        if found is None:
            self._check_divisors(dim)
            found = self._values[dim.text] = emit_index(dim, self._named)
        return found

    def _check_divisors(self, dim: Expr) -> None:
        """A division by 0 ends the process. Those by sizes of arguments are checked before; others, where they are made."""
        for divisor in divisors(dim):
            if not is_size(divisor - 1, 0):
                self._check_divisors(divisor)
                is_good = Scalar(emit_index(divisor, self._named)).compare("ne", 0).value
                self._check(is_good, f"expected no division by zero in '{dim}'")

    def bind(self, dim: Dim, value: ir.Value) -> bool:
        """Records the value of a dimension, and of the one symbol in it that is not known yet when it can be solved for.

        Returns whether the symbol was solved for, so that ``dim == value`` must be checked where that is not certain.
        """
        if not isinstance(dim, Expr) or self.knows(dim):
            return False
        solution = self._solution(dim, value)
        self._values.setdefault(dim.text, value)
        if solution is None:
            return False
        name, solved = solution
        self._values[name] = solved
        return name != dim.text

    def _solution(self, dim: Expr, value: ir.Value) -> tuple[str, ir.Value] | None:
        """``n`` of ``a * n + rest == value`` where ``rest`` is known."""
        missing = [n for n in _names(dim) if not self._has(n)]
        if len(missing) != 1:
            return None
        (name,) = missing
        terms = dict(dim.terms)
        factor = terms.pop((name,), 0)
        rest = Expr(terms) if terms else None
        if not factor or (rest is not None and name in _names(rest)):
            return None
        if factor == 1 and rest is None:
            return name, value
        left = Scalar(value) if rest is None else Scalar(value) - Scalar(emit_index(rest, self._named))
        return name, left.value if factor == 1 else (left / factor).value


@functools.cache
def _names(dim: Expr) -> frozenset[str]:
    """The symbols of an expression, which it parses its text for."""
    return dim.names
