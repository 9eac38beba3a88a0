"""Proves that lowered code stays inside of its tensors, or makes it check that when it is called; refuses the rest.

Linalg that torch-mlir made of one operator comes in. What sizes decide is checked once per call, with ``cf.assert``::

    %e = tensor.empty(%n) : tensor<?xf32>
    %0 = linalg.generic {(i) -> (2 * i), (i) -> (i)} ins(%x : tensor<?xf32>) outs(%e)

    %e = tensor.empty(%n) : tensor<?xf32>
    %ok = ...          // the last i, times 2, is below the size of %x
    cf.assert %ok, "expected sizes that aten.x takes"
    %0 = linalg.generic ...

An element that is read at a computed place must lie inside for all values that the loops take; nothing is checked per element.
"""

from __future__ import annotations

import functools

from ..dialect.bindings import ir, passmanager
from ..dialect.errors import RelaxError
from ..dialect.traversal import nested_operations, operations
from ..lowering.index_intervals import index_interval

__all__ = ["make_safe"]

#: Upstream's checks of every structured op, slice and cast; those that are always true are folded away.
_VERIFY = "builtin.module(generate-runtime-verification,canonicalize,cse,int-range-optimizations,canonicalize,cse)"
_CLEAN = "builtin.module(canonicalize,cse)"

_ALLOWED = frozenset(
    {"affine.apply", "affine.max", "affine.min", "func.func", "func.return", "scf.if", "scf.yield", "cf.assert"}
    | {f"linalg.{n}" for n in ("broadcast", "fill", "generic", "index", "transpose", "yield")}
    | {f"tensor.{n}" for n in ("cast", "collapse_shape", "dim", "empty", "expand_shape", "extract", "extract_slice",
                               "from_elements", "insert_slice", "splat")}
)  # fmt: skip
_ALLOWED_DIALECTS = ("arith.", "math.")

_DIVISIONS = frozenset(
    f"arith.{n}" for n in ("ceildivsi", "ceildivui", "divsi", "divui", "floordivsi", "remsi", "remui")
)  # fmt: skip

#: What upstream's checks compute with, in the dialect that everything here lowers.
_INDEX_TO_ARITH = {
    "index.add": "addi", "index.sub": "subi", "index.mul": "muli", "index.mins": "minsi", "index.maxs": "maxsi",
}  # fmt: skip
#: Has no effect and reads no element, so a check may come after it.
_SIZE_ARITHMETIC = ("arith.", "affine.", "tensor.dim")

_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def make_safe(module: ir.Module, operator: str) -> None:
    """Adds the checks to the functions of a module, in place.

    Args:
        module: functions of linalg on tensors.
        operator: what they were made of, for the checks' messages.

    Raises:
        RelaxError: something is neither proven nor can be checked before it happens.
    """
    for op in list(nested_operations(module.operation)):
        if op.name == "tensor.expand_shape":
            _check_expanded(op)
        elif op.name == "tensor.empty":
            _check_not_negative(op)
    for op in nested_operations(module.operation):
        _require(op)
    passmanager.PassManager.parse(_VERIFY).run(module.operation)
    for op in list(nested_operations(module.operation)):
        if op.name == "cf.assert" and _loop_around(op) is not None:
            op.erase()  # of a tensor.extract that is proven
    _hoist_asserts(module, f"expected sizes that {operator} takes")
    passmanager.PassManager.parse(_CLEAN).run(module.operation)
    if any(op.name == "cf.assert" and _is_false(op.operands[0]) for op in nested_operations(module.operation)):
        raise RelaxError("a lowering that reads or writes outside of a tensor")


def _require(op: ir.Operation) -> None:
    if op.name not in _ALLOWED and not op.name.startswith(_ALLOWED_DIALECTS):
        raise RelaxError(f"a lowering with {op.name}, which is not known to be safe")
    if op.name == "cf.assert" and _loop_around(op) is not None:
        raise RelaxError("a lowering that checks the contents of tensors")
    if op.name in _DIVISIONS and not _is_positive_constant(op.operands[1]):
        raise RelaxError("a lowering that divides integers by a number that may be zero")
    if op.name == "tensor.extract":
        _require_inside(op)
    if op.name in ("tensor.extract_slice", "tensor.insert_slice") and _loop_around(op) is not None:
        raise RelaxError(f"a lowering with {op.name} in a loop")


def _require_inside(op: ir.Operation) -> None:
    """Raises RelaxError unless an element lies inside of its tensor in every iteration."""
    tensor, *indices = op.operands
    shape = ir.RankedTensorType(tensor.type).shape
    loop = _loop_around(op)
    for size, index in zip(shape, indices, strict=True):
        interval = index_interval(index, loop)
        if interval is None or size == ir.ShapedType.get_dynamic_size() or not 0 <= interval[0] <= interval[1] < size:
            raise RelaxError("a lowering that reads elements at computed places, which may lie outside of the tensor")


def _loop_around(op: ir.Operation) -> ir.Operation | None:
    """The linalg op in whose body an op is."""
    parent = op.parent
    while parent is not None and parent.name != "func.func":
        if parent.name.startswith("linalg."):
            return parent.operation
        parent = parent.operation.parent
    return None


def _is_positive_constant(value: ir.Value) -> bool:
    owner = None if isinstance(value, ir.BlockArgument) else value.owner
    return owner is not None and owner.name == "arith.constant" and ir.IntegerAttr(owner.attributes["value"]).value > 0


def _check_expanded(op: ir.Operation) -> None:
    """A dimension taken apart has as many elements as its parts, which upstream does not check where sizes are dynamic."""
    source, *_ = op.operands
    sizes = _static_or(op, "static_output_shape", list(op.operands)[1:])
    groups = [[ir.IntegerAttr(i).value for i in ir.ArrayAttr(g)] for g in ir.ArrayAttr(op.attributes["reassociation"])]
    with ir.InsertionPoint(op), op.location:
        for axis, group in enumerate(groups):
            parts = [sizes[i] for i in group]
            if len(parts) > 1 and any(isinstance(p, ir.Value) for p in parts):
                total = _index_constant(1)
                for part in parts:
                    total = _arith("muli", total, part if isinstance(part, ir.Value) else _index_constant(part))
                    _assert(_compare("sge", part if isinstance(part, ir.Value) else _index_constant(part), _index_constant(0)))
                _assert(_compare("eq", total, _dim(source, axis)))


def _check_not_negative(op: ir.Operation) -> None:
    with ir.InsertionPoint(op), op.location:
        for size in op.operands:
            _assert(_compare("sge", size, _index_constant(0)))


def _static_or(op: ir.Operation, name: str, dynamic: list[ir.Value]) -> list[int | ir.Value]:
    """Sizes of an op that has the constant ones as an attribute and the others as operands."""
    rest = iter(dynamic)
    sizes = ir.DenseI64ArrayAttr(op.attributes[name])
    return [next(rest) if s == ir.ShapedType.get_dynamic_size() else s for s in sizes]


def _hoist_asserts(module: ir.Module, message: str) -> None:
    """Takes upstream's checks out of the branches that hold them, and writes them with :mod:`arith` alone."""
    branches = [op for op in nested_operations(module.operation) if op.name == "scf.if" and _is_of_checks(op)]
    for branch in branches[::-1]:
        _dissolve(branch)
    for op in list(nested_operations(module.operation)):
        if op.name.startswith("index."):
            _rewrite_index(op)
    for function in [op for op in nested_operations(module.operation) if op.name == "func.func"]:
        _merge_asserts(operations(function.regions[0].blocks[0]), message)


def _merge_asserts(block: list[ir.Operation], message: str) -> None:
    """One check in place of all that nothing but arithmetic on sizes lies between."""
    pending: list[ir.Operation] = []
    for op in block:
        if op.name == "cf.assert":
            pending.append(op)
        elif pending and not op.name.startswith(_SIZE_ARITHMETIC):
            _assert_all(pending, message)
            pending = []


def _assert_all(asserts: list[ir.Operation], message: str) -> None:
    last = asserts[-1]
    with ir.InsertionPoint(last), last.location:
        _assert(functools.reduce(functools.partial(_arith, "andi"), [a.operands[0] for a in asserts]), message)
    for op in asserts:
        op.erase()


def _is_of_checks(branch: ir.Operation) -> bool:
    return not len(branch.results) and any(op.name == "cf.assert" for op in nested_operations(branch))


def _dissolve(branch: ir.Operation) -> None:
    """``if p { assert q }`` as ``assert not p or q``; what computes q is arithmetic on sizes, which may always run."""
    condition = branch.operands[0]
    for op in operations(branch.regions[0].blocks[0]):
        if op.name == "scf.yield":
            continue
        op.move_before(branch)
        if op.name == "cf.assert":
            with ir.InsertionPoint(op), op.location:
                true = _constant(ir.IntegerType.get_signless(1), 1)
                op.operands[0] = _arith("ori", op.operands[0], _arith("xori", condition, true))
    branch.erase()


def _rewrite_index(op: ir.Operation) -> None:
    with ir.InsertionPoint(op), op.location:
        if op.name == "index.constant":
            new = _index_constant(ir.IntegerAttr(op.attributes["value"]).value)
        elif op.name == "index.cmp":
            predicate = str(op.attributes["pred"]).rpartition(" ")[2].rstrip(">").rpartition("<")[2]
            new = _compare(predicate, *op.operands)
        elif op.name in _INDEX_TO_ARITH:
            new = _arith(_INDEX_TO_ARITH[op.name], *op.operands)
        else:
            raise RelaxError(f"a lowering with {op.name}, which is not known to be safe")
    op.results[0].replace_all_uses_with(new)
    op.erase()


def _constant(type_: ir.Type, value: int) -> ir.Value:
    return ir.Operation.create("arith.constant", [type_], attributes={"value": ir.IntegerAttr.get(type_, value)}).result


def _index_constant(value: int) -> ir.Value:
    return _constant(ir.IndexType.get(), value)


def _arith(name: str, left: ir.Value, right: ir.Value) -> ir.Value:
    return ir.Operation.create(f"arith.{name}", [left.type], [left, right]).result


def _compare(predicate: str, left: ir.Value, right: ir.Value) -> ir.Value:
    i64, i1 = ir.IntegerType.get_signless(64), ir.IntegerType.get_signless(1)
    number = ir.IntegerAttr.get(i64, _PREDICATES.index(predicate))
    return ir.Operation.create("arith.cmpi", [i1], [left, right], {"predicate": number}).result


def _dim(tensor: ir.Value, axis: int) -> ir.Value:
    return ir.Operation.create("tensor.dim", [ir.IndexType.get()], [tensor, _index_constant(axis)]).result


def _assert(condition: ir.Value, message: str = "") -> None:
    ir.Operation.create("cf.assert", [], [condition], {"msg": ir.StringAttr.get(message)})


def _is_false(condition: ir.Value) -> bool:
    owner = None if isinstance(condition, ir.BlockArgument) else condition.owner
    return owner is not None and owner.name == "arith.constant" and not ir.IntegerAttr(owner.attributes["value"]).value
