"""Reads the signature of an ExportedProgram: which graph inputs are inputs, state and weights, and what they are called."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from torch.utils import _pytree as pytree

from ..dialect.errors import RelaxError

__all__ = ["Argument", "Program", "Returned", "Stored", "read_program", "stored_tensors", "stored_together", "symbol_names"]

_WEIGHT_KINDS = {InputKind.PARAMETER: "param", InputKind.BUFFER: "buffer", InputKind.CONSTANT_TENSOR: "constant"}


@dataclass(frozen=True)
class Argument:
    """A graph input that becomes an argument of the function.

    Attributes:
        kind: ``input``, ``state`` (a buffer that the model changes), ``param``, ``buffer`` or ``constant``.
        name: name of the Python parameter, or the weight's fully qualified name.
        node: name of the graph's placeholder.
    """

    kind: str
    name: str
    node: str


@dataclass(frozen=True)
class Returned:
    """A graph output: ``node`` is its producer, or None for a Python constant, which is then in ``value``."""

    kind: str
    name: str
    node: str | None
    value: Any = None


@dataclass(frozen=True)
class Program:
    """What of an exported program becomes which argument and result.

    Attributes:
        arguments: inputs, then state, then weights.
        aliases: for a placeholder of a tied weight the one that stands for all of them.
        constants: placeholders that are Python constants, with their values.
        results: user outputs, then inputs that the model changes, then new state.
        state: the first value of each state.
    """

    arguments: list[Argument]
    aliases: dict[str, str]
    constants: dict[str, Any]
    results: list[Returned]
    state: dict[str, torch.Tensor]

    def renamed(self, names: Mapping[str, str]) -> Program:
        """The program with other names for its weights."""
        weights = ("param", "buffer", "constant")
        return replace(
            self, arguments=[replace(a, name=names.get(a.name, a.name)) if a.kind in weights else a for a in self.arguments]
        )


@dataclass(frozen=True)
class Stored:
    """The weights of several programs.

    Attributes:
        tensors: all of them by name.
        names: what the weights of each program are called among them.
    """

    tensors: dict[str, torch.Tensor]
    names: dict[str, dict[str, str]]


def read_program(program: ExportedProgram) -> Program:
    """Sorts a program's inputs and outputs.

    Raises:
        RelaxError: an input or output is something that a function of tensors cannot take (a custom object, a token, an
            integer that becomes a shape), naming it.
    """
    changed = {s.target for s in program.graph_signature.output_specs if s.kind is OutputKind.BUFFER_MUTATION}
    names = _input_names(program)
    first: dict[Any, str] = {}
    inputs: list[Argument] = []
    state: list[Argument] = []
    first_values: dict[str, torch.Tensor] = {}
    weights: list[Argument] = []
    aliases: dict[str, str] = {}
    constants: dict[str, Any] = {}
    for spec in _in_storage_order(program):
        if isinstance(spec.arg, ConstantArgument):
            constants[spec.arg.name] = spec.arg.value
        elif spec.kind is InputKind.USER_INPUT:
            inputs.append(Argument("input", names[spec.arg.name], _tensor_node(spec, names[spec.arg.name])))
        elif spec.kind not in _WEIGHT_KINDS:
            raise RelaxError(f"expected inputs that are tensors, got '{spec.arg.name}' ({spec.kind.name.lower()})")
        elif spec.target in changed:
            state.append(Argument("state", _target(spec), _tensor_node(spec, _target(spec))))
            first_values[_target(spec)] = _stored(program, spec)
        else:
            node, key = _tensor_node(spec, _target(spec)), _identity(_stored(program, spec))
            aliases[node] = first.setdefault(key, node)
            if aliases[node] == node:
                weights.append(Argument(_WEIGHT_KINDS[spec.kind], _target(spec), node))
    by_position = {s.arg.name: i for i, s in enumerate(program.graph_signature.input_specs)}
    for group in (inputs, state, weights):
        group.sort(key=lambda a: by_position[a.node])
    tied = {node: canonical for node, canonical in aliases.items() if node != canonical}
    return Program([*inputs, *state, *weights], tied, constants, _results(program, names), first_values)


def stored_together(programs: Mapping[str, ExportedProgram]) -> Stored:
    """The weights of several programs under names that all of them can use.

    Raises:
        RelaxError: two programs have different parameters, or buffers, of one name: they are of different models.
    """
    stored = Stored({}, {})
    for entry, program in programs.items():
        names = stored.names[entry] = {}
        constants = {s.target for s in program.graph_signature.input_specs if s.kind is InputKind.CONSTANT_TENSOR}
        for name, tensor in stored_tensors(program).items():
            known = stored.tensors.setdefault(name, tensor)
            names[name] = name if _is_equal(known, tensor) else f"{entry}/{name}"
            if names[name] == name:
                continue
            if name not in constants:
                raise RelaxError(f"expected one tensor for '{name}' in all programs, got another one in '{entry}'")
            stored.tensors[names[name]] = tensor
    return stored


def _is_equal(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left is right or _identity(left) == _identity(right):
        return True
    if left.shape != right.shape or left.dtype != right.dtype or left.device != right.device:
        return False
    return left.device.type == "meta" or torch.equal(left, right)


def stored_tensors(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """Every tensor that :func:`relaxir.save_weights` writes, by fully qualified name: parameters and persistent buffers, and
    those other buffers and constants that the graph reads; of tied ones only the first; none that it changes.
    """  # fmt: skip
    changed = _changed_nodes(program)
    found: dict[str, torch.Tensor] = {}
    seen: set[Any] = set()
    used = {n.name for n in program.graph.nodes if n.op == "placeholder" and n.users}
    for spec in _in_storage_order(program):
        if spec.kind not in _WEIGHT_KINDS or not isinstance(spec.arg, TensorArgument) or spec.arg.name in changed:
            continue
        tensor = _stored(program, spec)
        kept = _target(spec) in program.state_dict or spec.arg.name in used
        if kept and _identity(tensor) not in seen:
            seen.add(_identity(tensor))
            found[_target(spec)] = tensor
    return found


def _changed_nodes(program: ExportedProgram) -> set[str]:
    """Placeholders that the graph writes to: as its signature says, once decomposed, else by operators that work in place."""
    mutated = {s.target for s in program.graph_signature.output_specs if s.kind is OutputKind.BUFFER_MUTATION}
    found = {s.arg.name for s in program.graph_signature.input_specs if s.target in mutated}
    for node in program.graph.nodes:
        for written in _aliased(node, is_write=True):
            while written.op != "placeholder" and (viewed := _aliased(written, is_write=False)):
                written = viewed[0]
            found.add(written.name)
    return found


def _aliased(node: torch.fx.Node, is_write: bool) -> list[torch.fx.Node]:
    """The operands that an operator writes to, or those whose memory its result may be in."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return []
    found: list[torch.fx.Node] = []
    for argument, value in zip(node.target._schema.arguments, node.args, strict=False):
        alias = argument.alias_info
        if isinstance(value, torch.fx.Node) and alias is not None and (alias.is_write or not is_write):
            found.append(value)
    return found


def symbol_names(program: ExportedProgram) -> dict[str, str]:
    """The user's ``torch.export.Dim`` names by the symbol's name in the graph; symbols without a usable name are absent."""
    env = next((e for e in map(_shape_env, program.graph.nodes) if e is not None), None)
    if env is None:
        return {}
    names: dict[str, str] = {}
    for source, variable in env.source_to_var.items():
        name = env.source_name_to_debug_name.get(source, source)
        symbol = str(env.replace(variable))
        usable = name.isidentifier() and not keyword.iskeyword(name) and name not in names.values()
        if usable and symbol.isidentifier():
            names.setdefault(symbol, name)
    return names


def _shape_env(node: torch.fx.Node) -> Any:
    return getattr(getattr(node.meta.get("val"), "fake_mode", None), "shape_env", None)


def _in_storage_order(program: ExportedProgram) -> Iterator[InputSpec]:
    """Input specs, weights in the order of the state dict: of tied weights the first is then the one files keep."""
    order = {name: i for i, name in enumerate(program.state_dict)}
    specs = program.graph_signature.input_specs
    yield from sorted(specs, key=lambda s: order.get(s.target or "", len(order)))


def _target(spec: InputSpec) -> str:
    if spec.target is None:
        raise RelaxError(f"expected a weight with a name, got none for '{spec.arg.name}'")
    return spec.target


def _stored(program: ExportedProgram, spec: InputSpec) -> torch.Tensor:
    name = _target(spec)
    value = program.state_dict[name] if name in program.state_dict else program.constants.get(name)
    if not isinstance(value, torch.Tensor):
        raise RelaxError(f"expected a tensor in the exported program for '{name}', got {type(value).__name__}")
    return value


def _identity(tensor: torch.Tensor) -> Any:
    """Equal for tied weights: the same bytes under the same shape. A tensor without memory is only itself."""
    if tensor.device.type == "meta" or not tensor.numel():
        return id(tensor)
    return (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())


def _tensor_node(spec: InputSpec, name: str) -> str:
    if isinstance(spec.arg, TensorArgument):
        return spec.arg.name
    what = "an integer" if isinstance(spec.arg, SymIntArgument) else type(spec.arg).__name__
    raise RelaxError(f"expected input '{name}' to be a tensor, got {what}; export with a constant or a 0-d tensor instead")


def _input_names(program: ExportedProgram) -> dict[str, str]:
    """Python names of the user inputs by placeholder; one that a weight has, too, gets ``_input`` behind it."""
    nodes = [s.arg.name for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    signature = program.module_call_graph[0].signature if program.module_call_graph else None
    given = list(getattr(signature, "forward_arg_names", None) or [])
    flat = len(given) == len(nodes) == (signature.in_spec.num_leaves if signature else -1)
    names = given if flat else nodes
    weights = {s.target for s in program.graph_signature.input_specs if s.kind is not InputKind.USER_INPUT}
    return {node: f"{name}_input" if name in weights else name for node, name in zip(nodes, names, strict=True)}


def _results(program: ExportedProgram, names: dict[str, str]) -> list[Returned]:
    specs = program.graph_signature.output_specs
    user = [s for s in specs if s.kind is OutputKind.USER_OUTPUT]
    paths = _output_names(program, len(user))
    outputs = [_returned(s, name) for s, name in zip(user, paths, strict=True)]
    changed = [_changed(s, names) for s in specs if s.kind is not OutputKind.USER_OUTPUT]
    return [o for o in outputs if o is not None] + sorted(changed, key=lambda r: r.kind)


def _returned(spec: OutputSpec, name: str) -> Returned | None:
    """None for an output that is Python's None: there is nothing to return."""
    if isinstance(spec.arg, TensorArgument | SymIntArgument):
        return Returned("output", name, spec.arg.name)
    if not isinstance(spec.arg, ConstantArgument):
        raise RelaxError(f"expected outputs that are tensors, got {type(spec.arg).__name__} for '{name}'")
    if spec.arg.value is None:
        return None
    if not isinstance(spec.arg.value, bool | int | float):
        raise RelaxError(f"expected outputs that are tensors or numbers, got {spec.arg.value!r} for '{name}'")
    return Returned("output", name, None, spec.arg.value)


def _changed(spec: OutputSpec, names: dict[str, str]) -> Returned:
    """A buffer's new value is state; an input's comes back as one more output."""
    if spec.kind is OutputKind.BUFFER_MUTATION:
        return Returned("state", str(spec.target), spec.arg.name)
    if spec.kind is OutputKind.USER_INPUT_MUTATION:
        return Returned("output", names[str(spec.target)], spec.arg.name)
    raise RelaxError(f"expected an inference graph, got an output of kind {spec.kind.name.lower()}")


def _output_names(program: ExportedProgram, count: int) -> list[str]:
    """``logits`` for an output with a key, ``output0`` for one that has only a position, ``kv_0`` for nested ones."""
    spec = program.call_spec.out_spec
    if spec is None or spec.num_leaves != count:
        return [f"output{i}" for i in range(count)]
    paths, _ = pytree.tree_flatten_with_path(pytree.tree_unflatten(list(range(count)), spec))
    names = ["_".join(_key_text(key) for key in path) for path, _ in paths]
    names = [name if name[:1].isalpha() else f"output{name or i}" for i, name in enumerate(names)]
    return names if len(set(names)) == count else [f"output{i}" for i in range(count)]


def _key_text(key: Any) -> str:
    return str(next((getattr(key, a) for a in ("key", "name", "idx") if hasattr(key, a)), key))
