"""ATen operators without a relax form: torch-mlir lowers them, each as one private function; compiled, against eager torch."""

from __future__ import annotations

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import relaxir  # noqa: E402
from relaxir.dialect.errors import RelaxError  # noqa: E402
from relaxir.frontend import torch_outline  # noqa: E402
from relaxir.frontend.outlined_operators import KNOWN_SIZES, SYMBOLIC_SIZES  # noqa: E402
from relaxir.frontend.torch_op import HANDLERS  # noqa: E402
from support import models  # noqa: E402
from support.guard_pages import guarded_copy, in_child  # noqa: E402

UNTRUSTED = "no relax form, and no lowering of torch-mlir that is known to agree with torch"

TABLES = {True: KNOWN_SIZES, False: SYMBOLIC_SIZES}

#: A use of each operator that torch-mlir may lower.
CASES = {
    "aten.atan2": (torch.atan2, [torch.linspace(-3, 3, 8), torch.linspace(2, -1, 8)]),
    "aten.ldexp.Tensor": (torch.ldexp, [torch.linspace(-3, 3, 8), torch.arange(8) - 4]),
}  # fmt: skip

#: What the map writes itself never gets to torch-mlir, whatever the table says.
OUTLINED = [(key, is_static) for is_static, table in TABLES.items() for key in table if key not in HANDLERS]


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def imported(model, *inputs, dynamic=None):
    with torch.no_grad(), models.quiet():
        program = torch.export.export(model.eval(), inputs, dynamic_shapes=dynamic)
    module = relaxir.from_torch(program)
    module.verify()
    return program, module


def private_functions(module):
    return re.findall(r"func\.func private @(\w+)", str(module))


def assert_close(got, wanted):
    (array,) = got if isinstance(got, tuple | list) else (got,)
    assert array.shape == tuple(wanted.shape)
    np.testing.assert_allclose(array, wanted.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("key", "is_static"), OUTLINED)
def test_what_may_be_lowered_by_torch_mlir_equals_eager(key, is_static):
    function, inputs = CASES[key]
    dims = (tuple({0: torch.export.Dim("n", min=2, max=50)} for _ in inputs),)
    _, module = imported(Function(function), *inputs, dynamic=None if is_static else dims)
    assert [n.rstrip("0123456789") for n in private_functions(module)] == [re.sub(r"\W", "_", key) + "_"]
    executable = relaxir.compile(module)
    for count in (8,) if is_static else (8, 2, 7):
        chosen = [x[:count] for x in inputs]
        assert_close(in_child(lambda given=chosen: executable(*[guarded_copy(t.numpy()) for t in given])), function(*chosen))


def test_equal_functions_once():
    model = Function(lambda x: torch.atan2(x, x + 1) + torch.atan2(2 * x, x))
    rows = torch.export.Dim("rows", min=2, max=50)
    _, module = imported(model, torch.randn(3, 8), dynamic=(({0: rows},),))
    assert private_functions(module) == ["aten_atan2_0"]
    assert str(module).count("call @aten_atan2_0") == 2
    assert 'sym = ["rows"]' in str(module).split("return")[0].splitlines()[-2]
    executable = relaxir.compile(module)
    for count in (2, 17):
        x = torch.randn(count, 8)
        assert_close(executable(x.numpy()), model(x))


def test_weights_go_into_an_outlined_function():
    class Angles(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.linspace(-1, 2, 8))

        def forward(self, x):
            return torch.atan2(self.weight, x)

    model, x = Angles(), torch.randn(2, 8)
    program, module = imported(model, x)
    assert private_functions(module) == ["aten_atan2_0"]
    executable = relaxir.compile(module)
    executable.bind(executable.prepare(models.weights_of(program, module)))
    assert_close(executable(x.numpy()), model(x))


def test_the_reference_interpreter_says_that_it_cannot_run_linalg():
    _, module = imported(Function(torch.atan2), torch.randn(2, 8), torch.randn(2, 8))
    with pytest.raises(RelaxError, match=r"expected an op with reference semantics, got '(tensor|linalg|arith)\.") as caught:
        relaxir.evaluate(module, "main", np.zeros((2, 8), np.float32), np.zeros((2, 8), np.float32))
    assert "test_torch_outlined.py" in caught.value.location


@pytest.mark.parametrize(
    ("function", "operator", "reason"),
    [
        (lambda x: torch.polygamma(1, x), "aten.polygamma", "no relax form"),
        (lambda x: x + torch.rand(2, 8), "aten.rand", UNTRUSTED),
        (lambda x: torch.atan2(x.half(), x.half()), "aten.atan2", f"{UNTRUSTED} on f16 of known sizes"),
    ],
)
def test_what_nobody_lowers_right_is_refused_with_the_line(function, operator, reason, monkeypatch):
    monkeypatch.setitem(KNOWN_SIZES, "aten.atan2", "f32")
    with pytest.raises(RelaxError, match=rf"1 x {operator}: {reason}\n") as caught:
        imported(Function(function), torch.randn(2, 8))
    assert "test_torch_outlined.py" in caught.value.location


def test_a_crash_of_torch_mlir_is_an_error_with_the_line(monkeypatch):
    monkeypatch.delitem(HANDLERS, "aten.nonzero")
    monkeypatch.setattr(torch_outline, "untrusted", lambda *_: None)
    with pytest.raises(RelaxError, match=r"1 x aten\.nonzero: torch-mlir crashed while it lowered it\n") as caught:
        imported(Function(lambda x: torch.nonzero(x.sum())), torch.randn(2, 8))
    assert "test_torch_outlined.py" in caught.value.location
