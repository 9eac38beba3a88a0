"""A transform function in the making: takes raw weights, gathers the ops lifted from inference, returns prepared weights.

Equal computations are entered once, whoever asks for them. An existing transform function can be taken up again: what is
lifted then reads the prepared weights it returns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...analysis.purity import Purity
from ...analysis.symbol_uses import SymbolUses, bound_symbols, definers, substitute_symbols
from ...bindings import func, ir
from ...call_graph import callee_of
from ...errors import RelaxError
from ...function_types import erase_arguments, named, set_argument_attributes, set_result_attributes, with_name
from ...functions import (
    NAME,
    TRANSFORM_FOR,
    body_of,
    full_argument_names,
    name_of,
    num_input,
    returned_values,
    set_num_input,
    update_type,
)
from ...op import DefiningOp
from ...ops import GetParam
from ...struct_info import TensorInfo, is_tensor
from ...symbolic import Expr, symbol
from ...traversal import clone_with, free_values, is_unused, nested_operations, operations
from ...tuples import element_types, is_pack, is_unpack, leaf_types, pack
from ...weights import argument_leaf_names, full_result_names
from ..cleanup.inlining import defined_symbols, unused_symbol
from .prepared_names import distinct, result_names_of

__all__ = ["TransformFunction", "computation_key", "prepared_values"]


class TransformFunction:
    """Wraps the ``func.func`` while ops are added; :meth:`finish` makes it valid.

    Attributes:
        function: the ``func.func``.
        prepared: the values it returned when it was taken up, by name; the raw weights of a new one.
    """

    def __init__(self, function: func.FuncOp, prepared: Mapping[str, ir.Value], inputs: int):
        self.function = function
        self.prepared = dict(prepared)
        self._inputs = inputs
        self._block: ir.Block = function.regions[0].blocks[0]
        arguments = list(self._block.arguments)
        self._names: dict[ir.Value, str] = dict(zip(arguments[inputs:], full_argument_names(function)[inputs:], strict=True))
        self._leaves = dict(zip(arguments[inputs:], argument_leaf_names(function)[inputs:], strict=True))
        self._taken = {*self._names.values(), *self.prepared}
        self._output_names = {value: name for name, value in reversed(self.prepared.items())}
        self._numbers: dict[tuple[object, ...], list[ir.Value]] = {}
        self._symbols = defined_symbols(function, SymbolUses())
        for op in operations(self._block):
            self._enter(op)
        self._names.update(self._output_names)

    @staticmethod
    def create(
        before: func.FuncOp, name: str, weights: Mapping[str, ir.Value], attributes: Sequence[ir.DictAttr]
    ) -> TransformFunction:
        """A new one, put before a function, which takes weights like these, with these attributes."""
        types = [w.type for w in weights.values()]
        with before.location, ir.InsertionPoint(before):
            function = func.FuncOp(name, ir.FunctionType.get(types, []))
            block = function.add_entry_block(arg_locs=[w.location for w in weights.values()])
        with before.location, ir.InsertionPoint(block):
            func.ReturnOp([])
        set_argument_attributes(function, attributes)
        set_num_input(function, 0)
        return TransformFunction(function, dict(zip(weights, block.arguments, strict=True)), 0)

    @staticmethod
    def reopen(function: func.FuncOp, weights: Sequence[str]) -> TransformFunction:
        """Takes up the one that prepares weights of these names; its results have them, or are as many and unnamed.

        Raises:
            RelaxError: its results are not these weights (after making it lazy it has none).
        """
        block = body_of(function)
        if block is None or len(function.regions[0].blocks) != 1:
            message = f"'func.func' op expected one block in the transform function @{name_of(function)}, got several"
            raise RelaxError(message, function.location)
        prepared = prepared_values(function)
        missing = next((w for w in weights if w not in prepared), None)
        if missing is not None:
            raise RelaxError(
                f"'func.func' op expected @{name_of(function)} to return every weight of the function it prepares, "
                f"got none named '{missing}'",
                function.location,
            )
        return TransformFunction(function, prepared, num_input(function) or 0)

    def weight(self, name: str, type_: ir.Type, leaves: Sequence[str]) -> ir.Value:
        """A prepared weight; a tuple is made of the weights that are in it, where these are what it returned."""
        if name in self.prepared or not isinstance(type_, ir.TupleType):
            return self.prepared[name]
        last = operations(self._block)[-1]
        values = [self.prepared[leaf] for leaf in leaves]
        # Of the types that they have here, where symbols may have other names.
        inside = _tuple_of(type_, iter([v.type for v in values]))
        return pack(inside, iter(values), ir.InsertionPoint(last), last.location)

    def reserve(self, names: Iterable[str]) -> None:
        """Keeps names from being given to prepared weights."""
        self._taken.update(names)

    def add(self, ops: Iterable[ir.Operation], mapping: dict[ir.Value, ir.Value]) -> None:
        """Enters ops of inference in program order.

        Args:
            ops: pure ops that read only each other's results and keys of ``mapping``.
            mapping: values of inference to values here; the ops' results are added.

        A symbol that one of the ops defines gets a new name where another function's weights or ops have it.
        """
        where = ir.InsertionPoint(operations(self._block)[-1])
        own = bound_symbols(v.type for v in mapping)
        renamed = _translation(mapping)
        for op in ops:
            packed = mapping[op.operands[0]].owner if is_unpack(op) and op.operands[0] in mapping else None
            if isinstance(packed, ir.OpView | ir.Operation) and is_pack(packed.operation):
                mapping.update(zip(op.results, packed.operation.operands, strict=True))
                continue
            clone = clone_with(op, mapping, where)
            if renamed:
                _check_calls(op, renamed)
                substitute_symbols(clone, renamed)
            known = self._known(clone)
            if known is None and isinstance(clone.opview, DefiningOp):
                renamed |= self._rename(clone, own)
                known = self._known(clone)
            if known is None:
                self._enter(clone)
                continue
            mapping.update(zip(op.results, known, strict=True))
            clone.erase()

    def _known(self, op: ir.Operation) -> list[ir.Value] | None:
        """The results of an equal op that is here."""
        key = computation_key(op, {})
        return self._numbers.get(key) if key is not None else None

    def _rename(self, op: ir.Operation, own: set[str]) -> dict[str, int | Expr]:
        """Gives the symbols that an op defines names that nothing here has; ``own`` are those of the function's weights."""
        defined = bound_symbols(r.type for r in op.results) - own
        renamed: dict[str, int | Expr] = {}
        for name in sorted(defined):
            fresh = unused_symbol(name, self._symbols)
            self._symbols.add(fresh)
            own.add(name)
            if fresh != name:
                renamed[name] = symbol(fresh)
        if renamed:
            substitute_symbols(op, renamed)
        return renamed

    def output_name(self, value: ir.Value) -> str:
        """The name of a value as a prepared weight: the one it has, or a new one."""
        if value not in self._output_names:
            name = self._names.get(value) or result_names_of(value.owner.operation, ["constant"])[0]
            is_weight = isinstance(value, ir.BlockArgument)
            self._output_names[value] = name if is_weight else distinct(name, self._taken)
        return self._output_names[value]

    def finish(
        self, outputs: Mapping[str, ir.Value], bundles: Mapping[str, ir.DictAttr], targets: Sequence[str], purity: Purity
    ) -> None:
        """Makes it return these values under these names, saying what is in tuples, and drops what they do not need."""
        last = operations(self._block)[-1]
        with last.location, ir.InsertionPoint(last):
            func.ReturnOp(list(outputs.values()))
        last.erase()
        uses, mentioned = SymbolUses(), set[str]()
        for op in reversed(operations(self._block)[:-1]):
            defines = isinstance(op.opview, DefiningOp) and not mentioned.isdisjoint(uses.of_op(op))
            if is_unused(op) and purity.is_pure(op) and not defines:
                op.erase()
            else:
                mentioned |= uses.of_op(op)
        update_type(self.function)
        erase_arguments(self.function, self._unneeded())
        set_result_attributes(self.function, [with_name(bundles.get(n, named(n)), n) for n in outputs])
        references = [ir.FlatSymbolRefAttr.get(t) for t in targets]
        self.function.attributes[TRANSFORM_FOR] = references[0] if len(references) == 1 else ir.ArrayAttr.get(references)

    def _unneeded(self) -> list[int]:
        """Positions of the weights that nothing reads, but for one that alone tells a size that some op mentions."""
        arguments = list[ir.Value](self._block.arguments)
        unused = {i for i, a in enumerate(arguments) if i >= self._inputs and next(iter(a.uses), None) is None}
        known = bound_symbols(a.type for i, a in enumerate(arguments) if i not in unused)
        found = definers([arguments[i] for i in sorted(unused)], known)
        uses = SymbolUses()
        mentioned = set[str]().union(*(uses.of_op(op) for op in operations(self._block)))
        needed = {v for symbol in mentioned for v in found.get(symbol, ())}
        return [i for i in sorted(unused) if arguments[i] not in needed]

    def _enter(self, op: ir.Operation) -> None:
        """Numbers and names the results of an op that is here."""
        key = computation_key(op, {})
        if key is not None:
            self._numbers.setdefault(key, list(op.results))
        read = _read_name(op)
        if read is not None:
            self._names.update(dict.fromkeys(op.results, read))
            return
        if is_unpack(op) and op.operands[0] in self._leaves:
            self._enter_elements(op)
            return
        sources = [self._names[v] for v in free_values(op) if v in self._names]
        if sources:  # what comes from constants alone lends no name
            self._names.update(zip(op.results, result_names_of(op, sources), strict=True))

    def _enter_elements(self, op: ir.Operation) -> None:
        """Names what is in a weight that is a tuple as the weight says."""
        names = iter(self._leaves[op.operands[0]])
        for result in op.results:
            self._leaves[result] = list(itertools.islice(names, len(leaf_types(result.type))))
            self._names[result] = "+".join(self._leaves[result])


def _read_name(op: ir.Operation) -> str | None:
    """The name of the weight that an op reads by itself, None for one that reads none."""
    if isinstance(op.opview, GetParam):
        return op.opview.name or f"weight{op.opview.index}"
    if op.name == "func.call" and not any(is_tensor(v) for v in op.operands):  # of a callback, which may know an index alone
        return ir.StringAttr(op.attributes[NAME]).value if NAME in op.attributes else callee_of(op)
    return None


def _check_calls(op: ir.Operation, renamed: Mapping[str, int | Expr]) -> None:
    """Raises RelaxError where a call mentions a symbol that has another name here: the called function says the old one."""
    uses = SymbolUses()
    for call in [op, *nested_operations(op)]:
        if call.name != "func.call":
            continue
        mentioned = uses.of_op(call).union(*(uses.of_type(v.type) for v in call.operands))
        clash = sorted(mentioned.intersection(renamed))
        if clash:
            raise RelaxError(
                f"'func.call' op expected a symbol that no other function's weights have, got '{clash[0]}': inline it first",
                call.location,
            )


def _tuple_of(type_: ir.Type, leaves: Iterator[ir.Type]) -> ir.Type:
    """A tuple type with other leaves."""
    if not isinstance(type_, ir.TupleType):
        return next(leaves)
    return ir.TupleType.get_tuple([_tuple_of(t, leaves) for t in element_types(type_)])


def _translation(mapping: Mapping[ir.Value, ir.Value]) -> dict[str, int | Expr]:
    """What symbols of inference are called here: values that were prepared before may have sizes under new names."""
    found: dict[str, int | Expr] = {}
    for outside, inside in mapping.items():
        if outside.type == inside.type:
            continue
        pairs = zip(leaf_types(outside.type), leaf_types(inside.type), strict=True)
        shapes = [(TensorInfo.of(a).shape, TensorInfo.of(b).shape) for a, b in pairs if is_tensor(a) and is_tensor(b)]
        for dim, known in (dims for pair in shapes for dims in zip(*pair, strict=True)):
            if isinstance(dim, Expr) and isinstance(known, Expr) and dim != known and dim == symbol(str(dim)):
                found[str(dim)] = known
    return found


def prepared_values(function: func.FuncOp) -> dict[str, ir.Value]:
    """What a transform function of one block returns, by name."""
    return dict(zip(full_result_names(function), returned_values(function), strict=True))


def computation_key(op: ir.Operation, mapping: Mapping[ir.Value, ir.Value]) -> tuple[object, ...] | None:
    """Equal for ops that compute the same, None for ops that are not compared: those with regions."""
    if len(op.regions) or not len(op.results):
        return None
    operands = tuple(mapping.get(v, v) for v in op.operands)
    attributes = tuple(sorted(op.attributes.items(), key=lambda item: item[0]))
    return (op.name, operands, attributes, tuple(r.type for r in op.results))
