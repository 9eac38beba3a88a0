"""Tells who tunes which plans a compilation has chosen, what for, and which kernels have come of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["BuiltFunction", "PlanChoice", "PlanChoices", "collecting_choices", "note_choice", "note_kernels"]


@dataclass(frozen=True)
class PlanChoice:
    """The plan of one kernel function.

    Attributes:
        key: what decides it (:mod:`.kernels.plan_key`).
        plan: its line.
        alternatives: other lines that fit, the most promising first.
        kernels: the names of the kernels that its launches are of.
    """

    key: str
    plan: str
    alternatives: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuiltFunction:
    """What a kernel function has become.

    Attributes:
        plan: the template's record of it; None where the general path took it.
        kernels: the names of the kernels that its launches are of, in order.
    """

    plan: Any
    kernels: tuple[str, ...]


@dataclass
class PlanChoices:
    """Those of a compilation, by kernel function.

    Attributes:
        found: of products, whose plans have alternatives.
        built: of all.
    """

    found: dict[str, PlanChoice] = field(default_factory=dict[str, PlanChoice])
    built: dict[str, BuiltFunction] = field(default_factory=dict[str, BuiltFunction])


_COLLECTING: ContextVar[PlanChoices | None] = ContextVar("relaxir_plan_choices", default=None)


@contextmanager
def collecting_choices() -> Generator[PlanChoices]:
    """Gives what compilations note while this lasts."""
    choices = PlanChoices()
    token = _COLLECTING.set(choices)
    try:
        yield choices
    finally:
        _COLLECTING.reset(token)


def note_choice(function: str, make: Callable[[], PlanChoice]) -> None:
    """Notes the plan of a kernel function, where someone wants to know; else nothing is made."""
    choices = _COLLECTING.get()
    if choices is not None:
        choices.found[function] = make()


def note_kernels(function: str, plan: Any, kernels: Sequence[str]) -> None:
    """Notes the kernels that a function has become, by the plan of its template or by None; what it had before stays."""
    choices = _COLLECTING.get()
    if choices is None:
        return
    before = choices.built.get(function, BuiltFunction(plan, ()))
    choices.built[function] = replace(before, kernels=(*before.kernels, *kernels))
    if plan is not None and function in choices.found:
        choices.found[function] = replace(choices.found[function], kernels=tuple(kernels))
