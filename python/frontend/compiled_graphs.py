"""Where the graphs run that ``torch.compile`` traced: a list that grows as they are compiled. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TorchGraph", "note", "torch_graphs"]


@dataclass(frozen=True)
class TorchGraph:
    """What became of one graph that ``torch.compile`` traced.

    Attributes:
        name: torch's number of the function and of its compilation, ``"0/1"``.
        place: the first line of the model in it, ``file:line``; empty where torch does not tell.
        runs_in: ``"relaxir"``, or ``"eager"``: PyTorch itself.
        reason: why it runs in eager PyTorch; else empty.
        operators: how many ATen operators it has; 0 where that is not known.
        symbols: its symbolic sizes.
    """

    name: str
    place: str
    runs_in: str
    reason: str = ""
    operators: int = 0
    symbols: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"graph {self.name}{f' ({self.place})' if self.place else ''}"
        if self.runs_in == "eager":
            return f"{where} runs in eager PyTorch: {self.reason}"
        sizes = f", sizes {', '.join(self.symbols)}" if self.symbols else ""
        return f"{where} runs in relaxir: {self.operators} operators{sizes}"


_graphs: list[TorchGraph] = []


def note(graph: TorchGraph) -> None:
    """Adds a graph to the list."""
    _graphs.append(graph)


def torch_graphs() -> list[TorchGraph]:
    """The graphs that ``torch.compile(..., backend="relaxir")`` made in this process, in their order, and where each runs."""
    return list(_graphs)
