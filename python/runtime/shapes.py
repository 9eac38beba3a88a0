"""Symbolic dimensions at a call: the inputs' shapes in, a value for every symbol and the outputs' shapes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..dialect import symbolic
from ..dialect.errors import RelaxError
from ..dialect.symbolic import Expr
from ..lowering.manifest_specs import EntrySpec, SymbolSpec, TensorSpec

__all__ = ["ShapeSolver", "Shapes"]

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Shapes:
    """What a set of input shapes determines: the symbols' values in the order of the ABI, and the outputs' shapes."""

    symbols: tuple[int, ...]
    outputs: tuple[Shape, ...]


@dataclass(frozen=True)
class _Binding:
    """A symbol gets its value from a dimension of an input: the dimension is ``expr``, linear in the symbol."""

    symbol: str
    input: int
    axis: int
    expr: Expr


class ShapeSolver:
    """Finds the values of an entry's symbols.

    A dimension that is exactly a symbol gives its value; else one that is linear in it once the others are known
    (``n * 2 + 1``, ``n * m`` with ``m`` known). Every dimension of every input is then checked.
    """

    def __init__(self, entry: EntrySpec):
        """Decides which dimension gives which symbol. Raises RelaxError when a symbol has none."""
        self._entry = entry
        self._bindings = _plan(entry)
        self._source = {b.symbol: entry.inputs[b.input].name for b in self._bindings}
        missing = [s.name for s in entry.symbols if s.name not in self._source]
        if missing:
            raise RelaxError(f"entry '{entry.name}': expected inputs whose shapes determine '{missing[0]}', got none that does")

    def solve(self, shapes: tuple[Shape, ...]) -> Shapes:
        """Values and output shapes for these input shapes, one per input.

        Raises:
            RelaxError: a shape does not match, a symbol has two values or one out of its range, which names the input; or
            makes a size of an output or inside negative, or memory too large.
        """
        entry = self._entry
        for spec, shape in zip(entry.inputs, shapes, strict=True):
            if len(shape) != len(spec.shape):
                raise self._mismatch(spec, shape, {})
        values: dict[str, int] = {}
        for binding in self._bindings:
            values[binding.symbol] = self._bound(binding, shapes, values)
        for spec, shape in zip(entry.inputs, shapes, strict=True):
            if shape != self._evaluated(spec, values):
                raise self._mismatch(spec, shape, values)
        for spec, binding in zip(self._limited(), self._bindings, strict=True):
            self._check_range(spec, values[spec.name], binding)
        outputs = tuple(self._output_shape(spec, values) for spec in entry.outputs)
        self._check_sizes(values)
        return Shapes(tuple(values[s.name] for s in entry.symbols), outputs)

    def _limited(self) -> list[SymbolSpec]:
        """The symbols in the order of their bindings."""
        by_name = {s.name: s for s in self._entry.symbols}
        return [by_name[b.symbol] for b in self._bindings]

    def _bound(self, binding: _Binding, shapes: tuple[Shape, ...], values: Mapping[str, int]) -> int:
        size = shapes[binding.input][binding.axis]
        if binding.expr.text == binding.symbol:
            return size
        try:
            solved = symbolic.solve(binding.expr, size, values)
        except RelaxError:  # said again below, with the input's name
            solved = None
        if solved is not None:
            return solved[1]
        name = self._entry.inputs[binding.input].name
        expected = f"to be '{binding.expr}' for some {binding.symbol}{self._origins(binding.expr.names, values)}"
        raise RelaxError(f"input '{name}': expected dimension {binding.axis} {expected}, got {size}")

    def _evaluated(self, spec: TensorSpec, values: Mapping[str, int]) -> Shape:
        try:
            return tuple([_size(d, values) for d in spec.shape])
        except RelaxError as error:
            raise RelaxError(f"'{spec.name}': {error}") from None

    def _output_shape(self, spec: TensorSpec, values: Mapping[str, int]) -> Shape:
        shape = self._evaluated(spec, values)
        if any(d < 0 for d in shape):
            names = {n for d in spec.shape if isinstance(d, Expr) for n in d.names}
            raise RelaxError(
                f"output '{spec.name}': expected a shape [{_text(spec)}] of sizes of 0 or more, "
                f"got {list(shape)}{self._origins(names, values)}"
            )
        return shape

    def _check_range(self, symbol: SymbolSpec, value: int, binding: _Binding) -> None:
        low, high = symbol.min or 0, symbol.max
        if low <= value and (high is None or value <= high):
            return
        expected = f"at least {low}" if high is None else f"from {low} to {high}"
        name = self._entry.inputs[binding.input].name
        raise RelaxError(f"input '{name}': expected '{symbol.name}' (dimension {binding.axis}) {expected}, got {value}")

    def _check_sizes(self, values: Mapping[str, int]) -> None:
        """What compiled code computes inside; nothing of it has run yet."""
        for size in self._entry.sizes:
            symbolic.refuse_negative(size.expr, values, size.of, self._origins(size.expr.names, values))
        if max(values.values(), default=0) <= self._entry.safe:
            return
        for memory in self._entry.memory:
            if not symbolic.fits(memory.expr, values):
                total = symbolic.evaluate(memory.expr, values)
                origins = self._origins(memory.expr.names, values)
                raise RelaxError(f"{memory.of} expected less than 2**63 bytes, got '{memory.expr}' = {total}{origins}")

    def _mismatch(self, spec: TensorSpec, got: Shape, values: Mapping[str, int]) -> RelaxError:
        names = {n for d in spec.shape if isinstance(d, Expr) for n in d.names}
        expected = f"[{_text(spec)}]"
        if names and values:
            expected += f" = {list(self._evaluated(spec, values))}{self._origins(names, values)}"
        return RelaxError(f"input '{spec.name}': expected shape {expected}, got {list(got)}")

    def _origins(self, names: frozenset[str] | set[str], values: Mapping[str, int]) -> str:
        known = [f"{n} = {values[n]} from input '{self._source[n]}'" for n in sorted(names) if n in values]
        return f" ({', '.join(known)})" if known else ""


def _size(dim: int | Expr, values: Mapping[str, int]) -> int:
    """A dimension's value; a plain symbol, the usual case, is looked up, which is much faster than evaluating."""
    if isinstance(dim, int):
        return dim
    known = values.get(dim.text)
    return symbolic.evaluate(dim, values) if known is None else known


def _text(spec: TensorSpec) -> str:
    return ", ".join(map(str, spec.shape))


def _plan(entry: EntrySpec) -> list[_Binding]:
    """Exact dimensions first, then repeatedly those with one unknown left; first come, first bound."""
    wanted = {s.name for s in entry.symbols}
    dims = [
        (i, axis, dim) for i, spec in enumerate(entry.inputs) for axis, dim in enumerate(spec.shape) if isinstance(dim, Expr)
    ]
    bindings: dict[str, _Binding] = {}
    for i, axis, dim in dims:
        if dim.text in wanted:
            bindings.setdefault(dim.text, _Binding(dim.text, i, axis, dim))
    found = True
    while found:
        found = False
        for i, axis, dim in dims:
            unknown = [n for n in dim.names if n not in bindings]
            if len(unknown) == 1 and unknown[0] in wanted and _is_linear(dim, unknown[0]):
                bindings[unknown[0]] = _Binding(unknown[0], i, axis, dim)
                found = True
    return list(bindings.values())


def _is_linear(expr: Expr, name: str) -> bool:
    """Whether the expression is ``a * name + b`` with a and b free of the name."""
    return all(monomial.count(name) <= 1 and not _inside_division(monomial, name) for monomial, _ in expr.terms)


def _inside_division(monomial: tuple[str, ...], name: str) -> bool:
    parsed = [symbolic.parse(atom) for atom in monomial if not atom.isidentifier()]
    return any(isinstance(e, Expr) and name in e.names for e in parsed)
