"""Kernels that differ in sizes alone become one, which takes these sizes from its arguments, where that costs no time.

Before::

    func.func @step_0(...) attributes {relax.entry = {step = true, ...}} { ... call @kernel_0(%a, %b) ... }
    func.func @step_1(...) attributes {relax.entry = {step = true, ...}} { ... call @kernel_1(%c, %d) ... }
    func.func private @kernel_0(%x: memref<64x96xf32>, %y: memref<96x64xf32>) attributes {relax.kernel} { linalg.generic ... }
    func.func private @kernel_1(%x: memref<64x48xf32>, %y: memref<48x64xf32>) attributes {relax.kernel} { linalg.generic ... }

after::

    func.func @step_0(...) { ... %q = memref.cast %b : memref<96x64xf32> to memref<?x64xf32> ... call @kernel_0(%p, %q) ... }
    func.func @step_1(...) { ... call @kernel_0(%r, %s) ... }
    func.func private @kernel_0(%x: memref<64x?xf32>, %y: memref<?x64xf32>) attributes {relax.kernel} { linalg.generic ... }

Which sizes may become arguments depends on who calls a kernel. Steps prepare weights, at the speed of memory: all, and how many
panels there are, of products by something small alone. Entries: all of a product in tiles alone (:mod:`.product_sizes`), the
sum of other products, and the innermost loop of others, by the plans that there are. Copies: all. DenseNet-121 has
48 kernels then instead of 329, and compiles in 2.7 instead of 8.9 s of processor, ResNet-50 52 instead of 95, in 2.6 instead of
3.1 s; calls and preparations take 0.99 to 1.003 of the time, and give the same bits (Zen 5, medians of 11 turns). With rows and
columns of products ResNet-50 has 42 kernels instead of 52, compiles in 2.9 instead of 3.5 s of processor, DenseNet-121 3.1
instead of 3.6; calls take 0.996 to 1.000 of the processor's time (Zen 4, medians of 120 turns).

Convolutions that differ in image, channels and strides (:mod:`.convolution_sizes`) are one kernel from two on: ResNet-50 has 36
units of code instead of 44, for which LLVM takes 0.99 instead of 1.27 s of processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of, calls_in
from ...dialect.errors import RelaxError
from ...dialect.functions import functions, name_of, update_type
from ...dialect.traversal import operations
from ..entries import entry_of
from ..lowering_pass import LoweringPass
from ..marks import CONTRACTION, KERNEL, ROWS
from ..set_target import target_of
from ..target import Target
from .convolution_sizes import Convolution, convolution_of
from .kernels.contraction.plan_contractions import plans_of_contractions
from .kernels.nest.plan_loops import plans_of_loops
from .product_sizes import free_product, panel_of, sizes_of_product, temporary_of, write_multiples

__all__ = ["MergeKernels", "merge_kernels"]

# Smaller sizes stay in the type: they decide how wide vectors are, and whether tiles are transposed.
_LEAST = 32
# So many kernels of entries, at least, are worth a size that code has to look at.
_WORTH = 3
# Of convolutions, whose code is no longer for it: they are in tiles of one height.
_WORTH_OF_CONVOLUTIONS = 2

_LOOPS = {"arith.constant", "func.return", "linalg.fill", "linalg.generic", "memref.alloc"}
_DYNAMIC = ir.ShapedType.get_dynamic_size()
_DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()


@dataclass(frozen=True)
class MergeKernels(LoweringPass):
    """Merges kernels on buffers.

    Attributes:
        of: whose: "steps", "entries" with the plans of their kernels, or "copies".
    """

    name: ClassVar[str] = "relax-merge-kernels"
    of: str = "steps"

    def run(self, op: ir.Operation) -> None:
        merge_kernels(op, self.of)


def merge_kernels(module: ir.Operation, of: str = "steps") -> None:
    """Merges kernels on buffers, in place.

    Args:
        module: on buffers.
        of: as of :class:`MergeKernels`.

    Raises:
        RelaxError: ``of`` is something else.
    """
    if of not in _CHOICES:
        raise RelaxError(f"expected of=steps, of=entries or of=copies, got of={of}")
    for choice in _CHOICES[of]:
        _merge_alike(module, of, choice)
        if choice.is_product:
            _merge_convolutions(module)


def _merge_alike(module: ir.Operation, of: str, choice: _Choice) -> None:
    calls = _calls(module, of_steps=of == "steps")
    alike: dict[str, list[func.FuncOp]] = {}
    for function in functions(module):
        free = choice.sizes(function) if name_of(function) in calls and _is_kernel(function, choice.ops) else []
        if any(free):
            alike.setdefault(_text_without(function, free, choice.is_product), []).append(function)
    target = target_of(module) if of == "entries" else None
    for group in alike.values():
        if len(group) >= choice.least:
            merge = _merge_products if choice.is_product else _merge
            merge(group, [call for function in group for call in calls[name_of(function)]], target)


def _merge_convolutions(module: ir.Operation) -> None:
    """Merges convolutions, whose kernels see images in one way."""
    calls, alike = _calls(module, of_steps=False), dict[str, list[Convolution]]()
    for function in functions(module):
        found = convolution_of(function) if name_of(function) in calls and _is_kernel(function, _LOOPS) else None
        if found is not None:
            made = found.free()
            alike.setdefault(_text(made.regions[0].blocks[0]), []).append(found)
            made.operation.erase()
    for group in alike.values():
        if len(group) >= _WORTH_OF_CONVOLUTIONS:
            _call_views(group[0].free(), group, calls)


def _call_views(kept: func.FuncOp, group: Sequence[Convolution], calls: Mapping[str, Sequence[ir.Operation]]) -> None:
    """Has calls of convolutions call one kernel, which sees their images and results, and erases theirs."""
    for each in group:
        for call in calls[name_of(each.kernel)]:
            for i, view in enumerate(each.views):
                if view is not None:
                    with ir.InsertionPoint(call), call.location:
                        call.operands[i] = view.of(call.operands[i])
        _call_one(kept, [each.kernel], calls[name_of(each.kernel)])


def _calls(module: ir.Operation, of_steps: bool) -> dict[str, list[ir.Operation]]:
    """The calls of functions by name: of those that steps call and nothing else does, or of others."""
    inside: dict[str, list[ir.Operation]] = {}
    outside: dict[str, list[ir.Operation]] = {}
    for function in functions(module):
        if KERNEL in function.attributes:  # these call no kernels
            continue
        entry = entry_of(function)
        found = inside if entry is not None and entry.is_step else outside
        for call in calls_in(function.operation):
            found.setdefault(callee_of(call), []).append(call)
    if of_steps:
        return {name: calls for name, calls in inside.items() if name not in outside}
    return {name: [*calls, *inside.get(name, [])] for name, calls in outside.items()}


def _is_kernel(function: func.FuncOp, ops: set[str]) -> bool:
    """Whether a function is a kernel of these operations alone."""
    attributes = function.attributes
    if KERNEL not in attributes or ROWS in attributes or not len(function.regions[0].blocks) or function.type.results:
        return False
    plain = all(isinstance(t.layout, ir.AffineMapAttr | ir.StridedLayoutAttr) for t in _buffers(function.type.inputs))
    return plain and all(op.name in ops for op in operations(function.regions[0].blocks[0]))


def _buffers(types: Iterable[ir.Type]) -> list[ir.MemRefType]:
    return [t for t in types if isinstance(t, ir.MemRefType)]


# -- which sizes may become arguments, as dimensions of each argument -------------------------------------------------------


def _all_sizes(function: func.FuncOp) -> list[set[int]]:
    """All that are large, of a kernel whose loops run along rows and which has no memory of its own.

    Plans of products know the sizes of long sums, and so do they of what is divided by these.
    """
    ops = operations(function.regions[0].blocks[0])
    allocates = any(op.name == "memref.alloc" for op in ops)
    if allocates or any(map(_is_long_product, ops)) or not all(map(_has_long_rows, _buffers(function.type.inputs))):
        return []
    return [_sizes_of_rows(t) if isinstance(t, ir.MemRefType) else set() for t in function.type.inputs]


def _sizes_of_rows(type_: ir.MemRefType) -> set[int]:
    """The large dimensions, and the outermost one; none of a buffer that has no large one."""
    large = _large(type_, range(type_.rank))
    return large | _outermost(type_) if large else large


def _outermost(type_: ir.MemRefType) -> set[int]:
    """The first dimension, if there are others: how many panels a weight has, for one, which no vector goes along."""
    return {0} if type_.rank > 1 and type_.shape[0] > 1 else set()


def _is_long_product(op: ir.Operation) -> bool:
    """Whether an operation is a product, but one of something small and whole panels, as of filters in Winograd's way."""
    if CONTRACTION not in op.attributes:
        return False
    left = ir.MemRefType(op.operands[0].type)
    return panel_of(op) is None or len(_large(left, range(left.rank))) > 0


def _has_long_rows(type_: ir.MemRefType) -> bool:
    """Whether neighbours are along a large dimension, if any is: else loops gather, by offsets that are short as sizes say."""
    sizes = [size for size in type_.shape if size != 1]
    return not sizes or sizes[-1] >= _LEAST or max(sizes) < _LEAST


def _sizes_of_products(function: func.FuncOp) -> list[set[int]]:
    """Rows, columns and the sum of a product that is in tiles alone."""
    return sizes_of_product(function, _LEAST)


def _sizes_of_loops(function: func.FuncOp) -> list[set[int]]:
    """Those that a product sums over, and otherwise those of the innermost loop."""
    block = function.regions[0].blocks[0]
    generics = [op for op in operations(block) if op.name == "linalg.generic"]
    products = [op for op in generics if CONTRACTION in op.attributes]
    if len(products or generics) != 1:
        return []
    (op,) = products or generics
    free = _reductions(op) if products else {_loops(op) - 1} - _reductions(op)
    arguments: list[ir.Value] = list(block.arguments)
    found: list[set[int]] = [set() for _ in arguments]
    for value, map_ in zip(op.operands, ir.ArrayAttr(op.attributes["indexing_maps"]), strict=True):
        if value in arguments and isinstance(value.type, ir.MemRefType):
            indices = enumerate(ir.AffineMapAttr(map_).value.results)
            dims = [i for i, e in indices if isinstance(e, ir.AffineDimExpr) and e.position in free]
            found[arguments.index(value)] |= _large(value.type, dims)
    return found


def _loops(op: ir.Operation) -> int:
    return len(ir.ArrayAttr(op.attributes["iterator_types"]))


def _reductions(op: ir.Operation) -> set[int]:
    return {i for i, kind in enumerate(ir.ArrayAttr(op.attributes["iterator_types"])) if "reduction" in str(kind)}


def _large(type_: ir.MemRefType, dims: Iterable[int]) -> set[int]:
    return {i for i in dims if type_.shape[i] >= _LEAST}


def _sizes_of_copies(function: func.FuncOp) -> list[set[int]]:
    """All but those of short rows."""
    types = _buffers(function.type.inputs)
    if not all(t.has_static_shape and t.rank and t.shape[t.rank - 1] >= _LEAST for t in types):
        return []
    return [set(range(t.rank)) for t in types]


@dataclass(frozen=True)
class _Choice:
    """Kernels to merge.

    Attributes:
        ops: what they consist of.
        sizes: the dimensions of each argument that may be of any size; none for those to be left alone.
        least: how many of them make it worth while.
        is_product: whether they are products, whose sums are in memory as large as their result.
    """

    ops: set[str]
    sizes: Callable[[func.FuncOp], list[set[int]]]
    least: int
    is_product: bool = False


_CHOICES = {
    "steps": (_Choice(_LOOPS, _all_sizes, 2),),
    "entries": (_Choice(_LOOPS, _sizes_of_products, _WORTH, is_product=True), _Choice(_LOOPS, _sizes_of_loops, _WORTH)),
    "copies": (_Choice({"memref.copy", "func.return"}, _sizes_of_copies, _WORTH),),
}


# -- types and functions ----------------------------------------------------------------------------------------------------


def _text_without(function: func.FuncOp, free: Sequence[set[int]], is_product: bool = False) -> str:
    """The text of a kernel without some sizes; of a product without those of its sums."""
    block = function.regions[0].blocks[0]
    types, memory = list(function.type.inputs), temporary_of(block) if is_product else None
    freed = [_freed(t, f) for t, f in zip(types, free, strict=True)]
    _retype(block, freed)
    own = None if memory is None else memory.results[0].type
    if memory is not None and own is not None:
        memory.results[0].set_type(ir.MemRefType.get(freed[-1].shape, ir.MemRefType(own).element_type))
    text = _text(block)
    _retype(block, types)
    if memory is not None and own is not None:
        memory.results[0].set_type(own)
    return text


def _text(block: ir.Block) -> str:
    text = "".join(op.get_asm(enable_debug_info=False, use_local_scope=True, assume_verified=True) for op in operations(block))
    arguments = ", ".join(str(a.type) for a in block.arguments)
    return f"{arguments}\n{text}"


def _retype(block: ir.Block, types: Iterable[ir.Type]) -> None:
    for argument, type_ in zip(block.arguments, types, strict=True):
        argument.set_type(type_)


def _freed(type_: ir.Type, free: set[int]) -> ir.Type:
    """A type without some sizes, and with them all strides but 1."""
    if not isinstance(type_, ir.MemRefType) or not free:
        return type_
    strides = [1 if stride == 1 else _DYNAMIC_STRIDE for stride in _strides(type_)]
    return _with(type_, [_DYNAMIC if i in free else size for i, size in enumerate(type_.shape)], strides, _DYNAMIC_STRIDE)


def _strides(type_: ir.MemRefType) -> list[int]:
    """Those that a layout names."""
    return list(type_.layout.strides) if isinstance(type_.layout, ir.StridedLayoutAttr) else []


def _with(type_: ir.MemRefType, shape: Sequence[int], strides: Sequence[int], offset: int) -> ir.Type:
    is_strided = isinstance(type_.layout, ir.StridedLayoutAttr)
    layout = ir.StridedLayoutAttr.get(offset, strides) if is_strided else type_.layout
    return ir.MemRefType.get(shape, type_.element_type, layout, type_.memory_space)


def _common(types: Sequence[ir.Type]) -> ir.Type:
    """The type that all of them can be cast to: what is the same in all of them stays."""
    first = types[0]
    if not isinstance(first, ir.MemRefType) or all(t == first for t in types):
        return first
    buffers = _buffers(types)
    shape = [_same(sizes, _DYNAMIC) for sizes in zip(*(t.shape for t in buffers), strict=True)]
    strides = [_same(found, _DYNAMIC_STRIDE) for found in zip(*map(_strides, buffers), strict=True)]
    offsets = [t.layout.offset if isinstance(t.layout, ir.StridedLayoutAttr) else 0 for t in buffers]
    return _with(first, shape, strides, _same(offsets, _DYNAMIC_STRIDE))


def _same(values: Sequence[int], otherwise: int) -> int:
    return values[0] if len(set(values)) == 1 else otherwise


def _merge(group: Sequence[func.FuncOp], calls: Iterable[ir.Operation], target: Target | None) -> None:
    """Makes one kernel of several, and calls of it of their calls; nothing where it has plans for a target that do not fit."""
    kept = group[0]
    before, plans = list(kept.type.inputs), _plans(kept, target)
    if target is None:
        _say_panels(kept)
    types = [_common(each) for each in zip(*(f.type.inputs for f in group), strict=True)]
    _retype(kept.regions[0].blocks[0], types)
    if _plans(kept, target) != plans:
        _retype(kept.regions[0].blocks[0], before)
        return
    _call_one(kept, group[1:], calls)


def _say_panels(kernel: func.FuncOp) -> None:
    """Says of products that their columns are whole panels, as their sizes say no more."""
    for op in operations(kernel.regions[0].blocks[0]):
        panel = panel_of(op) if CONTRACTION in op.attributes else None
        if panel is not None:
            write_multiples(op, panel, 1)


def _merge_products(group: Sequence[func.FuncOp], calls: Iterable[ir.Operation], target: Target | None) -> None:
    """The same of products: all of their sizes become arguments, so that other modules have the same kernel."""
    first = group[0]
    free = _sizes_of_products(first)
    kept = first.operation.clone(ip=ir.InsertionPoint(first)).opview
    assert isinstance(kept, func.FuncOp)
    free_product(kept, [_freed(t, f) for t, f in zip(first.type.inputs, free, strict=True)])
    if _plans(kept, target) != _plans(first, target):
        kept.operation.erase()
        return
    _call_one(kept, group, calls)


def _call_one(kept: func.FuncOp, rest: Sequence[func.FuncOp], calls: Iterable[ir.Operation]) -> None:
    """Has calls call a kernel whose arguments have other types now, and erases the kernels that they called."""
    update_type(kept)
    types = list(kept.type.inputs)
    name = ir.FlatSymbolRefAttr.get(name_of(kept), kept.context)
    for call in calls:
        call.attributes["callee"] = name
        for i, type_ in enumerate(types):
            if call.operands[i].type != type_:
                with ir.InsertionPoint(call), call.location:
                    call.operands[i] = ir.Operation.create("memref.cast", [type_], [call.operands[i]]).result
    for function in rest:
        function.operation.erase()


def _plans(function: func.FuncOp, target: Target | None) -> list[str] | None:
    """The plans of a kernel, None where one does not fit: blocks of a product, for one, need to know its depth."""
    if target is None:
        return []
    try:
        return [str(plan) for plan in (*plans_of_contractions(function, target), *plans_of_loops(function, target))]
    except RelaxError:
        return None
