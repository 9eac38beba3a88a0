"""The operands and results that an op declares: how many there may be, how one gets at them, what inference says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .bindings import ir, irdl
from .errors import RelaxError
from .foreign_code import error_text, is_foreign
from .struct_info import TensorInfo

__all__ = ["Group", "Tensor", "add_accessors", "results_of"]

Tensor: TypeAlias = ir.RankedTensorType | ir.UnrankedTensorType


@dataclass(frozen=True)
class Group:
    """The operands, or the results, that an op declares.

    Attributes:
        names: what they are called.
        fewest, most: how many there may be; None for any number.
        tensors: which of them are tensors; what the last one is, those that follow it are, too.
        optional: the position of the one that may be absent; None where there is none, or several.
    """

    names: tuple[str, ...]
    fewest: int
    most: int | None
    tensors: tuple[bool, ...]
    optional: int | None

    @staticmethod
    def of(definitions: Sequence[Any]) -> Group:
        kinds = [d.variadicity for d in definitions]
        most = None if irdl.Variadicity.variadic in kinds else len(kinds)
        tensors = tuple(d.constraint == Tensor for d in definitions)
        fewest = kinds.count(irdl.Variadicity.single)
        optional = kinds.index(irdl.Variadicity.optional) if fewest == len(kinds) - 1 == (most or 0) - 1 else None
        return Group(tuple(d.name for d in definitions), fewest, most, tensors, optional)

    def fits(self, count: int) -> bool:
        """Whether there may be so many."""
        return self.fewest <= count and (self.most is None or count <= self.most)

    def filled(self, values: Sequence[Any]) -> Sequence[Any]:
        """Values with None for one that may be absent and is."""
        if self.optional is None or len(values) == len(self.names):
            return values
        return [*values[: self.optional], None, *values[self.optional :]]

    def name(self, position: int) -> str:
        """What the value at a position is called."""
        return self.names[min(position, len(self.names) - 1)]

    def infos(self, values: Sequence[ir.Value]) -> list[TensorInfo | None]:
        """The tensors' infos, None where the op wants something else (which IRDL checks)."""
        last = len(self.tensors) - 1
        return [TensorInfo.of(v) if self.tensors[min(i, last)] else None for i, v in enumerate(values)]


def add_accessors(cls: type, definitions: list[Any], values: str) -> None:
    """Named accessors for operands or results around at most one variadic or optional group."""
    single = irdl.Variadicity.single
    groups = [i for i, d in enumerate(definitions) if d.variadicity != single]
    if len(groups) > 1:
        raise TypeError(f"{cls.__name__}: expected at most one variadic or optional group in {values}")
    group = groups[0] if groups else len(definitions)
    after = len(definitions) - group - 1
    for i, definition in enumerate(definitions):
        if i < group:
            getter = lambda self, i=i: getattr(self, values)[i]  # noqa: E731
        elif i > group:
            getter = lambda self, i=i: list(getattr(self, values))[i - len(definitions)]  # noqa: E731
        elif definition.variadicity == irdl.Variadicity.optional:
            getter = lambda self: next(iter(list(getattr(self, values))[group : len(getattr(self, values)) - after]), None)  # noqa: E731
        else:
            getter = lambda self: list(getattr(self, values))[group : len(getattr(self, values)) - after]  # noqa: E731
        setattr(cls, definition.name, property(getter))


def results_of(cls: Any, operands: Sequence[TensorInfo | None], attrs: Mapping[str, Any]) -> list[TensorInfo]:
    """What the inference of an op's class says of its results. Raises RelaxError for what is no info of a tensor."""
    try:
        found = cls.infer(operands, attrs)
    except Exception as error:
        if isinstance(error, RelaxError) or not is_foreign(cls):
            raise
        raise RelaxError(f"expected inference that returns infos of tensors, got {error_text(error)}") from error
    infos: list[Any] = list(found) if isinstance(found, list | tuple) else [found]
    if not all(isinstance(info, TensorInfo) for info in infos):
        raise RelaxError(f"expected inference that returns infos of tensors, got {found!r}")
    return infos
