"""A lowered module in, its manifest out: what steps have written down on the way, put together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..dialect.bindings import ir
from ..dialect.sharding import ranks_of
from .arena import Arena, arena_of
from .entries import Entry, lowered_entries, preparation_of
from .manifest import EntrySpec, Manifest, TargetSpec
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
    steps = [s if s.symbol is None else replace(s, arena_bytes=_bytes(arenas[s.symbol])) for s in preparation.steps]
    raw, prepared = preparation.raw_weights, preparation.prepared_weights
    return Manifest.json_of(
        preparation.fingerprint, target, entries, raw, prepared, steps, _texts(module, ACCESSES), ranks_of(module)
    )


def _complete(function: ir.OpView, entry: Entry, checks: tuple[str, ...]) -> EntrySpec:
    return with_arena(replace(entry.spec, checks=checks), arena_of(function))


def _bytes(arena: Arena) -> int:
    """Those of a step, whose weights have known sizes."""
    assert isinstance(arena.size, int)
    return arena.size


def _texts(module: ir.Operation, name: str) -> tuple[str, ...] | None:
    return tuple(from_attribute(module.attributes[name])) if name in module.attributes else None
