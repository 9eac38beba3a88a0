"""Values of random modules of shapes: an MLIR value, what it is at run time in each round, how large and how exact it is."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from relaxir.dialect import ops
from relaxir.dialect.bindings import ir
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.op import EffectOp
from relaxir.dialect.struct_info import TensorInfo
from relaxir.dialect.symbolic import Dim, Expr, evaluate, symbol

__all__ = [
    "DTYPES",
    "ROUNDS",
    "SYMBOLS",
    "UNKNOWN",
    "Emitter",
    "Made",
    "NotMadeError",
    "Sizes",
    "dtype_of",
    "is_float",
    "size_of",
]

#: Every module is called this often, with other sizes each time.
ROUNDS = 2
#: What symbols are in each round; of those that may be 0, a function says so.
SYMBOLS = {"n": (5, 1), "m": (3, 2), "p": (17, 40), "z": (0, 4)}
#: What unknown dimensions of arguments are, by axis.
UNKNOWN = ((4, 6), (3, 5), (2, 1), (1, 2))
#: Integers up to these are exact in a dtype; of narrower ones also their sums in f32 are.
DTYPES = {"f32": 1 << 22, "f64": 1 << 22, "f16": 2048, "bf16": 256, "i8": 127, "i16": 1 << 14, "i32": 1 << 22, "i64": 1 << 22,
          "ui8": 255, "i1": 1}  # fmt: skip
#: How far an elementwise function of a float may be off, of numbers around 1.
_ROUNDING = {"f64": 2.0**-40, "f32": 2.0**-19, "f16": 2.0**-8, "bf16": 2.0**-5}
#: No value has more elements than this in any round.
_MOST = 1 << 13

_BROADCAST = ("Add", "Subtract", "Maximum", "Minimum", "Multiply", "Equal", "Less", "GreaterEqual", "LogicalAnd", "LogicalXor",
              "Where", "MatMul")  # fmt: skip

Sizes = tuple[tuple[int, ...], ...]

_Actual = Callable[[int], dict[str, Any]]


@dataclass(frozen=True)
class Made:
    """A value.

    Attributes:
        value: the MLIR value, a tensor.
        sizes: its shape in each round.
        bound: no element is larger.
        error: how far elements may be off, by rounding; of 0, elements are integers and exact.
    """

    value: ir.Value
    sizes: Sizes
    bound: float = 3
    error: float = 0

    @property
    def info(self) -> TensorInfo:
        return TensorInfo.of(self.value)

    @property
    def dtype(self) -> str:
        return str(self.info.dtype)

    @property
    def rank(self) -> int:
        return self.info.rank

    def known(self) -> tuple[object, ...]:
        """What two values have in common that a function takes alike."""
        return (str(self.value.type), self.sizes)


def is_float(made: Made) -> bool:
    return made.dtype in _ROUNDING


def dtype_of(name: str) -> ir.Type:
    return ir.Type.parse(name)


def size_of(dim: Dim, round_: int, symbols: dict[str, tuple[int, ...]]) -> int | None:
    """What a dimension is in a round; None where nothing says so."""
    if isinstance(dim, Expr):
        return evaluate(dim, {n: symbols[n][round_] for n in dim.names}) if all(n in symbols for n in dim.names) else None
    return dim


class NotMadeError(Exception):
    """An op that a step cannot go on without is refused, or its result too large."""


@dataclass
class Emitter:
    """Builds ops at the insertion point, and knows what they make.

    Attributes:
        rng: where chance comes from.
        symbols: what those that are known here are in each round.
    """

    rng: random.Random
    symbols: dict[str, tuple[int, ...]] = field(default_factory=dict)
    count: int = 0

    def dims(self) -> list[tuple[Dim, tuple[int, ...]]]:
        """Dimensions that can be named here, and what they are."""
        return [(symbol(n), s) for n, s in self.symbols.items()]

    def op(
        self,
        name: str,
        operands: Sequence[Made],
        bound: float = 3,
        error: float = 0,
        types: Sequence[tuple[TensorInfo, Sizes]] = (),
        actual: _Actual | None = None,
        **attrs: Any,
    ) -> list[Made]:
        """An op; nothing at all where its types do not allow it.

        Args:
            name: the class.
            operands: what it takes.
            bound, error: of its results.
            types: its results and what they are, where the op does not infer them.
            actual: attributes in a round, where they depend on it.
            attrs: attributes.
        """
        cls: type[EffectOp] = getattr(ops, name)
        try:
            made = cls.create(*(o.value for o in operands), result_types=[t.type for t, _ in types] or None, **attrs)
        except RelaxError:
            return []
        given = {k: s.default for k, s in cls.attrs.items()} | attrs
        try:
            _check(cls, operands, types, given)
        except RelaxError:
            made.erase()
            return []
        found = [sizes for _, sizes in types] or self._inferred(cls, operands, attrs, actual)
        if found is not None and _spreads_unknown(name, operands, found[0]):
            found = None
        small = found is not None and all(math.prod(s) <= _MOST for sizes in found for s in sizes)
        if found is None or not small or not all(map(self._says, made.results, found)):
            made.erase()
            return []
        return [self.limited(Made(r, sizes, bound, error)) for r, sizes in zip(made.results, found, strict=True)]

    def single(self, name: str, operands: Sequence[Made], bound: float = 3, error: float = 0, **attrs: Any) -> Made:
        """The result of an op of one; raises NotMadeError where there is none, which ends the step."""
        made = self.op(name, operands, bound, error, **attrs)
        if not made:
            raise NotMadeError(name)
        return made[0]

    def _says(self, value: ir.Value, sizes: Sizes) -> bool:
        """Whether a type is right: of a known and an unknown dimension the known one is taken for the result's."""
        shape = TensorInfo.of(value).shape
        return all(size_of(d, r, self.symbols) in (None, n) for r, s in enumerate(sizes) for d, n in zip(shape, s, strict=True))

    def _inferred(
        self, cls: type[EffectOp], operands: Sequence[Made], attrs: dict[str, Any], actual: _Actual | None
    ) -> list[Sizes] | None:  # fmt: skip
        """What an op's results are in each round; None where it would be refused then."""
        found: list[list[tuple[int, ...]]] = []
        for round_ in range(ROUNDS):
            infos = [o.info.with_(shape=o.sizes[round_]) for o in operands]
            given = {k: s.default for k, s in cls.attrs.items()} | attrs
            try:
                results = cls.infer(infos, given | (actual(round_) if actual else {}))
            except RelaxError:
                return None
            found.append([tuple(r.shape) for r in (results if isinstance(results, list) else [results])])
        return [tuple(sizes) for sizes in zip(*found, strict=True)]

    def limited(self, made: Made) -> Made:
        """The value, or something of it that is small where it may be too large to stay exact."""
        if made.bound <= DTYPES[made.dtype]:
            return made
        if not is_float(made):
            return replace(made, bound=DTYPES[made.dtype]) if made.dtype in ("i8", "i16", "ui8", "i1") else self._clipped(made)
        return self._clipped(made)

    def _clipped(self, made: Made) -> Made:
        op = ops.Clip.create(made.value, min=-8, max=8)
        return Made(op.results[0], made.sizes, 8, made.error)

    def rounding(self, made: Made, bound: float) -> float:
        """How far a function that rounds may be off."""
        return _ROUNDING.get(made.dtype, 0.0) * max(1.0, bound)

    # -- values of no operands -------------------------------------------------------------------------------------

    def full(self, shape: Sequence[Dim], sizes: Sizes, dtype: str, number: int) -> Made | None:
        info = TensorInfo(tuple(shape), dtype_of(dtype))
        made = self.op("Full", [], abs(number), types=[(info, sizes)], value=number)
        return made[0] if made else None

    def constant(self, shape: Sequence[int], dtype: str) -> Made:
        numbers = [
            self.rng.randrange(0 if dtype in ("ui8", "i1") else -3, 2 if dtype == "i1" else 4) for _ in range(math.prod(shape))
        ]
        type_ = ir.RankedTensorType.get(list(shape), dtype_of(dtype))
        if dtype == "i1":
            nested = _nested(shape, iter("true" if n else "false" for n in numbers))
        else:
            nested = _nested(shape, iter(f"{n}.0" if dtype in _ROUNDING else str(n) for n in numbers))
        text = nested if math.prod(shape) else ""
        op = ops.Constant.create(value=ir.Attribute.parse(f"dense<{text}> : {type_}"))
        return Made(op.results[0], (tuple(shape),) * ROUNDS, 1 if dtype == "i1" else 3)

    def index(self, value: int) -> ir.Value:
        kind = ir.IndexType.get()
        return ir.Operation.create("arith.constant", [kind], attributes={"value": ir.IntegerAttr.get(kind, value)}).result

    def cast(self, made: Made, info: TensorInfo) -> Made:
        """``match_cast`` to a type that is known to fit."""
        return Made(ops.MatchCast.create(made.value, result_types=[info.type]).results[0], made.sizes, made.bound, made.error)

    def fresh_symbol(self, sizes: Sequence[int]) -> Expr:
        """A symbol that something is about to define."""
        self.count += 1
        name = f"k{self.count}_{self.rng.randrange(1 << 30)}"
        self.symbols[name] = tuple(sizes)
        return symbol(name)


def _check(
    cls: type[EffectOp], operands: Sequence[Made], types: Sequence[tuple[TensorInfo, Sizes]], attrs: dict[str, Any]
) -> None:  # fmt: skip
    """Raises RelaxError where an op whose types say what it makes is refused: as written, or as called in a round."""
    if cls.check is None:
        return
    cls.check([o.info for o in operands], [t for t, _ in types], attrs)
    for round_ in range(ROUNDS):
        given = [o.info.with_(shape=o.sizes[round_]) for o in operands]
        # What no type says is found out then.
        made = [[None if d is None else n for d, n in zip(t.shape, s[round_], strict=True)] for t, s in types]
        cls.check(given, [t.with_(shape=shape) for (t, _), shape in zip(types, made, strict=True)], attrs)


def _spreads_unknown(name: str, operands: Sequence[Made], sizes: Sizes) -> bool:
    """Whether a dimension of which types say nothing happens to be 1 and is repeated: calls of compiled code refuse that."""
    last = {"MatMul": 2}.get(name, 0)
    if name not in _BROADCAST:
        return False
    for x in operands:
        for s, result in zip(x.sizes, sizes, strict=True):
            own, whole = (list(v)[: len(v) - last][::-1] for v in (s, result))
            dims = list(x.info.shape)[: x.rank - last][::-1]
            if any(not isinstance(d, int) and n == 1 != m for d, n, m in zip(dims, own, whole, strict=False)):
                return True
    return False


def _nested(shape: Sequence[int], numbers: Any) -> str:
    if not shape:
        return next(numbers)
    return f"[{', '.join(_nested(shape[1:], numbers) for _ in range(shape[0]))}]"
