"""Converts functions of the torch dialect to relax; every op the map lacks is reported, all of them in one error.

::

    func.func @main(%arg0: !torch.vtensor<[?,64],f32>, %arg1: !torch.vtensor<[8,64],f32> {relax.kind = "param", ...}) {
      %n = torch.symbolic_int "batch" {min_val = 1, max_val = 32} : !torch.int
      torch.bind_symbolic_shape %arg0, [%n], affine_map<()[s0] -> (s0, 64)>
      %0 = torch.aten.linear %arg0, %arg1, %none

    func.func @main(%arg0: tensor<?x64xf32, {sym = ["batch"]}>, %arg1: tensor<8x64xf32> {relax.kind = "param", ...})
        attributes {relax.num_input = 1, relax.symbol_ranges = {batch = [1, 32]}} {
      %0 = "relax.permute_dims"(%arg1) {axes = array<i64: 1, 0>}
      %1 = "relax.matmul"(%arg0, %0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..dialect.bindings import func, ir
from ..dialect.errors import RelaxError
from ..dialect.functions import NAME, NUM_INPUT, body_of, functions, name_of, set_num_input, update_type
from ..dialect.struct_info import TensorInfo
from ..dialect.symbolic import Dim
from . import torch_ops
from .emit import full, info_of, match
from .torch_op import HANDLERS, KIND, TorchOp, Values, number_dtype, op_key
from .torch_types import is_number, is_tensor_list, tensor_info

__all__ = ["SYMBOL_RANGES", "convert_module"]

torch_ops.load()

#: Function attribute: smallest and largest value of each symbolic dimension, ``{seq = [1, 512]}``; no second: no bound.
SYMBOL_RANGES = "relax.symbol_ranges"

_WEIGHTS = ("param", "buffer", "constant")
#: How many places of one unsupported operator an error lists.
_PLACES = 5


@dataclass(frozen=True)
class _Problem:
    operator: str
    reason: str
    place: str
    path: str


def convert_module(source: ir.Module) -> ir.Module:
    """The functions of a torch-dialect module as a relax module in the same context.

    Weights that nothing reads are left out.

    Raises:
        RelaxError: listing every operator that has no relax form, with count, reason, source lines and module paths.
    """
    problems: list[_Problem] = []
    with source.context, source.operation.location:
        result = ir.Module.create()
        with ir.InsertionPoint(result.body):
            for function in functions(source):
                _Function(function, problems).convert()
    if problems:
        raise _error(problems)
    return result


class _Function:
    """Converts one function."""

    def __init__(self, source: func.FuncOp, problems: list[_Problem]):
        block = body_of(source)
        if block is None:
            raise RelaxError(f"expected a function with a body, got the declaration @{name_of(source)}", source.location)
        self.source = source
        self.block = block
        self.operations = [op.operation for op in block.operations]
        self.problems = problems
        self.values = Values()

    def convert(self) -> None:
        self._read_shapes()
        self.target = func.FuncOp(name_of(self.source), ([], []), loc=self.source.location)
        with self.source.location:
            block = ir.Block.create_at_start(self.target.regions[0], [self._argument_type(a) for a in self.block.arguments])
        self.values.tensors.update(zip(self.block.arguments, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for op in self.operations:
                self._convert(op)
        _drop_unused(block)
        self._set_attributes(block)
        update_type(self.target)

    def _read_shapes(self) -> None:
        for op in self.operations:
            if op.name == "torch.symbolic_int":
                self.values.bind_symbol(op)
            elif op.name == "torch.bind_symbolic_shape":
                self.values.bind_shape(op)

    def _argument_type(self, argument: ir.BlockArgument) -> ir.Type:
        info = self.values.declared(argument)
        if info is None:
            raise RelaxError(f"expected arguments that are value tensors, got {argument.type}", self.source.location)
        return info.type

    def _convert(self, op: ir.Operation) -> None:
        with op.location:
            if op.name == "func.return":
                func.ReturnOp([self._returned(v) for v in op.operands])
            elif not _is_only_for_import(op):
                self._convert_op(op)

    def _convert_op(self, op: ir.Operation) -> None:
        try:
            results = self._handled(op)
        except RelaxError as error:
            self._report(op, error.args[0])
            results = [_stand_in(r.type, self.values.declared(r)) for r in op.results]
        for torch_value, value in zip(op.results, results, strict=True):
            self._bind(torch_value, value)

    def _handled(self, op: ir.Operation) -> list[ir.Value | list[ir.Value | None] | None]:
        torch_op = TorchOp(op, self.values)
        handler = HANDLERS.get(torch_op.key)
        if handler is None:
            reason = op.attributes["relax.reason"] if "relax.reason" in op.attributes else None
            raise RelaxError(ir.StringAttr(reason).value if reason else "no relax form")
        found = handler(torch_op)
        values = [found] if isinstance(found, ir.Value) else list(found)
        if len(op.results) == 1 and is_tensor_list(op.results[0].type):
            return [values]
        return [self._checked(torch_op, i, v) for i, v in enumerate(values)]

    def _checked(self, op: TorchOp, index: int, value: ir.Value | None) -> ir.Value | None:
        declared = op.results[index]
        if value is None or declared is None:
            if any(True for _ in op.op.results[index].uses):
                raise RelaxError(f"expected result {index} to be unused, it has no relax form")
            return None
        return _as_declared(value, declared)

    def _bind(self, torch_value: ir.Value, value: ir.Value | list[ir.Value | None] | None) -> None:
        if isinstance(value, list):
            self.values.lists[torch_value] = value
        elif value is not None:
            self.values.tensors[torch_value] = value

    def _returned(self, value: ir.Value) -> ir.Value:
        if value in self.values.tensors:
            return self.values.tensors[value]
        try:
            number = self.values.number(value)
            return full(number, number_dtype(number))
        except RelaxError as error:
            owner = None if isinstance(value, ir.BlockArgument) else value.owner
            if owner is None or not self.problems:
                raise RelaxError(f"cannot return {value.type}: {error.args[0]}", self.source.location) from None
            return full(0, number_dtype(0))

    def _report(self, op: ir.Operation, reason: str) -> None:
        place, path = _place(op.location)
        self.problems.append(_Problem(op_key(op), reason, place, path))

    def _set_attributes(self, block: ir.Block) -> None:
        given = _dictionaries(self.source, "arg_attrs", len(block.arguments))
        kept = [i for i, a in enumerate(block.arguments) if _kind(given[i]) not in _WEIGHTS or any(True for _ in a.uses)]
        for i in reversed(range(len(given))):
            if i not in set(kept):
                block.erase_argument(i)
        self.target.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(given[i]) for i in kept])
        if "res_attrs" in self.source.attributes:
            self.target.attributes["res_attrs"] = self.source.attributes["res_attrs"]
        if NUM_INPUT in self.source.attributes or any(KIND in given[i] for i in kept):
            update_type(self.target)
            set_num_input(self.target, sum(_kind(given[i]) not in _WEIGHTS for i in kept))
        self._set_ranges(block)

    def _set_ranges(self, block: ir.Block) -> None:
        names = {n for a in block.arguments for d in info_of(a).shape if d is not None and not isinstance(d, int) for n in d.names}
        i64 = ir.IntegerType.get_signless(64)
        ranges = {
            name: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, v) for v in self.values.ranges[name] if v is not None])
            for name in sorted(names & self.values.ranges.keys())
        }
        if ranges:
            self.target.attributes[SYMBOL_RANGES] = ir.DictAttr.get(ranges)


def _is_only_for_import(op: ir.Operation) -> bool:
    """Whether the op makes only numbers, which are read when an op needs them, or says something about shapes."""
    if op.name in ("torch.symbolic_int", "torch.bind_symbolic_shape"):
        return True
    if op.name == "torch.prim.ListConstruct":
        return True
    return len(op.results) > 0 and all(is_number(r.type) for r in op.results)


def _as_declared(value: ir.Value, declared: TensorInfo) -> ir.Value:
    """The value under torch's type: where only torch knows a size, or writes it in another way, a match_cast says so."""
    info = info_of(value)
    fits = info.dtype == declared.dtype and info.rank == declared.rank
    if not fits or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(info.shape, declared.shape, strict=True)):
        raise RelaxError(f"expected a result of {declared}, got {info}")
    shape = [_more_exact(a, b) for a, b in zip(info.shape, declared.shape, strict=True)]
    return value if list(info.shape) == shape else match(value, info.with_(shape=shape))


def _more_exact(inferred: Dim, declared: Dim) -> Dim:
    return inferred if declared is None or isinstance(inferred, int) else declared


def _stand_in(type_: ir.Type, declared: TensorInfo | None) -> ir.Value | list[ir.Value | None] | None:
    """A value of the right type for the result of an op that was reported: conversion goes on, to find all such ops."""
    if declared is None:
        return [] if is_tensor_list(type_) else None
    op = ir.Operation.create("builtin.unrealized_conversion_cast", results=[declared.type])
    return op.results[0]


def _drop_unused(block: ir.Block) -> None:
    """Erases what nothing uses: all ops made here are pure."""
    for op in reversed([op.operation for op in block.operations]):
        if len(op.results) and not any(True for r in op.results for _ in r.uses):
            op.erase()


def _dictionaries(function: func.FuncOp, key: str, count: int) -> list[dict[str, ir.Attribute]]:
    if key not in function.attributes:
        return [{} for _ in range(count)]
    return [{e.name: e.attr for e in ir.DictAttr(item)} for item in ir.ArrayAttr(function.attributes[key])]


def _kind(attributes: dict[str, ir.Attribute]) -> str:
    return ir.StringAttr(attributes[KIND]).value if KIND in attributes else "input"


def _place(location: ir.Location) -> tuple[str, str]:
    """``file:line`` and the module path of a location that the importer made; empty where there is none."""
    if isinstance(location, ir.NameLoc):
        return _place(location.child_loc)[0], location.name_str
    if isinstance(location, ir.FileLineColLoc):
        return f"{location.filename}:{location.start_line}", ""
    return "", ""


def _error(problems: Sequence[_Problem]) -> RelaxError:
    groups: dict[tuple[str, str], list[_Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.operator, problem.reason), []).append(problem)
    lines = [f"expected operators that have a relax form, got {len(groups)} that cannot be imported"]
    for (name, reason), found in groups.items():
        lines.append(f"  {len(found)} x {name}: {reason}")
        places = list(dict.fromkeys((p.place, p.path) for p in found))
        lines += [f"      at {place or 'an unknown line'}" + (f" in {path}" if path else "") for place, path in places[:_PLACES]]
        if len(places) > _PLACES:
            lines.append(f"      and {len(places) - _PLACES} more")
    return RelaxError("\n".join(lines), problems[0].place or None)
