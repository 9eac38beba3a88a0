"""``--target`` of the commands that compile; a target that no backend knows is a mistake of the command line."""

from __future__ import annotations

import argparse
from typing import Any

from ..dialect.errors import RelaxError

__all__ = ["add_target"]


def add_target(command: argparse.ArgumentParser, usage: str, **given: Any) -> None:
    """Adds the option; ``given`` is as for ``add_argument``."""
    command.add_argument("--target", type=_known, help=usage, **given)


def _known(text: str) -> str:
    """The target itself. Raises ArgumentTypeError when nothing compiles for it."""
    if text == "cpu":  # what commands take by default, also where only artifacts run and no compiler is installed
        return text
    from ..compiler import check_options

    try:
        check_options(text)
    except RelaxError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
