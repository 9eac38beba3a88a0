"""Reads a model, and brings it into the form that the conversion takes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import onnx
import onnx.shape_inference
import onnx.version_converter
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from ...dialect.errors import RelaxError
from ...weights.files import path_text
from ...weights.onnx_file import parse_content, parse_model

__all__ = ["OnnxModel", "read_model"]

#: Older operator sets are converted to this one: up to 6 operators broadcast by attributes.
_OLDEST, _CONVERTED = 7, 13

#: What the conversion raises for models that are none: kinds of its own, and what C++ exceptions become.
_CONVERTER_ERRORS = (
    onnx.version_converter.ConvertError,
    onnx.shape_inference.InferenceError,
    RuntimeError,
    ValueError,
    IndexError,
)


@dataclass(frozen=True)
class OnnxModel:
    """A model whose external data is not read.

    Attributes:
        proto: of operator set 7 or later.
        path: how errors name it.
        opset: that of the file, which may have been an older one.
        folder: where external data lies; None for a model in memory.
    """

    proto: onnx.ModelProto
    path: str
    opset: int
    folder: str | None


def read_model(model: Any) -> OnnxModel:
    """A path, a proto or the bytes of one as a model. Raises RelaxError where it is none."""
    if isinstance(model, onnx.ModelProto):
        proto, path, folder = model, "<onnx>", None
    elif isinstance(model, bytes | bytearray):
        proto, path, folder = parse_content(bytes(model), f"content of {len(model)} bytes"), "<onnx>", None
    else:
        path = path_text(model)
        folder = os.path.dirname(os.path.abspath(path))
        proto = parse_model(path)
    if not proto.HasField("graph") or not proto.opset_import:
        raise RelaxError(f"expected an ONNX model, '{path}' has {'no operator set' if proto.HasField('graph') else 'no graph'}")
    _require_texts(proto, path)
    version = next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), _OLDEST)
    return OnnxModel(_newer(proto, path, version), path, version, folder)


def _require_texts(message: Message, path: str) -> None:
    """Raises RelaxError for names that are no UTF-8: protobuf gives their bytes."""
    for field, value in message.ListFields():
        if field.type not in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE):
            continue
        for item in [value] if isinstance(value, Message | str | bytes) else value:
            if isinstance(item, Message):
                _require_texts(item, path)
            elif not isinstance(item, str):
                raise RelaxError(f"expected names in UTF-8, '{path}' has {item!r} as {field.name}")


def _newer(proto: onnx.ModelProto, path: str, version: int) -> onnx.ModelProto:
    if version >= _OLDEST:
        return proto
    try:
        return onnx.version_converter.convert_version(proto, _CONVERTED)
    except _CONVERTER_ERRORS as error:
        reason = str(error).splitlines()[0]
        raise RelaxError(f"expected a model that can be converted from operator set {version}, '{path}': {reason}") from None
