"""Results of a graph that ``torch.compile`` traced, laid out in memory as torch expects them.

Of a result that is a view of an input torch reads strides and the offset alone, and makes the view anew from the input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.utils._sympy.printers import PythonPrinter

__all__ = ["Return"]

#: The offset, and the strides, of the sizes that symbols stand for.
_Strides = Callable[[Mapping[str, int]], "tuple[int, ...]"]


@dataclass(frozen=True)
class Return:
    """One result: a constant, or what is made of an output.

    Attributes:
        is_constant: whether ``value`` itself is returned.
        value: the constant, or the fake value.
        order: the order of a tensor's dimensions in memory, where that is not theirs and there are no gaps.
        strides: where there are gaps, elements that repeat, or an offset.
    """

    is_constant: bool
    value: Any
    order: tuple[int, ...] | None = None
    strides: _Strides | None = None

    @classmethod
    def of(cls, value: Any) -> Return:
        """For what a graph returns."""
        if not isinstance(value, torch.Tensor):
            return cls(not isinstance(value, torch.SymInt), value)
        order = _order(value)
        return cls(False, value, None, _strides(value)) if order is None else cls(False, value, order)

    def made(self, output: torch.Tensor, sizes: Mapping[str, int]) -> Any:
        """The output as eager PyTorch returns it: an integer, or a tensor with the same strides."""
        if isinstance(self.value, torch.SymInt):
            return int(output.item())
        if self.strides is not None:
            return _strided(output, *self.strides(sizes))
        if self.order is None or self.order == tuple(range(output.ndim)):
            return output
        inverse = sorted(range(output.ndim), key=self.order.__getitem__)
        return output.permute(self.order).contiguous().permute(inverse)


def _order(fake: torch.Tensor) -> tuple[int, ...] | None:
    """The dimensions from the largest stride to the smallest; None where there are gaps, or an offset."""
    hints: list[Any] = [s if isinstance(s, int) else s.node.hint for s in fake.stride()]
    if any(h is None for h in hints):
        return tuple(range(fake.ndim))  # of sizes that data decides nothing is known
    if _expr(fake.storage_offset()) != 0:
        return None
    order = sorted(range(fake.ndim), key=lambda i: -hints[i])
    expected: Any = sympy.Integer(1)
    for axis in reversed(order):
        if _expr(fake.shape[axis]) == 1:
            continue
        if sympy.expand(_expr(fake.stride(axis)) - expected) != 0:
            return None
        expected = expected * _expr(fake.shape[axis])
    return tuple(order)


def _expr(size: int | torch.SymInt) -> Any:
    return sympy.Integer(size) if isinstance(size, int) else size.node.expr


def _strides(fake: torch.Tensor) -> _Strides:
    exprs = [_expr(n) for n in (fake.storage_offset(), *fake.stride())]
    text = f"({', '.join(PythonPrinter().doprint(e) for e in exprs)},)"
    code = compile(text, "<strides>", "eval")
    return lambda sizes: eval(code, {"max": max, "min": min}, dict(sizes))


def _strided(output: torch.Tensor, offset: int, *strides: int) -> torch.Tensor:
    """The elements in memory of their own with these strides; those that repeat are there once."""
    shape = tuple(output.shape)
    if not output.numel():
        return output.new_empty(offset).as_strided(shape, strides, offset)
    length = offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    found = output.new_empty(length).as_strided(shape, strides, offset)
    once = tuple(slice(0, 1) if s == 0 else slice(None) for s in strides)
    found[once].copy_(output[once])
    return found
