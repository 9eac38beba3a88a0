"""What blocks found of parts of the keys, put together: a second kernel, a block for each row.

::

    most = maximum of all parts' most
    out = sum(exp(most of part - most) * total of part) / sum(exp(most of part - most) * sums of part)
"""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.structure.attention import MatchedAttention
from ..device_code import DeviceCode
from ..device_memory import DeviceMemory
from ..products.warp_code import WarpCode
from .places import AttentionPlaces
from .plan import WARP
from .softmax import LOWEST, SoftmaxCode

__all__ = ["build_merge", "merge_threads"]


def merge_threads(width: int) -> int:
    """Of a block: one for each column, up to four warps."""
    return min(4, -(-width // WARP)) * WARP


def build_merge(
    device: DeviceCode,
    memory: DeviceMemory,
    attention: MatchedAttention,
    scale: float,
    found: ir.Value,
    parts: ir.Value,
    rows: ir.Value,
) -> None:
    """Builds the kernel.

    Args:
        device: where to build.
        memory: the kernel's.
        attention: read with it.
        scale: what scores are still to be multiplied by.
        found: the address of what :class:`.results.PartialResults` left.
        parts: how many parts the keys of a head are in.
        rows: how many a part has.
    """
    em, code = device.em, WarpCode(device.em, device.em.number(0))
    width, softmax = attention.width, SoftmaxCode(code, scale)
    assert width is not None
    places = AttentionPlaces(memory, attention, device.block(), rows)
    row_bytes = em.number(4 * (width + 2))
    first = em.add(em.mul(em.mul(places.pair, parts), rows), places.part)
    start, distance = em.add(found, em.mul(first, row_bytes)), em.mul(rows, row_bytes)

    def read(part: ir.Value, column: ir.Value) -> ir.Value:
        address = em.add(em.add(start, em.mul(part, distance)), em.mul(column, em.number(4)))
        i64 = em.integer(64)
        access = {"alignment": ir.IntegerAttr.get(i64, 4), "ordering": ir.IntegerAttr.get(i64, 0)}
        return em.op("llvm.load", [code.global_pointer(address)], em.f32, access)

    def greater(part: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
        return [softmax.op("arith.maxnumf", carried[0], read(part, em.number(width)))]

    most = em.loop(em.number(0), parts, 1, greater, [softmax.number(LOWEST)])[0]
    address = places.address(attention.result, places.row(places.part))

    def column(at: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
        def add(part: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            share = softmax.power(read(part, em.number(width)), most)
            values = read(part, at), read(part, em.number(width + 1))
            return [em.op("math.fma", [share, v, c], em.f32) for v, c in zip(values, carried, strict=True)]

        total, sums = em.loop(em.number(0), parts, 1, add, [softmax.number(0.0)] * 2)
        _store(code, softmax.quotient(total, sums, places.keys), address, at, attention.result.element)
        return ()

    em.loop(device.thread(), em.number(width), merge_threads(width), column)


def _store(code: WarpCode, value: ir.Value, address: ir.Value, column: ir.Value, element: ir.Type) -> None:
    em, i64 = code.em, code.em.integer(64)
    size = 4 if isinstance(element, ir.F32Type) else 2
    stored = value if size == 4 else em.op("arith.truncf", [value], element)
    access = {"alignment": ir.IntegerAttr.get(i64, size), "ordering": ir.IntegerAttr.get(i64, 0)}
    em.effect("llvm.store", [stored, code.global_pointer(em.add(address, em.mul(column, em.number(size))))], access)
