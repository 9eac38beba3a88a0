"""Kernels of windows read images without the frame of one number around them, which then is no memory.

Before::

    %frame = linalg.fill ins(%c7) outs(%empty) : tensor<1x58x58x64xi8>
    %image = tensor.insert_slice %x into %frame[0, 1, 1, 0] [1, 56, 56, 64] [1, 1, 1, 1]
    %y = call @kernel_0(%image, %w, %out)

after::

    %y = call @kernel_0_framed(%x, %w, %out)
    func.func private @kernel_0_framed(%x: tensor<1x56x56x64xi8>, ...) attributes {relax.kernel} {
      // %frame and %image, then what @kernel_0 does

Where :mod:`.kernels.windows` or :mod:`.kernels.winograd` builds the kernel, of a frame that is known, images of known sizes,
and what reads them alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of, calls_in
from ...dialect.functions import body_of, functions, name_of
from ...dialect.traversal import clone_with
from ..fusion.linalg_queries import index_maps, is_fill, owner_name
from ..lowering_pass import LoweringPass
from ..marks import KERNEL, ROWS
from ..set_target import target_of
from ..target import Target
from .kernels.windows.plan import is_gainful
from .kernels.windows.shape import factor_signs
from .kernels.winograd.group import is_products

__all__ = ["SinkFrames", "sink_frames"]

# Windows that are in the frame in part are code of their own, one after the other: wider frames are made.
_WIDEST = 8


@dataclass(frozen=True)
class SinkFrames(LoweringPass):
    """Lets kernels of windows make the frames of their images."""

    name: ClassVar[str] = "relax-sink-frames"

    def run(self, op: ir.Operation) -> None:
        sink_frames(op, target_of(op))


def sink_frames(module: ir.Operation, target: Target) -> None:
    """Rewrites calls of kernels outside of kernels; in place."""
    kernels = {name_of(f): f for f in functions(module) if KERNEL in f.attributes}
    made = dict[tuple[str, int, str], func.FuncOp]()
    for call in [c for f in functions(module) if KERNEL not in f.attributes for c in calls_in(f.operation)]:
        kernel = kernels.get(callee_of(call))
        position = None if kernel is None else _framed(call, kernel, target)
        if kernel is None or position is None:
            continue
        insertion = call.operands[position].owner.operation
        key = callee_of(call), position, _text(insertion)
        if key not in made:
            made[key] = _with_frame(module, kernel, position, insertion, set(kernels) | {name_of(f) for f in made.values()})
        call.attributes["callee"] = ir.FlatSymbolRefAttr.get(name_of(made[key]), module.context)
        call.operands[position] = insertion.operands[0]
        _erase_unused([insertion, insertion.operands[1].owner.operation])
    called = {callee_of(c) for f in functions(module) for c in calls_in(f.operation)}
    for name in {name for name, _, _ in made} - called:
        kernels[name].operation.erase()


def _erase_unused(ops: Sequence[ir.Operation]) -> None:
    for op in ops:
        if next(iter(op.results[0].uses), None) is None:
            op.erase()


def _text(insertion: ir.Operation) -> str:
    """What frame an image is put into, and where."""
    fill, value = insertion.operands[1].owner.operation, insertion.operands[0]
    number = fill.operands[0].owner.attributes["value"]
    return f"{value.type} {insertion.results[0].type} {insertion.attributes['static_offsets']} {number}"


def _framed(call: ir.Operation, kernel: func.FuncOp, target: Target) -> int | None:
    """Which operand of a call is an image in a frame that the kernel can do without, None where none is."""
    block = body_of(kernel)
    if block is None:
        return None
    for position, (value, argument) in enumerate(zip(call.operands, block.arguments, strict=True)):
        if _is_framed(value) and (_reads_windows(argument, target) or _reads_tiles(argument)):
            return position
    return None


def _is_framed(value: ir.Value) -> bool:
    if owner_name(value) != "tensor.insert_slice" or len(list(value.uses)) > 1:
        return False
    insertion = value.owner.operation
    strides = ir.DenseI64ArrayAttr(insertion.attributes["static_strides"])
    static = len(insertion.operands) == 2 and all(ir.RankedTensorType(v.type).has_static_shape for v in insertion.operands)
    whole, part = (list(ir.RankedTensorType(v.type).shape) for v in (value, insertion.operands[0]))
    if not static or len(whole) != len(part) or not is_fill(insertion.operands[1]) or any(s != 1 for s in strides):
        return False
    return all(n - m <= 2 * _WIDEST for n, m in zip(whole, part, strict=True))


def _reads_windows(argument: ir.Value, target: Target) -> bool:
    """Whether all that reads an argument is a sum over windows that gets a kernel of its own."""
    uses = list(argument.uses)
    op = uses[0].owner.operation if len(uses) == 1 else None
    if op is None or op.name != "linalg.generic" or len(op.operands) != 3 or uses[0].operand_number == 2:
        return False
    signs, kinds = factor_signs(op), ["reduction" in str(k) for k in ir.ArrayAttr(op.attributes["iterator_types"])]
    types = [ir.RankedTensorType(v.type) for v in op.operands]
    if signs is None or kinds.count(True) != 2 or not all(t.has_static_shape for t in types):
        return False
    sizes = dict[int, int]()
    for kind, map_ in zip(types, index_maps(op), strict=True):
        sizes |= {e.position: n for e, n in zip(map_.results, kind.shape, strict=True) if isinstance(e, ir.AffineDimExpr)}
    down, across = (i for i, is_sum in enumerate(kinds) if is_sum)
    channels = len(kinds) - 1 - kinds[::-1].index(False)
    if min(sizes.values()) < 1 or not {down, across, channels} <= sizes.keys():
        return False
    ordered = signs if uses[0].operand_number == 0 else signs[::-1]
    return is_gainful((sizes[down], sizes[across]), sizes[channels], ordered, target)


def _reads_tiles(argument: ir.Value) -> bool:
    """Whether all that reads an argument are products of tiles."""
    readers = {use.owner.operation for use in argument.uses}
    return len(readers) == 1 and is_products(next(iter(readers)))


def _with_frame(
    module: ir.Operation, kernel: func.FuncOp, position: int, insertion: ir.Operation, names: set[str]
) -> func.FuncOp:  # fmt: skip
    """A kernel that makes a frame itself; its operations share no rows with that."""
    name, block = f"{name_of(kernel)}_framed", body_of(kernel)
    while name in names:
        name += "_"
    assert block is not None
    types = [a.type for a in block.arguments]
    types[position] = insertion.operands[0].type
    with ir.InsertionPoint(module.regions[0].blocks[0]), kernel.location:
        function = func.FuncOp(name, (types, list(kernel.type.results)), visibility="private")
    for attribute in kernel.attributes:
        if attribute not in (ROWS, "sym_name", "function_type", "sym_visibility"):
            function.attributes[attribute] = kernel.attributes[attribute]
    inner = function.add_entry_block(arg_locs=[ir.Location.unknown(module.context)] * len(types))
    values: dict[ir.Value, ir.Value] = dict(zip(block.arguments, inner.arguments, strict=True))
    at, fill = ir.InsertionPoint(inner), insertion.operands[1].owner.operation
    with kernel.location:
        empty = ir.Operation.create("tensor.empty", [fill.results[0].type], loc=insertion.location, ip=at)
    frame = {fill.operands[1]: empty.result, insertion.operands[0]: inner.arguments[position]}
    for op in (fill.operands[0].owner.operation, fill, insertion):
        clone_with(op, frame, at)
    values[block.arguments[position]] = frame[insertion.results[0]]
    for op in list(block.operations):
        clone_with(op.operation, values, at)
    return function
