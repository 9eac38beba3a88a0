"""Graphs inside of a program: regions that are written out, tensors that branches hold, and what cannot be imported in them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch._higher_order_ops.while_loop import while_loop  # noqa: E402

import relaxir as rx  # noqa: E402
from relaxir.frontend.torch_regions import without_regions  # noqa: E402
from support import models  # noqa: E402


class Without(torch.nn.Module):
    """Results that are an operand, and twice the same; a buffer written inside."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        with torch.no_grad():
            y, z = self.linear(x), x
            self.total.add_(y.sum(0))
        return y, z, y, x.sin()


class Autocast(torch.nn.Module):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ x + 1


class InBranch(torch.nn.Module):
    def forward(self, x):
        def left(x):
            with torch.no_grad():
                return x.sin()

        return torch.cond(x.sum() > 0, left, lambda x: x.cos(), (x,))


@torch.compiler.nested_compile_region
def region(x):
    return x.sin() + 1


class Nested(torch.nn.Module):
    def forward(self, x):
        return region(x) + region(x * 2)


class Constants(torch.nn.Module):
    def forward(self, x):
        def inner(x):
            row = torch.tensor([1.0, 2.0, 3.0, 4.0])
            return torch.cond(x.sum() > 1, lambda x: x * row * torch.tensor(3.0), lambda x: x + torch.tensor(2.5), (x,))

        return torch.cond(x.sum() > 0, inner, lambda x: x - torch.tensor([[5.0]]), (x,))


def exported(model, strict=False):
    with models.quiet():
        return torch.export.export(model.eval(), (torch.randn(4, 4),), strict=strict)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("make", [Without, Autocast, InBranch, Nested, Constants])
def test_equals_eager_torch(make, strict):
    program = exported(make(), strict)
    before = len(program.constants)
    executable = rx.compile(rx.from_torch(program))
    executable.bind(executable.prepare(dict(make().state_dict())))
    for x in (torch.ones(4, 4) * 0.01, torch.ones(4, 4), -torch.ones(4, 4)):
        expected = make().eval()(x)
        got = executable(x)
        executable.reset_state()
        for a, b in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, expected)), strict=True):
            torch.testing.assert_close(a, b.detach(), rtol=1e-2 if make is Autocast else 1e-5, atol=1e-5)
    assert len(program.constants) == before


def test_a_program_without_regions_is_itself():
    program = exported(torch.nn.Linear(4, 4))
    assert without_regions(program) is program


def reported(forward, *inputs):
    model = type("Model", (torch.nn.Module,), {"forward": lambda self, *a: forward(*a)})()
    with models.quiet():
        program = torch.export.export(model, inputs or (torch.randn(4, 4),))
    with pytest.raises(rx.RelaxError) as caught:
        rx.from_torch(program)
    return {operator: len(places) for (operator, _), places in caught.value.report.found.items()}, str(caught.value)


def bad(x):
    return torch.special.bessel_j0(x)


def worse(x):
    return torch.igamma(x, x)


def test_all_graphs_and_what_is_around_them_are_in_one_report():
    def forward(x):
        def inner(x):
            return torch.cond(x.sum() > 1, lambda x: bad(x).sin(), lambda x: bad(x) + worse(x), (x,))

        return torch.cond(x.sum() > 0, inner, lambda x: worse(x), (x,)) + torch.special.bessel_j1(x)

    found, message = reported(forward)
    assert found == {"aten.special_bessel_j0": 2, "aten.igamma": 2, "aten.special_bessel_j1": 1}
    assert "test_torch_regions.py" in message


def test_a_loop_reports_its_condition_and_its_body():
    def forward(x):
        start = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda i, x: (i < 3) & (bad(x).sum() < 9), lambda i, x: (i + 1, worse(x)), (start, x))

    assert reported(forward)[0] == {"aten.special_bessel_j0": 1, "aten.igamma": 1}


def test_a_graph_behind_what_cannot_be_imported_is_looked_at():
    def forward(x):
        y = torch.linalg.eigvals(x)
        return torch.cond(y.real.sum() > 0, lambda x: bad(x), lambda x: worse(x), (x,))

    assert reported(forward)[0].keys() == {"aten.linalg_eig", "aten.special_bessel_j0", "aten.igamma"}


def test_complex_numbers_of_a_branch_do_not_hide_the_other_branch():
    def forward(x):
        return torch.cond(x.sum() > 0, lambda x: torch.linalg.eigvals(x).real + bad(x[0]), lambda x: worse(x[0]), (x,))

    found = reported(forward)[0]
    assert found.keys() == {"aten.linalg_eig", "aten.special_bessel_j0", "aten.igamma"}


@pytest.mark.parametrize("mode", [torch.no_grad, lambda: torch.autocast("cpu", dtype=torch.bfloat16)])
def test_operators_under_a_mode_have_their_lines(mode):
    def forward(x):
        with mode():
            y = bad(x)
        return y + 1

    found, message = reported(forward)
    assert found == {"aten.special_bessel_j0": 1}
    assert "an unknown line" not in message
