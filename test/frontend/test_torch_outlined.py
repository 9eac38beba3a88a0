"""ATen operators without a relax form: torch-mlir lowers them, each as one private function; compiled, against eager torch."""

from __future__ import annotations

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import relaxir  # noqa: E402
from relaxir.dialect.errors import RelaxError  # noqa: E402
from relaxir.frontend.torch_op import HANDLERS  # noqa: E402
from support import models  # noqa: E402

CASES = {
    "atan2": (torch.atan2, [(4, 70), (4, 70)]),
    "diagonal": (torch.diagonal, [(4, 6)]),
    "windows": (lambda x: x.unfold(1, 3, 2), [(4, 7)]),
    "avg_pool3d": (lambda x: functional.avg_pool3d(x, 2), [(1, 2, 4, 4, 4)]),
    "own divisor": (lambda x: functional.avg_pool2d(x, 2, divisor_override=3), [(1, 2, 4, 4)]),
    "conv3d": (functional.conv3d, [(1, 2, 4, 4, 4), (3, 2, 2, 2, 2)]),
    "transposed": (lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1), [(2, 4, 5, 5), (4, 3, 3, 3)]),
}  # fmt: skip


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


@pytest.mark.parametrize("name", CASES)
def test_equals_eager(name):
    function, shapes = CASES[name]
    torch.manual_seed(0)
    inputs = [torch.randn(s) for s in shapes]
    _, module = imported(Function(function), *inputs)
    assert len(private_functions(module)) == 1
    assert_close(relaxir.compile(module)(*[t.numpy() for t in inputs]), function(*inputs))


def test_symbolic_dimensions_and_equal_functions_once():
    assert "aten.atan2" not in HANDLERS
    model = Function(lambda x: torch.atan2(x, x + 1) + torch.atan2(2 * x, x))
    rows = torch.export.Dim("rows", min=2, max=50)
    _, module = imported(model, torch.randn(3, 8), dynamic=(({0: rows},),))
    assert private_functions(module) == ["aten_atan2_0"]
    assert str(module).count("call @aten_atan2_0") == 2
    assert 'sym = ["rows"]' in str(module).split("return")[0].splitlines()[-2]
    executable = relaxir.compile(module)
    for count in (2, 17):
        x = torch.randn(count, 8).clamp(-0.7, 0.7)
        assert_close(executable(x.numpy()), model(x))


def test_weights_go_into_an_outlined_function():
    torch.manual_seed(0)
    model = nn.Sequential(nn.ConvTranspose2d(4, 3, 3, stride=2), nn.ReLU())
    x = torch.randn(1, 4, 5, 5)
    program, module = imported(model, x)
    assert private_functions(module) == ["aten_convolution_0"]
    executable = relaxir.compile(module)
    executable.bind(executable.prepare(models.weights_of(program, module)))
    assert_close(executable(x.numpy()), model(x))


def test_the_reference_interpreter_says_that_it_cannot_run_linalg():
    _, module = imported(Function(lambda x: torch.atan2(x, x)), torch.randn(2, 8))
    with pytest.raises(RelaxError, match=r"expected an op with reference semantics, got '(tensor|linalg|arith)\.") as caught:
        relaxir.evaluate(module, "main", np.zeros((2, 8), np.float32))
    assert "test_torch_outlined.py" in caught.value.location


@pytest.mark.parametrize(
    ("function", "operator"),
    [(lambda x: torch.sort(x)[0], "aten.sort"), (torch.lgamma, "aten.lgamma"), (lambda x: x + torch.rand(2, 8), "aten.rand")],
)
def test_what_nobody_lowers_is_refused_with_the_line(function, operator):
    with pytest.raises(RelaxError, match=rf"1 x {operator}: no relax form\n") as caught:
        imported(Function(function), torch.randn(2, 8))
    assert "test_torch_outlined.py" in caught.value.location
