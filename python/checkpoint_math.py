"""Weight math as operations of a function: the file's tensors become its arguments, what kernels do is told from the rest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .dialect.bindings import func, ir
from .dialect.context import operations
from .dialect.dtypes import dtype_name, numpy_dtype
from .dialect.elements import from_numpy
from .dialect.function_types import argument_attributes, named
from .dialect.lift_override import ALWAYS, LIFT, NEVER
from .dialect.ops import Constant, Dequantize, LookUp, PackNibbles, Reshape, Take, UnpackNibbles
from .dialect.packed_layout import NIBBLES
from .dialect.struct_info import TensorInfo
from .weights.arrays import ArraySpec
from .weights.formats.weight_math import DTYPES, MathValue, argument, is_integer

__all__ = ["MathOps", "StoredWeightOps", "has_table", "innermost", "is_four_bits", "is_growth"]

_FOUR_BITS = tuple(numpy_dtype(name) for name in ("i4", "ui4"))


class MathOps:
    """What emits at the insertion point of a function; ``names`` are the module's for the file's tensors.

    Attributes:
        attributes: of all arguments, those of the file's tensors that were added behind the others.
        added: how many of these there are.
    """

    def __init__(self, function: func.FuncOp, block: ir.Block, names: Mapping[str, str]):
        self._function, self._block, self._names = function, block, names
        self.attributes = list(argument_attributes(function))
        self.added = 0
        self._stored: dict[str, ir.Value] = {}

    def stored(self, name: str, spec: ArraySpec) -> ir.Value:
        """One of the file's tensors as an argument of the function, the same one each time."""
        if name not in self._stored:
            self._stored[name] = self.weight(name, _type(spec))
        return self._stored[name]

    def weight(self, name: str, kind: ir.Type) -> ir.Value:
        """A weight by the file's name for it as a new argument of the function."""
        self.added += 1
        self.attributes.append(named(self._names[name]))
        return self._block.add_argument(kind, ir.Location.name(self._names[name], self._function.location))


class StoredWeightOps:
    """The operations of one weight, each once.

    Attributes:
        arguments: the file's tensors as weight math has them, by what the format calls them.
    """

    def __init__(self, ops: MathOps, stored: Mapping[str, str], specs: Mapping[str, ArraySpec]):
        self._ops, self._names, self._specs = ops, stored, specs
        self._made: dict[int, tuple[MathValue, ir.Value]] = {}  # values stay alive: a later one would have the same id
        self.arguments = {role: argument(role, spec) for role, spec in specs.items()}

    def value(self, value: MathValue) -> ir.Value:
        """The result of an op."""
        found = self._made.get(id(value))
        if found is None:
            operands = [self.value(o) for o in value.operands]
            name = value.name
            made = _op(value, operands) if value.op else self._ops.stored(self._names[name], self._specs[name])
            found = self._made[id(value)] = (value, made)
        return found[1]

    def in_words(self, value: MathValue, axis: int) -> ir.Value:
        """Four-bit integers that are packed along an axis when weights are prepared, and taken out of words by kernels."""
        size, dtype = value.shape[axis], ir.Type.parse(dtype_name(value.dtype))
        return _out_of_words(self._words(value, axis), axis, size, dtype)

    def _words(self, value: MathValue, axis: int) -> ir.Value:
        word = ir.IntegerType.get_unsigned(NIBBLES.width)
        made = PackNibbles.create(self.value(value), axis=axis, dtype=word)
        made.attributes[LIFT] = ir.StringAttr.get(ALWAYS)
        return made.result

    def with_words(self, value: MathValue, axis: int) -> ir.Value:
        """A weight whose four-bit integers are packed so."""
        if value.dtype in _FOUR_BITS:
            return self.in_words(value, axis)
        if value.op not in ("dequantize", "look_up"):
            return self.value(value)
        x, *parameters = value.operands
        return _op(value, [self.with_words(x, axis), *map(self.value, parameters)])

    def rows(self, value: MathValue, indices: ir.Value) -> ir.Value:
        """Rows of a matrix: what is looked up is narrow, and grows behind that."""
        if not value.shape:
            return self.value(value)
        rank = TensorInfo.of(indices).rank
        if value.shape[0] == 1:
            made = self.value(value)
            shape = [1] * rank + list(value.shape[1:])
            return Reshape.create(made, result_types=[TensorInfo.of(made).with_(shape=shape).type]).result
        if value.dtype in _FOUR_BITS:
            dtype = ir.Type.parse(dtype_name(value.dtype))
            return _out_of_words(Take.create(self._words(value, 1), indices, axis=0).result, rank, value.shape[1], dtype)
        if not is_growth(value):
            return Take.create(self.value(value), indices, axis=0).result
        x, *others = value.operands
        parameters = [self.value(p) if value.op == "look_up" else self.rows(p, indices) for p in others]
        return _op(value, [self.rows(x, indices), *parameters])


def _out_of_words(words: ir.Value, axis: int, size: int, dtype: ir.Type) -> ir.Value:
    made = UnpackNibbles.create(words, axis=axis, dtype=dtype, size=size)
    made.attributes[LIFT] = ir.StringAttr.get(NEVER)
    return made.result


def is_growth(value: MathValue) -> bool:
    """Whether kernels do it: what makes integers or narrow floats wider, tables of few entries among that."""
    if value.op == "astype":
        return value.operands[0].dtype.itemsize < value.dtype.itemsize and not is_integer(value.operands[0].dtype)
    return value.op == "dequantize" or (value.op == "look_up" and value.operands[0].dtype == numpy_dtype("ui4"))


def has_table(value: MathValue) -> bool:
    """Whether codes of a weight are looked up in one of the file's own tensors."""
    is_own = value.op == "look_up" and value.operands[1].op != "constant"
    return is_own or any(has_table(operand) for operand in value.operands)


def is_four_bits(value: MathValue) -> bool:
    """Whether a weight grows out of integers of four bits."""
    return value.dtype in _FOUR_BITS or (bool(value.operands) and is_four_bits(value.operands[0]))


def innermost(value: MathValue) -> MathValue:
    """The same weight with a transposition done before it grows."""
    if value.op != "permute_dims" or not is_growth(value.operands[0]):
        return value
    grown, axes = value.operands[0], value.attrs["axes"]
    moved = [innermost(o.permute(*axes)) if len(o.shape) == len(axes) else o for o in grown.operands]
    return MathValue(grown.op, tuple(moved), value.spec, grown.attrs)


def _type(spec: ArraySpec) -> ir.RankedTensorType:
    return ir.RankedTensorType.get(list(spec.shape), ir.Type.parse(dtype_name(spec.dtype)))


def _op(value: MathValue, operands: list[ir.Value]) -> ir.Value:
    if value.op == "constant":
        return Constant.create(value=from_numpy(np.asarray(value.attrs["value"]), _type(value.spec))).result
    attrs = {key: ir.Type.parse(v) if key in DTYPES else v for key, v in value.attrs.items()}
    kind = next(c for c in operations() if f"relax.{value.op}" == c.OPERATION_NAME)
    types = [_type(value.spec)] if kind.infer is None else None
    made = kind.create(*operands, result_types=types, **attrs)
    if is_growth(value):  # of a small weight, lifting would think the wide one worth the memory
        made.attributes[LIFT] = ir.StringAttr.get(NEVER)
    for operand in made.operands if kind in (Dequantize, LookUp) else ():
        # What kernels read is prepared, though it may be larger than in the file: of a look-up of rows five bits are a byte.
        if not isinstance(operand.owner, ir.Block) and LIFT not in operand.owner.attributes:
            operand.owner.attributes[LIFT] = ir.StringAttr.get(ALWAYS)
    return made.result
