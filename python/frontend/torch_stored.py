"""The weights and the state of several programs: which tensors are one, what each is called, and which of them are changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, TensorArgument

from ..dialect.errors import RelaxError

__all__ = [
    "WEIGHT_KINDS",
    "Stored",
    "changed_targets",
    "has_contents",
    "identity",
    "in_storage_order",
    "qualified_name",
    "stored_together",
    "tensor_of",
]

WEIGHT_KINDS = {InputKind.PARAMETER: "param", InputKind.BUFFER: "buffer", InputKind.CONSTANT_TENSOR: "constant"}


@dataclass(frozen=True)
class Stored:
    """The tensors that several programs keep, beside their inputs.

    Attributes:
        tensors: the weights by name: parameters and persistent buffers, and those other buffers and constants that a program
            reads; of tied ones only the first; none that a program changes.
        state: what any of the programs changes, by name, with its first value.
        names: for each program what its parameters, buffers and constants are called among these.
        unsaved: those of the weights that no state dict has.
    """

    tensors: dict[str, torch.Tensor]
    state: dict[str, torch.Tensor]
    names: dict[str, dict[str, str]]
    unsaved: dict[str, torch.Tensor]


def stored_together(programs: Mapping[str, ExportedProgram], decomposed: Mapping[str, ExportedProgram] | None = None) -> Stored:
    """The weights and the state of several programs, under names that all of them can use.

    The same memory is one tensor, under the first name that it has. What one program changes is state in all of them.

    Args:
        programs: the programs by name.
        decomposed: the same, after decompositions that may show more of what they change.

    Raises:
        RelaxError: two programs have different parameters, or buffers, of one name: they are of different models; state
            shares a part of its memory with another tensor.
    """
    known = _Known({}, {})
    names = {entry: known.take(entry, program) for entry, program in programs.items()}
    changed: dict[str, torch.Tensor] = {}
    for entry, program in (*programs.items(), *(decomposed or {}).items()):
        found = [names[entry][target] for target in changed_targets(program) if target in names[entry]]
        changed.update((name, known.tensors[name]) for name in found)
    kept = {names[entry][target]: None for entry, program in programs.items() for target in _kept(program)}
    _check_apart(changed, {name: known.tensors[name] for name in kept})
    weights = {name: known.tensors[name] for name in kept if name not in changed}
    saved = {names[entry][t] for entry, program in programs.items() for t in program.state_dict if t in names[entry]}
    return Stored(weights, changed, names, {name: tensor for name, tensor in weights.items() if name not in saved})


@dataclass(frozen=True)
class _Known:
    """Tensors of the programs so far.

    Attributes:
        tensors: all of them by name.
        owners: the name of each memory.
    """

    tensors: dict[str, torch.Tensor]
    owners: dict[Any, str]

    def take(self, entry: str, program: ExportedProgram) -> dict[str, str]:
        """What the tensors of one more program are called."""
        return {qualified_name(spec): self._named(entry, program, spec) for spec in _specs(program)}

    def _named(self, entry: str, program: ExportedProgram, spec: InputSpec) -> str:
        name, tensor = qualified_name(spec), tensor_of(program, spec)
        functorch: Any = torch._C
        if functorch._functorch.is_functorch_wrapped_tensor(tensor):
            raise RelaxError(
                f"expected constants with numbers, got '{name}': torch.export does not trace transforms of torch.func such as "
                "grad; write what they compute out"
            )
        key = identity(tensor)
        if key in self.owners:
            return self.owners[key]
        is_constant = spec.kind is InputKind.CONSTANT_TENSOR
        if name in self.tensors and not _is_equal(self.tensors[name], tensor, is_constant):
            if not is_constant:
                raise RelaxError(f"expected one tensor for '{name}' in all programs, got another one in '{entry}'")
            name = f"{entry}/{name}"
        self.owners[key] = name
        self.tensors.setdefault(name, tensor)
        return name


def _is_equal(left: torch.Tensor, right: torch.Tensor, is_constant: bool) -> bool:
    """Whether tensors of one name are one. Without contents the name says so; but constants are counted by each program."""
    if left.shape != right.shape or left.dtype != right.dtype or left.device != right.device:
        return False
    if not has_contents(left) or not has_contents(right):
        return not is_constant
    return torch.equal(left, right)


def _kept(program: ExportedProgram) -> Iterator[str]:
    """What a file of the program's weights has, if it is no state: all of the state dict, and what the graph reads beside."""
    used = {n.name for n in program.graph.nodes if n.op == "placeholder" and n.users}
    for spec in _specs(program):
        if qualified_name(spec) in program.state_dict or spec.arg.name in used:
            yield qualified_name(spec)


def changed_targets(program: ExportedProgram) -> set[str]:
    """Buffers that a program writes to: as its signature says, once decomposed, else by operators that work in place."""
    found = {s.target for s in program.graph_signature.output_specs if s.kind is OutputKind.BUFFER_MUTATION and s.target}
    targets = {s.arg.name: s.target for s in program.graph_signature.input_specs if s.target and s.kind in WEIGHT_KINDS}
    for node in program.graph.nodes:
        for written in _aliased(node, is_write=True):
            found.update(targets[source] for source in _sources(written) if source in targets)
    return found


def _sources(node: torch.fx.Node) -> set[str]:
    """The placeholders in whose memory a value may lie."""
    pending, seen = [node], {node}
    while pending:
        new = [n for n in _aliased(pending.pop(), is_write=False) if n not in seen]
        seen.update(new)
        pending += new
    return {n.name for n in seen if n.op == "placeholder"}


def _aliased(node: torch.fx.Node, is_write: bool) -> list[torch.fx.Node]:
    """The operands that an operator writes to, or those whose memory its result may be in."""
    if getattr(node.target, "__name__", "") == "getitem":
        return [] if is_write else _nodes(node.args[:1])
    if not isinstance(node.target, torch._ops.OpOverload):
        return []
    given = [node.args[i] if i < len(node.args) else node.kwargs.get(a.name) for i, a in enumerate(_arguments(node))]
    noted = [(value, a.alias_info) for value, a in zip(given, _arguments(node), strict=True) if a.alias_info is not None]
    return _nodes(value for value, alias in noted if alias.is_write or not is_write)


def _arguments(node: torch.fx.Node) -> list[Any]:
    return list(node.target._schema.arguments) if isinstance(node.target, torch._ops.OpOverload) else []


def _nodes(values: Iterable[Any]) -> list[torch.fx.Node]:
    """The nodes among arguments, those in lists included."""
    flat = [v for value in values for v in (value if isinstance(value, tuple | list) else [value])]
    return [v for v in flat if isinstance(v, torch.fx.Node)]


def in_storage_order(program: ExportedProgram) -> Iterator[InputSpec]:
    """Input specs, weights in the order of the state dict: of tied weights the first is then the one files keep."""
    order = {name: i for i, name in enumerate(program.state_dict)}
    specs = program.graph_signature.input_specs
    yield from sorted(specs, key=lambda s: order.get(s.target or "", len(order)))


def _specs(program: ExportedProgram) -> Iterator[InputSpec]:
    """The specs of parameters, buffers and constants."""
    for spec in in_storage_order(program):
        if spec.kind in WEIGHT_KINDS and isinstance(spec.arg, TensorArgument):
            yield spec


def qualified_name(spec: InputSpec) -> str:
    """The fully qualified name of a parameter, buffer or constant."""
    if spec.target is None:
        raise RelaxError(f"expected a weight with a name, got none for '{spec.arg.name}'")
    return spec.target


def tensor_of(program: ExportedProgram, spec: InputSpec) -> torch.Tensor:
    """What an exported program holds for an input that is a weight or a buffer. Raises RelaxError where that is no tensor."""
    name = qualified_name(spec)
    value = program.state_dict[name] if name in program.state_dict else program.constants.get(name)
    if not isinstance(value, torch.Tensor):
        raise RelaxError(f"expected a tensor in the exported program for '{name}', got {type(value).__name__}")
    return torch.view_as_real(value) if value.is_complex() else value


def has_contents(tensor: torch.Tensor) -> bool:
    """Whether there are numbers behind a tensor: none on the ``meta`` device, nor under ``FakeTensorMode``."""
    return tensor.device.type != "meta" and not isinstance(tensor, torch._subclasses.FakeTensor)


def identity(tensor: torch.Tensor) -> Any:
    """Equal for tied weights: the same memory under the same shape.

    A number that is expanded over a shape stands for a weight that is elsewhere; two of those that share it need not be tied.
    """
    if not tensor.numel() or _is_expanded(tensor):
        return id(tensor)
    return (*_place(tensor), tensor.dtype, tuple(tensor.shape), tensor.stride())


def _is_expanded(tensor: torch.Tensor) -> bool:
    return any(size > 1 and not stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _place(tensor: torch.Tensor) -> tuple[int, int]:
    """An address space and an address in bytes: tensors without contents have a storage each, without addresses."""
    if has_contents(tensor):
        return 0, tensor.data_ptr()
    return tensor.untyped_storage()._cdata, int(tensor.storage_offset()) * int(tensor.element_size())


def _check_apart(state: Mapping[str, torch.Tensor], others: Mapping[str, torch.Tensor]) -> None:
    """What writes to state would have to change a tensor that sees a part of it, too."""
    places = [(*_extent(t), name) for name, t in {**others, **state}.items() if t.numel() and not _is_expanded(t)]
    reach: dict[int, tuple[int, str]] = {}
    for space, begin, end, name in sorted(places):
        last, before = reach.get(space, (begin, name))
        if begin < last and not {name, before}.isdisjoint(state):
            changed, other = (name, before) if name in state else (before, name)
            raise RelaxError(f"expected memory of its own for state '{changed}', got it shared with '{other}'")
        reach[space] = max((last, before), (end, name))


def _extent(tensor: torch.Tensor) -> tuple[int, int, int]:
    """The address space, and the addresses from the first element to behind the last one."""
    space, begin = _place(tensor)
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return space, begin, begin + (last + 1) * tensor.element_size()
