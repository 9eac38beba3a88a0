"""Private functions in destination-passing style, one per distinct content, called where their result is needed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from ...dialect.bindings import func, ir
from ...dialect.functions import functions, name_of
from ..kernel_function import mark_kernel, mark_writable
from ..marks import SHARED, STACK
from .builder import LinalgBuilder, Size, tensor_type
from .scalar import Scalar, emit

__all__ = [
    "call_kernel",
    "call_kernel_of_results",
    "choose",
    "choose_all",
    "flat_loop",
    "local",
    "loop",
    "nested_loop",
    "unless_empty",
]


def call_kernel(
    b: LinalgBuilder,
    stem: str,
    inputs: Sequence[ir.Value],
    out: ir.Value,
    key: tuple[str, ...],
    body: Callable[[Sequence[ir.Value]], ir.Value],
    scratch: Sequence[ir.Value] = (),
    stack: bool = False,
    marks: Mapping[str, ir.Attribute] | None = None,
) -> ir.Value:
    """Calls the function ``stem_N`` of inputs, scratch and destination; defines it when there is none with this key.

    Args:
        b: the builder, at the call.
        stem: what the function is called.
        inputs: tensors that it reads.
        out: the tensor whose elements it may overwrite; the result has its type.
        key: what tells the function apart besides its name and types.
        body: given the function's arguments, emits its body and returns its result.
        scratch: tensors that it works in; a kernel allocates nothing.
        stack: whether the body has tensors that are :func:`local`.
        marks: attributes of the function, which follow from the key.
    """
    function = lambda given: [body(given)]  # noqa: E731
    return call_kernel_of_results(b, stem, [*inputs], [out], key, function, scratch, stack, marks)[0]


def call_kernel_of_results(
    b: LinalgBuilder,
    stem: str,
    inputs: Sequence[ir.Value],
    outs: Sequence[ir.Value],
    key: tuple[str, ...],
    body: Callable[[Sequence[ir.Value]], Sequence[ir.Value]],
    scratch: Sequence[ir.Value] = (),
    stack: bool = False,
    marks: Mapping[str, ir.Attribute] | None = None,
) -> list[ir.Value]:
    """The same with several destinations, each of which has a result."""
    types = [v.type for v in (*inputs, *scratch, *outs)]
    full_key = (stem, *map(str, types), *key)
    name = b.private_functions.get(full_key)
    if name is None:
        name = b.private_functions[full_key] = _unused_name(b, stem)
        function = _define(b, name, types, len(inputs), len(outs), body, stack)
        for mark, value in (marks or {}).items():
            function.attributes[mark] = value
    callee = ir.FlatSymbolRefAttr.get(name)
    return list(func.CallOp([o.type for o in outs], callee, [*inputs, *scratch, *outs]).results)


def _define(
    b: LinalgBuilder,
    name: str,
    types: Sequence[ir.Type],
    inputs: int,
    outs: int,
    body: Callable[[Sequence[ir.Value]], Sequence[ir.Value]],
    stack: bool,
) -> func.FuncOp:
    with ir.InsertionPoint(b.module.regions[0].blocks[0]):
        function = func.FuncOp(name, (types, types[len(types) - outs :]), visibility="private")
    mark_writable(function, [None] * inputs + [True] * (len(types) - inputs))
    function.attributes["no_inline"] = ir.UnitAttr.get()
    mark_kernel(function)
    if stack:
        function.attributes[STACK] = ir.UnitAttr.get()
    block = function.add_entry_block(arg_locs=[function.location] * len(types))
    with ir.InsertionPoint(block), b.symbols.function():
        func.ReturnOp(list(body(list(block.arguments))))
    return function


def _unused_name(b: LinalgBuilder, stem: str) -> str:
    if not b.private_names:
        b.private_names.update(name_of(f) for f in functions(b.module))
    number = len(b.private_functions)
    while f"{stem}_{number}" in b.private_names:
        number += 1
    b.private_names.add(f"{stem}_{number}")
    return f"{stem}_{number}"


def loop(
    b: LinalgBuilder, size: Size, carried: Sequence[ir.Value], body: Callable[..., Sequence[ir.Value]], step: int = 1
) -> list[ir.Value]:  # fmt: skip
    """``scf.for`` from 0 to a size; the body gets the index and the carried values and gives the next ones."""
    types = [v.type for v in carried]
    bounds = [b.number(0), b.as_index(size), b.number(step)]
    op = ir.Operation.create("scf.for", types, [*bounds, *carried], regions=1)
    block = ir.Block.create_at_start(op.regions[0], [ir.IndexType.get(), *types], [op.location] * (1 + len(types)))
    with ir.InsertionPoint(block), b.symbols.scope():
        ir.Operation.create("scf.yield", [], list(body(*block.arguments)))
    return list(op.results)


def nested_loop(
    b: LinalgBuilder, sizes: Sequence[Size], carried: ir.Value, body: Callable[[list[Size], ir.Value], ir.Value]
) -> ir.Value:
    """A loop for each of the sizes, the last one innermost; the body gets all indices and the carried value."""

    def nest(at: list[Size], value: ir.Value) -> ir.Value:
        if len(at) == len(sizes):
            return body(at, value)
        return loop(b, sizes[len(at)], [value], lambda i, v: [nest([*at, i], v)])[0]

    return nest([], carried)


def flat_loop(
    b: LinalgBuilder,
    sizes: Sequence[Size],
    carried: ir.Value,
    body: Callable[[list[Size], ir.Value], ir.Value],
    shared: Sequence[tuple[int, int]] = (),
) -> ir.Value:
    """One loop over all indices below the sizes, the last one fastest: few iterations of each still are many together.

    ``shared`` is what :data:`~relaxir.lowering.marks.SHARED` says of it, if anything.
    """

    def indices(number: ir.Value) -> list[Size]:
        found: list[Size] = []
        rest: Size = number
        outermost = next((i for i, size in enumerate(sizes) if size != 1), 0)
        for axis in range(len(sizes) - 1, -1, -1):
            if sizes[axis] == 1 or axis <= outermost:
                found.append(rest if axis == outermost else 0)
                continue
            quotient = b.arith("divsi", rest, sizes[axis])
            found.append(b.arith("subi", rest, b.arith("muli", quotient, sizes[axis])))
            rest = quotient
        return found[::-1]

    (result,) = loop(b, b.product(sizes), [carried], lambda i, value: [body(indices(i), value)])
    if shared:
        result.owner.attributes[SHARED] = ir.DenseI64ArrayAttr.get([n for pair in shared for n in pair])
    return result


def choose(
    b: LinalgBuilder, condition: ir.Value, type_: ir.Type, then: Callable[[], ir.Value], otherwise: Callable[[], ir.Value]
) -> ir.Value:  # fmt: skip
    """``scf.if`` with one result of that type."""
    return choose_all(b, condition, [type_], lambda: [then()], lambda: [otherwise()])[0]


def unless_empty(
    b: LinalgBuilder, sizes: Sequence[Size], type_: ir.Type, then: Callable[[], ir.Value], otherwise: Callable[[], ir.Value]
) -> ir.Value:  # fmt: skip
    """What reads elements of a tensor where it has some, by sizes that may be 0: it may not even read what it ignores."""
    if not sizes:
        return then()
    if 0 in sizes:
        return otherwise()
    some = [Scalar(b.as_index(size)).compare("gt", 0) for size in sizes]
    return choose(b, functools.reduce(lambda p, q: p & q, some).value, type_, then, otherwise)


def choose_all(
    b: LinalgBuilder,
    condition: ir.Value,
    types: Sequence[ir.Type],
    then: Callable[[], Sequence[ir.Value]],
    otherwise: Callable[[], Sequence[ir.Value]],
) -> list[ir.Value]:
    """``scf.if`` with results of those types."""
    op = ir.Operation.create("scf.if", list(types), [condition], regions=2)
    for region, branch in zip(op.regions, (then, otherwise), strict=True):
        with ir.InsertionPoint(ir.Block.create_at_start(region, [])), b.symbols.scope():
            ir.Operation.create("scf.yield", [], list(branch()))
    return list(op.results)


def local(sizes: Sequence[int], element: ir.Type) -> ir.Value:
    """A tensor for one iteration of a kernel's loop, on the stack of the thread that runs it."""
    segments = ir.DenseI32ArrayAttr.get([0, 0, 0])
    return emit("bufferization.alloc_tensor", tensor_type(sizes, element), operandSegmentSizes=segments)
