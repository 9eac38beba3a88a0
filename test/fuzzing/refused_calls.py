"""Calls that fail, before passes, after them, and compiled: what a module refuses, it refuses always, and nothing else.

A module computes on sizes that types leave open, name, or say; its statements are what passes look for: products of sums, of
products, of gathered columns, several of one factor, transpositions before concatenations, reshapes and casts that may be
undone, in branches, loops and functions as well. Where all sizes are 4 and all indices inside, nothing fails; calls vary both.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import relaxir as rx
from fuzzing.targets import compiled, is_this_cpu
from relaxir.debugging.meaning import run_entry
from relaxir.dialect.context import new_context
from relaxir.dialect.functions import find_function
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from relaxir.dialect.struct_info import TensorInfo
from relaxir.lowering.passes import register_passes
from support.random_pipelines import ELEMENTS, random_pipeline

__all__ = ["check", "check_text", "text"]

#: What keeps checks of what goes unread, in front of passes that drop it.
_KEEP = "relax-check-scalars,relax-keep-checks"

#: MLIR's own: a loop that starts with a cast of a known size is made to carry that size in each turn (dialect/README.md).
_NARROWS_LOOPS = re.compile(r"(?<!relax-)\bcanonicalize\b")

#: Passes that round results to few digits: of these the shapes count.
_ROUND = ("mixed-precision", "quantize")

_SIZE, _CALLS, _PIPELINES = 4, 8, 6
_SIZES = (0, 1, 3, 5, 8)
_WEIGHTS = 3
_BINARY = ("add", "multiply", "maximum", "subtract")
_UNARY = ("negative", "abs", "relu")

#: A value: its name, and what its type says of its two dimensions.
Value = tuple[str, tuple[str, str]]


def text(seed: int) -> str:
    """The module of a seed."""
    return _Writer(random.Random(seed)).module()


def check(seed: int) -> None:
    """Raises AssertionError for a pass after which other calls are refused, or other results come."""
    check_text(text(seed))


def check_text(text: str) -> None:
    """The same of a module."""
    register_passes()
    rng, context = random.Random(text), new_context()
    module = parse_module(text, "-", context)
    calls = [_call(module, rng, i) for i in range(_CALLS)]
    wanted = [_outcome(lambda *a: run_entry(module.operation, "main", *a), *call) for call in calls]
    assert not isinstance(wanted[0], str), f"a call that fits is refused: {wanted[0]}"
    kept = manager.run(module.operation, _KEEP)
    _compare(kept, _KEEP, calls, wanted)
    _compare_compiled(text, calls, wanted)
    if not is_this_cpu():  # passes on relax are the same for all
        return
    pipelines = [*rng.sample(ELEMENTS, _PIPELINES), *(random_pipeline(rng) for _ in range(_PIPELINES))]
    for pipeline in (p for p in pipelines if "scf.for" not in text or not _NARROWS_LOOPS.search(p)):
        after = _run(kept, pipeline)
        if after is not None:
            _compare(after, pipeline, calls, wanted)


def _run(module: Any, pipeline: str) -> Any:
    """What a pipeline makes of the module; None where it refuses."""
    try:
        return manager.run(module, pipeline)
    except rx.RelaxError as error:
        if error.__cause__ is None:  # a pass that refuses raises the cause
            raise AssertionError(f"{pipeline} left invalid IR: {error}") from error
        return None


def _compare(after: Any, pipeline: str, calls: list[Any], wanted: list[Any]) -> None:
    _check(pipeline, calls, wanted, lambda inputs, weights: run_entry(after, "main", inputs, weights))


def _check(pipeline: str, calls: list[Any], wanted: list[Any], run: Callable[..., Any]) -> None:
    for call, want in zip(calls, wanted, strict=True):
        got = _outcome(run, *call)
        sizes = [a.shape for a in call[0]]
        assert isinstance(got, str) or not isinstance(want, str), f"{pipeline}: {sizes} refused before, not after: {want}"
        assert isinstance(want, str) or not isinstance(got, str), f"{pipeline}: {sizes} refused after, not before: {got}"
        if isinstance(want, str):
            continue
        rounds = any(r in pipeline for r in _ROUND)
        for a, b in zip(want, got, strict=True):
            assert a.shape == b.shape, f"{pipeline}: {sizes} gave {a.shape}, gives {b.shape}"
            largest = np.abs(a).max(initial=1)
            assert rounds or np.allclose(b, a, rtol=1e-4, atol=1e-4 * largest), f"{pipeline}: {sizes} gives other numbers"


def _compare_compiled(text: str, calls: list[Any], wanted: list[Any]) -> None:
    """The same of compiled code, of a state that a refused call may leave, as the next call comes behind it."""
    module = rx.Module.parse(text)
    if any("?" in str(result) for result in find_function(module.ir.operation, "main").type.results):
        return  # a result of a size that inputs need not determine
    executable = compiled(module)
    _check("compiled", calls, wanted, lambda inputs, weights: _called(executable, inputs, weights))


def _called(executable: rx.Executable, inputs: list[Any], weights: dict[str, Any]) -> Any:
    executable.bind(executable.prepare({n: weights[n] for n in executable.manifest.raw_weights}))
    found = executable(*inputs)
    return [np.asarray(a) for a in (found if isinstance(found, tuple) else (found,))]


def _outcome(run: Callable[..., Any], inputs: list[Any], weights: dict[str, Any]) -> Any:
    """The results, or why the call is refused."""
    try:
        return run(inputs, weights)
    except rx.RelaxError as error:
        return str(error)


def _call(module: Any, rng: random.Random, number: int) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of ``main``: the first that fit, then some of other sizes, or with indices outside."""
    data = np.random.default_rng(number)
    function = next(f for f in module.body.operations if f.name.value == "main")
    named, inputs = dict[str, int](), list[Any]()
    strange = rng.random() < 0.3
    for argument in list(function.arguments)[:-_WEIGHTS]:
        type_ = argument.type
        shape = [_size(argument, axis, named, rng, number) for axis in range(type_.rank)]
        if str(type_.element_type) == "f32":
            inputs.append(data.standard_normal(shape).astype(np.float32))
        elif str(type_.element_type) == "i1":
            inputs.append(np.array(rng.random() < 0.5))
        else:
            high = _SIZE + 1 if number and strange else _SIZE
            inputs.append(data.integers(-1 if number and strange else 0, high, shape))
    weights = {f"w{i}": data.standard_normal((_SIZE, _SIZE)).astype(np.float32) for i in range(_WEIGHTS)}
    return inputs, weights


def _size(argument: Any, axis: int, named: dict[str, int], rng: random.Random, number: int) -> int:
    dim = TensorInfo.of(argument).shape[axis]
    if isinstance(dim, int):
        return dim
    new = rng.choice(_SIZES) if number and rng.random() < 0.3 else _SIZE
    return new if dim is None else named.setdefault(str(dim), new)


class _Writer:
    """Writes one module."""

    def __init__(self, rng: random.Random):
        self._rng = rng
        self._count = 0

    def module(self) -> str:
        inputs = [(f"%x{i}", (self._dim(), self._dim())) for i in range(3)]
        weights = [(f"%w{i}", ("4", "4")) for i in range(_WEIGHTS)]
        self._index = self._dim()
        index = f"%i: {self._typed((self._index,), 'i64')}"
        arguments = [f"{n}: {self._type(d)}" for n, d in inputs] + [index, "%go: tensor<i1>"]
        arguments += [f'{n}: {self._type(d)} {{relax.name = "{n[1:]}"}}' for n, d in weights]
        values = [*inputs, *weights]
        lines = self._block(values, 2)
        read = self._rng.sample(values, self._rng.randint(1, 3))
        if self._rng.random() < 0.7:  # what has a known size can be compiled, whatever it is made of
            lines += [line for value in read for line in self._size_of(value)]
            read, types = [(f"{name}_sum", ()) for name, _ in read], ["tensor<f32>"] * len(read)
        else:
            types = [self._type(d) for _, d in read]
        results = ", ".join(types)
        body = "\n".join([_CONSTANTS, *lines])
        return f"""{self._helper()}
func.func @main({", ".join(arguments)}) -> ({results}) attributes {{relax.num_input = 5 : i64}} {{
{body}
return {", ".join(n for n, _ in read)} : {results}
}}"""

    def _size_of(self, value: Value) -> list[str]:
        """The sum of a value's magnitudes."""
        (name, dims), kind = value, self._type(value[1])
        return [
            f'{name}_abs = "relax.abs"({name}) : ({kind}) -> {kind}',
            f'{name}_sum = "relax.sum"({name}_abs) : ({self._type(dims)}) -> tensor<f32>',
        ]

    def _helper(self) -> str:
        """A private function of two tensors of any size."""
        op = self._rng.choice(_BINARY)
        return f"""func.func private @helper(%a: {_ANY}, %b: {_ANY}) -> {_ANY} {{
  %0 = "relax.{op}"(%a, %b) : ({_ANY}, {_ANY}) -> {_ANY}
  return %0 : {_ANY}
}}"""

    def _dim(self) -> str:
        return self._rng.choice(("?", "?", "n", "m", "4"))

    def _typed(self, dims: tuple[str, ...], dtype: str = "f32") -> str:
        sizes = "x".join(d if d.isdigit() else "?" for d in dims)
        names = [d for d in dims if not d.isdigit()]
        quoted = ", ".join(f'"{n}"' for n in names)
        return f"tensor<{sizes}x{dtype}" + (f", {{sym = [{quoted}]}}>" if set(names) - {"?"} else ">")

    def _type(self, dims: tuple[str, str]) -> str:
        return self._typed(dims)

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _block(self, values: list[Value], depth: int) -> list[str]:
        """Some statements; what they make is added to the values."""
        lines = list[str]()
        for _ in range(self._rng.randint(2, 5)):
            kinds = [self._binary, self._unary, self._product, self._product, self._transposed, self._taken, self._reshaped]
            kinds += [self._cast, self._parallel, self._of_sum, self._of_columns, self._chain, self._joined, self._called]
            kinds += [self._branch, self._loop] if depth else []
            lines += self._rng.choice(kinds)(values, depth)
        return lines

    def _made(self, op: str, operands: list[Value], dims: tuple[str, str], values: list[Value], attributes: str = "") -> str:
        name = self._name()
        types = ", ".join(self._type(d) for _, d in operands)
        values.append((name, dims))
        return f'{name} = "relax.{op}"({", ".join(n for n, _ in operands)}) {attributes}: ({types}) -> {self._type(dims)}'

    def _pick(self, values: list[Value]) -> Value:
        return self._rng.choice(values[-8:] if self._rng.random() < 0.7 else values)

    def _binary(self, values: list[Value], _: int) -> list[str]:
        a, lines = self._pick(values), list[str]()
        b = self._fitting(self._pick(values), (0, 1), a[1], lines)
        return [*lines, self._made(self._rng.choice(_BINARY), [a, b], _joint(a[1], b[1]), values)]

    def _fitting(self, value: Value, axes: tuple[int, ...], wanted: tuple[str, ...], lines: list[str]) -> Value:
        """The value, of unknown sizes where its type says others than are wanted along axes."""
        if all(value[1][axis] == want or "?" in (value[1][axis], want) for axis, want in zip(axes, wanted, strict=True)):
            return value
        name = self._name()
        lines.append(f"{name} = tensor.cast {value[0]} : {self._type(value[1])} to {_ANY}")
        return name, ("?", "?")

    def _unary(self, values: list[Value], _: int) -> list[str]:
        a = self._pick(values)
        return [self._made(self._rng.choice(_UNARY), [a], a[1], values)]

    def _product(self, values: list[Value], _: int) -> list[str]:
        return self._times(self._pick(values), self._pick(values), values)

    def _times(self, a: Value, b: Value, values: list[Value]) -> list[str]:
        lines = list[str]()
        b = self._fitting(b, (0,), (a[1][1],), lines)
        return [*lines, self._made("matmul", [a, b], (a[1][0], b[1][1]), values)]

    def _transposed(self, values: list[Value], _: int) -> list[str]:
        a = self._pick(values)
        return [self._made("permute_dims", [a], a[1][::-1], values)]

    def _taken(self, values: list[Value], _: int) -> list[str]:
        a = self._pick(values)
        return [self._take(a, self._rng.choice((0, 1)), values)]

    def _take(self, a: Value, axis: int, values: list[Value]) -> str:
        name, index = self._name(), self._index
        dims = (index, a[1][1]) if axis == 0 else (a[1][0], index)
        values.append((name, dims))
        types = f"({self._type(a[1])}, {self._typed((index,), 'i64')}) -> {self._type(dims)}"
        return f'{name} = "relax.take"({a[0]}, %i) {{axis = {axis} : i64}} : {types}'

    def _reshaped(self, values: list[Value], _: int) -> list[str]:
        picked, lines = self._pick(values), list[str]()
        a = self._fitting(picked, (0, 1), ("4", "4"), lines)
        flat, back = self._name(), self._name()
        values.append((back, ("4", "4")))
        between = self._rng.choice(("tensor<16xf32>", "tensor<2x8xf32>"))
        return [
            *lines,
            f'{flat} = "relax.reshape"({a[0]}) : ({self._type(a[1])}) -> {between}',
            f'{back} = "relax.reshape"({flat}) : ({between}) -> tensor<4x4xf32>',
        ]

    def _cast(self, values: list[Value], _: int) -> list[str]:
        a = self._pick(values)
        if self._rng.random() < 0.4 and set(a[1]) <= {"?", "4"}:
            return [self._made("broadcast_to", [a], ("4", "4"), values)]
        first, second = ("4" if d == "?" and self._rng.random() < 0.6 else d for d in a[1])
        return [self._made("match_cast", [a], (first, second), values)]

    def _parallel(self, values: list[Value], _: int) -> list[str]:
        a = self._pick(values)
        return [line for b in self._rng.sample(values[:6], 2) for line in self._times(a, b, values)]

    def _of_sum(self, values: list[Value], depth: int) -> list[str]:
        first = self._binary(values, depth)
        total, b = values[-1], self._pick(values[:6])
        return [*first, *self._times(b, total, values)]

    def _of_columns(self, values: list[Value], _: int) -> list[str]:
        a, b = self._pick(values), self._pick(values[:6])
        first = self._take(b, 1, values)
        return [first, *self._times(a, values[-1], values)]

    def _chain(self, values: list[Value], _: int) -> list[str]:
        a, b, c = (self._pick(values) for _ in range(3))
        return [*self._times(a, b, values), *self._times(values[-1], c, values)]

    def _joined(self, values: list[Value], _: int) -> list[str]:
        """A product with columns of two tensors that were rows of others, and sums of its rows."""
        a, left, right = (self._pick(values) for _ in range(3))
        lines = [
            self._made("permute_dims", [left], left[1][::-1], values),
            self._made("permute_dims", [right], right[1][::-1], values),
        ]
        first = values[-2]
        second = self._fitting(values[-1], (0,), (first[1][0],), lines)
        both, rows = self._name(), _joint(first[1], second[1])[0]
        types = f"({self._type(first[1])}, {self._type(second[1])}) -> {self._type((rows, '?'))}"
        lines.append(f'{both} = "relax.concat"({first[0]}, {second[0]}) {{axis = 1 : i64}} : {types}')
        inner = list(values)
        lines += self._times(a, (both, (rows, "?")), inner)
        return [*lines, *self._sum(inner[-1], values)]

    def _sum(self, a: Value, values: list[Value]) -> list[str]:
        """Sums of rows, added to a weight."""
        name, column, (weight, _) = self._name(), (a[1][0], "1"), values[3]
        opened = self._name()
        lines = [f"{opened} = tensor.cast {weight} : tensor<4x4xf32> to tensor<?x4xf32>"]
        types = f"({self._type(a[1])}) -> {self._type(column)}"
        lines.append(f'{name} = "relax.sum"({a[0]}) {{axis = array<i64: 1>, keepdims = true}} : {types}')
        return [*lines, self._made("add", [(name, column), (opened, ("?", "4"))], (a[1][0], "4"), values)]

    def _called(self, values: list[Value], _: int) -> list[str]:
        a, b, lines = self._pick(values), self._pick(values), list[str]()
        names = []
        for value in (a, b):
            names.append(self._name())
            lines.append(f"{names[-1]} = tensor.cast {value[0]} : {self._type(value[1])} to {_ANY}")
        made = self._name()
        values.append((made, ("?", "?")))
        return [*lines, f"{made} = func.call @helper({', '.join(names)}) : ({_ANY}, {_ANY}) -> {_ANY}"]

    def _branch(self, values: list[Value], depth: int) -> list[str]:
        """A branch that hands on something of any size."""
        made, blocks = self._name(), list[str]()
        for _ in range(2):
            inner = list(values)
            lines = self._block(inner, depth - 1)
            out, name = inner[-1], self._name()
            lines.append(f"{name} = tensor.cast {out[0]} : {self._type(out[1])} to {_ANY}")
            blocks.append("\n".join([*lines, f"scf.yield {name} : {_ANY}"]))
        values.append((made, ("?", "?")))
        return [f"{made} = scf.if %flag -> ({_ANY}) {{\n{blocks[0]}\n}} else {{\n{blocks[1]}\n}}"]

    def _loop(self, values: list[Value], depth: int) -> list[str]:
        """A loop of two turns that carries something of any size."""
        made, start, carried, out, turn = (self._name() for _ in range(5))
        a = self._pick(values)
        inner = [*values, (carried, ("?", "?"))]
        lines = self._block(inner, depth - 1)
        last = inner[-1]
        values.append((made, ("?", "?")))
        body = "\n".join(
            [*lines, f"{out} = tensor.cast {last[0]} : {self._type(last[1])} to {_ANY}", f"scf.yield {out} : {_ANY}"]
        )
        head = f"{made} = scf.for {turn} = %c0 to %c2 step %c1 iter_args({carried} = {start}) -> ({_ANY})"
        return [f"{start} = tensor.cast {a[0]} : {self._type(a[1])} to {_ANY}", f"{head} {{\n{body}\n}}"]


_ANY = "tensor<?x?xf32>"
_CONSTANTS = """%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%flag = tensor.extract %go[] : tensor<i1>"""


def _joint(a: tuple[str, str], b: tuple[str, str]) -> tuple[str, str]:
    """What is known of the sizes of two tensors together."""
    first, second = (x if x == y else "4" if "4" in (x, y) else "?" for x, y in zip(a, b, strict=True))
    return first, second
