"""Nodes of operators that C functions compute, where torch-mlir's importer does not take them: lists as results, writes.

An operator that writes to its arguments is ``auto_functionalized_v2`` in a graph, which returns what it has written behind what
the operator returns. Both become ``torch.operator`` of the operator's name, whose results are all tensors, in that order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch

from ..dialect.bindings import ir

__all__ = ["has_own_form", "import_extern", "operator_of"]

_FUNCTIONALIZED = torch.ops.higher_order.auto_functionalized_v2


def operator_of(node: torch.fx.Node) -> Any:
    """The operator that a node calls, through what torch makes of one that writes to its arguments."""
    return node.args[0] if node.target is _FUNCTIONALIZED else node.target


def has_own_form(node: torch.fx.Node) -> bool:
    """Whether :func:`import_extern` is to import a node."""
    if node.target is _FUNCTIONALIZED:
        return True
    returns = getattr(getattr(node.target, "_schema", None), "returns", ())
    return len(returns) == 1 and isinstance(node.meta.get("val"), tuple | list)


def import_extern(importer: Any, location: ir.Location, node: torch.fx.Node, name: str) -> dict[int, ir.Value]:
    """Imports one node.

    Args:
        importer: what imports the nodes around it.
        location: the node's.
        node: a call of an operator that a C function computes.
        name: the operator's name in the torch dialect.

    Returns:
        The tensors that it returns, by their positions.

    Raises:
        ValueError: it writes to a part of a tensor, or to tensors in lists.
    """
    schema = operator_of(node)._schema
    given, positions = _functionalized(node, schema) if node.target is _FUNCTIONALIZED else _plain(node, schema)
    operands = [
        importer._import_argument(location, given[p.name], p.type)
        if p.name in given
        else importer._import_default_value(location, p.default_value, p.type)
        for p in schema.arguments
    ]
    types = [importer._cc.value_info_to_type(node.meta["val"][i]) for i in positions]
    attributes = {"name": ir.StringAttr.get(f"torch.{name}")}
    op = ir.Operation.create("torch.operator", results=types, operands=operands, attributes=attributes, loc=location)
    return dict(zip(positions, op.results, strict=True))


def _plain(node: torch.fx.Node, schema: Any) -> tuple[dict[str, Any], list[int]]:
    named = dict(zip((p.name for p in schema.arguments), node.args, strict=False))
    return named | dict(node.kwargs), list(range(len(node.meta["val"])))


def _functionalized(node: torch.fx.Node, schema: Any) -> tuple[dict[str, Any], list[int]]:
    """The arguments by name, and where what the operator returns is, then what it writes, in the order of the arguments."""
    options = cast("Mapping[str, Any]", node.kwargs)
    bases: Any = options["_all_bases"]
    returned = max(len(schema.returns), 1)
    positions: list[int] = list(range(len(schema.returns)))
    given = {p.name: options[p.name] for p in schema.arguments if p.name in options}
    for p in schema.arguments:
        own = {key for key in options if key.startswith(f"_{p.name}_") and not _is_of_another(key, p.name, schema)}
        if not p.is_write or not own:
            continue
        if own - {f"_{p.name}_base_index", f"_{p.name}_alias"}:
            raise ValueError(f"expected a C function to write to whole tensors, got parts, or a list, as '{p.name}'")
        base = options[f"_{p.name}_base_index"]
        given[p.name] = None if base is None else bases[base]
        positions += [] if base is None else [returned + base]
    if len(set(positions)) != len(positions):
        raise ValueError("expected a C function to write to tensors of their own, got one twice")
    return given, positions


def _is_of_another(key: str, name: str, schema: Any) -> bool:
    """Whether an option is of an argument with a longer name: ``_out_scale_base_index`` is not of ``out``."""
    longer = [p.name for p in schema.arguments if p.name.startswith(f"{name}_")]
    return any(key.startswith(f"_{other}_") for other in longer)
