"""A module that is interesting, made small: parts of it go, in halves and then one by one, while it stays interesting.

Source: Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, 2002 (delta debugging); parts are those of a
program, as in LLVM's llvm-reduce and mlir-reduce. A text that is no module loses lines, and then words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..dialect.bindings import ir
from ..dialect.context import new_context
from ..dialect.conventions import check_module
from ..dialect.errors import RelaxError
from ..dialect.parser import parse_module
from ..dialect.passes import manager
from ..dialect.traversal import nested_operations
from .isolated import ended
from .steps import STEPS, Shrinking

__all__ = ["Progress", "reduced"]

#: Passes that can make a module smaller in a way that no step does: calls become what they call.
_PASSES = ("relax-inline-private-functions", "relax-inline", "symbol-dce", "cse", "canonicalize")
#: Seconds that parsing a module, or one of these passes, may take.
_SECONDS = 60.0
# Sizes in types and attributes; not the numbers of values, of dtypes, of floats.
_NUMBER = re.compile(r"(?<![a-wyzA-Z_\d.%#@])(?<!0x)\d+(?![\d.eE])")
_WORD = re.compile(r"\s+|\w+|.", re.DOTALL)


@dataclass(frozen=True)
class Progress:
    """What has been done so far.

    Attributes:
        tests: candidates that were tried.
        ops: of the smallest interesting module; lines of a text that is none.
        characters: of its text.
    """

    tests: int
    ops: int
    characters: int

    def __str__(self) -> str:
        return f"{self.ops} ops, {self.characters} characters after {self.tests} tests"


def reduced(
    text: str, interesting: Callable[[str], bool], *, told: Callable[[Progress], object] = lambda progress: None
) -> str:
    """The text of a smaller module that is interesting, too; no step makes it smaller still.

    The same text and the same answers give the same result. Each candidate is a valid module, or, where the text itself is
    none, any text; none is asked for twice. Locations are dropped.

    Args:
        text: an interesting module.
        interesting: whether a text shows what is looked for; :mod:`.predicates` has the usual ones. It runs in this process:
            one that may crash or hang runs its work by :func:`.isolated.ended`.
        told: is called whenever a smaller one was found.

    Raises:
        RelaxError: the text is not interesting to begin with.
    """
    if not interesting(text):
        raise RelaxError("expected a module that is interesting, got one that is not")
    search = _Search(interesting, told)
    if not ended(lambda: _parsed(text, new_context()) is not None, _SECONDS).value:
        return search.of_text(text)
    context = new_context()
    with context, ir.Location.unknown():
        printed = _printed(parse_module(text, "-", context))
        return search.of_module(printed, context) if interesting(printed) else search.of_text(text)


def _printed(module: ir.Module) -> str:
    return module.operation.get_asm(use_local_scope=True) + "\n"


def _parsed(text: str, context: ir.Context) -> ir.Module | None:
    """None for a text that is no valid module."""
    try:
        return parse_module(text, "-", context)
    except RelaxError:
        return None


def _measure(module: ir.Module, text: str) -> tuple[int, int, int]:
    """What has to become smaller with each step: ops, text, numbers in it."""
    return sum(1 for _ in nested_operations(module.operation)), len(text), sum(map(int, _NUMBER.findall(text)))


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    """All, halves, quarters, ... and single ones, the last ones first."""
    size = count
    while size:
        yield from ((max(0, end - size), end) for end in range(count, 0, -size))
        size //= 2


@dataclass
class _Search:
    interesting: Callable[[str], bool]
    told: Callable[[Progress], object]
    tried: set[str] = field(default_factory=set[str])

    def of_module(self, text: str, context: ir.Context) -> str:
        before = ""
        while text != before:
            before = text
            for step in STEPS:
                text = self._by_step(text, step, context)
            for pass_ in _PASSES:
                text = self._by_pass(text, pass_, context)
            text = self._by_numbers(text, context)
        return text

    def of_text(self, text: str) -> str:
        before = ""
        while text != before:
            before = text
            for pieces in (text.splitlines(keepends=True), _WORD.findall(text)):
                text = self._by_pieces(pieces)
        return text

    def _by_step(self, text: str, step: Shrinking, context: ir.Context) -> str:
        module = parse_module(text, "-", context)
        measure, chunks = _measure(module, text), _chunks(step.count(module))
        while (chunk := next(chunks, None)) is not None:
            start, end = chunk[0], min(chunk[1], step.count(module))
            if start >= end:
                continue
            smaller = self._applied(module, step, range(start, end))
            if smaller is not None and (less := _measure(smaller, _printed(smaller))) < measure:
                candidate = _printed(smaller)
                if self._holds(candidate, less[0]):
                    text, module, measure = candidate, parse_module(candidate, "-", context), less
        return text

    def _applied(self, module: ir.Module, step: Shrinking, chosen: range) -> ir.Module | None:
        """A copy after a step; None if it is no valid module."""
        copy = ir.Module.parse(_printed(module))
        try:
            step.apply(copy, chosen)
            copy.operation.verify()
            check_module(copy)
        except (RelaxError, ir.MLIRError):
            return None
        return copy

    def _by_pass(self, text: str, pass_: str, context: ir.Context) -> str:
        """In a process of its own: what is looked for may be that it crashes on this very module."""

        def result() -> str:
            return str(manager.run(parse_module(text, "-", context).operation, pass_))

        candidate = ended(result, _SECONDS).value
        return text if candidate is None else self._smaller(text, candidate, context)

    def _by_numbers(self, text: str, context: ir.Context) -> str:
        """A size becomes another one wherever it stands."""
        for number in sorted({int(n) for n in _NUMBER.findall(text)} - {0, 1}, reverse=True):
            for less in dict.fromkeys((1, 2, number // 2)):
                candidate = re.sub(_NUMBER, lambda m, n=number, to=less: str(to) if int(m[0]) == n else m[0], text)
                found = self._smaller(text, candidate, context)
                if found != text:
                    text = found
                    break
        return text

    def _smaller(self, text: str, candidate: str, context: ir.Context) -> str:
        module, old = _parsed(candidate, context), parse_module(text, "-", context)
        if module is None:
            return text
        printed = _printed(module)
        measure = _measure(module, printed)
        return printed if measure < _measure(old, text) and self._holds(printed, measure[0]) else text

    def _by_pieces(self, pieces: list[str]) -> str:
        chunks = _chunks(len(pieces))
        while (chunk := next(chunks, None)) is not None:
            rest = pieces[: chunk[0]] + pieces[chunk[1] :]
            if len(rest) < len(pieces) and self._holds("".join(rest), "".join(rest).count("\n")):
                pieces = rest
        return "".join(pieces)

    def _holds(self, candidate: str, ops: int) -> bool:
        if candidate in self.tried:
            return False
        self.tried.add(candidate)
        if not self.interesting(candidate):
            return False
        self.told(Progress(len(self.tried), ops, len(candidate)))
        return True
