"""What cannot be imported is one RelaxError that names every operator with the user's line, in words of ours."""

from __future__ import annotations

import re
import warnings

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402
from torch.nn import functional  # noqa: E402

import relaxir  # noqa: E402
from relaxir import RelaxError  # noqa: E402
from relaxir.frontend.alternatives import alternative  # noqa: E402
from relaxir.frontend.torch_op import HANDLERS  # noqa: E402
from support import models  # noqa: E402


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def refusal(function, *args, dynamic=None):
    with torch.no_grad(), models.quiet():
        program = torch.export.export(Function(function).eval(), args, dynamic_shapes=dynamic)
    with pytest.raises(RelaxError) as caught:
        relaxir.from_torch(program)
    return caught.value


UNKNOWN = "no relax form, and no lowering of torch-mlir that is known to agree with torch"


def printed(x):
    torch.ops.aten._print("x")
    return x + 1


REFUSED = {
    "complex results": (torch.fft.rfft, {"aten._fft_r2c: expected tensors of real numbers, got complex<f32>"}),
    "complex in between": (lambda x: torch.complex(x, x).sin().real, {"aten.sin: expected tensors of real numbers"}),
    "tokens of effects": (printed, {"aten._print: no relax form of a higher-order operator"}),
    "views of memory outside": (lambda x: x.as_strided((3, 4), (8, 2)), {"aten.as_strided: indexes outside the base tensor"}),
    "sparse": (lambda x: x.to_sparse().to_dense(), {"aten._to_sparse: no relax form"}),
    "numbers of tensors": (lambda x: functional.leaky_relu(x, x.sum().item()), {
        "expected a number known at import, got one computed by aten.Float",
    }),
    "groups of several rows": (lambda x: torch._grouped_mm(x.bfloat16().repeat(4, 4)[None], x.bfloat16().repeat(4, 4)[None]), {
        "aten._grouped_mm: expected a grouped product of rows with a matrix for each group, by the groups' ends",
    }),
    "two at once": (lambda x: torch.special.bessel_j0(x + torch.rand(4, 4)), {
        "aten.special_bessel_j0: no relax form", f"aten.rand: {UNKNOWN}",
    }),
    "random slopes": (lambda x: functional.rrelu(x, training=True), {
        "expected rrelu in eval mode, whose slope is not random", "instead: model.eval() before export",
    }),
}  # fmt: skip


def test_complex_inputs_are_in_the_report_with_the_line_that_reads_them():
    def function(x, y):
        return torch.view_as_real(x), torch.special.bessel_j0(y)

    error = refusal(function, torch.randn(4, dtype=torch.complex64), torch.ones(3))
    reasons = (
        "argument 'args_0': expected tensors of real numbers",
        "instead: torch.view_as_real(x)",
        "aten.special_bessel_j0: no relax form",
    )
    assert all(reason in str(error) for reason in reasons), str(error)
    assert str(error).count("      at /") == str(error).count("test_torch_errors.py:") - 1 == 2


@pytest.mark.parametrize("name", REFUSED)
def test_operators_are_named_with_the_line(name):
    function, reasons = REFUSED[name]
    error = refusal(lambda x: function(x) if name else x, torch.randn(4, 4))
    assert all(reason in str(error) for reason in reasons), str(error)
    assert "test_torch_errors.py" in error.location


@pytest.mark.parametrize(
    "function",
    [
        lambda x: functional.pad(x, (x.shape[2] - x.shape[3], 1)),
        lambda x: functional.interpolate(x, scale_factor=1.3),
        lambda x: functional.interpolate(x, scale_factor=0.4, mode="bicubic"),
    ],
)
def test_symbolic_sizes_that_an_operator_does_not_take_are_told_in_words_of_ours(function):
    error = refusal(function, torch.randn(1, 2, 4, 8), dynamic=(({2: Dim.AUTO, 3: Dim.AUTO},),))
    assert not any(word in str(error) for word in ("Error", "argument", "NoneType", "object")), str(error)
    assert "test_torch_errors.py" in error.location


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: torch.arange(0, x.shape[0], 0.5), "expected a sequence of integers when its bounds are symbolic"),
    ],
)
def test_sizes_that_have_to_be_known_are_named(function, message):
    assert re.search(message, str(refusal(function, torch.randn(4, 5), dynamic=(({0: Dim.AUTO},),))))


def test_a_parameter_that_a_model_changes_is_named():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(4, 2, max_norm=1.0)

        def forward(self, i):
            return self.table(i)

    program = torch.export.export(Model().eval(), (torch.tensor([1, 2]),))
    with pytest.raises(RelaxError, match=r"got one that changes 'table\.weight', as max_norm does"):
        relaxir.from_torch(program)


def test_results_that_are_no_numbers_are_named():
    assert str(refusal(lambda x: (x, "name"), torch.ones(4))) == (
        "expected outputs that are tensors or numbers, got 'name' for 'output1'"
    )


def test_what_a_handler_did_not_think_of_is_no_python_error(monkeypatch):
    def thoughtless(op):
        raise AttributeError("'NoneType' object has no attribute 'shape'")

    monkeypatch.setitem(HANDLERS, "aten.relu", thoughtless)
    assert "1 x aten.relu: no relax form of these operands\n" in str(refusal(torch.relu, torch.randn(3)))


#: What is said instead of an operator, as code; the operators without are in words.
ALTERNATIVES = {
    "nonzero_static": lambda x, i: (torch.where(x > 0, x, 0.0), torch.topk((x > 0).int(), 2)),
    "item": lambda x, i: x * x.sum(),
    "bincount": lambda x, i: torch.zeros(8).scatter_add(0, i, torch.ones(i.shape)),
}


def test_what_is_said_instead_of_an_operator_can_be_imported():
    def written(x, i):
        return [function(x, i) for function in ALTERNATIVES.values()]

    assert all(alternative(f"aten.{name}") for name in ALTERNATIVES)
    program = torch.export.export(Function(written), (torch.randn(4, 4), torch.tensor([1, 2, 2])))
    relaxir.from_torch(program).verify()


def test_a_refusal_says_what_to_do():
    text = str(refusal(lambda x: (torch.nonzero_static(x, size=2), torch.special.bessel_j0(x)), torch.randn(4)))
    assert re.search(r"1 x aten\.nonzero_static: .*\n      at .*\n      instead: torch\.where\(mask, x, other\)", text), text
    assert re.search(r"1 x aten\.special_bessel_j0: no relax form\n      at .*\n  or: relaxir\.register_torch_op\(", text), text
    assert text.endswith('torch.compile(model, backend="relaxir") leaves what cannot be imported to PyTorch')


@pytest.mark.parametrize("other", [torch.relu, functional.hardswish], ids=["as exported", "decomposed"])
def test_what_a_model_asserts_of_its_numbers_is_a_check_at_run_time(other):
    def asserting(x):
        torch._assert_async(x.sum() > 0)
        torch._assert_async(x[:1] > 0, "the first one")
        return other(x)

    module = relaxir.from_torch(torch.export.export(Function(asserting), (torch.ones(4),)))
    run = relaxir.compile(module, cache=False)
    for numbers, holds in (([1, 2, -1, 0], True), ([1, 2, -1, -9], False), ([-1, 2, 3, 4], False)):
        x = torch.tensor(numbers, dtype=torch.float32)
        for call in (run, lambda x: relaxir.evaluate(module, "main", x.numpy())[0]):
            if holds:
                torch.testing.assert_close(torch.as_tensor(call(x)), other(x))
                continue
            with pytest.raises(RelaxError, match="the first one" if numbers[0] < 0 else "expected what the model asserts"):
                call(x)


def test_warnings_of_torch_about_itself_stay_away():
    program = torch.export.export(Function(lambda x: torch.hypot(x, x.clamp_(0))), (torch.randn(4),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", relaxir.RelaxWarning)  # that the model writes to its input
        relaxir.from_torch(program)


def test_a_dtype_that_torch_mlir_lacks_is_named_with_its_argument():
    error = refusal(lambda x: x.float(), torch.tensor([1, 2], dtype=torch.uint16))
    assert str(error) == "torch-mlir cannot import the program: torch.uint16 of 'args_0'"
