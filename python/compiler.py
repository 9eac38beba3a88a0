"""``relaxir.compile``: a module in, an executable out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dialect.errors import RelaxError
from .dialect.report import collecting
from .module import Module

if TYPE_CHECKING:
    from .runtime.executable import Executable

__all__ = ["DEFAULT_PIPELINE", "compile"]

#: What happens to a module before it is lowered; ``{tile}`` is the width of the target's matmul kernel.
DEFAULT_PIPELINE = (
    "relax-expand-tuple-arguments{{public=true}},relax-inline-private-functions,relax-canonicalize,relax-fold-dequantize,"
    "relax-pack-weights{{tile={tile}}},"
    "relax-sink-growth,relax-lift-transform-params,relax-canonicalize,cse,symbol-dce"
)


def compile(module: Module, target: str = "cpu", pipeline: str | None = None) -> Executable:
    """Compiles a module: lifts the weight math out of its functions, and generates code for them and for the preparation.

    Args:
        module: relax functions; not changed.
        target: ``"cpu"``, the machine this runs on.
        pipeline: the relax passes to run first instead of ``DEFAULT_PIPELINE``; without ``relax-lift-transform-params``
            nothing is prepared, and the executable computes on the weights as they are.

    Raises:
        RelaxError: the target or a pass is unknown, a pass fails, or an op cannot be lowered; with the op's location.
    """
    from .lowering.compile import compile_module
    from .lowering.linalg.io import refuse_lazy_io
    from .lowering.target import Target
    from .runtime.executable import Executable
    from .runtime.threads import find_runtime

    if not isinstance(module, Module):
        raise RelaxError(f"expected a relaxir.Module, got {type(module).__name__}")
    chosen = Target.parse(target, openmp=find_runtime() is not None)
    refuse_lazy_io(module.ir.operation)  # before passes that fail on it for reasons of their own
    text = DEFAULT_PIPELINE.format(tile=chosen.matmul_tile[1]) if pipeline is None else pipeline
    prepared = module.run(text)
    text = str(prepared)
    with collecting() as told:
        compiled = compile_module(prepared.ir.operation, chosen)
    manifest = compiled.manifest | {"report": prepared.report.extended(told).as_json()}
    return Executable(manifest, object_code=compiled.object_code, module_text=text)
