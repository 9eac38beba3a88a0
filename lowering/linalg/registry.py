"""Which function lowers which op: ``@lowering("relax.add")`` puts one in, :func:`lowering_of` gets it."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.foreign_code import check_ops, missing_in
from ...dialect.op import Attrs
from ...dialect.plugins import load_parts
from ...dialect.struct_info import TensorInfo

if TYPE_CHECKING:
    from .builder import LinalgBuilder, Tensor

__all__ = ["FAMILIES", "Lowering", "Source", "lowering", "lowering_of", "lowerings"]

#: Modules of this folder that hold lowerings; the same names as in ``dialect/ops``.
FAMILIES = (
    "binary", "builtin", "collective", "creation", "datatype", "extern", "indexing", "io", "linear_algebra", "manipulate",
    "nn", "quantize", "search", "statistical", "unary", "vdevice", "winograd",
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A relax op that is being lowered.

    Attributes:
        op: the op, for its location and uses; its operands still are the relax values.
        operands: what its operands have become.
        attrs: the values of its attributes, defaults filled in.
        results: its results' infos, with what inference says of sizes that their types leave open.
        unknown: operands and axes of which types say nothing.
    """

    op: ir.OpView
    operands: Sequence[Tensor]
    attrs: Attrs
    results: Sequence[TensorInfo]
    unknown: frozenset[tuple[int, int]] = frozenset()

    @property
    def result(self) -> TensorInfo:
        """The info of the only result."""
        return self.results[0]


#: Emits what replaces an op at the insertion point; returns one value per result (a Tensor to say more of it).
Lowering = Callable[["LinalgBuilder", Source], "ir.Value | Tensor | Sequence[ir.Value | Tensor]"]

_LOWERINGS: dict[str, Lowering] = {}


def lowering(*names: str) -> Callable[[Lowering], Lowering]:
    """Registers a function as the lowering of ops, by their full names."""

    def register(function: Lowering) -> Lowering:
        for name in names:
            known = _LOWERINGS.setdefault(name, function)
            if known.__module__ != function.__module__:
                raise RelaxError(
                    f"expected one lowering of '{name}', got those of {known.__module__} and {function.__module__}"
                )
        return function

    return register


@functools.cache
def lowerings() -> dict[str, Any]:
    """Every lowering by op name, those of other packages included."""
    for family in FAMILIES:
        importlib.import_module(f".{family}", __package__)
    load_parts("lowering")
    check_ops(_LOWERINGS, "lowering")
    return _LOWERINGS


def lowering_of(name: str) -> Lowering:
    """The lowering of an op. Raises RelaxError when it has none."""
    found = lowerings().get(name)
    if found is None:
        raise RelaxError(f"expected an op that lowers to linalg, got '{name}'{missing_in(name, 'lowering')}")
    return found
