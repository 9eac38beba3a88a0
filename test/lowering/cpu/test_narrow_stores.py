"""Masked stores of narrow integers on AVX-512: kept apart from truncations, by names that say nothing of the module around."""

from __future__ import annotations

import pytest

import relaxir as rx
from relaxir.lowering.cpu import codegen
from relaxir.lowering.cpu.llvm_units import Unit


def units(monkeypatch: pytest.MonkeyPatch, before: bool) -> set[str]:
    """The kernels of a module that makes bytes of numbers, with other kernels in front or without."""
    found = list[Unit]()
    units_of = codegen.units_of
    with monkeypatch.context() as patch:
        patch.setenv("RELAXIR_CACHE_DIR", "")  # kernels of other tests are no units
        patch.setattr(codegen, "units_of", lambda text: found.extend(units_of(text)) or found)
        b = rx.Builder()
        with b.function("main"):
            x, y = b.input("x", (3, 37), "i32"), b.input("y", (5, 41), "f32")
            more = {"other": b.matmul(y, b.permute_dims(y))} if before else {}
            b.output(**more, bytes=b.astype(x, "i8"))
        rx.compile(b.build(), target="cpu:x86-64-v4", cache=False)
    assert any("%apart." in u.text for u in found)
    return {u.name for u in found if u.is_kernel}


def test_a_kernel_of_narrow_stores_has_one_name_in_every_module(monkeypatch: pytest.MonkeyPatch) -> None:
    alone, behind = units(monkeypatch, before=False), units(monkeypatch, before=True)
    assert alone
    assert alone < behind
