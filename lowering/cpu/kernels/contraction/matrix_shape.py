"""What tile registers multiply of a contraction: both factors' places, and how many steps one instruction takes.

An instruction multiplies up to 16 rows of up to 16 words of 32 bits by up to 16 rows of as many columns, and adds to 16 x 16
sums. A word is four bytes or two bf16: neighbours along k, as rows have them, and as panels of weights are packed for dot
products.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, prod

from ....integer_product import IntegerProduct
from ....kernels.emit.linear_index import Linear
from ....kernels.structure.match import Contraction
from ....kernels.structure.nest import Operand
from ....kernels.structure.packed_pairs import paired_panel
from ....kernels.structure.roles import Roles

__all__ = ["TILE_ROWS", "TILE_WORDS", "WORD_BYTES", "MatrixFactors", "matrix_factors", "words_at_once"]

#: Rows of a tile register, and words of one row: Intel's palette 1.
TILE_ROWS = TILE_WORDS = 16
#: Bytes of a word.
WORD_BYTES = 4
# Fewer words leave most of the instruction's time unused.
_LEAST_WORDS = 4
# Of more parts of rows than code is written for, sums are those of vectors.
_MOST_PARTS = 4


@dataclass(frozen=True)
class MatrixFactors:
    """The factors of a contraction as tile registers read them.

    Attributes:
        left, right: what both are.
        inner: the reductions whose steps are neighbours, one word after the other; the others are loops around.
        words: of a row along these.
        panel: columns of the right one's panels.
        line: what each register's rows have to lie between two multiples of, as an image's lines do not; 0: nothing.
        parts: reductions whose sums have a scale each, parts of rows, and their sizes.
        kinds: of elements of both, by the letters of instructions: ``s`` or ``u`` for bytes, ``bf16`` for both.
    """

    left: Operand
    right: Operand
    inner: tuple[int, ...]
    words: int
    panel: int
    kinds: tuple[str, ...]
    line: int = 0
    parts: tuple[tuple[int, int], ...] = ()

    @property
    def instruction(self) -> str:
        """LLVM's name of what multiplies them."""
        return "llvm.x86.tdpbf16ps" if self.kinds == ("bf16",) else f"llvm.x86.tdpb{''.join(self.kinds)}d"

    @property
    def element_bytes(self) -> int:
        """Of both factors."""
        return 2 if self.kinds == ("bf16",) else 1


def matrix_factors(contraction: Contraction, byte_signs: tuple[bool, bool, int] | None) -> MatrixFactors | None:
    """The factors that tile registers could multiply, None where there are none such.

    Args:
        contraction: a sum of products.
        byte_signs: of one of neighbouring bytes as they are, whether both are unsigned, and columns of a panel.
    """
    if contraction.m is None:
        return None
    product = IntegerProduct.of(contraction.nest.operation)
    if product is not None:
        found = _of_integers(contraction, product)
    elif byte_signs is not None:
        found = _of_bytes(contraction, byte_signs)
    else:
        found = _of_pairs(contraction)
    return None if found is None else _in_lines(found, contraction)


def words_at_once(words: int) -> int:
    """Words that one instruction takes, the same number in all; 0 where they would be few."""
    least = -(-words // TILE_WORDS)
    steps = next(n for n in range(least, words + 1) if words % n == 0) if words else 1
    found = words // steps
    return found if found >= _LEAST_WORDS else 0


def _of_integers(contraction: Contraction, product: IntegerProduct) -> MatrixFactors | None:
    """Bytes of which all steps, or those of a part of a row, have one scale."""
    layout, depth, k = product.layout, contraction.nest.extents[contraction.k].static, contraction.k
    if layout.word is not None or layout.rows != WORD_BYTES or not layout.has_neighbours or depth is None:
        return None
    parts = [(d, contraction.nest.extents[d].static) for d in contraction.outer]
    known = tuple((d, size) for d, size in parts if size is not None)
    if product.every != depth or depth % WORD_BYTES or len(known) < len(parts) or prod(n for _, n in known) > _MOST_PARTS:
        return None
    roles = Roles(contraction.nest, product)
    x, weight = roles.operand("x"), roles.operand("weight")
    if x is None or weight is None:
        return None
    kinds = ("s", "u" if product.is_unsigned else "s")
    return MatrixFactors(x, weight, (k,), depth // WORD_BYTES, layout.tile, kinds, parts=known)


def _of_bytes(contraction: Contraction, signs: tuple[bool, bool, int]) -> MatrixFactors | None:
    """Bytes of an image and of filters, whose channels are neighbours."""
    left_unsigned, right_unsigned, panel = signs
    if not contraction.outer:
        return None
    *_, last = contraction.outer
    (left,), (right,) = contraction.left.operands, contraction.right.operands
    words, factor = contraction.nest.extents[last].static, contraction.nest.extents[contraction.k].static
    steps = left.offset.factor(last).static, right.offset.factor(last).static
    if words is None or factor != WORD_BYTES or steps != (WORD_BYTES, panel * WORD_BYTES):
        return None
    kinds = tuple("u" if unsigned else "s" for unsigned in (left_unsigned, right_unsigned))
    return MatrixFactors(left, right, (last, contraction.k), words, panel, kinds)


def _of_pairs(contraction: Contraction) -> MatrixFactors | None:
    """bf16 of which pairs of rows are neighbours."""
    depth, k = contraction.nest.extents[contraction.k].static, contraction.k
    if contraction.outer or depth is None or depth % 2:
        return None
    names = [[op.name for op in f.operations] for f in (contraction.left, contraction.right)]
    if names != [["arith.extf"], ["arith.extf"]] or len(contraction.left.operands) != 1:
        return None
    (left,), (right,) = contraction.left.operands, contraction.right.operands
    panel = paired_panel(contraction, right)
    return MatrixFactors(left, right, (k,), depth // 2, panel, ("bf16",)) if panel else None


def _in_lines(found: MatrixFactors, contraction: Contraction) -> MatrixFactors | None:
    """The factors, where words are neighbours and rows of the left one, or those of a line, begin the same distance apart."""
    offset, m, k = found.left.offset, contraction.m, contraction.k
    if found.left.buffer is None or found.right.buffer is None or m is None or offset.factor(k).static != 1:
        return None
    floors = [f for f in offset.floors() if m in f.inner.dims()]
    others = {d for f in offset.floors() if f not in floors for d in f.inner.dims()}
    if any(f.inner != Linear.dim(m) for f in floors) or others & {k, *found.inner}:
        return None
    return replace(found, line=gcd(*(f.divisor for f in floors)))
