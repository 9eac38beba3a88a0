"""What became of the weights that a quantized checkpoint has, when a module was compiled for it. Imports no MLIR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .report import Section, aligned, bytes_text, plural

__all__ = ["CheckpointWeights", "DecodedStored", "NarrowStored"]


@dataclass(frozen=True)
class NarrowStored:
    """A weight that products read as the file has it.

    Attributes:
        name: the weight's.
        bytes: of the file's tensors.
        form: bits, and what shares a scale.
        digest: of how the file's tensors make the weight; preparation holds what it reads to it.
    """

    name: str
    bytes: int
    form: str
    digest: str = ""


@dataclass(frozen=True)
class DecodedStored:
    """A weight that preparation decodes, exactly.

    Attributes:
        name: the weight's.
        before, after: bytes in the file, and decoded.
        reason: why.
    """

    name: str
    before: int
    after: int
    reason: str


@dataclass(frozen=True)
class CheckpointWeights(Section):
    """The quantized weights of a function.

    Attributes:
        function: its name.
        format: of the checkpoint.
        kept: weights that stay as narrow as the file has them.
        decoded: weights that do not.
    """

    kind: ClassVar[str] = "checkpoint-weights"
    function: str
    format: str
    kept: tuple[NarrowStored, ...]
    decoded: tuple[DecodedStored, ...]

    @property
    def subject(self) -> str:
        return self.function

    def summary(self) -> list[str]:
        size = bytes_text(sum(w.bytes for w in self.kept))
        lines = [
            f"@{self.function}: {plural(len(self.kept), 'weight')} read as the checkpoint ({self.format}) has them, {size}"
        ]
        if self.decoded:
            before, after = (bytes_text(sum(getattr(w, key) for w in self.decoded)) for key in ("before", "after"))
            lines.append(f"@{self.function}: {plural(len(self.decoded), 'weight')} decoded by preparation, {before} -> {after}")
        return lines

    def lines(self) -> list[str]:
        rows = [[w.name, bytes_text(w.bytes), w.form] for w in self.kept]
        rows += [[w.name, f"{bytes_text(w.before)} -> {bytes_text(w.after)}", f"decoded: {w.reason}"] for w in self.decoded]
        return [*self.summary(), *(f"  {line}" for line in aligned(rows, right=[1]))]
