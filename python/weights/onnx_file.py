"""``.onnx`` files: a path in, their initializers and constants by name out, external data read when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from ..dialect.errors import RelaxError
from .arrays import Array, ArraySpec
from .files import KIND_BYTES, name_on_disk, other_kind, read_bytes
from .onnx_tensors import ExternalData, dense_tensor, numpy_element, tensor_shape

__all__ = ["OnnxFile", "parse_content", "parse_model", "stored_tensors"]


def parse_model(path: str) -> onnx.ModelProto:
    """The model of a file, without its external data. Raises RelaxError where it is none."""
    return parse_content(read_bytes(path, what="an ONNX model"), f"'{path}'")


def parse_content(content: bytes, what: str) -> onnx.ModelProto:
    """The model that bytes are; ``what`` is how errors name them. Raises RelaxError where they are none."""
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(content)
    except DecodeError:
        kind = other_kind(content[:KIND_BYTES])
        raise RelaxError(f"expected an ONNX model, {what} is {kind or 'none'}") from None
    return proto


def stored_tensors(graph: onnx.GraphProto, prefix: str = "") -> Iterator[tuple[str, onnx.TensorProto]]:
    """The initializers of a graph and of those inside of it, and the tensors of its Constant nodes, by name.

    The names are those that weights of an imported model have: in inner graphs they begin with the nodes that lead there.
    """
    for tensor in [*graph.initializer, *map(dense_tensor, graph.sparse_initializer)]:
        yield prefix + tensor.name, tensor
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                yield prefix + node.output[0], attribute.t
            if node.op_type == "Constant" and attribute.name == "sparse_value":
                yield prefix + node.output[0], dense_tensor(attribute.sparse_tensor)
            if attribute.HasField("g"):
                name = node.name or next(iter(node.output), "")
                yield from stored_tensors(attribute.g, f"{prefix}{name}/{attribute.name}/")


class OnnxFile:
    """The weights of one model; see :class:`.source.TensorSource`."""

    metadata: Mapping[str, str] = MappingProxyType({})
    config: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, path: str):
        """Reads the model. Raises RelaxError where it is none."""
        self.path = path
        proto = parse_model(path)
        self._tensors = dict(stored_tensors(proto.graph))
        self._external = ExternalData(os.path.dirname(os.path.abspath(path)))
        outside = [t for t in self._tensors.values() if t.data_location == onnx.TensorProto.EXTERNAL]
        self.files = [path, *sorted({self._external.place(t)[0] for t in outside})]
        self._status = self._statuses()

    @property
    def identity(self) -> str:
        """Path, inode, size and times of each file."""
        return " ".join(f"{name_on_disk(f)} {s}" for f, s in zip(self.files, self._status, strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __contains__(self, name: object, /) -> bool:
        return name in self._tensors

    def spec(self, name: str) -> ArraySpec:
        tensor = self._tensor(name)
        return ArraySpec(numpy_element(tensor.data_type), tensor_shape(tensor))

    def get(self, name: str) -> Array:
        try:
            return self._external.read(self._tensor(name))
        except RelaxError as error:
            raise RelaxError(f"'{self.path}': {error.args[0]}") from None

    def prefetch(self, name: str) -> None:
        """Nothing: tensors are read as a whole."""

    def release(self, name: str) -> None:
        """Nothing is kept."""

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        """Raises RelaxError when a file was written to since it was opened."""
        if self._statuses() != self._status:
            raise RelaxError(f"'{self.path}': expected files that stay as they are while they are read, got changes")

    def _tensor(self, name: str) -> onnx.TensorProto:
        if name not in self._tensors:
            raise RelaxError(f"'{self.path}': expected an initializer of this model, got {name!r}")
        return self._tensors[name]

    def _statuses(self) -> list[tuple[int, ...]]:
        try:
            found = [os.stat(f) for f in self.files]
        except OSError as error:
            raise RelaxError(f"cannot read '{error.filename}': {error.strerror}") from None
        return [(s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in found]
