"""Operators of other packages: what each computes, as a function of operators that the import knows. Imports no torch."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from ..dialect.errors import RelaxError
from ..dialect.plugins import TORCH_OPS, load, plugins

__all__ = ["composites", "register_torch_op", "registered_operator"]

Composite = Callable[..., Any]

_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")

_registered: dict[str, Composite] = {}


def register_torch_op(name: str, composite: Composite) -> None:
    """Says what an operator of torch computes, for :func:`from_torch` and ``torch.compile(..., backend="relaxir")``.

    ::

        @torch.library.custom_op("acme::soft_sign", mutates_args=())
        def soft_sign(x: torch.Tensor, sharpness: float) -> torch.Tensor: ...

        rx.register_torch_op("acme::soft_sign", lambda x, sharpness: x / (sharpness + x.abs()))

    A package does so by an entry point of the group ``relaxir.torch_ops``. A later registration takes the place of an earlier
    one, of an entry point's, and of what is known of an operator of torch's own.

    There is no way to call a function of another library instead: compiled code is checked to stay inside of its tensors, and
    nothing is known of what such a function reads and writes.

    Args:
        name: the operator, ``namespace::name``, or with an overload ``namespace::name.overload``.
        composite: takes what the operator takes, by position and by name, and returns what it returns, computed by operators
            that can be imported. It is traced, with sizes that may be symbolic, and must not write to its arguments.

    Raises:
        RelaxError: it is no such name, or no function.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RelaxError(f"expected an operator's name as 'namespace::name', got {name!r}")
    if not callable(composite):
        raise RelaxError(f"expected a function of torch operators for '{name}', got {type(composite).__name__}")
    _registered[name] = composite


def composites() -> dict[Any, Composite]:
    """The functions by torch's operator; those of operators that this process does not have are left out.

    Raises:
        RelaxError: an entry point does not load, or names no operator.
    """
    known: dict[str, Composite] = {}
    for entry, composite in zip(plugins(TORCH_OPS), load(TORCH_OPS), strict=True):
        if not _NAME.fullmatch(entry.name) or not callable(composite):
            raise RelaxError(f"expected plug-in '{entry.name}' of {TORCH_OPS} to be a function under an operator's name")
        known[entry.name] = cast("Composite", composite)
    found = ((registered_operator(name), composite) for name, composite in (known | _registered).items())
    return {operator: composite for operator, composite in found if operator is not None}


def registered_operator(name: str) -> Any:
    """The operator of a name such as ``namespace::name.overload``; None where this process has none."""
    import torch

    namespace, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), base, None)
    return None if packet is None else getattr(packet, overload or "default", None)
