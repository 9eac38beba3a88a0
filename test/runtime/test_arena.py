"""How much memory between operations a call takes: as many bytes as the buffers that live at once have."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.runtime.scratch import Scratch

MODULE = """
func.func @main(%x: tensor<?xD, {sym = ["n"]}>) -> tensor<D> {
  %a = "relax.cumsum"(%x) {axis = 0 : i64} : (tensor<?xD, {sym = ["n"]}>) -> tensor<?xD, {sym = ["n"]}>
  %b = "relax.cumsum"(%a) {axis = 0 : i64} : (tensor<?xD, {sym = ["n"]}>) -> tensor<?xD, {sym = ["n"]}>
  %s = "relax.sum"(%b) : (tensor<?xD, {sym = ["n"]}>) -> tensor<D>
  return %s : tensor<D>
}
"""


@pytest.mark.parametrize(("dtype", "array"), [("f32", "f4"), ("i8", "i1"), ("f64", "f8")])
def test_buffers_of_one_unknown_size_take_their_own_bytes(dtype: str, array: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a cache line for each element; each buffer starts at one."""
    asked: list[int] = []
    grow = Scratch.grow

    def noted(self: Scratch, size: int) -> object:
        asked.append(size)
        return grow(self, size)

    monkeypatch.setattr(Scratch, "grow", noted)
    x = np.ones(100_000, array)
    rx.compile(rx.Module.parse(MODULE.replace("xD", f"x{dtype}").replace("<D>", f"<{dtype}>")), cache=False)(x)
    assert x.nbytes <= max(asked) <= 2 * x.nbytes + 128
