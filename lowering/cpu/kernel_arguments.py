"""Which arguments a kernel of LLVM's dialect takes, as an attribute: calls have no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dialect.bindings import ir
from ..marks import ARGUMENTS

__all__ = ["NUMBERED", "KernelArguments"]

#: In the name of a declared kernel, between the symbol of its code and a number.
NUMBERED = ".."


@dataclass(frozen=True)
class KernelArguments:
    """The arguments of a kernel.

    Attributes:
        count: how many there are, with all of the descriptors of buffers.
        kept: the positions of those that it takes.
    """

    count: int
    kept: tuple[int, ...]

    @classmethod
    def of(cls, function: ir.OpView | ir.Operation) -> KernelArguments | None:
        """What a function says of its arguments, if it does."""
        if ARGUMENTS not in function.attributes:
            return None
        return cls.read(list(ir.DenseI64ArrayAttr(function.attributes[ARGUMENTS])))

    @classmethod
    def read(cls, numbers: Sequence[int]) -> KernelArguments:
        """Out of what :meth:`numbers` gave."""
        return cls(numbers[0], tuple(numbers[1:]))

    @property
    def numbers(self) -> list[int]:
        """How many there are, then the positions."""
        return [self.count, *self.kept]

    def write(self, function: ir.OpView | ir.Operation) -> None:
        """Has a function say so."""
        function.attributes[ARGUMENTS] = ir.DenseI64ArrayAttr.get(self.numbers, function.context)
