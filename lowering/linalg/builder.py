"""Emits linalg on tensors at the insertion point: generics over index maps, destinations of computed sizes, run-time checks.

Operations are created raw: the named builders of the bindings cost ten times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...dialect.analysis.size_bounds import Ranges, is_positive
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.struct_info import TensorInfo
from ...dialect.symbolic import Dim, dim_text
from ..marks import DEFERRABLE
from .conversion import load, store
from .dtypes import compute_type, is_unsigned, storage_dtype
from .key_blocks import KeyBlocks
from .scalar import Number, Scalar, constant, emit
from .symbols import Symbols

__all__ = ["ZERO", "Exprs", "Input", "LinalgBuilder", "Size", "Tensor", "index", "read", "tensor_type", "value_type"]

DYNAMIC = ir.ShapedType.get_dynamic_size()

#: In an index map: the constant 0, for a dimension of size one that is repeated.
ZERO = -1

#: One entry per dimension of a tensor: the number of a loop, ZERO, or an affine expression of the loops.
Exprs = Sequence["int | ir.AffineExpr"]

#: A dimension's size: a constant or an ``index`` value.
Size = int | ir.Value

#: A tensor that a generic reads, and where.
Input = tuple[ir.Value, Exprs]


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A lowered relax value.

    Attributes:
        value: the tensor as it is stored, see :mod:`.dtypes`.
        info: what the relax type says: symbolic shape and dtype.
        splat: the number that every element is, where that is known.
        parts: of a concatenation that is only read by another one: what to concatenate, and ``value`` means nothing.
        order: of what only a permutation to this order of dimensions reads: ``value`` has them in it.
    """

    value: ir.Value
    info: TensorInfo
    splat: Number | None = None
    parts: tuple[Tensor, ...] = ()
    order: tuple[int, ...] = ()

    @property
    def dtype(self) -> ir.Type:
        return self.info.dtype

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.info.shape

    @property
    def rank(self) -> int:
        return len(self.info.shape)


def tensor_type(sizes: Iterable[Size], element: ir.Type) -> ir.RankedTensorType:
    """The plain tensor type of those sizes."""
    return ir.RankedTensorType.get([s if isinstance(s, int) else DYNAMIC for s in sizes], element)


def value_type(value: ir.Value) -> ir.RankedTensorType:
    """The type of a value that is a tensor."""
    type_ = value.type
    assert isinstance(type_, ir.RankedTensorType)
    return type_


def index(loop: int) -> Scalar:
    """In a body: the number of the current iteration of a loop."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), loop)
    return Scalar(emit("linalg.index", ir.IndexType.get(), dim=number))


def read(tensor: ir.Value, indices: Sequence[Scalar]) -> ir.Value:
    """In a body: one element of a tensor from outside."""
    return emit("tensor.extract", value_type(tensor).element_type, tensor, *(i.value for i in indices))


class LinalgBuilder:
    """What lowerings build with. Emits at the current insertion point and location.

    Attributes:
        module: the module, which gets private functions at its end.
        tile: columns per panel of a packed matrix.
        panels: whether factors of matrix products are packed and widened first.
        key_blocks: how attention cuts its keys.
        symbols: the values of symbolic dimensions.
        checks: the messages of run-time checks and their numbers.
        source: the name of the relax op that is being lowered, which the locations inside of bodies carry.
        ranges: what symbols of the function can be.
    """

    def __init__(self, module: ir.Operation, tile: int, key_blocks: KeyBlocks, *, panels: bool = True):
        self.module, self.panels = module, panels
        self.tile, self.key_blocks = tile, key_blocks
        self.symbols = Symbols(self.check)
        self.checks: dict[str, int] = {}
        self.source = ""
        self.check_function: Callable[[], None] = lambda: None
        self.ranges: Ranges = {}
        self.private_functions: dict[tuple[str, ...], str] = {}
        self.private_names: set[str] = set()
        self._index = ir.IndexType.get()
        self._maps: dict[tuple[int | ir.AffineExpr, ...], ir.Attribute] = {}
        self._iterators: dict[str, ir.Attribute] = {}
        self._segment_sizes: dict[int, ir.Attribute] = {}
        kinds = {"p": "parallel", "r": "reduction"}
        self._iterator = {k: ir.Attribute.parse(f"#linalg.iterator_type<{v}>") for k, v in kinds.items()}

    # -- sizes -----------------------------------------------------------------------------------------------------

    def number(self, value: int) -> ir.Value:
        """An ``index`` constant."""
        return emit("arith.constant", self._index, value=ir.IntegerAttr.get(self._index, value))

    def as_index(self, size: Size) -> ir.Value:
        """A size as an ``index`` value."""
        return self.number(size) if isinstance(size, int) else size

    def size(self, tensor: Tensor, axis: int) -> Size:
        """The size of a dimension of a tensor."""
        dim = tensor.shape[axis]
        if isinstance(dim, int):
            return dim
        if dim is not None and self.symbols.knows(dim):
            return self.symbols.value(dim)
        return self.dim(tensor.value, axis)

    def sizes(self, tensor: Tensor) -> list[Size]:
        """The sizes of a tensor."""
        return [self.size(tensor, axis) for axis in range(tensor.rank)]

    def dim(self, value: ir.Value, axis: int) -> Size:
        """The size of a dimension of a tensor value: what its type says, or a ``tensor.dim``."""
        static = value_type(value).shape[axis]
        return static if static != DYNAMIC else emit("tensor.dim", self._index, value, self.number(axis))

    def value_sizes(self, value: ir.Value) -> list[Size]:
        """The sizes of a tensor value, without what symbols know."""
        return [self.dim(value, axis) for axis in range(value_type(value).rank)]

    def evaluate(self, dim: Dim) -> Size:
        """A dimension's size. Raises RelaxError when it has a symbol that no argument or ``match_cast`` defines."""
        if isinstance(dim, int):
            return dim
        if dim is None or not self.symbols.knows(dim):
            raise RelaxError(f"expected a dimension that arguments or relax.match_cast define, got '{dim_text(dim)}'")
        return self.symbols.value(dim)

    def knows(self, dim: Dim) -> bool:
        """Whether :meth:`evaluate` has a value for a dimension."""
        return isinstance(dim, int) or self.symbols.knows(dim)

    def evaluate_or(self, dim: Dim, tensor: Tensor, axis: int) -> Size:
        """A dimension's size; where the type does not say it, that of a tensor's dimension, which is the same."""
        if isinstance(dim, int) or (dim is not None and self.symbols.knows(dim)):
            return self.evaluate(dim)
        return self.size(tensor, axis)

    def arith(self, name: str, left: Size, right: Size) -> Size:
        """``addi subi muli divsi ceildivsi minsi maxsi`` on sizes, folded when both are constants.

        Dividends are not negative: what a kernel can run has no other rounding.
        """
        if isinstance(left, int) and isinstance(right, int):
            return _FOLD[name](left, right)
        if isinstance(right, int) and right == _NEUTRAL.get(name):
            return left
        if name == "addi" and left == 0:
            return right
        if name == "ceildivsi":
            left, name = self.arith("addi", left, self.arith("subi", right, 1)), "divsi"
        return emit(f"arith.{name}", self._index, self.as_index(left), self.as_index(right))

    def empty_axes(self, tensor: Tensor, axes: Iterable[int]) -> list[int]:
        """Those of some axes that may have no element, as far as types say."""
        return [axis for axis in axes if not is_positive(tensor.shape[axis], self.ranges)]

    def product(self, sizes: Iterable[Size]) -> Size:
        """The number of elements."""
        total: Size = 1
        for size in sizes:
            total = size if isinstance(total, int) and total == 1 else self.arith("muli", total, size)
        return total

    # -- tensors ---------------------------------------------------------------------------------------------------

    def empty(self, sizes: Sequence[Size], element: ir.Type) -> ir.Value:
        """A destination of stored elements."""
        dynamic = [s for s in sizes if not isinstance(s, int)]
        return emit("tensor.empty", tensor_type(sizes, element), *dynamic)

    def filled(self, sizes: Sequence[Size], element: ir.Type, number: Number, unsigned: bool = False) -> ir.Value:
        """A destination with every element a number: what a reduction starts from."""
        return self.fill(self.empty(sizes, element), number, unsigned)

    def fill(self, destination: ir.Value, number: Number, unsigned: bool = False) -> ir.Value:
        """``linalg.fill`` of a destination with a number."""
        return self.fill_with(destination, constant(value_type(destination).element_type, number, unsigned).value)

    def fill_with(self, destination: ir.Value, scalar: ir.Value) -> ir.Value:
        """``linalg.fill`` of a destination with a stored element."""
        type_ = value_type(destination)
        op = ir.Operation.create(
            "linalg.fill", [type_], [scalar, destination], {"operandSegmentSizes": self._segments(1)}, regions=1
        )
        block = self._body(op, [type_.element_type, type_.element_type])
        with ir.InsertionPoint(block):
            ir.Operation.create("linalg.yield", [], [block.arguments[0]])
        return op.results[0]

    def cast(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        """The value under a type that says more or less about its sizes."""
        return value if value.type == type_ else emit("tensor.cast", type_, value)

    def _body(self, op: ir.Operation, types: Sequence[ir.Type]) -> ir.Block:
        return ir.Block.create_at_start(op.regions[0], types, [op.location] * len(types))

    # -- linalg.generic --------------------------------------------------------------------------------------------

    def map(self, loops: int, exprs: Exprs) -> ir.Attribute:
        """The index map of those expressions."""
        key = (loops, *exprs)
        found = self._maps.get(key)
        if found is None:
            affine = [self._expr(e) for e in exprs]
            found = self._maps[key] = ir.AffineMapAttr.get(ir.AffineMap.get(loops, 0, affine))
        return found

    @staticmethod
    def _expr(expr: int | ir.AffineExpr) -> ir.AffineExpr:
        if isinstance(expr, ir.AffineExpr):
            return expr
        return ir.AffineExpr.get_constant(0) if expr == ZERO else ir.AffineExpr.get_dim(expr)

    def iterators(self, kinds: str) -> ir.Attribute:
        """``"ppr"``: two parallel loops and a reduction."""
        found = self._iterators.get(kinds)
        if found is None:
            found = self._iterators[kinds] = ir.ArrayAttr.get([self._iterator[k] for k in kinds])
        return found

    def _segments(self, inputs: int) -> ir.Attribute:
        """Operand segments of an op of one result."""
        found = self._segment_sizes.get(inputs)
        if found is None:
            found = self._segment_sizes[inputs] = ir.DenseI32ArrayAttr.get([inputs, 1])
        return found

    def generic(
        self,
        kinds: str,
        inputs: Sequence[Input],
        out: ir.Value,
        body: Callable[..., ir.Value],
        out_exprs: Exprs | None = None,
        attributes: Mapping[str, ir.Attribute] | None = None,
    ) -> ir.Value:
        """A ``linalg.generic`` with one result.

        Args:
            kinds: one letter per loop, ``p`` parallel or ``r`` reduction.
            inputs: what is read.
            out: the destination; a reduction starts from its elements.
            body: given the elements (of the inputs, then of ``out``), the element to store.
            out_exprs: where the result goes; absent, loop ``i`` runs over dimension ``i``.
            attributes: discardable attributes.
        """
        loops = len(kinds)
        where = [exprs for _, exprs in inputs] + [range(loops) if out_exprs is None else out_exprs]
        values = [*(value for value, _ in inputs), out]
        given = {
            "indexing_maps": ir.ArrayAttr.get([self.map(loops, e) for e in where]),
            "iterator_types": self.iterators(kinds),
            "operandSegmentSizes": self._segments(len(inputs)),
            **(attributes or {}),
        }
        op = ir.Operation.create("linalg.generic", [out.type], values, given, regions=1)
        block = self._body(op, [value_type(v).element_type for v in values])
        with ir.InsertionPoint(block), ir.Location.name(self.source, op.location) if self.source else op.location:
            ir.Operation.create("linalg.yield", [], [body(*block.arguments)])
        return op.results[0]

    def movement(self, value: ir.Value, exprs: Exprs, sizes: Sequence[Size]) -> ir.Value:
        """A tensor of those sizes whose elements are those of ``value`` at the expressions."""
        out = self.empty(sizes, value_type(value).element_type)
        return self.generic("p" * len(sizes), [(value, exprs)], out, lambda x, _: x)

    def gather(self, sizes: Sequence[Size], element: ir.Type, body: Callable[..., ir.Value], *inputs: Input) -> ir.Value:
        """A tensor whose elements a body reads itself, given the loops' indices and elements of the inputs."""
        loops = len(sizes)
        return self.generic(
            "p" * loops, inputs, self.empty(sizes, element), lambda *e: body([index(i) for i in range(loops)], *e[:-1])
        )

    # -- elementwise -----------------------------------------------------------------------------------------------

    def elementwise(
        self,
        operands: Sequence[Tensor],
        result: TensorInfo,
        function: Callable[..., Scalar],
    ) -> ir.Value:
        """A function of elements of broadcast operands; it gets and returns scalars of the dtypes' compute types."""
        sizes = self.broadcast_sizes(operands, result)
        inputs = [(t.value, self.broadcast_exprs(t, result)) for t in operands if t.splat is None]

        def body(*elements: ir.Value) -> ir.Value:
            rest = iter(elements)
            scalars = [
                load(next(rest), t.dtype) if t.splat is None else constant(compute_type(t.dtype), t.splat, is_unsigned(t.dtype))
                for t in operands
            ]
            return store(function(*scalars), result.dtype)

        return self.generic("p" * len(sizes), inputs, self.empty(sizes, storage_dtype(result.dtype)), body)

    def broadcast_exprs(self, tensor: Tensor, result: TensorInfo) -> list[int]:
        """Where a tensor is read that NumPy's rule broadcasts to the result's shape."""
        first = result.rank - tensor.rank
        return [
            ZERO if d == 1 and result.shape[first + i] != 1 else first + i for i, d in enumerate(tensor.shape)
        ]  # fmt: skip

    def broadcast_sizes(self, operands: Sequence[Tensor], result: TensorInfo) -> list[Size]:
        """The sizes of a broadcast result."""
        return [self._broadcast_size(operands, result, axis) for axis in range(result.rank)]

    def _broadcast_size(self, operands: Sequence[Tensor], result: TensorInfo, axis: int) -> Size:
        dim = result.shape[axis]
        for tensor in operands:
            own = axis - (result.rank - tensor.rank)
            if own >= 0 and tensor.shape[own] != 1:
                return self.evaluate_or(dim, tensor, own)
        return 1 if dim is None else self.evaluate(dim)

    # -- checks ----------------------------------------------------------------------------------------------------

    def check(self, condition: ir.Value, message: str, deferrable: bool = False) -> None:
        """Emits a run-time check: when the ``i1`` is false, the compiled entry reports the message and stops.

        Where the check is ``deferrable``, nothing that follows touches memory outside of its buffers even so, and code for a
        device may go on.
        """
        position = self.check_number(message)
        self.check_function()
        i64 = ir.IntegerType.get_signless(64)
        number = emit("arith.constant", i64, value=ir.IntegerAttr.get(i64, position))
        attributes: dict[str, ir.Attribute] = {"callee": ir.FlatSymbolRefAttr.get("relax_check")}
        if deferrable:
            attributes[DEFERRABLE] = ir.UnitAttr.get()
        ir.Operation.create("func.call", [], [condition, number], attributes)

    def check_number(self, message: str) -> int:
        """The number of the check with this message, at the current location."""
        return self.checks.setdefault(str(RelaxError(message, ir.Location.current)), len(self.checks))

    def check_equal(self, left: Size, right: Size, message: str) -> None:
        """Checks that two sizes are equal.

        Raises:
            RelaxError: both are constants and differ.
        """
        if isinstance(left, int) and isinstance(right, int):
            if left != right:
                raise RelaxError(f"{message}, got {left} and {right}")
            return
        if left is not right and left != right:
            self.check(Scalar(self.as_index(left)).compare("eq", Scalar(self.as_index(right))).value, message)


#: Right-hand sides that change nothing.
_NEUTRAL = {"addi": 0, "subi": 0, "muli": 1, "divsi": 1, "ceildivsi": 1}

_FOLD: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "minsi": min,
    "maxsi": max,
}
