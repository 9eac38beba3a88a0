"""The sizes of all values of a function, by those of its arguments: what ops infer, put together from the first to the last.

::

    func.func @f(%x: tensor<?x4xf32>, %y: tensor<3x4xf32>) {
      %0 = "relax.abs"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
      %1 = "relax.concat"(%0, %y) : (tensor<?x4xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>

With ``d0_0`` for the rows of ``%x``, ``%0`` is ``[d0_0, 4]`` and ``%1`` is ``[d0_0 + 3, 4]``. What nothing determines, the
result of a loop for example, has a name of its own, too, one that is open.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ..bindings import func, ir
from ..op import EffectOp
from ..op_sizes import OpSizes, op_sizes
from ..ops.builtin import MatchCast
from ..size_relations import Relation
from ..struct_info import TensorInfo, is_tensor
from ..symbolic import Dim, Expr, open_dim, substitute, symbol
from ..traversal import Nested, run_nested
from .symbol_uses import SymbolUses

__all__ = ["KnownSizes", "Needed", "Shape", "argument_shapes", "known_sizes"]

_FUNCTION = "func.func"

Shape = tuple[int | Expr, ...]


@dataclass(frozen=True)
class Needed:
    """A relation that an op needs and that nothing proves.

    Attributes:
        relation: between the function's sizes.
        of_op: the same one in terms of the op's operands, for messages.
    """

    relation: Relation
    of_op: Relation


@dataclass
class KnownSizes:
    """What is known of a function.

    Attributes:
        shapes: the dimensions of each tensor.
        opened: where the size is found that a name stands for which no type has: a value, and its axis.
        needed: the relations that ops need, by their first result.
        ops: what the types around those ops say.
        named: what symbols, and expressions, are that results are the first to name, outside of branches and loops.
    """

    shapes: dict[ir.Value, Shape] = field(default_factory=dict)
    opened: dict[str, tuple[ir.Value, int]] = field(default_factory=dict)
    needed: dict[ir.Value, list[Needed]] = field(default_factory=dict)
    ops: dict[ir.Value, OpSizes] = field(default_factory=dict)
    named: dict[str, int | Expr] = field(default_factory=dict)
    _given: frozenset[str] = frozenset()

    def of(self, op: EffectOp) -> tuple[OpSizes, list[Needed]]:
        """What the types around an op of the dialect say, and what it needs beside."""
        if not len(op.results):
            return OpSizes((), (), ()), []
        return self.ops[op.results[0]], self.needed[op.results[0]]

    def info(self, value: ir.Value) -> TensorInfo:
        """What a tensor's type says, with the sizes that it leaves open."""
        return TensorInfo.of(value).with_(shape=self.shapes[value])

    def by_arguments(self, value: ir.Value) -> Shape:
        """The dimensions of a tensor, without the symbols that results are the first to name."""
        return tuple(self._resolved(d) for d in self.shapes[value])

    def block(self, block: ir.Block) -> Nested:
        """Goes through a block and what is inside of its ops."""
        for op in block.operations:
            if isinstance(op, EffectOp):
                self._infer(op)
            else:
                self._pass_on(op.operation)
            for region in op.operation.regions:
                for inner in region.blocks:
                    for argument in inner.arguments:
                        self._name(argument)
                    yield self.block(inner)

    def _infer(self, op: EffectOp) -> None:
        sizes = op_sizes(op)
        opened: dict[str, int | Expr] = {}

        def size_of(dim: int | Expr) -> int | Expr:
            if isinstance(dim, int):
                return dim
            if not opened:  # of most ops all sizes are numbers: these need no names
                opened.update(self._opened_by(op))
            return _replaced(dim, opened)

        for result, shape in zip(op.results, sizes.results, strict=True):
            if shape is not None:
                known = [None if d is None else size_of(d) for d in shape]
                self._name(result, known)
                if op.operation.parent.name == _FUNCTION:
                    self._define(result, self.shapes[op.x] if isinstance(op, MatchCast) else known)
        if len(op.results):
            needed = [Needed(r.with_sizes(size_of), r) for r in sizes.relations]
            self.needed[op.results[0]] = [n for n in needed if not n.relation.decided()]
            self.ops[op.results[0]] = sizes

    def _opened_by(self, op: EffectOp) -> dict[str, int | Expr]:
        """The sizes of an op's operands by the names that stand for them."""
        return {
            open_dim(i, axis).text: self.shapes[value][axis]
            for i, value in enumerate(op.operands)
            if value in self.shapes
            for axis in range(len(self.shapes[value]))
        }  # fmt: skip

    def _define(self, result: ir.Value, known: Sequence[Dim]) -> None:
        """Keeps what new dimensions in the type of a result are, where that is known, and the symbols in them."""
        for written, size in zip(TensorInfo.of(result).shape, known, strict=True):
            if not isinstance(written, Expr) or written.names <= self._given or size is None or size == written:
                continue
            value = self._resolved(size)
            self.named.setdefault(written.text, value)
            self.named |= _solved(written, value, {*self._given, *self.named})

    def _resolved(self, dim: int | Expr) -> int | Expr:
        if isinstance(dim, Expr) and dim.text in self.named:
            return self.named[dim.text]
        return _replaced(dim, self.named)

    def _pass_on(self, op: ir.Operation) -> None:
        """An op of another dialect. A cast keeps sizes; of the rest types say what there is to know."""
        cast = op.name == "tensor.cast" and op.operands[0] in self.shapes
        for result in op.results:
            self._name(result, self.shapes[op.operands[0]] if cast else None)

    def _name(self, value: ir.Value, known: Sequence[Dim] | None = None) -> None:
        """Enters a value's dimensions: what is written, else what is known, else a new name."""
        if not is_tensor(value):
            return
        written = TensorInfo.of(value).shape
        pairs = zip(written, known or [None] * len(written), strict=True)
        self.shapes[value] = tuple(self._dim(value, axis, *pair) for axis, pair in enumerate(pairs))

    def _dim(self, value: ir.Value, axis: int, written: Dim, known: Dim) -> int | Expr:
        if written is not None:
            return written
        if known is not None:
            return known
        name = open_dim(len(self.opened))
        self.opened[name.text] = value, axis
        return name


def _replaced(dim: int | Expr, values: dict[str, int | Expr]) -> int | Expr:
    found = substitute(dim, values)
    return dim if found is None else found


def _solved(dim: Expr, size: int | Expr, known: Collection[str]) -> dict[str, int | Expr]:
    """The one symbol of a dimension that is not known, if that is a multiple of it and something."""
    unknown, terms = dim.names - set(known), dict(dim.terms)
    constant = terms.pop((), 0)
    if len(terms) != 1 or len(unknown) != 1 or set(terms) != {tuple(unknown)}:
        return {}
    ((monomial, factor),) = terms.items()
    return {monomial[0]: (size - constant) // factor}


def known_sizes(function: func.FuncOp) -> KnownSizes:
    """Asks every op of a verified function; linear in their number."""
    arguments = argument_shapes(function)
    given = (d.names for shape in arguments.values() for d in shape if isinstance(d, Expr))
    found = KnownSizes(shapes=dict(arguments), _given=frozenset().union(*given))
    for argument, shape in found.shapes.items():
        written = TensorInfo.of(argument).shape
        found.opened.update({str(d): (argument, axis) for axis, d in enumerate(shape) if written[axis] is None})
    for block in function.regions[0].blocks:
        run_nested(found.block(block))
    return found


def argument_shapes(function: func.FuncOp) -> dict[ir.Value, Shape]:
    """The dimensions of a function's tensor arguments: ``d2_0`` is dimension 0 of argument 2, of which nothing is known."""
    arguments = [a for block in function.regions[0].blocks for a in block.arguments if is_tensor(a)]
    shapes = [TensorInfo.of(a).shape for a in arguments]
    taken = SymbolUses().of_op(function.operation) if any(None in shape for shape in shapes) else frozenset[str]()

    def dim(argument: ir.Value, axis: int, written: Dim) -> int | Expr:
        if written is not None:
            return written
        name = f"d{ir.BlockArgument(argument).arg_number}_{axis}"
        while name in taken:
            name += "_"
        return symbol(name)

    return {
        a: tuple(dim(a, axis, d) for axis, d in enumerate(shape)) for a, shape in zip(arguments, shapes, strict=True)
    }  # fmt: skip
