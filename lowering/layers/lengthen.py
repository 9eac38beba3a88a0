"""Puts the layers that :mod:`.shorten` has taken out of a function into what has become of the others.

Before, with layers that are called for by kernels by now, all of them alike::

    %8 = call @kernel_3(%7, %w2, %e)
    %9 = call @kernel_3(%8, %w3, %e)
    %10 = call @kernel_3(%9, %w27, %e)
    %11 = call @kernel_3(%10, %w28, %e)

after::

    %8 = call @kernel_3(%7, %w2, %e)
    %9 = call @kernel_3(%8, %w3, %e)
    %10 = call @kernel_3(%9, %w4, %e)
    ...
    %33 = call @kernel_3(%32, %w27, %e)
    %34 = call @kernel_3(%33, %w28, %e)

That is what lowering all of them would have given: it works on neighbours, and those of each layer are alike. Where what is
there does not repeat itself from a layer in front of those removed to one behind, nothing is put there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...dialect.bindings import func, ir
from ...dialect.functions import body_of, terminator, update_type
from ..move_checks_first import is_check
from .repetition import ARGUMENT, LayerReads, Repetition, find_repetition
from .shorten import Shortened

__all__ = ["lengthen"]

# Layers that have to be alike in front of those removed, and behind them.
_BESIDE = 1


def lengthen(function: func.FuncOp, shortened: Shortened) -> bool:
    """Puts layers there, in place, in time linear in operations; False, and nothing changed, where they do not fit."""
    block = body_of(function)
    if block is None or len(function.regions[0].blocks) > 1:
        return False
    reads = LayerReads.of(block)
    found = find_repetition(reads, shortened.arguments.follows, 2 * _BESIDE)
    plan = None if found is None else _plan(reads, found, shortened)
    if plan is None:
        return False
    insertion = _Insertion(plan)
    insertion.run()
    _return(function, [insertion.value(number, result) for number, result in plan.values], shortened)
    return True


@dataclass(frozen=True)
class _Plan:
    """Where layers go.

    Attributes:
        reads: the function without them.
        found: what is alike there.
        begin: the operation in front of which they go; the period in front of it is their model.
        shortened: what was taken out.
        values: the operation that each result is of, counted with layers that are put there, and which result of it.
    """

    reads: LayerReads
    found: Repetition
    begin: int
    shortened: Shortened
    values: list[tuple[int, int]]

    @property
    def added(self) -> int:
        """How many operations are put there."""
        return self.shortened.removed * self.found.period


def _plan(reads: LayerReads, found: Repetition, shortened: Shortened) -> _Plan | None:
    """How it is done; None where it cannot be."""
    arguments, period = shortened.arguments, found.period
    inside = range(found.first, found.last)
    behind = (n for n in inside if any(m == ARGUMENT and arguments.is_behind(a) for m, a in reads.reads[n]))
    begin = next(behind, None)
    first, last = found.first + _BESIDE * period, found.last - _BESIDE * period
    if begin is None or not first <= begin <= last:
        return None
    model = {a for n in range(begin - period, begin) for m, a in reads.reads[n] if m == ARGUMENT}
    chains = {arguments.places[a][0] for a in model if a in arguments.places}
    read = {a for each in reads.reads for m, a in each if m == ARGUMENT and a in arguments.places}
    if not chains or {arguments.places[a][0] for a in read} != chains:
        return None
    outside = [n for n in range(len(reads.ops)) if n not in inside]
    if any(m == ARGUMENT and arguments.is_beside(a) for n in outside for m, a in reads.reads[n]):
        return None  # an operation of each layer that is not among the others of it
    numbers = _Locations(shortened)
    if any(is_check(op) and numbers.is_beside(op.location) for op in reads.ops):
        return None  # a message of each layer: those of the layers that are not there are missing
    if any(found.first <= m < begin for n in range(found.last, len(reads.ops)) for m, _ in reads.reads[n]):
        return None
    plan = _Plan(reads, found, begin, shortened, [])
    values = _returned(plan)
    return None if values is None or not _reaches(plan) else replace(plan, values=values)


def _reaches(plan: _Plan) -> bool:
    """Whether what layers read of those in front of them is in the repetition, and there is an argument for each of them."""
    reads, found = plan.reads.reads, plan.found
    for number in range(plan.begin - found.period, plan.begin):
        for one, other in zip(reads[number], reads[number + found.period], strict=True):
            if one != other and one[0] != ARGUMENT and one[0] < found.first:
                return False
    return True


def _returned(plan: _Plan) -> list[tuple[int, int]] | None:
    """What is returned, as :attr:`_Plan.values`; None where it does not go on from layer to layer."""
    shortened, found = plan.shortened, plan.found
    span = shortened.removed * shortened.period
    left = iter(plan.reads.returned)
    there: dict[tuple[int, int], tuple[int, int]] = {}
    made: list[tuple[int, int] | None] = []
    for place in shortened.returned:
        if place is not None and 0 <= place[0] < span:
            made.append(None)
            continue
        maker, result = next(left)
        if place is None and found.first <= maker < plan.begin:
            return None
        if place is not None:
            there[place] = maker, result
        made.append((_number(plan, maker, None if place is None else place[0] >= span), result))
    for position, place in enumerate(shortened.returned):
        if made[position] is not None or place is None:
            continue
        layer, number = divmod(place[0], shortened.period)
        front = there.get((number - shortened.period, place[1]))
        behind_ = there.get((number + span, place[1]))
        if front is None or behind_ != (front[0] + found.period, front[1]) or not found.first <= front[0] < found.last:
            return None
        made[position] = front[0] + (layer + 1) * found.period, front[1]
    return [place for place in made if place is not None]


def _number(plan: _Plan, maker: int, behind: bool | None) -> int:
    """The number of what is returned, with layers put there: of a layer in front of them, or behind; None: of neither."""
    if behind is not None and plan.found.first <= maker < plan.found.last:
        return maker + plan.added if behind else maker
    return maker + plan.added if maker >= plan.begin else maker


class _Insertion:
    """Layers being put there.

    Attributes:
        plan: where.
        ops: the operations of the function without them, in order.
        added: those put there so far.
    """

    def __init__(self, plan: _Plan):
        self.plan, self.ops = plan, list(plan.reads.ops)
        self.added: list[ir.Operation] = []

    def run(self) -> None:
        """Puts the layers there, and has what is behind them read them."""
        plan, reads = self.plan, self.plan.reads.reads
        numbers = range(plan.begin - plan.found.period, plan.begin)
        models = [_Model.of(self.ops[number]) for number in numbers]
        where, locations = ir.InsertionPoint(self.ops[plan.begin]), _Locations(plan.shortened)
        for layer in range(1, plan.shortened.removed + 1):
            for number, model in zip(numbers, models, strict=True):
                operands = [self._operand(number, position, layer) for position in range(len(reads[number]))]
                self.added.append(model.make(operands, locations.by(self.ops[number].location, layer), where))
        for number in range(plan.found.first, plan.found.last):  # what reads no weight may be of a layer that is further now
            op = self.ops[number]
            place = locations.by(op.location, 0 if number < plan.begin else plan.shortened.removed)
            if place != op.location:
                op.location = place
        for number in range(plan.begin, plan.found.last):
            for position in range(len(reads[number])):
                value = self._behind(number, position)
                if value is not None:
                    self.ops[number].operands[position] = value

    def value(self, number: int, result: int) -> ir.Value:
        """A result by the number that its operation has with the added layers; of ``ARGUMENT``, an argument."""
        plan = self.plan
        if number == ARGUMENT:
            return plan.reads.arguments[result]
        if number < plan.begin:
            return self.ops[number].results[result]
        if number < plan.begin + plan.added:
            return self.added[number - plan.begin].results[result]
        return self.ops[number - plan.added].results[result]

    def _operand(self, number: int, position: int, layer: int) -> ir.Value:
        """What an operation of an added layer reads, by that of its model."""
        plan = self.plan
        maker, result = plan.reads.reads[number][position]
        if (maker, result) == plan.reads.reads[number + plan.found.period][position]:
            return self.value(maker, result)
        if maker == ARGUMENT:
            return self.value(ARGUMENT, plan.shortened.arguments.of_layer(result, layer))
        return self.value(maker + layer * plan.found.period, result)

    def _behind(self, number: int, position: int) -> ir.Value | None:
        """What an operation of a layer behind the added ones reads; None for what it does already."""
        plan = self.plan
        maker, result = plan.reads.reads[number][position]
        if plan.reads.reads[number - plan.found.period][position] == (maker, result) or maker >= plan.begin:
            return None
        if maker != ARGUMENT:
            return self.value(maker + plan.added, result)
        arguments = plan.shortened.arguments
        return None if arguments.is_behind(result) else self.value(ARGUMENT, arguments.of_layer(result, plan.shortened.removed))


@dataclass(frozen=True)
class _Model:
    """An operation to make others like."""

    name: str
    results: list[ir.Type]
    attributes: dict[str, ir.Attribute]

    @classmethod
    def of(cls, op: ir.Operation) -> _Model:
        return cls(op.name, [r.type for r in op.results], dict(op.attributes.items()))

    def make(self, operands: Sequence[ir.Value], location: ir.Location, where: ir.InsertionPoint) -> ir.Operation:
        return ir.Operation.create(self.name, self.results, operands, self.attributes, loc=location, ip=where)


def _return(function: func.FuncOp, values: list[ir.Value], shortened: Shortened) -> None:
    """Returns the results of all layers."""
    end = terminator(function.regions[0].blocks[0])
    with ir.InsertionPoint(end), end.location:
        func.ReturnOp(values)
    end.erase()
    if shortened.result_attributes is not None:
        function.attributes["res_attrs"] = shortened.result_attributes
    update_type(function)


class _Locations:
    """Where operations of added layers come from: where those of their models do, so many layers further."""

    def __init__(self, shortened: Shortened):
        self._shortened = shortened
        self._numbers: dict[ir.Attribute, int] = {}
        for number, location in enumerate(shortened.locations):
            self._numbers.setdefault(location.attr, number)

    def is_beside(self, location: ir.Location) -> bool:
        """Whether a location is one of the layer in front of those removed, or of the one behind."""
        shortened, number = self._shortened, self._numbers.get(location.attr)
        behind = shortened.first_removed + (shortened.removed + 1) * shortened.period
        return number is not None and shortened.first_removed - shortened.period <= number < behind

    def by(self, location: ir.Location, layers: int) -> ir.Location:
        """That location, so many layers further; the same where it is of no layer."""
        shortened, number = self._shortened, self._numbers.get(location.attr)
        if number is None:
            return location
        if number >= shortened.first_removed:  # of a layer behind those removed, which is that much nearer without them
            number -= shortened.removed * shortened.period
        number += layers * shortened.period
        return shortened.locations[number] if number < len(shortened.locations) else location
