"""Which operators a call runs, in order, without memory: what two programs that do the same have in common.

A program that torch.export makes of a module runs the same operators as the module. Tensors are fake: a call of a Llama of 24
layers takes 0.5 s of the processor, its export 3 to 5.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._export.utils import _compiling_state_context
from torch._subclasses import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.func import functional_call
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

__all__ = ["Label", "Operator", "OperatorTrace", "module_trace", "program_trace"]

_aten = torch.ops.aten

#: Of what a tensor is: ``("result", operator, which of its results)``, ``("given", name, dtype, shape)`` of a parameter, buffer
#: or input, or ``("constant", dtype, shape, bytes)``.
Label = tuple[Hashable, ...]

#: Give their operand, as far as programs without gradients can tell.
_ITSELF = {_aten.alias.default, _aten.detach.default, _aten.lift_fresh.default, _aten.lift_fresh_copy.default}


@dataclass(frozen=True)
class Operator:
    """One call: its operands have labels for tensors."""

    target: Any
    args: Hashable

    @property
    def writes(self) -> bool:
        """Whether it changes memory."""
        return self.target._schema.is_mutable


@dataclass(frozen=True)
class OperatorTrace:
    """What a call has run.

    Attributes:
        operators: in order.
        results: labels of what it gave.
        layers: in order of their calls, with how many operators there were before and after each.
    """

    operators: list[Operator]
    results: list[Hashable]
    layers: list[tuple[nn.Module, int, int]]

    def read(self) -> tuple[list[Operator], list[Hashable]]:
        """The operators that results or written memory are made of, numbered anew, and the results."""
        is_read = [operator.writes for operator in self.operators]
        for label in _labels(self.results):
            _mark(label, is_read)
        for at in range(len(self.operators) - 1, -1, -1):
            if is_read[at]:
                for label in _labels(self.operators[at].args):
                    _mark(label, is_read)
        numbers = {at: number for number, at in enumerate(at for at, is_one in enumerate(is_read) if is_one)}
        kept = [Operator(self.operators[at].target, _numbered(self.operators[at].args, numbers)) for at in numbers]
        return kept, [_numbered(label, numbers) for label in self.results]


class _Recorder(TorchDispatchMode):
    """Notes what it sees of operators that give or change tensors."""

    def __init__(self, given: Collection[tuple[str, torch.Tensor]]):
        super().__init__()
        self.operators: list[Operator] = []
        self._alive = [tensor for _, tensor in given]  # whose numbers are in use
        self._labels: dict[int, Label] = {id(t): ("given", name, t.dtype, tuple(t.shape)) for name, t in given}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        tensors = [(i, t) for i, t in enumerate(pytree.tree_leaves(found)) if isinstance(t, torch.Tensor)]
        if func in _ITSELF or (func is _aten.slice.Tensor and found.shape == args[0].shape):
            self._name(found, self.labeled(args[0]))  # which slices in Python are without an operator
        elif tensors:
            operands = self.labeled(_with_defaults(func, args, kwargs or {}))
            for i, tensor in tensors:
                self._name(tensor, ("result", len(self.operators), i))
            self.operators.append(Operator(func, operands))
        return found

    def labeled(self, value: Any) -> Any:
        """A value with labels for tensors."""
        if isinstance(value, torch.Tensor):
            return self._labels.get(id(value)) or self._constant(value)
        if isinstance(value, list | tuple):
            return tuple(self.labeled(v) for v in value)
        return (type(value), repr(value)) if isinstance(value, bool | float) else value  # True is not 1, nor 1.0

    def _name(self, tensor: torch.Tensor, label: Label) -> None:
        if id(tensor) not in self._labels:  # what is written is what it was
            self._labels[id(tensor)] = label
            self._alive.append(tensor)

    def _constant(self, tensor: torch.Tensor) -> Label:
        """Raises TypeError where its contents are not there."""
        if type(tensor) is not torch.Tensor:
            raise TypeError("expected a tensor with contents")
        self._alive.append(tensor)
        with _disable_current_modes():
            contents = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        label = ("constant", tensor.dtype, tuple(tensor.shape), contents)
        self._labels[id(tensor)] = label
        return label


def _with_defaults(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    """All operands in order. Slices in Python say where they begin and end, in graphs only where that is within."""
    named = [(a, kwargs.get(a.name, a.default_value)) for a in func._schema.arguments[len(args) :]]
    given = [*args, *(value for _, value in named)]
    if func is _aten.slice.Tensor:
        given[2] = given[2] or 0
        given[3] = None if given[3] == sys.maxsize else given[3]
    return given


def module_trace(module: nn.Module, example: Sequence[Any], layers: Sequence[nn.Module] = ()) -> OperatorTrace:
    """Of a call of a module.

    Args:
        module: without gradients.
        example: positional inputs, of which only shapes and dtypes count.
        layers: whose calls are noted.
    """
    mode, names = FakeTensorMode(allow_non_fake_inputs=True), canonical_names(module)
    tensors = dict([*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)])
    fake: dict[str, torch.Tensor] = {name: mode.from_tensor(tensor) for name, tensor in tensors.items()}
    inputs = pytree.tree_map(mode.from_tensor, tuple(example))
    recorder = _Recorder([*((names[name], t) for name, t in fake.items()), *_named(inputs)])
    begins, called = dict[nn.Module, int](), list[tuple[nn.Module, int, int]]()

    def begun(layer: nn.Module, _: Any) -> None:
        begins[layer] = len(recorder.operators)

    def ended(layer: nn.Module, *_: Any) -> None:
        called.append((layer, begins[layer], len(recorder.operators)))

    hooks = [h for one in layers for h in (one.register_forward_pre_hook(begun), one.register_forward_hook(ended))]
    try:
        with _compiling_state_context():  # models ask for it, and compute masks otherwise
            return _traced(mode, recorder, lambda: functional_call(module, fake, inputs), called)
    finally:
        for hook in hooks:
            hook.remove()


def program_trace(program: ExportedProgram, module: nn.Module, example: Sequence[Any]) -> OperatorTrace:
    """Of a call of what was exported of a module.

    Args:
        program: as it was exported, which writes into its buffers.
        module: says which names are of one tensor.
        example: as for :func:`module_trace`.
    """
    mode, names = FakeTensorMode(allow_non_fake_inputs=True), canonical_names(module)
    inputs = pytree.tree_map(mode.from_tensor, tuple(example))
    held: dict[str | None, Any] = {**program.constants, **program.state_dict}
    given, one, args = iter(pytree.tree_leaves(inputs)), dict[str, torch.Tensor](), list[Any]()
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            args.append(next(given))
        elif spec.kind is InputKind.CONSTANT_TENSOR:
            args.append(held[spec.target])
        else:
            name = names[str(spec.target)]
            args.append(one.setdefault(name, mode.from_tensor(held[spec.target])))
    return _traced(mode, _Recorder([*one.items(), *_named(inputs)]), lambda: program.graph_module(*args), [])


def canonical_names(module: nn.Module) -> dict[str, str]:
    """By name of a parameter or buffer the first one of the same tensor."""
    first = dict[int, str]()
    tensors = (*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False))
    return {name: first.setdefault(id(tensor), name) for name, tensor in tensors}


def _named(inputs: Any) -> list[tuple[str, torch.Tensor]]:
    return [(f"input {i}", t) for i, t in enumerate(pytree.tree_leaves(inputs))]


def _traced(
    mode: FakeTensorMode, recorder: _Recorder, call: Callable[[], Any], layers: list[tuple[nn.Module, int, int]]
) -> OperatorTrace:  # fmt: skip
    with torch.no_grad(), mode, recorder:
        found = call()
    return OperatorTrace(recorder.operators, [recorder.labeled(r) for r in pytree.tree_leaves(found)], layers)


def _is_result(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and value[0] == "result"


def _labels(value: Any) -> list[Any]:
    """All results of operators in a value."""
    if _is_result(value):
        return [value]
    return [label for v in value for label in _labels(v)] if isinstance(value, list | tuple) else []


def _mark(label: Any, is_read: list[bool]) -> None:
    is_read[label[1]] = True


def _numbered(value: Any, numbers: Mapping[int, int]) -> Any:
    if _is_result(value):
        return ("result", numbers[value[1]], value[2])
    return tuple(_numbered(v, numbers) for v in value) if isinstance(value, tuple) else value
