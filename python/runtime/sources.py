"""Where weights come from: a checkpoint or a mapping behind one interface, and their comparison with what is expected."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, cast

from ..dialect.errors import RelaxError
from ..weights.arrays import Array, ArraySpec, to_numpy
from ..weights.safetensors import Checkpoint
from .manifest import WeightSpec

__all__ = [
    "FINGERPRINT", "CheckpointSource", "MappingSource", "PreparedWeights", "WeightSource", "open_source", "problems_text",
    "weight_problems",
]  # fmt: skip

#: The metadata key that ties a prepared file to the executable it is made for.
FINGERPRINT = "relaxir.fingerprint"


class PreparedWeights(dict[str, Any]):
    """Prepared weights in memory, by name.

    Attributes:
        fingerprint: of the executable they were prepared for.
    """

    def __init__(self, arrays: Mapping[str, Array], fingerprint: str):
        super().__init__(arrays)
        self.fingerprint = fingerprint


class CheckpointSource:
    """Tensors of a checkpoint.

    Attributes:
        description: how errors name it.
        fingerprint: of the executable they were prepared for; None for raw weights.
        identity: changes when the content does; None when that cannot be told.
        files: paths that must not be written to.
    """

    def __init__(self, checkpoint: Checkpoint):
        self._checkpoint = checkpoint
        self.description = f"'{checkpoint.path}'"
        self.fingerprint = checkpoint.metadata.get(FINGERPRINT)
        self.identity: str | None = checkpoint.identity
        self.files = checkpoint.files

    def __iter__(self) -> Iterator[str]:
        return iter(self._checkpoint)

    def __contains__(self, name: object) -> bool:
        return name in self._checkpoint

    def spec(self, name: str) -> ArraySpec:
        return self._checkpoint.spec(name)

    def get(self, name: str) -> Array:
        return self._checkpoint.get(name)

    def prefetch(self, name: str) -> None:
        self._checkpoint.prefetch(name)

    def release(self, name: str) -> None:
        self._checkpoint.release(name)


class MappingSource:
    """A mapping from names to arrays of any library; the attributes are those of :class:`CheckpointSource`."""

    def __init__(self, mapping: Mapping[str, object]):
        self._mapping = mapping
        self.description = "weights"
        self.fingerprint: str | None = getattr(mapping, "fingerprint", None)
        self.identity: str | None = None
        self.files: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping)

    def __contains__(self, name: object) -> bool:
        return name in self._mapping

    def spec(self, name: str) -> ArraySpec:
        return ArraySpec.of(self.get(name))

    def get(self, name: str) -> Array:
        return to_numpy(self._mapping[name], f"weight '{name}'")

    def prefetch(self, name: str) -> None:
        """Nothing to do: it is in memory."""

    def release(self, name: str) -> None:
        """Nothing to do: the caller owns it."""


WeightSource = CheckpointSource | MappingSource


def open_source(source: object) -> WeightSource:
    """A path, a :class:`Checkpoint` or a mapping as a source. Raises RelaxError for anything else, or as Checkpoint does."""
    if isinstance(source, Checkpoint):
        return CheckpointSource(source)
    if isinstance(source, (str, os.PathLike)):
        return CheckpointSource(Checkpoint(cast("str", source)))
    if isinstance(source, Mapping):
        return MappingSource(cast("Mapping[str, object]", source))
    raise RelaxError(f"expected weights as a path, a Checkpoint or a mapping from names to arrays, got {type(source).__name__}")


def weight_problems(expected: Mapping[str, WeightSpec], source: WeightSource) -> list[str]:
    """One line for every expected weight that is missing or looks different, with expected and got."""
    return [line for name, weight in expected.items() if (line := _problem(name, weight, source))]


def _problem(name: str, weight: WeightSpec, source: WeightSource) -> str | None:
    if name not in source:
        return f"weight '{name}': expected {weight.array}, got none"
    try:
        got = source.spec(name)
    except RelaxError as error:  # a dtype that NumPy lacks: one line among the others
        return str(error)
    return None if got == weight.array else f"weight '{name}': expected {weight.array}, got {got}"


def problems_text(what: str, problems: list[str], total: int) -> str:
    """The message that lists all problems at once."""
    if len(problems) == 1:
        return f"{what}: {problems[0]}"
    return "\n  ".join([f"{what}: expected {total} weights, got {len(problems)} problems", *problems])
