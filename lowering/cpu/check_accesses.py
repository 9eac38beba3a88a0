"""Checked code: every access says whether it is inside of its buffer, and one that is not leaves the memory alone.

Before::

    %v = vector.load %x[%i] : memref<?xf32>, vector<16xf32>

after, with ``%faults`` the first bytes of the arena, which every function gets::

    %inside = 0 <= %i and %i + 15 < dim %x
    %v = scf.if %inside { vector.load %x[%i] } else { call @relaxir_fault(%faults, site, index, dim %x); zeros }

Of accesses under a mask the active lanes count. Views must be inside of what they are views of for accesses to them to count.
A function that is called from outside leaves with the status ``FAULTED`` behind the first call of a kernel that faulted. What
is left are 64-bit integers at the beginning of the arena: how many faults there were, and of the first one the site (a number
of the list that is returned), the index and the first one that is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...dialect.array_spec import ALIGNMENT
from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of, calls_in
from ...dialect.functions import body_of, functions, name_of, terminator, update_type
from ...dialect.traversal import nested_operations
from ..access_ranges import (
    AccessCode,
    Range,
    any_zero,
    element_bytes_of,
    extent_of,
    is_access,
    judged,
    memory_of,
    ranges_of,
    source_extent,
)
from ..entries import entries_of
from ..lowering_pass import LoweringPass
from ..marks import ACCESSES, DEVICE, OPS
from ..plain_attributes import from_attribute, to_attribute
from .access_sites import AccessSites
from .lower_checks import CHECK

__all__ = ["FAULTED", "FAULT_BYTES", "HOST_FAULT", "CheckAccesses", "check_accesses"]

#: The status of a call that faulted.
FAULTED = -(2**62)
#: What the number of a site has on top in the status of a function whose arena is a GPU's: there, nothing is left in it.
HOST_FAULT = 1 << 50
#: What faults take at the beginning of the arena.
FAULT_BYTES = ALIGNMENT

_FAULT = "relaxir_fault"
_WORDS = "memref<4xi64>"
_VIEWS = ("memref.view", "memref.subview", "memref.reinterpret_cast", "memref.expand_shape", "memref.cast")
_SAME_MEMORY = (*_VIEWS, "memref.collapse_shape", "memref.transpose", "builtin.unrealized_conversion_cast")
#: What neither reads nor writes a buffer's elements, or needs no memory to be there. Addresses are those of whole buffers, for
#: functions outside of the module.
_HARMLESS = (
    "memref.alloc", "memref.alloca", "memref.collapse_shape", "memref.dealloc", "memref.dim",
    "memref.extract_aligned_pointer_as_index", "memref.extract_strided_metadata", "memref.get_global", "memref.global",
    "memref.prefetch", "memref.transpose",
)  # fmt: skip
_LOOPS = ("scf.for", "scf.while")


@dataclass(frozen=True)
class CheckAccesses(LoweringPass):
    """Puts every access under the condition that it is inside of its buffer."""

    name: ClassVar[str] = "relax-check-accesses"

    def run(self, op: ir.Operation) -> None:
        if ACCESSES in op.attributes:
            return
        ops = {name_of(f): from_attribute(f.attributes[OPS]) for f in functions(op) if OPS in f.attributes}
        entries = [(f, e) for f, e in entries_of(op) if DEVICE not in f.attributes]
        sites = check_accesses(op, {name_of(f): len(e.spec.shapes) for f, e in entries}, ops)
        op.attributes[ACCESSES] = to_attribute(sites)


def check_accesses(module: ir.Operation, arenas: Mapping[str, int], ops: Mapping[str, Sequence[str]]) -> list[str]:
    """Rewrites all functions that have a body, but those whose buffers are a GPU's; in place.

    Args:
        module: loops and accesses of buffers, as :func:`lower_kernels` leaves them.
        arenas: which argument is the arena, whose first ``FAULT_BYTES`` nobody else uses, of functions called from outside.
        ops: the relax ops that functions compute.

    Returns:
        What each site is, with the place in the user's module.
    """
    with ir.InsertionPoint(module.regions[0].blocks[0]), ir.Location.unknown():
        _declare(module)
        found = [f for f in functions(module) if body_of(f) is not None and name_of(f) != _FAULT]
        bodies = [f for f in found if DEVICE not in f.attributes]
        checked = {name_of(f) for f in bodies}
        sites = AccessSites()
        for function in bodies:
            arena = arenas.get(name_of(function))
            faults = _faults(function, arena)
            sites.what = ", ".join(ops.get(name_of(function), ())) or f"@{name_of(function)}"
            _check_body(function, faults, sites, arena is not None)
            if arena is not None:
                _check_addresses(function, arena, faults, sites)
            _pass_on(function, faults, checked, arena is not None)
        for function in found:
            if DEVICE in function.attributes and any(callee_of(c) in checked for c in calls_in(function.operation)):
                _pass_on(function, _own_faults(function), checked, True, _leave_with_site)
    return list(sites.numbers)


def _fault(code: AccessCode, faults: ir.Value, site: int, index: ir.Value, size: ir.Value) -> None:
    wide = [code.op("arith.index_cast", [v], code.i64) for v in (index, size)]
    func.CallOp([], ir.FlatSymbolRefAttr.get(_FAULT), [faults, code.number(site, code.i64), *wide])


def _declare(module: ir.Operation) -> None:
    """The function that counts a fault, and keeps the first one."""
    text = f"""
      func.func private @{_FAULT}(%faults: {_WORDS}, %site: i64, %index: i64, %size: i64) {{
        %zero = arith.constant 0 : i64
        %one = arith.constant 1 : i64
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c3 = arith.constant 3 : index
        %before = memref.atomic_rmw addi %one, %faults[%c0] : (i64, {_WORDS}) -> i64
        %first = arith.cmpi eq, %before, %zero : i64
        scf.if %first {{
          memref.store %site, %faults[%c1] : {_WORDS}
          memref.store %index, %faults[%c2] : {_WORDS}
          memref.store %size, %faults[%c3] : {_WORDS}
        }}
        return
      }}"""
    names = {name_of(f) for f in functions(module)}
    if CHECK not in names:
        text += f"\nfunc.func private @{CHECK}(i1, i64)"
    parsed = ir.Module.parse(text)
    for op in list(parsed.body.operations):
        op.operation.clone(ip=ir.InsertionPoint(module.regions[0].blocks[0]))


def _faults(function: func.FuncOp, arena: int | None) -> ir.Value:
    """Where faults are counted: the beginning of the arena, or an argument more."""
    block, words = body_of(function), ir.Type.parse(_WORDS)
    assert block is not None
    if arena is None:
        faults = block.add_argument(words, function.location)
        update_type(function)
        if "arg_attrs" in function.attributes:
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(
                [*ir.ArrayAttr(function.attributes["arg_attrs"]), ir.DictAttr.get({})]
            )
        return faults
    code = AccessCode()
    with ir.InsertionPoint.at_block_begin(block), function.location:
        zero = code.number(0)
        faults = code.op("memref.view", [block.arguments[arena], zero], words)
        ir.Operation.create("memref.store", [], [code.number(0, code.i64), faults, zero])
    return faults


def _own_faults(function: func.FuncOp) -> ir.Value:
    """Where a function counts the faults of what it calls, whose arena is no memory of the host's."""
    block, code = body_of(function), AccessCode()
    assert block is not None
    with ir.InsertionPoint.at_block_begin(block), function.location:
        attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
        faults = code.op("memref.alloca", [], ir.Type.parse(_WORDS), attributes)
        ir.Operation.create("memref.store", [], [code.number(0, code.i64), faults, code.number(0)])
    return faults


def _check_body(function: func.FuncOp, faults: ir.Value, sites: AccessSites, leaves: bool) -> None:
    own, good = [faults], dict[ir.Value, ir.Value]()
    for op in [o.operation for o in nested_operations(function.operation)]:
        if is_access(op):
            memory = memory_of(op)
            if memory not in own:
                _check_access(op, _goodness(memory, good), faults, sites)
        elif op.name in _VIEWS:
            if op.results[0] not in own:
                _check_view(op, good, faults, sites, leaves)
        elif op.name.startswith(("memref.", "vector.transfer", "linalg.")) and op.name not in _HARMLESS:
            raise AssertionError(f"expected only accesses that can be checked, got {op.name}")


def _check_addresses(function: func.FuncOp, arena: int, faults: ir.Value, sites: AccessSites) -> None:
    """Elements are at their natural alignment, and the arena at a cache line."""
    code, block = AccessCode(), body_of(function)
    assert block is not None
    with ir.InsertionPoint.after(_stored_zero(faults)), function.location:
        for i, argument in enumerate(list(block.arguments)[: arena + 1]):
            size = ALIGNMENT if i == arena else element_bytes_of(ir.MemRefType(argument.type).element_type)
            address = code.op("memref.extract_aligned_pointer_as_index", [argument], code.index)
            beyond = code.op("arith.remui", [address, code.number(size)], code.index)
            with code.when(code.less(code.number(0), beyond)):
                name = "the arena" if i == arena else f"argument {i}"
                site = sites.number(f"{sites.what}: address of {name} modulo {size}")
                _fault(code, faults, site, beyond, code.number(1))
        _leave(faults)


def _stored_zero(faults: ir.Value) -> ir.Operation:
    """What empties the count of faults, when a call begins."""
    return next(u.owner.operation for u in faults.uses if u.owner.operation.name == "memref.store")


def _goodness(memory: ir.Value, good: Mapping[ir.Value, ir.Value]) -> ir.Value | None:
    """Whether the views behind a buffer are inside of their sources, where that is not certain."""
    while memory not in good:
        if isinstance(memory, ir.BlockArgument) or memory.owner.name not in _SAME_MEMORY:
            return None
        memory = memory.owner.operands[0]
    return good[memory]


def _check_access(op: ir.Operation, good: ir.Value | None, faults: ir.Value, sites: AccessSites) -> None:
    """Puts an access under the condition that it is inside, and in views that are."""
    code, site = AccessCode(), sites.access(op, memory_of(op))
    types = [r.type for r in op.results]
    with ir.InsertionPoint(op), op.location:
        inside, index, size = judged(code, ranges_of(code, op))
        inside = inside if good is None else code.both(inside, good)
        branch = ir.Operation.create("scf.if", types, [inside], regions=2)
        then, otherwise = (region.blocks.append() for region in branch.regions)
    for old, new in zip(op.results, branch.results, strict=True):
        old.replace_all_uses_with(new)
    then.append(op)
    with ir.InsertionPoint(then), op.location:
        ir.Operation.create("scf.yield", [], list(op.results))
    with ir.InsertionPoint(otherwise), op.location:
        _fault(code, faults, site, index, size)
        ir.Operation.create("scf.yield", [], [code.zero(t) for t in types])


def _check_view(op: ir.Operation, good: dict[ir.Value, ir.Value], faults: ir.Value, sites: AccessSites, leaves: bool) -> None:
    """Counts a fault where a view is not inside of its source; nobody gets to use that."""
    code, before = AccessCode(), _goodness(op.operands[0], good)
    with ir.InsertionPoint(op), op.location:
        ranges = _view_ranges(code, op)
        if not ranges:
            return
        inside, index, size = judged(code, ranges)
        # All of nothing, as a row, may end behind it; an access to that is a fault, the view is none.
        with code.when(code.not_(code.either(inside, _is_empty(code, op)))):
            _fault(code, faults, sites.access(op, op.operands[0]), index, size)
        if leaves:
            _leave(faults)
        good[op.results[0]] = inside if before is None else code.both(inside, before)


def _is_empty(code: AccessCode, op: ir.Operation) -> ir.Value:
    """Whether a flat view is of no elements."""
    source = op.operands[0]
    rank = ir.MemRefType(source.type).rank if op.name == "memref.reinterpret_cast" else 0
    return any_zero(code, [code.dim(source, axis) for axis in range(rank)])


def _view_ranges(code: AccessCode, op: ir.Operation) -> list[Range]:
    source, result = op.operands[0], op.results[0]
    kind = ir.MemRefType(result.type)
    if op.name == "memref.cast":
        axes = [i for i in range(kind.rank) if not kind.is_dynamic_dim(i) and ir.MemRefType(source.type).is_dynamic_dim(i)]
        return [Range(n, n, code.add(code.dim(source, i), code.number(1))) for i in axes for n in [code.number(kind.shape[i])]]
    if op.name == "memref.view":
        sizes = _mixed(code, list(kind.shape), list(op.operands)[2:])
        extent = code.number(element_bytes_of(kind.element_type))
        for size in sizes:
            extent = code.mul(extent, size)
        return [_last(code, op.operands[1], extent, code.dim(source, 0))]
    if op.name == "memref.expand_shape":
        return _expanded(code, op)
    offsets, sizes, strides = _slices(code, op)
    if op.name == "memref.subview":
        found: list[Range] = []
        empty = any_zero(code, sizes)
        for axis, (offset, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
            extent = code.add(code.mul(code.sub(size, code.number(1)), stride), code.number(1))
            found.append(_last(code, offset, code.select(empty, code.number(0), extent), code.dim(source, axis)))
        return found
    return [_last(code, offsets[0], extent_of(code, sizes, strides), source_extent(code, source))]


def _last(code: AccessCode, offset: ir.Value, extent: ir.Value, size: ir.Value) -> Range:
    """Of a part: where there is none of it, nothing is outside."""
    one = code.number(1)
    none = code.less(extent, one)
    first = code.select(none, code.number(0), offset)
    last = code.select(none, code.number(-1), code.sub(code.add(offset, extent), one))
    return Range(first, last, size)


def _expanded(code: AccessCode, op: ir.Operation) -> list[Range]:
    sizes = _mixed(code, list(ir.DenseI64ArrayAttr(op.attributes["static_output_shape"])), list(op.operands)[1:])
    found: list[Range] = []
    for axis, group in enumerate(ir.ArrayAttr(op.attributes["reassociation"])):
        product = code.number(1)
        for member in ir.ArrayAttr(group):
            product = code.mul(product, sizes[ir.IntegerAttr(member).value])
        found.append(_last(code, code.number(0), product, code.dim(op.operands[0], axis)))
    return found


def _slices(code: AccessCode, op: ir.Operation) -> tuple[list[ir.Value], list[ir.Value], list[ir.Value]]:
    """Offsets, sizes and strides, as subviews and casts have them."""
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    values, begin = list(op.operands), segments[0]
    found: list[list[ir.Value]] = []
    for name, count in zip(("static_offsets", "static_sizes", "static_strides"), segments[1:], strict=True):
        found.append(_mixed(code, list(ir.DenseI64ArrayAttr(op.attributes[name])), values[begin : begin + count]))
        begin += count
    return found[0], found[1], found[2]


def _mixed(code: AccessCode, static: Sequence[int], dynamic: Sequence[ir.Value]) -> list[ir.Value]:
    values = iter(dynamic)
    unknown = (ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset())
    return [next(values) if s in unknown else code.number(s) for s in static]


def _pass_on(
    function: func.FuncOp, faults: ir.Value, checked: Collection[str], leaves: bool,
    leave: Callable[[ir.Value], None] | None = None,
) -> None:  # fmt: skip
    """Gives calls the place of faults; a function called from outside is left behind one that has counted some."""
    leave = leave or _leave
    for op in [o.operation for o in nested_operations(function.operation)]:
        if op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value in checked:
            with ir.InsertionPoint(op), op.location:
                new = func.CallOp(
                    [r.type for r in op.results], ir.FlatSymbolRefAttr(op.attributes["callee"]), [*op.operands, faults]
                )
            for old, result in zip(op.results, new.results, strict=True):
                old.replace_all_uses_with(result)
            op.erase()
            if leaves:
                with ir.InsertionPoint.after(new.operation), new.location:
                    leave(faults)
        elif leaves and op.name in _LOOPS:
            with ir.InsertionPoint.at_block_begin(op.regions[0].blocks[0]), op.location:
                leave(faults)
    if leaves:
        block = body_of(function)
        assert block is not None
        with ir.InsertionPoint(terminator(block)), function.location:
            leave(faults)


def _leave(faults: ir.Value) -> None:
    code = AccessCode()
    _leave_when_any(code, faults, code.number(-FAULTED - 1, code.i64))


def _leave_with_site(faults: ir.Value) -> None:
    """Leaves with a status that says where the first fault was."""
    code = AccessCode()
    site = code.op("memref.load", [faults, code.number(1)], code.i64)
    _leave_when_any(code, faults, code.op("arith.ori", [site, code.number(HOST_FAULT, code.i64)], code.i64))


def _leave_when_any(code: AccessCode, faults: ir.Value, number: ir.Value) -> None:
    count = code.op("memref.load", [faults, code.number(0)], code.i64)
    none = code.op("arith.cmpi", [count, code.number(0, code.i64)], code.i1, {"predicate": ir.IntegerAttr.get(code.i64, 0)})
    func.CallOp([], ir.FlatSymbolRefAttr.get(CHECK), [none, number])
