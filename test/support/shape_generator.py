"""Random but valid modules of every shape: empty, of one, unknown; nested control flow; private functions; several entries.

Beside :mod:`support.module_generator`, whose modules are what passes work on, these are what kernels have to take. Each value
is known to be so large in each of two rounds of sizes, and to be off by so much at most, which the names of results say.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from relaxir.dialect.bindings import func, ir
from relaxir.dialect.context import new_context
from relaxir.dialect.struct_info import TensorInfo
from relaxir.dialect.symbolic import Dim, Expr, symbol
from support.shape_flow import FLOW
from support.shape_moves import MOVES
from support.shape_ops import SIZES, STEPS
from support.shape_values import DTYPES, ROUNDS, SYMBOLS, UNKNOWN, Emitter, Made, NotMadeError, dtype_of, size_of

__all__ = ["random_shapes"]

_DTYPES = ("f32",) * 8 + ("bf16", "f16", "f64", "i8", "i32", "i64", "i1", "i16", "ui8")


@dataclass(frozen=True)
class _Function:
    """A private function that others can call.

    Attributes:
        name: its name.
        arguments: its arguments, with what they are; how large and how far off those of a call may be at most.
        symbols: what it calls its dimensions.
        results: what it returns.
    """

    name: str
    arguments: list[Made]
    symbols: dict[str, tuple[int, ...]]
    results: list[Made]


@dataclass
class Writer:
    """The functions of a module in the making, and the steps of their bodies."""

    rng: random.Random
    functions: list[_Function] = field(default_factory=list[_Function])
    weights: dict[str, ir.Type] = field(default_factory=dict[str, ir.Type])
    depth: int = 0
    calls: int = 0

    def step(self, em: Emitter, values: Sequence[Made]) -> list[Made]:
        """One random op, or region, or call."""
        if self.depth < 3 and self.rng.random() < 0.08:
            self.depth += 1
            made = self.rng.choice(FLOW)(self, em, values)
            self.depth -= 1
            return made
        if self.rng.random() < 0.05:
            return self.call(em, values)
        table = MOVES if self.rng.random() < 0.5 else STEPS
        (chosen,) = self.rng.choices([s for s, _ in table], [w for _, w in table])
        try:
            return chosen(em, values)
        except NotMadeError:
            return []

    # -- calls -----------------------------------------------------------------------------------------------------

    def call(self, em: Emitter, values: Sequence[Made]) -> list[Made]:
        """A call of a private function: of one there is, or of a new one."""
        if not values:
            return []
        for function in self.rng.sample(self.functions, len(self.functions)):
            operands = [next((v for v in values[::-1] if _passes(v, a)), None) for a in function.arguments]
            if None not in operands and self.rng.random() < 0.7:
                return self._called(em, function, [v for v in operands if v is not None])
        if self.calls > 3:
            return []
        self.calls += 1
        operands = [self.rng.choice(values[-6:]) for _ in range(self.rng.choice((1, 2, 3)))]
        return self._called(em, self._private(operands), operands)

    def _called(self, em: Emitter, function: _Function, operands: Sequence[Made]) -> list[Made]:
        em.symbols |= function.symbols
        given = [em.cast(v, a.info).value if v.value.type != a.value.type else v.value
                 for v, a in zip(operands, function.arguments, strict=True)]  # fmt: skip
        op = func.CallOp([r.value.type for r in function.results], ir.FlatSymbolRefAttr.get(function.name), given)
        return [Made(v, r.sizes, r.bound, r.error) for v, r in zip(op.results, function.results, strict=True)]

    def _private(self, operands: Sequence[Made]) -> _Function:
        """A new function of such operands, which it knows by other symbols, or none."""
        name = f"private{self.calls}"
        em = Emitter(self.rng)
        types = [self._generalized(em, v, f"{name}_{i}_") for i, v in enumerate(operands)]
        with ir.InsertionPoint(self.module.body):
            function = func.FuncOp(name, (types, []), visibility="private")
        arguments = [Made(a, v.sizes, v.bound, v.error)
                     for a, v in zip(function.add_entry_block().arguments, operands, strict=True)]  # fmt: skip
        own = dict(em.symbols)
        results = self._body(function, em, arguments, self.rng.randrange(1, 6), lambda v: self._spoken(em, v, own))
        made = _Function(name, arguments, own, results)
        self.functions.append(made)
        return made

    def _generalized(self, em: Emitter, made: Made, prefix: str) -> ir.Type:
        shape: list[Dim] = []
        for axis, dim in enumerate(made.info.shape):
            kind = self.rng.randrange(3) if isinstance(dim, int) else self.rng.randrange(1, 3)
            if kind == 1:
                em.symbols[f"{prefix}{axis}"] = tuple(s[axis] for s in made.sizes)
            shape.append(dim if kind == 0 else symbol(f"{prefix}{axis}") if kind == 1 else None)
        return made.info.with_(shape=shape).type

    def _spoken(self, em: Emitter, made: Made, symbols: dict[str, tuple[int, ...]]) -> list[Made]:
        """Under a type that names no symbols but those."""
        shape = [None if isinstance(d, Expr) and not d.names <= symbols.keys() else d for d in made.info.shape]
        return [made if shape == list(made.info.shape) else em.cast(made, made.info.with_(shape=shape))]

    def _body(
        self, function: func.FuncOp, em: Emitter, values: list[Made], size: int, finish: Callable[[Made], list[Made]],
        least: int = 1,
    ) -> list[Made]:  # fmt: skip
        """Steps, and the return of some of what they make; the function's type follows."""
        block = function.regions[0].blocks[0]
        arguments, values = values, list(values)
        with ir.InsertionPoint(block):
            for _ in range(size):
                values += self.step(em, values)
            wanted = [self.rng.choice(values[-6:]) for _ in range(self.rng.randrange(least, 4))] if values else []
            results = [r for v in wanted for r in finish(v)]
            func.ReturnOp([r.value for r in results])
        types = ir.FunctionType.get([a.value.type for a in arguments], [r.value.type for r in results])
        function.attributes["function_type"] = ir.TypeAttr.get(types)
        return results

    # -- entries ---------------------------------------------------------------------------------------------------

    def module_text(self) -> str:
        with new_context(), ir.Location.unknown():
            self.module = ir.Module.create()
            for name in ("main", "decode", "extra")[: self.rng.choice((1, 1, 1, 2, 3))]:
                self._entry(name)
            self.module.operation.verify()
            return self.module.operation.get_asm(use_local_scope=True)

    def _entry(self, name: str) -> None:
        rng, em = self.rng, Emitter(self.rng)
        inputs = {f"x{i}": self._input(em, i) for i in range(rng.randrange(1, 5))}
        for kind in [f"flag{rng.randrange(1 << ROUNDS)}"] * rng.randrange(2) + ["count"] * rng.randrange(2):
            type_ = TensorInfo((), dtype_of("i1" if kind.startswith("flag") else "i64"))
            inputs[kind] = type_.type
        weights = {n: t for n, t in (self._weight() for _ in range(rng.randrange(4)))}
        types = [*inputs.values(), *weights.values()]
        with ir.InsertionPoint(self.module.body):
            function = func.FuncOp(name, (types, []))
        function.attributes["relax.num_input"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(inputs))
        names = [ir.DictAttr.get({"relax.name": ir.StringAttr.get(n)}) for n in [*inputs, *weights]]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(names)
        arguments = zip(function.add_entry_block().arguments, [*inputs, *weights], strict=True)
        values = [_argument(a, n) for a, n in arguments]
        if "z" in em.symbols:
            low = ir.ArrayAttr.get([ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)])
            function.attributes["relax.symbol_ranges"] = ir.DictAttr.get({"z": low})
        em.symbols = {n: s for n, s in em.symbols.items() if n in SYMBOLS}
        own = dict(em.symbols)
        results = self._body(function, em, values, rng.randrange(4, 22), lambda v: self._at_boundary(em, v, own))
        named = [{"relax.name": ir.StringAttr.get(f"y{i} within {r.error:.1e}")} for i, r in enumerate(results)]
        function.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(n) for n in named])

    def _input(self, em: Emitter, position: int) -> ir.Type:
        rng, shape = self.rng, list[Dim]()
        for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))):
            name = rng.choice(tuple(SYMBOLS))
            kind = rng.randrange(6)
            if kind < 3 and len(shape) < 3:
                em.symbols[name] = SYMBOLS[name]
                known = symbol(name)
                shape.append(known * 2 if name in em.symbols and rng.random() < 0.1 else known)
            elif kind == 3 and len(shape) < len(UNKNOWN):
                shape.append(None)
            else:
                shape.append(rng.choice(SIZES[:15] if len(shape) < 2 else SIZES[:8]))
        return TensorInfo(tuple(shape), dtype_of(rng.choice(_DTYPES))).type

    def _weight(self) -> tuple[str, ir.Type]:
        rng = self.rng
        shape = [rng.choice(SIZES) for _ in range(rng.choice((1, 2, 2, 2, 3)))]
        shape = shape if len(shape) < 3 else [min(d, 5) for d in shape]
        dtype = rng.choice(_DTYPES)
        name = f"w{'x'.join(map(str, shape))}.{dtype}.{rng.randrange(2)}"
        return name, self.weights.setdefault(name, TensorInfo(tuple(shape), dtype_of(dtype)).type)

    def _at_boundary(self, em: Emitter, made: Made, symbols: dict[str, tuple[int, ...]]) -> list[Made]:
        """A value whose dimensions the arguments say: along others it is summed up, if that is not too large."""

        def says(dim: Dim) -> bool:
            return isinstance(dim, int) or (isinstance(dim, Expr) and dim.names <= symbols.keys())

        axes = [i for i, d in enumerate(made.info.shape) if not says(d)]
        if not axes:
            return [made]
        try:
            wide = made if made.dtype != "i1" else em.single("AsType", [made], 1, dtype=dtype_of("i32"))
        except NotMadeError:
            return []
        count = max(1, *(s[i] for s in made.sizes for i in axes)) ** len(axes)
        error = count * (wide.error + (em.rounding(wide, wide.bound) if wide.error else 0))
        return em.op("Sum", [wide], count * wide.bound, error, axis=axes)


def _passes(value: Made, argument: Made) -> bool:
    """Whether a function that was written for an argument may be called with a value."""
    alike = value.dtype == argument.dtype and value.sizes == argument.sizes
    return alike and value.bound <= argument.bound and value.error <= argument.error


def _argument(value: ir.Value, name: str) -> Made:
    info = TensorInfo.of(value)
    sizes = tuple(
        tuple(_known(size_of(d, r, SYMBOLS), UNKNOWN[i][r] if i < len(UNKNOWN) else 1) for i, d in enumerate(info.shape))
        for r in range(ROUNDS)
    )
    return Made(value, sizes, min(3, DTYPES[str(info.dtype)]))


def _known(size: int | None, otherwise: int) -> int:
    return otherwise if size is None else size


def random_shapes(seed: int) -> str:
    """The text of a module; equal seeds give equal modules."""
    return Writer(random.Random(seed)).module_text()
