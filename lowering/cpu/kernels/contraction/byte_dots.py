"""Products of neighbouring bytes, summed in lanes of 32 bits: by the target's instruction, or the same in plain operations."""

from __future__ import annotations

from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.emit.buffers import Buffer
from ....kernels.emit.emitter import Emitter

__all__ = ["ByteDots"]


@dataclass(frozen=True)
class ByteDots:
    """How ``rows`` neighbours of a left and of a right factor are multiplied and summed.

    Attributes:
        emitter: what builds it.
        instruction: LLVM's name of it; empty: plain operations.
        rows: 4 bytes in a lane, or 2 that are widened to i16.
        width: lanes of a vector.
        left_unsigned, right_unsigned: whether bytes have no sign.
    """

    emitter: Emitter
    instruction: str
    rows: int
    width: int
    left_unsigned: bool
    right_unsigned: bool

    @property
    def is_wide(self) -> bool:
        """Whether factors are i16."""
        return self.rows == 2

    @property
    def lane(self) -> ir.Type:
        """What neighbours are in a vector."""
        return ir.IntegerType.get_signless(32 // self.rows, self.emitter.context)

    def left(self, buffer: Buffer, at: ir.Value) -> ir.Value:
        """Neighbours of a row in every lane."""
        em = self.emitter
        some = em.op("vector.load", [buffer.flat, at], em.vector(self.rows, buffer.stored))
        if self.is_wide:
            some = em.op(_extension(self.left_unsigned), [some], em.vector(self.rows, self.lane))
        bits = em.op("vector.bitcast", [some], em.vector(1, em.i32))
        position = {"static_position": ir.DenseI64ArrayAttr.get([0], em.context)}
        lane = em.op("vector.extract", [bits], em.i32, position)
        return em.op("vector.bitcast", [em.broadcast(lane, self.width)], em.vector(self.rows * self.width, self.lane))

    def right(self, stored: ir.Value) -> ir.Value:
        """Bytes of columns as they are multiplied."""
        if not self.is_wide:
            return stored
        return self.emitter.op(
            _extension(self.right_unsigned), [stored], self.emitter.vector(self.rows * self.width, self.lane)
        )

    def added(self, total: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        """A vector of sums with the products of neighbours added."""
        em = self.emitter
        if not self.instruction:
            return em.add(total, self._plain(left, right))
        if self.is_wide:
            return em.add(total, em.intrinsic(self.instruction, [right, left], total.type))
        factors = [left, right] if self.left_unsigned else [right, left]  # the unsigned one is the first
        return em.intrinsic(self.instruction, [total, *factors], total.type)

    def _plain(self, left: ir.Value, right: ir.Value) -> ir.Value:
        em, lanes = self.emitter, self.rows * self.width
        wide = em.vector(lanes, em.i32)
        signs = (self.left_unsigned, self.right_unsigned)
        x, y = (
            em.op(_extension(unsigned and not self.is_wide), [factor], wide)
            for factor, unsigned in zip((left, right), signs, strict=True)
        )
        product, result = em.mul(x, y), None
        for j in range(self.rows):
            mask = {"mask": ir.DenseI64ArrayAttr.get(list(range(j, lanes, self.rows)), em.context)}
            some = em.op("vector.shuffle", [product, product], em.vector(self.width, em.i32), mask)
            result = some if result is None else em.add(result, some)
        assert result is not None
        return result


def _extension(unsigned: bool) -> str:
    return "arith.extui" if unsigned else "arith.extsi"
