"""``acme-fold-negative``: the negative of a negative is the value itself.

Before::

    %0 = "relax.negative"(%x)
    %1 = "relax.negative"(%0)

after, with ``%x`` for ``%1``, nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from relaxir.extend import Pass, ir, ops, rewrite

__all__ = ["FoldNegative"]


@dataclass(frozen=True)
class FoldNegative(Pass):
    """Removes pairs of negatives."""

    name: ClassVar[str] = "acme-fold-negative"

    def run(self, op: ir.Operation) -> None:
        patterns = rewrite.RewritePatternSet()
        patterns.add(ops.Negative, _fold)
        rewrite.apply_patterns_and_fold_greedily(op, patterns.freeze())


def _fold(op: ops.Negative, rewriter: rewrite.PatternRewriter) -> bool:
    """True when it does not apply, as the bindings want it."""
    inner = op.x.owner
    if not isinstance(inner, ops.Negative):
        return True
    rewriter.replace_op(op, [inner.x])
    return False
