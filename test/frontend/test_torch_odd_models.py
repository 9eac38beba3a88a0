"""Models as people write them, at the edges: parts of symbolic sizes, complex numbers inside, what is refused in words."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.export import Dim  # noqa: E402

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402


def exported(model, inputs, dims=None):
    with models.quiet():
        return torch.export.export(model.eval(), inputs, dynamic_shapes=dims)


class Halves(torch.nn.Module):
    """Gated units of open width: two parts of ``2 * h``, by their number and by their size."""

    def forward(self, x):
        a, b = x.chunk(2, 1)
        c, d = x.split(x.shape[1] // 2, 1)
        return a * b.sigmoid(), c - d, torch.nn.functional.glu(x, 1)


def test_parts_of_a_symbolic_size():
    program = exported(Halves(), (torch.randn(4, 6),), ({0: Dim("b"), 1: 2 * Dim("h")},))
    executable = rx.compile(rx.from_torch(program))
    for shape in ((4, 6), (3, 8), (2, 14)):
        x = torch.randn(shape)
        for got, wanted in zip(executable(x), Halves()(x), strict=True):
            torch.testing.assert_close(got, wanted)


class Waves(torch.nn.Module):
    def forward(self, a, b):
        c = torch.complex(a, b)
        return (c * c.conj()).real, c.abs(), c.angle(), torch.view_as_real(c.exp())


def test_angles_and_exponentials_of_complex_numbers():
    inputs = torch.randn(4, 4), torch.randn(4, 4)
    executable = rx.compile(rx.from_torch(exported(Waves(), inputs)))
    for got, wanted in zip(executable(*inputs), Waves()(*inputs), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)


class Sparse(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.eye(4).to_sparse())

    def forward(self, x):
        return torch.sparse.mm(self.w, x)


def test_sparse_weights_are_refused_by_name():
    with pytest.raises(rx.RelaxError, match="argument 'w': expected a dense tensor, got a sparse one"):
        rx.from_torch(exported(Sparse(), (torch.randn(4, 4),)))


class Gradient(torch.nn.Module):
    def forward(self, x):
        return torch.func.grad(lambda a: (a**3).sum())(x)


def test_gradients_that_torch_does_not_trace_are_refused():
    with pytest.raises(rx.RelaxError, match=r"torch.export does not trace transforms of torch.func"):
        rx.from_torch(exported(Gradient(), (torch.randn(10),)))


class Diagonal(torch.nn.Module):
    """Writes through views by strides."""

    def forward(self, x, y):
        z, w = x.clone(), y * 2
        z.fill_diagonal_(7.0)
        w.fill_diagonal_(-1.0, wrap=True)
        w.as_strided((2, 2), (3, 1), 1).mul_(3)
        return z, w


def test_writes_through_views_by_strides():
    inputs = torch.randn(4, 4), torch.randn(7, 3)
    executable = rx.compile(rx.from_torch(exported(Diagonal(), inputs)))
    for got, wanted in zip(executable(*inputs), Diagonal()(*inputs), strict=True):
        torch.testing.assert_close(got, wanted)
