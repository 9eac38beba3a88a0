"""Initializers of a model: named arguments of the function, but for the small ones, which are numbers in it."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

import numpy as np
import onnx

from ...dialect.bindings import ir
from ...dialect.reports.fixed import fixed_digest
from ...dialect.struct_info import TensorInfo
from ...weights.onnx_codes import is_coded
from ...weights.onnx_tensors import ExternalData, numpy_element, tensor_shape
from .tensors import stored_dtype
from .values import Array, GraphValue, known_value

__all__ = ["Weights"]

#: The most integers that are numbers in the module: axes, shapes, indices. Anything larger is a weight.
_MOST_INTEGERS = 1024
#: The same of a vector of bytes, which is a zero point per channel: what is computed in integers depends on whether it is 0.
_MOST_BYTES = 8192


class Weights:
    """The initializers of a model, which become arguments when something reads them.

    Attributes:
        used: those that became arguments, by name, in that order.
        known: those that are numbers, or were read as such, by name; of the latter some are arguments as well.
    """

    def __init__(self, external: ExternalData, argument: Callable[[str, TensorInfo], ir.Value]):
        self._external = external
        self._argument = argument
        self._values: dict[str, ir.Value] = {}
        self.used: dict[str, onnx.TensorProto] = {}
        self.known: dict[str, onnx.TensorProto] = {}

    def operand(self, tensor: onnx.TensorProto, prefix: str = "") -> GraphValue:
        """What an initializer is in a graph; those of inner graphs get its prefix."""
        name = prefix + tensor.name
        shape = tensor_shape(tensor)
        dtype = numpy_element(tensor.data_type)
        count = int(np.prod(shape, dtype=object)) if shape else 1
        few = _MOST_INTEGERS if dtype.name in ("int64", "int32", "bool") else 1
        few = _MOST_BYTES if dtype.name in ("int8", "uint8") and len(shape) == 1 else few
        element = stored_dtype(tensor.data_type)
        coded = tensor.data_type if is_coded(tensor.data_type) else 0

        def argument() -> ir.Value:
            return self._weight(name, tensor, TensorInfo(shape, element))

        if count <= few:
            self.known[name] = tensor
            return replace(known_value(name, self.read(tensor)), argument=argument, coded=coded)
        operand = GraphValue(name, element, shape, None, argument, coded=coded)
        operand.load = lambda: self._loaded(name, tensor)
        return operand

    def _loaded(self, name: str, tensor: onnx.TensorProto) -> Array:
        self.known[name] = tensor
        return self.read(tensor)

    def fixed(self, read: Set[str]) -> dict[str, str]:
        """Digests of those initializers, of some that were read, that are in the module as numbers alone."""
        names = [n for n in self.known if n in read and n not in self.used]
        return {name: fixed_digest(self.read(self.known[name])) for name in names}

    def read(self, tensor: onnx.TensorProto) -> Array:
        """The elements of an initializer, of its file where they are outside of the model."""
        return self._external.read(tensor)

    def constant(self, name: str, tensor: onnx.TensorProto) -> GraphValue:
        """What a Constant node with that tensor is: numbers, or a weight where it is large."""
        if int(np.prod(tensor.dims, dtype=object)) <= 4096:
            coded = tensor.data_type if is_coded(tensor.data_type) else 0
            return replace(known_value(name, self.read(tensor)), coded=coded)
        named = onnx.TensorProto()
        named.CopyFrom(tensor)
        named.name = name
        return self.operand(named)

    def _weight(self, name: str, tensor: onnx.TensorProto, info: TensorInfo) -> ir.Value:
        if name not in self._values:
            self._values[name] = self._argument(name, info)
            self.used[name] = tensor
        return self._values[name]
