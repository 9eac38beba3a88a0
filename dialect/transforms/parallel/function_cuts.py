"""One function on parts of tensors: which of its values are cut, what is put together where, what is summed over all ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...analysis.weight_flow import WeightFlow
from ...bindings import func, ir
from ...cut import Cut
from ...errors import RelaxError
from ...functions import body_of, full_argument_names, initial_state, result_names, terminator
from ...inference import normalize_axis
from ...op import attrs_of, is_elementwise
from ...ops import IndexCopy, MatMul, Take
from ...struct_info import TensorInfo
from ...traversal import free_values, operations
from .cut_rules import Applied, Refine, apply_rule, is_one
from .weight_cuts import WeightCuts

__all__ = ["FunctionCuts"]


@dataclass
class FunctionCuts:
    """The plan for one function, which changes nothing.

    Attributes:
        function: the function.
        flow: what comes from its weights.
        decisions: which weights and state are cut, in all functions.
        cuts: of values that are.
        origins: of these, the weights that they are cut for.
        applied: ops that work on parts.
        gathered: values to put together before an op.
        lookups: ops that take rows of a table of which each rank has some.
    """

    function: func.FuncOp
    flow: WeightFlow
    decisions: WeightCuts
    cuts: dict[ir.Value, Cut] = field(default_factory=dict[ir.Value, Cut])
    origins: dict[ir.Value, tuple[str, ...]] = field(default_factory=dict[ir.Value, tuple[str, ...]])
    applied: list[tuple[ir.Operation, Applied]] = field(default_factory=list[tuple[ir.Operation, Applied]])
    gathered: list[tuple[ir.Operation, ir.Value]] = field(default_factory=list[tuple[ir.Operation, ir.Value]])
    lookups: list[ir.Operation] = field(default_factory=list[ir.Operation])

    def plan(self) -> FunctionCuts:
        """Goes through the function. Raises RelaxError for a dimension that so many ranks cannot share."""
        block = body_of(self.function)
        assert block is not None
        names: dict[ir.Value, str] = dict(zip(block.arguments, full_argument_names(self.function), strict=True))
        self._names = {w: names[w] for w in self.flow.weights}
        self._state = {a: n for a, n in names.items() if n in initial_state(self.function)}
        for value in (*self._names, *self._state):
            cut = self.decisions.cuts.get(names[value])
            if cut is not None:
                self._enter(value, cut, (names[value],))
        for op in operations(block):
            if op != terminator(block):
                self._plan(op)
        self._plan_returned(terminator(block))
        return self

    def _enter(self, value: ir.Value, cut: Cut, origin: tuple[str, ...]) -> None:
        self.cuts[value], self.origins[value] = cut, origin

    def _plan(self, op: ir.Operation) -> None:
        self._demand(op.opview)
        read = list(op.operands) if not len(op.regions) else free_values(op)
        cuts = [self.cuts.get(v) for v in read]
        if not any(cuts):
            return
        origin = next(self.origins[v] for v, c in zip(read, cuts, strict=True) if c)
        try:
            outcome = None if len(op.regions) else self._outcome(op, cuts)
        except RelaxError as error:
            name = f" (weight '{origin[0]}')" if origin else ""
            raise RelaxError(f"'{op.name}' op {error}{name}", op.location) from None
        if outcome is None:
            self._gather(op, read)
            return
        self.applied.append((op, outcome))
        for value, cut in zip(op.results, outcome.cuts, strict=True):
            if cut is not None:
                self._enter(value, cut, origin)

    def _outcome(self, op: ir.Operation, cuts: list[Cut | None]) -> Applied | None:
        if isinstance(op.opview, Take) and self._is_lookup(op.opview):
            self.lookups.append(op)
            return Applied([None])
        outcome = apply_rule(op, cuts, self.decisions.ranks)
        if not isinstance(outcome, Refine):
            return outcome
        cut, origin = cuts[0], self.origins[op.operands[0]]
        if cut is not None and len(origin) == 1:
            self.decisions.refine(origin[0], sum(cut.pieces), outcome.borders)
        return None

    def _is_lookup(self, op: Take) -> bool:
        cut, info = self.cuts.get(op.x), TensorInfo.of(op.x)
        if cut is None or self.cuts.get(op.indices) is not None or info.rank != 2:
            return False
        return normalize_axis(attrs_of(op)["axis"], 2) == cut.axis == 0 and len(cut.pieces) == 1

    def _gather(self, op: ir.Operation, read: list[ir.Value]) -> None:
        """Puts what is cut together before an op; weights are then better whole."""
        for value in dict.fromkeys(v for v in read if v in self.cuts):
            if self.flow.is_known(value):
                for name in self.flow.sources(value):
                    self.decisions.refuse(name, f"{op.name} reads it whole")
            self.gathered.append((op, value))

    # Demands

    def _demand(self, op: ir.OpView) -> None:
        """Cuts weights that an op reads where it then works on parts."""
        if isinstance(op, MatMul):
            self._demand_of_product(op)
        elif isinstance(op, Take) and self._is_whole_weight(op.x) and TensorInfo.of(op.x).rank == 2:
            if normalize_axis(attrs_of(op)["axis"], 2) == 0 and not self.flow.is_known(op.indices):
                self._cut(op.x, 0, None)
        elif isinstance(op, IndexCopy):
            self._demand_of_state(op)
        elif is_elementwise(op):
            self._demand_of_elements(op)

    def _is_whole_weight(self, value: ir.Value) -> bool:
        return value not in self.cuts and self.flow.once_from_weights(value)

    def _cut(self, value: ir.Value, axis: int, pieces: tuple[int, ...] | None) -> None:
        for part, cut in (self.decisions.demand(value, axis, pieces, self._names) or {}).items():
            self._enter(part, cut, self.flow.sources(value))

    def _demand_of_product(self, op: MatMul) -> None:
        left, right = TensorInfo.of(op.lhs).rank, TensorInfo.of(op.rhs).rank
        if not self._is_whole_weight(op.rhs) or self.flow.is_known(op.lhs) or right != 2 or left < 2:
            return
        cut = self.cuts.get(op.lhs)
        if cut is None:
            self._cut(op.rhs, right - 1, None)
        elif cut.axis == left - 1:
            self._cut(op.rhs, right - 2, cut.pieces)

    def _demand_of_elements(self, op: ir.OpView) -> None:
        rank = TensorInfo.of(op.results[0]).rank
        cut = next(((self.cuts[v], TensorInfo.of(v).rank) for v in op.operands if v in self.cuts), None)
        if cut is None:
            return
        place = cut[0].axis - cut[1]
        for value in op.operands:
            if self._is_whole_weight(value) and not is_one(value, place) and rank:
                self._cut(value, place + TensorInfo.of(value).rank, cut[0].pieces)

    def _demand_of_state(self, op: IndexCopy) -> None:
        cut, name = self.cuts.get(op.values), self._state.get(op.x)
        if cut is None or name is None or op.x in self.cuts or name in self.decisions.whole:
            return
        first = initial_state(self.function)[name]
        if first.is_splat and cut.axis != normalize_axis(attrs_of(op)["axis"], TensorInfo.of(op.x).rank):
            self.decisions.choose(name, cut)
            self._enter(op.x, cut, self.origins[op.values])

    # Results

    def _plan_returned(self, end: ir.Operation) -> None:
        """A state goes on as it came; other results are whole."""
        state = {name: value for value, name in self._state.items()}
        for value, name in zip(end.operands, result_names(self.function), strict=True):
            cut, before = self.cuts.get(value), self.cuts.get(state[name]) if name in state else None
            if cut == before:
                continue
            if before is not None and name is not None:
                self.decisions.refuse(name, "a function returns it whole")
            if cut is not None:
                self.gathered.append((end, value))

    def weights(self) -> Iterator[tuple[str, ir.Value]]:
        """The weights by name."""
        return ((name, value) for value, name in self._names.items())
