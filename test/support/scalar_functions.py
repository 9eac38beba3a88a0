"""Random functions of scalars as lines of MLIR, the same for a CPU and for a kernel's thread, whose results both must agree on.

Where hardware may choose, the lines leave no choice: NaN never lends its sign or its bits, the larger of two zeros is +0, and
what has no defined result (a division by zero, a shift too far, an integer that does not fit) is not asked for. What two
libraries of functions may round differently is a result that nothing else is computed from.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["LIBRARY", "ScalarFunction"]

_INTEGERS = ("i8", "i16", "i32", "i64")
_FLOATS = ("f32", "f64")
_NARROW = ("f16", "bf16")
_TYPES = (*_INTEGERS, *_FLOATS, *_NARROW)
# Expanded by passes of ours on both sides, so that results are equal.
_EXPANDED = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2",
    "rsqrt", "sinh", "tanh",
)  # fmt: skip
#: Of a library each: results may differ by some units.
LIBRARY = {
    "f32": ("sin", "cos", "tan"),
    "f64": ("exp", "log", "tanh", "sin", "cos", "atan", "erf", "cbrt", "exp2", "expm1", "log1p"),
}


@dataclass
class ScalarFunction:
    """A function under construction: it reads two values of each type and gives some of each.

    Attributes:
        lines: of its body, in order.
        outputs: by type, what it gives.
        inexact: by type, what it gives that may be rounded differently.
    """

    seed: int
    steps: int = 40
    lines: list[str] = field(default_factory=list[str])
    outputs: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    inexact: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._values = {kind: [f"%{kind}_0", f"%{kind}_1"] for kind in _TYPES}
        self.inexact = {kind: [] for kind in LIBRARY}
        while len(self.lines) < self.steps:
            self._rng.choice((self._integers, self._integers, self._floats, self._floats, self._convert, self._narrow))()
        self.outputs = {kind: values[-3:] for kind, values in self._values.items()}

    @staticmethod
    def types() -> tuple[str, ...]:
        """All types, in the order of arguments."""
        return _TYPES

    def _add(self, kind: str, line: str, keep: bool = True) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {line}")
        if keep:
            self._values[kind].append(name)
        return name

    def _pick(self, kind: str) -> str:
        return self._rng.choice(self._values[kind])

    def _constant(self, kind: str, value: float) -> str:
        text = str(value) if kind in _INTEGERS else f"{value:.9e}"
        return self._add(kind, f"arith.constant {text} : {kind}", keep=False)

    # -- integers ------------------------------------------------------------------------------------------------------

    def _integers(self) -> None:
        rng, kind = self._rng, self._rng.choice(_INTEGERS)
        a, b = self._pick(kind), self._pick(kind)
        choice = rng.choice(("plain", "plain", "shift", "divide", "compare", "extreme", "count", "high", "constant"))
        if choice == "plain":
            self._add(kind, f"arith.{rng.choice(('addi', 'subi', 'muli', 'andi', 'ori', 'xori'))} {a}, {b} : {kind}")
        elif choice == "shift":
            by = self._add(kind, f"arith.andi {b}, {self._constant(kind, int(kind[1:]) - 1)} : {kind}", keep=False)
            self._add(kind, f"arith.{rng.choice(('shli', 'shrsi', 'shrui'))} {a}, {by} : {kind}")
        elif choice == "divide":
            low = self._add(kind, f"arith.andi {b}, {self._constant(kind, 127)} : {kind}", keep=False)
            by = self._add(kind, f"arith.ori {low}, {self._constant(kind, 1)} : {kind}", keep=False)
            names = ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")
            self._add(kind, f"arith.{rng.choice(names)} {a}, {by} : {kind}")
        elif choice == "compare":
            predicate = rng.choice(("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"))
            self._select(kind, self._add("i1", f"arith.cmpi {predicate}, {a}, {b} : {kind}", keep=False))
        elif choice == "extreme":
            self._add(kind, f"arith.{rng.choice(('maxsi', 'minsi', 'maxui', 'minui'))} {a}, {b} : {kind}")
        elif choice == "count":
            self._add(kind, f"math.{rng.choice(('ctpop', 'ctlz', 'cttz', 'absi'))} {a} : {kind}")
        elif choice == "high":
            name = f"%v{len(self.lines)}"
            self.lines.append(f"{name}:2 = arith.{rng.choice(('mulsi_extended', 'mului_extended'))} {a}, {b} : {kind}")
            self._values[kind].append(f"{name}#1")
        else:
            self._values[kind].append(self._constant(kind, rng.choice((0, 1, -1, 3, 100, -128))))

    def _select(self, like: str, condition: str) -> None:
        kind = self._rng.choice((like, *_TYPES))
        self._add(kind, f"arith.select {condition}, {self._pick(kind)}, {self._pick(kind)} : {kind}")

    # -- floats --------------------------------------------------------------------------------------------------------

    def _floats(self) -> None:
        rng, kind = self._rng, self._rng.choice(("f32", "f32", "f64"))
        a, b = self._pick(kind), self._pick(kind)
        choice = rng.choice(("plain", "plain", "fma", "round", "compare", "extreme", "sign", "function", "library", "constant"))
        if choice == "plain":
            self._add(kind, f"arith.{rng.choice(('addf', 'subf', 'mulf', 'divf', 'remf'))} {a}, {b} : {kind}")
        elif choice == "fma":
            self._add(kind, f"math.fma {a}, {b}, {self._pick(kind)} : {kind}")
        elif choice == "round":
            self._add(kind, f"math.{rng.choice(('floor', 'ceil', 'trunc', 'roundeven', 'sqrt', 'absf'))} {a} : {kind}")
        elif choice == "compare":
            names = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno")
            self._select(kind, self._add("i1", f"arith.cmpf {rng.choice(names)}, {a}, {b} : {kind}", keep=False))
        elif choice == "extreme":
            names = ("maximumf", "minimumf", "maxnumf", "minnumf")
            either = self._add(kind, f"arith.{rng.choice(names)} {a}, {b} : {kind}", keep=False)
            self._add(kind, f"arith.addf {either}, {self._constant(kind, 0.0)} : {kind}")
        elif choice == "sign":
            self._add(kind, f"math.copysign {a}, {self._number(kind, b)} : {kind}")
        elif choice == "function":
            self._add("f32", f"math.{rng.choice(_EXPANDED)} {self._pick('f32')} : f32")
        elif choice == "library":
            self.inexact[kind].append(self._add(kind, f"math.{rng.choice(LIBRARY[kind])} {a} : {kind}", keep=False))
        else:
            self._values[kind].append(self._constant(kind, rng.choice((0.0, -0.0, 1.0, -1.5, 100.0, 3e-5))))

    def _number(self, kind: str, value: str) -> str:
        """The value, or 1 where it is NaN."""
        one = self._constant(kind, 1.0)
        is_nan = self._add("i1", f"arith.cmpf uno, {value}, {value} : {kind}", keep=False)
        return self._add(kind, f"arith.select {is_nan}, {one}, {value} : {kind}", keep=False)

    # -- conversions ---------------------------------------------------------------------------------------------------

    def _convert(self) -> None:
        rng = self._rng
        choice = rng.choice(("widen", "narrow", "to float", "to integer", "bits", "from bits"))
        wide = rng.choice(_INTEGERS[1:])
        less = rng.choice(_INTEGERS[: _INTEGERS.index(wide)])
        kind = rng.choice(_FLOATS)
        if choice == "widen":
            self._add(wide, f"arith.{rng.choice(('extsi', 'extui'))} {self._pick(less)} : {less} to {wide}")
        elif choice == "narrow":
            self._add(less, f"arith.trunci {self._pick(wide)} : {wide} to {less}")
        elif choice == "to float":
            self._add(kind, f"arith.{rng.choice(('sitofp', 'uitofp'))} {self._pick(wide)} : {wide} to {kind}")
        elif choice == "to integer":
            self._to_integer(kind, rng.choice(("i32", "i64")))
        elif choice == "bits":
            self._add("i32", f"arith.bitcast {self._number('f32', self._pick('f32'))} : f32 to i32")
        else:
            self._add("f32", f"arith.bitcast {self._pick('i32')} : i32 to f32")

    def _to_integer(self, kind: str, integer: str) -> None:
        """Of what fits: at least 0 where the integer has no sign."""
        name = self._rng.choice(("fptosi", "fptoui"))
        value, one = self._number(kind, self._pick(kind)), self._constant(kind, 2e9)
        low = self._constant(kind, -2e9 if name == "fptosi" else 0.0)
        small = self._add(kind, f"arith.minnumf {value}, {one} : {kind}", keep=False)
        fits = self._add(kind, f"arith.maxnumf {small}, {low} : {kind}", keep=False)
        self._add(integer, f"arith.{name} {fits} : {kind} to {integer}")

    def _narrow(self) -> None:
        """Between f32 and what is narrower, and what is computed in such a type."""
        rng, kind = self._rng, self._rng.choice(_NARROW)
        choice = rng.choice(("extend", "truncate", "truncate", "f64", "integer", "float"))
        if choice == "extend":
            self._add("f32", f"arith.extf {self._pick(kind)} : {kind} to f32")
        elif choice == "truncate":
            self._add(kind, f"arith.truncf {self._pick('f32')} : f32 to {kind}")
        elif choice == "f64":
            self._add("f64", f"arith.extf {self._pick('f32')} : f32 to f64")
        elif choice == "integer":
            self._add(kind, f"arith.{rng.choice(('sitofp', 'uitofp'))} {self._pick('i16')} : i16 to {kind}")
        else:
            self._add("f32", f"arith.truncf {self._pick('f64')} : f64 to f32")
