"""Machine code beside the kernels' text: there where an assembler is, and loaded by the very GPU that it is for."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.lowering.cuda import compiler as compiling
from relaxir.runtime.cuda.code import LoadedCode
from relaxir.runtime.cuda.device import Device


def _module() -> rx.Module:
    builder = rx.Builder()
    with builder.function("main"):
        x = builder.input("x", ("n", 64))
        builder.output(builder.add(x, x))
    return builder.build()


def _executable(device: str | None) -> rx.Executable:
    return rx.compile(_module(), target="cuda:sm_90a", cache=False, device=device)


def test_code_for_gpus_has_a_cubin() -> None:
    library = _executable(None)._library
    assert library.cubin().startswith(b"\x7fELF")
    assert b".target sm_90a" in library.ptx()


def test_code_for_the_emulator_has_none() -> None:
    assert _executable("emulated")._library.cubin() == b""


def test_without_an_assembler_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with_one = compiling.CudaCompiler("cuda:sm_90a", {}).key
    monkeypatch.setattr(compiling, "assembler", lambda: None)
    assert _executable(None)._library.cubin() == b""
    assert compiling.CudaCompiler("cuda:sm_90a", {}).key != with_one


def test_a_cubin_is_tried_first_and_the_text_where_the_driver_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaxir.runtime.cuda.runtime.CudaRuntime.here", lambda self: {})
    executable, images, original = _executable("emulated"), list[bytes](), LoadedCode._loaded
    monkeypatch.setattr(Device, "is_emulated", property(lambda self: False))
    monkeypatch.setattr(LoadedCode, "_loaded", lambda self, image: images.append(image[:4]) or original(self, image))
    assert executable._library.loaded.spec.kernels
    assert images[0] == b"\x7fELF"
    assert images[1] != b"\x7fELF"
    monkeypatch.undo()
    x = np.ones((3, 64), np.float32)
    np.testing.assert_array_equal(np.asarray(executable(x)), 2 * x)
