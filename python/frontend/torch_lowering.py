"""One torch op in, as the text of a module; the text of a module of one function of linalg out. Runs in a process of its own.

See :mod:`.torch_outline` for what it looks like, and :mod:`.outline_process` for the process.
"""

from __future__ import annotations

from ..dialect.bindings import dialect_module, func, ir, passmanager
from ..dialect.context import new_context
from ..dialect.errors import RelaxError
from ..dialect.inference import boolean
from ..dialect.traversal import nested_operations
from .outline_checks import make_safe
from .torch_types import tensor_info

__all__ = ["STRICT", "lowered_text"]

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

#: torch-mlir writes one of two dynamic dimensions as a cast to another shape (llvm/torch-mlir issues 3852 and 4743).
_VIEWS = ("torch.aten.view", "torch.aten._unsafe_view", "torch.aten.reshape", "torch.aten.unflatten.int",
          "torch.aten.flatten.using_ints")  # fmt: skip

#: torch-mlir then takes no dynamic dimension for one of size one that is broadcast.
STRICT = "torch.assume_strict_symbolic_shapes"


def lowered_text(text: str, operator: str) -> str | None:
    """The function of a one-op module as linalg on tensors that stays inside of its tensors.

    Args:
        text: a module of one function in the torch dialect.
        operator: the operator's name, for run-time checks.

    Returns:
        The text of a module of one function; None when torch-mlir has no lowering to what is compiled here.

    Raises:
        RelaxError: the lowering is miscompiled, or not safe.
    """
    context = new_context()
    dialect_module("torch").register_dialect(context)
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        try:
            _run(module, _DECOMPOSE)
            _refuse_miscompiled(module)
            _run(module, _TO_LINALG)
        except ir.MLIRError:
            # The diagnostics name what torch-mlir decomposed the op into, which says nothing to whoever wrote the model.
            return None
        if not all(_is_compiled(op) for op in nested_operations(module.operation)):
            return None
        _run(module, _EXPAND)
        try:
            make_safe(module, operator)
        except ir.MLIRError:
            raise RelaxError("a lowering that is refused by its own checks") from None
        function, *others = list(module.body.operations)
        if others:
            return None
        assert isinstance(function, func.FuncOp)
        if STRICT in function.attributes:
            del function.attributes[STRICT]
        return str(module)


def _run(module: ir.Module, pipeline: str) -> None:
    passmanager.PassManager.parse(pipeline).run(module.operation)


def _is_compiled(op: ir.Operation) -> bool:
    """Whether the CPU lowering takes an op that torch-mlir left: no truth values in memory, no inexact expansions."""
    if op.name in _EXPANDED:
        return op.results[0].type.width >= 32
    return not any(isinstance(r.type, ir.RankedTensorType) and r.type.element_type == boolean() for r in op.results)


def _refuse_miscompiled(module: ir.Module) -> None:
    for op in nested_operations(module.operation):
        shapes = [info.shape for v in (*op.operands, *op.results) if (info := tensor_info(v.type)) is not None]
        if op.name == "torch.prim.Loop" or (op.name in _VIEWS and any(None in shape for shape in shapes)):
            raise RelaxError(f"a lowering through {op.name}, which torch-mlir gets wrong")
