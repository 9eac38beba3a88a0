"""Random but valid modules around matrix products: of inputs, weights and both, with biases, sums, transpositions and gathers.

Numbers are small integers in f64, and no op leaves the integers; so every order of computation gives the same results.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["random_matmul_module"]

Shape = tuple[int | str, ...]

_INPUTS: tuple[Shape, ...] = (("n", 4), (2, 4), (4, 4), (4,), (3, 2, 4), (1, 4), ("n", 1, 4), (6, 4))
_WEIGHTS: tuple[Shape, ...] = ((4, 4), (4, 4), (4, 6), (4, 1), (1, 4), (6, 4), (4, "m"), (3, 4, 4), (4, 4, 2), (4,), (6,), (1,))
#: Matrices whose product is larger than both, and such that it is smaller.
_ADAPTER: tuple[Shape, ...] = ((4, 1), (1, 4))
_WIDE: tuple[Shape, ...] = ((4, 6), (6, 4))
#: Beyond that many results a module may lose exactness, and is slow.
_MOST_DEPTH = 5


@dataclass(frozen=True)
class _Value:
    text: str
    shape: Shape
    depth: int = 0

    @property
    def type(self) -> str:
        return _type(self.shape)


def _type(shape: Shape, dtype: str = "f64") -> str:
    symbols = ", ".join(f'"{d}"' for d in shape if isinstance(d, str))
    sizes = "".join(f"{'?' if isinstance(d, str) else d}x" for d in shape)
    return f"tensor<{sizes}{dtype}{f', {{sym = [{symbols}]}}' if symbols else ''}>"


@dataclass
class _Writer:
    """The body of the function in the making."""

    rng: random.Random
    weights: list[_Value]
    indices: list[_Value]
    lines: list[str] = field(default_factory=list)
    count: int = 0
    nested: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, op: str, shape: Shape, *operands: _Value, attributes: str = "", index: bool = False) -> _Value:
        """Writes an op; with ``index`` its second operand is an index tensor."""
        name, depth = self.name(), max((v.depth for v in operands), default=0) + (op == "matmul")
        types = [_type(v.shape, "i64") if index and i else v.type for i, v in enumerate(operands)]
        arguments = ", ".join(v.text for v in operands)
        self.lines.append(f'{name} = "relax.{op}"({arguments}) {{{attributes}}} : ({", ".join(types)}) -> {_type(shape)}')
        return _Value(name, shape, depth)

    def step(self, values: list[_Value]) -> list[_Value]:
        """Writes some ops on some of the values."""
        kinds: list[Callable[[list[_Value]], list[_Value]]] = [
            self._parallel, self._parallel, self._chain, self._chain, self._sum, self._gather, self._gather_each,
            self._product, self._elementwise, self._move, self._constant,
        ]  # fmt: skip
        if self.nested < 2:
            kinds += [self._branch, self._loop]
        return self.rng.choice(kinds)(values)

    def _shallow(self, values: list[_Value]) -> list[_Value]:
        return [v for v in values if v.depth < _MOST_DEPTH and "m" not in v.shape] or values[:1]

    def _multiply(self, lhs: _Value, rhs: _Value) -> _Value | None:
        shape = _product(lhs.shape, rhs.shape)
        return None if shape is None or lhs.depth + rhs.depth > _MOST_DEPTH else self.emit("matmul", shape, lhs, rhs)

    def _product(self, values: list[_Value]) -> list[_Value]:
        found = self._multiply(self.rng.choice(values), self.rng.choice([*values, *self.weights]))
        return [] if found is None else [found]

    def _parallel(self, values: list[_Value]) -> list[_Value]:
        """One value times several weights, perhaps transposed, perhaps with biases and a function."""
        x, made = self.rng.choice(self._shallow(values)), []
        matrices = [*self.weights, *(self._shallow(values) if self.rng.random() < 0.5 else ())]
        bias, function = self.rng.random() < 0.4, self.rng.random() < 0.4
        ready = [w if _product(x.shape, w.shape) else self._transposed(w) for w in matrices if len(w.shape) > 1]
        fitting = [w for w in ready if _product(x.shape, w.shape)]
        for weight in self.rng.sample(fitting, min(len(fitting), self.rng.randrange(2, 5))):
            found = self._multiply(x, weight)
            vectors = [] if found is None else [w for w in [*self.weights, *values] if w.shape == found.shape[-1:]]
            if found is not None and bias and vectors:
                found = self.emit("add", found.shape, found, self.rng.choice(vectors))
            if found is not None and function:
                found = self.emit("relu", found.shape, found)
            made += [] if found is None else [found]
        return made

    def _maybe_transposed(self, x: _Value) -> _Value:
        return self._transposed(x) if len(x.shape) > 1 and self.rng.random() < 0.4 else x

    def _transposed(self, x: _Value) -> _Value:
        axes = [*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2]
        shape = tuple(x.shape[a] for a in axes)
        return self.emit("permute_dims", shape, x, attributes=f"axes = array<i64: {', '.join(map(str, axes))}>")

    def _chain(self, values: list[_Value]) -> list[_Value]:
        """``x @ (a @ b)``, perhaps transposed, or ``(x @ a) @ b``."""
        x, a = self.rng.choice(self._shallow(values)), self._factor(values)
        fitting = [v for v in [*self.weights, *self._shallow(values)] if v.shape[:1] == a.shape[-1:] and len(v.shape) == 2]
        b = self.rng.choice(fitting) if fitting and self.rng.random() < 0.7 else self._factor(values)
        if self.rng.random() < 0.5:
            middle = self._multiply(x, a)
            last = None if middle is None else self._multiply(middle, b)
        else:
            middle = self._multiply(a, b)
            last = None if middle is None else self._multiply(x, self._maybe_transposed(middle))
        return [v for v in (middle, last) if v is not None][-1 if self.rng.random() < 0.7 else 0 :]

    def _factor(self, values: list[_Value]) -> _Value:
        return self._maybe_transposed(
            self.rng.choice(self.weights if self.weights and self.rng.random() < 0.6 else self._shallow(values))
        )

    def _sum(self, values: list[_Value]) -> list[_Value]:
        """``x @ (a + b)``, where one may be a product, and the sum or a part of it may be transposed."""
        few = [v for v in values if v.shape in ((1, 4), (2, 4), (4,))] or values[:1]
        x, matrices = self.rng.choice(few), [*self.weights, *self._shallow(values)]
        total = self.rng.choice([v for v in matrices if v.shape == (4, 4)] or matrices)
        for _ in range(self.rng.randrange(1, 3)):
            column, row = ([v for v in reversed(matrices) if v.shape == shape] for shape in ((4, 1), (1, 4)))
            others = [v for v in matrices if v.shape == total.shape]
            if total.shape == (4, 4) and column and row and self.rng.random() < 0.8:
                others = [self.emit("matmul", (4, 4), column[0], row[0])]
            total = self.emit("add", total.shape, *self.rng.sample([total, self.rng.choice(others)], 2))
            total = self._transposed(total) if total.shape == (4, 4) and self.rng.random() < 0.4 else total
        found = self._multiply(x, total)
        return [] if found is None else [found]

    def _gather(self, values: list[_Value]) -> list[_Value]:
        """Columns of a matrix, or matrices of a stack, by indices from -3 to 3."""
        table, index = self.rng.choice([*self.weights, *values]), self.rng.choice(self.indices)
        axis = len(table.shape) - 1 if self.rng.random() < 0.6 else 0
        if len(table.shape) < 2 or table.shape[axis] not in (4, 6):
            return []
        shape = (*table.shape[:axis], *index.shape, *table.shape[axis + 1 :])
        taken = self.emit("take", shape, table, index, attributes=f"axis = {axis} : i64", index=True)
        found = self._multiply(self.rng.choice(self._shallow(values)), taken)
        return [] if found is None else [found]

    def _gather_each(self, values: list[_Value]) -> list[_Value]:
        """A matrix of a stack for each row of a batch."""
        tables = [w for w in [*self.weights, *values] if w.shape == (4, 4, 2)]
        rows = [v for v in values if v.shape == ("n", 1, 4)]
        index = next((i for i in self.indices if i.shape == ("n",)), None)
        if not tables or not rows or index is None:
            return []
        taken = self.emit("take", ("n", 4, 2), tables[0], index, attributes="axis = 0 : i64", index=True)
        return [self.emit("matmul", ("n", 1, 2), self.rng.choice(rows), taken)]

    def _elementwise(self, values: list[_Value]) -> list[_Value]:
        x = self.rng.choice(values)
        if self.rng.random() < 0.5:
            return [self.emit(self.rng.choice(["relu", "negative", "abs", "stop_lift_params"]), x.shape, x)]
        y = self.rng.choice([v for v in [*values, *self.weights] if v.shape == x.shape])
        return [self.emit(self.rng.choice(["add", "subtract", "maximum"]), x.shape, x, y)]

    def _move(self, values: list[_Value]) -> list[_Value]:
        x = self.rng.choice([*values, *self.weights])
        if len(x.shape) < 2 or x.shape[-1] != 4:
            return []
        if self.rng.random() < 0.5:
            return [self._transposed(x)]
        other = self.rng.choice([v for v in [*values, *self.weights] if v.shape == x.shape])
        parts = [self._transposed(x), self._transposed(other)]
        axis = len(x.shape) - 2
        return [self.emit("concat", (*x.shape[:-2], 8, x.shape[-2]), *parts, attributes=f"axis = {axis} : i64")]

    def _constant(self, values: list[_Value]) -> list[_Value]:
        shape = self.rng.choice([(4, 4), (4,), (4, 1)])
        return [self.emit("full", shape, attributes=f"value = {self.rng.randrange(1, 3)}.0 : f64")]

    def _branch(self, values: list[_Value]) -> list[_Value]:
        x, name, flag = self.rng.choice(values), self.name(), self.name()
        self.lines.append(f"{flag} = arith.constant {self.rng.choice(['true', 'false'])}")
        self.lines.append(f"{name} = scf.if {flag} -> {x.type} {{")
        depths = [self._region(values, x.shape)]
        self.lines.append("} else {")
        depths.append(self._region(values, x.shape))
        self.lines.append("}")
        return [_Value(name, x.shape, max(depths))]

    def _loop(self, values: list[_Value]) -> list[_Value]:
        x, name, counter, carried = self.rng.choice(values), self.name(), self.name(), self.name()
        low, step = self.name(), self.name()
        self.lines += [f"{low} = arith.constant 0 : index", f"{step} = arith.constant 1 : index"]
        self.lines.append(
            f"{name} = scf.for {counter} = {low} to {step} step {step} iter_args({carried} = {x.text}) -> ({x.type}) {{"
        )
        depth = self._region([*values, _Value(carried, x.shape, x.depth)], x.shape)
        self.lines.append("}")
        return [_Value(name, x.shape, depth)]

    def _region(self, values: list[_Value], shape: Shape) -> int:
        self.nested += 1
        inner = list(values)
        for _ in range(self.rng.randrange(1, 3)):
            inner += self.step(inner)
        result = self.rng.choice([v for v in inner[::-1] if v.shape == shape])
        self.lines.append(f"scf.yield {result.text} : {result.type}")
        self.nested -= 1
        return result.depth


def _product(lhs: Shape, rhs: Shape) -> Shape | None:
    """The shape of a matrix product, None where the two do not fit."""
    left = lhs if len(lhs) > 1 else (1, *lhs)
    right = rhs if len(rhs) > 1 else (*rhs, 1)
    batch = _broadcast(left[:-2], right[:-2])
    if batch is None or not lhs or not rhs or left[-1] != right[-2]:
        return None
    return (*batch, *(left[-2:-1] if len(lhs) > 1 else ()), *(right[-1:] if len(rhs) > 1 else ()))


def _broadcast(left: Shape, right: Shape) -> Shape | None:
    if not left or not right or left == right:
        return left or right
    return None


def random_matmul_module(seed: int) -> str:
    """The text of a module with one function ``main``; equal seeds give equal modules."""
    rng = random.Random(seed)
    inputs = [("n", 4), *rng.sample(_INPUTS, 2), *(_ADAPTER if rng.random() < 0.5 else ())]
    weights = [*rng.sample(_WEIGHTS, 4), *rng.choice((_ADAPTER, _WIDE, ()))]
    kind = rng.choice(("weights", "weights", "no weights", "no num_input", "no names"))
    if kind in ("no weights", "no num_input"):  # what were weights comes with each call
        inputs, weights = [*inputs, *weights], []
    values = [_Value(f"%x{i}", s) for i, s in enumerate(inputs)]
    known = [_Value(f"%w{i}", s) for i, s in enumerate(weights)]
    indices = [_Value("%i0", (3,)), _Value("%i1", ("n",)), _Value("%i2", ())]
    writer = _Writer(rng, known, indices)
    for _ in range(rng.randrange(3, 9)):
        values += writer.step(values)
    made = values[len(inputs) :] or values
    results = rng.sample(made, min(len(made), rng.randrange(1, 9)))
    parameters = [f'{v.text}: {v.type} {{relax.name = "x{i}"}}' for i, v in enumerate(values[: len(inputs)])]
    parameters += [f'{v.text}: {_type(v.shape, "i64")} {{relax.name = "i{i}"}}' for i, v in enumerate(indices)]
    parameters += [f'{v.text}: {v.type} {{relax.name = "w{i}"}}' for i, v in enumerate(known)]
    ranges = rng.choice(
        [
            [],
            ["relax.symbol_ranges = {n = [1, 8]}"],
            ["relax.symbol_ranges = {n = [1, 2]}"],
            ["relax.symbol_ranges = {n = [4]}"],
        ]
    )
    said = [] if kind == "no num_input" else [f"relax.num_input = {len(inputs) + len(indices)} : i64"]
    attributes = f"attributes {{{', '.join([*said, *ranges])}}}"
    if kind == "no names":
        parameters = [re.sub(r" \{relax.name = .*\}", "", p) for p in parameters]
    writer.lines.append(f"return {', '.join(v.text for v in results)} : {', '.join(v.type for v in results)}")
    body = "\n".join("  " + line for line in writer.lines)
    types = ", ".join(v.type for v in results)
    return f"func.func @main({', '.join(parameters)}) -> ({types}) {attributes} {{\n{body}\n}}"
