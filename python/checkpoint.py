"""A module and a quantized checkpoint in, the module that reads the file's own tensors out: ``rx.compile(checkpoint=...)``.

Before, with a weight that the file has in four bits::

    func.func @main(%x, %w: tensor<256x64xf32> {relax.name = "fc.weight"})

after::

    func.func @main(%x, %q: tensor<8x256xi32> {relax.name = "fc.qweight"}, ...)
      %0 = "relax.unpack_nibbles"(...)                                // weight math of the format, at the function's start
      %1 = "relax.dequantize"(%0, %scale, %zero) {relax.lift = "never"}
      %w = "relax.permute_dims"(%1)

so that passes treat it as any other weight math: what moves data happens when weights are prepared, and products read integers.
"""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .checkpoint_at_once import is_for_grouped_rows, read_one_by_one, side_by_side
from .checkpoint_experts import take_apart
from .checkpoint_math import MathOps, StoredWeightOps, has_table, innermost, is_four_bits, is_growth
from .checkpoint_readers import WeightReaders, selections
from .dialect.bindings import func, ir
from .dialect.call_graph import CallGraph
from .dialect.dtypes import dtype_name, numpy_dtype
from .dialect.errors import RelaxError
from .dialect.function_types import erase_arguments, set_argument_attributes, tensor_name
from .dialect.functions import body_of, functions, name_of, num_input, update_type
from .dialect.reports import report
from .dialect.reports.checkpoint import CheckpointWeights, DecodedStored, NarrowStored
from .dialect.struct_info import TensorInfo, is_tensor
from .module import Module
from .runtime.joined_experts import JoinedWeight, joined_weight
from .runtime.names import Rename, rename_rules, renamed
from .weights.arrays import ArraySpec
from .weights.casts import is_exact
from .weights.formats.encoded import EncodedSource, EncodedWeight, InOrder
from .weights.formats.weight_math import MathValue
from .weights.opening import decoded, open_tensors

__all__ = ["are_alike", "reading", "reading_source"]

#: Why weights are decoded that the module takes in one tensor, and the file has in several.
_ONE_BY_ONE = (
    "experts that the file has one by one and the module reads by something else than products: a model of transformers is "
    'exported after set_experts_implementation("relaxir")'
)

#: Ops that only move data: a weight that is narrow before them is narrow behind them.
_MOVES = ("permute_dims", "reshape")


def reading(module: Module, checkpoint: str | os.PathLike[str], rename: Rename = None) -> Module:
    """The module with the file's own tensors as weights, where products can read these; a new one, which the report tells of.

    Args:
        module: relax functions that take the weights of the plain architecture.
        checkpoint, rename: as for :meth:`Executable.prepare`; what is not quantized stays as it is.

    Raises:
        RelaxError: the checkpoint cannot be read, or a weight has another shape there; or as :func:`.runtime.names.renamed`.
    """
    source = decoded(open_tensors(checkpoint))
    if not isinstance(source, EncodedSource):
        return module
    return reading_source(module, source, renamed(source.all_names, rename_rules(rename), f"'{source.path}'"))


def reading_source(module: Module, source: EncodedSource, names: Mapping[str, str]) -> Module:
    """As :func:`reading`.

    Args:
        module: relax functions that take the weights of the plain architecture.
        source: the checkpoint.
        names: by those that its tensors get in the module, its own names of weights and of tensors that make these.

    Raises:
        RelaxError: a weight has another shape in the checkpoint.
    """
    # Functions that others call get weights as inputs: what reads these is seen once it is where they are.
    return module.run("relax-inline-private-functions").rewritten(lambda op: _rewrite(op, source, names))


def are_alike(source: EncodedSource, names: Iterable[str] | None = None) -> bool:
    """Whether weights of these names, None being all, are one narrow matrix where they lie side by side.

    None of them is wide, and none has an order of inputs or a table of its own.
    """
    for name in source.weights if names is None else names:
        weight = source.weights.get(name)
        if weight is None or weight.narrow is None or weight.narrow_math is not None:
            return False
        if has_table(weight.value(source.stored_specs(name))):
            return False
    return True


def _rewrite(module: ir.Operation, source: EncodedSource, names: Mapping[str, str]) -> None:
    called = CallGraph(module).calls()
    for function in functions(module):
        if num_input(function) is not None and name_of(function) not in called:
            _FunctionWeights(function, source, names).rewrite()


class _FunctionWeights:
    """The weights of one function, and what becomes of them; ``names`` are those of the file by the module's."""

    def __init__(self, function: func.FuncOp, source: EncodedSource, names: Mapping[str, str]):
        self._function, self._source, self._names = function, source, names
        block = body_of(function)
        assert block is not None
        self._block = block
        self._ops = MathOps(function, block, {there: here for here, there in names.items()})
        self._kept: list[NarrowStored] = []
        self._decoded: list[DecodedStored] = []

    def rewrite(self) -> None:
        """Rewrites the function, and tells the report."""
        inputs, gone = num_input(self._function) or 0, list[int]()
        pending = deque(list(enumerate(self._block.arguments))[inputs:])
        while pending:
            position, argument = pending.popleft()
            name = tensor_name(self._ops.attributes[position])
            if name is None or not is_tensor(argument.type):
                continue
            joined, count = self._joined(name, TensorInfo.of(argument)), len(self._block.arguments)
            if joined is not None or self._has_matrices(name):
                read_one_by_one(argument, alike=self._are_alike(name, joined))
            if joined is not None and self._read_apart(argument, joined):
                added = list(enumerate(self._block.arguments))[count:]
                gone += [position, *(at for at, part in added if not list(part.uses))]
                pending.extendleft((at, part) for at, part in reversed(added) if list(part.uses))
            elif joined is not None:
                self._tell_of_experts(name, TensorInfo.of(argument), joined)
            elif self._names.get(name) in self._source.weights and self._read_stored(name, argument):
                gone.append(position)
        if self._ops.added:
            update_type(self._function)
            set_argument_attributes(self._function, self._ops.attributes)
            erase_arguments(self._function, gone)
        if self._kept or self._decoded:
            told = tuple(self._kept), tuple(self._decoded)
            report.add(CheckpointWeights(name_of(self._function), self._source.format, *told))

    def _has_matrices(self, name: str) -> bool:
        """Whether the file has a weight of several matrices encoded, of which each can be read."""
        weight = self._source.weights.get(self._names.get(name, ""))
        return weight is not None and weight.narrow is not None and len(weight.shape) == 3 and bool(weight.rows)

    def _joined(self, name: str, info: TensorInfo) -> JoinedWeight | None:
        """The tensors of a weight that the file has in several, of which some are encoded."""
        if name in self._names or info.rank != 3 or not isinstance(info.shape[0], int):
            return None
        found = joined_weight(name, info.shape[0], self._names, f"'{self._source.path}'")
        return found if found is not None and not self._source.weights.keys().isdisjoint(found.names) else None

    def _read_apart(self, argument: ir.Value, joined: JoinedWeight) -> bool:
        """Makes a weight's readers read the tensors that it is in; whether that can be."""
        if take_apart(argument, joined, self._ops.weight):
            return True
        if not is_for_grouped_rows(argument) or not are_alike(self._source, joined.names):
            return False
        side_by_side(argument, joined, self._ops.weight)
        return True

    def _are_alike(self, name: str, joined: JoinedWeight | None) -> bool:
        """Whether what a weight is read from, alone or side by side, is one narrow matrix."""
        if joined is not None:
            return are_alike(self._source, joined.names)
        return self._source.weights[self._names[name]].narrow_math is None

    def _tell_of_experts(self, name: str, info: TensorInfo, joined: JoinedWeight) -> None:
        """Says of a weight that preparation joins that it decodes what it is made of."""
        parts = [n for n in joined.names if n in self._source.weights]
        before = sum(spec.nbytes for part in parts for spec in self._source.stored_specs(part).values())
        after = ArraySpec(numpy_dtype(info.dtype), tuple(d for d in info.shape if isinstance(d, int))).nbytes
        self._decoded.append(DecodedStored(name, before, after, _ONE_BY_ONE))

    def _read_stored(self, name: str, argument: ir.Value) -> bool:
        there = self._names[name]
        weight, info = self._source.weights[there], TensorInfo.of(argument)
        if tuple(info.shape) != weight.shape:
            got = list(weight.shape)
            raise RelaxError(f"'{self._source.path}': weight '{name}': expected shape {list(info.shape)}, got {got}")
        specs = self._source.stored_specs(there)
        reason = weight.reason if weight.narrow is None else self._replace(argument, weight, specs)
        before = sum(spec.nbytes for spec in specs.values())
        if reason:
            after = ArraySpec(numpy_dtype(info.dtype), weight.shape).nbytes
            self._decoded.append(DecodedStored(name, before, after, reason))
            return False
        self._kept.append(NarrowStored(name, before, str(weight.narrow), weight.digest(specs)))
        return True

    def _replace(self, argument: ir.Value, weight: EncodedWeight, specs: Mapping[str, ArraySpec]) -> str:
        """Makes what reads a weight read the file's tensors; else says why not."""
        ops = StoredWeightOps(self._ops, weight.stored, specs)
        if weight.narrow_math is None and is_for_grouped_rows(argument):
            return self._read_grouped(argument, weight, ops)
        chosen = selections(argument) if len(weight.shape) > 2 and weight.rows else None
        if chosen is None:
            narrow = None if weight.narrow_math is None else weight.narrow_math(ops.arguments)
            wide = weight.math(ops.arguments) if narrow is None else narrow.value
            found = [_Replacement(WeightReaders.of(argument), wide, narrow)]
        else:
            found = [_Replacement(WeightReaders.of(s.matrix), _one_of(weight, ops, s.index), None) for s in chosen]
        reason = next((text for replacement in found if (text := replacement.refusal())), "")
        if not reason:
            with ir.InsertionPoint.at_block_begin(self._block), self._function.location:
                prepared = [(r, r.made(ops), r.order(ops)) for r in found]
            for replacement, made, order in prepared:
                replacement.read(ops, made, order)
            for selection in chosen or ():
                selection.erase()
        return reason

    def _read_grouped(self, argument: ir.Value, weight: EncodedWeight, ops: StoredWeightOps) -> str:
        """Makes products of grouped rows read the file's tensors, which passes lay out and pack as of one matrix."""
        wide, dtype = weight.math(ops.arguments), numpy_dtype(TensorInfo.of(argument).dtype)
        value = _in_dtype(wide, dtype, always=True)
        if value is None:
            return f"not only products read it, and the file rounds it to {dtype_name(wide.dtype)}"
        with ir.InsertionPoint.at_block_begin(self._block), self._function.location:
            made = ops.value(innermost(value))
        argument.replace_all_uses_with(made)
        return ""


@dataclass(frozen=True)
class _Replacement:
    """One matrix that is read: by whom, what the file's tensors make of it, and the order of its inputs there, if any."""

    readers: WeightReaders
    wide: MathValue
    narrow: InOrder | None

    def refusal(self) -> str:
        """Why it is decoded; empty where it need not be."""
        reason = self.readers.refusal(self.wide, has_order=self.narrow is not None)
        if not reason and self._rounded is None and (self.readers.others or self.readers.rows):
            return f"not only products read it, and the file rounds it to {dtype_name(self.wide.dtype)}"
        return reason

    def made(self, ops: StoredWeightOps) -> ir.Value:
        value = self._rounded if self.readers.others else _in_dtype(self.wide, self._dtype)
        return _made(ops, innermost(value or self.wide), self.readers)

    def order(self, ops: StoredWeightOps) -> ir.Value | None:
        return None if self.narrow is None else ops.value(self.narrow.order)

    def read(self, ops: StoredWeightOps, made: ir.Value, order: ir.Value | None) -> None:
        """Makes all readers read it."""
        if self._rounded is not None:
            self.readers.read_rows(innermost(self._rounded), ops)
        self.readers.read(made, order)

    @property
    def _dtype(self) -> np.dtype[Any]:
        return numpy_dtype(TensorInfo.of(self.readers.weight).dtype)

    @functools.cached_property
    def _rounded(self) -> MathValue | None:
        return _in_dtype(self.wide, self._dtype, always=True)


def _one_of(weight: EncodedWeight, ops: StoredWeightOps, index: int) -> MathValue:
    """One matrix of several, of parts of the file's tensors."""
    parts = {role: (place.axis, *place.within(index, index + 1)) for role, place in weight.rows.items()}
    arguments = {role: x.part(*parts[role]) if role in parts else x for role, x in ops.arguments.items()}
    return _without_first(weight.math(arguments), weight.shape[1:])


def _without_first(value: MathValue, shape: tuple[int, ...]) -> MathValue:
    """A value ``[1, ...]`` without that dimension, which its parts have not, either: products see integers that grow."""
    if value.op == "reshape" and value.operands[0].shape == shape:
        return value.operands[0]
    if value.op == "permute_dims" and value.attrs["axes"][0] == 0:
        axes = [axis - 1 for axis in value.attrs["axes"][1:]]
        return _without_first(value.operands[0], tuple(value.operands[0].shape[1:])).permute(*axes)
    if is_growth(value):
        rank = len(value.shape)
        inner = [_without_first(o, o.shape[1:]) if len(o.shape) == rank else o for o in value.operands]
        return MathValue(value.op, tuple(inner), ArraySpec(value.dtype, shape), value.attrs)
    return value.reshape(*shape)


def _made(ops: StoredWeightOps, value: MathValue, readers: WeightReaders) -> ir.Value:
    """The weight, from integers that are packed here where no pass packs them: of several matrices."""
    return ops.with_words(value, 1) if len(value.shape) > 2 and is_four_bits(value) else ops.value(value)


def _in_dtype(value: MathValue, dtype: np.dtype[Any], always: bool = False) -> MathValue | None:
    """The weight in a dtype, as preparation decodes it; None where it would be rounded and its scales are other floats."""
    if is_exact(value.dtype, dtype):
        return value.astype(dtype_name(dtype))
    if value.op in _MOVES:
        inner = _in_dtype(value.operands[0], dtype, always)
        return None if inner is None else MathValue(value.op, (inner,), ArraySpec(dtype, value.shape), value.attrs)
    if value.op != "dequantize" or value.dtype != numpy_dtype("f32"):
        return None
    x, scale, zero = value.operands
    narrow = scale.operands[0] if scale.op == "astype" else scale
    return x.dequantize(scale, zero, dtype_name(dtype)) if always or narrow.dtype == dtype else None
