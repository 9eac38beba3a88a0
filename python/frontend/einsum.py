"""Einstein summation as products of matrices.

Source: NumPy's ``einsum``, as torch and ONNX have it, where dimensions of size one broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dialect import ops
from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.inference import is_float
from ..dialect.symbolic import same
from .emit import emit, info_of, multiply_all, permute, reshape, unsqueeze
from .places import diagonal_places

__all__ = ["einsum", "einsum_letters", "matmul"]

#: Behind all letters of equations.
_ELLIPSIS = 0x100

_Product = Callable[[ir.Value, ir.Value], ir.Value]


def matmul(a: ir.Value, b: ir.Value) -> ir.Value:
    """The product of two tensors of floats."""
    return emit(ops.MatMul, a, b)


def einsum(equation: str, operands: Sequence[ir.Value], product: _Product = matmul) -> ir.Value:
    """Operands one after the other: a letter that nobody wants any more is summed as soon as it appears in one alone.

    Matrices of floats are multiplied by ``product``, which takes two tensors of one rank and gives what their matmul is.

    Raises RelaxError when the equation does not fit the operands.
    """
    _, arrow, right = equation.replace(" ", "").partition("->")
    terms = einsum_letters(equation, [info_of(x).rank for x in operands])
    letters = "".join(terms)
    ellipsis = "".join(sorted({c for c in letters if ord(c) >= _ELLIPSIS}, reverse=True))
    if not arrow:
        right = "..." + "".join(sorted(c for c in set(letters) - set(ellipsis) if letters.count(c) == 1))
    wanted = right.replace("...", ellipsis)
    values = [_diagonals(x, t) for x, t in zip(operands, terms, strict=True)]
    value, term = values[0]
    for i, (other, letters) in enumerate(values[1:], start=2):
        kept = wanted + "".join(t for _, t in values[i:])
        value, term = _contracted(value, term, other, letters, kept, product)
    summed = [i for i, c in enumerate(term) if c not in wanted]
    value = emit(ops.Sum, value, axis=summed) if summed else value
    term = "".join(c for c in term if c in wanted)
    if sorted(term) != sorted(wanted):
        raise RelaxError(f"expected a result of letters among the operands', got '{equation}'")
    return permute(value, [term.index(c) for c in wanted])


def einsum_letters(equation: str, ranks: Sequence[int]) -> list[str]:
    """A sign for each dimension of operands of these ranks. Raises RelaxError where the equation is of other operands."""
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    if len(terms) != len(ranks):
        raise RelaxError(f"expected {len(terms)} operands of '{equation}', got {len(ranks)}")
    return [_spelled(t, rank) for t, rank in zip(terms, ranks, strict=True)]


def _spelled(term: str, rank: int) -> str:
    """The term with signs that no equation has for the dimensions of an ellipsis, alike from the last one on."""
    count = rank - (len(term) - 3)
    return term.replace("...", "".join(chr(_ELLIPSIS + i) for i in reversed(range(count))))


def _diagonals(x: ir.Value, term: str) -> tuple[ir.Value, str]:
    """A letter twice is the diagonal."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first, second = term.index(letter), term.index(letter, term.index(letter) + 1)
            rest = [i for i in range(len(term)) if i not in (first, second)]
            x = permute(x, [*rest, first, second])
            *batch, size, _ = info_of(x).shape
            flat = reshape(x, (*batch, multiply_all([size, size])))
            if isinstance(size, int):
                x = emit(ops.StridedSlice, flat, axes=[len(batch)], begin=[0], end=[size * size], strides=[size + 1])
            else:
                x = emit(ops.Take, flat, diagonal_places(size, 0, size), axis=len(batch))
            term = "".join(term[i] for i in rest) + letter
    return x, term


def _contracted(a: ir.Value, left: str, b: ir.Value, right: str, kept: str, product: _Product) -> tuple[ir.Value, str]:
    """The product with all letters of both that are kept; a matrix product where that sums some, else with the others, too."""
    summed = [c for c in left if c in right and c not in kept]
    sizes = [(info_of(a).shape[left.index(c)], info_of(b).shape[right.index(c)]) for c in summed]
    whole = None not in (*info_of(a).shape, *info_of(b).shape) and all(same(*pair) for pair in sizes)
    if summed and whole and is_float(info_of(a).dtype):
        return _matrix_product(a, left, b, right, summed, product)
    letters = left + "".join(c for c in right if c not in left)
    return emit(ops.Multiply, _arranged(a, left, letters), _arranged(b, right, letters)), letters


def _matrix_product(
    a: ir.Value, left: str, b: ir.Value, right: str, summed: list[str], product: _Product
) -> tuple[ir.Value, str]:
    """``[batch, rows, summed] @ [batch, summed, columns]``, where each of the last is several letters or none."""
    batch = [c for c in left if c in right and c not in summed]
    rows, columns = ([c for c in term if c not in other] for term, other in ((left, right), (right, left)))
    a, b = (permute(x, [term.index(c) for c in order]) for x, term, order in (
        (a, left, [*batch, *rows, *summed]), (b, right, [*batch, *summed, *columns])))  # fmt: skip
    first, second = info_of(a).shape, info_of(b).shape
    outer, inner = len(batch), len(batch) + len(summed)
    depth = multiply_all(second[outer:inner])
    split = outer + len(rows)
    a = reshape(a, (*first[:outer], multiply_all(first[outer:split]), depth))
    result = product(a, reshape(b, (*second[:outer], depth, multiply_all(second[inner:]))))
    shape = (*info_of(result).shape[:outer], *first[outer:split], *second[inner:])
    return reshape(result, shape), "".join([*batch, *rows, *columns])


def _arranged(x: ir.Value, term: str, letters: str) -> ir.Value:
    order = [term.index(c) for c in letters if c in term]
    return unsqueeze(permute(x, order), *(i for i, c in enumerate(letters) if c not in term))
