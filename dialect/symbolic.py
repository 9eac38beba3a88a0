"""Symbolic dimensions: integer expressions over named sizes, kept in one canonical form so that equal means identical.

An :class:`Expr` is a polynomial with integer coefficients over atoms. An atom is a name (``n``) or a division that does
not simplify (``(n + 1) // 2``, ``n % 4``). Sums, products and exact divisions normalise: ``n + n``, ``2 * n`` and
``(4 * n) // 2`` are all ``n * 2``. A dimension is an ``int``, an ``Expr`` or ``None`` (unknown). What computes with unknown
sizes gives each an *open* name, which no text can contain and which prints as unknown.
"""

from __future__ import annotations

import ast
import functools
import keyword
import math
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .errors import RelaxError

__all__ = [
    "UNKNOWN",
    "Dim",
    "Expr",
    "InnerSize",
    "dim_text",
    "divided",
    "divisors",
    "evaluate",
    "fits",
    "is_open",
    "magnitude",
    "multiply_all",
    "open_dim",
    "open_place",
    "parse",
    "refuse_negative",
    "require_bounded",
    "same",
    "solve",
    "substitute",
    "symbol",
]

#: How an unknown dimension is written in a type's ``sym`` list.
UNKNOWN = "?"

#: What open names begin with: a letter to Python, and none that a symbol may have.
_OPEN = "δ"

_Monomial = tuple[str, ...]

_PARSING = threading.Lock()

#: The largest number in an expression: code computes sizes with 64 bits and a sign.
_MOST = 2**63 - 1
# Expressions of models have ten terms, and three divisions inside each other. A product of sums has any number of terms for a
# few characters of text (30 factors of 8 symbols: 10 million), and trees are walked recursively.
_MOST_PRODUCTS, _MOST_DEPTH = 10_000, 200
#: Characters of a text that a message quotes.
_QUOTED = 80


class Expr:
    """A canonical integer expression; immutable, hashable, equal when it prints the same."""

    __slots__ = ("_hash", "_names", "_text", "terms")

    def __init__(self, terms: Mapping[_Monomial, int]):
        kept = [t for t in terms.items() if t[1]]
        if len(kept) > 1:
            kept.sort(key=lambda t: (-len(t[0]), t[0]))
        self.terms: tuple[tuple[_Monomial, int], ...] = tuple(kept)
        self._hash = hash(self.terms)
        self._text: str | None = None
        self._names: frozenset[str] | None = None

    @property
    def text(self) -> str:
        """How it prints. Most expressions are steps of a sum or product, and nobody prints them."""
        if self._text is None:
            self._text = _print(self.terms)
        return self._text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Expr({self.text!r})"

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and other.terms == self.terms

    def __add__(self, other: int | Expr) -> int | Expr:
        return _sum((self, other))

    __radd__ = __add__

    def __neg__(self) -> int | Expr:
        return self * -1

    def __sub__(self, other: int | Expr) -> int | Expr:
        return self + (-other)

    def __rsub__(self, other: int | Expr) -> int | Expr:
        return -self + other

    def __mul__(self, other: int | Expr) -> int | Expr:
        if isinstance(other, Expr) and len(self.terms) * len(other.terms) > _MOST_PRODUCTS:
            raise RelaxError(f"expected a product of at most {_MOST_PRODUCTS} terms, got {len(self.terms) * len(other.terms)}")
        terms: dict[_Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
                monomial = tuple(sorted(left + right))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return _simplified(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: int | Expr) -> int | Expr:
        exact = _quotient(self, other)
        if exact is not None:
            return exact
        return _simplified({(f"{_atom_text(self)} // {_atom_text(other)}",): 1})

    def __rfloordiv__(self, other: int) -> int | Expr:
        return _simplified({(f"{other} // {_atom_text(self)}",): 1})

    def __mod__(self, other: int | Expr) -> int | Expr:
        if _quotient(self, other) is not None:
            return 0
        return _simplified({(f"{_atom_text(self)} % {_atom_text(other)}",): 1})

    def __rmod__(self, other: int) -> int | Expr:
        return _simplified({(f"{other} % {_atom_text(self)}",): 1})

    @property
    def names(self) -> frozenset[str]:
        """The symbols that occur, also inside divisions."""
        if self._names is None:
            self._names = frozenset(n.id for n in ast.walk(_tree(self.text)) if isinstance(n, ast.Name))
        return self._names


#: A dimension: known, symbolic, or unknown.
Dim = int | Expr | None


@dataclass(frozen=True)
class InnerSize:
    """An expression over a function's symbols that is computed inside of it, and where: ``file:3:5: 'relax.full' op``."""

    expr: Expr
    of: str


def symbol(name: str) -> Expr:
    """The expression that is just this name. Raises RelaxError when it is no ASCII identifier, or a keyword of Python."""
    if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name):
        raise RelaxError(f"expected a symbol name, got {name!r}")
    return Expr({(name,): 1})


@functools.lru_cache(maxsize=4096)
def open_dim(*numbers: int) -> Expr:
    """The open name of those numbers."""
    return Expr({(_OPEN + "_".join(map(str, numbers)),): 1})


def open_place(dim: Expr) -> tuple[int, ...] | None:
    """The numbers of an open name; None for anything else."""
    name = dim.text
    return tuple(map(int, name.removeprefix(_OPEN).split("_"))) if name.startswith(_OPEN) and name.isidentifier() else None


def is_open(dim: Dim) -> bool:
    """Whether a dimension is unknown, or computed from one that is."""
    return dim is None or (isinstance(dim, Expr) and not dim.text.isascii())


@functools.lru_cache(maxsize=65536)
def parse(text: str) -> Dim:
    """Reads ``n * 2 + 1`` (operators ``+ - * // %``, parentheses, integers, names); ``?`` is unknown.

    Raises:
        RelaxError: the text is not such an expression, or has numbers of more than 64 bits.
    """
    if text.strip() == UNKNOWN:
        return None
    try:
        dim = _build(_tree(text.strip()))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError, RelaxError):
        raise RelaxError(f"expected a symbolic dimension such as 'n * 2 + 1', got {_quoted(text)}") from None
    require_bounded(dim)
    return dim


@functools.lru_cache(maxsize=65536)
def require_bounded(dim: int | Expr) -> None:
    """Refuses a dimension that compiled code cannot compute: with numbers of more than 64 bits, or nested too deeply."""
    if isinstance(dim, int):
        if abs(dim) > _MOST:
            raise RelaxError(f"expected a dimension of at most 2**63 - 1, got {_quoted(_number_text(dim))}")
        return
    if any(abs(coefficient) > _MOST for _, coefficient in dim.terms):
        raise RelaxError(f"expected numbers of at most 2**63 - 1 in a dimension, got {_quoted(_text_of(dim))}")
    levels = _levels(dim)
    if len(levels) > _MOST_DEPTH:
        raise RelaxError(f"expected a dimension of at most {_MOST_DEPTH} nested operations, got {_quoted(dim.text)}")
    numbers = [n.value for level in levels for n in level if isinstance(n, ast.Constant)]
    if any(isinstance(n, int) and n > _MOST for n in numbers):
        raise RelaxError(f"expected numbers of at most 2**63 - 1 in a dimension, got {_quoted(dim.text)}")


def _levels(dim: Expr) -> list[list[ast.AST]]:
    """The nodes of its syntax tree by depth, down to one level more than there may be."""
    try:
        levels: list[list[ast.AST]] = [[_tree(dim.text)]]
    except (SyntaxError, RecursionError, MemoryError):  # of an expression that was built and not parsed
        return [[]] * (_MOST_DEPTH + 1)
    while levels[-1] and len(levels) <= _MOST_DEPTH:
        levels.append([inner for node in levels[-1] for inner in ast.iter_child_nodes(node)])
    return levels


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= _QUOTED else f"{text[:_QUOTED]!r}... of {len(text)} characters"


def _number_text(number: int) -> str:
    """Python refuses to write numbers of more than 4,300 digits, which takes it long."""
    return str(number) if number.bit_length() < 10_000 else f"a number of {number.bit_length()} bits"


def _text_of(dim: Expr) -> str:
    longest = max(coefficient.bit_length() for _, coefficient in dim.terms)
    return dim.text if longest < 10_000 else f"one of {longest} bits"


def multiply_all(sizes: Iterable[Dim]) -> Dim:
    """The product, as of all dimensions the number of elements; None where one is unknown."""
    total: int | Expr = 1
    for size in sizes:
        if size is None:
            return None
        total = total * size
    return total


def divided(atom: str) -> tuple[Dim, Dim, bool]:
    """Dividend and divisor of an atom that is no symbol, and whether it is what is left over (``n % 4``)."""
    node = _tree(atom)
    assert isinstance(node, ast.BinOp)
    return _build(node.left, {}), _build(node.right, {}), isinstance(node.op, ast.Mod)  # open names among them


def divisors(dim: Expr) -> list[Expr]:
    """What an expression divides by, inside of dividends, too, that is no number."""
    found: list[Expr] = []
    for atom in (a for monomial, _ in dim.terms for a in monomial if not a.isidentifier()):
        dividend, divisor, _ = divided(atom)
        found += divisors(dividend) if isinstance(dividend, Expr) else []
        found += [divisor] if isinstance(divisor, Expr) else []
    return list(dict.fromkeys(found))


def dim_text(dim: Dim) -> str:
    """The canonical text of a dimension."""
    return UNKNOWN if is_open(dim) else str(dim)


def same(left: Dim, right: Dim) -> bool:
    """Whether two dimensions may be equal: identical, or one of them unknown."""
    return left is None or right is None or left == right


def substitute(dim: Dim, values: Mapping[str, int | Expr]) -> Dim:
    """Replaces symbols by values; symbols without a value stay. Raises RelaxError for a division by zero."""
    if not isinstance(dim, Expr) or dim.names.isdisjoint(values):
        return dim
    try:
        return _build(_tree(dim.text), values)
    except ZeroDivisionError:
        raise RelaxError(f"expected no division by zero in '{dim}', got {_values_text(dim, values)}") from None


def _values_text(dim: Expr, values: Mapping[str, int | Expr]) -> str:
    return ", ".join(f"{n} = {values[n]}" for n in sorted(dim.names) if n in values)


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """The number a dimension stands for. Raises RelaxError when a symbol has no value."""
    result = substitute(dim, values)
    if isinstance(result, int):
        return result
    missing = ", ".join(sorted(result.names)) if isinstance(result, Expr) else UNKNOWN
    raise RelaxError(f"expected a value for every symbol of '{dim_text(dim)}', got none for {missing}")


def refuse_negative(dim: Expr, values: Mapping[str, int], of: str, origins: str = "") -> None:
    """Raises RelaxError when a size is negative or divides by 0; ``of`` says where it is, ``origins`` where values are from."""
    try:
        size = evaluate(dim, values)
    except RelaxError as error:
        raise RelaxError(f"{of} {error}") from None
    if size < 0:
        raise RelaxError(
            f"{of} expected a size of 0 or more for '{dim}', got {size}{origins or f' ({_values_text(dim, values)})'}"
        )


def fits(dim: Dim, values: Mapping[str, int]) -> bool:
    """Whether 64 bits hold a dimension and what is divided in it; sums and products that wrap around before wrap back."""
    if not isinstance(dim, Expr):
        return abs(dim or 0) <= _MOST
    parts = [divided(atom) for monomial, _ in dim.terms for atom in monomial if not atom.isidentifier()]
    return abs(evaluate(dim, values)) <= _MOST and all(fits(a, values) and fits(b, values) for a, b, _ in parts)


def magnitude(dim: Dim, values: Mapping[str, int]) -> int:
    """A bound of all numbers that are met when a dimension is computed in any order, for symbols of 0 or more."""
    if not isinstance(dim, Expr):
        return abs(dim or 0)
    return sum(abs(c) * math.prod(_atom_magnitude(atom, values) for atom in monomial) for monomial, c in dim.terms)


def _atom_magnitude(atom: str, values: Mapping[str, int]) -> int:
    if atom.isidentifier():
        return values[atom]
    dividend, divisor, _ = divided(atom)
    return max(magnitude(dividend, values), magnitude(divisor, values), 1)


def solve(dim: Expr, size: int, values: Mapping[str, int]) -> tuple[str, int] | None:
    """The one symbol without a value, and the value with which ``dim`` is ``size``.

    Returns:
        None when several symbols have no value, or the dimension is not linear in the one that has none.

    Raises:
        RelaxError: no integer from 0 to 2**63 - 1 gives the size.
    """
    unknown = dim.names - set(values)
    rest = substitute(dim, values)
    if len(unknown) != 1 or not isinstance(rest, Expr):
        return None
    (name,) = unknown
    terms = dict(rest.terms)
    constant, factor = terms.pop((), 0), terms.pop((name,), 0)
    if terms or not factor:
        return None
    value, remainder = divmod(size - constant, factor)
    if remainder or not 0 <= value <= _MOST:
        raise RelaxError(f"expected a size of the form '{dim}', got {size}")
    return name, value


@functools.lru_cache(maxsize=65536)
def _tree(text: str) -> ast.expr:
    """The syntax tree of an expression. Locked: CPython 3.11's ast.parse raises SystemError when two threads are in it."""
    with _PARSING:
        return ast.parse(text, mode="eval").body


def _build(node: ast.expr, values: Mapping[str, int | Expr] | None = None) -> int | Expr:
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.Name):
        return _named(node.id, values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_build(node.operand, values)
    if not isinstance(node, ast.BinOp):
        raise ValueError(ast.dump(node))
    left, right = _build(node.left, values), _build(node.right, values)
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.FloorDiv):
        return left // right
    if isinstance(node.op, ast.Mod):
        return left % right
    raise ValueError(ast.dump(node))


def _named(name: str, values: Mapping[str, int | Expr] | None) -> int | Expr:
    """The value of a name, or the name; where there are values it is one of an expression, which may be open."""
    if values is None:
        return symbol(name)
    given = values.get(name)
    return Expr({(name,): 1}) if given is None else given


def _terms(value: int | Expr) -> Iterable[tuple[_Monomial, int]]:
    return value.terms if isinstance(value, Expr) else (((), value),)


def _simplified(terms: Mapping[_Monomial, int]) -> int | Expr:
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if set(kept) == {()}:
        return kept[()]
    return Expr(kept)


def _sum(values: Iterable[int | Expr]) -> int | Expr:
    terms: dict[_Monomial, int] = {}
    for value in values:
        for monomial, coefficient in _terms(value):
            terms[monomial] = terms.get(monomial, 0) + coefficient
    return _simplified(terms)


def _quotient(dividend: Expr, divisor: int | Expr) -> int | Expr | None:
    """The quotient of a division without remainder, as of ``n - n % 4`` by 4; None where nothing says that it is one."""
    exact = _exact_quotient(dividend, divisor)
    if exact is not None or "%" not in dividend.text:
        return exact
    whole = _without_remainders(dividend)
    return _exact_quotient(whole, divisor) if isinstance(whole, Expr) else None


def _without_remainders(value: Expr) -> int | Expr:
    """The same with ``n - n // 4 * 4`` for ``n % 4``."""
    total: int | Expr = 0
    for monomial, coefficient in value.terms:
        product: int | Expr = coefficient
        for atom in monomial:
            product = product * _without_remainder(atom)
        total = total + product
    return total


@functools.lru_cache(maxsize=4096)
def _without_remainder(atom: str) -> int | Expr:
    """The same for an atom; one inside of another one stays, or texts would double with each."""
    dividend, divisor, is_remainder = (None, None, False) if atom.count("%") != 1 else divided(atom)
    if not is_remainder or dividend is None or divisor is None:
        return Expr({(atom,): 1})
    return dividend - dividend // divisor * divisor


def _exact_quotient(dividend: Expr, divisor: int | Expr) -> int | Expr | None:
    """The quotient when every term divides exactly, or all by one number, else None."""
    divisor_terms = tuple(_terms(divisor))
    if len(divisor_terms) != 1:
        is_alike = len(dividend.terms) == len(divisor_terms) > 0
        times = dividend.terms[0][1] // divisor_terms[0][1] if is_alike else 0
        return times if times and dividend == divisor * times else None
    (atoms, coefficient) = divisor_terms[0]
    if coefficient == 0:
        raise ZeroDivisionError
    terms: dict[_Monomial, int] = {}
    for monomial, value in dividend.terms:
        rest = list(monomial)
        for atom in atoms:
            if atom not in rest:
                return None
            rest.remove(atom)
        if value % coefficient:
            return None
        terms[tuple(rest)] = value // coefficient
    return _simplified(terms)


def _atom_text(value: int | Expr) -> str:
    return str(value) if isinstance(value, int) or value.text.isidentifier() else f"({value.text})"


def _print(terms: tuple[tuple[_Monomial, int], ...]) -> str:
    if len(terms) == 1 and len(terms[0][0]) == 1 and terms[0][1] == 1:
        return terms[0][0][0]
    text = ""
    for monomial, coefficient in terms:
        size = abs(coefficient)
        factors = [a if a.isidentifier() else f"({a})" for a in monomial]
        if size != 1 or not factors:
            factors.append(str(size))
        sign = "-" if coefficient < 0 else "+"
        piece = " * ".join(factors)
        text = f"{text} {sign} {piece}" if text else (f"-{piece}" if coefficient < 0 else piece)
    return text
