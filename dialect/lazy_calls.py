"""Lazy IO as passes and the interpreter see it: which ops read a weight or hand over a result, of what index and name.

There are two styles. A callback that is an argument of the function is called by ops of ours::

    %w = "relax.get_param"(%provider) {index = 0 : i64, name = "q.weight"}
    "relax.set_output"(%sink, %t) {index = 0 : i64, name = "q.weight.permute_dims"}

One that is a global function is declared in the module, once per type, and called like any other::

    func.func private @get_param_4xf32(index {relax.name = "index"}) -> tensor<4xf32> attributes {relax.callback = "get_param"}

    %w = call @get_param_4xf32(%i) {relax.name = "q.weight"} : (index) -> tensor<4xf32>

A declaration names its arguments: ``index``, where there is one, comes first, the ``value`` of an output second, and whatever
else is passed through after them. Reads have no effects besides their results; writes keep their place and their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .bindings import arith, func, ir
from .call_graph import callee_of
from .functions import NAME, argument_names, functions, name_of
from .ops import GetParam, SetOutput
from .struct_info import is_tensor

__all__ = [
    "CALLBACK",
    "INDEX",
    "READ",
    "VALUE",
    "WRITE",
    "LazyCall",
    "LazyCalls",
    "callback_of",
    "callback_problems",
]

#: Function attribute: what a declared function does for lazy IO.
CALLBACK = "relax.callback"
READ, WRITE = "get_param", "set_output"
#: What the arguments of a declaration are called.
INDEX, VALUE = "index", "value"


@dataclass(frozen=True)
class LazyCall:
    """One read or write.

    Attributes:
        index: position of the weight or result; None when only the name says which, or no constant does.
        name: its name, None when it has none.
        value: the tensor read or handed over.
    """

    index: int | None
    name: str | None
    value: ir.Value


class LazyCalls:
    """Answers for the ops of one module; declarations are read once."""

    def __init__(self, module: ir.Operation):
        self._declared = {name_of(f): f for f in functions(module) if CALLBACK in f.attributes}

    def is_read(self, op: ir.Operation) -> bool:
        """Whether an op reads a weight."""
        return op.name == GetParam.OPERATION_NAME or self._calls(op, READ)

    def is_write(self, op: ir.Operation) -> bool:
        """Whether an op hands over a result."""
        return op.name == SetOutput.OPERATION_NAME or self._calls(op, WRITE)

    def describe(self, op: ir.Operation) -> LazyCall:
        """What a read or write is about."""
        view = op.opview
        if isinstance(view, GetParam):
            return LazyCall(view.index, view.name, op.results[0])
        if isinstance(view, SetOutput):
            return LazyCall(view.index, view.name, op.operands[1])
        names = argument_names(self._declared[callee_of(op)])
        name = ir.StringAttr(op.attributes[NAME]).value if NAME in op.attributes else None
        index = _constant(op.operands[0]) if names[:1] == [INDEX] else None
        return LazyCall(index, name, op.results[0] if len(op.results) else op.operands[names.index(VALUE)])

    def _calls(self, op: ir.Operation, kind: str) -> bool:
        if not self._declared or op.name != "func.call":
            return False
        callee = self._declared.get(callee_of(op))
        return callee is not None and callback_of(callee) == kind


def callback_of(function: func.FuncOp) -> str | None:
    """What a declared function does for lazy IO: ``get_param``, ``set_output``, or nothing."""
    if CALLBACK not in function.attributes:
        return None
    attribute = function.attributes[CALLBACK]
    return attribute.value if isinstance(attribute, ir.StringAttr) else ""


def callback_problems(function: func.FuncOp) -> Iterator[str]:
    """What is wrong with a function that says it is a callback."""
    kind = callback_of(function)
    if kind is None:
        return
    if kind not in (READ, WRITE):
        yield f"expected '{READ}' or '{WRITE}' for {CALLBACK}, got {function.attributes[CALLBACK]}"
        return
    if len(function.regions[0].blocks):
        yield f"expected a declaration for {CALLBACK}, got a body"
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    arguments = dict(zip(argument_names(function), signature.inputs, strict=True))
    if None in arguments:
        yield f"expected a {NAME} for every argument of a callback, got one without"
        return
    leading = [INDEX] * (INDEX in arguments) + [VALUE] * (kind == WRITE)
    if list(arguments)[: len(leading)] != leading:
        yield f"expected the arguments of '{kind}' to start with {' and '.join(leading)}, got {', '.join(map(str, arguments))}"
    if INDEX in arguments and not isinstance(arguments[INDEX], ir.IndexType):
        yield f"expected type index for the argument '{INDEX}' of a callback, got {arguments[INDEX]}"
    if VALUE in arguments and not is_tensor(arguments[VALUE]):
        yield f"expected a tensor for the argument '{VALUE}' of a callback, got {arguments[VALUE]}"
    if [is_tensor(r) for r in signature.results] != [True] * (kind == READ):
        wanted = "one tensor" if kind == READ else "nothing"
        yield f"expected '{kind}' to return {wanted}, got ({', '.join(map(str, signature.results))})"


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    view = owner.opview if isinstance(owner, ir.Operation) else owner
    return int(view.literal_value) if isinstance(view, arith.ConstantOp) else None
