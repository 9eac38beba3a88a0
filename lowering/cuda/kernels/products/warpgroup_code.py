"""Operations of Hopper, one by one: tiles of tensors by one thread's request, barriers of bytes, products of warpgroups."""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from .instructions import TensorInstruction
from .warp_code import WarpCode

__all__ = ["ASKING", "MULTIPLYING", "WarpgroupCode"]

#: Registers of a thread: 65536 are shared by 128 threads that ask and 128 or 256 that multiply, in multiples of 8.
ASKING, MULTIPLYING = 40, 232

# Until a thread that waits looks again, in nanoseconds, at most.
_PATIENCE = 10_000_000


class WarpgroupCode(WarpCode):
    """Builds with an emitter of a kernel for sm_90a."""

    # -- barriers in shared memory: so many arrivals, and so many bytes ---------------------------------------------

    def init_barrier(self, barrier: ir.Value, arrivals: int) -> None:
        """Makes a barrier of 8 bytes; all threads see it after :meth:`barriers_are_made` and a barrier of the block."""
        self.em.effect("nvvm.mbarrier.init", [self.at(barrier), self.number(arrivals)])

    def barriers_are_made(self) -> None:
        self.em.effect("nvvm.fence.mbarrier.init", [])

    def arrive(self, barrier: ir.Value) -> None:
        self.em.op("nvvm.mbarrier.arrive", [self.at(barrier)], self.em.integer(64), self._cta())

    def arrive_expecting(self, barrier: ir.Value, size: int) -> None:
        """Arrives, and says that so many bytes will, too."""
        self.em.effect("nvvm.mbarrier.arrive.expect_tx", [self.at(barrier), self.number(size)], self._cta())

    def wait_for(self, barrier: ir.Value, parity: ir.Value) -> None:
        """Waits until the phase of that parity is complete."""
        self.em.effect("nvvm.mbarrier.try_wait.parity", [self.at(barrier), parity, self.number(_PATIENCE)])

    def _cta(self) -> dict[str, ir.Attribute]:
        return {"relaxed": ir.BoolAttr.get(False, self.em.context), "scope": self._attribute("#nvvm.mem_scope<cta>")}

    # -- tiles -----------------------------------------------------------------------------------------------------

    def prefetch_map(self, tensor_map: ir.Value) -> None:
        self.em.effect("nvvm.prefetch", [tensor_map], {"tensormap": ir.UnitAttr.get(self.em.context)})

    def load_tile(self, target: ir.Value, tensor_map: ir.Value, at: Sequence[ir.Value], barrier: ir.Value) -> None:
        """Asks for the box of a tensor that begins at coordinates, the innermost first; its bytes arrive at the barrier."""
        em = self.em
        segments = [1, 1, len(at), 1, 0, 0, 0, 0]
        attributes = {
            "isCTAOnly": ir.BoolAttr.get(False, em.context),
            "mode": self._attribute("#nvvm.tma_load_mode<tile>"),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments, em.context),
        }
        cluster = em.op("llvm.addrspacecast", [self.at(target)], ir.Type.parse("!llvm.ptr<7>", em.context))
        operands = [cluster, tensor_map, *at, self.at(barrier)]
        em.effect("nvvm.cp.async.bulk.tensor.shared.cluster.global", operands, attributes)

    # -- products --------------------------------------------------------------------------------------------------

    def set_registers(self, count: int, *, more: bool) -> None:
        """How many registers each thread of the warpgroup has from here on."""
        action = self._attribute(f"#nvvm<action {'increase' if more else 'decrease'}>")
        self.em.effect("nvvm.setmaxregister", [], {"action": action, "regCount": ir.IntegerAttr.get(self.em.i32, count)})

    def sums_type(self, by: TensorInstruction, columns: int) -> ir.Type:
        """A thread's sums of 64 rows."""
        return ir.Type.parse(f"!llvm.struct<({', '.join([by.sums] * (columns // 2))})>", self.em.context)

    def no_sums(self, by: TensorInstruction, columns: int) -> ir.Value:
        """Registers for sums that nothing is in yet."""
        return self.em.op("llvm.mlir.undef", [], self.sums_type(by, columns))

    def multiply_group(
        self,
        by: TensorInstruction,
        columns: int,
        left: ir.Value,
        right: ir.Value,
        sums: ir.Value,
        *,
        starts: bool,
        across: bool,
    ) -> ir.Value:
        """``wgmma.mma_async`` of 64 rows and some columns, of matrices that descriptors say.

        Args:
            by: the factors.
            columns: of the right factor.
            left: descriptor of rows along k.
            right: descriptor of columns along k; ``across``: of steps of k along columns.
            sums: that are added to; ``starts``: whose place is taken instead.
            starts: see there.
            across: see there.
        """
        em = self.em
        factor, sum_ = by.name, {"i32": "s32"}.get(by.sums, by.sums)
        attributes = {
            "shape": self._attribute(f"#nvvm.shape<m = 64, n = {columns}, k = {by.depth}>"),
            "typeA": self._attribute(f"#nvvm.wgmma_type<{factor}>"),
            "typeB": self._attribute(f"#nvvm.wgmma_type<{factor}>"),
            "typeD": self._attribute(f"#nvvm.wgmma_type<{sum_}>"),
            "scaleD": self._attribute(f"#nvvm.wgmma_scale_out<{'zero' if starts else 'one'}>"),
            "scaleA": self._attribute("#nvvm.wgmma_scale_in<one>"),
            "scaleB": self._attribute("#nvvm.wgmma_scale_in<one>"),
            "layoutA": self._attribute("#nvvm.mma_layout<row>"),
            "layoutB": self._attribute(f"#nvvm.mma_layout<{'row' if across else 'col'}>"),
        }
        return em.op("nvvm.wgmma.mma_async", [sums, left, right], sums.type, attributes)

    def multiply_registers(
        self,
        by: TensorInstruction,
        rows: Sequence[ir.Value],
        right: ir.Value,
        columns: int,
        sums: Sequence[ir.Value] | None,
        *,
        across: bool,
    ) -> list[ir.Value]:
        """The same, of 64 rows in registers: four of a thread, as ``mma.sync`` has them; ``sums`` of None: it starts."""
        count, em = columns // 2, self.em
        names = ", ".join(f"${i}" for i in range(count))
        left = ", ".join(f"${count + i}" for i in range(4))
        shape = f"m64n{columns}k{by.depth}.{by.sums}.{by.name}.{by.name}"
        text = (
            f"{{ .reg .pred p; setp.ne.b32 p, {int(sums is not None)}, 0; wgmma.mma_async.sync.aligned.{shape} "
            f"{{{names}}}, {{{left}}}, ${count + 4}, p, 1, 1, {int(across)}; }}"
        )
        kept = list(sums or ())
        inputs = ["r"] * 4 + ["l"] + [str(i) for i in range(len(kept))]
        return self._assembly(text, [*rows, right, *kept], inputs, [em.f32] * count)

    def begin_products_of(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        """:meth:`begin_products`, in front of which these registers have been written: the compiler moves none behind it."""
        return self._pinned("wgmma.fence.sync.aligned;", values)

    def wait_products_of(self, groups: int, values: Sequence[ir.Value]) -> list[ir.Value]:
        """:meth:`wait_products`, which these sums are the results of: the compiler reads none in front of it."""
        return self._pinned(f"wgmma.wait_group.sync.aligned {groups};", values)

    def _pinned(self, text: str, values: Sequence[ir.Value]) -> list[ir.Value]:
        return self._assembly(text, values, [str(i) for i in range(len(values))], [v.type for v in values])

    def _assembly(
        self, text: str, operands: Sequence[ir.Value], inputs: Sequence[str], results: Sequence[ir.Type]
    ) -> list[ir.Value]:
        """An instruction that no operation of NVVM is, with results in f32 or i32."""
        em = self.em
        outputs = ["=f" if kind == em.f32 else "=r" for kind in results]
        attributes = {
            "asm_string": ir.StringAttr.get(text, em.context),
            "constraints": ir.StringAttr.get(",".join([*outputs, *inputs]), em.context),
            "asm_dialect": ir.IntegerAttr.get(em.integer(64), 0),
            "has_side_effects": ir.UnitAttr.get(em.context),
        }
        kind = ir.Type.parse(f"!llvm.struct<({', '.join(map(str, results))})>", em.context)
        found = em.op("llvm.inline_asm", operands, kind, attributes)
        return [self.field(found, i, t) for i, t in enumerate(results)]

    def begin_products(self) -> None:
        """Orders registers, and what was written to shared memory, before products."""
        self.em.effect("nvvm.wgmma.fence.aligned", [])

    def commit_products(self) -> None:
        self.em.effect("nvvm.wgmma.commit.group.sync.aligned", [])

    def wait_products(self, groups: int) -> None:
        """Waits for all groups of products but the so many last ones."""
        attributes = {"group": ir.IntegerAttr.get(self.em.integer(64), groups)}
        self.em.effect("nvvm.wgmma.wait.group.sync.aligned", [], attributes)

    def descriptor(self, address: ir.Value, leading: int, stride: int) -> ir.Value:
        """Where a matrix is: byte address in shared memory, and bytes between its parts, of lines of 128 bytes, twisted.

        The layout of PTX's "matrix descriptor": address, leading and stride byte offsets in units of 16, swizzle mode in bits
        62 and 63, where 1 is that of 128 bytes.
        """
        em = self.em
        i64 = em.integer(64)
        start = em.op("llvm.ptrtoint", [self.at(address)], i64)
        units = em.op("arith.shrui", [start, em.constant(4, i64)], i64)
        low = em.op("arith.andi", [units, em.constant(0x3FFF, i64)], i64)
        fixed = (leading // 16) << 16 | (stride // 16) << 32 | 1 << 62
        return em.op("arith.ori", [low, em.constant(fixed, i64)], i64)

    def moved(self, descriptor: ir.Value, size: int) -> ir.Value:
        """The descriptor of what is so many bytes further on."""
        if not size:
            return descriptor
        i64 = self.em.integer(64)
        return self.em.op("arith.addi", [descriptor, self.em.constant(size // 16, i64)], i64)
