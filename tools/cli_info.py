"""``relaxir info``: the manifest of an executable as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from ..dialect.reports.report import bytes_text, plural
from ..lowering.manifest import Manifest
from ..lowering.manifest_specs import EntrySpec, total_bytes
from ..runtime.backend import runtime_of
from .summary import lifted_groups, symbol_text

__all__ = ["info_lines"]

#: Names of weights shown for each group.
_EXAMPLES = 2


def info_lines(manifest: Manifest) -> Iterator[str]:
    """Entries, symbols with ranges, weights before and after, what is lifted and what not, memory that preparation needs."""
    for entry in manifest.entries.values():
        yield from _entry(entry)
    raw, prepared = manifest.raw_weights, manifest.prepared_weights
    yield f"raw weights: {len(raw)}, {bytes_text(total_bytes(raw))}"
    yield f"prepared weights: {len(prepared)}, {bytes_text(total_bytes(prepared))}"
    for group in lifted_groups(manifest):
        examples = ", ".join(group.prepared[:_EXAMPLES]) + (", ..." if len(group.prepared) > _EXAMPLES else "")
        sizes = f"{bytes_text(group.raw_bytes)} -> {bytes_text(group.prepared_bytes)}"
        yield f"  {group.title}: {len(group.raw)} -> {len(group.prepared)}, {sizes} ({examples})"
    yield from manifest.report.summary()
    computed = sum(step.symbol is not None for step in manifest.steps)
    steps = plural(len(manifest.steps), "step")
    yield f"preparation: {steps}, {computed} computed, predicted peak {bytes_text(manifest.peak_bytes)}"
    if manifest.ranks > 1:
        yield f"runs on {manifest.ranks} ranks (mpiexec -n {manifest.ranks}): weights and bytes are those of each"
    if manifest.accesses is not None:
        yield f"checked: {plural(len(manifest.accesses), 'place')} of accesses"
    runtime = runtime_of(manifest)
    yield from runtime.described(manifest)
    yield f"target: {runtime.target_text(manifest)}"
    yield f"fingerprint: {manifest.fingerprint}"


def _entry(entry: EntrySpec) -> Iterator[str]:
    yield f"entry {entry}"
    if entry.symbols:
        yield f"  symbols: {', '.join(symbol_text(s.name, s.min, s.max) for s in entry.symbols)}"
    yield f"  weights: {len(entry.weights)}"
    for check in entry.checks:
        yield f"  checks: {check}"
