"""A torch op without a relax form as a call of a private function that torch-mlir's own passes lower to linalg.

::

    %2 = torch.aten.atan2 %0, %1 : !torch.vtensor<[?,8],f32>, ... -> !torch.vtensor<[?,8],f32>

    %2 = tensor.cast %0 : tensor<?x8xf32, {sym = ["n"]}> to tensor<?x8xf32>
    %4 = call @aten_atan2_0(%2, %3) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %5 = "relax.match_cast"(%4) : (tensor<?x8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>

    func.func private @aten_atan2_0(%arg0: tensor<?x8xf32>, %arg1: tensor<?x8xf32>) -> tensor<?x8xf32> {
      %1 = linalg.generic {...} ins(%arg0, %arg1) outs(%0) { math.atan2 }

Equal functions become one. Such a module compiles; the reference interpreter knows no linalg and raises a RelaxError. Only
operators of :mod:`.outlined_operators` go this way; torch-mlir runs in :mod:`.outline_process`; :mod:`.outline_checks` keeps
what it makes inside of its tensors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..dialect.bindings import func, ir
from ..dialect.errors import RelaxError
from ..dialect.traversal import clone_with, nested_operations
from .outline_process import lowering
from .outlined_operators import untrusted
from .torch_lowering import STRICT
from .torch_op import TorchOp
from .torch_types import is_number, tensor_info
from .torch_values import Values

__all__ = ["Outliner", "UntrustedError"]

# Truth values are left to the op map: foreign code would keep them in memory as i1, which the kernels do not read.
_DTYPES = ("i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")


class UntrustedError(RelaxError):
    """torch-mlir's lowering of an operator is not known to agree with torch."""


class Outliner:
    """The outlined functions of one module in the making.

    Attributes:
        module: where the functions are put.
    """

    def __init__(self, module: ir.Module):
        self.module = module
        self._by_text: dict[str, func.FuncOp | None] = {}
        self._count = 0

    def call(self, op: TorchOp) -> list[ir.Value] | None:
        """Emits the call of a function that does what the op does, at the current insertion point.

        Returns:
            The call's results, on plain tensors; None when torch-mlir has no lowering of the op to linalg.

        Raises:
            RelaxError: the lowering is not trusted, not safe, or does not come to an end.
        """
        made = _OneOp.of(op)
        if made is None:
            return None
        reason = untrusted(op.key, made.dtypes, made.is_static)
        if reason is not None:
            raise UntrustedError(reason)
        function = self._function(made, op.key)
        if function is None:
            return None
        signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        operands = [op.values.tensors[v] for v in made.tensors]
        plain = [_cast(x, type_) for x, type_ in zip(operands, signature.inputs, strict=True)]
        return list(func.CallOp(function, plain).results)

    def _function(self, made: _OneOp, key: str) -> func.FuncOp | None:
        """The function of a text, which is lowered once."""
        if made.text not in self._by_text:
            text = lowering.lowered_text(made.text, key)
            self._by_text[made.text] = None if text is None else self._added(text, key)
        return self._by_text[made.text]

    def _added(self, text: str, key: str) -> func.FuncOp:
        module = ir.Module.parse(text)  # kept: its ops would go with it
        (lowered,) = module.body.operations
        with ir.InsertionPoint(self.module.body):
            function = lowered.operation.clone()
        assert isinstance(function, func.FuncOp)
        here = ir.Location.current
        for op in (function.operation, *nested_operations(function.operation)):
            op.location = here
        function.attributes["sym_name"] = ir.StringAttr.get(f"{re.sub(r'[^0-9a-zA-Z]+', '_', key)}_{self._count}")
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        self._count += 1
        return function


@dataclass(frozen=True)
class _OneOp:
    """A module of one function that holds one torch op, and the numbers and lists it reads.

    Attributes:
        tensors: the torch tensors that the function takes.
        text: the module, without locations.
        dtypes: those of all operands and results.
        is_static: whether the sizes of all of them are known.
    """

    tensors: list[ir.Value]
    text: str
    dtypes: frozenset[str]
    is_static: bool

    @staticmethod
    def of(op: TorchOp) -> _OneOp | None:
        """The module of an op; None when the op takes or makes what such a function cannot."""
        # torch-mlir's importer carries a torch.operator along without knowing what it is.
        if op.op.name == "torch.operator" or not all(_is_plain(r) for r in op.op.results):
            return None
        leaves = _leaves(op)
        if leaves is None or not op.results:
            return None
        module = _one_op_module(op.op, *leaves)
        infos = [info for v in (*leaves[0], *op.op.results) if (info := tensor_info(v.type)) is not None]
        dtypes = frozenset(str(info.dtype) for info in infos)
        is_static = all(None not in info.shape for info in infos)
        return _OneOp(leaves[0], module.operation.get_asm(enable_debug_info=False), dtypes, is_static)


def _leaves(op: TorchOp) -> tuple[list[ir.Value], list[ir.Operation]] | None:
    """The tensors that an op reads, and the ops in program order that make its numbers and lists of them."""
    tensors: dict[ir.Value, None] = {}
    copied: dict[ir.Value, ir.Operation] = {}

    def collect(value: ir.Value) -> bool:
        if value in op.values.tensors:
            tensors[value] = None
            return _is_plain(value)
        if isinstance(value, ir.BlockArgument) or not _is_copied(value, op.values):
            return False
        known = value in copied or all([collect(v) for v in value.owner.operands])
        copied[value] = value.owner.operation
        return known

    return (list(tensors), list(copied.values())) if all([collect(v) for v in op.operands]) else None


def _one_op_module(op: ir.Operation, tensors: list[ir.Value], copied: list[ir.Operation]) -> ir.Module:
    module = ir.Module.create()
    types = [v.type for v in tensors], [r.type for r in op.results]
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("main", types)
    function.attributes[STRICT] = ir.UnitAttr.get()
    mapping: dict[ir.Value, ir.Value] = dict(zip(tensors, function.add_entry_block().arguments, strict=True))
    where = ir.InsertionPoint(function.entry_block)
    for needed in [*copied, op]:
        clone_with(needed, mapping, where)
    with where:
        func.ReturnOp([mapping[r] for r in op.results])
    return module


def _is_plain(value: ir.Value) -> bool:
    """Whether a value is a tensor of a dtype that means the same in torch-mlir's backend as here: no unsigned integers, f8."""
    try:
        info = tensor_info(value.type)
    except RelaxError:
        return False
    return info is not None and str(info.dtype) in _DTYPES


def _is_copied(value: ir.Value, values: Values) -> bool:
    """Whether a number or list is made in a way that the outlined function can repeat: not from the contents of a tensor."""
    if value.owner.operation.name == "torch.prim.ListConstruct":
        return True
    if value.owner.operation.name == "torch.symbolic_int" or not is_number(value.type):
        return False
    try:
        values.number(value)
    except RelaxError:
        return False
    return True


def _cast(x: ir.Value, type_: ir.Type) -> ir.Value:
    """A tensor under the plain type that the function takes: what both say of its sizes is not in contradiction."""
    if x.type == type_:
        return x
    cast = ir.Operation.create("tensor.cast", results=[type_], operands=[x])
    return cast.results[0]
