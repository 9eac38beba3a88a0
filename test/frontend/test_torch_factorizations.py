"""torch.linalg: factors, solutions, eigenvalues and singular values, of matrices of any shape, as torch gives them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import linalg
from torch.export import Dim

import relaxir as rx
from relaxir.frontend import torch_graph
from relaxir.frontend.torch_op import HANDLERS

#: Rounding of sums in another order, of matrices whose condition is at most some hundreds.
TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-4}


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


def compiled(function, *inputs, dims=None):
    program = torch.export.export(Function(function), inputs, dynamic_shapes=(dims,) if dims else None)
    return rx.compile(rx.from_torch(program))


def far(wanted, found) -> dict[str, float]:
    """Results that are too far from those wanted, in their order."""
    errors = {}
    for (name, a), result in zip(wanted.items(), found, strict=True):
        b = torch.as_tensor(result)
        assert (a.shape, a.dtype) == (b.shape, b.dtype), name
        scale = max(float(a.abs().max()), 1.0) if a.numel() else 1.0
        error = float((a.double() - b.double()).abs().max()) / scale if a.numel() else 0.0
        if not error <= TOLERANCE.get(a.dtype, 0):
            errors[name] = error
    return errors


def regular(x):
    """Square matrices that have an inverse, of any."""
    return x + (3 * torch.eye(x.shape[-1], dtype=x.dtype))


def positive(x):
    return x @ x.mT + torch.eye(x.shape[-1], dtype=x.dtype)


def of_square(x, y):
    """What square matrices give; y has as many rows, and other leading dimensions."""
    a, s = regular(x), positive(x)
    factor, pivots, info = linalg.lu_factor_ex(a)
    order, left, right = linalg.lu(a)
    lower, failed = linalg.cholesky_ex(s)
    values, vectors = linalg.eigh(s)
    of_upper = linalg.eigh(torch.triu(s), UPLO="U")
    sign, magnitude = linalg.slogdet(a)
    return {
        "solve": linalg.solve(a, y), "solve_right": linalg.solve(a, y.mT, left=False),
        "solve_vectors": linalg.solve(a, x.sum(-1)), "solve_ex": linalg.solve_ex(a, y)[0],
        "inv": linalg.inv(a), "inverse": torch.inverse(a), "inv_info": linalg.inv_ex(a)[1],
        "det": linalg.det(x), "sign": sign, "magnitude": magnitude, "logdet": torch.logdet(s), "p": order,
        "l": left, "u": right, "factor": factor, "pivots": pivots, "info": info, "lu_solve": linalg.lu_solve(factor, pivots, y),
        "lu_solve_adjoint": linalg.lu_solve(factor, pivots, y, adjoint=True),
        "lu_solve_right": linalg.lu_solve(factor, pivots, y.mT, left=False),
        "unpacked": torch.lu_unpack(factor, pivots)[0], "cholesky": linalg.cholesky(s), "old_cholesky": torch.cholesky(s),
        "cholesky_upper": linalg.cholesky(s, upper=True), "lower": lower, "failed": failed,
        "cholesky_solve": torch.cholesky_solve(y, lower), "cholesky_inverse": torch.cholesky_inverse(lower),
        "cholesky_solve_upper": torch.cholesky_solve(y, lower.mT, upper=True),
        "triangular": linalg.solve_triangular(a, y, upper=True),
        "unit": linalg.solve_triangular(x.sin(), y, upper=False, unitriangular=True),
        "triangular_right": linalg.solve_triangular(a, y.mT, upper=False, left=False),
        "old_triangular": torch.triangular_solve(y, a, upper=False, transpose=True)[0],
        "matrix_exp": torch.matrix_exp(x), "exponential": linalg.matrix_exp(x),
        "large_exp": torch.matrix_exp(4 * (x - x.mT)), "no_exp": torch.matrix_exp(0 * x),
        "power": linalg.matrix_power(a, -2), "eigenvalues": linalg.eigvalsh(s), "values": values, "of_upper": of_upper[0],
        "composed": (vectors * values[..., None, :]) @ vectors.mT, "orthogonal": vectors.mT @ vectors,
        "hermitian_inverse": linalg.pinv(s, hermitian=True),
    }  # fmt: skip


def of_any(x, y):
    """What matrices of any size give; y has as many columns."""
    q, r = linalg.qr(x)
    packed, taus = torch.geqrf(x)
    u, s, v = linalg.svd(x, full_matrices=False)
    whole = linalg.svd(x)
    p, lower, upper = linalg.lu(x)
    return {
        "q": q, "r": r, "only_r": linalg.qr(x, mode="r")[1], "complete_q": linalg.qr(x, mode="complete")[0],
        "complete_r": linalg.qr(x, mode="complete")[1], "packed": packed, "taus": taus,
        "product": linalg.householder_product(packed[..., : taus.shape[-1]], taus), "p": p, "l": lower, "u": upper,
        "ormqr": torch.ormqr(packed[..., : taus.shape[-1]], taus, x), "svd_values": s, "values": linalg.svdvals(x),
        "ormqr_right": torch.ormqr(packed[..., : taus.shape[-1]], taus, x.mT, left=False, transpose=True),
        "composed": (u * s[..., None, :]) @ v, "columns": u.mT @ u, "rows": v @ v.mT, "whole_u": whole[0].mT @ whole[0],
        "whole_v": whole[2] @ whole[2].mT, "whole_values": whole[1], "pinv": linalg.pinv(x), "rank": linalg.matrix_rank(x),
        "limited": linalg.pinv(x, atol=0.5, rtol=0.1), "norm": linalg.matrix_norm(x, 2),
        "nuclear": linalg.matrix_norm(x, "nuc"),
        "as_first": y @ linalg.pinv(x),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("shape", "other"), [
    ((5, 5), (5, 2)), ((2, 1, 4, 4), (3, 4, 1)), ((3, 1, 1), (3, 1, 2)), ((2, 2), (7, 2, 3)),
    ((2, 0, 0), (2, 0, 3)), ((0, 3, 3), (0, 3, 1)), ((33, 33), (33, 1)),
])  # fmt: skip
def test_square_matrices(dtype, shape, other):
    generator = torch.Generator().manual_seed(sum(shape))
    x, y = (torch.randn(s, dtype=dtype, generator=generator) / max(s[-1], 1) ** 0.5 for s in (shape, other))
    assert not far(of_square(x, y), compiled(of_square, x, y)(x, y))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 5), (3, 1, 7, 1), (2, 1, 5), (4, 4), (2, 20, 17)])
def test_matrices_of_any_shape(dtype, shape):
    x = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))
    y = x[..., :1, :] + 1
    assert not far(of_any(x, y), compiled(of_any, x, y)(x, y))


def test_sizes_that_are_open():
    batch, size, columns = Dim("batch"), Dim("size", max=100), Dim("columns", max=100)
    shapes = [(3, 5, 2), (1, 1, 1), (2, 8, 3), (0, 3, 2), (2, 0, 1), (1, 34, 1)]

    def inputs(b, n, k):
        generator = torch.Generator().manual_seed(n)
        return torch.randn(b, n, n, dtype=torch.float64, generator=generator) / max(n, 1) ** 0.5, torch.randn(
            b, n, k, dtype=torch.float64, generator=generator
        )

    def of_all(x, y):
        return of_square(x, y) | {"r": linalg.qr(x)[1], "singular": linalg.svdvals(x), "pinv": linalg.pinv(regular(x))}

    dims = ({0: batch, 1: size, 2: size}, {0: batch, 1: size, 2: columns})
    exe = compiled(of_all, *inputs(*shapes[0]), dims=dims)
    for shape in shapes:
        assert not far(of_all(*inputs(*shape)), exe(*inputs(*shape))), shape


def test_every_handler_is_reached():
    x, y = torch.randn(3, 3), torch.randn(3, 3)
    reached = set()
    for function in (of_square, of_any):
        program = torch_graph.importable(torch.export.export(Function(function), (x, y)))
        reached |= {torch_graph.operator_name(n.target) for n in program.graph.nodes if n.op == "call_function"}
    families = {key for key, handler in HANDLERS.items() if handler.__module__.endswith(".factorizations")}
    assert sorted(families - reached) == []


DEGENERATE = {
    "zeros": torch.zeros(4, 4), "ones": torch.ones(4, 4), "equal values": torch.eye(5) * 3,
    "of rank two": torch.arange(30.0).reshape(6, 5), "small": 1e-30 * (torch.arange(15.0) ** 2).reshape(5, 3).cos(),
    "zero column": torch.eye(4)[:, [0, 1, 1, 3]] * 0.5, "large": 1e30 * (torch.arange(15.0) ** 2).reshape(5, 3).cos(),
    "wide of rank one": torch.ones(2, 6), "of many scales": torch.diag(torch.logspace(-12, 12, 7)),
}  # fmt: skip


@pytest.mark.parametrize("name", DEGENERATE)
def test_matrices_without_full_rank_and_of_all_scales(name):
    x = DEGENERATE[name].double()
    scale = float(x.abs().max()) or 1.0

    def forward(x):
        u, s, v = linalg.svd(x)
        square = (x / scale) @ (x / scale).mT
        values, vectors = linalg.eigh(square)
        rows, columns = x.shape
        k = min(rows, columns)
        return {
            "values": linalg.svdvals(x) / scale, "composed": (u[:, :k] * s) @ v[:k] / scale, "u": u.mT @ u, "v": v @ v.mT,
            "eigenvalues": values, "vectors": vectors.mT @ vectors, "square": (vectors * values) @ vectors.mT,
            "r": linalg.qr(x)[1].abs() / scale, "pinv": linalg.pinv(x) * scale, "det": linalg.det(square),
        }  # fmt: skip

    assert not far(forward(x), compiled(forward, x)(x))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_end(number):
    def forward(x):
        return linalg.eigvalsh(x), linalg.svdvals(x), torch.matrix_exp(x), linalg.inv_ex(x)[0], linalg.cholesky_ex(x)[1]

    x = torch.eye(3)
    exe = compiled(forward, x)
    x[1, 1] = number
    *found, failed = (torch.as_tensor(r) for r in exe(x))
    assert all(not r.isfinite().all() for r in found[:3])
    assert int(failed) == (2 if number != number else 0)  # infinity is a positive number


def test_small_singular_values_are_exact():
    """Rotations give each value with its own relative error, which products of the matrix with itself lose."""
    x = torch.diag(torch.logspace(-8, 0, 6, dtype=torch.float64))[torch.randperm(6, generator=torch.Generator().manual_seed(1))]
    found = torch.as_tensor(compiled(linalg.svdvals, x)(x))
    assert torch.allclose(found, torch.logspace(0, -8, 6, dtype=torch.float64), rtol=1e-13, atol=0)


@pytest.mark.parametrize("function", [linalg.inv, linalg.cholesky, lambda x: linalg.solve(x, x)])
def test_matrices_without_factors_are_errors_when_they_come(function):
    exe = compiled(function, torch.eye(3)[None])
    assert torch.allclose(torch.as_tensor(exe(torch.eye(3)[None] * 4)), function(torch.eye(3)[None] * 4))
    for wrong in (torch.zeros(1, 3, 3), torch.diag(torch.tensor([1.0, 1.0, 0.0]))[None]):
        with pytest.raises(rx.RelaxError, match=r"linalg\.[a-z]*: expected matrices that have an inverse, or"):
            exe(wrong)


def test_where_factors_end_is_told():
    x = torch.stack([torch.eye(3), torch.diag(torch.tensor([1.0, 0.0, 1.0])), torch.zeros(3, 3), -torch.eye(3)])

    def forward(x):
        return {"inv": linalg.inv_ex(x)[1], "lu": linalg.lu_factor_ex(x)[2], "cholesky": linalg.cholesky_ex(x)[1]}

    assert not far(forward(x), compiled(forward, x)(x))


def test_factors_of_weights_are_prepared(tmp_path):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(6, 6))
            self.linear = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(6, 6))

        def forward(self, x):
            return self.linear(x @ linalg.inv(self.weight))

    model, x = Model().eval(), torch.randn(2, 6)
    program = torch.export.export(model, (x,))
    exe = rx.compile(rx.from_torch(program))
    rx.save_weights(program, tmp_path / "weights.safetensors")
    exe.bind(exe.prepare(tmp_path / "weights.safetensors"))
    np.testing.assert_allclose(exe(x), model(x).detach(), rtol=1e-4, atol=1e-4)
    assert not {"weight", "linear.parametrizations.weight.original"} & set(exe.manifest.prepared_weights)


def test_torch_compile_takes_them():
    def function(x):
        return linalg.inv(regular(x)) + linalg.cholesky(positive(x))

    x = torch.randn(4, 4)
    found = torch.compile(function, backend="relaxir", options={"fallback": False})(x)
    assert torch.allclose(found, function(x), atol=1e-5)
