"""Layers as Python objects: their parameters become weights, named by the attributes that hold them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from numpy.typing import DTypeLike

from ..dialect.errors import RelaxError
from ..dialect.symbolic import Expr
from .value import Value

__all__ = ["Layer", "Parameter", "with_weights"]


@dataclass(frozen=True, eq=False)
class Parameter:
    """A weight of a :class:`Layer`, until :meth:`relaxir.Builder.layer` gives it a name and makes it a tensor.

    Attributes:
        shape: its dimensions.
        dtype: its element type.
    """

    shape: Sequence[int | str | Expr | None]
    dtype: DTypeLike = "f32"


class Layer:
    """What holds parameters, and layers, as attributes, also in lists, tuples and dictionaries."""


def with_weights(layer: Layer, prefix: str, weight: Callable[[str, Parameter], Value]) -> Layer:
    """A copy of a layer, and of all layers in it, that has tensors where the layer has parameters.

    What is there twice is one copy, and one weight of the first name.

    Args:
        layer: stays as it is.
        prefix: what names begin with.
        weight: makes a tensor of a name and a parameter.

    Raises:
        RelaxError: it is no layer.
    """
    if not isinstance(cast("object", layer), Layer):
        raise RelaxError(f"expected a layer (a class derived from relaxir.Layer), got {type(layer).__name__}")
    return _copied(layer, prefix, weight, {})


def _copied(given: Any, name: str, weight: Callable[[str, Parameter], Value], made: dict[int, Any]) -> Any:
    key = id(given)
    if key in made:
        return made[key]
    if isinstance(given, Parameter):
        made[key] = weight(name, given)
        return made[key]
    if isinstance(given, Layer):
        made[key] = result = copy.copy(given)
        for part, value in vars(given).items():
            setattr(result, part, _copied(value, _joined(name, part), weight, made))
        return result
    if isinstance(given, dict):
        items = cast("Mapping[object, object]", given).items()
        return {part: _copied(value, _joined(name, part), weight, made) for part, value in items}
    if isinstance(given, list):
        return _parts(cast("Sequence[object]", given), name, weight, made)
    if isinstance(given, tuple):
        return tuple(_parts(cast("Sequence[object]", given), name, weight, made))
    return given


def _parts(given: Sequence[object], name: str, weight: Callable[[str, Parameter], Value], made: dict[int, Any]) -> list[Any]:
    return [_copied(value, _joined(name, i), weight, made) for i, value in enumerate(given)]


def _joined(prefix: str, key: object) -> str:
    return f"{prefix}.{key}" if prefix else str(key)
