"""Private functions in destination-passing style, one per distinct content, called where their result is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...dialect.bindings import func, ir
from ...dialect.functions import functions, name_of
from .builder import Builder, Size

__all__ = ["KERNEL", "WRITABLE", "call_kernel", "loop"]

#: Marks a function that later passes take as one kernel.
KERNEL = "relax.kernel"
WRITABLE = "bufferization.writable"


def call_kernel(
    b: Builder,
    stem: str,
    inputs: Sequence[ir.Value],
    out: ir.Value,
    key: tuple[str, ...],
    body: Callable[[Sequence[ir.Value]], ir.Value],
    scratch: Sequence[ir.Value] = (),
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
    """
    types = [v.type for v in (*inputs, *scratch, out)]
    full_key = (stem, *map(str, types), *key)
    name = b.private_functions.get(full_key)
    if name is None:
        name = b.private_functions[full_key] = _unused_name(b, stem)
        _define(b, name, types, len(inputs), body)
    return func.CallOp([out.type], ir.FlatSymbolRefAttr.get(name), [*inputs, *scratch, out]).results[0]


def _define(
    b: Builder, name: str, types: Sequence[ir.Type], inputs: int, body: Callable[[Sequence[ir.Value]], ir.Value]
) -> None:
    with ir.InsertionPoint(b.module.regions[0].blocks[0]):
        function = func.FuncOp(name, (types, [types[-1]]), visibility="private")
    plain, writable = ir.DictAttr.get({}), ir.DictAttr.get({WRITABLE: ir.BoolAttr.get(True)})
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([plain] * inputs + [writable] * (len(types) - inputs))
    function.attributes["no_inline"] = ir.UnitAttr.get()
    function.attributes[KERNEL] = ir.UnitAttr.get()
    block = function.add_entry_block(arg_locs=[function.location] * len(types))
    with ir.InsertionPoint(block), b.symbols.function():
        func.ReturnOp([body(list(block.arguments))])


def _unused_name(b: Builder, stem: str) -> str:
    if not b.private_names:
        b.private_names.update(name_of(f) for f in functions(b.module))
    number = len(b.private_functions)
    while f"{stem}_{number}" in b.private_names:
        number += 1
    b.private_names.add(f"{stem}_{number}")
    return f"{stem}_{number}"


def loop(
    b: Builder, size: Size, carried: Sequence[ir.Value], body: Callable[..., Sequence[ir.Value]], step: int = 1
) -> list[ir.Value]:  # fmt: skip
    """``scf.for`` from 0 to a size; the body gets the index and the carried values and gives the next ones."""
    types = [v.type for v in carried]
    bounds = [b.number(0), b.as_index(size), b.number(step)]
    op = ir.Operation.create("scf.for", types, [*bounds, *carried], regions=1)
    block = ir.Block.create_at_start(op.regions[0], [ir.IndexType.get(), *types], [op.location] * (1 + len(types)))
    with ir.InsertionPoint(block), b.symbols.scope():
        ir.Operation.create("scf.yield", [], list(body(*block.arguments)))
    return list(op.results)
