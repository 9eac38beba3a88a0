"""Writes the reads and writes of a lazy function: ops of ours on a callback argument, or calls of declared functions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...bindings import arith, func, ir
from ...function_types import named, set_argument_attributes
from ...functions import NAME, argument_names, functions, name_of
from ...lazy_calls import CALLBACK, INDEX, READ, VALUE, WRITE, callback_of
from ...ops import BindArgument, GetParam, MatchCast, SetOutput
from ...struct_info import TensorInfo
from ...symbolic import Expr
from .options import CallStyle

__all__ = ["Declarations", "WeightCalls", "WeightOps"]


class WeightCalls:
    """Calls declared functions; the base of :class:`WeightOps`, which calls an argument instead.

    Args:
        declarations: those of the module.
        style: what calls carry.
        extras: the values of ``style.extras``.
    """

    def __init__(self, declarations: Declarations, style: CallStyle, extras: Sequence[ir.Value]):
        self.declarations, self.style, self.extras = declarations, style, list(extras)

    def read(self, type_: ir.Type, index: int, name: str | None) -> ir.Value:
        """Reads a weight, at the current insertion point and location."""
        # A declaration knows no symbols of its callers: the callback returns open dimensions, which are matched here.
        open_ = _without_symbols(type_)
        (result,) = self._call(READ, [], [open_], index, name)
        return result if open_ == type_ else MatchCast.create(result, result_types=[type_]).results[0]

    def write(self, value: ir.Value, index: int, name: str | None) -> None:
        """Hands a result over, at the current insertion point and location."""
        open_ = _without_symbols(value.type)
        handed = value if open_ == value.type else MatchCast.create(value, result_types=[open_]).results[0]
        self._call(WRITE, [(VALUE, handed)], [], index, name)

    def _call(
        self, kind: str, values: list[tuple[str, ir.Value]], results: list[ir.Type], index: int, name: str | None
    ) -> list[ir.Value]:
        arguments = [(INDEX, arith.constant(ir.IndexType.get(), index))] if self.style.index else []
        arguments += values
        arguments += zip((e.name for e in self.style.extras), self.extras, strict=True)
        operands = [v for _, v in arguments]
        callee = self.declarations.get(kind, [n for n, _ in arguments], [v.type for v in operands], results)
        call = func.CallOp(results, callee, operands)
        if self.style.name and name is not None:
            call.operation.attributes[NAME] = ir.StringAttr.get(name)
        return list(call.operation.results)


class WeightOps(WeightCalls):
    """Calls a provider or a sink, to which the extras are bound."""

    callback: ir.Value

    def bind(self, callback: ir.Value) -> None:
        """Sets whom to call, at the current insertion point and location."""
        for extra, value in zip(self.style.extras, self.extras, strict=True):
            callback = BindArgument.create(callback, value, result_types=[callback.type], name=extra.name).results[0]
        self.callback = callback

    def read(self, type_: ir.Type, index: int, name: str | None) -> ir.Value:
        index_, name_ = self._address(index, name)
        return GetParam.create(self.callback, result_types=[type_], index=index_, name=name_).results[0]

    def write(self, value: ir.Value, index: int, name: str | None) -> None:
        index_, name_ = self._address(index, name)
        SetOutput.create(self.callback, value, index=index_, name=name_)

    def _address(self, index: int, name: str | None) -> tuple[int | None, str | None]:
        return index if self.style.index else None, name if self.style.name else None


class Declarations:
    """The functions of a module that are declared as callbacks, by what they take and return; made as they are asked for."""

    def __init__(self, module: ir.Operation):
        self._block: ir.Block = module.regions[0].blocks[0]
        self._location = module.location
        known = functions(module)
        self._taken = {name_of(f) for f in known}
        self._known: dict[tuple[object, ...], str] = {}
        for function in known:
            if CALLBACK in function.attributes:
                type_ = ir.TypeAttr(function.attributes["function_type"]).value
                self._known.setdefault((callback_of(function), tuple(argument_names(function)), type_), name_of(function))

    def get(self, kind: str, names: Sequence[str], operands: Sequence[ir.Type], results: Sequence[ir.Type]) -> str:
        """The name of the callback of that kind, declared with these arguments and results."""
        type_ = ir.FunctionType.get(operands, results)
        key = (kind, tuple(names), type_)
        if key not in self._known:
            tensor = results[0] if kind == READ else operands[list(names).index(VALUE)]
            self._known[key] = self._declare(kind, self._unused(f"{kind}_{_type_text(tensor)}"), names, type_)
        return self._known[key]

    def _declare(self, kind: str, name: str, names: Sequence[str], type_: ir.FunctionType) -> str:
        with self._location, ir.InsertionPoint(self._block):
            function = func.FuncOp(name, type_, visibility="private")
        set_argument_attributes(function, [named(n) for n in names])
        function.attributes[CALLBACK] = ir.StringAttr.get(kind)
        return name

    def _unused(self, name: str) -> str:
        candidate, number = name, 0
        while candidate in self._taken:
            candidate, number = f"{name}_{number}", number + 1
        self._taken.add(candidate)
        return candidate


def _without_symbols(type_: ir.Type) -> ir.Type:
    info = TensorInfo.of(type_)
    return info.with_(shape=[None if isinstance(d, Expr) else d for d in info.shape]).type


def _type_text(type_: ir.Type) -> str:
    """A tensor type as part of a name: ``4xDxf32``, with the device where it has one."""
    info = TensorInfo.of(type_)
    text = "x".join(["D" if d is None else str(d) for d in info.shape] + [str(info.dtype)])
    return re.sub(r"\W", "_", text if info.vdevice is None else f"{text}_{info.vdevice}")
