"""Bits and sizes of groups of GPTQ's and AWQ's layers: those of all, and what a configuration says otherwise of some.

``dynamic`` of GPTQModel has overrides by pattern, of which the first counts that matches a layer's name from its beginning,
with ``+:`` in front, or ``-:`` where it is not quantized. ``extra_config`` of AutoRound has them by name, or by a pattern that
is found in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from ...dialect.errors import RelaxError
from ..source import TensorSource
from .config import quantization, whole_number

__all__ = ["LayerNumbers", "Numbers"]

#: What a name that is a pattern has, and a layer's has not. Source: ``AutoRoundConfig`` of vLLM.
_SPECIAL = re.compile(r"[*+?^$()\[\]{}|\\]")


class Numbers(NamedTuple):
    """Of a layer.

    Attributes:
        bits: of an integer.
        group: how many inputs share a scale; -1 and 0 are all.
    """

    bits: int
    group: int


class _Override(NamedTuple):
    where: str
    table: Mapping[str, Any]


class LayerNumbers:
    """What a configuration says of each layer.

    Attributes:
        common: of layers of which it says nothing.
    """

    def __init__(self, source: TensorSource, group: int, bits_keys: tuple[str, ...], group_keys: tuple[str, ...]):
        """Reads the configuration.

        Args:
            source: whose it is.
            group: where it says none; so many bits are 4.
            bits_keys, group_keys: what it calls them.

        Raises:
            RelaxError: a number or a pattern is none.
        """
        self._path, config = source.path, quantization(source)
        self._keys = bits_keys, group_keys
        self.common = Numbers(whole_number(source, config, bits_keys, 4), whole_number(source, config, group_keys, group))
        self._named: dict[str, _Override] = {}
        self._patterns: list[tuple[Callable[[str], object], _Override]] = []
        for key, override in self._overrides("dynamic", config.get("dynamic")):
            if not key.startswith("-:"):
                self._patterns.append((self._pattern(override.where, key.removeprefix("+:")).match, override))
        for key, override in self._overrides("extra_config", config.get("extra_config")):
            self._named[key] = override
            if _SPECIAL.search(key):
                self._patterns.append((self._pattern(override.where, key).search, override))

    def of(self, layer: str) -> Numbers:
        """Of a layer of this name. Raises RelaxError where a number is none."""
        override = self._named.get(layer) or next((o for finds, o in self._patterns if finds(layer)), None)
        if override is None:
            return self.common
        return Numbers(*(self._number(override, keys, n) for keys, n in zip(self._keys, self.common, strict=True)))

    def _number(self, override: _Override, keys: tuple[str, ...], default: int) -> int:
        value = next((override.table[k] for k in keys if override.table.get(k) is not None), default)
        if type(value) is not int:
            raise self._error(f"{override.where}.{keys[0]}", f"expected an integer, got {value!r}")
        return value

    def _overrides(self, where: str, table: object) -> Iterator[tuple[str, _Override]]:
        for key, value in cast("Mapping[str, Any]", table).items() if isinstance(table, Mapping) else ():
            if not isinstance(value, Mapping):
                raise self._error(f"{where}[{key!r}]", f"expected a JSON object, got {value!r}")
            yield key, _Override(f"{where}[{key!r}]", cast("Mapping[str, Any]", value))

    def _pattern(self, where: str, text: str) -> re.Pattern[str]:
        try:
            return re.compile(text)
        except (re.error, RecursionError, OverflowError) as error:
            raise self._error(where, f"expected a pattern, got {text!r}: {error}") from None

    def _error(self, where: str, text: str) -> RelaxError:
        return RelaxError(f"'{self._path}': quantization_config.{where}: {text}")
