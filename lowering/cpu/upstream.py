"""A module and a pipeline of MLIR's own passes in, the module after them out, in place."""

from __future__ import annotations

from ...dialect.bindings import ir, passmanager
from ...dialect.errors import from_mlir_error

__all__ = ["run_upstream"]


def run_upstream(module: ir.Operation, pipeline: str) -> None:
    """Runs passes on what steps of ours have made, which is verified once.

    Verifying after each pass took as long as the passes do: 0.65 of 4.1 s, for 32 layers of Llama.

    Raises:
        RelaxError: the module is not valid, or a pass refuses it.
    """
    manager = passmanager.PassManager.parse(pipeline, module.context)
    manager.enable_verifier(False)
    try:
        module.verify()
        manager.run(module)
    except ir.MLIRError as error:
        raise from_mlir_error(error) from error
