"""The manifest of an executable, version 1: the one place that knows its schema. Records to JSON, and JSON to checked records,
which :mod:`.manifest_specs` has.

The compiler writes with :meth:`Manifest.json_of`, all that runs reads with :meth:`Manifest.of` (``lowering/README.md``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any, cast

from ..dialect.errors import RelaxError
from ..dialect.reports.report import Report
from .json_reader import Reader
from .manifest_checks import check_manifest
from .manifest_digest import SYMBOL
from .manifest_specs import EntrySpec, ExternSpec, Json, PreparedSpec, RawSpec, StateSpec, TargetSpec, WeightSpec
from .manifest_steps import StepSpec

__all__ = ["FORMAT", "VERSION", "Manifest"]

FORMAT = "relaxir"
VERSION = 1


@dataclass(frozen=True)
class Manifest:
    """A checked manifest.

    Attributes:
        data: the JSON object it was read from.
        fingerprint: of the weight transformation and layout; prepared weights carry it.
        entries, raw_weights, prepared_weights: by name, in order.
        steps: the preparation, in order.
        peak_bytes: most memory a step needs at once: its inputs, outputs and arena.
        accesses: the places of accesses in code that checks all of them, by number; None where it checks none.
        ranks: how many processes run the code together, each with its own prepared weights.
        externs: functions of other libraries that code calls, in the order in which it takes their addresses.
        rank: whose preparation this describes, after :meth:`of_rank`.
        where: how errors name it.
    """

    data: Mapping[str, Any]
    fingerprint: str
    target: TargetSpec
    entries: Mapping[str, EntrySpec]
    raw_weights: Mapping[str, RawSpec]
    prepared_weights: Mapping[str, PreparedSpec]
    steps: tuple[StepSpec, ...]
    peak_bytes: int
    accesses: tuple[str, ...] | None = None
    ranks: int = 1
    externs: tuple[ExternSpec, ...] = ()
    rank: int = 0
    where: str = "manifest"

    @cached_property
    def report(self) -> Report:
        """What the compiler decided; empty in manifests from before there were reports. Read when it is asked for: running
        code needs none of it, and reading takes as long as all of the rest.

        Raises:
            RelaxError: a field of a section is missing or wrong.
        """
        return Report.of_json(self.data["report"], f"{self.where}.report") if "report" in self.data else Report()

    def of_rank(self, rank: int) -> Manifest:
        """What one of several ranks prepares and binds: its part of the weights, under a fingerprint of their own."""
        return self if self.ranks == 1 else replace(self, rank=rank, fingerprint=f"{self.fingerprint}-{rank}of{self.ranks}")

    @property
    def symbols(self) -> tuple[str, ...]:
        """The C symbols of entries and steps, and that of the digest which ties the code to this manifest."""
        steps = (symbol for s in self.steps for symbol in s.symbols)
        return tuple(dict.fromkeys([*(e.symbol for e in self.entries.values()), *steps, SYMBOL]))

    @property
    def state(self) -> dict[str, StateSpec]:
        """What all entries together update, by name."""
        return {s.name: s for e in self.entries.values() for s in e.state}

    @property
    def is_identity(self) -> bool:
        """Whether preparation changes nothing: then raw weights are prepared weights."""
        return all(s.symbol is None and s.gets == s.sets for s in self.steps)

    @staticmethod
    def of(data: object, where: str = "manifest") -> Manifest:
        """Reads a manifest of version 1.

        Raises:
            RelaxError: a field is missing or wrong, with its path, e.g. ``manifest.entries[0].inputs[1].dtype``.
        """
        reader = Reader(data, where)
        if reader.text("format") != FORMAT:
            raise RelaxError(f"{where}.format: expected '{FORMAT}', got '{reader.text('format')}'")
        if reader.size("version") != VERSION:
            told = f"expected {VERSION}, got {reader.size('version')}, written by relaxir {_writer(reader)}: compile again"
            raise RelaxError(f"{where}.version: {told}")
        manifest = Manifest(
            data=cast("Mapping[str, Any]", data),
            fingerprint=reader.text("fingerprint"),
            target=TargetSpec.read(reader.child("target")),
            entries=_by_name(reader.records("entries", EntrySpec.read), f"{where}.entries"),
            raw_weights=_by_name(reader.records("raw_weights", RawSpec.read), f"{where}.raw_weights"),
            prepared_weights=_by_name(reader.records("prepared_weights", PreparedSpec.read), f"{where}.prepared_weights"),
            steps=tuple(reader.records("steps", StepSpec.read)),
            peak_bytes=reader.size("peak_bytes"),
            accesses=reader.texts("accesses") if "accesses" in reader.data else None,
            ranks=reader.size("ranks") if "ranks" in reader.data else 1,
            externs=tuple(reader.records("externs", ExternSpec.read)) if "externs" in reader.data else (),
            where=where,
        )
        if "report" in reader.data:
            Report.sections_of(reader.data["report"], f"{where}.report")
        check_manifest(manifest, where)
        return manifest

    @staticmethod
    def json_of(
        fingerprint: str, target: TargetSpec, entries: Sequence[EntrySpec], raw_weights: Sequence[WeightSpec],
        prepared_weights: Sequence[PreparedSpec], steps: Sequence[StepSpec], accesses: Sequence[str] | None = None,
        ranks: int = 1, externs: Sequence[ExternSpec] = (),
    ) -> Json:  # fmt: skip
        """The JSON object of a manifest with these attributes. Its report comes later: code does not depend on it."""
        raw, prepared = {w.name: w for w in raw_weights}, {w.name: w for w in prepared_weights}
        found: Json = {
            "format": FORMAT,
            "version": VERSION,
            "relaxir": _version(),
            "fingerprint": fingerprint,
            "target": target.as_json(),
            "entries": [e.as_json() for e in entries],
            "raw_weights": [w.as_json() for w in raw_weights],
            "prepared_weights": [w.as_json() for w in prepared_weights],
            "steps": [s.as_json() for s in steps],
            "peak_bytes": max((s.peak_bytes(raw, prepared) for s in steps), default=0),
        }
        found |= {} if accesses is None else {"accesses": list(accesses)}
        found |= {"externs": [e.as_json() for e in externs]} if externs else {}
        return found if ranks == 1 else found | {"ranks": ranks}


@cache
def _version() -> str:
    """Of this package, out of a file of its installation: 0.9 ms, a twentieth of the compilation of one op."""
    return version("relaxir")


def _writer(reader: Reader) -> str:
    return reader.text("relaxir") if "relaxir" in reader.data else "of another version"


def _by_name(records: Sequence[Any], where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for record in records:
        if record.name in found:
            raise RelaxError(f"{where}: expected names that differ, got '{record.name}' twice")
        found[record.name] = record
    return found
