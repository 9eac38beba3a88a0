"""Ctrl-C ends what runs as Ctrl-C, also within functions of ours that MLIR calls."""

from __future__ import annotations

import pytest

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.dialect.errors import interruptible

_TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def _interrupt(op: ir.Operation) -> ir.WalkResult:
    raise KeyboardInterrupt


def test_an_interrupt_of_a_walk_stays_one() -> None:
    module = rx.Module.parse(_TEXT)
    with pytest.raises(RuntimeError, match="Exception raised in callback"):
        module.ir.operation.walk(_interrupt)
    with pytest.raises(KeyboardInterrupt), interruptible():
        module.ir.operation.walk(_interrupt)
    with pytest.raises(RuntimeError, match=r"^other$"), interruptible():
        raise RuntimeError("other")


@pytest.mark.parametrize("run", [lambda m: rx.compile(m, cache=False), lambda m: m.run("relax-lift-transform-params")])
def test_an_interrupt_while_it_is_compiled(run: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever an operation is looked at."""
    from relaxir.dialect.passes import manager

    def interrupted(*given: object, **named: object) -> None:
        rx.Module.parse(_TEXT).ir.operation.walk(_interrupt)

    module = rx.Module.parse(_TEXT)
    monkeypatch.setattr(manager.Pipeline, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(module)  # type: ignore[operator]
