"""A lowered module in, its manifest out: what steps have written down on the way, put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..dialect.bindings import ir
from ..dialect.sharding import ranks_of
from .arena import Arena, arena_of
from .entries import Entry, lowered_entries, preparation_of
from .extern_calls import Externs
from .manifest import Manifest
from .manifest_specs import EntrySpec, TargetSpec
from .manifest_steps import PartsSpec, StepSpec
from .marks import ACCESSES, CHECKS
from .plain_attributes import from_attribute
from .size_checks import with_arena

__all__ = ["make_manifest"]


def make_manifest(module: ir.Operation, target: TargetSpec) -> dict[str, Any]:
    """The JSON object, without a report.

    Args:
        module: one whose functions say what they are and what memory they need.
        target: what code is for.
    """
    preparation, found = preparation_of(module), lowered_entries(module)
    checks = _texts(module, CHECKS) or ()
    arenas = {entry.spec.symbol: arena_of(function) for function, entry in found}
    entries = [_complete(function, entry, checks) for function, entry in found if not entry.is_step]
    steps = [_with_arenas(s, {symbol: _bytes(arenas[symbol]) for symbol in s.symbols}) for s in preparation.steps]
    raw, prepared = preparation.raw_weights, preparation.prepared_weights
    return Manifest.json_of(
        preparation.fingerprint, target, entries, raw, prepared, steps, _texts(module, ACCESSES), ranks_of(module),
        Externs.of(module).functions,
    )  # fmt: skip


def _complete(function: ir.OpView, entry: Entry, checks: tuple[str, ...]) -> EntrySpec:
    return with_arena(replace(entry.spec, checks=checks), arena_of(function))


def _with_arenas(step: StepSpec, needs: Mapping[str, int]) -> StepSpec:
    """A step and what its functions need of memory."""
    if step.symbol is None:
        return step
    parts = None if step.parts is None else _parts_with_arena(step.parts, needs)
    segments = tuple(replace(s, parts=_parts_with_arena(s.parts, needs)) for s in step.segments)
    whole = needs[step.symbol] if parts is None or parts.blocks is None else parts.arena_bytes
    return replace(step, arena_bytes=whole, parts=parts, segments=segments)


def _parts_with_arena(parts: PartsSpec, needs: Mapping[str, int]) -> PartsSpec:
    return replace(parts, arena_bytes=max(needs[symbol] for symbol in parts.symbols))


def _bytes(arena: Arena) -> int:
    """Those of a step, whose weights have known sizes."""
    assert isinstance(arena.size, int)
    return arena.size


def _texts(module: ir.Operation, name: str) -> tuple[str, ...] | None:
    return tuple(from_attribute(module.attributes[name])) if name in module.attributes else None
