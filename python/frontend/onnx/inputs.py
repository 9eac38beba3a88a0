"""Sizes of a model's inputs: numbers, and symbols that the shapes of calls determine."""

from __future__ import annotations

import itertools
import keyword
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...dialect.checks import expect, expect_text, whole_number
from ...dialect.errors import RelaxError
from ...dialect.size_relations import shape_text
from ...dialect.symbolic import Dim, Expr, parse, substitute, symbol

__all__ = ["expect_dims", "input_shapes", "undetermined"]


def expect_dims(dims: object, what: str = "dims") -> dict[str, int | str]:
    """Sizes and expressions by the names of dimensions. Raises RelaxError for anything else."""
    expect(dims, Mapping, f"{what} as a mapping, as {{'batch': 1}}")
    found = dict(cast("Mapping[Any, Any]", dims))
    for name, value in found.items():
        expect_text(name, f"names of dimensions in {what}")
        number = whole_number(value)
        if number is None and not isinstance(value, str):
            raise RelaxError(f"expected a size or an expression for '{name}', got {value!r}")
        found[name] = value if number is None else number
    return found


def input_shapes(
    inputs: Sequence[Any], dims: Mapping[str, int | str], fixed: Container[str] = ()
) -> dict[str, tuple[Dim, ...]]:
    """The shape of each input by its name, where what ``dims`` names is what it says.

    A dimension without a name is a symbol of its own, and so is one that is written by others which no input determines, of
    those that calls give: ``fixed`` are the others. Names that are no symbols become some, different ones different symbols;
    ``dims`` may have either.

    Raises:
        RelaxError: an input is no tensor of known rank; dims names what no input has, or gives no size.
    """
    values = {name: _size(name, value) for name, value in dims.items()}
    read = {given.name: _dimensions(given) for given in inputs}
    symbols = _Symbols(size for shape in read.values() for size in shape)
    found = {name: tuple(symbols.of(size) for size in shape) for name, shape in read.items()}
    names = {n for shape in found.values() for s in shape if isinstance(s, Expr) for n in s.names}
    values = {n if n in names else symbols.named(n): value for n, value in values.items()}
    if unknown := sorted(set(values) - names):
        raise RelaxError(f"expected dims among {', '.join(sorted(names)) or 'none'}, got '{unknown[0]}'")
    found = {name: tuple(substitute(s, values) for s in shape) for name, shape in found.items()}
    if negative := next((n for n, shape in found.items() for s in shape if isinstance(s, int) and s < 0), None):
        raise RelaxError(f"expected sizes from 0 on, got {shape_text(found[negative])} of '{negative}'")
    free = undetermined(s for name, shape in found.items() if name not in fixed for s in shape)
    return {n: shape if n in fixed else tuple(symbols.own(s, free) for s in shape) for n, shape in found.items()}


def _size(name: str, value: int | str) -> int | Expr:
    found = value if isinstance(value, int) else parse(value)
    if found is None:
        raise RelaxError(f"expected a size or an expression for '{name}', got {value!r}")
    return found


@dataclass(frozen=True)
class _Name:
    """What a dimension is called that is no expression; ``is_given`` says by whom: the model, or its input and place."""

    text: str
    is_given: bool


def _dimensions(given: Any) -> list[Dim | _Name]:
    """Raises RelaxError for an input that is no tensor of known rank."""
    kind = given.type.WhichOneof("value")
    if kind != "tensor_type":
        raise RelaxError(f"expected tensors as inputs, got '{given.name}' of {kind or 'no type'}")
    if not given.type.tensor_type.HasField("shape"):
        raise RelaxError(f"expected inputs of known rank, got '{given.name}'")
    return [_dimension(d, f"{given.name}_{i}") for i, d in enumerate(given.type.tensor_type.shape.dim)]


def _dimension(dim: Any, name: str) -> Dim | _Name:
    """A size, or its name; its own where the model says nothing, as converters do with ``None``, ``?`` and ``-1`` as well."""
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    if dim.dim_param == "None" or not any(map(str.isalpha, dim.dim_param)):
        return _Name(name, is_given=False)
    try:
        found = parse(dim.dim_param)
    except RelaxError:
        found = None
    return found if isinstance(found, Expr) else _Name(dim.dim_param, is_given=True)


class _Symbols:
    """A symbol for each name of a dimension, of whatever characters: different ones for different names."""

    def __init__(self, sizes: Iterable[Dim | _Name]):
        """``sizes``: all of the inputs; symbols that expressions have are not taken for anything else."""
        self._found: dict[_Name | Expr, Expr] = {}
        self._taken = {n for s in sizes if isinstance(s, Expr) for n in s.names}

    def of(self, size: Dim | _Name) -> Dim:
        """What stands for a size: of names a symbol."""
        return self._symbol(size, size.text) if isinstance(size, _Name) else size

    def own(self, size: Dim, free: frozenset[str]) -> Dim:
        """The same, where an expression of symbols that no call determines is a symbol, too."""
        return self._symbol(size, size.text) if isinstance(size, Expr) and size.names & free else size

    def named(self, text: str) -> str:
        """The symbol of what the model calls a dimension; the text where it calls none so."""
        found = self._found.get(_Name(text, is_given=True))
        return text if found is None else found.text

    def _symbol(self, size: _Name | Expr, text: str) -> Expr:
        if size not in self._found:
            plain = _plain(text)
            numbered = (f"{plain}_{i}" for i in itertools.count(1))
            name = plain if plain not in self._taken else next(n for n in numbered if n not in self._taken)
            self._taken.add(name)
            self._found[size] = symbol(name)
        return self._found[size]


def _plain(text: str) -> str:
    """An identifier like the text."""
    plain = "".join(c if c.isalnum() or c == "_" else "_" for c in (c if c.isascii() else f"u{ord(c):x}" for c in text))
    if keyword.iskeyword(plain):
        return f"{plain}_"
    return plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"


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
