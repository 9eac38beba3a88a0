"""Functions that prepare weights become steps that run, are skipped or are repeated alone; the module says which there are.

Before::

    func.func @main_transform_params(%a {relax.name = "a"}, %b {relax.name = "b"})
        -> (tensor<..> {relax.name = "a.exp"}, tensor<..> {relax.name = "b.exp"}, tensor<..> {relax.name = "a"})
        attributes {relax.transform_for = @main}

after, where both are computed alike::

    module attributes {relax.preparation = {fingerprint = "...", raw_weights = [...], prepared_weights = [...],
        steps = [{gets = ["a"], sets = ["a"]},
                 {gets = ["a"], sets = ["a.exp"], symbol = "relaxir_main_transform_params_step0"},
                 {gets = ["b"], sets = ["b.exp"], symbol = "relaxir_main_transform_params_step0"}]}} {
      func.func @main_transform_params.step0(%a {relax.name = "a"}) -> (tensor<..> {relax.name = "a.exp"})
          attributes {relax.entry = {step = true, ...}}

A step without a symbol copies. Equal computations are compiled once, and run once where they read the same weights.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..dialect.analysis.packed_weights import packed_weights
from ..dialect.array_spec import ArraySpec
from ..dialect.bindings import func, ir
from ..dialect.constants import CONSTANTS, constant_arrays
from ..dialect.cut import Cut
from ..dialect.dtypes import dtype_name
from ..dialect.errors import RelaxError
from ..dialect.functions import (
    argument_names,
    name_of,
    result_names,
    returned_values,
    set_names,
    transform_targets,
)
from ..dialect.packed_layout import PackedLayout
from ..dialect.sharding import ranks_of, shards_of
from ..dialect.traversal import nested_operations
from .boundary import Boundary, static_array, weights_of
from .c_names import symbol_name
from .check_entries import entry_functions, public_functions
from .entries import Entry, Preparation, write_entry, write_preparation
from .lowering_pass import LoweringPass
from .manifest_specs import PreparedSpec, RawSpec, TensorSpec, WeightSpec
from .manifest_steps import PartsSpec, SegmentSpec, StepSpec, TensorPart
from .marks import PREPARATION
from .partition import partition_transform
from .split_steps import bytes_of_step, split_step
from .step_segments import Segment, narrowed, segments_of

__all__ = ["PartitionTransforms", "partition_transforms"]

Array = np.ndarray[Any, Any]

_ARGUMENTS = ("arg_attrs", "res_attrs")

# Of relax.call_extern; within a string the quotes would be \22.
_LIBRARY = re.compile(r'\blibrary = "[^"]*", ')


@dataclass(frozen=True)
class PartitionTransforms(LoweringPass):
    """Splits the functions that prepare weights into steps, and says which there are."""

    name: ClassVar[str] = "relax-partition-transforms"

    def run(self, op: ir.Operation) -> None:
        partition_transforms(op)


def partition_transforms(module: ir.Operation) -> None:
    """Replaces the transform functions, in place; a module that says already what its steps are stays as it is.

    Raises:
        RelaxError: a weight has no static shape, or another type in another function.
    """
    if PREPARATION in module.attributes:
        return
    entries = entry_functions(module)
    transforms = {name: f for f in public_functions(module) for name in transform_targets(f)}
    steps = _Steps(constant_arrays(module), shards_of(module), ranks_of(module))
    prepared_by: dict[str, list[func.FuncOp]] = {}
    for entry in entries:
        transform = transforms.get(name_of(entry))
        if transform is not None:
            prepared_by.setdefault(name_of(transform), []).append(entry)
            continue
        for spec in weights_of(entry):
            steps.add_copy(spec)
    for targets in prepared_by.values():
        transform = transforms[name_of(targets[0])]
        steps.add_transform(targets, transform)
        transform.operation.erase()
    write_preparation(module, steps.preparation({name: layout for f in entries for name, layout in packed_weights(f).items()}))


@dataclass
class _Steps:
    """The preparation in the making.

    Attributes:
        constants: the values of weights that the module knows.
        cuts: of weights of which each rank has a part, how they are cut.
        ranks: how many ranks there are.
        raw, prepared: weights by name, in the order of the manifest.
        steps: what to run.
        computations: the symbol of each distinct computation, by its text.
        parts, segments: how each of them runs on one piece after another, where it can.
        segment_parts: how each distinct segment runs, by its text.
        done: the computed steps there are, as (text, gets, reads, sets).
    """

    constants: Mapping[str, Array]
    cuts: Mapping[str, Cut]
    ranks: int
    raw: dict[str, RawSpec] = field(default_factory=dict[str, RawSpec])
    prepared: dict[str, PreparedSpec] = field(default_factory=dict[str, PreparedSpec])
    steps: list[StepSpec] = field(default_factory=list[StepSpec])
    computations: dict[str, str] = field(default_factory=dict[str, str])
    parts: dict[str, PartsSpec | None] = field(default_factory=dict[str, PartsSpec | None])
    segments: dict[str, tuple[SegmentSpec, ...]] = field(default_factory=dict[str, tuple[SegmentSpec, ...]])
    segment_parts: dict[str, PartsSpec] = field(default_factory=dict[str, PartsSpec])
    done: set[tuple[str, tuple[str, ...], tuple[TensorPart, ...], tuple[str, ...]]] = field(default_factory=set)

    def add_copy(self, spec: TensorSpec, name: str | None = None) -> None:
        """A raw weight that is a prepared one as it is, under its own or another name."""
        name = name or spec.name
        array = self._add_raw(spec)
        if name not in self.prepared:
            self.prepared[name] = PreparedSpec(name, array, (spec.name,))
            self.steps.append(StepSpec(None, (spec.name,), (name,), 0))

    def add_transform(self, entries: list[func.FuncOp], transform: func.FuncOp) -> None:
        """The steps of a transform function, which stays; ``entries`` read what it prepares."""
        boundary = Boundary.of(transform)
        raw = boundary.inputs + boundary.weights
        for value, spec in zip(returned_values(transform), boundary.outputs, strict=True):
            if isinstance(value, ir.BlockArgument):
                self.add_copy(raw[value.arg_number], spec.name)
        for step in partition_transform(transform):
            self._add_step(entries, step)

    def preparation(self, layouts: Mapping[str, PackedLayout]) -> Preparation:
        """All of it; ``layouts`` are those of the prepared weights that are packed."""
        raw, prepared = tuple(self.raw.values()), tuple(replace(p, layout=layouts.get(p.name)) for p in self.prepared.values())
        return Preparation(self._fingerprint(), raw, prepared, tuple(self.steps))

    def _add_raw(self, spec: TensorSpec) -> ArraySpec:
        """Enters a raw weight. Raises RelaxError when its shape is symbolic, or not the same in all functions."""
        array = static_array(spec)
        raw = RawSpec(spec.name, array, self._value(spec.name, array), self.cuts.get(spec.name))
        known = self.raw.setdefault(spec.name, raw).array
        if known != array:
            got = " and ".join(f"{a.shape} {dtype_name(a.dtype)}" for a in (known, array))
            raise RelaxError(f"expected one type for weight '{spec.name}' in all functions, got {got}")
        return array

    def _value(self, name: str, array: ArraySpec) -> bytes | None:
        """The bytes of a weight that the module knows. Raises RelaxError when what it knows has another type."""
        value = self.constants.get(name)
        if value is not None and ArraySpec.of(value) != array:
            raise RelaxError(f"expected a value of {array} in {CONSTANTS} for weight '{name}', got {ArraySpec.of(value)}")
        return None if value is None else value.tobytes()

    def _add_step(self, entries: list[func.FuncOp], step: func.FuncOp) -> None:
        """Equal computations are compiled once; equal computations of the same weights are also run once."""
        boundary, ops = Boundary.of(step), _ops(step)
        taken, sets = boundary.inputs + boundary.weights, tuple(s.name for s in boundary.outputs)
        step, places = narrowed(step)
        gets = tuple(taken[place.position].name for place in places)
        reads = tuple(TensorPart(i, place.ranges) for i, place in enumerate(places) if place.ranges)
        text = _body_text(step)
        if text in self.computations:
            step.operation.erase()
        else:
            self.segments[text], self.computations[text], self.parts[text] = self._functions(step)
        if (text, gets, reads, sets) in self.done:
            return
        self.done.add((text, gets, reads, sets))
        for spec in taken:
            self._add_raw(spec)
        sets = tuple(_renamed(entries, name) if name in self.prepared else name for name in sets)
        for name, spec in zip(sets, boundary.outputs, strict=True):
            self.prepared[name] = PreparedSpec(name, static_array(spec), gets, ops)
        self.steps.append(StepSpec(self.computations[text], gets, sets, 0, self.parts[text], self.segments[text], reads))

    def _functions(self, step: func.FuncOp) -> tuple[tuple[SegmentSpec, ...], str, PartsSpec | None]:
        """The segments of a step, its symbol, and how it runs on pieces, whose functions are entries, too.

        It goes where pieces are blocks.
        """
        parts, made = split_step(step) or (None, [])
        segments = tuple(map(self._segment, segments_of(step, None if parts is None else bytes_of_step(step) // parts.count)))
        if parts is None or parts.blocks is None:
            made = [step, *made]
        _write_entries(made)
        symbol = symbol_name(made[0])
        if made[0] != step:
            step.operation.erase()
        return segments, symbol, parts

    def _segment(self, segment: Segment) -> SegmentSpec:
        """A segment of a step; equal ones have the same functions."""
        text = _body_text(segment.function)
        if text in self.segment_parts:
            segment.function.operation.erase()
        else:
            self.segment_parts[text], made = segment.split()
            _write_entries(made)
            if segment.function not in made:
                segment.function.operation.erase()
        return SegmentSpec(self.segment_parts[text], segment.gets, segment.made)

    def _fingerprint(self) -> str:
        """Identifies what the prepared weights are: the computations, and the names and types around them.

        Where a library of others lies says nothing of what its functions compute: their ``version`` does.
        """
        content = {
            "raw": [w.as_json() for w in self.raw.values()],
            "prepared": [WeightSpec(w.name, w.array).as_json() for w in self.prepared.values()],
            "steps": [[list(s.gets), list(s.sets), *(r.as_json() for r in s.reads)] for s in self.steps],
            "computations": [_LIBRARY.sub("", text) for text in self.computations],
        } | ({} if self.ranks == 1 else {"ranks": self.ranks})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _write_entries(functions: Iterable[func.FuncOp]) -> None:
    for function in functions:
        write_entry(function, Entry(Boundary.of(function).spec(), is_step=True))


def _renamed(entries: list[func.FuncOp], name: str) -> str:
    """Two transform functions prepare a weight of one name differently: the second one's is told apart by its function."""
    new = f"{name_of(entries[0])}/{name}"
    for entry in entries:
        names = [new if n == name else n for n in argument_names(entry)]
        set_names(entry, names, result_names(entry))
    return new


def _body_text(function: func.FuncOp) -> str:
    """What a function computes, whatever it and its tensors are called: equal texts compute the same.

    The bindings compare operations by identity alone, so what is compared, and is part of the fingerprint, is how MLIR prints
    it. Names are taken out of the attributes for that, and are back at the end.
    """
    kept = {key: function.attributes[key] for key in _ARGUMENTS if key in function.attributes}
    for key in kept:
        del function.attributes[key]
    text = function.operation.get_asm(enable_debug_info=False, use_local_scope=True, assume_verified=True)
    for key, attribute in kept.items():
        function.attributes[key] = attribute
    return text[text.index("(") :]


def _ops(function: func.FuncOp) -> tuple[str, ...]:
    """The relax ops of a function, in order, inner ones behind those around them."""
    inner = (op.name for op in nested_operations(function.operation))
    return tuple(name.removeprefix("relax.") for name in inner if name.startswith("relax."))
