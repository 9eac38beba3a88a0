"""Paths on the command line: which a command reads and which it writes, so that none is lost to another.

An argument's ``type`` says it: ``add_argument("model", type=Read)``, ``add_argument("-o", type=Written)``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Self

from ..dialect.errors import RelaxError

__all__ = ["NamedRead", "Read", "Replaced", "Streamed", "Written", "refuse_lost"]

_STANDARD = ("-", "")
#: What an artifact consists of, beside a ``manifest.json``.
_OF_ARTIFACT = ("manifest.json", "module.")


class Read(str):
    """A file or folder that is read; ``~`` is the home folder."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        return super().__new__(cls, os.path.expanduser(text))

    @property
    def path(self) -> str:
        """Where it is."""
        return self


class NamedRead(Read):
    """``NAME=PATH``, or a path, which may have a ``=``."""

    __slots__ = ()

    @property
    def name(self) -> str | None:
        """What it is called, None of a path alone."""
        name, separator, _ = self.partition("=")
        return name if separator and os.sep not in name and not os.path.exists(self) else None

    @property
    def path(self) -> str:
        return self if self.name is None else os.path.expanduser(self.partition("=")[2])


class Written(str):
    """A file that is written, or a folder that gets files. Not ``-``: stdout has what a command tells."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if text == "-" and not issubclass(cls, Streamed):
            raise argparse.ArgumentTypeError("expected a file name, got '-'")
        return super().__new__(cls, os.path.expanduser(text))


class Replaced(Written):
    """A folder in the place of which a new one is put."""

    __slots__ = ()


class Streamed(Written):
    """A file that is written, or ``-``, stdout."""

    __slots__ = ()


def refuse_lost(arguments: argparse.Namespace) -> None:
    """Refuses what would be lost: something that is read and written, or two outputs in one place.

    Raises:
        RelaxError: an output is what is read, is a file of an artifact that is read, or holds what is read; or is another one;
            or standard input is read twice.
    """
    every = [v for value in vars(arguments).values() for v in _paths(value)]
    if sum(isinstance(v, Read) and v == "-" for v in every) > 1:
        raise RelaxError("expected '-', standard input, once, got it twice")
    found = [v for v in every if v not in _STANDARD]
    written = [v for v in found if isinstance(v, Written)]
    for output in written:
        for given in (v for v in found if isinstance(v, Read)):
            if _is_lost(given, output):
                raise RelaxError(f"expected another place to write to than what is read, '{given}', got '{output}'")
    for output, other in combinations(written, 2):
        if os.path.realpath(output) == os.path.realpath(other):
            raise RelaxError(f"expected two places to write to, got '{output}' and '{other}'")


def _paths(value: object) -> Iterator[Read | Written]:
    if isinstance(value, Read | Written):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _paths(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _paths(each)


def _is_lost(given: Read, output: Written) -> bool:
    if not os.path.exists(given.path) or not os.path.exists(output):
        return False
    if not os.path.isfile(output) and not os.path.isdir(output):
        return False  # /dev/null
    if os.path.samefile(given.path, output):
        return True
    inner, outer = os.path.realpath(output), os.path.realpath(given.path)
    if os.path.dirname(inner) == outer and os.path.isfile(os.path.join(outer, _OF_ARTIFACT[0])):
        return os.path.basename(inner).startswith(_OF_ARTIFACT)
    return isinstance(output, Replaced) and os.path.isdir(inner) and outer.startswith(inner + os.sep)
