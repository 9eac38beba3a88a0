"""Operators of other packages: registered as functions of operators that the import knows, or reported."""

from __future__ import annotations

import importlib
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from importlib.metadata import EntryPoint  # noqa: E402

import relaxir as rx  # noqa: E402
from relaxir.dialect.plugins import TORCH_OPS  # noqa: E402
from relaxir.frontend import custom_operators, saved_program  # noqa: E402
from support import models  # noqa: E402


@torch.library.custom_op("relaxir_test::scale_and_shift", mutates_args=())
def scale_and_shift(x: torch.Tensor, by: float = 2.0) -> tuple[torch.Tensor, torch.Tensor]:
    return x * by, x + by


@scale_and_shift.register_fake
def _(x, by=2.0):
    return torch.empty_like(x), torch.empty_like(x)


class Model(torch.nn.Module):
    def forward(self, x):
        scaled, shifted = scale_and_shift(x.sin(), by=3.0)
        return scaled * shifted, torch.relu(x)


@pytest.fixture(autouse=True)
def _registrations_end_with_the_test(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(custom_operators, "_registered", {})


def program():
    with models.quiet():
        return torch.export.export(Model(), (torch.randn(3, 4),), dynamic_shapes=({0: torch.export.Dim("n", min=2)},))


def evaluated(x):
    return rx.evaluate(rx.from_torch(program()), "main", x.numpy())


def test_an_operator_is_what_was_registered_last():
    with pytest.raises(rx.RelaxError, match=r"1 x relaxir_test.scale_and_shift: no relax form"):
        evaluated(torch.randn(5, 4))
    x = torch.randn(5, 4)
    for factor in (1, 10):
        rx.register_torch_op("relaxir_test::scale_and_shift", lambda x, by=2.0, f=factor: (f * x * by, x + by))
        got, _ = evaluated(x)
        np.testing.assert_allclose(got, factor * (x.sin() * 3 * (x.sin() + 3)).numpy(), rtol=1e-5, atol=1e-5)


def test_an_operator_of_torchs_own_may_be_registered():
    rx.register_torch_op("relaxir_test::scale_and_shift.default", lambda x, by: (x, x))
    rx.register_torch_op("aten::relu", lambda x: x + 1)
    rx.register_torch_op("relaxir_test::never_defined", lambda x: x)
    x = torch.randn(5, 4)
    np.testing.assert_allclose(evaluated(x)[1], x.numpy() + 1)


def test_one_made_of_others_may_be_defined_again():
    """What torch decomposes is kept from one import to the next."""
    x = torch.randn(5, 4)

    class Again(torch.nn.Module):
        def forward(self, x):
            return torch.ops.relaxir_again.times(x)

    for factor in (2, 3):
        with torch.library._scoped_library("relaxir_again", "FRAGMENT") as library:
            library.define("times(Tensor x) -> Tensor")
            library.impl("times", lambda x, by=factor: x * by, "CompositeImplicitAutograd")
            module = rx.from_torch(torch.export.export(Again(), (x,)))
        np.testing.assert_array_equal(rx.evaluate(module, "main", x.numpy())[0], factor * x.numpy())


def test_torch_compile_knows_it():
    rx.register_torch_op("relaxir_test::scale_and_shift", lambda x, by=2.0: (x * by, x + by))
    x, before = torch.randn(5, 4), len(rx.torch_graphs())
    for got, wanted in zip(torch.compile(Model(), backend="relaxir")(x), Model()(x), strict=True):
        torch.testing.assert_close(got, wanted)
    assert [g.runs_in for g in rx.torch_graphs()[before:]] == ["relaxir"]


@pytest.mark.parametrize(
    ("name", "composite", "message"),
    [
        ("acme.soft_sign", abs, "expected an operator's name as 'namespace::name', got 'acme.soft_sign'"),
        (3, abs, "expected an operator's name as 'namespace::name', got 3"),
        (
            "acme::soft_sign",
            "symbol",
            "expected a function of torch operators or a relaxir.Extern for 'acme::soft_sign', got str",
        ),
    ],
)
def test_what_is_no_operator_or_no_function_is_refused(name, composite, message):
    with pytest.raises(rx.RelaxError, match=message):
        rx.register_torch_op(name, composite)


def test_an_entry_point_that_names_no_operator_is_refused(monkeypatch):
    monkeypatch.setattr(custom_operators, "plugins", lambda group: (EntryPoint("acme", "acme:f", TORCH_OPS),))
    monkeypatch.setattr(custom_operators, "load", lambda *_: (abs,))
    message = "expected plug-in 'acme' of relaxir.torch_ops under an operator's name, as 'acme::soft_sign'"
    with pytest.raises(rx.RelaxError, match=message):
        rx.from_torch(program())


def test_a_saved_program_with_operators_that_nothing_registered(tmp_path):
    """Saved here, and read as if the package that has the operator had not been imported."""
    torch.export.save(program(), tmp_path / "a.pt2")
    with zipfile.ZipFile(tmp_path / "a.pt2") as old, zipfile.ZipFile(tmp_path / "b.pt2", "w") as new:
        for name in old.namelist():
            new.writestr(name.replace("a/", "b/", 1), old.read(name).replace(b"relaxir_test", b"relaxir_gone"))
    text = r"expected operators that are registered in this process, got torch.ops.relaxir_gone.scale_and_shift: import"
    with pytest.raises(rx.RelaxError, match=text):
        rx.from_torch(str(tmp_path / "b.pt2"))


@pytest.mark.parametrize("space", saved_program._HOMES)
def test_packages_whose_operators_are_known_to_need_an_import(space):
    """Importing the package alone does not register them: in a process of its own, programs with them could not be read."""
    importlib.import_module(saved_program._HOMES[space])
    assert dir(getattr(torch.ops, space))
