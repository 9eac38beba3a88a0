"""Sizes of a model's inputs: numbers, and symbols that the shapes of calls determine."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from ...dialect.errors import RelaxError
from ...dialect.symbolic import Dim, Expr, parse, substitute, symbol

__all__ = ["input_shapes", "undetermined"]


def input_shapes(
    inputs: Sequence[Any], dims: Mapping[str, int | str], fixed: Container[str] = ()
) -> dict[str, tuple[Dim, ...]]:
    """The shape of each input by its name, where what ``dims`` names is what it says.

    A dimension without a name is a symbol of its own, and so is one that is written by others which no input determines, of
    those that calls give: ``fixed`` are the others.

    Raises:
        RelaxError: an input is no tensor of known rank; dims names what no input has, or gives no size.
    """
    values = {name: _size(name, value) for name, value in dims.items()}
    found: dict[str, tuple[Dim, ...]] = {}
    names: set[str] = set()
    for given in inputs:
        kind = given.type.WhichOneof("value")
        if kind != "tensor_type":
            raise RelaxError(f"expected tensors as inputs, got '{given.name}' of {kind or 'no type'}")
        if not given.type.tensor_type.HasField("shape"):
            raise RelaxError(f"expected inputs of known rank, got '{given.name}'")
        sizes = [_dimension(d, f"{given.name}_{i}") for i, d in enumerate(given.type.tensor_type.shape.dim)]
        names |= {n for s in sizes if isinstance(s, Expr) for n in s.names}
        found[given.name] = tuple(substitute(s, values) for s in sizes)
    if unknown := sorted(set(values) - names):
        raise RelaxError(f"expected dims among {', '.join(sorted(names)) or 'none'}, got '{unknown[0]}'")
    if negative := next((n for n, shape in found.items() for s in shape if isinstance(s, int) and s < 0), None):
        raise RelaxError(f"expected sizes from 0 on, got {found[negative]} of '{negative}'")
    free = undetermined(s for name, shape in found.items() if name not in fixed for s in shape)
    return {n: shape if n in fixed else tuple(_own(s, free) for s in shape) for n, shape in found.items()}


def _size(name: str, value: int | str) -> int | Expr:
    found = value if isinstance(value, int) else parse(value)
    if found is None or isinstance(found, bool):
        raise RelaxError(f"expected a size or an expression for '{name}', got {value!r}")
    return found


def _dimension(dim: Any, name: str) -> Dim:
    """A size; a symbol where the model names one, or says nothing, as converters do with ``None``, ``?`` and ``-1`` as well."""
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    is_named = dim.dim_param != "None" and any(map(str.isalpha, dim.dim_param))
    text = dim.dim_param if is_named else name
    try:
        found = parse(text)
    except RelaxError:
        found = None
    return found if isinstance(found, Expr) else _plain(text)


def _plain(text: str) -> Expr:
    plain = "".join(c if c.isalnum() or c == "_" else "_" for c in (c if c.isascii() else f"u{ord(c):x}" for c in text))
    if keyword.iskeyword(plain):
        return symbol(f"{plain}_")
    return symbol(plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}")


def _own(size: Dim, free: frozenset[str]) -> Dim:
    return _plain(size.text) if isinstance(size, Expr) and size.names & free else size


def undetermined(sizes: Iterable[Dim]) -> frozenset[str]:
    """The symbols whose values do not follow from values of these expressions: each has to be linear in one at a time."""
    left = [s for s in sizes if isinstance(s, Expr)]
    known: set[str] = set()
    while True:
        more = {n for s in left for n in s.names - known if len(s.names - known) == 1 and _is_linear(s, n)}
        if not more:
            return frozenset(n for s in left for n in s.names) - known
        known |= more


def _is_linear(size: Expr, name: str) -> bool:
    """Whether a multiple of the symbol is a term, and no other term has it."""
    terms = [monomial for monomial, _ in size.terms if any(name in re.findall(r"\w+", atom) for atom in monomial)]
    return len(terms) == 1 and terms[0].count(name) == 1 and all(atom.isidentifier() for atom in terms[0])
