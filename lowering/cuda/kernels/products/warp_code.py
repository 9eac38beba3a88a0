"""Operations on shared memory and tensor cores, built one by one; addresses in shared memory are bytes in 32 bits."""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from .instructions import TensorInstruction

__all__ = ["WarpCode"]


class WarpCode:
    """Builds with an emitter of a kernel.

    Attributes:
        em: the emitter.
        shared: where the block's shared memory begins.
    """

    def __init__(self, em: Emitter, shared: ir.Value):
        self.em, self.shared = em, shared
        context = em.context
        self._pointer = ir.Type.parse("!llvm.ptr<3>", context)
        self._global = ir.Type.parse("!llvm.ptr<1>", context)
        self._byte = ir.TypeAttr.get(em.integer(8))
        self._parsed: dict[str, ir.Attribute] = {}

    # -- numbers of 32 bits ----------------------------------------------------------------------------------------

    def number(self, value: int) -> ir.Value:
        return self.em.constant(value, self.em.i32)

    def add(self, a: ir.Value, b: ir.Value | int) -> ir.Value:
        return a if b == 0 else self._binary("arith.addi", a, b)

    def mul(self, a: ir.Value, b: ir.Value | int) -> ir.Value:
        return a if b == 1 else self._binary("arith.muli", a, b)

    def xor(self, a: ir.Value, b: ir.Value | int) -> ir.Value:
        return a if b == 0 else self._binary("arith.xori", a, b)

    def bits(self, a: ir.Value, first: int, count: int) -> ir.Value:
        """Some neighbouring bits as a number."""
        shifted = self._binary("arith.shrui", a, first) if first else a
        return self._binary("arith.andi", shifted, (1 << count) - 1)

    def divide(self, a: ir.Value, by: int) -> tuple[ir.Value, ir.Value]:
        """Quotient and remainder by a power of two."""
        count = by.bit_length() - 1
        return (self._binary("arith.shrui", a, count) if count else a), self.bits(a, 0, count)

    def _binary(self, name: str, a: ir.Value, b: ir.Value | int) -> ir.Value:
        return self.em.op(name, [a, self.number(b) if isinstance(b, int) else b], self.em.i32)

    def narrow(self, index: ir.Value) -> ir.Value:
        """An index that is known to be small."""
        return self.em.op("arith.index_cast", [index], self.em.i32)

    def index(self, number: ir.Value) -> ir.Value:
        """A number that is not negative as an index."""
        return self.em.op("arith.index_castui", [number], self.em.index)

    def same_in_warp(self, value: ir.Value) -> ir.Value:
        """A value that all threads of a warp have alike, so that the assembler knows it, too."""
        full, zero, last = self.number(-1), self.number(0), self.number(31)
        return self.em.op(
            "nvvm.shfl.sync", [full, value, zero, last], self.em.i32, {"kind": self._attribute("#nvvm<shfl_kind idx>")}
        )

    # -- memory ----------------------------------------------------------------------------------------------------

    def at(self, address: ir.Value) -> ir.Value:
        """The pointer to a byte of shared memory."""
        attributes = {
            "elem_type": self._byte,
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([-(1 << 31)], self.em.context),
            "noWrapFlags": ir.IntegerAttr.get(self.em.i32, 0),
        }
        return self.em.op("llvm.getelementptr", [self.shared, address], self._pointer, attributes)

    def global_pointer(self, address: ir.Value) -> ir.Value:
        """The pointer to a byte of global memory, whose address is an index."""
        em = self.em
        number = em.op("arith.index_cast", [address], em.integer(64))
        generic = em.op("llvm.inttoptr", [number], ir.Type.parse("!llvm.ptr", em.context))
        return em.op("llvm.addrspacecast", [generic], self._global)

    def store(self, value: ir.Value, address: ir.Value, alignment: int) -> None:
        """Writes to shared memory."""
        self.em.effect("llvm.store", [value, self.at(address)], self._access(alignment))

    def load(self, kind: ir.Type, address: ir.Value, alignment: int) -> ir.Value:
        """Reads shared memory."""
        return self.em.op("llvm.load", [self.at(address)], kind, self._access(alignment))

    def _access(self, alignment: int) -> dict[str, ir.Attribute]:
        i64 = self.em.integer(64)
        return {"alignment": ir.IntegerAttr.get(i64, alignment), "ordering": ir.IntegerAttr.get(i64, 0)}

    def copy(self, target: ir.Value, source: ir.Value, size: int, valid: ir.Value | None) -> None:
        """``cp.async``: some bytes of global memory to shared memory, those behind the valid ones as zeros."""
        cache = "cg" if size == 16 else "ca"
        attributes = {
            "size": ir.IntegerAttr.get(self.em.i32, size),
            "modifier": self._attribute(f"#nvvm<load_cache_modifier {cache}>"),
        }
        operands = [self.at(target), source, *([] if valid is None else [valid])]
        self.em.effect("nvvm.cp.async.shared.global", operands, attributes)

    def commit(self) -> None:
        """Ends a group of copies."""
        self.em.effect("nvvm.cp.async.commit.group", [])

    def wait(self, groups: int) -> None:
        """Waits for this thread's copies, but for its so many last groups."""
        self.em.effect("nvvm.cp.async.wait.group", [], {"n": ir.IntegerAttr.get(self.em.i32, groups)})

    def vote(self, kind: str, value: ir.Value) -> ir.Value:
        """Whether ``any`` or ``all`` threads of the warp have a condition."""
        attributes = {"kind": self._attribute(f"#nvvm<vote_sync_kind {kind}>")}
        return self.em.op("nvvm.vote.sync", [self.number(-1), value], self.em.i1, attributes)

    def meet_in_warp(self) -> None:
        """Waits for all threads of the warp, and for what they have written."""
        self.em.effect("nvvm.bar.warp.sync", [self.number(-1)])

    def barrier(self) -> None:
        """Waits for all threads of the block, and for what they have written."""
        segments = ir.DenseI32ArrayAttr.get([0, 0], self.em.context)
        self.em.effect("nvvm.barrier", [], {"operandSegmentSizes": segments, "aligned": ir.BoolAttr.get(True, self.em.context)})

    # -- tensor cores ----------------------------------------------------------------------------------------------

    def matrices(self, address: ir.Value, transposed: bool) -> list[ir.Value]:
        """``ldmatrix``: four matrices of 8 by 16 bytes, a register of each; lane ``8 * i + j`` has row j of the i-th."""
        em = self.em
        attributes = {
            "num": ir.IntegerAttr.get(em.i32, 4),
            "layout": self._attribute(f"#nvvm.mma_layout<{'col' if transposed else 'row'}>"),
            "shape": self._attribute("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
            "eltType": self._attribute("#nvvm.ld_st_matrix_elt_type<b16>"),
        }
        kind = ir.Type.parse("!llvm.struct<(i32, i32, i32, i32)>", em.context)
        loaded = em.op("nvvm.ldmatrix", [self.at(address)], kind, attributes)
        return [self.field(loaded, i, em.i32) for i in range(4)]

    def multiply(
        self, by: TensorInstruction, a: Sequence[ir.Value], b: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """``mma.sync``: adds the products of fragments to four sums."""
        em = self.em
        fragment, element = (ir.Type.parse(t, em.context) for t in (by.fragment, by.sums))
        factors = [v if v.type == fragment else em.op("llvm.bitcast", [v], fragment) for v in (*a, *b)]
        kind = ir.Type.parse(f"!llvm.struct<({', '.join([by.sums] * 4)})>", em.context)
        result = em.intrinsic(by.intrinsic, [*factors, *sums], kind)
        return [self.field(result, i, element) for i in range(4)]

    def field(self, value: ir.Value, position: int, kind: ir.Type) -> ir.Value:
        """A field of a struct."""
        return self.em.op(
            "llvm.extractvalue", [value], kind, {"position": ir.DenseI64ArrayAttr.get([position], self.em.context)}
        )

    def pair(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Two scalars as a vector."""
        return self.em.op("vector.from_elements", [a, b], self.em.vector(2, a.type))

    def _attribute(self, text: str) -> ir.Attribute:
        if text not in self._parsed:
            self._parsed[text] = ir.Attribute.parse(text, self.em.context)
        return self._parsed[text]
