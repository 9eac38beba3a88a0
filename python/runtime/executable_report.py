"""What an executable says of itself: a summary of its manifest, then what the compiler decided."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialect.extern_functions import library_text
from ..dialect.reports.report import Report
from ..lowering.manifest import Manifest
from ..lowering.manifest_specs import total_bytes
from .backend import runtime_of

__all__ = ["ExecutableReport"]


@dataclass(repr=False)
class ExecutableReport(Report):
    """The compiler's sections, after a summary of the manifest."""

    manifest: Manifest | None = None

    def __str__(self) -> str:
        return "\n".join(
            [*(_manifest_lines(self.manifest) if self.manifest else ()), *(s for t in self.sections for s in t.lines())]
        )


def _manifest_lines(manifest: Manifest) -> list[str]:
    raw, prepared = total_bytes(manifest.raw_weights), total_bytes(manifest.prepared_weights)
    computed = sum(s.symbol is not None for s in manifest.steps)
    return [
        *(f"entry {e}" for e in manifest.entries.values()),
        f"raw weights: {len(manifest.raw_weights)}, {raw} bytes",
        f"prepared weights: {len(manifest.prepared_weights)}, {prepared} bytes",
        f"preparation: {len(manifest.steps)} steps, {computed} computed, peak {manifest.peak_bytes} bytes",
        *(f"calls {e.symbol} of {library_text(e.library)}" for e in manifest.externs),
        f"target: {runtime_of(manifest).target_text(manifest)}, "
        + ("threads by OpenMP" if manifest.target.openmp else "sequential: no OpenMP runtime when it was compiled"),
    ]
