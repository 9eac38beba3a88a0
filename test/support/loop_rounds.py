"""How often loops go round when a function is evaluated: what goes round too often is no module to be called in a test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from relaxir.dialect.bindings import ir
from relaxir.dialect.reference.control_flow import CONTROL_FLOW, Frame

__all__ = ["TooManyRoundsError", "at_most_rounds"]


class TooManyRoundsError(Exception):
    """Loops went round more often than they may."""


@contextlib.contextmanager
def at_most_rounds(limit: int) -> Iterator[None]:
    """In here ``rx.evaluate`` raises TooManyRoundsError as soon as the regions of loops have run more than ``limit`` times."""
    left = [limit]
    loops = {n: _counted(CONTROL_FLOW[n], left) for n in ("scf.for", "scf.while")}
    with mock.patch.dict(CONTROL_FLOW, loops):
        yield


def _counted(loop: Callable[[ir.OpView, list[Any]], Frame], left: list[int]) -> Callable[[ir.OpView, list[Any]], Frame]:
    def counted(op: ir.OpView, operands: list[Any]) -> Frame:
        frame, answer = loop(op, operands), None
        while True:
            try:
                request = frame.send(answer)
            except StopIteration as stop:
                return stop.value
            left[0] -= 1
            if left[0] < 0:
                raise TooManyRoundsError
            answer = yield request

    return counted
