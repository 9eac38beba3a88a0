"""Over how many processes a module is spread; the argument ``mesh`` of :func:`relaxir.compile`."""

from __future__ import annotations

from dataclasses import dataclass

from .dialect.errors import RelaxError
from .dialect.passes.pipeline_text import list_text

__all__ = ["Mesh"]


@dataclass(frozen=True)
class Mesh:
    """Processes that run one model together.

    Attributes:
        tp: how many share each layer (tensor parallel): heads, columns, rows, vocabulary.
        keep: weights by name or pattern (``"*.k_proj.*"``) of which each process has the whole.

    Raises:
        RelaxError: fewer than 1 process, or patterns that are no texts.
    """

    tp: int = 1
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if type(self.tp) is not int or self.tp < 1:
            raise RelaxError(f"expected 1 process or more for tp, got {self.tp!r}")
        if not isinstance(self.keep, tuple | list) or not all(isinstance(k, str) for k in self.keep):
            raise RelaxError(f"expected patterns of names as texts for keep, got {self.keep!r}")

    @property
    def passes(self) -> str:
        """What makes a module one of these processes, in front of the other passes; empty for one."""
        if self.tp == 1:
            return ""
        keep = f" keep={list_text(self.keep)}" if self.keep else ""
        first = "relax-expand-tuple-arguments{public=true},relax-inline-private-functions,relax-canonicalize"
        return f"{first},relax-shard{{ranks={self.tp}{keep}}},"
