"""Placement: on one kind of device it is nothing, across kinds it is not code for a CPU."""

from __future__ import annotations

from ...dialect.errors import RelaxError
from .builder import LinalgBuilder, Tensor
from .registry import Source, lowering

__all__: list[str] = []

_HOST = "cpu"


@lowering("relax.hint_on_device", "relax.to_vdevice")
def _lower(b: LinalgBuilder, source: Source) -> Tensor:
    (x,) = source.operands
    wanted, current = source.attrs["vdevice"], x.info.vdevice or _HOST
    if _kind(wanted) != _kind(current):
        raise RelaxError(f"expected a copy within one kind of device, got one from '{current}' to '{wanted}'")
    return x


def _kind(vdevice: str) -> str:
    return vdevice.partition(":")[0]
