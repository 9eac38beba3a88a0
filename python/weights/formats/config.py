"""What ``quantization_config`` says, read with checks, and the tensors of a layer found by the ends of their names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ...dialect.errors import RelaxError
from ..arrays import ArraySpec
from ..model_folder import quantization_of
from ..source import TensorSource

__all__ = ["StoredLayer", "check_companions", "layers", "quantization", "whole_number"]


def quantization(source: TensorSource) -> Mapping[str, Any]:
    """The ``quantization_config`` of a model, under any of the names it has had; empty where there is none.

    Raises:
        RelaxError: it is no JSON object.
    """
    return quantization_of(source.config, source.path) or {}


def whole_number(source: TensorSource, config: Mapping[str, Any], keys: tuple[str, ...], default: int | None) -> int:
    """An integer under the first of these keys that is there. Raises RelaxError when it is none, or is missing."""
    value: object = next((config[k] for k in keys if config.get(k) is not None), default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise RelaxError(f"'{source.path}': quantization_config.{keys[0]}: expected an integer, got {value!r}")
    return value


class StoredLayer:
    """The tensors of one layer: names that begin alike."""

    def __init__(self, source: TensorSource, prefix: str):
        self.source, self.prefix = source, prefix

    def has(self, end: str) -> bool:
        return self.prefix + end in self.source

    def name(self, end: str) -> str:
        return self.prefix + end

    def names(self, *ends: str) -> tuple[str, ...]:
        """The names of those of these tensors that there are."""
        return tuple(self.name(end) for end in ends if self.has(end))

    def spec(self, end: str, dtypes: tuple[str, ...], rank: int | None = None) -> ArraySpec:
        """What a tensor looks like. Raises RelaxError when it is missing, of another dtype (NumPy's names) or rank."""
        name = self.name(end)
        if name not in self.source:
            raise RelaxError(f"'{self.source.path}': tensor {name!r}: expected it beside the others of its layer, got none")
        spec = self.source.spec(name)
        if spec.dtype.name not in dtypes or (rank is not None and len(spec.shape) != rank) or 0 in spec.shape:
            wanted = " or ".join(dtypes) + (f" of rank {rank}" if rank is not None else "")
            raise self.error(end, f"expected {wanted}, got {spec}")
        return spec

    def expect_shape(self, end: str, spec: ArraySpec, *shapes: tuple[int, ...]) -> None:
        """Raises RelaxError where a tensor has none of these shapes."""
        if spec.shape not in shapes:
            raise self.error(end, f"expected shape {' or '.join(str(list(s)) for s in shapes)}, got {list(spec.shape)}")

    def error(self, end: str, text: str) -> RelaxError:
        return RelaxError(f"'{self.source.path}': tensor {self.name(end)!r}: {text}")


def layers(source: TensorSource, end: str) -> Iterator[StoredLayer]:
    """A layer for each tensor whose name ends so."""
    for name in source:
        if name.endswith(end):
            yield StoredLayer(source, name.removesuffix(end))


def check_companions(source: TensorSource, mark: str, known: Collection[str], weights: Collection[str]) -> None:
    """Refuses tensors beside quantized weights that may change their numbers and that nothing here reads.

    Args:
        source: the tensors as the file has them.
        mark: what is between the name of a layer and that of a companion, ``.weight_`` of ``fc.weight_scale``; of several
            in a name, the last one that a layer is before.
        known: the companions that are read, and those that change no weight.
        weights: the layers that are quantized.

    Raises:
        RelaxError: a quantized layer has another one.
    """
    for name in source:
        at = name.rfind(mark)
        while at >= 0 and name[:at] not in weights:
            at = name.rfind(mark, 0, at)
        if at >= 0 and name[at + len(mark) :] not in known:
            wanted = f"expected beside a quantized weight one out of {', '.join(f'{mark}{k}' for k in known)}"
            raise RelaxError(f"'{source.path}': tensor {name!r}: {wanted}, got one that may change its numbers")
