"""Runs a function of a module on arrays by the ops' reference semantics; the yardstick for passes and lowering.

Blocks run as generators on one explicit stack, so that a rule of ours bounds the depth of calls and not Python's recursion
limit. A value is dropped after its last use: with lazy IO, memory holds what is live and no more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..analysis.inner_sizes import doubtful_sizes, entry_symbols
from ..bindings import func, ir
from ..dtypes import numpy_dtype
from ..errors import RelaxError
from ..functions import body_of, find_function, full_argument_names, functions, name_of
from ..lazy_calls import READ, WRITE, callback_of
from ..struct_info import TensorInfo, is_tensor
from ..symbolic import InnerSize, refuse_negative
from ..traversal import nested_operations
from ..tuples import CAST
from .apply import PREFIX, apply_op
from .arguments import entry_arguments
from .control_flow import CONTROL_FLOW, Frame, Invoke, RunRegion
from .io import OnceSink, call_declared
from .liveness import BlockPlan, Step, plan_of
from .memory import HeldValues, MemoryTracker
from .numeric import Array
from .registry import families_loaded
from .scalars import SCALAR_OPS, compute_scalar, scalar
from .scope import Scope
from .tuples import convert, leaves, tensors_in, unshared

__all__ = ["MAX_CALL_DEPTH", "evaluate", "op_without_meaning"]

#: Calls nested deeper than all functions of the module and so many more are taken for a recursion that does not end.
MAX_CALL_DEPTH = 1000
#: Operations that the interpreter itself knows: calls, terminators, and those that say what a value is.
_STRUCTURE = frozenset(
    {"cf.assert", "func.call", "func.return", "scf.condition", "scf.yield", "tensor.cast", "ub.poison", CAST}
)


def evaluate(
    module_op: ir.Module | ir.Operation | ir.OpView,
    function: str,
    inputs: Sequence[ArrayLike],
    weights: Mapping[str, ArrayLike] | None = None,
    provider: Callable[[int, str | None], ArrayLike] | None = None,
    sink: Callable[[int, str | None, Array], None] | None = None,
    memory: MemoryTracker | None = None,
) -> tuple[Array, ...]:
    """Runs ``@function``.

    Args:
        module_op: the module; it is not changed.
        function: name of the function, without ``@``.
        inputs: the arguments before ``relax.num_input``, in order; every argument when the function has no such attribute.
        weights: the other arguments by their ``relax.name`` (``weight3`` for a fourth argument without one).
        provider: what reads of weights call, index and name to array; the value of ``!relax.param_provider`` arguments, and
            the function declared with ``relax.callback = "get_param"``.
        sink: what is called with index, name and array of a result, once each; the value of ``!relax.output_sink`` arguments,
            and the function declared with ``relax.callback = "set_output"``.
        memory: counts the bytes that are held while the function runs.

    Returns:
        The results, as arrays of their own.

    Raises:
        RelaxError: an argument is missing, unknown or of another shape or dtype than its type says; a run-time check fails
            (``relax.match_cast``, an index out of range); or an op has no reference semantics. Located at the op.
    """
    module = module_op.operation
    with module.context, np.errstate(all="ignore"):
        target = find_function(module, function)
        callbacks = {READ: provider, WRITE: None if sink is None else OnceSink(sink)}
        arguments = entry_arguments(target, inputs, weights or {}, provider, callbacks[WRITE])
        given = {id(leaf) for a in arguments for leaf in leaves(a)}
        results = _Interpreter(module, callbacks, memory).run(target, arguments)
    return tuple(_unshared(results, given))


def _unshared(results: Sequence[Any], given: set[int]) -> list[Array]:
    """Results that the caller may write to: none is an argument, none is there twice."""
    seen = set(given)
    return [unshared(result, seen) for result in results]


@dataclass
class _Environment:
    """One run of a block: the values of its function's call, the symbols known in it, and what counts the values' bytes."""

    values: dict[ir.Value, Any]
    scope: Scope
    held: HeldValues | None


class _Interpreter:
    def __init__(self, module: ir.Operation, callbacks: Mapping[str, Callable[..., Any] | None], memory: MemoryTracker | None):
        self._module, self._callbacks, self._memory = module, callbacks, memory
        self._plans: dict[ir.Block, BlockPlan] = {}
        self._sizes: dict[ir.Block, list[InnerSize]] = {}

    @functools.cached_property
    def _functions(self) -> dict[str, func.FuncOp]:
        """All functions, once one is called: listing 150 takes longer than most ops."""
        return {name_of(f): f for f in functions(self._module)}

    @functools.cached_property
    def _declared(self) -> dict[str, func.FuncOp]:
        return {name: f for name, f in self._functions.items() if callback_of(f) is not None}

    def run(self, function: func.FuncOp, arguments: list[Any]) -> list[Any]:
        """Runs a function and everything it calls. Lists of values are emptied by whoever takes them, to keep none alive."""
        environment = self._environment(function, arguments)
        if environment.held is not None:
            environment.held.hold(_body(function).arguments, arguments)
            environment.held.sizes.clear()  # they are the caller's: nothing releases them
        stack = [(self._block(_body(function), arguments, environment), environment, True)]
        # Without recursion each function is on the stack once.
        depth, answer = 1, None
        while stack:
            frame, environment, is_call = stack[-1]
            try:
                request = frame.send(answer)
            except StopIteration as stop:
                answer = stop.value
                depth -= is_call
                stack.pop()
                continue
            answer = None
            stack.append(self._open(request, environment))
            depth += isinstance(request, Invoke)
            if depth > MAX_CALL_DEPTH and depth > (limit := MAX_CALL_DEPTH + len(self._functions)):
                raise RelaxError(f"expected calls nested at most {limit} deep, got more", request.op.location)
        return answer or []

    def _open(self, request: Invoke | RunRegion, outer: _Environment) -> tuple[Frame, _Environment, bool]:
        if isinstance(request, RunRegion):
            environment = _Environment(outer.values, Scope(outer.scope), outer.held)
            where = request.op.location
            _bind(request.block.arguments, request.arguments, environment.scope, "argument of a region", where)
            if outer.held is not None:
                outer.held.hold(plan_of(request.block, self._plans).arguments, request.arguments)
            return self._block(request.block, request.arguments, environment), environment, False
        callee = self._functions.get(request.callee)
        if callee is None:
            raise RelaxError(f"'func.call' op expected a function of the module, got @{request.callee}", request.op.location)
        environment = self._environment(callee, request.arguments)
        return self._block(_body(callee), request.arguments, environment), environment, True

    def _environment(self, function: func.FuncOp, arguments: Sequence[Any]) -> _Environment:
        """That of a call: a new scope of symbols, bound by the arguments' sizes."""
        scope, names = Scope(), full_argument_names(function)
        for name, value, array in zip(names, _body(function).arguments, arguments, strict=True):
            for info, tensor in tensors_in(value.type, array):
                scope.bind(info.shape, tensor.shape, f"argument '{name}' of @{name_of(function)}")
        self._check_sizes(function, scope)
        return _Environment({}, scope, None if self._memory is None else HeldValues(self._memory))

    def _check_sizes(self, function: func.FuncOp, scope: Scope) -> None:
        """Refuses, before anything runs, what compiled code would: sizes inside that the arguments make impossible."""
        body = _body(function)
        if body not in self._sizes:
            self._sizes[body] = doubtful_sizes(function, entry_symbols(function))
        for size in self._sizes[body]:
            refuse_negative(size.expr, scope.values(size.expr), size.of)

    def _block(self, block: ir.Block, arguments: list[Any], environment: _Environment) -> Frame:
        """Runs the ops of a block; the answer is what its terminator hands on."""
        plan, values = plan_of(block, self._plans), environment.values
        _store(plan.arguments, arguments, values)
        for step in plan.steps:
            if step.terminator:
                if environment.held is not None:
                    environment.held.release(step.dead)
                return step.take(values)
            if step.name == "func.call" and step.op.callee.value in self._declared:
                declared = self._declared[step.op.callee.value]
                results = call_declared(step.op, declared, step.take(values), self._callbacks)
            elif step.name == "func.call":
                results = yield Invoke(step.op, step.op.callee.value, step.take(values))
            elif step.name in CONTROL_FLOW:
                # Regions read values of this block, so those that die here die after the op and not before.
                results = yield from CONTROL_FLOW[step.name](step.op, [values[o] for o in step.operands])
                step.drop(values)
            else:
                results = _compute(step, step.take(values), environment.scope)
            if step.name in CONTROL_FLOW or step.name == "func.call":
                _bind(step.op.results, results, environment.scope, f"result of '{step.name}' op", step.op.location)
            if environment.held is not None:
                environment.held.hold(step.op.results, results)
                unused = [r for r, kept in zip(step.op.results, step.results, strict=True) if kept is None]
                environment.held.release([*step.dead, *unused])
            _store(step.results, results, values)
        raise RelaxError("expected a block with a terminator", block.owner.location)


def _store(names: Sequence[ir.Value | None], results: list[Any], values: dict[ir.Value, Any]) -> None:
    """Files results under their values and empties the list."""
    values.update((n, r) for n, r in zip(names, results, strict=True) if n is not None)
    results.clear()


def _bind(values: Sequence[ir.Value], results: Sequence[Any], scope: Scope, what: str, location: ir.Location) -> None:
    """Sizes of values that come from elsewhere: they are what types say, and give symbols their values that are new here."""
    try:
        for value, result in zip(values, results, strict=True):
            for info, tensor in tensors_in(value.type, result):
                scope.bind(info.shape, tensor.shape, what)
    except RelaxError as error:
        raise RelaxError(error.args[0], location) from None


def _body(function: func.FuncOp) -> ir.Block:
    block = body_of(function)
    if block is None:
        raise RelaxError(f"expected a function with a body, got the declaration @{name_of(function)}", function.location)
    if len(function.regions[0].blocks) > 1:
        raise RelaxError(f"expected a function of one block, got several in @{name_of(function)}", function.location)
    return block


def _compute(step: Step, operands: list[Any], scope: Scope) -> list[Any]:
    op = step.op
    if step.name.startswith(PREFIX):
        return apply_op(op, operands, scope, step.sizes)
    if step.name == CAST:
        return convert(op.operation, operands)
    try:
        if step.name == "tensor.cast":
            info = TensorInfo.of(op.results[0])
            scope.bind(info.shape, operands[0].shape, "an operand")
            return operands
        if step.name in SCALAR_OPS:
            return [compute_scalar(op, operands)]
        if step.name == "cf.assert":
            return _asserted(op, operands[0])
        if step.name == "ub.poison":
            return [_anything(op.results[0].type, scope)]
    except RelaxError as error:
        raise RelaxError(f"'{step.name}' op {error.args[0]}", op.location) from None
    raise RelaxError(f"expected an op with reference semantics, got '{step.name}'", op.location)


def _asserted(op: ir.OpView, holds: Any) -> list[Any]:
    if not holds:
        raise RelaxError(ir.StringAttr(op.attributes["msg"]).value)
    return []


def op_without_meaning(module: ir.Operation) -> str | None:
    """The name of an operation in functions with a body that :func:`evaluate` cannot compute, None when there is none."""
    for function in functions(module):
        for op in nested_operations(function.operation):
            if not _has_meaning(op.name):
                return op.name
    return None


def _has_meaning(name: str) -> bool:
    if name.startswith(PREFIX):
        return name.removeprefix(PREFIX) in families_loaded()
    return name in _STRUCTURE or name in CONTROL_FLOW or name in SCALAR_OPS


def _anything(type_: ir.Type, scope: Scope) -> Any:
    """A value where any will do: upstream leaves ``ub.poison`` where it has found that what is computed does not matter."""
    if not is_tensor(type_):
        return scalar(0, type_)
    info = TensorInfo.of(type_)
    return np.zeros([scope.try_resolve(d) or 0 for d in info.shape], numpy_dtype(info.dtype))
