"""Which kernels are kept for other modules: those that know nothing of their own."""

from __future__ import annotations

import pytest

from relaxir.dialect.context import new_context
from relaxir.dialect.parser import parse_module
from relaxir.lowering.cpu import known_kernels
from relaxir.lowering.cpu.known_kernels import KnownKernels, named_texts
from relaxir.lowering.cpu.pipeline import building_pipeline
from relaxir.lowering.lower import lower
from relaxir.lowering.set_target import set_target
from support.kernel_functions import LENT_MEMORY, PLAIN
from support.stages import target_named

KERNELS = (
    PLAIN
    + LENT_MEMORY
    + """
func.func private @calls(%x: memref<64xf32>) attributes {relax.kernel} {
  call @outside() : () -> ()
  return
}
func.func private @returns(%x: index) -> index attributes {relax.kernel} {
  return %x : index
}
func.func private @no_kernel(%x: memref<64xf32>) {
  return
}
func.func private @outside()
"""
)


class Nothing:
    """A store that keeps nothing."""

    def get(self, text: str) -> bytes | None:
        return None

    def put(self, text: str, code: bytes) -> None:
        raise AssertionError


def linked() -> set[str]:
    module = parse_module(KERNELS, "-", new_context())
    target = target_named()
    set_target(module.operation, target)
    KnownKernels(Nothing(), target).link(module.operation)
    lower(module.operation, building_pipeline())
    return named_texts(module.operation)


def test_what_depends_on_the_module_is_not_kept() -> None:
    assert linked() == {"plain"}


def test_templates_of_others_see_every_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_kernels, "plugins", lambda group: ("one",))
    assert linked() == set()
