"""Options of the lazy passes as text in, what they stand for out: whom to call back, by what address, with what besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...bindings import ir
from ...errors import RelaxError
from ...passes.base import Pass
from ...relax import Object
from ...struct_info import check_type, is_tensor

__all__ = ["CallStyle", "Extra", "LazyPass"]

_CALLBACKS = ("arguments", "functions")
_ADDRESSING = ("both", "index", "name")


@dataclass(frozen=True)
class LazyPass(Pass):
    """The options that all passes have that make functions lazy.

    Attributes:
        functions: names of the functions to change.
        callback: ``arguments`` for callbacks that each function gets as arguments, ``functions`` for declared functions.
        addressing: what is said of a weight or result: its ``index``, its ``name`` or ``both``.
    """

    functions: tuple[str, ...] = ()
    callback: str = "arguments"
    addressing: str = "both"

    def style(self, option: str, extras: Sequence[str]) -> CallStyle:
        """How calls are made that carry the extras which an option lists. Raises RelaxError for a bad value."""
        return CallStyle.of(self.callback, self.addressing, option, extras)


@dataclass(frozen=True)
class Extra:
    """A value that every call passes on: an input of that name, which is added when there is none.

    Attributes:
        name: the input's ``relax.name``, and the keyword that the callback gets it under.
        type: its type, None for an input that has to be there.
    """

    name: str
    type: ir.Type | None


@dataclass(frozen=True)
class CallStyle:
    """How reads, or writes, are made.

    Attributes:
        functions: whether declared functions are called, rather than a callback that is an argument.
        index: whether calls carry the position of the weight or result.
        name: whether they carry its name.
        extras: what they carry besides.
    """

    functions: bool
    index: bool
    name: bool
    extras: tuple[Extra, ...]

    @staticmethod
    def of(callback: str, addressing: str, option: str, extras: Sequence[str]) -> CallStyle:
        """Reads the options ``callback`` and ``addressing``, and the one named ``option`` that lists extras.

        Raises:
            RelaxError: one of them has a value that it does not take.
        """
        _check("callback", callback, _CALLBACKS)
        _check("addressing", addressing, _ADDRESSING)
        found = tuple(_extra(option, text) for text in extras)
        repeated = next((e.name for i, e in enumerate(found) if e.name in [o.name for o in found[:i]]), None)
        if repeated is not None:
            raise RelaxError(f"expected distinct names for option '{option}', got '{repeated}' twice")
        return CallStyle(callback == "functions", addressing != "name", addressing != "index", found)

    def knowing(self, other: CallStyle) -> CallStyle:
        """The same, with the types that another one gives to extras of its own."""
        types = {e.name: e.type for e in other.extras}
        return replace(self, extras=tuple(Extra(e.name, e.type or types.get(e.name)) for e in self.extras))


def _check(option: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        wanted = ", ".join(f"'{k}'" for k in known)
        raise RelaxError(f"expected one of {wanted} for option '{option}', got '{value}'")


def _extra(option: str, text: str) -> Extra:
    name, colon, type_text = (part.strip() for part in text.partition(":"))
    if not name.isidentifier() or name in ("index", "name", "value"):
        raise RelaxError(f"expected identifiers other than index, name and value for option '{option}', got '{name}'")
    if not colon:
        return Extra(name, None)
    try:
        # MLIR crashes on text that is empty.
        type_ = ir.Type.parse(type_text) if type_text else None
    except ir.MLIRError:
        type_ = None
    if type_ is None:
        raise RelaxError(f"expected the type of '{name}' for option '{option}', got '{type_text}'")
    if not (is_tensor(type_) or isinstance(type_, ir.IndexType | ir.IntegerType | ir.FloatType | Object)):
        raise RelaxError(f"expected a tensor, a number or !relax.object as '{name}' for option '{option}', got {type_}")
    check_type(type_)
    return Extra(name, type_)
