"""A torch op without a relax form as a call of a private function that torch-mlir's own passes lower to linalg.

::

    %2 = torch.aten.atan2 %0, %1 : !torch.vtensor<[?,8],f32>, ... -> !torch.vtensor<[?,8],f32>

    %2 = tensor.cast %0 : tensor<?x8xf32, {sym = ["n"]}> to tensor<?x8xf32>
    %4 = call @aten_atan2_0(%2, %3) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %5 = "relax.match_cast"(%4) : (tensor<?x8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>

    func.func private @aten_atan2_0(%arg0: tensor<?x8xf32>, %arg1: tensor<?x8xf32>) -> tensor<?x8xf32> {
      %1 = linalg.generic {...} ins(%arg0, %arg1) outs(%0) { math.atan2 }

Equal functions become one. Such a module compiles; the reference interpreter knows no linalg and raises a RelaxError.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..dialect.bindings import func, ir, passmanager
from ..dialect.errors import RelaxError
from ..dialect.inference import boolean
from ..dialect.traversal import clone_with, nested_operations
from .torch_op import TorchOp, Values
from .torch_types import is_number, tensor_info

__all__ = ["Outliner"]

_DECOMPOSE = (
    "builtin.module(func.func(torch-reduce-op-variants,canonicalize,torch-decompose-complex-ops,canonicalize,"
    "torch-scalarize-shapes,canonicalize,cse))"
)
# Without convert-torch-to-tmtensor: nothing lowers that dialect here.
_TO_LINALG = (
    "builtin.module(func.func(torch-restructure-non-constant-axes,convert-torch-to-linalg,canonicalize,convert-torch-to-scf,"
    "convert-torch-to-arith,convert-torch-to-tensor,canonicalize,resolve-shaped-type-result-dims,cse),"
    "torch-func-backend-type-conversion,func.func(canonicalize,torch-finalizing-backend-type-conversion,"
    "refback-generalize-tensor-pad,refback-generalize-tensor-concat,linalg-generalize-named-ops))"
)

_EXPANDED = ("math.acosh", "math.asinh", "math.atanh", "math.cosh", "math.sinh")

#: LLVM has none of these on vectors, and no library call for some; the expansions are inexact on narrow floats.
_EXPAND = "builtin.module(func.func(math-expand-ops{ops=acosh,asinh,atanh,cosh,sinh}),canonicalize,cse)"

_ALLOWED = frozenset({"affine", "arith", "func", "linalg", "math", "scf", "tensor"})

#: Their results come from sizes and constants, never from the contents of a tensor.
_SIZE_ARITHMETIC = ("arith.", "tensor.dim", "affine.")

#: torch-mlir writes one of two dynamic dimensions as a cast to another shape (llvm/torch-mlir issues 3852 and 4743).
_VIEWS = ("torch.aten.view", "torch.aten._unsafe_view", "torch.aten.reshape", "torch.aten.unflatten.int",
          "torch.aten.flatten.using_ints")  # fmt: skip

#: torch-mlir then takes no dynamic dimension for one of size one that is broadcast.
_STRICT = "torch.assume_strict_symbolic_shapes"

# Truth values are left to the op map: foreign code would keep them in memory as i1, which the kernels do not read.
_DTYPES = ("i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")


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
            The call's results, on plain tensors; None when torch-mlir has no lowering of the op to linalg, or no sound one.
        """
        made = _OneOp.of(op)
        function = None if made is None else self._function(made, op.key)
        if made is None or function is None:
            return None
        signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        operands = [op.values.tensors[v] for v in made.tensors]
        plain = [_cast(x, type_) for x, type_ in zip(operands, signature.inputs, strict=True)]
        return list(func.CallOp(function, plain).results)

    def _function(self, made: _OneOp, key: str) -> func.FuncOp | None:
        """The function of a text, which is lowered once."""
        if made.text not in self._by_text:
            lowered = _lowered(made.module)
            self._by_text[made.text] = None if lowered is None else self._added(lowered, key)
        return self._by_text[made.text]

    def _added(self, lowered: func.FuncOp, key: str) -> func.FuncOp:
        with ir.InsertionPoint(self.module.body):
            function = lowered.operation.clone()
        assert isinstance(function, func.FuncOp)
        function.attributes["sym_name"] = ir.StringAttr.get(f"{re.sub(r'[^0-9a-zA-Z]+', '_', key)}_{self._count}")
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        self._count += 1
        return function


@dataclass(frozen=True)
class _OneOp:
    """A module of one function that holds one torch op, and the numbers and lists it reads.

    Attributes:
        module: the module.
        tensors: the torch tensors that the function takes.
        text: the module without locations.
    """

    module: ir.Module
    tensors: list[ir.Value]
    text: str

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
        return _OneOp(module, leaves[0], module.operation.get_asm(enable_debug_info=False))


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
        copied[value] = value.owner
        return known

    return (list(tensors), list(copied.values())) if all([collect(v) for v in op.operands]) else None


def _one_op_module(op: ir.Operation, tensors: list[ir.Value], copied: list[ir.Operation]) -> ir.Module:
    module = ir.Module.create()
    types = [v.type for v in tensors], [r.type for r in op.results]
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("main", types)
    function.attributes[_STRICT] = ir.UnitAttr.get()
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
    if value.owner.name == "torch.prim.ListConstruct":
        return True
    if value.owner.name == "torch.symbolic_int" or not is_number(value.type):
        return False
    try:
        values.number(value)
    except RelaxError:
        return False
    return True


def _lowered(module: ir.Module) -> func.FuncOp | None:
    """The function of a one-op module as linalg on tensors; the module is consumed."""
    try:
        _run(module, _DECOMPOSE)
        if any(_is_miscompiled(op) for op in nested_operations(module.operation)):
            return None
        _run(module, _TO_LINALG)
        _drop_size_assertions(module)
        if not all(_is_compiled(op) for op in nested_operations(module.operation)):
            return None
        _run(module, _EXPAND)
    except ir.MLIRError:
        # The diagnostics name what torch-mlir decomposed the op into, which says nothing to whoever wrote the model.
        return None
    function, *others = list(module.body.operations)
    if others:
        return None
    assert isinstance(function, func.FuncOp)
    if _STRICT in function.attributes:
        del function.attributes[_STRICT]
    return function


def _is_compiled(op: ir.Operation) -> bool:
    """Whether an op that torch-mlir left is one that the CPU lowering takes from other dialects."""
    if op.name.partition(".")[0] not in _ALLOWED:
        return False
    if op.name in _EXPANDED:
        return op.results[0].type.width >= 32
    return not any(isinstance(r.type, ir.RankedTensorType) and r.type.element_type == boolean() for r in op.results)


def _is_miscompiled(op: ir.Operation) -> bool:
    if op.name == "torch.prim.Loop":
        return True
    shapes = [info.shape for v in (*op.operands, *op.results) if (info := tensor_info(v.type)) is not None]
    return op.name in _VIEWS and any(None in shape for shape in shapes)


def _run(module: ir.Module, pipeline: str) -> None:
    passmanager.PassManager.parse(pipeline).run(module.operation)


def _drop_size_assertions(module: ir.Module) -> None:
    """Erases ``cf.assert`` of sizes, which torch.export has settled; one of a tensor's contents stays, and is refused."""
    for op in list(nested_operations(module.operation)):
        if op.name == "cf.assert" and _is_of_sizes(op.operands[0]):
            op.erase()


def _is_of_sizes(value: ir.Value) -> bool:
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        if isinstance(current, ir.BlockArgument) or not current.owner.name.startswith(_SIZE_ARITHMETIC):
            return False
        new = [v for v in current.owner.operands if current.owner.name != "tensor.dim" and v not in seen]
        seen.update(new)
        pending += new
    return True


def _cast(x: ir.Value, type_: ir.Type) -> ir.Value:
    """A tensor under the plain type that the function takes: what both say of its sizes is not in contradiction."""
    if x.type == type_:
        return x
    cast = ir.Operation.create("tensor.cast", results=[type_], operands=[x])
    return cast.results[0]
