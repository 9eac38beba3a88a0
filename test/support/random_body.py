"""Random bodies of functions: one random op, branch, loop or call after the other, on values that are known to be small."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

__all__ = ["ARGUMENT_BOUND", "Body", "Function", "Shape", "Style", "Value", "type_text"]

Shape = tuple[int | str, ...]

#: Arguments are at most this, and what is more is made smaller before it is handed to a function.
ARGUMENT_BOUND = 8
#: What loops carry is at most this.
_CARRIED_BOUND = 64
#: No value is more. Sums of 24 such are exact in f32.
_LIMIT = 2**19
#: Casts there and back that are exact up to some bound.
_CASTS = {"f64": _LIMIT, "i32": _LIMIT, "f16": 2048, "bf16": 256, "i16": 32767}

_UNARY = ("negative", "abs", "relu", "sign", "stop_lift_params")
_BINARY = ("add", "subtract", "maximum", "minimum", "multiply")
_STATIC: tuple[Shape, ...] = ((2, 3), (3, 2), (6,), (2, 1, 3))


@dataclass(frozen=True)
class Style:
    """What a module may have.

    Attributes:
        devices: its virtual devices.
        policy: whether ops and weights say ``relax.lift`` now and then.
    """

    devices: tuple[str, ...] = ()
    policy: bool = False


@dataclass(frozen=True)
class Value:
    """A tensor: its name, its type, where hints have put it (none: nowhere yet), and how large its elements are at most."""

    text: str
    shape: Shape
    dtype: str = "f32"
    device: str | None = None
    place: str | None = None
    bound: int = 3

    @property
    def type(self) -> str:
        return type_text(self.shape, self.dtype, self.device)


@dataclass(frozen=True)
class Function:
    """A function that others can call."""

    name: str
    arguments: list[Value]
    results: list[Value]


def type_text(shape: Shape, dtype: str = "f32", device: str | None = None) -> str:
    """A tensor type as MLIR writes it."""
    symbols = ", ".join(f'"{d}"' for d in shape if isinstance(d, str))
    sizes = "".join(f"{'?' if isinstance(d, str) else d}x" for d in shape)
    entries = [f"sym = [{symbols}]"] * bool(symbols) + [f'vdevice = "{device}"'] * (device is not None)
    encoding = f", {{{', '.join(entries)}}}" if entries else ""
    return f"tensor<{sizes}{dtype}{encoding}>"


@dataclass
class Body:
    """A body in the making.

    Attributes:
        rng: where chance comes from.
        style: what may be in it.
        functions: what it can call.
        quantized: int8 weights.
        shapes: shapes of constants.
        symbols: symbols that are known here, with the dimension that each is.
        lines: the text.
    """

    rng: random.Random
    style: Style
    functions: Sequence[Function]
    quantized: Sequence[Value]
    shapes: Sequence[Shape]
    symbols: dict[str, int | str]
    lines: list[str] = field(default_factory=list[str])
    count: int = 0
    depth: int = 0

    def step(self, values: Sequence[Value]) -> list[Value]:
        """Writes one random op, or region, on some of the values; returns what it makes."""
        kinds: list[Callable[[Sequence[Value]], list[Value]]] = [
            self._unary, self._unary, self._binary, self._binary, self._move, self._move, self._constant, self._call,
            self._call, self._matmul, self._products, self._chain, self._sum, self._match_cast, self._dequantize,
        ]  # fmt: skip
        if self.depth < 2:
            kinds += [self._branch, self._loop, self._while]
        if self.style.devices:
            kinds += [self._hint, self._hint, self._copy, self._unplace]
        return self.rng.choice(kinds)(values)

    # Text.

    def _name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, op: str, operands: Sequence[Value], results: Sequence[Value], attributes: str = "") -> list[Value]:
        """Writes an op; returns the results under their names. A bound is limited by taking the sign."""
        name, several = self._name(), len(results) != 1
        if self.style.policy and op[0] != "@" and self.rng.random() < 0.05:
            says = f'relax.lift = "{self.rng.choice(["always", "never"])}"'
            attributes = f"{{{says}}}" if not attributes else f"{attributes[:-1]}, {says}}}"
        types = ", ".join(r.type for r in results)
        called = f'"relax.{op}"' if op[0] != "@" else f"func.call {op}"
        target = f"{name}:{len(results)} = " if several else f"{name} = "
        given, given_types = ", ".join(v.text for v in operands), _types(operands)
        types = f"({types})" if several else types
        self.lines.append(f"{target}{called}({given}) {attributes} : ({given_types}) -> {types}")
        place = next((v.place or v.device for v in operands if v.place or v.device), None)
        made = [replace(r, text=f"{name}#{i}" if several else name, place=r.place or place) for i, r in enumerate(results)]
        return [self._limited(v, _LIMIT) for v in made]

    def one(self, op: str, operands: Sequence[Value], shape: Shape, bound: int, attributes: str = "") -> list[Value]:
        """An op with one result, of its first operand's dtype and device."""
        first = operands[0]
        return self.emit(op, operands, [Value("", shape, first.dtype, first.device, bound=bound)], attributes)

    def _limited(self, value: Value, bound: int) -> Value:
        return value if value.bound <= bound else self.one("sign", [value], value.shape, 1)[0]

    def _alike(self, x: Value, values: Sequence[Value]) -> Value:
        """A value of the same type, hinted to the same place where it was hinted to another one."""
        y = self.rng.choice([v for v in values if v.type == x.type])
        place = x.place or y.place
        if x.place == y.place or place is None or x.device is not None or self.rng.random() < 0.1:
            return y
        return self._hinted(y, place) if y.place not in (None, place) else y

    # Ops.

    def _unary(self, values: Sequence[Value]) -> list[Value]:
        x, op = self.rng.choice(values), self.rng.choice(_UNARY)
        return self.one(op, [x], x.shape, 1 if op == "sign" else x.bound)

    def _binary(self, values: Sequence[Value]) -> list[Value]:
        x, op = self.rng.choice(values), self.rng.choice(_BINARY)
        y = self._alike(x, values)
        if op == "multiply" and x.bound * y.bound > _LIMIT:
            op = "maximum"
        bounds = {"multiply": x.bound * y.bound, "maximum": max(x.bound, y.bound), "minimum": max(x.bound, y.bound)}
        return self.one(op, [x, y], x.shape, bounds.get(op, x.bound + y.bound))

    def _constant(self, values: Sequence[Value]) -> list[Value]:
        if self.rng.random() < 0.5:
            return self.full(self.rng.choice(self.shapes), self.rng.randrange(4))
        shape = self.rng.choice(_STATIC)
        numbers = iter([self.rng.randrange(-3, 4) for _ in range(6)])
        text = _nested(shape, numbers)
        return self.emit("constant", [], [Value("", shape)], f"{{value = dense<{text}> : {type_text(shape)}}}")

    def full(self, shape: Shape, value: int, dtype: str = "f32") -> list[Value]:
        return self.emit("full", [], [Value("", shape, dtype, bound=abs(value))], f"{{value = {value}.0 : f64}}")

    def _sum(self, values: Sequence[Value]) -> list[Value]:
        x = self.rng.choice(values)
        axis = self.rng.randrange(len(x.shape))
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        (total,) = self.one("sum", [x], shape, 24 * x.bound, f"{{axis = array<i64: {axis}>, keepdims = true}}")
        return [total, *self.one("subtract", [x, total], x.shape, x.bound + total.bound)]

    def _dequantize(self, values: Sequence[Value]) -> list[Value]:
        if not self.quantized:
            return self._unary(values)
        x = self.rng.choice(self.quantized)
        scale, zero = self.full((), 2)[0], self.full((), 1, "i8")[0]
        wide = Value("", x.shape, "f32", x.device, bound=2 * (x.bound + 1))
        return self.emit("dequantize", [x, scale, zero], [wide])

    def _match_cast(self, values: Sequence[Value]) -> list[Value]:
        """To a symbol that is new, an op there, and back."""
        x, symbol = self.rng.choice(values), f"k{self.count}"
        (cast,) = self.one("match_cast", [x], (symbol, *x.shape[1:]), x.bound)
        (inner,) = self.one("negative", [cast], cast.shape, x.bound)
        if x.device is None and x.place is None and self.rng.random() < 0.4:
            (inner,) = self.one("add", [inner, *self._of_shape(cast.shape)], cast.shape, x.bound + 2)
        return self.one("match_cast", [inner], x.shape, inner.bound)

    def _of_shape(self, shape: Shape) -> list[Value]:
        """A value that only its type gives that shape."""
        if self.rng.random() < 0.5:
            return self.full(shape, 2)
        return self.one("broadcast_to", self.full((1,) * len(shape), 2), shape, 2)

    # Products.

    def _matrices(self, values: Sequence[Value], rows: int | str | None, like: Value | None = None) -> list[Value]:
        """Small matrices with so many rows, on the device of another one."""
        found = [v for v in values if len(v.shape) == 2 and v.bound <= ARGUMENT_BOUND and (rows is None or v.shape[0] == rows)]
        return [v for v in found if like is None or (v.device == like.device and v.place in (None, like.place))]

    def _product(self, x: Value, y: Value) -> Value:
        bound = 8 * x.bound * y.bound
        return self.one("matmul", [x, y], (x.shape[0], y.shape[1]), bound)[0]

    def _matmul(self, values: Sequence[Value]) -> list[Value]:
        return self._several_products(values, 1)

    def _products(self, values: Sequence[Value]) -> list[Value]:
        """One value times several, each product perhaps with a bias."""
        return self._several_products(values, self.rng.randrange(2, 4))

    def _several_products(self, values: Sequence[Value], count: int) -> list[Value]:
        left = self._matrices(values, None)
        x = self.rng.choice(left) if left else None
        right = self._matrices(values, x.shape[1], x) if x is not None else []
        if x is None or not right:
            return self._unary(values)
        return [self._product(x, self.rng.choice(right)) for _ in range(count)]

    def _chain(self, values: Sequence[Value]) -> list[Value]:
        """Three matrices, multiplied from either side, or a matrix times a sum."""
        left = self._matrices(values, None)
        x = self.rng.choice(left) if left else None
        middle = self._matrices(values, x.shape[1], x) if x is not None else []
        if x is None or not middle:
            return self._unary(values)
        a = self.rng.choice(middle)
        last = self._matrices(values, a.shape[1], x)
        if not last or self.rng.random() < 0.4:
            b = self.rng.choice([m for m in middle if m.type == a.type])
            (total,) = self.one("add", [a, b], a.shape, a.bound + b.bound)
            return [self._product(x, total)]
        b = self.rng.choice(last)
        if self.rng.random() < 0.5:
            return [self._product(x, self._product(a, b))]
        return [self._product(self._product(x, a), b)]

    # Data movement.

    def _move(self, values: Sequence[Value]) -> list[Value]:
        x = self.rng.choice(values)
        kinds = [self._permute, self._permute, self._cast, self._expand, self._concat, self._split]
        if x.shape in _STATIC:
            kinds.append(self._reshape)
        return self.rng.choice(kinds)(x)

    def _permute(self, x: Value) -> list[Value]:
        return self.one("permute_dims", [x], x.shape[::-1], x.bound)

    def _cast(self, x: Value) -> list[Value]:
        dtype = self.rng.choice([d for d, bound in _CASTS.items() if x.bound <= bound])
        (other,) = self.emit("astype", [x], [replace(x, dtype=dtype)], f"{{dtype = {dtype}}}")
        return self.emit("astype", [other], [replace(x, text="")], "{dtype = f32}")

    def _expand(self, x: Value) -> list[Value]:
        axis = self.rng.randrange(len(x.shape) + 1)
        attributes = f"{{axis = array<i64: {axis}>}}"
        (wide,) = self.one("expand_dims", [x], (*x.shape[:axis], 1, *x.shape[axis:]), x.bound, attributes)
        return self.one("squeeze", [wide], x.shape, x.bound, attributes)

    def _concat(self, x: Value) -> list[Value]:
        if not isinstance(x.shape[0], int) or x.shape[0] > 12:
            return [x]
        return self.one("concat", [x, x], (2 * x.shape[0], *x.shape[1:]), x.bound)

    def _split(self, x: Value) -> list[Value]:
        if not isinstance(x.shape[0], int) or x.shape[0] % 2:
            return [x]
        half = replace(x, shape=(x.shape[0] // 2, *x.shape[1:]))
        return self.emit("split", [x], [half, half], "{sections = 2 : i64}")

    def _reshape(self, x: Value) -> list[Value]:
        return self.one("reshape", [x], self.rng.choice(_STATIC), x.bound)

    # Devices.

    def _hint(self, values: Sequence[Value]) -> list[Value]:
        x = self.rng.choice(values)
        places = self.style.devices if self.rng.random() < 0.7 else self.style.devices[:1]
        return [self._hinted(x, self.rng.choice(places))]

    def _hinted(self, x: Value, place: str) -> Value:
        result = replace(x, device=None, place=place)
        return self.emit("hint_on_device", [x], [result], f'{{vdevice = "{place}"}}')[0]

    def _copy(self, values: Sequence[Value]) -> list[Value]:
        x, device = self.rng.choice(values), self.rng.choice(self.style.devices)
        return self.emit("to_vdevice", [x], [replace(x, device=device, place=device)], f'{{vdevice = "{device}"}}')

    def _unplace(self, values: Sequence[Value]) -> list[Value]:
        """A result whose type does not say where it is."""
        x = self.rng.choice(values)
        return self.emit("negative", [x], [replace(x, device=None)])

    # Calls.

    def _call(self, values: Sequence[Value]) -> list[Value]:
        if not self.functions:
            return self._unary(values)
        callee = self.rng.choice(self.functions)
        symbols, operands = dict(self.symbols), list[Value]()
        for wanted in callee.arguments:
            fitting = [v for v in values if v.device == wanted.device and _fits(v.shape, wanted.shape, symbols)]
            if not fitting:
                return self._unary(values)
            operands.append(self.rng.choice(fitting))
            symbols |= {s: d for s, d in zip(wanted.shape, operands[-1].shape, strict=True) if isinstance(s, str)}
        self.symbols = symbols
        operands = [self._passed(v, wanted) for v, wanted in zip(operands, callee.arguments, strict=True)]
        results = [replace(r, text="", place=None) for r in callee.results]
        return [self._returned(r) for r in self.emit(f"@{callee.name}", operands, results)]

    def _passed(self, value: Value, wanted: Value) -> Value:
        value = self._limited(value, wanted.bound)
        if value.shape == wanted.shape:
            return value
        return self.one("match_cast", [value], wanted.shape, value.bound)[0]

    def _returned(self, result: Value) -> Value:
        """A result whose dimensions go by the caller's names again."""
        shape = tuple(self.symbols.get(d, d) if isinstance(d, str) else d for d in result.shape)
        return result if shape == result.shape else self.one("match_cast", [result], shape, result.bound)[0]

    # Control flow.

    def _condition(self, values: Sequence[Value]) -> str:
        """An i1: a constant, or whether some element is positive."""
        flag = self._name()
        if self.rng.random() < 0.4:
            self.lines.append(f"{flag} = arith.constant {self.rng.choice(['true', 'false'])}")
            return flag
        x, element, index = self.rng.choice(values), self._name(), self._index(0)
        self.lines.append(f"{element} = tensor.extract {x.text}[{', '.join([index] * len(x.shape))}] : {x.type}")
        zero = self._name()
        self.lines.append(f"{zero} = arith.constant 0.0 : f32")
        self.lines.append(f"{flag} = arith.cmpf ogt, {element}, {zero} : f32")
        return flag

    def _index(self, value: int) -> str:
        name = self._name()
        self.lines.append(f"{name} = arith.constant {value} : index")
        return name

    def _branch(self, values: Sequence[Value]) -> list[Value]:
        like = [self.rng.choice(values) for _ in range(self.rng.choice((1, 1, 2)))]
        flag, name = self._condition(values), self._name()
        self.lines.append(f"{name}:{len(like)} = scf.if {flag} -> ({_types(like)}) {{")
        first = self._region(values, like)
        self.lines.append("} else {")
        second = self._region(values, like)
        self.lines.append("}")
        bounds = [max(a.bound, b.bound) for a, b in zip(first, second, strict=True)]
        return [replace(v, text=f"{name}#{i}", bound=b) for i, (v, b) in enumerate(zip(first, bounds, strict=True))]

    def _loop(self, values: Sequence[Value]) -> list[Value]:
        start = self._carried(values)
        low, high, step = self._index(0), self._index(self.rng.randrange(3)), self._index(1)
        name, inner = self._name(), self._inside(start)
        pairs = ", ".join(f"{a.text} = {v.text}" for a, v in zip(inner, start, strict=True))
        bounds = f"{self._name()} = {low} to {high} step {step}"
        self.lines.append(f"{name}:{len(start)} = scf.for {bounds} iter_args({pairs}) -> ({_types(start)}) {{")
        self._region([*values, *inner], inner, _CARRIED_BOUND)
        self.lines.append("}")
        return [replace(v, text=f"{name}#{i}", bound=_CARRIED_BOUND) for i, v in enumerate(start)]

    def _while(self, values: Sequence[Value]) -> list[Value]:
        """Counts an index down to zero; either region may compute."""
        start, name = self._carried(values), self._name()
        count, one, zero = self._index(self.rng.randrange(3)), self._index(1), self._index(0)
        before, after, counters = self._inside(start), self._inside(start), [self._name() for _ in range(4)]
        pairs = ", ".join(f"{a.text} = {v.text}" for a, v in zip(before, start, strict=True))
        types = f"index, {_types(start)}"
        self.lines.append(f"{name}:{len(start) + 1} = scf.while ({counters[0]} = {count}, {pairs}) : ({types}) -> ({types}) {{")
        self.lines.append(f"{counters[1]} = arith.cmpi ugt, {counters[0]}, {zero} : index")
        end = f"scf.condition({counters[1]}) {counters[0]}, {{values}} : index, {{types}}"
        self._region([*values, *before], before, _CARRIED_BOUND, end)
        arguments = ", ".join(f"{a.text}: {a.type}" for a in after)
        self.lines.append("} do {")
        self.lines.append(f"^bb0({counters[2]}: index, {arguments}):")
        self.lines.append(f"{counters[3]} = arith.subi {counters[2]}, {one} : index")
        self._region([*values, *after], after, _CARRIED_BOUND, f"scf.yield {counters[3]}, {{values}} : index, {{types}}")
        self.lines.append("}")
        return [replace(v, text=f"{name}#{i + 1}", bound=_CARRIED_BOUND) for i, v in enumerate(start)]

    def _carried(self, values: Sequence[Value]) -> list[Value]:
        return [self._limited(self.rng.choice(values), _CARRIED_BOUND) for _ in range(self.rng.choice((1, 1, 2)))]

    def _inside(self, start: Sequence[Value]) -> list[Value]:
        return [replace(v, text=self._name(), bound=_CARRIED_BOUND) for v in start]

    def _region(
        self, values: Sequence[Value], like: Sequence[Value], bound: int = _LIMIT,
        end: str = "scf.yield {values} : {types}",
    ) -> list[Value]:  # fmt: skip
        """Steps, and a terminator with values of the same types as some others and within a bound."""
        self.depth += 1
        symbols, inner = self.symbols, list(values)
        for _ in range(self.rng.randrange(3)):
            inner += self.step(inner)
        found = [self.rng.choice([v for v in inner[::-1] if v.type == x.type and v.bound <= max(bound, x.bound)]) for x in like]
        self.lines.append(end.format(values=", ".join(v.text for v in found), types=_types(found)))
        self.depth, self.symbols = self.depth - 1, symbols
        return found


def _fits(shape: Shape, wanted: Shape, symbols: dict[str, int | str]) -> bool:
    """Whether a shape is a wanted one, for the same symbols if known and any dimension for others."""
    if len(shape) != len(wanted):
        return False
    known = dict(symbols)
    return all(known.setdefault(w, s) == s if isinstance(w, str) else w == s for s, w in zip(shape, wanted, strict=True))


def _types(values: Sequence[Value]) -> str:
    return ", ".join(v.type for v in values)


def _nested(shape: Shape, numbers: Iterator[int]) -> str:
    """Nested lists of floats."""
    if not shape:
        return f"{next(numbers)}.0"
    return f"[{', '.join(_nested(shape[1:], numbers) for _ in range(int(shape[0])))}]"
