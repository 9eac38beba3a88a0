"""torch ops that factorize matrices or solve systems of equations."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import broadcast_shapes
from ..emit import cast, emit, expand, full, info_of, integer, size_value, squeeze, unsqueeze
from ..factorizations import elimination
from ..factorizations.eigenvectors import eigenvectors
from ..factorizations.exponential import exponential
from ..factorizations.householder import apply_reflections, product_of_reflections, qr, reflections
from ..factorizations.matrices import epsilon, eye, transposed
from ..factorizations.singular import pseudoinverse, singular_vectors
from ..factorizations.triangular import cholesky, solve_cholesky, solve_triangular
from ..torch_op import TorchOp, handles

__all__: list[str] = []


def _aligned(*values: ir.Value) -> list[ir.Value]:
    """The matrices with one shape in front of their last two dimensions."""
    batch = info_of(values[0]).shape[:-2]
    for value in values[1:]:
        batch = broadcast_shapes(batch, info_of(value).shape[:-2])
    return [expand(x, [*batch, *info_of(x).shape[-2:]]) for x in values]


def _info(number: ir.Value) -> ir.Value:
    return cast(number, integer(32))


@handles("aten.linalg_solve_triangular")
def _solve_triangular(op: TorchOp) -> ir.Value:
    upper, left, unit = bool(op.number(2)), bool(op.number(3, True)), bool(op.number(4, False))
    a, b = _aligned(op.tensor(0), op.tensor(1))
    if left:
        return solve_triangular(a, b, upper, unit)
    return transposed(solve_triangular(a, transposed(b), upper, unit, adjoint=True))


@handles("aten.triangular_solve")
def _triangular_solve(op: TorchOp) -> list[ir.Value | None]:
    b, a = _aligned(op.tensor(0), op.tensor(1))
    return [solve_triangular(a, b, bool(op.number(2, True)), bool(op.number(4, False)), adjoint=bool(op.number(3, False))), a]


@handles("aten.linalg_cholesky_ex")
def _cholesky_ex(op: TorchOp) -> list[ir.Value | None]:
    factor, failed = cholesky(op.tensor(0), bool(op.number(1, False)))
    return [factor, _info(failed)]


@handles("aten.cholesky")
def _cholesky(op: TorchOp) -> ir.Value:
    return cholesky(op.tensor(0), bool(op.number(1, False)))[0]


@handles("aten.cholesky_solve")
def _cholesky_solve(op: TorchOp) -> ir.Value:
    return solve_cholesky(*_aligned(op.tensor(0), op.tensor(1)), upper=bool(op.number(2, False)))


@handles("aten.cholesky_inverse")
def _cholesky_inverse(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    return solve_cholesky(eye(x, info_of(x).shape[-1], info_of(x).shape[-1]), x, upper=bool(op.number(1, False)))


@handles("aten.linalg_lu_factor_ex")
def _lu_factor_ex(op: TorchOp) -> list[ir.Value | None]:
    found = _factors(op, 1)
    return [found.packed, _pivots(found), _info(found.first_zero())]


@handles("aten.linalg_lu")
def _lu(op: TorchOp) -> list[ir.Value | None]:
    found = _factors(op, 1)
    return [elimination.permutation(found.order, op.dtype), *elimination.unpacked(found.packed)]


@handles("aten.lu_unpack")
def _lu_unpack(op: TorchOp) -> list[ir.Value | None]:
    """What is not asked for is an empty tensor."""
    packed, nothing = op.tensor(0), full(0, op.dtype, (0,))
    order = elimination.order_of(_exchanges(op.tensor(1)), info_of(packed).shape[-2])
    p = elimination.permutation(order, op.dtype) if op.number(3, True) else nothing
    return [p, *(elimination.unpacked(packed) if op.number(2, True) else (nothing, nothing))]


@handles("aten.linalg_lu_solve")
def _lu_solve(op: TorchOp) -> ir.Value:
    left, adjoint = bool(op.number(3, True)), bool(op.number(4, False))
    b = op.tensor(2) if left else transposed(op.tensor(2))
    packed, pivots, b = _aligned(op.tensor(0), unsqueeze(_exchanges(op.tensor(1)), info_of(op.tensor(1)).rank), b)
    exchanges = squeeze(pivots, info_of(pivots).rank - 1)
    found = elimination.Factors(packed, exchanges, elimination.order_of(exchanges, info_of(packed).shape[-2]))
    x = elimination.solve(found, b, adjoint != (not left))
    return x if left else transposed(x)


def _factors(op: TorchOp, pivot: int) -> elimination.Factors:
    if not op.number(pivot, True):
        raise RelaxError("expected factors with exchanged rows, as PyTorch on CPUs has no others")
    return elimination.factors(op.tensor(0))


def _pivots(found: elimination.Factors) -> ir.Value:
    """As LAPACK counts rows: from one on."""
    return cast(emit(ops.Add, found.exchanges, full(1, integer())), integer(32))


def _exchanges(pivots: ir.Value) -> ir.Value:
    return emit(ops.Subtract, cast(pivots, integer()), full(1, integer()))


@handles("aten._linalg_solve_ex")
def _solve_ex(op: TorchOp) -> list[ir.Value | None]:
    """X of ``A X = B``, or of ``X A = B``; B may be vectors."""
    a, b, left = op.tensor(0), op.tensor(1), bool(op.number(2, True))
    found = elimination.factors(a)
    rank = info_of(b).rank
    is_vector = rank == 1 or (rank == info_of(a).rank - 1 and info_of(b).shape == info_of(a).shape[:-1])
    b = unsqueeze(b, rank) if is_vector else b
    b = b if left or is_vector else transposed(b)
    packed, order, b = _aligned(found.packed, unsqueeze(found.order, info_of(found.order).rank), b)
    aligned = elimination.Factors(packed, found.exchanges, squeeze(order, info_of(order).rank - 1))
    x = elimination.solve(aligned, b, adjoint=not left)
    x = squeeze(x, info_of(x).rank - 1) if is_vector else x if left else transposed(x)
    return [x, found.packed, _pivots(found), _info(found.first_zero())]


@handles("aten.linalg_inv_ex")
def _inv_ex(op: TorchOp) -> list[ir.Value | None]:
    found = elimination.factors(op.tensor(0))
    return [elimination.inverse(found), _info(found.first_zero())]


@handles("aten._linalg_det")
def _det(op: TorchOp) -> list[ir.Value | None]:
    found = elimination.factors(op.tensor(0))
    return [elimination.determinant(found), found.packed, _pivots(found)]


@handles("aten._linalg_slogdet")
def _slogdet(op: TorchOp) -> list[ir.Value | None]:
    found = elimination.factors(op.tensor(0))
    return [*elimination.sign_and_log_determinant(found), found.packed, _pivots(found)]


@handles("aten.linalg_qr")
def _qr(op: TorchOp) -> list[ir.Value | None]:
    mode = op.number(1, "reduced")
    q, r = qr(op.tensor(0), complete=mode == "complete")
    return [full(0, op.dtype, (0,)) if mode == "r" else q, r]


@handles("aten.geqrf")
def _geqrf(op: TorchOp) -> list[ir.Value | None]:
    return list(reflections(op.tensor(0)))


@handles("aten.linalg_householder_product")
def _householder_product(op: TorchOp) -> ir.Value:
    return product_of_reflections(op.tensor(0), op.tensor(1), info_of(op.tensor(0)).shape[-1])


@handles("aten.ormqr")
def _ormqr(op: TorchOp) -> ir.Value:
    """A product with reflections from the left or the right."""
    left, transpose = bool(op.number(3, True)), bool(op.number(4, False))
    if left:
        return apply_reflections(op.tensor(0), op.tensor(1), op.tensor(2), transpose)
    return transposed(apply_reflections(op.tensor(0), op.tensor(1), transposed(op.tensor(2)), not transpose))


@handles("aten.linalg_matrix_exp", "aten.matrix_exp")
def _matrix_exp(op: TorchOp) -> ir.Value:
    return exponential(op.tensor(0))


@handles("aten._linalg_eigh")
def _eigh(op: TorchOp) -> list[ir.Value | None]:
    return list(eigenvectors(op.tensor(0), upper=op.number(1, "L") == "U"))


@handles("aten._linalg_svd")
def _svd(op: TorchOp) -> list[ir.Value | None]:
    return list(singular_vectors(op.tensor(0), complete=bool(op.number(1, False))))


@handles("aten.linalg_pinv.atol_rtol_tensor")
def _pinv(op: TorchOp) -> ir.Value:
    """Without limits those of PyTorch: a part of the largest singular value, the larger size of matrices times epsilon."""
    a = op.tensor(0)
    absolute, relative = op.optional(1), op.optional(2)
    default = 0.0 if absolute is not None else epsilon(op.dtype)
    limits = [full(0, op.dtype) if absolute is None else cast(absolute, op.dtype)]
    limits.append(_of_size(a, default) if relative is None else cast(relative, op.dtype))
    return pseudoinverse(a, *limits)


def _of_size(a: ir.Value, factor: float) -> ir.Value:
    m, n = (cast(size_value(d), info_of(a).dtype) for d in info_of(a).shape[-2:])
    return emit(ops.Multiply, emit(ops.Maximum, m, n), full(factor, info_of(a).dtype))
