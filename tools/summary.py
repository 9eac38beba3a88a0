"""What preparation does to the weights, grouped for people: a manifest in, a few rows out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..lowering.manifest import Manifest
from ..lowering.manifest_specs import WeightSpec

__all__ = ["LiftedGroup", "lifted_groups", "symbol_text"]


@dataclass
class LiftedGroup:
    """Prepared weights that are made by the same ops, and packed alike.

    Attributes:
        ops: names of the ops, in order, repeats counted: ``concat x2, astype``; ``copy`` when there are none.
        layout: how they are packed, empty where they are not.
        prepared: names of the weights.
        raw: names of the weights they are made from; one may be in several groups.
        raw_bytes, prepared_bytes: their sizes.
    """

    ops: str
    layout: str
    prepared: list[str]
    raw: list[str]
    raw_bytes: int = 0
    prepared_bytes: int = 0

    @property
    def title(self) -> str:
        """The ops, and what they pack for."""
        return f"{self.ops} in {self.layout}" if self.layout else self.ops


def lifted_groups(manifest: Manifest) -> list[LiftedGroup]:
    """The groups, the largest first."""
    groups: dict[tuple[str, str], LiftedGroup] = {}
    for name, weight in manifest.prepared_weights.items():
        made, packed = _counted(weight.ops) or "copy", str(weight.layout or "")
        group = groups.setdefault((made, packed), LiftedGroup(made, packed, [], []))
        group.prepared.append(name)
        group.raw += [source for source in weight.sources if source not in group.raw]
    for group in groups.values():
        group.raw_bytes = _bytes(manifest.raw_weights, group.raw)
        group.prepared_bytes = _bytes(manifest.prepared_weights, group.prepared)
    return sorted(groups.values(), key=lambda g: -g.prepared_bytes)


def symbol_text(name: str, low: int | None, high: int | None) -> str:
    """A symbolic dimension with its range: ``n >= 1``, ``1 <= n <= 512``."""
    if low is None:
        return name if high is None else f"{name} <= {high}"
    return f"{name} >= {low}" if high is None else f"{low} <= {name} <= {high}"


def _counted(ops: Iterable[str]) -> str:
    runs: list[tuple[str, int]] = []
    for op in ops:
        if runs and runs[-1][0] == op:
            runs[-1] = (op, runs[-1][1] + 1)
        else:
            runs.append((op, 1))
    return ", ".join(op if count == 1 else f"{op} x{count}" for op, count in runs)


def _bytes(weights: Mapping[str, WeightSpec], names: Iterable[str]) -> int:
    return sum(weights[n].array.nbytes for n in names)
