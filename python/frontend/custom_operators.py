"""Operators of other packages: what each computes, as a function of operators that the import knows, or a C function that does.

Imports no torch.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from ..dialect.errors import RelaxError
from ..dialect.extern_functions import SYMBOL, allow_extern
from ..dialect.plugins import TORCH_OPS, load, plugins
from ..weights.files import path_text

__all__ = ["Extern", "composites", "extern_operators", "register_torch_op", "registered_operator"]

Composite = Callable[..., Any]

_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")


@dataclass(frozen=True, kw_only=True)
class Extern:
    """A C function that computes an operator of torch: ``int f(const DLTensor *, int32_t, DLTensor *, int32_t, ...)``.

    It gets the operator's tensors, those of lists one by one, without those that are None, and writes the results, which are
    there: contiguous, in the memory of the host, of the sizes that the operator's fake function says. Tensors that the operator
    writes to come as inputs, with what they held, and again as outputs behind its results. Behind all of these come the other
    arguments in their order, as ``int64_t`` (truth values, too), ``double`` or ``const char *``, elements of lists one by
    one. It returns 0, or another number, which ends the call with a RelaxError.

    It is trusted: it must stay inside of these tensors, write to no input, and give the same for the same. From now on, modules
    may call it in this process.

    Attributes:
        library: the shared library that has it, as the system's loader takes it; empty: the process itself. Artifacts name it.
        symbol: its name in C.
        version: of what it computes. Weights that it prepares are tied to it.
    """

    library: str | os.PathLike[str] = ""
    symbol: str
    version: str = ""

    def __post_init__(self) -> None:
        """Raises RelaxError for what is no path, or no name."""
        object.__setattr__(self, "library", "" if self.library == "" else path_text(self.library, "load"))
        if not isinstance(self.symbol, str) or not SYMBOL.fullmatch(self.symbol):
            raise RelaxError(f"expected the name of a C function, got {self.symbol!r}")
        if not isinstance(self.version, str):
            raise RelaxError(f"expected a version of '{self.symbol}' as text, got {type(self.version).__name__}")
        allow_extern(str(self.library), self.symbol)


_registered: dict[str, Composite | Extern] = {}


def register_torch_op(name: str, computed: Composite | Extern) -> None:
    """Says what computes an operator of torch, for :func:`from_torch` and ``torch.compile(..., backend="relaxir")``.

    ::

        @torch.library.custom_op("acme::soft_sign", mutates_args=())
        def soft_sign(x: torch.Tensor, sharpness: float) -> torch.Tensor: ...

        rx.register_torch_op("acme::soft_sign", lambda x, sharpness: x / (sharpness + x.abs()))
        rx.register_torch_op("acme::soft_sign", rx.Extern(library="libacme.so", symbol="acme_soft_sign"))     # or this

    A package does so by an entry point of the group ``relaxir.torch_ops``. A later registration takes the place of an earlier
    one, of an entry point's, and of what is known of an operator of torch's own.

    Args:
        name: the operator, ``namespace::name``, or with an overload ``namespace::name.overload``.
        computed: a function that takes what the operator takes, by position and by name, and returns what it returns, computed
            by operators that can be imported: it is traced, with sizes that may be symbolic, and must not write to its
            arguments. Or a C function, :class:`Extern`.

    Raises:
        RelaxError: it is no such name, or neither of these.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RelaxError(f"expected an operator's name as 'namespace::name', got {name!r}")
    if not isinstance(computed, Extern) and not callable(computed):
        raise RelaxError(
            f"expected a function of torch operators or a relaxir.Extern for '{name}', got {type(computed).__name__}"
        )
    _registered[name] = computed


def composites() -> dict[Any, Composite]:
    """The functions by torch's operator; those of operators that this process does not have are left out.

    Raises:
        RelaxError: an entry point does not load, or names no operator.
    """
    known = {name: c for name, c in _known().items() if not isinstance(c, Extern)}
    found = ((registered_operator(name), composite) for name, composite in known.items())
    return {operator: composite for operator, composite in found if operator is not None}


def extern_operators() -> dict[str, Extern]:
    """The C functions by the operator's name in the torch dialect: ``acme.soft_sign``, ``acme.soft_sign.overload``.

    Raises:
        RelaxError: an entry point does not load, or names no operator.
    """
    known = {name: c for name, c in _known().items() if isinstance(c, Extern)}
    return {name.replace("::", ".").removesuffix(".default"): extern for name, extern in known.items()}


def _known() -> dict[str, Composite | Extern]:
    """What entry points and this process say, by operator."""
    known: dict[str, Composite | Extern] = {}
    for entry, computed in zip(plugins(TORCH_OPS), load(TORCH_OPS, "a function or a relaxir.Extern", _computes), strict=True):
        if not _NAME.fullmatch(entry.name):
            raise RelaxError(f"expected plug-in '{entry.name}' of {TORCH_OPS} under an operator's name, as 'acme::soft_sign'")
        known[entry.name] = cast("Composite | Extern", computed)
    return known | _registered


def _computes(found: object) -> bool:
    return isinstance(found, Extern) or callable(found)


def registered_operator(name: str) -> Any:
    """The operator of a name such as ``namespace::name.overload``; None where this process has none."""
    import torch

    namespace, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), base, None)
    return None if packet is None else getattr(packet, overload or "default", None)
