"""Parts of tensors, chosen by indices or by ranges."""

from __future__ import annotations

from .. import attributes, dim_ties, image_rules, op_costs
from ..bindings import ir
from ..errors import RelaxError
from ..inference import boolean, normalize_axis, require_index
from ..op import Attrs, Narrow, Op, Operand, Result, SymbolicOp, Tensor
from ..packed_weights import require_elements, require_panels
from ..size_relations import require_at_most, require_same_shape, shape_text
from ..struct_info import TensorInfo
from ..symbolic import Dim, dim_text, is_open

__all__ = [
    "NO_SIZE_REACHES", "DynamicStridedSlice", "GatherElements", "GatherND", "IndexCopy", "PackedTake", "ScatterElements",
    "StridedSlice", "Take",
]  # fmt: skip

#: A constant slice bound from here on, or as far before the start, means the end of a dimension of any size, or its start.
NO_SIZE_REACHES = 2**31

#: What an update does to the element that is there.
_REDUCTIONS = ("update", "add", "mul", "min", "max")

#: Whether an index of -1 is the last place, as in NumPy and ONNX, or outside, as in most operators of torch.
_WRAP = {"wrap_negative_indices": attributes.boolean(default=True)}


class Take(Op, name="take"):
    """``x`` with the dimension ``axis`` replaced by the indices' dimensions; with axis 0 an embedding lookup.

    A negative index counts from the end, or is refused as well with ``wrap_negative_indices`` false; one that is outside of the
    dimension is refused when the op runs.
    """

    x: Operand[Tensor]
    indices: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=0), **_WRAP}
    cost = op_costs.GATHERS
    image = image_rules.TAKEN
    may_fail = True
    narrow = Narrow.FOLLOWS
    ties = dim_ties.TAKEN

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, indices = operands
        require_index(indices)
        axis = normalize_axis(attrs["axis"], x.rank)
        return x.with_(shape=[*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


class PackedTake(Op, name="packed_take"):
    """Rows of a matrix ``[n, k]`` that :class:`PackWeight` packed transposed: ``[..., k]`` of indices ``[...]``.

    What :class:`Take` gives of the matrix itself: an embedding that is also the weight of a product need not be there twice.
    Indices are as in :class:`Take`.
    """

    weight: Operand[Tensor]
    indices: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"layout": attributes.packed_layout(), "n": attributes.integer(), **_WRAP}
    cost = op_costs.GATHERS
    may_fail = True
    packed = "weight"

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        weight, indices = operands
        require_index(indices)
        require_panels(weight, require_elements(attrs["layout"], one_row=True), attrs["n"])
        return weight.with_(shape=[*indices.shape, weight.shape[1]])


class GatherElements(Op, name="gather_elements"):
    """``result[i][j] = x[indices[i][j]][j]`` for axis 0, likewise for others; the result has the indices' shape.

    Indices are as in :class:`Take`; along other axes they are at most as many as elements.
    """

    x: Operand[Tensor]
    indices: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=0), **_WRAP}
    cost = op_costs.GATHERS
    may_fail = True
    narrow = Narrow.FOLLOWS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, indices = operands
        require_index(indices)
        normalize_axis(attrs["axis"], x.rank)
        if x.rank != indices.rank:
            raise RelaxError(f"expected operands of one rank, got {x.rank} and {indices.rank}")
        sizes = list(zip(indices.shape, x.shape, strict=True))
        del sizes[attrs["axis"]]
        for size, limit in sizes:
            require_at_most(size, limit, f"expected indices that fit {shape_text(x.shape)}, got {shape_text(indices.shape)}")
        return x.with_(shape=indices.shape)


class GatherND(Op, name="gather_nd"):
    """``result[b..., i...] = x[b..., indices[b..., i..., :]]``: the last dimension of the indices is one coordinate of ``x``.

    The first ``batch_dims`` dimensions are shared. Indices are as in :class:`Take`.
    """

    x: Operand[Tensor]
    indices: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"batch_dims": attributes.integer(default=0), **_WRAP}
    cost = op_costs.GATHERS
    may_fail = True
    narrow = Narrow.FOLLOWS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, indices = operands
        require_index(indices)
        batch = attrs["batch_dims"]
        depth = indices.shape[-1] if indices.rank else None
        if not isinstance(depth, int):
            raise RelaxError("expected indices whose last dimension is static")
        if not 0 <= batch < indices.rank:
            raise RelaxError(f"expected batch_dims in [0, {indices.rank}), got {batch}")
        if batch + depth > x.rank:
            raise RelaxError(f"expected batch_dims + {depth} of at most {x.rank}, got {batch + depth}")
        message = f"expected equal batch dimensions, got {shape_text(x.shape)} and {shape_text(indices.shape)}"
        require_same_shape(x.shape[:batch], indices.shape[:batch], message)
        return x.with_(shape=[*indices.shape[:-1], *x.shape[batch + depth :]])


class IndexCopy(Op, name="index_copy"):
    """``x`` with ``values`` at the positions ``indices`` of the dimension ``axis``: what :class:`Take` would read there.

    Of several values for one position the last stays. Indices are as in :class:`Take`. Where nothing reads ``x`` after it, as
    with a cache that a function updates, compiled code writes into the memory of ``x``.
    """

    x: Operand[Tensor]
    indices: Operand[Tensor]
    values: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=0), **_WRAP}
    cost = op_costs.MOVES
    may_fail = True

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, indices, values = operands
        require_index(indices)
        axis = normalize_axis(attrs["axis"], x.rank)
        if indices.rank != 1:
            raise RelaxError(f"expected indices of one dimension, got {shape_text(indices.shape)}")
        shape = [*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]]
        if values.dtype != x.dtype:
            raise RelaxError(f"expected values of dtype {x.dtype}, got {values.dtype}")
        message = f"expected values of shape {shape_text(shape)}, got {shape_text(values.shape)}"
        require_same_shape(values.shape, shape, message)
        return x


class ScatterElements(Op, name="scatter_elements"):
    """``result[indices[i][j]][j] = updates[i][j]`` for axis 0, likewise for others; what is not named is as in ``x``.

    ``reduction`` says what an update does to the element that is there: it takes its place (``update``), or both become their
    sum, product, smaller or larger one (``add``, ``mul``, ``min``, ``max``; a NaN stays). Updates of one element follow one
    another in the order of memory, and each result is rounded to the dtype. Indices are as in :class:`Take`; where they are of
    size one in other dimensions than the axis, they are the same along the updates' (whole rows).
    """

    x: Operand[Tensor]
    indices: Operand[Tensor]
    updates: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "axis": attributes.integer(default=0),
        "reduction": attributes.enum(_REDUCTIONS, default="update"),
        **_WRAP,
    }
    cost = op_costs.MOVES
    may_fail = True

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, indices, updates = operands
        require_index(indices)
        axis = normalize_axis(attrs["axis"], x.rank)
        if updates.dtype != x.dtype:
            raise RelaxError(f"expected updates of dtype {x.dtype}, got {updates.dtype}")
        if attrs["reduction"] in ("add", "mul") and x.dtype == boolean():
            raise RelaxError(f"expected numbers for the reduction {attrs['reduction']}, got i1")
        if indices.rank != x.rank:
            raise RelaxError(f"expected indices of {x.rank} dimensions, got {shape_text(indices.shape)}")
        shape = [*x.shape[:axis], indices.shape[axis], *x.shape[axis + 1 :]]
        given = [1 if size == 1 else whole for size, whole in zip(indices.shape, shape, strict=True)]
        require_same_shape(
            indices.shape, given, f"expected indices of shape {shape_text(shape)}, got {shape_text(indices.shape)}"
        )
        message = f"expected updates of shape {shape_text(shape)}, got {shape_text(updates.shape)}"
        require_same_shape(updates.shape, shape, message)
        return x


#: A tensor does not have as many elements, and sums of it and a size are no more than 64 bits hold.
_MOST_STRIDE = 1 << 62


class StridedSlice(SymbolicOp, name="strided_slice"):
    """``x[begin:end:step]`` along the listed axes. Begin and end may be symbolic; a negative one counts from the end.

    Constant bounds outside of the dimension are limited to it, as in Python, where its size is known or nothing is known of it;
    symbolic ones, and those of symbolic dimensions, are refused when the op runs. Steps are positive integers.
    """

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "axes": attributes.integers(),
        "begin": attributes.dims(),
        "end": attributes.dims(),
        "strides": attributes.integers(default=None),
    }
    cost = op_costs.SLICES
    image = image_rules.SLICE
    narrow = Narrow.FOLLOWS
    ties = dim_ties.BESIDE_AXES

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        axes, strides = _slice_axes(x, attrs)
        if not len(axes) == len(attrs["begin"]) == len(attrs["end"]):
            raise RelaxError("expected distinct axes with one begin, end and stride each")
        shape = list(x.shape)
        for axis, begin, end, stride in zip(axes, attrs["begin"], attrs["end"], strides, strict=True):
            shape[axis] = _slice_length(shape[axis], begin, end, stride, axis)
        return x.with_(shape=shape)


class DynamicStridedSlice(Op, name="dynamic_strided_slice"):
    """``x[begin:end:step]`` along the listed axes, with bounds that are elements of tensors: data decides the result's size.

    ``begin`` and ``end`` have an integer for each axis. As in Python a negative one counts from the end, those outside of the
    dimension are limited to it, and a slice that ends before it begins is empty. Steps are positive integers. ``match_cast``
    gives the result's size a name.
    """

    x: Operand[Tensor]
    begin: Operand[Tensor]
    end: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axes": attributes.integers(), "strides": attributes.integers(default=None)}
    cost = op_costs.SLICES
    narrow = Narrow.FOLLOWS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, *bounds = operands
        axes, _ = _slice_axes(x, attrs)
        for bound in bounds:
            if bound.dtype != ir.IntegerType.get_signless(64):
                raise RelaxError(f"expected slice bounds of i64, got {bound.dtype}")
            if bound.shape != (len(axes),):
                raise RelaxError(f"expected a begin and an end for each of {len(axes)} axes, got {shape_text(bound.shape)}")
        return x.with_(shape=[None if i in axes else d for i, d in enumerate(x.shape)])


def _slice_axes(x: TensorInfo, attrs: Attrs) -> tuple[list[int], list[int]]:
    """The axes of a slice counted from the start, with a stride each."""
    axes = [normalize_axis(a, x.rank, "axes") for a in attrs["axes"]]
    strides = attrs["strides"] or [1] * len(axes)
    if len(set(axes)) != len(axes) or len(axes) != len(strides):
        raise RelaxError("expected distinct axes with one begin, end and stride each")
    if any(s < 1 for s in strides):
        raise RelaxError(f"expected positive strides, got {strides}")
    if any(s > _MOST_STRIDE for s in strides):
        raise RelaxError(f"expected strides of at most 2**62, got {strides}")
    return axes, strides


def slice_bound(bound: Dim, size: Dim) -> Dim:
    """A slice bound counted from the start and limited to ``[0, size]``; symbolic bounds are taken to lie inside."""
    if bound is None or size is None or is_open(size):
        return bound if isinstance(bound, int) and bound == 0 else None
    if isinstance(bound, int) and bound >= NO_SIZE_REACHES:
        return size
    if isinstance(bound, int) and bound <= -NO_SIZE_REACHES:
        return 0
    if isinstance(bound, int) and bound < 0:
        bound = size + bound
    return min(max(bound, 0), size) if isinstance(bound, int) and isinstance(size, int) else bound


def _slice_length(size: Dim, begin: Dim, end: Dim, stride: int, axis: int) -> Dim:
    start, stop = slice_bound(begin, size), slice_bound(end, size)
    if start is None or stop is None:
        return None
    length = (stop - start + stride - 1) // stride
    limits = f"[{dim_text(start)}, {dim_text(stop)})"
    message = f"expected a slice inside of dimension {axis}, got {limits} of {dim_text(size)}"
    is_empty = isinstance(length, int) and length <= 0
    inner = ((0, stop), (start, size)) if is_empty else ((start, stop),)
    for low, high in ((0, start), *inner, (stop, size)):
        require_at_most(low, high, message)
    return 0 if is_empty else length
