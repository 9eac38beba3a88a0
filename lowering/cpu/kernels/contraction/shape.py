"""What a plan is made from: a contraction's sizes, element types and layouts as plain data, without IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from .....dialect.packed_layout import NIBBLES
from ....integer_product import IntegerProduct
from ....kernels.emit.linear_index import Linear
from ....kernels.structure.combiners import element_bits
from ....kernels.structure.factor import Factor
from ....kernels.structure.group_invariant import GroupInvariant, find_group_invariant
from ....kernels.structure.match import Contraction
from ....kernels.structure.nest import Operand
from ....kernels.structure.packed_pairs import paired_panel
from ....marks import MULTIPLES
from .matrix_shape import MatrixFactors, matrix_factors

__all__ = [
    "BufferShape",
    "ByteShape",
    "ContractionShape",
    "GroupShape",
    "IntegerShape",
    "MatrixShape",
    "byte_shape",
    "describe",
    "factors_of_tiles",
    "group_invariant_of",
    "multiples_of",
]


@dataclass(frozen=True)
class BufferShape:
    """How an operand of the right factor is in memory.

    Attributes:
        bits: of an element.
        step: elements from one step of k to the next, None where that is known at run time only.
        rows: ``(steps, elements)`` where all so many steps of k the place moves on by so many elements more.
        panels: how many columns a panel has, for each way in which columns are in panels that exist as a whole.
        is_line: whether columns are neighbours.
    """

    bits: int
    step: int | None
    rows: tuple[tuple[int, int | None], ...] = ()
    panels: tuple[int, ...] = ()
    is_line: bool = False

    def steps_per_row(self, columns: int) -> int:
        """How many steps of k read one row of panels of so many columns: 1, or those of a word; 0 where there are no such."""
        found = [steps for steps, elements in self.rows if elements == columns] + ([1] if self.step == columns else [])
        return found[0] if len(found) == 1 and found[0] <= NIBBLES.count else 0

    def is_row_by_row(self, columns: int) -> bool:
        """Whether a panel of so many columns has its steps of k one after the other, or groups of neighbours among them."""
        grouped = [(steps, steps * columns - steps) for steps, _ in self.rows]
        return self.step == columns or (self.step == 1 and bool(self.rows) and grouped == list(self.rows))

    def steps_ahead(self, most: int) -> int:
        """How many steps of k are so many bytes, where rows lie as in a matrix that is not packed; 0 where they do not."""
        return most * 8 // (self.step * self.bits) if self.is_line and self.step else 0

    def is_padded(self, columns: int) -> bool:
        """Whether all columns of a tile of so many exist in memory."""
        return any(panel % columns == 0 for panel in self.panels)


@dataclass(frozen=True)
class GroupShape:
    """A part of the right factor that is the same for a group of steps.

    Attributes:
        size: steps of k in a group; 0 when all are one.
        operations: how many each step's value takes.
        has_word: whether that value is an integer of a word; has_zero: whether a zero point or a minimum was taken out of it.
        word_steps: after how many steps all words are others, where more than one is read.
        is_short: whether that value is an integer of eight bits, less a zero point, whose sum takes nothing but a scale.
        reads_invariant: whether it reads what is the same, too.
    """

    size: int
    operations: int
    has_word: bool = False
    has_zero: bool = False
    reads_invariant: bool = False
    word_steps: int = 0
    is_short: bool = False


@dataclass(frozen=True)
class IntegerShape:
    """A product of integers.

    Attributes:
        panel: columns of a panel.
        rows: neighbouring rows of the weight.
        step: steps of k that are read at once.
        is_word: whether the weight's integers are in words.
        is_unsigned: whether its bytes have no sign.
        every: steps of k that have one scale.
        has_zero: whether a zero point is read.
    """

    panel: int
    rows: int
    step: int
    is_word: bool
    is_unsigned: bool
    every: int
    has_zero: bool


@dataclass(frozen=True)
class ByteShape:
    """Bytes of both factors that are multiplied as they are, and summed in i32.

    Attributes:
        rows: how many are neighbours in both.
        panel: columns of a panel of the right one.
        left_unsigned, right_unsigned: whether they have no sign.
    """

    rows: int
    panel: int
    left_unsigned: bool
    right_unsigned: bool


@dataclass(frozen=True)
class MatrixShape:
    """What tile registers could multiply.

    Attributes:
        panel: columns of a panel of the right factor.
        words: of 32 bits of a row of the left one, in a place of the loops around.
        instruction: LLVM's name of the one for these elements.
        line: rows of a line of the left one, if only these begin the same distance apart; 0: all do.
    """

    panel: int
    words: int
    instruction: str
    line: int = 0


@dataclass(frozen=True)
class Multiples:
    """What numbers of columns, of steps of k, and of rows are multiples of."""

    columns: int = 1
    steps: int = 1
    rows: int = 1


@dataclass(frozen=True)
class ContractionShape:
    """Sizes are None where they are known at run time only.

    Attributes:
        rows: of the left operand and of the result; 1 where there is no such dimension, and then not ``has_rows``.
        columns: of the right operand and of the result.
        depth: steps of k, the innermost sum.
        element: type of the sums.
        batch: sizes of dimensions that both operands have; shared: of those that the left one has alone.
        outer: sizes of the other sums, around k.
        buffers: what the right factor is computed from.
        operations: how many operations a vector of it takes, constants aside.
        is_cast_bf16: whether it is an element of bf16, widened.
        is_bf16: whether it is one, or was rounded to one.
        dot_panel: columns of its panels where both factors are bf16 and pairs of its rows are neighbours, else 0.
        group: its invariant part.
        integers: set for a product of integers.
        bytes: set for one of neighbouring bytes as they are.
        matrix: set for one that tile registers could multiply.
        folds: whether steps of k are neighbours in the left operand, and all columns of the right one, as both are multiplied.
        multiples: of columns and steps, and of rows in all places of the shared loops together.
    """

    rows: int | None
    columns: int | None
    depth: int | None
    element: str = "f32"
    has_rows: bool = True
    batch: tuple[int | None, ...] = ()
    shared: tuple[int | None, ...] = ()
    outer: tuple[int | None, ...] = ()
    buffers: tuple[BufferShape, ...] = ()
    operations: int = 0
    is_cast_bf16: bool = False
    is_bf16: bool = False
    dot_panel: int = 0
    group: GroupShape | None = None
    integers: IntegerShape | None = None
    bytes: ByteShape | None = None
    matrix: MatrixShape | None = None
    folds: bool = False
    multiples: Multiples = Multiples()

    @property
    def bits(self) -> int:
        """Of a sum."""
        return int(self.element.lstrip("bfiu"))

    @property
    def is_float(self) -> bool:
        return "f" in self.element

    def is_packed(self, columns: int) -> bool:
        """Whether the right factor is read from panels of so many columns."""
        return any(b.steps_per_row(columns) for b in self.buffers)


def describe(contraction: Contraction) -> ContractionShape:
    """The shape of a contraction."""
    extents, k = contraction.nest.extents, contraction.k
    group = group_invariant_of(contraction)
    return ContractionShape(
        rows=1 if contraction.m is None else extents[contraction.m].static,
        columns=extents[contraction.n].static,
        depth=extents[k].static,
        element=str(contraction.nest.outputs[0].argument.type),
        has_rows=contraction.m is not None,
        batch=tuple(extents[d].static for d in contraction.batch),
        shared=tuple(extents[d].static for d in contraction.shared),
        outer=tuple(extents[d].static for d in contraction.outer),
        buffers=tuple(buffer_shape(o, contraction.n, k) for o in contraction.right.operands if o.buffer is not None),
        operations=sum(op.name != "arith.constant" for op in contraction.right.operations),
        is_cast_bf16=_is_bf16(contraction.right),
        is_bf16=_was_bf16(contraction.right),
        dot_panel=_dot_panel(contraction),
        group=None if group is None else _group_shape(group),
        integers=_integer_shape(IntegerProduct.of(contraction.nest.operation)),
        bytes=byte_shape(contraction),
        matrix=_matrix_shape(factors_of_tiles(contraction)),
        folds=_folds(contraction),
        multiples=multiples_of(contraction),
    )


def factors_of_tiles(contraction: Contraction) -> MatrixFactors | None:
    """The factors that tile registers could multiply."""
    found = byte_shape(contraction)
    return matrix_factors(contraction, None if found is None else (found.left_unsigned, found.right_unsigned, found.panel))


def multiples_of(contraction: Contraction) -> Multiples:
    """What columns, steps of k and rows are multiples of, also where their numbers are known only when code runs."""
    attributes = contraction.nest.operation.attributes
    if MULTIPLES not in attributes:
        return Multiples()
    return Multiples(*ir.DenseI64ArrayAttr(attributes[MULTIPLES]))


def byte_shape(contraction: Contraction) -> ByteShape | None:
    """The bytes that a contraction sums products of, where the last reduction runs over neighbours of both factors."""
    nest, k, n = contraction.nest, contraction.k, contraction.n
    rows, outer = nest.extents[k].static, contraction.outer
    signs = [_byte_sign(factor) for factor in (contraction.left, contraction.right)]
    if rows not in (2, 4) or None in signs or str(nest.outputs[0].argument.type) != "i32":
        return None
    offsets = [contraction.left.operands[0].offset, contraction.right.operands[0].offset]
    floors = [f for offset in offsets for f in offset.floors()]
    if any(o.factor(k).static != 1 for o in offsets) or any(f.inner.dims() & {k, *outer[-1:]} for f in floors):
        return None
    if outer and (nest.extents[outer[-1]].static is None or any(o.factor(outer[-1]).static is None for o in offsets)):
        return None
    shape: Sequence[int] = ir.MemRefType(contraction.right.operands[0].value.type).shape
    panels = {f.divisor for f in offsets[1].floors() if f.inner == Linear.dim(n) and f.divisor in shape}
    if offsets[1].factor(n).static != rows or len(panels) != 1 or len(offsets[1].floors()) != 1:
        return None
    return ByteShape(rows, panels.pop(), signs[0] == "arith.extui", signs[1] == "arith.extui")


def _byte_sign(factor: Factor) -> str | None:
    """The operation that widens a factor, where it is a byte of a buffer and nothing else."""
    names = [op.name for op in factor.operations]
    if len(factor.operands) != 1 or names not in (["arith.extsi"], ["arith.extui"]):
        return None
    buffer = factor.operands[0].buffer
    return names[0] if buffer is not None and str(buffer.element) == "i8" else None


def group_invariant_of(contraction: Contraction) -> GroupInvariant | None:
    """The invariant part of the right factor, where sums of it can be taken by groups, all of them whole."""
    is_float = isinstance(contraction.nest.outputs[0].argument.type, ir.FloatType)
    depth = contraction.nest.extents[contraction.k].static
    if contraction.outer or depth is None or not is_float:
        return None
    found = find_group_invariant(contraction.right, contraction.k)
    return None if found is None or (found.group_size and depth % found.group_size) else found


def buffer_shape(operand: Operand, n: int, k: int) -> BufferShape:
    """How an operand is in memory, for columns along n and steps along k."""
    assert operand.buffer is not None
    floors = [(a, f) for a, f in operand.offset.terms if not isinstance(a, int)]
    shape: Sequence[int] = ir.MemRefType(operand.value.type).shape
    return BufferShape(
        bits=element_bits(operand.buffer.element),
        step=operand.offset.factor(k).static,
        rows=tuple((a.divisor, f.static) for a, f in floors if a.inner == Linear.dim(k)),
        panels=tuple(f.divisor for f in operand.offset.floors() if f.inner.dims() == {n} and f.divisor in shape),
        is_line=not operand.offset.floors() and operand.offset.factor(n).static == 1,
    )


def _group_shape(group: GroupInvariant) -> GroupShape:
    operations = len(group.step_value.operations)
    has_word, has_zero = group.packed_word is not None, group.zero_point is not None or group.low is not None
    steps = 0 if group.high_word is None else group.word_steps
    return GroupShape(group.group_size, operations, has_word, has_zero, group.reads_invariant, steps, _is_short(group))


def _is_short(group: GroupInvariant) -> bool:
    """Whether steps are integers of up to eight bits less zero points of such: below 256, with eight significant bits."""
    if group.low is not None or group.scale is None:
        return False
    if group.zero_point is not None and not _is_byte(group.zero_point, group):
        return False
    step, names = group.step_value, [op.name for op in group.step_value.operations]
    is_byte = names in (["arith.sitofp"], ["arith.uitofp"]) and [str(o.argument.type) for o in step.operands] == ["i8"]
    return group.packed_word is not None or is_byte


def _is_byte(value: ir.Value, group: GroupInvariant) -> bool:
    """Whether an invariant integer is a widened byte, or a constant that is as small."""
    if value in [o.argument for o in group.operands]:
        return element_bits(value.type) <= 8
    op = value.owner
    if not isinstance(op, ir.Operation | ir.OpView):
        return False
    if op.operation.name == "arith.constant":
        attribute = op.operation.attributes["value"]
        return isinstance(attribute, ir.IntegerAttr) and abs(attribute.value) < 128
    return op.operation.name in ("arith.extsi", "arith.extui") and _is_byte(op.operation.operands[0], group)


def _integer_shape(product: IntegerProduct | None) -> IntegerShape | None:
    if product is None:
        return None
    layout = product.layout
    is_word, has_zero = layout.word is not None, "zero" in product.roles
    return IntegerShape(layout.tile, layout.rows, layout.step, is_word, product.is_unsigned, product.every, has_zero)


def _matrix_shape(factors: MatrixFactors | None) -> MatrixShape | None:
    return None if factors is None else MatrixShape(factors.panel, factors.words, factors.instruction, factors.line)


def _folds(contraction: Contraction) -> bool:
    """Whether rows of both operands lie as vectors of several steps of k read them."""
    k, n, columns = contraction.k, contraction.n, contraction.nest.extents[contraction.n].static
    factors = (contraction.left, contraction.right)
    if columns is None or any(len(f.operands) != 1 or f.operands[0].buffer is None for f in factors):
        return False
    if contraction.right.operations or [op.name for op in contraction.left.operations] not in ([], ["arith.extf"]):
        return False
    left, right = (f.operands[0].offset for f in factors)
    is_plain = not left.floors() and not right.floors()
    return is_plain and left.factor(k).static == 1 and right.factor(n).static == 1 and right.factor(k).static == columns


def _is_bf16(factor: Factor) -> bool:
    """Whether a factor is one element of bf16, widened to f32."""
    if [op.name for op in factor.operations] != ["arith.extf"] or len(factor.operands) != 1:
        return False
    buffer = factor.operands[0].buffer
    return buffer is not None and isinstance(buffer.element, ir.BF16Type)


def _was_bf16(factor: Factor) -> bool:
    """Whether the last operation of a factor widens a bf16."""
    last = [op for op in factor.operations if factor.value in op.results]
    return [op.name for op in last] == ["arith.extf"] and isinstance(last[0].operands[0].type, ir.BF16Type)


def _dot_panel(contraction: Contraction) -> int:
    """Columns of the right operand's panels where a row of the left one, and pairs of its rows, are neighbours in memory."""
    k = contraction.k
    if not (_is_bf16(contraction.left) and _is_bf16(contraction.right)):
        return 0
    (left,), (right,) = contraction.left.operands, contraction.right.operands
    in_a_row = left.offset.factor(k).static == 1 and not any(k in f.inner.dims() for f in left.offset.floors())
    return paired_panel(contraction, right) if in_a_row else 0
