"""ONNX operators that are products."""

from __future__ import annotations

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.inference import is_float
from ....dialect.symbolic import same
from ...attention import attention_of
from ...emit import cast, emit, full, info_of, multiply_all, permute, reshape, squeeze, unsqueeze
from ...places import diagonal_places
from ..node import Node, handles


@handles("MatMul")
def _matmul(node: Node) -> ir.Value:
    """A product, or attention where it is the second one of that."""
    a, b = node.tensor(0), node.tensor(1)
    return attention_of(a, b) or product(a, b)


def product(a: ir.Value, b: ir.Value) -> ir.Value:
    """As NumPy's matmul; integers by sums of products."""
    if is_float(info_of(a).dtype):
        return emit(ops.MatMul, a, b)
    return integer_product(a, b)


def integer_product(a: ir.Value, b: ir.Value) -> ir.Value:
    """The sum over products of integers, in their dtype."""
    ranks = info_of(a).rank, info_of(b).rank
    a = unsqueeze(a, 0) if ranks[0] == 1 else a
    b = unsqueeze(b, 1) if ranks[1] == 1 else b
    rank = max(info_of(a).rank, info_of(b).rank)
    left, right = unsqueeze(a, info_of(a).rank), unsqueeze(b, info_of(b).rank - 2)
    result = emit(ops.Sum, emit(ops.Multiply, left, right), axis=[rank - 1])
    result = squeeze(result, rank - 2) if ranks[0] == 1 else result
    return squeeze(result, info_of(result).rank - 1) if ranks[1] == 1 else result


@handles("Gemm")
def _gemm(node: Node) -> ir.Value:
    """``alpha * a @ b + beta * c``."""
    a, b = node.tensor(0), node.tensor(1)
    a = permute(a, [1, 0]) if node.attribute("transA", 0) else a
    b = permute(b, [1, 0]) if node.attribute("transB", 0) else b
    dtype = node.dtype()
    result = _times(product(a, b), node.attribute("alpha", 1.0))
    return emit(ops.Add, result, _times(node.tensor(2), node.attribute("beta", 1.0))) if node.has(2) else cast(result, dtype)


def _times(x: ir.Value, number: float) -> ir.Value:
    return x if number == 1 else emit(ops.Multiply, x, full(number, info_of(x).dtype))


@handles("Einsum")
def _einsum(node: Node) -> ir.Value:
    """Operands one after the other: a letter that nobody wants any more is summed as soon as it appears in one alone."""
    equation = node.attribute("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(node.operands):
        raise RelaxError(f"expected {len(terms)} operands of '{equation}', got {len(node.operands)}")
    terms = [_spelled(t, node.rank(i)) for i, t in enumerate(terms)]
    letters = "".join(terms)
    ellipsis = "".join(sorted({c for c in letters if c.isupper() and c in _ELLIPSIS}))
    if not arrow:
        right = ("..." if ellipsis else "") + "".join(sorted(c for c in set(letters) - set(ellipsis) if letters.count(c) == 1))
    wanted = right.replace("...", ellipsis)
    values = [_diagonals(node.tensor(i), t) for i, t in enumerate(terms)]
    value, term = values[0]
    for i, (other, letters) in enumerate(values[1:], start=2):
        kept = wanted + "".join(t for _, t in values[i:])
        value, term = _contracted(value, term, other, letters, kept)
    summed = [i for i, c in enumerate(term) if c not in wanted]
    value = emit(ops.Sum, value, axis=summed) if summed else value
    term = "".join(c for c in term if c in wanted)
    if sorted(term) != sorted(wanted):
        raise RelaxError(f"expected a result of letters among the operands', got '{equation}'")
    return permute(value, [term.index(c) for c in wanted])


#: Letters for the dimensions of an ellipsis, from the last one on. Equations seldom have them: those that do are refused.
_ELLIPSIS = "ZYXWVUTS"


def _spelled(term: str, rank: int) -> str:
    if "..." not in term:
        return term
    count = rank - (len(term) - 3)
    return term.replace("...", _ELLIPSIS[:count][::-1])


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


def _contracted(a: ir.Value, left: str, b: ir.Value, right: str, kept: str) -> tuple[ir.Value, str]:
    """The product with all letters of both that are kept; a matrix product where that sums some, else with the others, too."""
    summed = [c for c in left if c in right and c not in kept]
    sizes = [(info_of(a).shape[left.index(c)], info_of(b).shape[right.index(c)]) for c in summed]
    whole = None not in (*info_of(a).shape, *info_of(b).shape) and all(same(*pair) for pair in sizes)
    if summed and whole and is_float(info_of(a).dtype):
        return _matrix_product(a, left, b, right, summed)
    letters = left + "".join(c for c in right if c not in left)
    return emit(ops.Multiply, _arranged(a, left, letters), _arranged(b, right, letters)), letters


def _matrix_product(a: ir.Value, left: str, b: ir.Value, right: str, summed: list[str]) -> tuple[ir.Value, str]:
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
    result = emit(ops.MatMul, a, reshape(b, (*second[:outer], depth, multiply_all(second[inner:]))))
    shape = (*info_of(result).shape[:outer], *first[outer:split], *second[inner:])
    return reshape(result, shape), "".join([*batch, *rows, *columns])


def _arranged(x: ir.Value, term: str, letters: str) -> ir.Value:
    order = [term.index(c) for c in letters if c in term]
    return unsqueeze(permute(x, order), *(i for i, c in enumerate(letters) if c not in term))


@handles("Det")
def _det(node: Node) -> ir.Value:
    """By elimination without exchange of rows would divide by 0: by minors, for up to four rows."""
    size = node.known_size(0, -1)
    if size > 4:
        raise RelaxError(f"expected determinants of at most 4 rows, got {size}")
    return _minor(node.tensor(0), list(range(size)), list(range(size)))


def _minor(x: ir.Value, rows: list[int], columns: list[int]) -> ir.Value:
    def element(i: int, j: int) -> ir.Value:
        rank = info_of(x).rank
        part = emit(ops.StridedSlice, x, axes=[rank - 2, rank - 1], begin=[i, j], end=[i + 1, j + 1])
        return squeeze(part, rank - 2, rank - 1)

    if len(rows) == 1:
        return element(rows[0], columns[0])
    total: ir.Value | None = None
    for k, column in enumerate(columns):
        part = emit(ops.Multiply, element(rows[0], column), _minor(x, rows[1:], columns[:k] + columns[k + 1 :]))
        total = part if total is None else emit(ops.Subtract if k % 2 else ops.Add, total, part)
    assert total is not None
    return total
