"""What all commands tell, and how: as text or JSON, with more or less beside."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import sys
import warnings
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from ..dialect.errors import RelaxWarning
from ..dialect.printable import joined_lines, printable

__all__ = ["add_output_options", "plain_warnings", "set_up_logging", "tell"]


def add_output_options(command: argparse.ArgumentParser) -> None:
    """Adds them to a command."""
    group = command.add_argument_group("what is told")
    group.add_argument("--json", action="store_true", help="tell the result as JSON, on standard output")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress, no summaries: errors, and what was asked for")
    group.add_argument("-v", "--verbose", action="store_true", help="what is done, step by step, on standard error")


def set_up_logging(arguments: argparse.Namespace) -> None:
    """Shows what the library logs under ``relaxir``, with ``--verbose``."""
    logger = logging.getLogger("relaxir")
    for handler in [h for h in logger.handlers if isinstance(h, _Handler)]:
        logger.removeHandler(handler)
    if arguments.verbose:
        logger.addHandler(_Handler(sys.stderr))
        logger.setLevel(logging.DEBUG)


@contextlib.contextmanager
def plain_warnings() -> Generator[None]:
    """Shows our warnings as lines of the command, without the place in Python that issues them."""
    others = warnings.formatwarning

    def formatted(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> str:
        if issubclass(category, RelaxWarning):
            return f"warning: {message}\n"
        return others(message, category, *args, **kwargs)

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = others


class _Handler(logging.StreamHandler[Any]):
    """Ours, to be found again."""

    def __init__(self, stream: Any):
        super().__init__(stream)
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record), lines=True)


def tell(arguments: argparse.Namespace, text: str | Iterable[str], data: Any, asked: bool = False) -> None:
    """Prints a result.

    Args:
        arguments: what :func:`add_output_options` added.
        text: one text, or lines, for people.
        data: the same for ``json.dumps``, what it does not know as text.
        asked: whether it is what the command is for, which ``--quiet`` shows, too.
    """
    if arguments.json:
        print(json.dumps(data, indent=1, default=_plain))
    elif asked or not arguments.quiet:
        print(printable(text, lines=True) if isinstance(text, str) else joined_lines(text))


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)  # pyright: ignore[reportUnknownVariableType]
