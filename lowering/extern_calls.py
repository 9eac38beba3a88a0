"""What lowering writes down of functions of other libraries: of each that stands for one, and of the module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..dialect.attributes import values
from ..dialect.bindings import func, ir
from ..dialect.extern_functions import ExternArgument
from .manifest_specs import ExternSpec
from .marks import EXTERN, EXTERNS
from .plain_attributes import from_attribute, to_attribute

__all__ = ["ExternCall", "Externs", "is_extern"]

_VALUES = values()


@dataclass(frozen=True)
class ExternCall:
    """One way in which a function is called.

    Attributes:
        function: which one.
        dtypes: of its tensors: inputs, then those that are numbers behind them, then outputs.
        ranks: theirs.
        inputs: how many of them are inputs.
        arguments: what follows the tensors.
        check: the number of the check that an error is.
        name: that of the function that stands for it; of one that is called so.
    """

    function: ExternSpec
    dtypes: tuple[str, ...]
    ranks: tuple[int, ...]
    inputs: int
    arguments: tuple[ExternArgument, ...]
    check: int
    name: str | None = None

    def attribute(self) -> ir.Attribute:
        """It as an attribute: that of a function (:data:`EXTERN`), and a part of the module's."""
        plain = {
            "symbol": self.function.symbol, "library": self.function.library, "dtypes": self.dtypes, "ranks": self.ranks,
            "inputs": self.inputs, "arguments": _VALUES.write("arguments", self.arguments), "check": self.check,
            "name": self.name,
        }  # fmt: skip
        return to_attribute(plain)

    @staticmethod
    def of(function: func.FuncOp) -> ExternCall | None:
        """What a function stands for; None where it is none of another library."""
        return ExternCall._read(function.attributes[EXTERN]) if EXTERN in function.attributes else None

    @staticmethod
    def _read(attribute: ir.Attribute) -> ExternCall:
        plain: dict[str, Any] = {item.name: from_attribute(item.attr) for item in ir.DictAttr(attribute)}
        arguments = _VALUES.read("arguments", ir.DictAttr(attribute)["arguments"])
        spec = ExternSpec(plain["symbol"], plain["library"])
        return ExternCall(
            spec,
            tuple(plain["dtypes"]),
            tuple(plain["ranks"]),
            plain["inputs"],
            tuple(arguments),
            plain["check"],
            plain.get("name"),
        )

    @property
    def scalars(self) -> int:
        """How many tensors are numbers that follow the others."""
        return self.arguments.count(...)

    @property
    def marks(self) -> dict[str, ir.Attribute]:
        """The attributes of the function that stands for it."""
        return {EXTERN: self.attribute()}


def is_extern(function: func.FuncOp) -> bool:
    """Whether a function stands for one of another library."""
    return EXTERN in function.attributes


@dataclass(frozen=True)
class Externs:
    """The calls of a module.

    Attributes:
        calls: each way in which one is called, by number.
    """

    calls: Sequence[ExternCall] = ()

    @property
    def functions(self) -> tuple[ExternSpec, ...]:
        """The functions that entries take, in this order."""
        return tuple(dict.fromkeys(call.function for call in self.calls))

    @staticmethod
    def of(module: ir.Operation) -> Externs:
        """What :meth:`write` wrote; none where nothing did."""
        if EXTERNS not in module.attributes:
            return Externs()
        return Externs([ExternCall._read(a) for a in ir.ArrayAttr(module.attributes[EXTERNS])])  # pyright: ignore[reportPrivateUsage]

    def write(self, module: ir.Operation) -> None:
        """Notes them on the module."""
        module.attributes[EXTERNS] = ir.ArrayAttr.get([call.attribute() for call in self.calls])
