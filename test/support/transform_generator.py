"""Random but valid transform functions: weights read in any order, shared or not, through chains, trees and regions to results.

Numbers stay small integers, so that every order of the same ops gives equal results.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["random_transform"]

_SHAPES: tuple[tuple[int, ...], ...] = ((), (8,), (4, 8), (8, 4), (16, 8), (2, 4, 8), (64, 16))
_DTYPES = ("f32", "f32", "f32", "f16", "f64")


@dataclass(frozen=True)
class _Value:
    text: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def type(self) -> str:
        return f"tensor<{''.join(f'{d}x' for d in self.shape)}{self.dtype}>"


@dataclass
class _Writer:
    rng: random.Random
    regions: bool
    lines: list[str] = field(default_factory=list)
    values: list[_Value] = field(default_factory=list)
    weights: list[_Value] = field(default_factory=list)
    count: int = 0

    def emit(self, op: str, operands: list[_Value], results: list[tuple[tuple[int, ...], str]], attributes: str = "") -> None:
        self.count += 1
        made = [_Value(f"%v{self.count}" + (f"#{i}" if len(results) > 1 else ""), s, d) for i, (s, d) in enumerate(results)]
        target = f"%v{self.count}" + (f":{len(results)}" if len(results) > 1 else "")
        called = op if op.startswith("func.call") else f'"relax.{op}"'
        types = ", ".join(m.type for m in made)
        self.lines.append(
            f"{target} = {called}({', '.join(v.text for v in operands)}) {attributes}: "
            f"({', '.join(v.type for v in operands)}) -> {types if len(made) == 1 else f'({types})'}"
        )
        self.values += made

    def step(self) -> None:
        kinds = [self._unary, self._cast, self._permute, self._add, self._scale, self._concat, self._split]
        if self.regions:
            kinds += [self._branch, self._loop, self._call]
        self.rng.choice(kinds)(self._pick())

    def _pick(self) -> _Value:
        """Late values more often, so that there are chains."""
        return self.rng.choice(self.values[-3:] if self.rng.random() < 0.5 else self.values)

    def _unary(self, x: _Value) -> None:
        self.emit(self.rng.choice(("negative", "abs", "relu")), [x], [(x.shape, x.dtype)])

    def _cast(self, x: _Value) -> None:
        dtype = self.rng.choice(_DTYPES)
        self.emit("astype", [x], [(x.shape, dtype)], f"{{dtype = {dtype}}} ")

    def _permute(self, x: _Value) -> None:
        self.emit("permute_dims", [x], [(x.shape[::-1], x.dtype)])

    def _add(self, x: _Value) -> None:
        y = self.rng.choice([v for v in self.values if (v.shape, v.dtype) == (x.shape, x.dtype)])
        self.emit("maximum", [x, y], [(x.shape, x.dtype)])

    def _scale(self, x: _Value) -> None:
        scales = [v for v in self.values if v.shape == () and v.dtype == x.dtype]
        if scales:
            self.emit("maximum", [x, self.rng.choice(scales)], [(x.shape, x.dtype)])

    def _concat(self, x: _Value) -> None:
        if x.shape and x.shape[0] <= 16:
            y = self.rng.choice([v for v in self.values if (v.shape, v.dtype) == (x.shape, x.dtype)])
            self.emit("concat", [x, y], [((2 * x.shape[0], *x.shape[1:]), x.dtype)])

    def _split(self, x: _Value) -> None:
        if x.shape and x.shape[0] % 2 == 0:
            self.emit("split", [x], [((x.shape[0] // 2, *x.shape[1:]), x.dtype)] * 2, "{sections = 2 : i64} ")

    def _region(self, x: _Value, carried: str) -> None:
        y = self.rng.choice([v for v in self.values if (v.shape, v.dtype) == (x.shape, x.dtype)])
        self.count += 2
        a, b = f"%v{self.count - 1}", f"%v{self.count}"
        self.lines.append(f'{a} = "relax.negative"({carried}) : ({x.type}) -> {x.type}')
        self.lines.append(f'{b} = "relax.maximum"({a}, {y.text}) : ({x.type}, {x.type}) -> {x.type}')
        self.lines.append(f"scf.yield {self.rng.choice((a, b, b))} : {x.type}")

    def _branch(self, x: _Value) -> None:
        """Both branches hold the same, whichever is taken."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines += [f"%c{self.count} = arith.constant true", f"{name} = scf.if %c{self.count} -> {x.type} {{"]
        self._region(x, x.text)
        self.lines += ["} else {", f"scf.yield {x.text} : {x.type}", "}"]
        self.values.append(_Value(name, x.shape, x.dtype))

    def _loop(self, x: _Value) -> None:
        self.count += 1
        n = self.count
        self.lines += [f"%l{n} = arith.constant 0 : index", f"%h{n} = arith.constant {self.rng.choice((1, 3))} : index"]
        self.lines += [f"%s{n} = arith.constant 1 : index"]
        self.lines.append(f"%v{n} = scf.for %i{n} = %l{n} to %h{n} step %s{n} iter_args(%x{n} = {x.text}) -> ({x.type}) {{")
        self._region(x, f"%x{n}")
        self.lines.append("}")
        self.values.append(_Value(f"%v{n}", x.shape, x.dtype))

    def _call(self, x: _Value) -> None:
        fitting = [v for v in self.values if v.shape == (4, 8) and v.dtype == "f32"]
        if fitting:
            self.emit("func.call @helper", [self.rng.choice(fitting)], [((8, 4), "f32")])


_HELPER = """
func.func private @helper(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %a = "relax.astype"(%x) {dtype = f64} : (tensor<4x8xf32>) -> tensor<4x8xf64>
  %b = "relax.permute_dims"(%a) : (tensor<4x8xf64>) -> tensor<8x4xf64>
  %c = "relax.astype"(%b) {dtype = f32} : (tensor<8x4xf64>) -> tensor<8x4xf32>
  return %c : tensor<8x4xf32>
}
"""


def random_transform(seed: int, size: int = 20, lazy: bool = True, regions: bool = True) -> str:
    """The text of a module with ``@main_transform_params``; equal arguments give equal modules.

    Args:
        size: how many ops there are at most, besides reads and writes.
        lazy: whether it reads weights from a provider and writes results to a sink, else it takes and returns them.
        regions: whether there are branches, loops and calls.
    """
    rng = random.Random(seed)
    writer = _Writer(rng, regions)
    _read(writer, lazy)
    for _ in range(rng.randrange(1, size + 1)):
        if rng.random() < 0.3:
            _read(writer, lazy)
        writer.step()
    outputs = rng.sample(writer.values, min(len(writer.values), rng.randrange(1, 9)))
    text = _lazy(writer, outputs) if lazy else _eager(writer, outputs)
    return (_HELPER if regions else "") + text


def _read(writer: _Writer, lazy: bool) -> None:
    """A weight, sometimes a scalar that much can share."""
    index = len(writer.weights)
    weight = _Value(f"%w{index}", writer.rng.choice(_SHAPES), writer.rng.choice(_DTYPES[:4]))
    if lazy:
        attributes = f'{{index = {index} : i64, name = "w{index}"}}'
        line = f'{weight.text} = "relax.get_param"(%p) {attributes} : (!relax.param_provider) -> {weight.type}'
        # Read at any place so far, that is outside of regions: at the start, or here.
        writer.lines.insert(0 if writer.rng.random() < 0.5 else len(writer.lines), line)
    writer.weights.append(weight)
    writer.values.append(weight)


def _lazy(writer: _Writer, outputs: list[_Value]) -> str:
    for i, value in enumerate(outputs):
        attributes = f'{{index = {i} : i64, name = "o{i}"}}'
        writer.lines.append(f'"relax.set_output"(%s, {value.text}) {attributes} : (!relax.output_sink, {value.type}) -> ()')
    body = "\n".join("  " + line for line in writer.lines)
    return (
        "func.func @main_transform_params(%p: !relax.param_provider, %s: !relax.output_sink) "
        f"attributes {{relax.num_input = 2 : i64}} {{\n{body}\n  return\n}}\n"
    )


def _eager(writer: _Writer, outputs: list[_Value]) -> str:
    """With the function that takes the results as weights and returns them."""
    body = "\n".join("  " + line for line in writer.lines)
    taken = ", ".join(f'{w.text}: {w.type} {{relax.name = "w{i}"}}' for i, w in enumerate(writer.weights))
    results = ", ".join(f'{v.type} {{relax.name = "o{i}"}}' for i, v in enumerate(outputs))
    types = ", ".join(v.type for v in outputs)
    prepared = ", ".join(f'%o{i}: {v.type} {{relax.name = "o{i}"}}' for i, v in enumerate(outputs))
    returned = ", ".join(f"%o{i}" for i in range(len(outputs)))
    return (
        f"func.func @main_transform_params({taken}) -> ({results}) "
        f"attributes {{relax.num_input = 0 : i64, relax.transform_for = @main}} {{\n{body}\n"
        f"  return {', '.join(v.text for v in outputs)} : {types}\n}}\n"
        f"func.func @main({prepared}) -> ({types}) attributes {{relax.num_input = 0 : i64}} {{\n"
        f"  return {returned} : {types}\n}}\n"
    )
