"""``acme-fold-negative``: the negative of a negative is the value itself.

Before::

    %0 = "relax.negative"(%x)
    %1 = "relax.negative"(%0)

after, with ``%x`` for ``%1``, nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from relaxir.extend import Pass, Patterns, Rewriter, ir, ops, walk

__all__ = ["FoldNegative"]


@dataclass(frozen=True)
class FoldNegative(Pass):
    """Removes pairs of negatives."""

    name: ClassVar[str] = "acme-fold-negative"

    def run(self, op: ir.Operation) -> None:
        walk(op, PATTERNS)


def drop_pair(op: ops.Negative, rewriter: Rewriter) -> bool:
    """Whether it has rewritten the op."""
    inner = op.x.owner
    if not isinstance(inner, ops.Negative):
        return False
    rewriter.discard(inner)
    return rewriter.replace(op, [inner.x])


PATTERNS: Patterns = [(ops.Negative, drop_pair)]
