"""``call_extern`` by the reference semantics: the same library, through ctypes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.extern_functions import allow_extern, find_extern
from support.extern_library import extern_library, scaling

X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extern_library(tmp_path_factory.mktemp("acme"))


def test_call_extern(library: Path) -> None:
    (y,) = rx.evaluate(scaling(library), "main", X)
    np.testing.assert_array_equal(y, X + X * np.float32(2.5))


def test_an_error_names_op_and_place(library: Path) -> None:
    with pytest.raises(rx.RelaxError, match=r"extern_library\.py:\d+.*'relax\.call_extern' op expected 'acme_root' of '.*lib"
                                            r"acme\.so' to return 0, got an error \(7\)"):  # fmt: skip
        rx.evaluate(scaling(library, "acme_root"), "main", X - 1)


def test_a_library_that_is_missing() -> None:
    with pytest.raises(rx.RelaxError, match=r"expected the library 'libnothing\.so', which cannot be loaded: libnothing"):
        rx.evaluate(scaling("libnothing.so"), "main", X)


def test_what_a_module_alone_names_is_not_loaded(tmp_path: Path) -> None:
    """Not even looked at: text may come from anywhere."""
    module = rx.Module.parse(str(scaling("libtrusted.so")).replace("libtrusted.so", "./libevil.so"))
    message = r"expected a function that this program names, got 'acme_scale' of '\./libevil\.so', which the module alone does"
    with pytest.raises(rx.RelaxError, match=message):
        rx.evaluate(module, "main", X)
    with pytest.raises(rx.RelaxError, match=message):
        rx.compile(module)


def test_a_program_may_name_it(library: Path) -> None:
    module = rx.Module.parse(str(scaling("libtrusted.so")).replace("libtrusted.so", "libother.so"))
    np.testing.assert_array_equal(rx.compile(module, externs={"acme_scale": library})(X), X + X * np.float32(2.5))
    rx.Extern(library="libother.so", symbol="acme_scale")
    with pytest.raises(rx.RelaxError, match=r"expected the library 'libother\.so', which cannot be loaded"):
        rx.evaluate(module, "main", X)


def test_a_function_that_is_missing(library: Path) -> None:
    with pytest.raises(rx.RelaxError, match=r"expected the function 'nothing' in '.*libacme\.so', got none of that name"):
        rx.evaluate(scaling(library, "nothing"), "main", X)


def test_functions_of_the_process() -> None:
    allow_extern("", "malloc")
    allow_extern("", "acme_nothing")
    assert find_extern("", "malloc")
    with pytest.raises(rx.RelaxError, match="expected the function 'acme_nothing' in this process, got none of that name"):
        find_extern("", "acme_nothing")


def test_what_a_function_writes_to_its_inputs_stays_there(library: Path) -> None:
    """It is given copies."""
    x = X.copy()
    x.flags.writeable = False
    rx.evaluate(scaling(library), "main", x)
    np.testing.assert_array_equal(x, X)
