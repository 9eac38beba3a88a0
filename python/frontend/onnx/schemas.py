"""Operators that ONNX itself defines by others: the function of their schema, for the operands that a node has."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.defs

from ...dialect.dtypes import numpy_dtype
from ...dialect.symbolic import Expr
from .node import Node
from .values import GraphValue

__all__ = ["schema_body"]


def schema_body(node: Node, proto: onnx.NodeProto) -> onnx.FunctionProto | None:
    """The function, None where the schema has none for this operator set and these operands."""
    try:
        schema: Any = onnx.defs.get_schema(proto.op_type, max_inclusive_version=node.version, domain=proto.domain)
    except onnx.defs.SchemaError:
        return None
    text = _context_dependent(schema, node, proto) or _plain(schema, node.version)
    if text is None:
        return None
    function = onnx.FunctionProto.FromString(text)
    given = {a.name for a in proto.attribute}
    listed = {a.name for a in function.attribute_proto}
    for attribute in schema.attributes.values():
        if attribute.default_value.type and attribute.name not in given | listed:
            function.attribute_proto.append(attribute.default_value)
    for opset in function.opset_import:
        opset.version = max(opset.version, node.version if opset.domain == proto.domain else 0)
    return function


def _context_dependent(schema: Any, node: Node, proto: onnx.NodeProto) -> bytes | None:
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= node.version]
    plain = [v for v in schema.function_opset_versions if v <= node.version]
    if not versions or (plain and max(plain) > max(versions)):
        return None
    types = [_type(o).SerializeToString() for o in node.operands]
    return schema.get_context_dependent_function_with_opset_version(max(versions), proto.SerializeToString(), types)


def _plain(schema: Any, version: int) -> bytes | None:
    versions = [v for v in schema.function_opset_versions if v <= version]
    return schema.get_function_with_opset_version(max(versions)) if versions else None


def _type(operand: object) -> onnx.TypeProto:
    found = onnx.TypeProto()
    if isinstance(operand, GraphValue):
        element = operand.coded or onnx.helper.np_dtype_to_tensor_dtype(numpy_dtype(operand.dtype))
        found.tensor_type.elem_type = element
        for dim in operand.shape:
            size = found.tensor_type.shape.dim.add()
            if isinstance(dim, Expr):
                size.dim_param = str(dim)
            elif dim is not None:
                size.dim_value = dim
    return found
