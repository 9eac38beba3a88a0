"""A relax module to object code and the manifest that says how to call it and how to prepare its weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from ..dialect.bindings import func, ir
from ..dialect.call_graph import CallGraph
from ..dialect.dtypes import numpy_dtype
from ..dialect.errors import RelaxError, warn
from ..dialect.functions import (
    TRANSFORM_FOR,
    argument_names,
    body_of,
    functions,
    is_private,
    name_of,
    result_names,
    returned_values,
    set_names,
    transform_targets,
)
from ..dialect.transform_rules import unmarked_transforms
from .cpu.arena import ALIGNMENT, Arena
from .cpu.pipeline import compile_linalg
from .linalg.io import refuse_lazy_io
from .linalg.to_linalg import relax_to_linalg
from .manifest_digest import llvm_constant
from .marks import CHECKS
from .partition import partition_transform
from .signature import Signature, TensorSpec
from .size_checks import SizeChecks
from .target import Target

__all__ = ["Compiled", "compile_module"]


@dataclass(frozen=True)
class Compiled:
    """Object code and its manifest (version 1, see ``lowering/README.md``)."""

    object_code: bytes
    manifest: dict[str, Any]


@dataclass
class _Preparation:
    """How the prepared weights of all entries come to be.

    Attributes:
        raw, prepared: tensors by name.
        sources: the raw weights, and the ops, behind each prepared weight.
        steps: what to run; a step without a signature copies.
        computations: what each distinct step function is called with, by its text.
        done: the steps there are, as (text, gets, sets).
    """

    raw: dict[str, TensorSpec] = field(default_factory=dict)
    prepared: dict[str, TensorSpec] = field(default_factory=dict)
    sources: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    steps: list[_PreparationStep] = field(default_factory=list)
    computations: dict[str, Signature] = field(default_factory=dict)
    done: set[tuple[str, tuple[str, ...], tuple[str, ...]]] = field(default_factory=set)

    def add_raw(self, spec: TensorSpec) -> None:
        """Enters a raw weight. Raises RelaxError when its shape is symbolic, or not the same in all functions."""
        if any(not isinstance(d, int) for d in spec.shape):
            raise RelaxError(
                f"expected a weight of static shape, got '{spec.name}' of shape [{', '.join(map(str, spec.shape))}]"
            )
        known = self.raw.setdefault(spec.name, spec)
        if known != spec:
            raise RelaxError(
                f"expected one type for weight '{spec.name}' in all functions, got {known.shape} {known.dtype} "
                f"and {spec.shape} {spec.dtype}"
            )


@dataclass(frozen=True)
class _PreparationStep:
    signature: Signature | None
    gets: tuple[str, ...]
    sets: tuple[str, ...]


def compile_module(module: ir.Operation, target: Target, checked: bool = False) -> Compiled:
    """Compiles every public function, and the preparation of the weights of those that have a transform function.

    Args:
        module: a module of relax functions; it is consumed.
        target: what to generate code for.
        checked: whether every access of the code says that it is inside of its buffer.

    Raises:
        RelaxError: a function cannot be compiled, with the location of the op that is to blame.
    """
    with module.context, ir.Location.unknown():
        refuse_lazy_io(module)
        public = [f for f in functions(module) if body_of(f) is not None and not is_private(f)]
        transforms = {name: f for f in public for name in transform_targets(f)}
        _warn_of_unmarked(module)
        entries = [f for f in public if not transform_targets(f)]
        _refuse_recursion(module)
        if not entries:
            raise RelaxError("expected a public function to compile, got none")
        preparation = _prepare(entries, transforms)
        signatures = [Signature.of(f) for f in entries]
        _check_state(signatures)
        _check_symbols([*signatures, *preparation.computations.values()])
        private = [f for f in functions(module) if is_private(f)]
        sizes = {s.name: SizeChecks.of(f, s, private) for f, s in zip(entries, signatures, strict=True)}
        relax_to_linalg(module, tile=target.matmul_tile[1])
        checks = _checks(module)
        every = [*signatures, *preparation.computations.values()]

        def manifest(arenas: Mapping[str, Arena]) -> dict[str, Any]:
            found = _manifest(signatures, preparation, arenas, checks, sizes, target)
            return found if sites is None else found | {"accesses": sites}

        names, sites = [s.name for s in signatures], ([] if checked else None)
        code = compile_linalg(module, every, target, names, lambda arenas: llvm_constant(manifest(arenas)), sites)
    return Compiled(code.object_code, manifest(code.arenas))


def _refuse_recursion(module: ir.Operation) -> None:
    """Raises RelaxError naming a cycle of calls: memory is planned ahead, so that nothing bounds it where calls may nest."""
    cycle = CallGraph(module).cycle()
    if cycle:
        text = " -> ".join(f"@{name_of(f)}" for f in (*cycle, cycle[0]))
        raise RelaxError(f"'func.func' op expected no recursion in compiled code, got the calls {text}", cycle[0].location)


def _warn_of_unmarked(module: ir.Operation) -> None:
    for function in unmarked_transforms({name_of(f): f for f in functions(module)}):
        what = f"@{name_of(function)} is compiled as an entry and prepares no weights"
        warn(f"'func.func' op has no {TRANSFORM_FOR}: {what}", function.location)


def _prepare(entries: list[func.FuncOp], transforms: Mapping[str, func.FuncOp]) -> _Preparation:
    """Partitions the transforms, keeps one of equal steps, and drops the transform functions."""
    preparation = _Preparation()
    prepared_by: dict[str, list[func.FuncOp]] = {}
    for entry in entries:
        transform = transforms.get(name_of(entry))
        if transform is not None:
            prepared_by.setdefault(name_of(transform), []).append(entry)
            continue
        for spec in Signature.of(entry).weights:
            _add_copy(preparation, spec)
    for targets in prepared_by.values():
        transform = transforms[name_of(targets[0])]
        _add_transform(preparation, targets, transform)
        transform.operation.erase()
    return preparation


def _check_state(signatures: list[Signature]) -> None:
    """Raises RelaxError when two functions have different state of one name."""
    known: dict[str, tuple[TensorSpec, bytes, str]] = {}
    for signature in signatures:
        for state in signature.state:
            found = (signature.inputs[state.argument], state.first, signature.name)
            other = known.setdefault(state.name, found)
            if other[:2] != found[:2]:
                raise RelaxError(
                    f"expected one type and first value for state '{state.name}', got others in @{other[2]} and @{found[2]}"
                )


def _check_symbols(signatures: list[Signature]) -> None:
    """Raises RelaxError when two functions have one name in C."""
    taken: dict[str, str] = {}
    for signature in signatures:
        other = taken.setdefault(signature.symbol_name, signature.name)
        if other != signature.name:
            raise RelaxError(f"expected function names that differ in C, got @{other} and @{signature.name}")


def _add_copy(preparation: _Preparation, spec: TensorSpec, name: str | None = None) -> None:
    """A raw weight that is a prepared one as it is, under its own or another name."""
    name = name or spec.name
    preparation.add_raw(spec)
    if name not in preparation.prepared:
        preparation.prepared[name] = TensorSpec(name, spec.shape, spec.dtype)
        preparation.sources[name] = ([spec.name], [])
        preparation.steps.append(_PreparationStep(None, (spec.name,), (name,)))


def _add_transform(preparation: _Preparation, entries: list[func.FuncOp], transform: func.FuncOp) -> None:
    signature = Signature.of(transform)
    raw = signature.inputs + signature.weights
    for value, spec in zip(returned_values(transform), signature.outputs, strict=True):
        if isinstance(value, ir.BlockArgument):
            _add_copy(preparation, raw[value.arg_number], spec.name)
    for step in partition_transform(transform):
        _add_step(preparation, entries, step)


def _add_step(preparation: _Preparation, entries: list[func.FuncOp], step: func.FuncOp) -> None:
    """Equal computations are compiled once; equal computations of the same weights are also run once."""
    signature, text = Signature.of(step), _body_text(step)
    taken, sets = signature.inputs + signature.weights, tuple(s.name for s in signature.outputs)
    gets = tuple(s.name for s in taken)
    known = preparation.computations.setdefault(text, signature)
    if known is not signature:
        step.operation.erase()
    if (text, gets, sets) in preparation.done:
        return
    preparation.done.add((text, gets, sets))
    for spec in taken:
        preparation.add_raw(spec)
    sets = tuple(_renamed(entries, name) if name in preparation.prepared else name for name in sets)
    for name, spec in zip(sets, signature.outputs, strict=True):
        preparation.prepared[name] = TensorSpec(name, spec.shape, spec.dtype)
        preparation.sources[name] = (list(gets), _ops(text))
    preparation.steps.append(_PreparationStep(known, gets, sets))


def _renamed(entries: list[func.FuncOp], name: str) -> str:
    """Two transform functions prepare a weight of one name differently: the second one's is told apart by its function."""
    new = f"{name_of(entries[0])}/{name}"
    for entry in entries:
        names = [new if n == name else n for n in argument_names(entry)]
        set_names(entry, names, result_names(entry))
    return new


def _body_text(function: func.FuncOp) -> str:
    """The function without its name and those of its weights: equal texts compute the same."""
    text = function.operation.get_asm(enable_debug_info=False, use_local_scope=True)
    names = [n for n in argument_names(function) + result_names(function) if n is not None]
    for name in dict.fromkeys(names):
        text = text.replace(f" {{relax.name = {json.dumps(name)}}}", "")
    return text[text.index("(") :]


def _ops(text: str) -> list[str]:
    """The relax ops of a function's text, in order."""
    return [part.split('"', 1)[0] for part in text.split('"relax.')[1:]]


def _checks(module: ir.Operation) -> list[str]:
    if CHECKS not in module.attributes:
        return []
    return [ir.StringAttr(a).value for a in ir.ArrayAttr(module.attributes[CHECKS])]


def _manifest(
    signatures: list[Signature],
    preparation: _Preparation,
    arenas: Mapping[str, Arena],
    checks: list[str],
    sizes: Mapping[str, SizeChecks],
    target: Target,
) -> dict[str, Any]:
    steps = [
        {
            "symbol": None if step.signature is None else step.signature.symbol_name,
            "gets": list(step.gets),
            "sets": list(step.sets),
            "arena_bytes": 0 if step.signature is None else arenas[step.signature.name].size,
        }
        for step in preparation.steps
    ]
    prepared = [
        spec.as_json() | {"sources": preparation.sources[name][0], "ops": preparation.sources[name][1]}
        for name, spec in preparation.prepared.items()
    ]
    return {
        "format": "relaxir",
        "version": 1,
        "relaxir": version("relaxir"),
        "fingerprint": _fingerprint(preparation, steps),
        "target": {"triple": target.triple, "cpu": target.cpu, "features": target.features, "openmp": target.openmp},
        "entries": [_entry(s, checks) | sizes[s.name].as_json(arenas[s.name]) for s in signatures],
        "raw_weights": [spec.as_json() for spec in preparation.raw.values()],
        "prepared_weights": prepared,
        "steps": steps,
        "peak_bytes": max((_step_bytes(preparation, s) for s in steps), default=0),
    }


def _entry(signature: Signature, checks: list[str]) -> dict[str, Any]:
    state = {s.argument for s in signature.state}
    return {
        "name": signature.name,
        "symbol": signature.symbol_name,
        "symbols": [{"name": n, "min": low, "max": high} for n, (low, high) in signature.symbols.items()],
        "inputs": [s.as_json() for i, s in enumerate(signature.inputs) if i not in state],
        "state": [signature.inputs[s.argument].as_json() | s.as_json() for s in signature.state],
        "weights": [s.as_json() for s in signature.weights],
        "outputs": [s.as_json() for s in signature.outputs],
        "checks": checks,
    }


def _step_bytes(preparation: _Preparation, step: Mapping[str, Any]) -> int:
    """What is live while a step runs: its weights, its scratch memory and its results, each aligned; a copy has no others."""
    weights = sum(_bytes(preparation.raw[n]) for n in step["gets"])
    if step["symbol"] is None:
        return weights
    results = (_bytes(preparation.prepared[n]) for n in step["sets"])
    return weights + int(step["arena_bytes"]) + sum(-(-r // ALIGNMENT) * ALIGNMENT for r in results)


def _bytes(spec: TensorSpec) -> int:
    total = numpy_dtype(spec.dtype).itemsize
    for dim in spec.shape:
        assert isinstance(dim, int)
        total *= dim
    return total


def _fingerprint(preparation: _Preparation, steps: list[dict[str, Any]]) -> str:
    """Identifies what the prepared weights are: the computations, and the names and types around them."""
    content = {
        "raw": [s.as_json() for s in preparation.raw.values()],
        "prepared": [s.as_json() for s in preparation.prepared.values()],
        "steps": [[s["gets"], s["sets"]] for s in steps],
        "computations": list(preparation.computations),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
