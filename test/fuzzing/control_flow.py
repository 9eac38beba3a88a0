"""Random branches and loops, one inside of another, that hand on any tensor there is: arguments, results, what loops carry.

What bufferization makes of a module depends on who reads a tensor after someone else wrote to its memory. So almost nothing is
computed here: values are permuted, chosen and returned twice, some of them of sizes that only a call determines. Private
functions do so as well, called from anywhere; several entries do, and what some of them update others only read, or not at all.
"""

from __future__ import annotations

import random
from typing import Any, get_args

import numpy as np

import relaxir as rx
from fuzzing.targets import compiled, new_state
from support.guard_pages import Edge, guarded, guarded_copy

__all__ = ["check", "check_text", "text"]

_KNOWN = 'tensor<?x2xf32, {sym = ["n"]}>'
_UNKNOWN = "tensor<?x2xf32>"
#: Of what calls update.
_STATIC = "tensor<3x2xf32>"
_STATE = ("a", "b")
_UNARY = ("negative", "abs", "relu", "sign")
#: How deep control flow is nested, how many statements a block has at most, and how many calls a module gets.
_DEPTH, _STATEMENTS, _CALLS = 3, 4, 4

_CONSTANTS = """%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%zero = arith.constant 0.0 : f32
%row = "relax.constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>"""


def text(seed: int) -> str:
    """The module of a seed."""
    return _Writer(random.Random(seed)).module()


def check(seed: int) -> None:
    """Compares compiled code with the reference: equal bits, for arguments that take different branches; none is refused."""
    check_text(text(seed))


def check_text(text: str) -> None:
    """The same of a module."""
    module = rx.Module.parse(text)
    executable = compiled(module)
    rng = np.random.default_rng(0)
    for edge in get_args(Edge):
        held = {name: np.zeros((3, 2), np.float32) for name in executable.state}
        state = new_state(executable, held, edge)
        for _ in range(_CALLS):
            name = str(rng.choice(list(executable.entries)))
            entry = executable.entries[name]
            rows = 3 if _STATIC in text else int(rng.choice((1, 3, 5)))
            inputs: list[Any] = [rng.integers(-4, 5, (rows, 2)).astype("f4") for _ in entry.inputs]
            updated = [s.name for s in entry.state]
            want = rx.evaluate(module, name, *inputs, *(held[s] for s in updated))
            held |= dict(zip(updated, want[len(want) - len(updated) :], strict=True))
            into = tuple(guarded(w.shape, w.dtype, edge, fill=255) for w in want[: len(want) - len(updated)])
            out = into if len(into) != 1 else into[0]
            executable(*(guarded_copy(x, edge) for x in inputs), entry=name, state=state, out=out)
            for expected, found in zip(want, (*into, *(state[s] for s in updated)), strict=True):
                np.testing.assert_array_equal(found, expected)


class _Writer:
    """Writes one module; values in scope are pairs of name and type."""

    def __init__(self, rng: random.Random):
        self._rng = rng
        self._count = 0
        #: Of private functions that are written: the name, and types of arguments and of results.
        self._functions: list[tuple[str, list[str], list[str]]] = []

    def module(self) -> str:
        private = [self._function(f"f{i}") for i in range(self._rng.choice((0, 0, 1, 2)))]
        entries = ["main"] if self._rng.random() < 0.6 else ["main", "other"]
        state = _STATE[: self._rng.choice((0, 0, 1, 2))]
        return "\n".join([*private, *(self._entry(name, state) for name in entries)])

    def _entry(self, name: str, state: tuple[str, ...]) -> str:
        """A function that updates all of the state or a part of it, which may be to leave it as it is."""
        updated = [s for s in state if self._rng.random() < 0.8]
        scope = [*((f"%x{i}", _KNOWN) for i in range(3)), *((f"%{s}", _STATIC) for s in updated)]
        lines = self._block(scope, _DEPTH)
        known = [value for value, type_ in scope if type_ == _KNOWN]
        returned = self._rng.choices(known[-6:] if self._rng.random() < 0.7 else known, k=self._rng.randint(1, 4))
        for value, type_ in scope:
            if type_ == _UNKNOWN and self._rng.random() < 0.5:
                lines.append(f'{(cast := self._name())} = "relax.match_cast"({value}) : ({_UNKNOWN}) -> {_KNOWN}')
                returned.append(cast)
        arguments = [f'%x{i}: {_KNOWN} {{relax.name = "x{i}"}}' for i in range(3)]
        arguments += [f'%{s}: {_STATIC} {{relax.name = "{s}"}}' for s in updated]
        results = [f'{_KNOWN} {{relax.name = "y{i}"}}' for i in range(len(returned))]
        results += [f'{_STATIC} {{relax.name = "{s}"}}' for s in updated]
        returned += [f"%{s}" if self._rng.random() < 0.3 else self._value(scope, _STATIC) for s in updated]
        first = ", ".join(f"{s} = dense<0.0> : {_STATIC}" for s in updated)
        attributes = f"relax.num_input = {len(arguments)} : i64" + (f", relax.state = {{{first}}}" if updated else "")
        types = [_KNOWN] * (len(returned) - len(updated)) + [_STATIC] * len(updated)
        head = f"func.func @{name}({', '.join(arguments)}) -> ({', '.join(results)}) attributes {{{attributes}}} {{"
        return "\n".join([head, _CONSTANTS, *lines, self._yield("return", returned, types), "}"])

    def _function(self, name: str) -> str:
        """A private function, which may call those before it."""
        types = [_KNOWN, *self._rng.choices((_KNOWN, _UNKNOWN, _STATIC), k=self._rng.randint(0, 2))]
        scope = [(f"%p{i}", type_) for i, type_ in enumerate(types)]
        arguments = ", ".join(f"{value}: {type_}" for value, type_ in scope)
        lines = self._block(scope, 1)
        results = self._types(scope)
        values = [self._value(scope, t) for t in results]
        self._functions.append((name, types, results))
        head = f"func.func private @{name}({arguments}) -> ({', '.join(results)}) {{"
        return "\n".join([head, _CONSTANTS, *lines, self._yield("return", values, results), "}"])

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _block(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self._rng.randint(1, _STATEMENTS)):
            kinds = [self._unary, self._binary, self._cast]
            kinds += [self._call] * 2 if self._functions else []
            kinds += [self._write] if _STATIC in {type_ for _, type_ in scope} else []
            kinds += [self._branch, self._for, self._while] * 2 if depth else []
            lines += self._rng.choice(kinds)(scope, depth)
        return lines

    def _value(self, scope: list[tuple[str, str]], type_: str) -> str:
        """A value of a type, the last ones rather than the first; there is one of each."""
        fitting = [name for name, other in scope if other == type_]
        return self._rng.choice(fitting[-3:] if self._rng.random() < 0.5 else fitting)

    def _types(self, scope: list[tuple[str, str]]) -> list[str]:
        there = sorted({type_ for _, type_ in scope})
        return self._rng.choices(there, k=self._rng.randint(1, 3))

    def _unary(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        value, type_ = self._rng.choice(scope)
        scope.append((name := self._name(), type_))
        return [f'{name} = "relax.{self._rng.choice(_UNARY)}"({value}) : ({type_}) -> {type_}']

    def _binary(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        left, right = self._value(scope, _KNOWN), self._value(scope, _KNOWN)
        scope.append((name := self._name(), _KNOWN))
        return [f'{name} = "relax.subtract"({left}, {right}) : ({_KNOWN}, {_KNOWN}) -> {_KNOWN}']

    def _cast(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        """To a type that says less, or more where there is state."""
        to = _STATIC if _STATIC in {type_ for _, type_ in scope} and self._rng.random() < 0.5 else _UNKNOWN
        value = self._value(scope, _KNOWN)
        scope.append((name := self._name(), to))
        return [f'{name} = "relax.match_cast"({value}) : ({_KNOWN}) -> {to}']

    def _write(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        """A row of one value into another, as into a cache."""
        into, source, part = self._value(scope, _STATIC), self._value(scope, _STATIC), self._name()
        scope.append((name := self._name(), _STATIC))
        begin = self._rng.randrange(3)
        slice_ = f"{{axes = array<i64: 0>, begin = [{begin}], end = [{begin + 1}]}}"
        return [
            f'{part} = "relax.strided_slice"({source}) {slice_} : ({_STATIC}) -> tensor<1x2xf32>',
            f'{name} = "relax.index_copy"({into}, %row, {part}) : ({_STATIC}, tensor<1xi64>, tensor<1x2xf32>) -> {_STATIC}',
        ]

    def _call(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        """Of a private function whose arguments there are, if there is one."""
        there = {type_ for _, type_ in scope}
        fitting = [f for f in self._functions if there.issuperset(f[1])]
        if not fitting:
            return []
        callee, types, results = self._rng.choice(fitting)
        values = ", ".join(self._value(scope, t) for t in types)
        name = self._name()
        scope += [(f"{name}#{i}", t) for i, t in enumerate(results)]
        return [f"{name}:{len(results)} = func.call @{callee}({values}) : ({', '.join(types)}) -> ({', '.join(results)})"]

    def _flag(self, scope: list[tuple[str, str]]) -> tuple[str, list[str]]:
        value, type_ = self._rng.choice(scope)
        element, flag = self._name(), self._name()
        column = self._rng.choice(["%c0", "%c1"])
        return flag, [
            f"{element} = tensor.extract {value}[%c0, {column}] : {type_}",
            f"{flag} = arith.cmpf ogt, {element}, %zero : f32",
        ]

    def _branch(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        types = self._types(scope)
        flag, lines = self._flag(scope)
        result = self._name()
        lines.append(f"{result}:{len(types)} = scf.if {flag} -> ({', '.join(types)}) {{")
        for end in ("} else {", "}"):
            inner = list(scope)
            lines += self._block(inner, depth - 1) if self._rng.random() < 0.6 else []
            lines += [self._yield("scf.yield", [self._value(inner, t) for t in types], types), end]
        scope += [(f"{result}#{i}", t) for i, t in enumerate(types)]
        return lines

    def _for(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        types = self._types(scope)
        result, carried = self._name(), [self._name() for _ in types]
        count, lines = self._rounds()
        starts = ", ".join(f"{c} = {self._value(scope, t)}" for c, t in zip(carried, types, strict=True))
        range_ = f"{self._name()} = %c0 to {count} step %c1"
        lines.append(f"{result}:{len(types)} = scf.for {range_} iter_args({starts}) -> ({', '.join(types)}) {{")
        lines += self._body(scope, carried, types, depth)
        scope += [(f"{result}#{i}", t) for i, t in enumerate(types)]
        return [*lines, "}"]

    def _while(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        types = self._types(scope)
        result, i, j, go, next_ = (self._name() for _ in range(5))
        before, after = ([self._name() for _ in types] for _ in range(2))
        count, lines = self._rounds()
        starts = ", ".join(f"{c} = {self._value(scope, t)}" for c, t in zip(before, types, strict=True))
        all_types = ", ".join(["index", *types])
        lines += [
            f"{result}:{len(types) + 1} = scf.while ({i} = %c0, {starts}) : ({all_types}) -> ({all_types}) {{",
            f"{go} = arith.cmpi ult, {i}, {count} : index",
        ]
        inner = [*scope, *zip(before, types, strict=True)]
        lines += self._block(inner, 0) if self._rng.random() < 0.3 else []
        passed = [self._value(inner, t) for t in types]
        lines += [
            self._yield(f"scf.condition({go})", [i, *passed], ["index", *types]),
            "} do {",
            f"^bb0({', '.join(f'{n}: {t}' for n, t in zip([j, *after], ['index', *types], strict=True))}):",
            f"{next_} = arith.addi {j}, %c1 : index",
        ]
        lines += self._body(scope, after, types, depth, next_)
        scope += [(f"{result}#{k + 1}", t) for k, t in enumerate(types)]
        return [*lines, "}"]

    def _rounds(self) -> tuple[str, list[str]]:
        name = self._name()
        return name, [f"{name} = arith.constant {self._rng.randint(0, 3)} : index"]

    def _body(
        self, scope: list[tuple[str, str]], carried: list[str], types: list[str], depth: int, counter: str | None = None
    ) -> list[str]:  # fmt: skip
        inner = [*scope, *zip(carried, types, strict=True)]
        lines = self._block(inner, depth - 1) if self._rng.random() < 0.8 else []
        values = [self._value(inner, t) for t in types]
        if counter is None:
            return [*lines, self._yield("scf.yield", values, types)]
        return [*lines, self._yield("scf.yield", [counter, *values], ["index", *types])]

    def _yield(self, op: str, values: list[str], types: list[str]) -> str:
        return f"{op} {', '.join(values)} : {', '.join(types)}"
