"""Options that take ``NAME=VALUE``, any number of times, and are a mapping; another form is a mistake of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from .cli_paths import Read

__all__ = ["NamedSizes", "NamedValues", "add_dims", "add_inputs"]

#: Sizes of more places than an i32 counts are none of an array here.
_MOST = 2**31


class NamedValues(argparse.Action):
    """Texts by name; the option's ``metavar`` says their form."""

    def __init__(self, option_strings: Sequence[str], dest: str, **given: Any):
        super().__init__(option_strings, dest, default={}, **given)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        name, _, value = str(values).partition("=")
        if not name or not value:
            parser.error(f"expected {option_string} {self.metavar}, got '{values}'")
        found: Mapping[str, object] = getattr(namespace, self.dest)
        if name in found:
            parser.error(f"expected {option_string} once for '{name}', got it twice")
        setattr(namespace, self.dest, {**found, name: self.read(parser, name, value)})

    def read(self, parser: argparse.ArgumentParser, name: str, text: str) -> object:
        """What a text stands for."""
        del parser, name
        return text


class NamedSizes(NamedValues):
    """Sizes of dimensions by name."""

    def read(self, parser: argparse.ArgumentParser, name: str, text: str) -> int:
        if not text.isdecimal() or int(text) >= _MOST:
            parser.error(f"expected a size for {self.option_strings[0]} {name}, got '{text}'")
        return int(text)


class NamedFiles(NamedValues):
    """Files that are read, by name."""

    def read(self, parser: argparse.ArgumentParser, name: str, text: str) -> Read:
        del parser, name
        return Read(text)


def add_inputs(command: argparse.ArgumentParser) -> None:
    """``--input``, arrays in files by the names of inputs."""
    command.add_argument("--input", action=NamedFiles, metavar="NAME=FILE.npy", dest="inputs")


def add_dims(command: argparse.ArgumentParser, usage: str) -> None:
    """``--dim``, sizes by the names of symbols."""
    command.add_argument("--dim", action=NamedSizes, metavar="NAME=SIZE", dest="dims", help=usage)
