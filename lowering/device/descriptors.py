"""Parameters of kernels that are bytes, and not numbers: tensor maps, of 128 bytes, which a launch copies.

In a ``gpu.func`` such a parameter is a pointer with the attribute ``llvm.byval``, which MLIR's pass to LLVM forgets.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...dialect.bindings import ir

__all__ = ["DESCRIPTOR", "find_descriptors", "is_descriptor", "keep_descriptors"]

#: Of a parameter: so many bytes at such a multiple.
DESCRIPTOR = "{llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64}"
# Nobody writes them: the kernel gets their address in the bank of constants, and copies nothing.
_KEPT = "{llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}"


def is_descriptor(attributes: ir.Attribute) -> bool:
    """Whether attributes of a parameter say that it is one."""
    return "llvm.byval" in ir.DictAttr(attributes)


def find_descriptors(device: ir.Operation) -> dict[str, list[int]]:
    """Positions of such parameters of each kernel of a ``gpu.module``."""
    found = dict[str, list[int]]()
    for op in _functions(device, "gpu.func"):
        attributes = list(ir.ArrayAttr(op.attributes["arg_attrs"]))
        found[_name(op)] = [i for i, a in enumerate(attributes) if is_descriptor(a)]
    return found


def keep_descriptors(device: ir.Operation, found: Mapping[str, list[int]]) -> None:
    """Says so again of the functions of the LLVM dialect that kernels have become."""
    for op in _functions(device, "llvm.func"):
        attributes = list(ir.ArrayAttr(op.attributes["arg_attrs"]))
        for position in found.get(_name(op), ()):
            attributes[position] = ir.Attribute.parse(_KEPT, op.context)
        op.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes, op.context)


def _functions(device: ir.Operation, name: str) -> list[ir.Operation]:
    found = [op.operation for op in device.regions[0].blocks[0].operations]
    return [op for op in found if op.name == name and "arg_attrs" in op.attributes]


def _name(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value
