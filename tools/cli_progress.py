"""How ``relaxir prepare`` tells how far it is: a bar on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..dialect.printable import printable
from ..dialect.reports.report import bytes_text

if TYPE_CHECKING:
    from ..runtime.prepare import PrepareProgress

__all__ = ["progress_hook"]

#: Share of the work between two plain lines.
_LINE_EVERY = 0.25

#: Columns for a tensor's name, which can be long.
_NAME_WIDTH = 40


@contextmanager
def progress_hook(what: str, quiet: bool = False) -> Generator[Callable[[PrepareProgress], None]]:
    """A function to be called after each step of this work; what it shows goes to stderr, stdout stays for results."""
    if quiet:
        yield lambda progress: None
    elif sys.stderr.isatty() and find_spec("rich") is not None:  # which a deployment may do without
        with _bar(what) as hook:
            yield hook
    else:
        yield _lines(what)


@contextmanager
def _bar(what: str) -> Generator[Callable[[PrepareProgress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.table import Column

    name = TextColumn("{task.description}", table_column=Column(no_wrap=True, max_width=_NAME_WIDTH), markup=False)
    columns = (TextColumn(what), BarColumn(), DownloadColumn(True), TransferSpeedColumn(), TimeRemainingColumn(), name)
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=None)
        yield lambda p: progress.update(task, completed=p.bytes_done, total=p.bytes_total, description=printable(p.tensor))


def _lines(what: str) -> Callable[[PrepareProgress], None]:
    shown = 0.0

    def hook(progress: PrepareProgress) -> None:
        nonlocal shown
        share = progress.steps_done / max(progress.steps_total, 1)
        if share < 1 and share - shown < _LINE_EVERY:
            return
        shown = share
        done = f"{bytes_text(progress.bytes_done)} of {bytes_text(progress.bytes_total)}"
        print(f"{what}: {progress.steps_done} of {progress.steps_total} steps, {done}", file=sys.stderr)

    return hook
