"""Control flow of torch: exported, imported, evaluated and compiled, at several sizes, both ways of branches."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch._higher_order_ops.associative_scan import associative_scan  # noqa: E402
from torch._higher_order_ops.map import map as torch_map  # noqa: E402
from torch._higher_order_ops.scan import scan  # noqa: E402
from torch._higher_order_ops.while_loop import while_loop  # noqa: E402
from torch.export import Dim  # noqa: E402

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)


class Branch(Layers):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: (self.a(x).relu(), x * 3), lambda x: (self.b(x) * 2, x + 1), (x,))


class BranchOnSize(Layers):
    def forward(self, x):
        return torch.cond(x.shape[0] > 4, lambda x: self.a(x) * x.shape[0], lambda x: x - 1, (x,))


class Loop(Layers):
    """The number of rounds depends on the data; a branch inside."""

    def forward(self, x):
        def body(i, y):
            return i + 1, torch.cond(y.sum() > 0, lambda y: self.a(y), lambda y: y.cos(), (y,))

        start = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda i, y: (i < 4) & (y.abs().max() < 3), body, (start, x))


class Scan(torch.nn.Module):
    def forward(self, x):
        return scan(lambda c, y: (c + y, (c * y, y.sum() > 0)), torch.ones(4), x)


class Map(Layers):
    def forward(self, x):
        return torch_map(lambda y: self.a(y).relu(), x)


class Recurrence(torch.nn.Module):
    def forward(self, x):
        return associative_scan(lambda a, b: a * b + a, x, 0, combine_mode="generic")


def exported(model, dynamic=True):
    with models.quiet(), torch.no_grad():
        dims = ({0: Dim("n", min=2, max=64)},) if dynamic else None
        return torch.export.export(model.eval(), (torch.randn(3, 4),), dynamic_shapes=dims)


def assert_equal(got, wanted):
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)  # sums in another order


@pytest.mark.parametrize("make", [Branch, BranchOnSize, Loop, Scan, Map, Recurrence])
def test_equals_eager_torch(make):
    model, dynamic = make(), make is not Recurrence
    program = exported(model, dynamic)
    module = rx.from_torch(program)
    module.verify()
    weights = models.weights_of(program, module)
    executable = rx.compile(module)
    executable.bind(executable.prepare(weights))
    for n, shift in ((3, 0.0), (3, 1.0), (3, -1.0), *(((2, 0.5), (9, -0.5)) if dynamic else ())):
        torch.manual_seed(n)
        x = torch.randn(n, 4) + shift
        with torch.no_grad():
            wanted = [t.numpy() for t in torch.utils._pytree.tree_leaves(model(x))]
        assert_equal(rx.evaluate(module, "main", x.numpy(), weights=weights), wanted)
        found = executable(x.numpy())
        assert_equal(found if isinstance(found, tuple) else (found,), wanted)


def test_weights_of_branches_are_prepared_ahead():
    executable = rx.compile(rx.from_torch(exported(Branch())))
    prepared = set(executable.manifest.prepared_weights)
    assert {"a.weight", "b.weight"}.isdisjoint(prepared)
    assert {"a.bias", "b.bias"} <= prepared


def test_operators_of_branches_without_a_relax_form_are_reported_with_their_lines():
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: torch.special.bessel_j0(x), torch.sin, (x,))

    with pytest.raises(
        rx.RelaxError, match=r"1 x aten.special_bessel_j0: no relax form\n      at .*test_torch_control_flow.py"
    ):
        rx.from_torch(exported(Model()))


def test_a_branch_runs_compiled_by_torch():
    model = Branch().eval()
    before = len(rx.torch_graphs())
    fast = torch.compile(model, backend="relaxir")
    with torch.no_grad():
        for x in (torch.ones(3, 4), -torch.ones(3, 4)):
            assert_equal([t.numpy() for t in fast(x)], [t.numpy() for t in model(x)])
    assert [g.runs_in for g in rx.torch_graphs()[before:]] == ["relaxir"]


class Counted(Layers):
    """The loop carries a number, which is read inside and behind it."""

    def forward(self, x):
        def body(i, y):
            return i + 2, torch.cond(y.sum() > 30, lambda y: y - 1, lambda y: y * 2 + y.abs(), (y,)) + i

        n, y = while_loop(lambda i, y: y.sum() < 90, body, (1, x))
        return n, self.a(y) * n


class CountedAlone(torch.nn.Module):
    def forward(self, x):
        return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y.sin() * i), (0, x))


class Cut(torch.nn.Module):
    """The number decides a size."""

    def forward(self, x):
        n, y = while_loop(lambda i, y: y.sum() < 50, lambda i, y: (i + 1, y * 2), (0, x))
        torch._check(n >= 0)
        torch._check(n <= 3)
        return y[:n].sum(0)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("make", [Counted, CountedAlone, Cut])
def test_loops_that_carry_numbers(make, strict):
    with models.quiet():
        program = torch.export.export(make().eval(), (torch.ones(3, 4),), strict=strict)
    executable = rx.compile(rx.from_torch(program))
    if executable.manifest.prepared_weights:
        executable.bind(executable.prepare(dict(make().state_dict())))
    for x in (torch.ones(3, 4), torch.full((3, 4), 2.5)):
        wanted = make()(x)
        found = executable(x.numpy())
        pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
        for got, expected in pairs:
            np.testing.assert_allclose(got, torch.as_tensor(expected).detach().numpy(), rtol=1e-5, atol=1e-5)
