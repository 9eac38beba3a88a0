"""Erasing what is in use fails with its name. MLIR's release builds go on with what is freed, and crash later.

The verifier does not help: it reads the users' operands, which are gone. Tests and generators call :func:`guard_erasures` once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from torch_mlir import ir, rewrite

__all__ = ["guard_erasures"]


def guard_erasures() -> None:
    """From now on ops and arguments of blocks must have no uses when they are erased; a second call changes nothing."""
    base, rewriter = cast(Any, ir)._OperationBase, rewrite.PatternRewriter
    if not hasattr(base.erase, "guarded"):
        base.erase = _guarded(base.erase, lambda op: op.operation.results)
        rewriter.erase_op = _guarded(rewriter.erase_op, lambda _, op: op.operation.results)
        ir.Block.erase_argument = _guarded(ir.Block.erase_argument, lambda block, index: [block.arguments[index]])


def _guarded(erase: Callable[..., None], values: Callable[..., Iterable[ir.Value]]) -> Callable[..., None]:
    def checked(*arguments: Any) -> None:
        for value in values(*arguments):
            _expect_unused(value)
        erase(*arguments)

    cast(Any, checked).guarded = True
    return checked


def _expect_unused(value: ir.Value) -> None:
    use = next(iter(value.uses), None)
    if use is not None:
        raise AssertionError(
            f"expected nothing that uses what is erased, got '{use.owner.name}', which uses {value.get_name()}"
        )
