"""Random but valid modules for testing passes: several entry functions, private functions, branches, loops, symbols, constants.

Numbers stay small (only bounded functions and sums of few terms), so that results can be compared exactly.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["random_module"]

Shape = tuple[int | str, ...]

_SHAPES: tuple[Shape, ...] = ((2, 3), (3, 2), ("n", 3), (3, "n"), ("m", 2), (6,), ("n",), (2, 1, 3))
_WEIGHT_SHAPES: tuple[Shape, ...] = ((2, 3), (2, 3), (3, 2), (6,), ("m", 2), (2, 1, 3))
_UNARY = ("negative", "abs", "relu", "tanh", "square", "sign", "stop_lift_params", "hint_on_device")
_BINARY = ("add", "subtract", "maximum", "minimum")


@dataclass(frozen=True)
class _Value:
    text: str
    shape: Shape

    @property
    def type(self) -> str:
        return _type(self.shape)


@dataclass(frozen=True)
class _Function:
    name: str
    arguments: tuple[Shape, ...]
    results: tuple[Shape, ...]


def _type(shape: Shape, dtype: str = "f32") -> str:
    symbols = ", ".join(f'"{d}"' for d in shape if isinstance(d, str))
    sizes = "".join(f"{'?' if isinstance(d, str) else d}x" for d in shape)
    return f"tensor<{sizes}{dtype}{f', {{sym = [{symbols}]}}' if symbols else ''}>"


@dataclass
class _Writer:
    """The body of one function in the making."""

    rng: random.Random
    callees: list[_Function]
    lines: list[str] = field(default_factory=list)
    count: int = 0
    depth: int = 0
    symbols: frozenset[str] = frozenset()

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(
        self, op: str, operands: list[_Value], shapes: list[Shape], attributes: str = "", dtype: str = "f32"
    ) -> list[_Value]:
        name = self.name()
        types = ", ".join(v.type for v in operands)
        results = ", ".join(_type(s, dtype) for s in shapes)
        results = results if len(shapes) == 1 else f"({results})"
        target = name if len(shapes) == 1 else f"{name}:{len(shapes)}"
        called = f'"relax.{op}"' if op[0] != "@" else f"func.call {op}"
        arguments = ", ".join(v.text for v in operands)
        self.lines.append(f"{target} = {called}({arguments}) {attributes}: ({types}) -> {results}")
        return [_Value(name if len(shapes) == 1 else f"{name}#{i}", s) for i, s in enumerate(shapes)]

    def step(self, values: list[_Value]) -> list[_Value]:
        """Writes one random op, or region, on some of the values."""
        kinds = [self._unary, self._unary, self._binary, self._binary, self._move, self._move, self._constant, self._call]
        if self.depth < 2:
            kinds += [self._branch, self._loop]
        return self.rng.choice(kinds)(values)

    def _unary(self, values: list[_Value]) -> list[_Value]:
        x, op = self.rng.choice(values), self.rng.choice(_UNARY)
        return self.emit(op, [x], [x.shape], '{vdevice = "cuda:0"} ' if op == "hint_on_device" else "")

    def _binary(self, values: list[_Value]) -> list[_Value]:
        x = self.rng.choice(values)
        y = self.rng.choice([v for v in values if v.shape == x.shape])
        return self.emit(self.rng.choice(_BINARY), [x, y], [x.shape])

    def _move(self, values: list[_Value]) -> list[_Value]:
        x = self.rng.choice(values)
        kinds = [self._permute, self._cast, self._expand, self._concat, self._split]
        if x.shape in ((2, 3), (3, 2), (6,), (2, 1, 3)):
            kinds.append(self._reshape)
        return self.rng.choice(kinds)(x)

    def _permute(self, x: _Value) -> list[_Value]:
        return self.emit("permute_dims", [x], [x.shape[::-1]])

    def _cast(self, x: _Value) -> list[_Value]:
        (wide,) = self.emit("astype", [x], [x.shape], "{dtype = f64} ", "f64")
        name = self.name()
        self.lines.append(f'{name} = "relax.astype"({wide.text}) {{dtype = f32}} : ({_type(x.shape, "f64")}) -> {x.type}')
        return [_Value(name, x.shape)]

    def _expand(self, x: _Value) -> list[_Value]:
        axis = self.rng.randrange(len(x.shape) + 1)
        (wide,) = self.emit("expand_dims", [x], [(*x.shape[:axis], 1, *x.shape[axis:])], f"{{axis = array<i64: {axis}>}} ")
        return self.emit("squeeze", [wide], [x.shape], f"{{axis = array<i64: {axis}>}} ")

    def _concat(self, x: _Value) -> list[_Value]:
        if not isinstance(x.shape[0], int) or x.shape[0] > 12:
            return [x]
        return self.emit("concat", [x, x], [(2 * x.shape[0], *x.shape[1:])])

    def _split(self, x: _Value) -> list[_Value]:
        if not isinstance(x.shape[0], int) or x.shape[0] % 2:
            return [x]
        return self.emit("split", [x], [(x.shape[0] // 2, *x.shape[1:])] * 2, "{sections = 2 : i64} ")

    def _reshape(self, x: _Value) -> list[_Value]:
        return self.emit("reshape", [x], [self.rng.choice([(2, 3), (3, 2), (6,), (2, 1, 3)])])

    def _constant(self, values: list[_Value]) -> list[_Value]:
        shapes = [s for s in _SHAPES if self.symbols.issuperset(d for d in s if isinstance(d, str))]
        return self.emit("full", [], [self.rng.choice(shapes)], f"{{value = {self.rng.randrange(4)}.0 : f64}} ")

    def _call(self, values: list[_Value]) -> list[_Value]:
        shapes = {v.shape for v in values}
        fitting = [c for c in self.callees if shapes.issuperset(c.arguments)]
        if not fitting:
            return self._unary(values)
        callee = self.rng.choice(fitting)
        operands = [self.rng.choice([v for v in values if v.shape == shape]) for shape in callee.arguments]
        return self.emit(f"@{callee.name}", operands, list(callee.results))

    def _condition(self, values: list[_Value]) -> str:
        """An i1: a constant, or whether some element is positive."""
        flag = self.name()
        if self.rng.random() < 0.4:
            self.lines.append(f"{flag} = arith.constant {self.rng.choice(['true', 'false'])}")
            return flag
        x, index, element, zero = self.rng.choice(values), self.name(), self.name(), self.name()
        self.lines.append(f"{index} = arith.constant 0 : index")
        self.lines.append(f"{element} = tensor.extract {x.text}[{', '.join([index] * len(x.shape))}] : {x.type}")
        self.lines.append(f"{zero} = arith.constant 0.0 : f32")
        self.lines.append(f"{flag} = arith.cmpf ogt, {element}, {zero} : f32")
        return flag

    def _branch(self, values: list[_Value]) -> list[_Value]:
        x, name, flag = self.rng.choice(values), self.name(), self._condition(values)
        self.lines.append(f"{name} = scf.if {flag} -> {x.type} {{")
        self._region(values, x.shape)
        self.lines.append("} else {")
        self._region(values, x.shape)
        self.lines.append("}")
        return [_Value(name, x.shape)]

    def _loop(self, values: list[_Value]) -> list[_Value]:
        x, name, counter, carried = self.rng.choice(values), self.name(), self.name(), self.name()
        low, high, step = self.name(), self.name(), self.name()
        for bound, value in ((low, 0), (high, self.rng.randrange(3)), (step, 1)):
            self.lines.append(f"{bound} = arith.constant {value} : index")
        self.lines.append(
            f"{name} = scf.for {counter} = {low} to {high} step {step} iter_args({carried} = {x.text}) -> ({x.type}) {{"
        )
        self._region([*values, _Value(carried, x.shape)], x.shape)
        self.lines.append("}")
        return [_Value(name, x.shape)]

    def _region(self, values: list[_Value], shape: Shape) -> None:
        self.depth += 1
        inner = list(values)
        for _ in range(self.rng.randrange(1, 4)):
            inner += self.step(inner)
        result = self.rng.choice([v for v in inner[::-1] if v.shape == shape])
        self.lines.append(f"scf.yield {result.text} : {result.type}")
        self.depth -= 1


def random_module(seed: int) -> str:
    """The text of a module; equal seeds give equal modules."""
    rng = random.Random(seed)
    functions: list[_Function] = []
    texts = [_private_function(rng, functions, f"helper{i}") for i in range(rng.randrange(4))]
    texts += [_entry_function(rng, functions, name) for name in ("main", "decode")[: rng.randrange(1, 3)]]
    rng.shuffle(texts)
    return "\n".join(texts)


def _private_function(rng: random.Random, functions: list[_Function], name: str) -> str:
    arguments = [rng.choice(_SHAPES) for _ in range(rng.randrange(1, 4))]
    text, results = _body(rng, functions, arguments, 5)
    functions.append(_Function(name, tuple(arguments), tuple(results)))
    parameters = ", ".join(f"%a{i}: {_type(s)}" for i, s in enumerate(arguments))
    return f"func.func private @{name}({parameters}) -> ({', '.join(map(_type, results))}) {{\n{text}\n}}"


def _entry_function(rng: random.Random, functions: list[_Function], name: str) -> str:
    inputs = [("n", 3)] + [rng.choice(_SHAPES) for _ in range(rng.randrange(3))]
    weights = [rng.choice(_WEIGHT_SHAPES) for _ in range(rng.randrange(1, 6))]
    text, results = _body(rng, functions, inputs + weights, rng.randrange(4, 16))
    shapes = list(enumerate(inputs + weights))
    parameters = [f'%a{i}: {_type(s)} {{relax.name = "x{i}"}}' for i, s in shapes[: len(inputs)]]
    parameters += [f'%a{i}: {_type(s)} {{relax.name = "{_weight_name(s)}{i}"}}' for i, s in shapes[len(inputs) :]]
    attributes = f"attributes {{relax.num_input = {len(inputs)} : i64}}"
    return f"func.func @{name}({', '.join(parameters)}) -> ({', '.join(map(_type, results))}) {attributes} {{\n{text}\n}}"


def _weight_name(shape: Shape) -> str:
    """Weights of one name are of one type, in all functions."""
    return "w" + "_".join(map(str, shape)) + "."


def _body(rng: random.Random, functions: list[_Function], arguments: list[Shape], size: int) -> tuple[str, list[Shape]]:
    writer = _Writer(rng, functions, symbols=frozenset(d for s in arguments for d in s if isinstance(d, str)))
    values = [_Value(f"%a{i}", s) for i, s in enumerate(arguments)]
    for _ in range(size):
        values += writer.step(values)
    # Arguments, duplicates and values used elsewhere are all returned now and then; late values more often.
    results = [rng.choice(values[-8:] if rng.random() < 0.7 else values) for _ in range(rng.randrange(1, 5))]
    writer.lines.append(f"return {', '.join(v.text for v in results)} : {', '.join(v.type for v in results)}")
    return "\n".join("  " + line for line in writer.lines), [v.shape for v in results]
