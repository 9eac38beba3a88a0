"""The sizes around one op: which relations between them it needs that types do not prove, and what its results' are.

::

    %0 = "relax.matmul"(%x, %w) : (tensor<?x?xf32>, tensor<64x32xf32>) -> tensor<?x?xf32>

needs ``δ0_1 == 64``, and its result is ``[δ0_0, 32]``, where ``δi_k`` is the size of dimension k of operand i. That is what the
op's own inference says when it is asked with these names instead of unknown dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .op import EffectOp, attrs_of, groups_of
from .op_groups import results_of
from .size_relations import Relation, noting, require_at_most, require_same
from .struct_info import TensorInfo, is_tensor
from .symbolic import Dim, open_dim

__all__ = ["OpSizes", "op_sizes"]

#: Checks by itself what it was told, and may define symbols with it.
_MATCH_CAST = "relax.match_cast"


@dataclass(frozen=True)
class OpSizes:
    """What the types around an op leave open.

    Attributes:
        operands: what messages call the operands.
        relations: what has to hold; dimensions of unknown size are called ``open_dim(operand, axis)``.
        results: the dimensions of each result, None where nothing says one; no shape for what is no tensor.
        unproven: the results and axes whose sizes are written, and follow from nothing.
        unknown: the operands and axes of which types say nothing.
    """

    operands: tuple[str, ...]
    relations: tuple[Relation, ...]
    results: tuple[tuple[Dim, ...] | None, ...]
    unproven: tuple[tuple[int, int], ...] = ()
    unknown: frozenset[tuple[int, int]] = frozenset()


def op_sizes(op: EffectOp) -> OpSizes:
    """Asks the inference of a verified op. Raises RelaxError where an op does not verify."""
    cls, group = type(op), groups_of(type(op))[0]
    operands = group.infos(op.operands)
    written = [TensorInfo.of(r) if is_tensor(r) else None for r in op.results]
    names = tuple(group.name(i) for i in range(len(operands)))
    may_name = any(spec.symbolic for spec in cls.attrs.values())
    if not may_name and not any(info is None or _is_symbolic(info) for info in (*operands, *written)):
        return OpSizes(names, (), tuple(info.shape for info in written if info is not None))
    named = [None if info is None else _named(i, info) for i, info in enumerate(operands)]
    with noting() as relations:
        inferred = _inferred(cls, op, named, written)
        shapes = [_shape(*pair) for pair in zip(inferred, written, strict=True)]
        if op.operation.name != _MATCH_CAST:
            _compare(inferred, written)
        if cls.infer is None:
            _check_written(written)
    unproven = () if cls.infer is None else _unproven(inferred, written)
    unknown = frozenset((i, axis) for i, info in enumerate(operands) if info for axis, d in enumerate(info.shape) if d is None)
    return OpSizes(names, tuple(relations), tuple(shapes), unproven, unknown)


def _is_symbolic(info: TensorInfo) -> bool:
    return not all(isinstance(d, int) for d in info.shape)


def _named(position: int, info: TensorInfo) -> TensorInfo:
    """The info with names for its unknown dimensions."""
    if None not in info.shape:
        return info
    return info.with_(shape=[open_dim(position, axis) if d is None else d for axis, d in enumerate(info.shape)])


def _inferred(
    cls: type[EffectOp], op: EffectOp, operands: Sequence[TensorInfo | None], written: Sequence[TensorInfo | None]
) -> Sequence[TensorInfo | None]:  # fmt: skip
    """What the op's rules say about its results."""
    attrs = attrs_of(op)
    found: Sequence[TensorInfo | None] = written
    if cls.infer is not None:
        found = results_of(cls, operands, attrs)
    known = None if cls.check is None else cls.check(operands, written, attrs)
    return found if known is None else known


def _shape(inferred: TensorInfo | None, written: TensorInfo | None) -> tuple[Dim, ...] | None:
    """What is written, else what is inferred."""
    if inferred is None or written is None:
        return None
    return tuple(want if got is None else got for want, got in zip(inferred.shape, written.shape, strict=True))


def _compare(inferred: Sequence[TensorInfo | None], written: Sequence[TensorInfo | None]) -> None:
    """Results are as large as is written."""
    for want, got in zip(inferred, written, strict=True):
        if want is None or got is None:
            continue
        for a, b in zip(want.shape, got.shape, strict=True):
            require_same(a, b, f"expected result tensor<{want}>, got tensor<{got}>")


def _check_written(written: Sequence[TensorInfo | None]) -> None:
    """Sizes that nothing but the type says are no negative numbers."""
    for info in written:
        for dim in () if info is None else info.shape:
            require_at_most(0, dim, f"expected a result of sizes of 0 or more, got tensor<{info}>")


def _unproven(inferred: Sequence[TensorInfo | None], written: Sequence[TensorInfo | None]) -> tuple[tuple[int, int], ...]:
    pairs = [(i, a, b) for i, (a, b) in enumerate(zip(inferred, written, strict=True)) if a is not None and b is not None]
    return tuple((i, axis) for i, a, b in pairs for axis, d in enumerate(a.shape) if d is None and b.shape[axis] is not None)
