"""Reads a model, and brings it into the form that the conversion takes."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.version_converter
from google.protobuf.message import DecodeError

from ...dialect.errors import RelaxError
from ...weights.files import path_text, read_bytes

__all__ = ["read_model"]

#: Older operator sets are converted to this one: up to 6 operators broadcast by attributes.
_OLDEST, _CONVERTED = 7, 13


def read_model(model: Any) -> tuple[onnx.ModelProto, str]:
    """The model without its external data, and how errors name it. Raises RelaxError where it is none."""
    if isinstance(model, onnx.ModelProto):
        proto, path = model, "<onnx>"
    else:
        path = path_text(model)
        proto = onnx.ModelProto()
        try:
            proto.ParseFromString(read_bytes(path, what="an ONNX model"))
        except DecodeError:
            raise RelaxError(f"expected an ONNX model, '{path}' is none") from None
    if not proto.HasField("graph") or not proto.opset_import:
        raise RelaxError(f"expected an ONNX model, '{path}' has {'no operator set' if proto.HasField('graph') else 'no graph'}")
    return _newer(proto, path), path


def _newer(proto: onnx.ModelProto, path: str) -> onnx.ModelProto:
    version = next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), _OLDEST)
    if version >= _OLDEST:
        return proto
    try:
        return onnx.version_converter.convert_version(proto, _CONVERTED)
    except RuntimeError as error:
        raise RelaxError(f"expected a model that can be converted from operator set {version}, '{path}': {error}") from None
