"""Placement: within one kind of device it is nothing; code for a GPU copies from and to the host, and to no other kind."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ..marks import CUDA_TARGET, TRANSFER
from .builder import LinalgBuilder, Tensor, value_type
from .kernel import call_kernel
from .registry import Source, lowering
from .scalar import emit

__all__: list[str] = []

_HOST, _GPU = "cpu", "cuda"


@lowering("relax.hint_on_device", "relax.to_vdevice")
def _lower(b: LinalgBuilder, source: Source) -> Tensor | ir.Value:
    (x,) = source.operands
    has_gpu = CUDA_TARGET in b.module.attributes
    wanted, current = source.attrs["vdevice"], x.info.vdevice or (f"{_GPU}:0" if has_gpu else _HOST)
    if _kind(wanted) == _kind(current):
        return x
    if not has_gpu or {_kind(wanted), _kind(current)} != {_HOST, _GPU}:
        expected = "between CPU and GPU" if has_gpu else "within one kind of device"
        raise RelaxError(f"expected a copy {expected}, got one from '{current}' to '{wanted}'")
    return _transfer(b, x, _kind(wanted))


def _transfer(b: LinalgBuilder, x: Tensor, kind: str) -> ir.Value:
    """A call of a kernel that copies; in the preparation of weights, within the host."""
    type_ = value_type(x.value)
    out = b.empty(b.sizes(x), type_.element_type)
    source = b.cast(x.value, value_type(out))

    def body(arguments: Sequence[ir.Value]) -> ir.Value:
        return emit("bufferization.materialize_in_destination", value_type(out), *arguments)

    return call_kernel(b, "transfer", [source], out, (kind,), body, marks={TRANSFER: ir.StringAttr.get(kind)})


def _kind(vdevice: str) -> str:
    return vdevice.partition(":")[0]
