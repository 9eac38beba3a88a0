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

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from ...dialect.array_spec import ALIGNMENT
from ...dialect.bindings import func, ir
from ...dialect.functions import body_of, functions, name_of, terminator, update_type
from ...dialect.traversal import nested_operations
from ..entries import entries_of
from ..lowering_pass import LoweringPass
from ..marks import ACCESSES, OPS
from ..plain_attributes import from_attribute, to_attribute
from .access_sites import AccessSites
from .lower_checks import CHECK

__all__ = ["FAULTED", "FAULT_BYTES", "CheckAccesses", "check_accesses"]

#: The status of a call that faulted.
FAULTED = -(2**62)
#: What faults take at the beginning of the arena.
FAULT_BYTES = ALIGNMENT

_FAULT = "relaxir_fault"
_WORDS = "memref<4xi64>"
#: Accesses, by where their memory is among the operands.
_ACCESSES = {
    "memref.load": 0, "memref.store": 1, "memref.atomic_rmw": 1, "vector.load": 0, "vector.store": 1, "vector.maskedload": 0,
    "vector.maskedstore": 0, "vector.gather": 0, "vector.scatter": 0,
}  # fmt: skip
_MASKS = {"vector.maskedload": 0, "vector.maskedstore": 0, "vector.gather": 1, "vector.scatter": 1}
_VIEWS = ("memref.view", "memref.subview", "memref.reinterpret_cast", "memref.expand_shape", "memref.cast")
_SAME_MEMORY = (*_VIEWS, "memref.collapse_shape", "memref.transpose", "builtin.unrealized_conversion_cast")
#: What neither reads nor writes a buffer's elements, or needs no memory to be there.
_HARMLESS = (
    "memref.alloc", "memref.alloca", "memref.collapse_shape", "memref.dealloc", "memref.dim",
    "memref.extract_strided_metadata", "memref.get_global", "memref.global", "memref.prefetch", "memref.transpose",
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
        sites = check_accesses(op, {e.spec.name: len(e.spec.shapes) for _, e in entries_of(op)}, ops)
        op.attributes[ACCESSES] = to_attribute(sites)


def check_accesses(module: ir.Operation, arenas: Mapping[str, int], ops: Mapping[str, Sequence[str]]) -> list[str]:
    """Rewrites all functions that have a body; in place.

    Args:
        module: loops and accesses of buffers, as :func:`lower_kernels` leaves them.
        arenas: which argument is the arena, whose first ``FAULT_BYTES`` nobody else uses, of functions called from outside.
        ops: the relax ops that functions compute.

    Returns:
        What each site is, with the place in the user's module.
    """
    with ir.InsertionPoint(module.regions[0].blocks[0]), ir.Location.unknown():
        _declare(module)
        bodies = [f for f in functions(module) if body_of(f) is not None and name_of(f) != _FAULT]
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
    return list(sites.numbers)


class _Code:
    """Builds arithmetic at the insertion point."""

    def __init__(self) -> None:
        self.index, self.i1, self.i64 = ir.IndexType.get(), ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64)

    def op(
        self, name: str, operands: Sequence[ir.Value], type_: ir.Type, attributes: dict[str, ir.Attribute] | None = None
    ) -> ir.Value:
        return ir.Operation.create(name, [type_], operands, attributes).result

    def number(self, value: int, type_: ir.Type | None = None) -> ir.Value:
        type_ = type_ or self.index
        return self.op("arith.constant", [], type_, {"value": ir.IntegerAttr.get(type_, value)})

    def zero(self, type_: ir.Type) -> ir.Value:
        element = ir.VectorType(type_).element_type if isinstance(type_, ir.VectorType) else type_
        number = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
        value = ir.DenseElementsAttr.get_splat(type_, number) if isinstance(type_, ir.VectorType) else number
        return self.op("arith.constant", [], type_, {"value": value})

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.addi", [a, b], a.type)

    def sub(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.subi", [a, b], a.type)

    def mul(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.muli", [a, b], a.type)

    def both(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.andi", [a, b], a.type)

    def either(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.ori", [a, b], a.type)

    def less(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.cmpi", [a, b], self.i1, {"predicate": ir.IntegerAttr.get(self.i64, 2)})

    def negative(self, a: ir.Value) -> ir.Value:
        return self.less(a, self.number(0))

    def select(self, condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.select", [condition, a, b], a.type)

    def not_(self, a: ir.Value) -> ir.Value:
        return self.op("arith.xori", [a, self.number(-1, self.i1)], self.i1)

    def dim(self, memory: ir.Value, axis: int) -> ir.Value:
        kind = ir.MemRefType(memory.type)
        if not kind.is_dynamic_dim(axis):
            return self.number(kind.get_dim_size(axis))
        return self.op("memref.dim", [memory, self.number(axis)], self.index)

    def reduced(self, kind: str, vector: ir.Value) -> ir.Value:
        attribute = ir.Attribute.parse(f"#vector.kind<{kind}>")
        return self.op("vector.reduction", [vector], ir.VectorType(vector.type).element_type, {"kind": attribute})

    @contextmanager
    def when(self, condition: ir.Value) -> Generator[None]:
        """Builds under a condition."""
        block = ir.Operation.create("scf.if", [], [condition], regions=2).regions[0].blocks.append()
        with ir.InsertionPoint(block):
            yield
            ir.Operation.create("scf.yield", [], [])

    def fault(self, faults: ir.Value, site: int, index: ir.Value, size: ir.Value) -> None:
        wide = [self.op("arith.index_cast", [v], self.i64) for v in (index, size)]
        func.CallOp([], ir.FlatSymbolRefAttr.get(_FAULT), [faults, self.number(site, self.i64), *wide])


@dataclass(frozen=True)
class _Range:
    """The least and the largest index of an access, and the first that is too large."""

    least: ir.Value
    largest: ir.Value
    size: ir.Value


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
    code = _Code()
    with ir.InsertionPoint.at_block_begin(block), function.location:
        zero = code.number(0)
        faults = code.op("memref.view", [block.arguments[arena], zero], words)
        ir.Operation.create("memref.store", [], [code.number(0, code.i64), faults, zero])
    return faults


def _check_body(function: func.FuncOp, faults: ir.Value, sites: AccessSites, leaves: bool) -> None:
    own, good = [faults], dict[ir.Value, ir.Value]()
    for op in [o.operation for o in nested_operations(function.operation)]:
        if op.name in _ACCESSES:
            memory = op.operands[_ACCESSES[op.name]]
            if memory not in own:
                _check_access(op, _goodness(memory, good), faults, sites)
        elif op.name in _VIEWS:
            if op.results[0] not in own:
                _check_view(op, good, faults, sites, leaves)
        elif op.name.startswith(("memref.", "vector.transfer", "linalg.")) and op.name not in _HARMLESS:
            raise AssertionError(f"expected only accesses that can be checked, got {op.name}")


def _check_addresses(function: func.FuncOp, arena: int, faults: ir.Value, sites: AccessSites) -> None:
    """Elements are at their natural alignment, and the arena at a cache line."""
    code, block = _Code(), body_of(function)
    assert block is not None
    with ir.InsertionPoint.after(_stored_zero(faults)), function.location:
        for i, argument in enumerate(list(block.arguments)[: arena + 1]):
            size = ALIGNMENT if i == arena else _element_bytes(ir.MemRefType(argument.type).element_type)
            address = code.op("memref.extract_aligned_pointer_as_index", [argument], code.index)
            beyond = code.op("arith.remui", [address, code.number(size)], code.index)
            with code.when(code.less(code.number(0), beyond)):
                name = "the arena" if i == arena else f"argument {i}"
                site = sites.number(f"{sites.what}: address of {name} modulo {size}")
                code.fault(faults, site, beyond, code.number(1))
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
    code, site = _Code(), sites.access(op, op.operands[_ACCESSES[op.name]])
    types = [r.type for r in op.results]
    with ir.InsertionPoint(op), op.location:
        inside, index, size = _judged(code, _ranges(code, op))
        inside = inside if good is None else code.both(inside, good)
        branch = ir.Operation.create("scf.if", types, [inside], regions=2)
        then, otherwise = (region.blocks.append() for region in branch.regions)
    for old, new in zip(op.results, branch.results, strict=True):
        old.replace_all_uses_with(new)
    then.append(op)
    with ir.InsertionPoint(then), op.location:
        ir.Operation.create("scf.yield", [], list(op.results))
    with ir.InsertionPoint(otherwise), op.location:
        code.fault(faults, site, index, size)
        ir.Operation.create("scf.yield", [], [code.zero(t) for t in types])


def _judged(code: _Code, ranges: Sequence[_Range]) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Whether all are inside; and of the last one that is not, the index and the size."""
    inside, index, size = code.number(-1, code.i1), code.number(0), code.number(0)
    for r in ranges:
        below = code.negative(r.least)
        bad = code.either(below, code.not_(code.less(r.largest, r.size)))
        index = code.select(bad, code.select(below, r.least, r.largest), index)
        size, inside = code.select(bad, r.size, size), code.both(inside, code.not_(bad))
    return inside, index, size


def _ranges(code: _Code, op: ir.Operation) -> list[_Range]:
    at = _ACCESSES[op.name]
    memory = op.operands[at]
    rank = ir.MemRefType(memory.type).rank
    indices = list(op.operands)[at + 1 : at + 1 + rank]
    found = [_Range(i, i, code.dim(memory, axis)) for axis, i in enumerate(indices)]
    if not op.name.startswith("vector."):
        return found
    following = list(op.operands)[at + 1 + rank :]
    last, lanes = found[-1], _lanes(op)
    if op.name not in _MASKS:
        return [*found[:-1], _Range(last.least, code.add(last.least, code.number(lanes - 1)), last.size)]
    wide = ir.VectorType.get([lanes], code.index)
    if op.name in ("vector.gather", "vector.scatter"):
        offsets = following[0]
        if offsets.type != wide:
            offsets = code.op("arith.index_cast", [offsets], wide)
    else:
        steps = ir.DenseElementsAttr.get([ir.IntegerAttr.get(code.index, i) for i in range(lanes)], wide)
        offsets = code.op("arith.constant", [], wide, {"value": steps})
    mask = following[_MASKS[op.name]]
    every = code.add(code.op("vector.broadcast", [last.least], wide), offsets)
    least, largest = (
        code.reduced(kind, code.select(mask, every, code.op("vector.broadcast", [code.number(unused)], wide)))
        for kind, unused in (("minsi", 2**63 - 1), ("maxsi", -1))
    )
    return [*found[:-1], _Range(least, largest, last.size)]


def _lanes(op: ir.Operation) -> int:
    vectors = [v.type for v in (*op.results, *op.operands) if isinstance(v.type, ir.VectorType)]
    return ir.VectorType(vectors[0]).shape[0]


def _check_view(op: ir.Operation, good: dict[ir.Value, ir.Value], faults: ir.Value, sites: AccessSites, leaves: bool) -> None:
    """Counts a fault where a view is not inside of its source; nobody gets to use that."""
    code, before = _Code(), _goodness(op.operands[0], good)
    with ir.InsertionPoint(op), op.location:
        ranges = _view_ranges(code, op)
        if not ranges:
            return
        inside, index, size = _judged(code, ranges)
        with code.when(code.not_(inside)):
            code.fault(faults, sites.access(op, op.operands[0]), index, size)
        if leaves:
            _leave(faults)
        good[op.results[0]] = inside if before is None else code.both(inside, before)


def _view_ranges(code: _Code, op: ir.Operation) -> list[_Range]:
    source, result = op.operands[0], op.results[0]
    kind = ir.MemRefType(result.type)
    if op.name == "memref.cast":
        axes = [i for i in range(kind.rank) if not kind.is_dynamic_dim(i) and ir.MemRefType(source.type).is_dynamic_dim(i)]
        return [_Range(n, n, code.add(code.dim(source, i), code.number(1))) for i in axes for n in [code.number(kind.shape[i])]]
    if op.name == "memref.view":
        sizes = _mixed(code, list(kind.shape), list(op.operands)[2:])
        extent = code.number(_element_bytes(kind.element_type))
        for size in sizes:
            extent = code.mul(extent, size)
        return [_last(code, op.operands[1], extent, code.dim(source, 0))]
    if op.name == "memref.expand_shape":
        return _expanded(code, op)
    offsets, sizes, strides = _slices(code, op)
    if op.name == "memref.subview":
        found: list[_Range] = []
        empty = _any_zero(code, sizes)
        for axis, (offset, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
            extent = code.add(code.mul(code.sub(size, code.number(1)), stride), code.number(1))
            found.append(_last(code, offset, code.select(empty, code.number(0), extent), code.dim(source, axis)))
        return found
    return [_last(code, offsets[0], _extent(code, sizes, strides), _source_extent(code, source))]


def _last(code: _Code, offset: ir.Value, extent: ir.Value, size: ir.Value) -> _Range:
    """Of a part: where there is none of it, nothing is outside."""
    one = code.number(1)
    none = code.less(extent, one)
    first = code.select(none, code.number(0), offset)
    last = code.select(none, code.number(-1), code.sub(code.add(offset, extent), one))
    return _Range(first, last, size)


def _expanded(code: _Code, op: ir.Operation) -> list[_Range]:
    sizes = _mixed(code, list(ir.DenseI64ArrayAttr(op.attributes["static_output_shape"])), list(op.operands)[1:])
    found: list[_Range] = []
    for axis, group in enumerate(ir.ArrayAttr(op.attributes["reassociation"])):
        product = code.number(1)
        for member in ir.ArrayAttr(group):
            product = code.mul(product, sizes[ir.IntegerAttr(member).value])
        found.append(_last(code, code.number(0), product, code.dim(op.operands[0], axis)))
    return found


def _slices(code: _Code, op: ir.Operation) -> tuple[list[ir.Value], list[ir.Value], list[ir.Value]]:
    """Offsets, sizes and strides, as subviews and casts have them."""
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    values, begin = list(op.operands), segments[0]
    found: list[list[ir.Value]] = []
    for name, count in zip(("static_offsets", "static_sizes", "static_strides"), segments[1:], strict=True):
        found.append(_mixed(code, list(ir.DenseI64ArrayAttr(op.attributes[name])), values[begin : begin + count]))
        begin += count
    return found[0], found[1], found[2]


def _mixed(code: _Code, static: Sequence[int], dynamic: Sequence[ir.Value]) -> list[ir.Value]:
    values = iter(dynamic)
    unknown = (ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset())
    return [next(values) if s in unknown else code.number(s) for s in static]


def _any_zero(code: _Code, sizes: Sequence[ir.Value]) -> ir.Value:
    found = code.number(0, code.i1)
    for size in sizes:
        found = code.either(found, code.less(size, code.number(1)))
    return found


def _extent(code: _Code, sizes: Sequence[ir.Value], strides: Sequence[ir.Value]) -> ir.Value:
    """How many elements there are from the first to the last one."""
    one = code.number(1)
    total = one
    for size, stride in zip(sizes, strides, strict=True):
        total = code.add(total, code.mul(code.sub(size, one), stride))
    return code.select(_any_zero(code, sizes), code.number(0), total)


def _source_extent(code: _Code, source: ir.Value) -> ir.Value:
    """How many elements there are from the base of a buffer to its last one."""
    kind = ir.MemRefType(source.type)
    sizes = [code.dim(source, i) for i in range(kind.rank)]
    if kind.affine_map == ir.AffineMap.get_identity(kind.rank):
        total = code.number(1)
        for size in sizes:
            total = code.mul(total, size)
        return total
    base = ir.MemRefType.get([], kind.element_type, memory_space=kind.memory_space)
    types = [base, *[code.index] * (1 + 2 * kind.rank)]
    parts = list(ir.Operation.create("memref.extract_strided_metadata", types, [source]).results)
    return code.add(parts[1], _extent(code, sizes, parts[2 + kind.rank :]))


def _element_bytes(type_: ir.Type) -> int:
    return 8 if isinstance(type_, ir.IndexType) else -(-type_.width // 8)  # pyright: ignore[reportAttributeAccessIssue]


def _pass_on(function: func.FuncOp, faults: ir.Value, checked: Collection[str], leaves: bool) -> None:
    """Gives calls the place of faults; a function called from outside is left behind one that has counted some."""
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
                    _leave(faults)
        elif leaves and op.name in _LOOPS:
            with ir.InsertionPoint.at_block_begin(op.regions[0].blocks[0]), op.location:
                _leave(faults)
    if leaves:
        block = body_of(function)
        assert block is not None
        with ir.InsertionPoint(terminator(block)), function.location:
            _leave(faults)


def _leave(faults: ir.Value) -> None:
    code = _Code()
    count = code.op("memref.load", [faults, code.number(0)], code.i64)
    none = code.op("arith.cmpi", [count, code.number(0, code.i64)], code.i1, {"predicate": ir.IntegerAttr.get(code.i64, 0)})
    func.CallOp([], ir.FlatSymbolRefAttr.get(CHECK), [none, code.number(-FAULTED - 1, code.i64)])
