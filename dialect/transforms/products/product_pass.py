"""What passes on matrix products share: the functions that they look at, and what is known of these ahead."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from ...analysis.entries import rewritten_functions
from ...bindings import func, ir
from ...passes.base import Pass
from ..lifting.known_ahead import KnownAhead, KnownValues

__all__ = ["ProductPass"]


@dataclass(frozen=True)
class ProductPass(Pass):
    """Rewrites products, knowing what lifting would prepare.

    Attributes:
        functions: names of the functions to look at; all public ones by default.
    """

    functions: tuple[str, ...] = ()

    def run(self, op: ir.Operation) -> None:
        entries = rewritten_functions(op, self.functions)
        known = KnownAhead(op)
        for function, inputs in entries:
            self.rewrite(function, known.of(function, inputs))

    @abstractmethod
    def rewrite(self, function: func.FuncOp, values: KnownValues) -> None:
        """Changes a function in place."""
