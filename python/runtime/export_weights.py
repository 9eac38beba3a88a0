"""What an executable stores of each raw weight, from its manifest and report: what a file for others is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

from ..dialect.errors import RelaxError
from ..dialect.passes.pipeline_text import list_text
from ..dialect.reports.checkpoint import CheckpointWeights
from ..dialect.reports.weights import NarrowWeight, QuantizedWeights
from ..lowering.manifest import Manifest
from ..weights.arrays import Array, ArraySpec
from ..weights.header import Layout
from .narrow_limits import MOVES
from .raw_weights import RawWeights

__all__ = ["ExportFile", "ExportWeight", "Exported", "export_weights"]


@dataclass(frozen=True)
class ExportWeight:
    """A raw weight.

    Attributes:
        name: the model's.
        tensor: what the checkpoint calls it.
        spec: its shape, and the dtype in which it is written where it stays wide.
        narrow: how it is quantized; None where it is not.
        parts: of experts that the checkpoint has one by one what it calls the matrices of each, in the order of their rows.
    """

    name: str
    tensor: str
    spec: ArraySpec
    narrow: NarrowWeight | None
    parts: tuple[tuple[str, ...], ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape

    @property
    def axis_problem(self) -> str:
        """Why integers that are not in groups along rows cannot be written."""
        got = (
            "groups of what is computed from it" if self.narrow is None or self.narrow.axis is None else "groups of its columns"
        )
        keep = f"relax-quantize-weights{{keep={list_text([self.name])}}} leaves it wide"
        return f"expected integers in groups of the rows that the checkpoint has, got {got}: {keep}"

    def wide(self, rows: Array) -> Array:
        """Rows of it in the dtype in which they are written."""
        return rows.astype(self.spec.dtype, copy=False)


@dataclass(frozen=True)
class Exported:
    """A weight in a file.

    Attributes:
        weight: which one.
        specs: the tensors that it becomes.
        made: rows of the weight to the next rows of these.
        unit: how many rows belong together: pieces are of a multiple.
        constants: tensors among them that do not depend on its elements.
        rows: which rows of the weight; None of all.
    """

    weight: ExportWeight
    specs: Mapping[str, ArraySpec]
    made: Callable[[Array], Mapping[str, Array]]
    unit: int = 1
    constants: Mapping[str, Array] = field(default_factory=dict[str, Array])
    rows: tuple[int, int] | None = None

    @property
    def extent(self) -> tuple[int, int]:
        """Begin and end of its rows; of a number, of none."""
        return self.rows or (0, self.weight.shape[0] if self.weight.shape else 0)


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class ExportFile:
    """A file that is to be written.

    Attributes:
        exported: what is in it.
        problems: what cannot be; then nothing is written.
        metadata, layout: as for :class:`..weights.writer.StreamWriter`.
        notes: lines for the report.
        finish: writes what belongs beside it.
    """

    exported: tuple[Exported, ...]
    problems: list[str]
    metadata: Mapping[str, str] | None = None
    layout: Layout | None = None
    notes: tuple[str, ...] = ()
    finish: Callable[[], None] = _nothing


def export_weights(manifest: Manifest, source: RawWeights) -> tuple[list[ExportWeight], tuple[str, ...]]:
    """The raw weights that a checkpoint has, as the executable stores them, and lines for the report.

    Raises:
        RelaxError: the executable is for several ranks, or reads the integers of a quantized checkpoint.
    """
    if manifest.ranks > 1:
        raise RelaxError(f"expected an executable for one rank to write weights for others, got one for {manifest.ranks}")
    sections = [s for s in manifest.report.sections if isinstance(s, CheckpointWeights) and s.kept]
    if sections:
        got = f"one that reads '{sections[0].kept[0].name}' as its checkpoint stores it"
        raise RelaxError(f"expected an executable compiled without checkpoint= to write weights for others, got {got}")
    narrow = _narrow(manifest)
    found, notes = list[ExportWeight](), list[str]()
    taken = set[str]()
    for name, raw in manifest.raw_weights.items():
        tensor = source.tensor(name)
        if raw.value is not None or tensor is None:
            continue
        how = narrow.get(name)
        if how is not None and _is_read_wide(manifest, name):
            notes.append(f"'{name}' stays wide: the model reads it both quantized and as it is")
            how = None
        dtype = np.dtype(ml_dtypes.bfloat16) if _is_rounded(manifest, name) else source.least_dtype(name)
        tensor = name if tensor in taken else tensor  # of tied weights that are stored in two ways
        taken.add(tensor)
        found.append(ExportWeight(name, tensor, ArraySpec(dtype, raw.array.shape), how, source.parts(name)))
    return found, tuple(notes)


def _narrow(manifest: Manifest) -> dict[str, NarrowWeight]:
    """What is quantized, by each raw weight that it is computed from."""
    sections = [s for s in manifest.report.sections if isinstance(s, QuantizedWeights)]
    return {name: w for section in sections for w in section.narrow for name in w.sources}


def _is_read_wide(manifest: Manifest, name: str) -> bool:
    return any(name in w.sources and "quantize" not in w.ops for w in manifest.prepared_weights.values())


def _is_rounded(manifest: Manifest, name: str) -> bool:
    """Whether all that is prepared of an f32 weight is it in bf16."""
    made = [w for w in manifest.prepared_weights.values() if name in w.sources]
    is_bf16 = all(w.array.dtype == ml_dtypes.bfloat16 and w.sources == (name,) and MOVES.issuperset(w.ops) for w in made)
    return bool(made) and is_bf16 and manifest.raw_weights[name].array.dtype == np.float32
