"""The schemes of a compressed-tensors configuration: how wide a layer's integers are, and what shares a scale.

A group of ``config_groups`` has ``targets``: names of layers, ``re:`` with a pattern, or classes of modules (``Linear``), in
this order of precedence. Files do not say a layer's class, so groups that name classes, or nothing, may be those of any layer.
Source: ``QuantizationArgs``, ``match_targets`` of the library compressed-tensors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from ...dialect.errors import RelaxError
from ..source import TensorSource
from .config import quantization

__all__ = ["Scheme", "Schemes"]

_WIDEST = 32

#: Where a transform of inputs or outputs is part of the weights already.
_FUSED = ("weight_input", "weight_output")


@dataclass(frozen=True)
class Scheme:
    """What a group says of weights; None where it does not say.

    Attributes:
        bits: of an element.
        group: how many inputs share a scale, -1 being all.
        block: how many outputs and inputs share one.
        is_symmetric: whether there are no zero points.
    """

    bits: int | None = None
    group: int | None = None
    block: tuple[int, int] | None = None
    is_symmetric: bool | None = None


class Schemes:
    """The schemes of a model."""

    def __init__(self, source: TensorSource):
        """Reads the configuration.

        Raises:
            RelaxError: a number is none, a pattern is none, or activations are transformed when the model runs.
        """
        self._path = source.path
        config = quantization(source)
        self._named: dict[str, Scheme] = {}
        self._patterns: dict[str, tuple[re.Pattern[str], Scheme]] = {}
        self._any: dict[Scheme, None] = {}
        groups: Any = config.get("config_groups")
        for name, group in groups.items() if isinstance(groups, Mapping) else ():
            self._add(f"config_groups.{name}", group)
        self._ordered = [self._patterns[target] for target in sorted(self._patterns)]
        self._others = tuple(self._any or dict.fromkeys([*self._named.values(), *(s for _, s in self._ordered)]))
        self._check_transforms(config.get("transform_config"))

    def of(self, layer: str) -> tuple[Scheme, ...]:
        """Those that a layer of this name may have, each once: of its name or a pattern one, else all; empty where there are
        none.
        """
        if layer in self._named:
            return (self._named[layer],)
        found = next((scheme for pattern, scheme in self._ordered if pattern.match(layer)), None)
        return self._others if found is None else (found,)

    def _add(self, where: str, group: object) -> None:
        if not isinstance(group, Mapping):  # a preset's name and its layers: shapes say what it is
            self._any[Scheme()] = None
            return
        table = cast("Mapping[str, Any]", group)
        weights = table.get("weights")
        if not isinstance(weights, Mapping):
            return
        scheme, targets = self._scheme(f"{where}.weights", cast("Mapping[str, Any]", weights)), table.get("targets")
        for target in (targets if isinstance(targets, list) else [targets or ""]) or [""]:
            self._target(f"{where}.targets", str(target), scheme)

    def _target(self, where: str, target: str, scheme: Scheme) -> None:
        if target.startswith("re:"):
            try:
                self._patterns[target] = re.compile(target.removeprefix("re:")), scheme
            except (re.error, RecursionError, OverflowError) as error:
                raise self._error(where, f"expected a pattern, got {target!r}: {error}") from None
        elif target and not target[0].isupper():
            self._named[target] = scheme
        else:
            self._any[scheme] = None

    def _scheme(self, where: str, weights: Mapping[str, Any]) -> Scheme:
        symmetric = weights.get("symmetric")
        return Scheme(
            self._whole(where, weights, "num_bits", 1, _WIDEST),
            self._group(where, weights),
            self._block(where, weights),
            symmetric if isinstance(symmetric, bool) else None,
        )

    def _group(self, where: str, weights: Mapping[str, Any]) -> int | None:
        size = self._whole(where, weights, "group_size", -1, None)
        return -1 if weights.get("strategy") in ("channel", "tensor") else size or None

    def _block(self, where: str, weights: Mapping[str, Any]) -> tuple[int, int] | None:
        sizes: Any = weights.get("block_structure")
        if isinstance(sizes, str) and re.fullmatch(r"\d{1,9}x\d{1,9}", sizes):  # as old files spell it
            sizes = [int(size) for size in sizes.split("x")]
        if sizes is None:
            return None
        if not isinstance(sizes, list) or len(sizes) != 2 or not all(type(s) is int and s > 0 for s in sizes):
            raise self._error(f"{where}.block_structure", f"expected two sizes, got {sizes!r}")
        return sizes[0], sizes[1]

    def _whole(self, where: str, weights: Mapping[str, Any], key: str, least: int, most: int | None) -> int | None:
        value = weights.get(key)
        if value is None:
            return None
        if type(value) is not int or value < least or (most is not None and value > most):
            wanted = f"an integer from {least}" + (f" to {most}" if most is not None else "")
            raise self._error(f"{where}.{key}", f"expected {wanted}, got {value!r}")
        return value

    def _check_transforms(self, config: object) -> None:
        """Raises RelaxError where inputs, outputs or caches are rotated when the model runs: weights alone do not say so."""
        groups: Any = config.get("config_groups") if isinstance(config, Mapping) else None
        for name, group in groups.items() if isinstance(groups, Mapping) else ():
            uses: Any = group.get("apply") if isinstance(group, Mapping) else group
            listed = uses if isinstance(uses, list) else [] if uses is None else [uses]
            places = [use.get("location") if isinstance(use, Mapping) else use for use in listed]
            others = [place for place in places if place not in _FUSED]
            if others:
                wanted = f"transforms that weights have in them ({', '.join(_FUSED)})"
                raise self._error(
                    f"transform_config.config_groups.{name}.apply", f"expected {wanted}, got one of {others[0]!r}"
                )

    def _error(self, where: str, text: str) -> RelaxError:
        return RelaxError(f"'{self._path}': quantization_config.{where}: {text}")
