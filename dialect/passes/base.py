"""What a pass is: a name, options as fields, and what it does to an op."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ..bindings import ir

__all__ = ["MODULE", "Pass"]

MODULE = "builtin.module"


@dataclass(frozen=True)
class Pass(ABC):
    """A pass over the IR; its options are the dataclass fields (bool, int, float, str or ``tuple[str, ...]``).

    Attributes:
        name: what pipelines call it, kebab-case.
        anchor: the op it runs on: ``builtin.module``, or ``any`` for a pass that may also be nested, ``func.func(relax-x)``.
        dialects: upstream dialects that it makes ops of, beside those that contexts have (:mod:`relaxir.dialect.context`).
        keeps_work: whether the work of what it leaves can be compared with what there was before, in reports.
        rounding: what floats that functions return may be off by behind it, relative to the largest one; infinity for a pass
            that rounds to few integers, each of which is as exact as :mod:`relaxir.debugging.stated_errors` says. A pass that
            does so with some options alone says less in :attr:`stated_rounding`.
    """

    name: ClassVar[str]
    anchor: ClassVar[str] = MODULE
    dialects: ClassVar[tuple[str, ...]] = ()
    keeps_work: ClassVar[bool] = True
    rounding: ClassVar[float] = 0.0

    @property
    def stated_rounding(self) -> float:
        """:attr:`rounding`, with these options."""
        return self.rounding

    @abstractmethod
    def run(self, op: ir.Operation) -> None:
        """Changes ``op`` in place.

        Raises:
            RelaxError: the pass cannot handle this IR. It becomes a diagnostic at the error's location.
        """
