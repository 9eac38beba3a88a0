"""wgmma: products of warpgroups from shared memory, which run as late as their waits permit.

So a wait that is missing shows in the results, and data that is overwritten too early, too. Registers of products
under way are known: to touch them is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arrays import Array, Lanes, at, f2, f4, i4, indices, u1, u4
from .clocks import Clocks
from .core import Core
from .findings import PtxError
from .matrices import accumulated, decoded
from .memory import is_written
from .swizzle import swizzled

__all__ = ["Products"]

_WIDTH = {"bf16": 2, "f16": 2, "tf32": 4}
_SWIZZLES = (0, 3, 2, 1)  # by the two bits of a descriptor


@dataclass(frozen=True)
class _Form:
    """What the instruction says of a product: 64 x width, depth, types of D, A and B, signs, operands that are not K-major."""

    width: int
    depth: int
    types: tuple[str, str, str]
    sign_a: int
    sign_b: int
    is_a_transposed: int
    is_b_transposed: int


@dataclass
class _Product:
    """A product under way."""

    form: _Form
    registers: tuple[int, ...]
    arrays: Sequence[Array]
    a: Any  # a descriptor, or copies of registers
    b: int
    adds: bool
    at: int


@dataclass
class _Group:
    """A warpgroup: whether it is fenced, its open group and those that are committed."""

    is_fenced: bool = False
    open: list[_Product] = field(default_factory=list[_Product])
    committed: list[list[_Product]] = field(default_factory=list["list[_Product]"])
    number: int = 0  # of groups that were committed
    changed: set[int] = field(default_factory=set[int])  # registers written since the fence
    known: set[tuple[int, ...]] = field(default_factory=set["tuple[int, ...]"])  # accumulators that have been written

    @property
    def live(self) -> Iterator[_Product]:
        for group in (*self.committed, self.open):
            yield from group


class Products:
    """The products of a wave."""

    def __init__(self, core: Core, clocks: Clocks):
        self.core, self.clocks = core, clocks
        self.groups: dict[int, _Group] = {}  # by first lane
        self.is_busy = False
        self.layouts: dict[Any, Array] = {}
        core.finishers.append(self._finish)

    def _each(self, s: Lanes, at_: int) -> Iterator[tuple[int, _Group]]:
        lanes = indices(s)
        if len(lanes) % 128 or (lanes[::128] % self.core.padded % 128).any():
            raise self.core.finding("wgmma", "executed by an incomplete warpgroup", at_, lanes)
        for first in lanes[::128].tolist():
            yield first, self.groups.setdefault(first, _Group())

    # ------------------------------------------------------------------------------------------------------------ order
    def fence(self, s: Lanes, at_: int) -> None:
        """wgmma.fence: registers that were written before are seen."""
        for _, group in self._each(s, at_):
            group.is_fenced, group.changed = True, set()

    def commit(self, s: Lanes, at_: int) -> None:
        """wgmma.commit_group."""
        for _, group in self._each(s, at_):
            group.committed.append(group.open)
            group.open, group.number = [], group.number + 1

    def wait(self, s: Lanes, left: int, at_: int) -> None:
        """wgmma.wait_group: the products of all committed groups but the last ones are done."""
        for first, group in self._each(s, at_):
            rows = np.arange(first >> 5, (first >> 5) + 4)
            while len(group.committed) > left:
                self._run(first, group.committed.pop(0))
            agent = self.clocks.products + int(self.clocks.own[rows[0]]) - 1
            self.clocks.seen[rows, agent] = np.maximum(self.clocks.seen[rows, agent], group.number - len(group.committed))
            self.clocks.tick(rows)
        self.is_busy = any(group.open or group.committed for group in self.groups.values())

    def touched(self, s: Lanes, written: Sequence[int], read: Sequence[int], at_: int) -> None:
        """Registers are used by other instructions."""
        lanes = indices(s)
        for first, group in self.groups.items():
            if not (group.open or group.committed) or not ((lanes >= first) & (lanes < first + 128)).any():
                continue
            owned = {r for product in group.live for r in product.registers}
            if owned & {*written, *read}:
                how = "written" if owned & set(written) else "read"
                message = f"a register of a product under way is {how} without wgmma.wait_group"
                raise self.core.finding("wgmma", message, at_, lanes)

    def changed(self, s: Lanes, registers: Sequence[int]) -> None:
        """Registers of products are written by other instructions."""
        lanes = indices(s)
        for first, group in self.groups.items():
            if lanes[0] < first + 128 and lanes[-1] >= first:
                group.changed.update(registers)

    def _finish(self) -> None:
        for first, group in self.groups.items():
            for product in group.live:
                message = "the kernel ends with products that nothing waits for"
                raise self.core.finding("wgmma", message, product.at, [first])

    # ------------------------------------------------------------------------------------------------------------ products
    def multiply(
        self, s: Lanes, form: Any, registers: tuple[int, ...], arrays: Sequence[Array], a: Any, b: Any, adds: Any, at_: int
    ) -> None:
        """wgmma.mma_async: notes a product, and checks what it reads."""
        shape = _Form(*form)
        for index, (first, group) in enumerate(self._each(s, at_)):
            self._check(first, group, registers, adds, at_)
            part = slice(128 * index, 128 * index + 128)
            if isinstance(a, tuple):
                left: Any = [np.array(np.broadcast_to(r, (len(indices(s)),))[part]) for r in a]
            else:
                left = self._uniform(a, part, first, at_)
            right, add = self._uniform(b, part, first, at_), bool(self._uniform(adds, part, first, at_))
            if add and group.changed & set(registers):
                message = "an accumulator is written between wgmma.fence and wgmma.mma_async, which reads it"
                raise self.core.finding("wgmma", message, at_, [first])
            if add:
                self._initialised(first, group, registers, at_)
            product = _Product(shape, registers, arrays, left, right, add, at_)
            if not isinstance(left, list):
                self._read(first, group, self._places(first, left, 64, shape.types[1], shape, shape.is_a_transposed, at_), at_)
            self._read(
                first, group, self._places(first, right, shape.width, shape.types[2], shape, shape.is_b_transposed, at_), at_
            )
            group.open.append(product)
            self.is_busy = True

    def _check(self, first: int, group: _Group, registers: tuple[int, ...], adds: Any, at_: int) -> None:
        if not group.is_fenced:
            raise self.core.finding("wgmma", "wgmma.mma_async without wgmma.fence", at_, [first])
        for other in group.live:
            if set(other.registers) & set(registers) and other.registers != registers:
                message = "accumulators are shared with another product under way, of another shape"
                raise self.core.finding("wgmma", message, at_, [first])

    def _initialised(self, first: int, group: _Group, registers: tuple[int, ...], at_: int) -> None:
        """Accumulators that are added to have been written, by a product or otherwise."""
        if registers in group.known or not self.core.options.initialised:
            return
        for register in registers:
            written = self.core.written.get(register)
            if written is not None and not written[first : first + 128].all():
                raise self.core.finding(
                    "uninitialised", "a product adds to an accumulator that was never written", at_, [first]
                )
        group.known.add(registers)

    def _uniform(self, value: Any, part: slice, first: int, at_: int) -> int:
        if np.ndim(value) == 0 or len(value) == 1:
            return at(value, 0)
        mine = value[part]
        if (mine != mine[0]).any():
            raise self.core.finding("wgmma", "a descriptor or scale differs within the warpgroup", at_, [first])
        return int(mine[0])

    def _layout(self, rows: int, size: int, descriptor: int, is_transposed: int, width: int) -> tuple[Array, int]:
        """Offsets of an operand's chunks of 16 bytes before the swizzle, a row of them for each row (or each k); the mode."""
        mode = _SWIZZLES[descriptor >> 62 & 3]
        leading, stride = (descriptor >> 16 & 0x3FFF) << 4, (descriptor >> 32 & 0x3FFF) << 4
        key = (rows, size, mode, leading, stride, is_transposed)
        if key not in self.layouts:
            self.layouts[key] = self._offsets(rows, size, mode, leading, stride, is_transposed, width)
        return self.layouts[key], mode

    def _offsets(self, rows: int, size: int, mode: int, leading: int, stride: int, is_transposed: int, width: int) -> Array:
        if is_transposed:  # rows of the tile are k, chunks go along the other dimension
            k, chunk = np.arange(size // width)[:, None], np.arange(rows * width // 16)[None]
            per = 1 << mode
            across, down = (stride, leading) if mode == 0 else (leading, stride)
            return chunk // per * across + k // 8 * down + k % 8 * per * 16 + chunk % per * 16
        row, chunk = np.arange(rows)[:, None], np.arange(size // 16)[None]
        inside = row % 8 * 16 + chunk * leading if mode == 0 else row % 8 * (16 << mode) + chunk * 16
        return row // 8 * stride + inside

    def _places(self, first: int, descriptor: int, rows: int, kind: str, form: _Form, is_transposed: int, at_: int) -> Array:
        """Offsets of an operand's chunks in the wave's shared memory."""
        core, width = self.core, _WIDTH.get(kind, 1)
        if descriptor >> 49 & 7:
            raise PtxError("expected a matrix descriptor with base offset 0, others are not known to the emulator")
        offset, mode = self._layout(rows, form.depth * width, descriptor, is_transposed, width)
        address = swizzled(((descriptor & 0x3FFF) << 4) + offset, mode)
        if address.max() + 16 > core.shared_end:
            message = (
                f"operand of a product at shared address {int(address.max())}, the block's memory ends at {core.shared_end}"
            )
            raise core.finding("bounds", message, at_, [first])
        return int(core.block_of[first]) * core.stride + address

    def _read(self, first: int, group: _Group, places: Array, at_: int) -> None:
        """Checks what a product reads: written, and in an order of which all four warps know."""
        core, clocks = self.core, self.clocks
        shadow = np.ascontiguousarray(core.shared.shadows[16][places >> 4])
        if not is_written(shadow, 16):
            outside = not shadow.view(u1).all()
            if outside or core.options.initialised:
                kind, what = ("bounds", "outside of its memory") if outside else ("uninitialised", "that was never written")
                raise core.finding(kind, f"operand of a product {what}", at_, [first])
        if not clocks.is_on:
            return
        flat = places.reshape(-1)
        row = first >> 5
        agent = clocks.products + int(clocks.own[row]) - 1
        rows = slice(row, row + 4)  # the operand is read for all of them
        clocks.read_async(rows, np.array([first]), clocks.granules(flat, 16), at_, agent, group.number + 1)

    # ------------------------------------------------------------------------------------------------------------ execution
    def _run(self, first: int, products: Sequence[_Product]) -> None:
        """Runs a group; products into the same registers one after the other, without going through them."""
        lanes, index = slice(first, first + 128), 0
        while index < len(products):
            head = products[index]
            kind, width = head.form.types[0], head.form.width
            total = _accumulators(np.stack([a[lanes] for a in head.arrays]), kind, width)
            while index < len(products) and products[index].registers == head.registers:
                total = self._step(first, products[index], total)
                index += 1
            for array, bits in zip(head.arrays, _registers(total, kind, width), strict=True):
                array[lanes] = bits

    def _step(self, first: int, product: _Product, total: Array) -> Array:
        form = product.form
        if isinstance(product.a, list):
            left = _fragments(product.a, form.types[1], form.depth)
        else:
            left = self._operand(first, product.a, 64, form.types[1], form, form.is_a_transposed, product.at)
        right = self._operand(first, product.b, form.width, form.types[2], form, form.is_b_transposed, product.at)
        result = (left @ right.T) * (form.sign_a * form.sign_b)
        saturates = "satfinite" in self.core.kernel.function.code[product.at].modifiers
        return accumulated(result, total if product.adds else None, form.types[0], saturates)

    def _operand(self, first: int, descriptor: int, rows: int, kind: str, form: _Form, is_transposed: int, at_: int) -> Array:
        places = self._places(first, descriptor, rows, kind, form, is_transposed, at_)
        tile = decoded(np.ascontiguousarray(self.core.shared.views[16][places >> 4]).view(u1), kind)
        return tile.T if is_transposed else tile


def _fragments(registers: Sequence[Array], kind: str, depth: int) -> Array:
    """A of 64 rows out of registers: each warp has 16 of them, as in mma."""
    values = decoded(np.ascontiguousarray(np.stack(registers, 1)).view(u1), kind)
    return values.reshape(4, 8, 4, 2, 2, depth // 8).transpose(0, 4, 1, 3, 2, 5).reshape(64, depth)


def _accumulators(bits: Array, kind: str, width: int) -> Array:
    """The 64 rows of D out of registers of 128 lanes."""
    if kind == "f16":
        halves = np.ascontiguousarray(bits.reshape(width // 8, 2, 4, 8, 4)).view(f2).reshape(width // 8, 2, 4, 8, 4, 2)
        return halves.transpose(2, 1, 3, 0, 4, 5).reshape(64, width).astype(f4)
    values = bits.view(i4 if kind == "s32" else f4).reshape(width // 8, 2, 2, 4, 8, 4)
    return values.transpose(3, 1, 4, 0, 5, 2).reshape(64, width)


def _registers(total: Array, kind: str, width: int) -> Array:
    """Registers of 128 lanes out of the 64 rows of D."""
    if kind == "f16":
        pairs = total.astype(f2).reshape(4, 2, 8, width // 8, 4, 2).transpose(3, 1, 0, 2, 4, 5)
        return np.ascontiguousarray(pairs).view(u4).reshape(-1, 128)
    table = total.reshape(4, 2, 8, width // 8, 4, 2).transpose(3, 1, 5, 0, 2, 4)
    return np.ascontiguousarray(table.astype(i4 if kind == "s32" else f4)).view(u4).reshape(-1, 128)
