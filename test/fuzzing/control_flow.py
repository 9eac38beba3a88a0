"""Random branches and loops, one inside of another, that hand on any tensor there is: arguments, results, what loops carry.

What bufferization makes of a module depends on who reads a tensor after someone else wrote to its memory. So almost nothing is
computed here: values are permuted, chosen and returned twice, some of them of sizes that only a call determines.
"""

from __future__ import annotations

import random
from typing import Any, get_args

import numpy as np

import relaxir as rx
from support.guard_pages import Edge, guarded, guarded_copy

__all__ = ["check", "check_text", "text"]

_KNOWN = 'tensor<?x2xf32, {sym = ["n"]}>'
_UNKNOWN = "tensor<?x2xf32>"
_UNARY = ("negative", "abs", "relu", "sign")
#: How deep control flow is nested, and how many statements a block has at most.
_DEPTH, _STATEMENTS = 3, 4


def text(seed: int) -> str:
    """The module of a seed."""
    return _Writer(random.Random(seed)).module()


def check(seed: int) -> None:
    """Compares compiled code with the reference: equal bits, for arguments that take different branches; none is refused."""
    check_text(text(seed))


def check_text(text: str) -> None:
    """The same of a module."""
    module = rx.Module.parse(text)
    executable = rx.compile(module, cache=False)
    rng = np.random.default_rng(0)
    for edge in get_args(Edge):
        for _ in range(3):
            inputs: list[Any] = [rng.integers(-4, 5, (3, 2)).astype("f4") for _ in range(3)]
            want = rx.evaluate(module, "main", *inputs)
            into = tuple(guarded(w.shape, w.dtype, edge, fill=255) for w in want)
            executable(*(guarded_copy(x, edge) for x in inputs), out=into if len(into) != 1 else into[0])
            for expected, found in zip(want, into, strict=True):
                np.testing.assert_array_equal(found, expected)


class _Writer:
    """Writes one module; values in scope are pairs of name and type."""

    def __init__(self, rng: random.Random):
        self._rng = rng
        self._count = 0

    def module(self) -> str:
        scope = [(f"%x{i}", _KNOWN) for i in range(3)]
        lines = self._block(scope, _DEPTH)
        known = [name for name, type_ in scope if type_ == _KNOWN]
        returned = self._rng.choices(known[-6:] if self._rng.random() < 0.7 else known, k=self._rng.randint(1, 4))
        for name, type_ in scope:
            if type_ == _UNKNOWN and self._rng.random() < 0.5:
                sum_ = self._name()
                lines.append(f'{sum_} = "relax.match_cast"({name}) : ({_UNKNOWN}) -> {_KNOWN}')
                returned.append(sum_)
        types = ", ".join([_KNOWN] * len(returned))
        arguments = ", ".join(f'%x{i}: {_KNOWN} {{relax.name = "x{i}"}}' for i in range(3))
        body = "\n".join(
            ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index", "%zero = arith.constant 0.0 : f32", *lines]
        )
        return f"""func.func @main({arguments}) -> ({types}) attributes {{relax.num_input = 3 : i64}} {{
{body}
return {", ".join(returned)} : {types}
}}"""

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _block(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self._rng.randint(1, _STATEMENTS)):
            kinds = [self._unary, self._binary, self._cast]
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
        value = self._value(scope, _KNOWN)
        scope.append((name := self._name(), _UNKNOWN))
        return [f'{name} = "relax.match_cast"({value}) : ({_KNOWN}) -> {_UNKNOWN}']

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
