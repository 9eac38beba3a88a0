"""Reads rows of a matrix that is packed for products from there: an embedding tied to the output's projection is held once.

Before::

    %h = "relax.take"(%w, %ids) : (tensor<50257x768xf32>, tensor<?xi64, {sym = ["n"]}>) -> tensor<?x768xf32, {sym = ["n"]}>
    %t = "relax.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<50257x768xf32>) -> tensor<768x50257xf32>
    %p = "relax.pack_weight"(%t) {layout = "tile 16"} : (tensor<768x50257xf32>) -> tensor<3142x768x16xf32>
    %y = "relax.packed_matmul"(%z, %p) {layout = "tile 16", n = 50257 : i64} : (...)

after::

    %t = "relax.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<50257x768xf32>) -> tensor<768x50257xf32>
    %p = "relax.pack_weight"(%t) {layout = "tile 16"} : (tensor<768x50257xf32>) -> tensor<3142x768x16xf32>
    %h = "relax.packed_take"(%p, %ids) {layout = "tile 16", n = 50257 : i64} : (...) -> tensor<?x768xf32, {sym = ["n"]}>
    %y = "relax.packed_matmul"(%z, %p) {layout = "tile 16", n = 50257 : i64} : (...)

After ``relax-sink-growth``, scales of quantized embeddings are matrices like their integers, and shared like them.

A row that is read packed costs a cache line per element, in place of one per 16 elements of f32. That is done as long as it
takes no more lines than the whole matrix has, which the product reads anyway: of GPT-2's 50257 rows for up to 3141 tokens, 1.2
MiB more of 147 for 25 tokens. A symbolic number of rows is taken for a small one, which a prompt is. Where anything else reads
the matrix when the model runs, it is there anyway, and nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import func, ir
from ...functions import body_of, functions, name_of, num_input
from ...inference import normalize_axis
from ...ops import PackedTake, PackWeight, PermuteDims, Take
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...reports import report
from ...reports.shared_weights import HeldTwice, SharedWeight, SharedWeights
from ...struct_info import TensorInfo
from ...traversal import nested_operations
from ..emit import given_attr

__all__ = ["SharePackedWeights"]

#: Bytes that come from memory together.
_LINE = 64


@dataclass(frozen=True)
class SharePackedWeights(Pass):
    """Reads rows of packed weights, in functions that have ``relax.num_input``.

    Attributes:
        always: also where rows are so many that reading them costs more than the product's reading of all.
    """

    name: ClassVar[str] = "relax-share-packed-weights"
    always: bool = False

    def run(self, op: ir.Operation) -> None:
        rules = FlowRules.of(op)
        for function in functions(op):
            if num_input(function) is not None:
                self._share_in(function, rules.flow(function))

    def _share_in(self, function: func.FuncOp, flow: WeightFlow) -> None:
        found = _found(function, flow)
        shared: list[SharedWeight] = []
        twice: list[HeldTwice] = []
        reads = _PackedReads({})
        for matrix in found:
            sources, reason = flow.sources(matrix.value), matrix.refusal(flow)
            if reason is None and not self.always and matrix.lines() > matrix.bytes // _LINE:
                reason = f"{matrix.rows()} rows of {matrix.size} are looked up at once"
            if reason is None:
                shared.append(SharedWeight(sources, matrix.bytes))
                matrix.pack_before_reads()
                reads.matrices[matrix.value] = matrix
            else:
                twice.append(HeldTwice(sources, matrix.bytes, reason))
        if reads.matrices:
            walk(function, reads.patterns())
        if found:
            report.add(SharedWeights(name_of(function), tuple(shared), tuple(twice)))


@dataclass
class _Matrix:
    """A matrix of weights ``[n, k]`` that is packed, transposed, and of which rows are looked up.

    Attributes:
        value: the matrix.
        takes: the look-ups, each with the op of the function's block that it is, or is in, and the position of that one.
        pack: what packs it, if anything, and the positions of the transposition before it and of itself.
    """

    value: ir.Value
    takes: list[tuple[Take, ir.OpView, int]] = field(default_factory=list[tuple[Take, ir.OpView, int]])
    pack: tuple[PackWeight, int, int] | None = None

    @property
    def size(self) -> int:
        return _static(TensorInfo.of(self.value).shape)[0]

    @property
    def bytes(self) -> int:
        return prod(_static(TensorInfo.of(self.value).shape)) * _bits(self.value) // 8

    def rows(self) -> int:
        """The rows that are looked up in a call, as far as their number is static."""
        return sum(prod(_static(TensorInfo.of(take.indices).shape)) for take, _, _ in self.takes)

    def lines(self) -> int:
        """The cache lines that these take of the packed matrix."""
        return self.rows() * _static(TensorInfo.of(self.value).shape)[1]

    def refusal(self, flow: WeightFlow) -> str | None:
        """What else reads the matrix as it is when the model runs."""
        ours = {take.result for take, _, _ in self.takes}
        for use in self.value.uses:
            op = use.owner.operation
            if not len(op.results) or not all(r in ours or flow.once_from_weights(r) for r in op.results):
                return f"'{op.name}' reads it, too"
        return None

    def pack_before_reads(self) -> None:
        """Packs before the first look-up. That is no pattern: ops that stay as they are only change places."""
        assert self.pack is not None
        pack, transposed, packed = self.pack
        _, outer, first = min(self.takes, key=lambda t: t[2])
        if first < transposed:
            pack.x.owner.operation.move_before(outer.operation)
        if first < packed:
            pack.operation.move_before(outer.operation)


@dataclass
class _PackedReads:
    """The look-ups of one function, of matrices that are read packed."""

    matrices: dict[ir.Value, _Matrix]

    def patterns(self) -> Patterns:
        return [(Take, self._read_packed_rows)]

    def _read_packed_rows(self, op: Take, rewriter: Rewriter) -> bool:
        matrix = self.matrices.get(op.x)
        if matrix is None or matrix.pack is None or not _takes_rows(op):
            return False
        with rewriter.before(op):
            pack, types = matrix.pack[0], [op.result.type]
            made = PackedTake.create(
                pack.result,
                op.indices,
                layout=pack.layout,
                n=matrix.size,
                wrap_negative_indices=given_attr(op, "wrap_negative_indices"),
                result_types=types,
            )
            return rewriter.replace(op, made)


def _found(function: func.FuncOp, flow: WeightFlow) -> list[_Matrix]:
    """The matrices that are both packed and looked up; those of run-time positions alone, others are lifted."""
    found: dict[ir.Value, _Matrix] = {}
    transposed: dict[ir.Value, int] = {}
    block = body_of(function)
    for position, outer in enumerate(block.operations if block is not None else ()):
        if len(outer.results) and flow.once_from_weights(outer.results[0]):
            if isinstance(outer, PermuteDims) and _swaps(outer):
                transposed[outer.result] = position
            if isinstance(outer, PackWeight) and outer.layout.rows == 1 and outer.x in transposed:
                matrix = _entered(found, outer.x.owner.operands[0])
                matrix.pack = matrix.pack or (outer, transposed[outer.x], position)
            continue
        for op in (outer, *(inner.opview for inner in nested_operations(outer.operation))):
            if isinstance(op, Take) and flow.once_from_weights(op.x) and _takes_rows(op):
                _entered(found, op.x).takes.append((op, outer, position))
    return [matrix for matrix in found.values() if matrix.pack is not None and matrix.takes]


def _entered(found: dict[ir.Value, _Matrix], value: ir.Value) -> _Matrix:
    return found.setdefault(value, _Matrix(value))


def _swaps(op: PermuteDims) -> bool:
    info = TensorInfo.of(op.x)
    return info.rank == 2 and len(_static(info.shape)) == 2 and (op.axes is None or [a % 2 for a in op.axes] == [1, 0])


def _takes_rows(op: Take) -> bool:
    """Whether these are rows of a matrix, of whole bytes: products read smaller elements two by two."""
    rank = TensorInfo.of(op.x).rank
    return rank == 2 and normalize_axis(op.axis, rank) == 0 and _bits(op.x) >= 8


def _bits(value: ir.Value) -> int:
    width: int = TensorInfo.of(value).dtype.width  # pyright: ignore[reportAttributeAccessIssue]
    return width


def _static(shape: Sequence[object]) -> list[int]:
    return [d for d in shape if isinstance(d, int)]
