"""Experts that a module takes out of one tensor, and a file has one by one: each becomes a weight of the module itself.

Before::

    func.func @main(%x, %w: tensor<4x128x64xf32> {relax.name = "mlp.experts.gate_up_proj"})
      %0 = "relax.strided_slice"(%w) {axes = array<i64: 0>, begin = [0], end = [1]}
      %1 = "relax.squeeze"(%0)
      %2 = "relax.permute_dims"(%1)
      %3 = "relax.matmul"(%x, %2)
      %4:2 = "relax.split"(%3) {axis = 1 : i64, sections = 2 : i64}

after::

    func.func @main(%x, %g: tensor<64x64xf32> {relax.name = "mlp.experts.0.gate_proj.weight"}, %u: ...up_proj.weight, ...)
      %0 = "relax.permute_dims"(%g)
      %1 = "relax.matmul"(%x, %0)                                   // what %4#0 was, and so of %u what %4#1 was

so that a quantized file's experts are read as its other matrices are, each with scales, and an order of inputs, of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .checkpoint_readers import Selection, WeightReaders, selections
from .dialect.bindings import ir
from .dialect.inference import normalize_axis
from .dialect.op import attrs_of
from .dialect.ops import Concat, MatMul, PermuteDims, Split, StridedSlice
from .dialect.struct_info import TensorInfo
from .runtime.joined_experts import JoinedWeight

__all__ = ["take_apart"]


def take_apart(weight: ir.Value, joined: JoinedWeight, part: Callable[[str, ir.Type], ir.Value]) -> bool:
    """Makes products read single tensors of a file instead of all experts of a module.

    Args:
        weight: of all experts, ``[experts, out, in]``.
        joined: the tensors.
        part: adds a tensor, by name and type, to what the function takes.

    Returns:
        whether that is so; nothing is changed where anything but a product with one expert's matrix reads the weight.
    """
    chosen = selections(weight)
    count = len(joined.parts[0])
    if chosen is None or not all(_is_for_products(s, count) for s in chosen):
        return False
    whole = TensorInfo.of(weight)
    _, rows, columns = whole.shape
    assert isinstance(rows, int)  # a weight's
    kind = whole.with_(shape=[rows // count, columns]).type
    added = {i: [part(name, kind) for name in joined.parts[i]] for i in dict.fromkeys(s.index for s in chosen)}
    for selection in chosen:
        parts = added[selection.index]
        if count == 1:
            selection.matrix.replace_all_uses_with(parts[0])
        else:
            _read_apart(selection.matrix, parts)
        selection.erase()
    return True


def _is_for_products(selection: Selection, count: int) -> bool:
    """Whether products alone read a matrix; of several tensors those that give a column for each row."""
    readers = WeightReaders.of(selection.matrix)
    return not readers.others and not readers.rows and (count == 1 or readers.transposed)


def _read_apart(matrix: ir.Value, parts: Sequence[ir.Value]) -> None:
    """One product with each part in place of one with the matrix in which they lie below each other."""
    for turn in [use.owner for use in matrix.uses]:
        for product in [use.owner for use in turn.results[0].uses]:
            with ir.InsertionPoint(product), product.location:
                turned = [PermuteDims.create(p, axes=turn.axes).result for p in parts]
                made = [MatMul.create(product.lhs, t, out_dtype=product.out_dtype).result for t in turned]
            _replace(product.result, made)
            product.operation.erase()
            for value in made:
                _erase_unread(value)
        turn.operation.erase()


def _erase_unread(product: ir.Value) -> None:
    """Erases a product that nothing reads: its tensor need not be prepared."""
    if not list(product.uses):
        turned = product.owner.rhs
        product.owner.operation.erase()
        turned.owner.operation.erase()


def _replace(product: ir.Value, made: Sequence[ir.Value]) -> None:
    """Makes what reads columns of a product read that of them, and what reads others all side by side."""
    for op in [use.owner for use in product.uses]:
        found = _columns(op, len(made))
        if found is not None:
            for result, at in zip(op.results, found, strict=True):
                result.replace_all_uses_with(made[at])
            op.operation.erase()
    if not list(product.uses):
        return
    with ir.InsertionPoint(product.owner), product.owner.location:
        whole = made[0]
        for other in made[1:]:
            whole = Concat.create(whole, other, axis=TensorInfo.of(product).rank - 1).result
    product.replace_all_uses_with(whole)


def _columns(op: ir.OpView, count: int) -> Sequence[int] | None:
    """Which of so many equal parts of its operand's columns an op has as results; None where they are others."""
    info = TensorInfo.of(op.operands[0])
    if isinstance(op, Split):
        return range(count) if normalize_axis(op.axis, info.rank) == info.rank - 1 and len(op.results) == count else None
    if not isinstance(op, StridedSlice):
        return None
    attrs, size = attrs_of(op), info.shape[-1]
    if list(attrs["axes"]) != [info.rank - 1] or not isinstance(size, int) or set(attrs["strides"] or [1]) != {1}:
        return None
    (begin,), (end,) = attrs["begin"], attrs["end"]
    each = size // count
    return [begin // each] if isinstance(begin, int) and begin % each == 0 and end == begin + each else None
