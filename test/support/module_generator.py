"""Random but valid modules for testing passes: what passes share, move, inline, place and lift, in all mixtures.

Data are small integers, and a bound on every value is kept: sums and products then are exact in f32 and results can be compared
exactly, in whatever order a pass has made of them. Bodies of functions are written by :mod:`support.random_body`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from support.random_body import ARGUMENT_BOUND, Body, Function, Shape, Style, Value, type_text
from support.random_idioms import choose

__all__ = ["random_module"]

_SHAPES: tuple[Shape, ...] = ((2, 3), (3, 2), ("n", 3), (3, "n"), ("m", 2), (6,), ("n",), (2, 1, 3), (3, 3))
_WEIGHT_SHAPES: tuple[Shape, ...] = ((2, 3), (2, 3), (3, 2), (3, 2), (6,), ("m", 2), (2, 1, 3), (3, 3), (2,))
_DEVICES: tuple[tuple[str, ...], ...] = (("cuda:0",), ("cpu:0", "cpu:1"), ("cpu:0", "cuda:0", "cuda:1"))
_CPUS: tuple[tuple[str, ...], ...] = (("cpu:0",), ("cpu:0", "cpu:1"))
#: Symbols of an entry function that shares private functions with others, whose symbols are ``n`` and ``m``.
_OTHER_SYMBOLS = {"n": "b", "m": "s"}


@dataclass
class _Module:
    rng: random.Random
    style: Style
    weight_shapes: Sequence[Shape] = _WEIGHT_SHAPES
    functions: list[Function] = field(default_factory=list[Function])
    weights: dict[str, str] = field(default_factory=dict[str, str])

    def text(self) -> str:
        rng = self.rng
        texts = [self.private(f"helper{i}") for i in range(rng.randrange(4))]
        texts += [self.entry(name) for name in ("main", "decode", "extra")[: rng.choice((1, 1, 2, 2, 3))]]
        if rng.random() < 0.2:
            texts.append(self.plain("plain"))
        rng.shuffle(texts)
        body = "\n".join(texts)
        if not self.style.devices or rng.random() < 0.3:
            return body
        listed = ", ".join(f'"{d}"' for d in self.style.devices)
        return f"module attributes {{relax.vdevices = [{listed}]}} {{\n{body}\n}}"

    def private(self, name: str) -> str:
        shapes = [self.rng.choice(_SHAPES) for _ in range(self.rng.randrange(1, 4))]
        arguments = [Value(f"%a{i}", s, bound=ARGUMENT_BOUND) for i, s in enumerate(shapes)]
        text, results = self._finished(self._new_body(arguments, []), list(arguments), 5)
        self.functions.append(Function(name, arguments, results))
        parameters = ", ".join(f"{a.text}: {a.type}" for a in arguments)
        return f"func.func private @{name}({parameters}) -> ({_types(results)}) {{\n{text}\n}}"

    def plain(self, name: str) -> str:
        """A public function that does not tell inputs from weights."""
        return self.private(name).replace("private ", "", 1)

    def entry(self, name: str) -> str:
        rng = self.rng
        symbols = _OTHER_SYMBOLS if rng.random() < 0.3 else {}
        shapes: list[Shape] = [("n", 3), *(rng.choice(_SHAPES) for _ in range(rng.randrange(3)))]
        inputs = [Value(f"%a{i}", _renamed(s, symbols), bound=ARGUMENT_BOUND) for i, s in enumerate(shapes)]
        idiom = choose(rng)
        more = [replace(v, text=f"%i{i}") for i, v in enumerate(idiom.inputs)] if idiom is not None else []
        own = [replace(v, text=f"%w{i}") for i, v in enumerate(idiom.weights)] if idiom is not None else []
        weights, quantized, parameters = self._weights(len(inputs), symbols)
        parameters += [f'{v.text}: {v.type} {{relax.name = "{name}.{v.text[1:]}"}}' for v in own]
        body = self._new_body([*inputs, *weights], quantized)
        found = idiom.write(body, inputs[0], more, own) if idiom is not None else []
        text, results = self._finished(body, [*inputs, *weights, *found], rng.randrange(4, 16), found)
        if not quantized and idiom is None and rng.random() < 0.3:
            self.functions.append(Function(name, [*inputs, *weights], results))
        inputs += more
        given = [f'{a.text}: {a.type} {{relax.name = "x{i}"}}' for i, a in enumerate(inputs)]
        attributes = f"attributes {{relax.num_input = {len(inputs)} : i64}}"
        return f"func.func @{name}({', '.join([*given, *parameters])}) -> ({_types(results)}) {attributes} {{\n{text}\n}}"

    def _weights(self, inputs: int, symbols: dict[str, str]) -> tuple[list[Value], list[Value], list[str]]:
        """Weights, those of them that are int8, and how the signature says them. Those of one name are one in all functions."""
        rng = self.rng
        weights: dict[str, Value] = {}
        for _ in range(rng.randrange(1, 6)):
            shape = rng.choice(self.weight_shapes)
            dtype = "i8" if rng.random() < 0.1 else "f32"
            name = f"w{'_'.join(map(str, shape))}.{dtype}.{rng.randrange(3)}"
            device = rng.choice(self.style.devices) if self.style.devices and name.endswith("2") else None
            text = f"%a{inputs + len(weights)}"
            weights.setdefault(name, Value(text, _renamed(shape, symbols), dtype, device, bound=3))
            if name not in self.weights:
                says = rng.choice(("always", "never")) if self.style.policy and rng.random() < 0.2 else ""
                self.weights[name] = f', relax.lift = "{says}"' if says else ""
        parameters = [f'{w.text}: {w.type} {{relax.name = "{n}"{self.weights[n]}}}' for n, w in weights.items()]
        floats = [w for w in weights.values() if w.dtype == "f32"]
        return floats, [w for w in weights.values() if w.dtype != "f32"], parameters

    def _new_body(self, arguments: list[Value], quantized: list[Value]) -> Body:
        symbols = frozenset(d for a in arguments for d in a.shape if isinstance(d, str))
        shapes = [s for s in _SHAPES if symbols.issuperset(d for d in s if isinstance(d, str))]
        return Body(self.rng, self.style, self.functions, quantized, shapes, {s: s for s in symbols})

    def _finished(self, body: Body, values: list[Value], size: int, wanted: Sequence[Value] = ()) -> tuple[str, list[Value]]:
        """The text, and the results, of a body that goes on with so many steps; wanted values are among the results."""
        rng = self.rng
        for _ in range(size):
            values += body.step(values)
        # Arguments, duplicates and values used elsewhere are all returned now and then; late values more often.
        results = [rng.choice(values[-8:] if rng.random() < 0.7 else values) for _ in range(rng.randrange(1, 5))]
        results += wanted
        body.lines.append(f"return {', '.join(v.text for v in results)} : {_types(results)}")
        return "\n".join("  " + line for line in body.lines), results


def random_module(seed: int, compilable: bool = False) -> str:
    """The text of a module; equal seeds give equal modules.

    What is compilable has neither weights of unknown size nor copies to devices that are no CPUs.
    """
    rng = random.Random(seed)
    devices = rng.choice(_CPUS if compilable else _DEVICES) if rng.random() < 0.4 else ()
    shapes = [s for s in _WEIGHT_SHAPES if not compilable or all(isinstance(d, int) for d in s)]
    return _Module(rng, Style(devices, rng.random() < 0.2), shapes).text()


def _types(values: list[Value]) -> str:
    return ", ".join(type_text(v.shape, v.dtype, v.device) for v in values)


def _renamed(shape: Shape, symbols: dict[str, str]) -> Shape:
    return tuple(symbols.get(d, d) if isinstance(d, str) else d for d in shape)
