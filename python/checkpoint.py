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

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .dialect.bindings import func, ir
from .dialect.call_graph import CallGraph
from .dialect.context import operations
from .dialect.dtypes import dtype_name, numpy_dtype
from .dialect.elements import from_numpy
from .dialect.errors import RelaxError
from .dialect.function_types import argument_attributes, erase_arguments, named, set_argument_attributes, tensor_name
from .dialect.functions import body_of, functions, name_of, num_input, update_type
from .dialect.lift_override import ALWAYS, LIFT, NEVER
from .dialect.ops import AsType, Constant, Dequantize, MatMul, PermuteDims, Reshape
from .dialect.reports import report
from .dialect.reports.checkpoint import CheckpointWeights, DecodedStored, NarrowStored
from .dialect.struct_info import TensorInfo, is_tensor
from .module import Module
from .weights.arrays import ArraySpec
from .weights.formats.encoded import EncodedSource, EncodedWeight
from .weights.formats.weight_math import MathValue, operations_of
from .weights.opening import decoded, open_tensors

__all__ = ["reading"]

#: Ops that only move data: a weight that is narrow before them is narrow behind them.
_MOVES = ("permute_dims", "reshape")


def reading(module: Module, checkpoint: str | os.PathLike[str]) -> Module:
    """The module with the file's own tensors as weights, where products can read these; a new one, which the report tells of.

    Args:
        module: relax functions that take the weights of the plain architecture.
        checkpoint: as for :meth:`Executable.prepare`; what is not quantized stays as it is.

    Raises:
        RelaxError: the checkpoint cannot be read, or a weight has another shape there.
    """
    source = decoded(open_tensors(checkpoint))
    if not isinstance(source, EncodedSource):
        return module
    return module.rewritten(lambda op: _rewrite(op, source))


def _rewrite(module: ir.Operation, source: EncodedSource) -> None:
    called = CallGraph(module).calls()
    for function in functions(module):
        if num_input(function) is not None and name_of(function) not in called:
            _FunctionWeights(function, source).rewrite()


class _FunctionWeights:
    """The weights of one function, and what becomes of them."""

    def __init__(self, function: func.FuncOp, source: EncodedSource):
        self._function, self._source = function, source
        block = body_of(function)
        assert block is not None
        self._block = block
        self._attributes = list(argument_attributes(function))
        self._stored: dict[str, ir.Value] = {}
        self._kept: list[NarrowStored] = []
        self._decoded: list[DecodedStored] = []

    def rewrite(self) -> None:
        """Rewrites the function, and tells the report."""
        inputs, gone = num_input(self._function) or 0, list[int]()
        for position, argument in list(enumerate(self._block.arguments))[inputs:]:
            name = tensor_name(self._attributes[position])
            if name is None or name not in self._source.weights or not is_tensor(argument.type):
                continue
            if self._read_stored(name, argument):
                gone.append(position)
        if self._stored:
            update_type(self._function)
            set_argument_attributes(self._function, self._attributes)
            erase_arguments(self._function, gone)
        if self._kept or self._decoded:
            told = tuple(self._kept), tuple(self._decoded)
            report.add(CheckpointWeights(name_of(self._function), self._source.format, *told))

    def _read_stored(self, name: str, argument: ir.Value) -> bool:
        weight, info = self._source.weights[name], TensorInfo.of(argument)
        if tuple(info.shape) != weight.shape:
            got = list(weight.shape)
            raise RelaxError(f"'{self._source.path}': weight '{name}': expected shape {list(info.shape)}, got {got}")
        specs = self._source.stored_specs(name)
        reason = weight.reason if weight.narrow is None else self._replace(argument, weight, specs)
        before = sum(spec.nbytes for spec in specs.values())
        if reason:
            after = ArraySpec(numpy_dtype(info.dtype), weight.shape).nbytes
            self._decoded.append(DecodedStored(name, before, after, reason))
            return False
        self._kept.append(NarrowStored(name, before, str(weight.narrow)))
        return True

    def _replace(self, argument: ir.Value, weight: EncodedWeight, specs: Mapping[str, ArraySpec]) -> str:
        """Makes what reads a weight read the file's tensors; else says why not."""
        wide, dtype = weight.value(specs), numpy_dtype(TensorInfo.of(argument).dtype)
        value = wide if wide.dtype == dtype else _in_dtype(wide, dtype)
        if not _is_for_products(argument) and (value is None or "unpack_nibbles" in operations_of(wide)):
            scales = "" if value is not None else f", and its scales are no {dtype_name(dtype)}"
            return f"not only products of matrices read it{scales}"
        with ir.InsertionPoint.at_block_begin(self._block), self._function.location:
            made = self._emit(wide if value is None else value, weight.stored, specs, {})
        if value is None:
            _multiply_wide(argument, made)
        else:
            argument.replace_all_uses_with(made)
        return ""

    def _emit(
        self, value: MathValue, stored: Mapping[str, str], specs: Mapping[str, ArraySpec], made: dict[int, ir.Value]
    ) -> ir.Value:
        """The ops of weight math, each once."""
        found = made.get(id(value))
        if found is None:
            operands = [self._emit(o, stored, specs, made) for o in value.operands]
            found = made[id(value)] = (
                _op(value, operands) if value.op else self._argument(stored[value.name], specs[value.name])
            )
        return found

    def _argument(self, name: str, spec: ArraySpec) -> ir.Value:
        """One of the file's tensors as an argument of the function."""
        if name not in self._stored:
            location = ir.Location.name(name, self._function.location)
            self._stored[name] = self._block.add_argument(_type(spec), location)
            self._attributes.append(named(name))
        return self._stored[name]


def _type(spec: ArraySpec) -> ir.RankedTensorType:
    return ir.RankedTensorType.get(list(spec.shape), ir.Type.parse(dtype_name(spec.dtype)))


def _op(value: MathValue, operands: Sequence[ir.Value]) -> ir.Value:
    if value.op == "constant":
        return Constant.create(value=from_numpy(np.asarray(value.attrs["value"]), _type(value.spec))).result
    attrs: dict[str, Any] = dict(value.attrs)
    if "dtype" in attrs:
        attrs["dtype"] = ir.Type.parse(attrs["dtype"])
    kind = next(c for c in operations() if f"relax.{value.op}" == c.OPERATION_NAME)
    types = [_type(value.spec)] if kind is Reshape else None
    made = kind.create(*operands, result_types=types, **attrs)
    if kind is Dequantize:  # of a small weight, lifting would think the wide one worth the memory
        made.attributes[LIFT] = ir.StringAttr.get(NEVER)
        for parameter in made.operands[1:]:  # few, so that they may grow to what kernels read when they are prepared
            if not isinstance(parameter.owner, ir.Block):
                parameter.owner.attributes[LIFT] = ir.StringAttr.get(ALWAYS)
    return made.result


def _in_dtype(value: MathValue, dtype: np.dtype[Any]) -> MathValue | None:
    """The weight rounded to a dtype, where scales have it: their product with an integer is rounded once either way."""
    if value.op in _MOVES:
        inner = _in_dtype(value.operands[0], dtype)
        return None if inner is None else MathValue(value.op, (inner,), ArraySpec(dtype, value.shape), value.attrs)
    if value.op != "dequantize":
        return None
    x, scale, zero = value.operands
    narrow = scale.operands[0] if scale.op == "astype" else scale
    return x.dequantize(narrow, zero) if narrow.dtype == dtype else None


def _is_for_products(weight: ir.Value) -> bool:
    """Whether only products read a matrix, transposed as it may be, as their right-hand sides: those take words apart."""
    owners = [(use.owner, use.operand_number) for use in weight.uses]
    return (
        bool(owners)
        and TensorInfo.of(weight).rank == 2
        and all(
            (isinstance(op, MatMul) and number == 1) or (isinstance(op, PermuteDims) and _is_for_products(op.result))
            for op, number in owners
        )
    )


def _multiply_wide(weight: ir.Value, wide: ir.Value) -> None:
    """Makes products read a weight in f32, as it is before it is rounded to the module's dtype; results are rounded to that."""
    for op in [use.owner for use in weight.uses]:
        with ir.InsertionPoint(op), op.location:
            if isinstance(op, PermuteDims):
                _multiply_wide(op.result, PermuteDims.create(wide, axes=op.axes).result)
            else:
                _multiply(op, wide)
        op.operation.erase()


def _multiply(op: MatMul, weight: ir.Value) -> None:
    info, f32 = TensorInfo.of(op.result), ir.F32Type.get()
    left = AsType.create(op.lhs, dtype=f32).result
    product = MatMul.create(left, weight, result_types=[info.with_(dtype=f32).type]).result
    rounded = product if info.dtype == f32 else AsType.create(product, dtype=info.dtype).result
    op.result.replace_all_uses_with(rounded)
