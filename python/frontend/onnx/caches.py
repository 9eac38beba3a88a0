"""Caches of keys and values, which a model takes and gives longer by what it computes, as state of a fixed length."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

from ...dialect import ops
from ...dialect.bindings import func, ir
from ...dialect.elements import from_numpy
from ...dialect.errors import RelaxError
from ...dialect.functions import STATE
from ...dialect.size_relations import shape_text
from ...dialect.struct_info import TensorInfo
from ...dialect.symbolic import Dim, Expr
from ..emit import alike, concat, emit, info_of, sequence
from .cache_buffer import Cache
from .values import GraphValue, array_dtype

__all__ = ["Caches", "grown"]

#: ``past_key_values.0.key`` becomes ``present.0.key``, ``past_key_self_0`` becomes ``present_key_self_0``.
_PAST, _PRESENT = (re.compile(rf"{word}(?:_key_values?)?([._].+)") for word in ("past", "present"))


def grown(old: GraphValue, new: ir.Value, axis: int) -> ir.Value:
    """One tensor behind another, where the first may be a cache."""
    cache = old.cache
    if cache is None or cache.axis != axis or not cache.is_here:
        return concat(alike([old.value, new], axis), axis)
    return cache.append(new)


class Caches:
    """Those of a model that are state; none where no length is given.

    Attributes:
        pairs: what the model calls a cache that it gives, by what it calls the one that it takes.
        names: the same the other way round.
    """

    def __init__(self, graph: onnx.GraphProto, length: int | None):
        """Raises RelaxError where a model has no caches."""
        self._length = length
        self.pairs, self._growing = ({}, {}) if length is None else _pairs(graph)
        self.names = {present: past for past, present in self.pairs.items()}
        self._found: dict[str, Cache] = {}
        self._checked: set[Expr] = set()
        if length is not None and not self.pairs:
            raise RelaxError("expected caches, as inputs 'past_key_values.0.key' and results 'present.0.key', got none")

    def operand(
        self,
        name: str,
        shapes: Mapping[str, tuple[Dim, ...]],
        dtype: ir.Type,
        argument: Callable[[str, TensorInfo], ir.Value],
    ) -> GraphValue:
        """What the model takes as a cache. Raises RelaxError where more sizes of it than that of the tokens are not known."""
        shape = shapes[name]
        axis = _axis(name, shape, self._growing[name])
        used = shape[axis]
        known = (s.names for n, sizes in shapes.items() if n not in self.pairs for s in sizes if isinstance(s, Expr))
        room = argument(name, TensorInfo((*shape[:axis], self._length, *shape[axis + 1 :]), dtype))
        assert isinstance(used, Expr)
        cache = self._found[name] = Cache(name, room, axis, used, frozenset[str]().union(*known), self._checked)
        return GraphValue(name, dtype, shape, None, cache.before, frozenset([name]), cache=cache)

    def result(self, name: str, value: ir.Value) -> ir.Value:
        """What the function returns as a result: of a cache the whole buffer."""
        if name not in self.names:
            return value
        cache = self._found[self.names[name]]
        if value in cache.written:
            return cache.room
        count = info_of(value).shape[cache.axis]
        if count is None:
            raise RelaxError(f"expected a cache '{name}' whose number of tokens is known or symbolic")
        return emit(ops.IndexCopy, cache.first, sequence(0, count), value, axis=cache.axis)

    def declare(self, function: func.FuncOp) -> None:
        """Says that the buffers are state, which is 0 at first."""
        if self._found:
            function.attributes[STATE] = ir.DictAttr.get({name: _zeros(c.first) for name, c in self._found.items()})


def _zeros(buffer: ir.Value) -> ir.DenseElementsAttr:
    info: Any = info_of(buffer)
    zero = from_numpy(array_dtype(info.dtype).type(0).reshape(()), ir.RankedTensorType.get([], info.dtype))
    return ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get(list(info.shape), info.dtype), zero.get_splat_value())


def _axis(name: str, shape: tuple[Dim, ...], growing: Sequence[int]) -> int:
    """That of the tokens: the last one whose size is no number, of those where results have another one."""
    sizes = [i for i, s in enumerate(shape) if not isinstance(s, int)]
    if not sizes:
        raise RelaxError(f"expected a cache of any number of tokens, got '{name}' of shape {shape_text(shape)}")
    axis = max(set(sizes) & set(growing), default=sizes[-1])
    other = next((shape[i] for i in sizes if i != axis), None)
    if other is not None:
        raise RelaxError(f"expected a cache '{name}' of known sizes, got '{other}'; dims={{'{other}': 1}} gives it one")
    return axis


def _pairs(graph: onnx.GraphProto) -> tuple[dict[str, str], dict[str, list[int]]]:
    """Inputs and results whose names correspond, of one type, where sizes of the results are others; the axes of these."""
    presents = {m[1]: o for o in graph.output if (m := _PRESENT.fullmatch(o.name))}
    found: dict[str, str] = {}
    axes: dict[str, list[int]] = {}
    for given in graph.input:
        match = _PAST.fullmatch(given.name)
        result = presents.get(match[1]) if match else None
        if result is not None and _grows(given.type.tensor_type, result.type.tensor_type):
            found[given.name] = result.name
            axes[given.name] = _growing(given.type.tensor_type, result.type.tensor_type)
    return found, axes


def _grows(before: onnx.TypeProto.Tensor, after: onnx.TypeProto.Tensor) -> bool:
    """Caches of keys of another sequence, as of an encoder, go through as they are."""
    if after.elem_type not in (0, before.elem_type):
        return False
    return not after.HasField("shape") or (len(before.shape.dim) == len(after.shape.dim) and bool(_growing(before, after)))


def _growing(before: onnx.TypeProto.Tensor, after: onnx.TypeProto.Tensor) -> list[int]:
    """The axes whose sizes are not said to be the same."""
    sizes = [[(d.dim_param, d.dim_value) for d in t.shape.dim] for t in (before, after)]
    return [i for i, (a, b) in enumerate(zip(*sizes, strict=False)) if a != b or not any(a)]
