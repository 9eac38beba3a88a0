"""Reads the signature of an ExportedProgram: which graph inputs are inputs, state and weights, and what they are called."""

from __future__ import annotations

import keyword
import re
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from torch.utils import _pytree as pytree

from ..dialect.errors import RelaxError
from .torch_guards import KEPT, guards_by_symbol
from .torch_stored import WEIGHT_KINDS, Stored, changed_targets, has_contents, in_storage_order, qualified_name

__all__ = ["Argument", "Program", "Returned", "changed_inputs", "check_dims", "kept_names", "read_program", "symbol_names"]

#: What torch calls symbols itself; such a name could be another one's.
_OF_TORCH = re.compile(r"[suz]\d+")

#: Under what the names of dimensions are noted in a graph that is saved.
_KEPT = "relaxir.dims"


@dataclass(frozen=True)
class Argument:
    """A graph input that becomes an argument of the function.

    Attributes:
        kind: ``input``, ``state`` (a buffer that the model changes), ``param``, ``buffer`` or ``constant``.
        name: name of the Python parameter, or the weight's fully qualified name.
        node: name of the graph's placeholder.
        alike: of a zero point the integer that all its elements are, where they are one.
        keyword: whether the program was exported with it by keyword, and takes it so.
    """

    kind: str
    name: str
    node: str
    alike: int | None = None
    keyword: bool = False


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


def read_program(program: ExportedProgram, stored: Stored, entry: str) -> Program:
    """Sorts a program's inputs and outputs.

    Args:
        program: the program, decomposed or as it was exported.
        stored: what :func:`~.torch_stored.stored_together` says of all programs.
        entry: which of them this one is.

    State that the program only reads is an argument and, as it is, a result: so another program's changes get here.

    Raises:
        RelaxError: an input or output is something that a function of tensors cannot take (a custom object, a token, an
            integer that becomes a shape), naming it.
    """
    names = _input_names(program)
    called, keywords = stored.names[entry], _keywords(program)
    changed = changed_targets(program)
    used = {n.name for n in program.graph.nodes if n.op == "placeholder" and n.users}
    zero_points = _zero_points(program)
    inputs: list[Argument] = []
    constants: dict[str, Any] = {}
    sharing: dict[str, list[InputSpec]] = {}
    for spec in in_storage_order(program):
        if isinstance(spec.arg, ConstantArgument):
            constants[spec.arg.name] = spec.arg.value
        elif spec.kind is InputKind.USER_INPUT:
            name = names[spec.arg.name]
            inputs.append(Argument("input", name, _tensor_node(spec, name), keyword=spec.arg.name in keywords))
        elif spec.kind is InputKind.TOKEN:
            continue  # of an operator with effects, which has no relax form and is reported with all others
        elif spec.kind not in WEIGHT_KINDS:
            raise RelaxError(f"expected inputs that are tensors, got '{spec.arg.name}' ({spec.kind.name.lower()})")
        else:
            sharing.setdefault(called.get(qualified_name(spec), qualified_name(spec)), []).append(spec)
    state: list[Argument] = []
    weights: list[Argument] = []
    tied: dict[str, str] = {}
    for name, specs in sharing.items():
        one = next((s for s in specs if s.target in changed), specs[0])
        node = _tensor_node(one, name)
        tied.update((_tensor_node(s, name), node) for s in specs if s is not one)
        if name not in stored.state:
            alike = _alike(stored.tensors.get(name)) if node in zero_points else None
            weights.append(Argument(WEIGHT_KINDS[one.kind], name, node, alike))
        elif one.target in changed or any(s.arg.name in used for s in specs):
            state.append(Argument("state", name, node))
    by_position = {s.arg.name: i for i, s in enumerate(program.graph_signature.input_specs)}
    for group in (inputs, state, weights):
        group.sort(key=lambda a: by_position[a.node])
    results = _results(program, names, called)
    written = {r.name for r in results if r.kind == "state"}
    results += [Returned("state", a.name, a.node) for a in state if a.name not in written]
    first_values = {a.name: stored.state[a.name] for a in state}
    return Program([*inputs, *state, *weights], tied, constants, results, first_values)


def changed_inputs(program: ExportedProgram) -> list[str]:
    """The names of inputs that the model writes to."""
    names = _input_names(program)
    specs = program.graph_signature.output_specs
    return [names[str(s.target)] for s in specs if s.kind is OutputKind.USER_INPUT_MUTATION]


def _zero_points(program: ExportedProgram) -> set[str]:
    """The placeholders that operators of quantized graphs take as zero points."""
    calls = [n for n in program.graph.nodes if n.op == "call_function" and str(n.target).startswith("quantized_decomposed.")]
    return {a.name for n in calls for a in n.args[2:3] if isinstance(a, torch.fx.Node)}


def _alike(tensor: torch.Tensor | None) -> int | None:
    """The integer that all elements of a tensor are; None where they differ, or are not there."""
    if tensor is None or tensor.is_floating_point() or not tensor.numel() or not has_contents(tensor):
        return None
    first = tensor.reshape(-1)[0]
    return int(first) if bool((tensor == first).all()) else None


def symbol_names(program: ExportedProgram, dims: Mapping[str, str]) -> dict[str, str]:
    """The user's names of dimensions by the symbol's name in the graph; symbols without a usable name are absent.

    Args:
        program: the program. One that ``torch.export.save`` wrote has lost the names of its ``torch.export.Dim``;
            :func:`kept_names` keeps them.
        dims: names that the user gives, with the input and the axis each, as ``"tokens.1"``, if the program has that input.

    Raises:
        RelaxError: the input has no such axis, or its size is no symbol.
    """
    env = next((e for e in map(_shape_env, program.graph.nodes) if e is not None), None)
    kept = _kept(program)
    if env is None and not dims:
        return kept
    inputs = _inputs_by_name(program)
    names: dict[str, str] = {}
    for name, place in dims.items():
        given, _, axis = place.rpartition(".")
        if given in inputs:
            known = names.setdefault(_symbol_of(inputs[given], given, int(axis)), name)
            if known != name:
                raise RelaxError(f"expected one name for a dimension, got '{known}' and '{name}' for {place}")
    for symbol, name in kept.items():
        if name not in names.values():
            names.setdefault(symbol, name)
    if env is None:
        return names
    for source, variable in env.source_to_var.items():
        name = env.source_name_to_debug_name.get(source, source)
        symbol = str(env.replace(variable))
        usable = name.isidentifier() and not keyword.iskeyword(name) and name not in names.values()
        if usable and symbol.isidentifier():
            names.setdefault(symbol, name)
    return names


@contextmanager
def kept_names(program: ExportedProgram) -> Generator[None]:
    """What is saved in it has the names of dimensions, and what it assumes of them, where torch keeps what users note."""
    noted: dict[str, Any] = program.graph_module.meta
    before = noted.get("custom")
    noted["custom"] = {**(before or {}), _KEPT: symbol_names(program, {}), KEPT: guards_by_symbol(program)}
    try:
        yield
    finally:
        noted.pop("custom")
        if before is not None:
            noted["custom"] = before


def _kept(program: ExportedProgram) -> dict[str, str]:
    """The names that a saved program has, by symbol; those that are none, of a file that something else wrote, left out."""
    custom: Any = program.graph_module.meta.get("custom")
    noted = cast("Mapping[str, object]", custom).get(_KEPT) if isinstance(custom, dict) else None
    found: dict[str, str] = {}
    for symbol, name in cast("Mapping[object, object]", noted).items() if isinstance(noted, dict) else ():
        if isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name) and name not in found.values():
            found[str(symbol)] = name
    return found


def check_dims(dims: Mapping[str, str], programs: Iterable[ExportedProgram]) -> None:
    """Raises RelaxError for names that are none, for places that are no input and axis, and for inputs that no program has."""
    inputs = list(dict.fromkeys(name for program in programs for name in _inputs_by_name(program)))
    for name, place in dims.items():
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or _OF_TORCH.fullmatch(name):
            raise RelaxError(f"expected a name for a dimension, got {name!r}")
        given, _, axis = place.rpartition(".") if isinstance(place, str) else ("", "", "")
        if given not in inputs or not axis.isdecimal():
            raise RelaxError(
                f"expected an input ({', '.join(inputs)}) and an axis for dimension '{name}', as x.0, got {place!r}"
            )


def _inputs_by_name(program: ExportedProgram) -> dict[str, torch.fx.Node]:
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    return {name: nodes[node] for node, name in _input_names(program).items() if node in nodes}


def _symbol_of(node: torch.fx.Node, name: str, axis: int) -> str:
    shape = getattr(node.meta.get("val"), "shape", ())
    if axis >= len(shape):
        raise RelaxError(f"expected an axis of input '{name}', which has {len(shape)} dimensions, got {axis}")
    if not str(shape[axis]).isidentifier():
        raise RelaxError(f"expected a dynamic dimension to name, {name}.{axis} is {shape[axis]}")
    return str(shape[axis])


def _shape_env(node: torch.fx.Node) -> Any:
    return getattr(getattr(node.meta.get("val"), "fake_mode", None), "shape_env", None)


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


def _keywords(program: ExportedProgram) -> set[str]:
    """Placeholders of what the program was exported with by keyword. Their order is that of the call, not of the signature."""
    nodes = [s.arg.name for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    spec: Any = program.call_spec.in_spec
    if spec is None or spec.num_leaves != len(nodes):
        return set()
    given, _ = pytree.tree_unflatten(nodes, spec)
    return set(nodes) - set(pytree.tree_leaves(given))


def _results(program: ExportedProgram, names: dict[str, str], called: Mapping[str, str]) -> list[Returned]:
    specs = program.graph_signature.output_specs
    user = [s for s in specs if s.kind is OutputKind.USER_OUTPUT]
    paths = _output_names(program, len(user))
    outputs = [_returned(s, name) for s, name in zip(user, paths, strict=True)]
    changed = [_changed(s, names, called) for s in specs if s.kind not in (OutputKind.USER_OUTPUT, OutputKind.TOKEN)]
    return [o for o in outputs if o is not None] + sorted(changed, key=lambda r: r.kind)


def _returned(spec: OutputSpec, name: str) -> Returned | None:
    """None for an output that is Python's None: there is nothing to return."""
    if isinstance(spec.arg, TensorArgument | SymIntArgument | SymFloatArgument | SymBoolArgument):
        return Returned("output", name, spec.arg.name)
    if not isinstance(spec.arg, ConstantArgument):
        raise RelaxError(f"expected outputs that are tensors, got {type(spec.arg).__name__} for '{name}'")
    if spec.arg.value is None:
        return None
    if not isinstance(spec.arg.value, bool | int | float):
        raise RelaxError(f"expected outputs that are tensors or numbers, got {spec.arg.value!r} for '{name}'")
    return Returned("output", name, None, spec.arg.value)


def _changed(spec: OutputSpec, names: dict[str, str], called: Mapping[str, str]) -> Returned:
    """A buffer's new value is state; an input's comes back as one more output."""
    if spec.kind is OutputKind.BUFFER_MUTATION:
        return Returned("state", called.get(str(spec.target), str(spec.target)), spec.arg.name)
    if spec.kind is OutputKind.USER_INPUT_MUTATION:
        return Returned("output", names[str(spec.target)], spec.arg.name)
    if spec.kind is OutputKind.PARAMETER_MUTATION:
        raise RelaxError(f"expected a model that changes no parameter, got one that changes '{spec.target}', as max_norm does")
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
