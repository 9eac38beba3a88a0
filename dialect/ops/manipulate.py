"""Changes of shape and order that compute nothing."""

from __future__ import annotations

from collections.abc import Sequence

from .. import attributes, dim_ties, image_rules, op_costs
from ..errors import RelaxError
from ..inference import broadcast_shapes, normalize_axes, normalize_axis, require_known, require_same_dtype
from ..op import Attrs, Narrow, Op, Operand, Result, SymbolicOp, Tensor
from ..size_relations import known_first, require_at_most, require_multiple, require_same, require_same_shape, shape_text
from ..struct_info import TensorInfo
from ..symbolic import Dim, multiply_all

__all__ = ["BroadcastTo", "Concat", "ExpandDims", "Flip", "PermuteDims", "Repeat", "Reshape", "Split", "Squeeze", "Tile"]


#: Every part is a result of the op; nothing sensible has more, and an absurd number must not exhaust memory.
_MOST_SECTIONS = 1 << 16


class PermuteDims(Op, name="permute_dims"):
    """Reorders dimensions: dimension ``i`` of the result is ``axes[i]`` of the operand. Absent axes reverse."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axes": attributes.integers(default=None)}
    cost = op_costs.MOVES
    narrow = Narrow.FOLLOWS
    ties = dim_ties.PERMUTED

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        axes = (
            list(range(x.rank))[::-1] if attrs["axes"] is None else [normalize_axis(a, x.rank, "axes") for a in attrs["axes"]]
        )
        if sorted(axes) != list(range(x.rank)):
            raise RelaxError(f"expected a permutation of {x.rank} axes, got {attrs['axes']}")
        return x.with_(shape=[x.shape[a] for a in axes])


class Reshape(SymbolicOp, name="reshape"):
    """The elements in row-major order under the result's shape, of which one dimension may be unknown.

    The unknown one is what the others leave of the number of elements. Where those multiply to 0 it could be any size, and the
    call is refused, compiled or evaluated, as in PyTorch.
    """

    x: Operand[Tensor]
    result: Result[Tensor]
    cost = op_costs.FREE
    image = image_rules.RESHAPE
    narrow = Narrow.FOLLOWS
    ties = dim_ties.REGROUPED

    @staticmethod
    def check(operands: list[TensorInfo], results: list[TensorInfo], attrs: Attrs) -> list[TensorInfo]:
        (x,), (result,) = operands, results
        require_same_dtype(x, result)
        if result.shape.count(None) > 1:
            raise RelaxError(f"expected a result with at most one unknown dimension, got tensor<{result}>")
        message = f"expected as many elements as {shape_text(x.shape)}, got {shape_text(result.shape)}"
        before, after = multiply_all(x.shape), multiply_all(d for d in result.shape if d is not None)
        if None not in result.shape:
            require_same(before, after, message)
            return results
        require_at_most(1, after, message)
        require_multiple(before, after, message)
        rest = None if before is None or after is None or after == 0 else before // after
        return [result.with_(shape=[rest if d is None else d for d in result.shape])]


class BroadcastTo(SymbolicOp, name="broadcast_to"):
    """The operand repeated to the result's shape by NumPy's broadcasting rule."""

    x: Operand[Tensor]
    result: Result[Tensor]
    cost = op_costs.MOVES
    narrow = Narrow.FOLLOWS
    ties = dim_ties.BROADCAST

    @staticmethod
    def check(operands: list[TensorInfo], results: list[TensorInfo], attrs: Attrs) -> None:
        (x,), (result,) = operands, results
        require_same_dtype(x, result)
        require_known(result)
        message = f"expected a shape that {shape_text(x.shape)} broadcasts to, got {shape_text(result.shape)}"
        require_same_shape(broadcast_shapes(x.shape, result.shape), result.shape, message)


class ExpandDims(Op, name="expand_dims"):
    """Inserts dimensions of size one; ``axis`` counts in the result."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integers()}
    cost = op_costs.FREE
    image = image_rules.LINES
    narrow = Narrow.FOLLOWS
    ties = dim_ties.REGROUPED

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        rank = x.rank + len(attrs["axis"])
        axes = normalize_axes(attrs["axis"], rank)
        dims = iter(x.shape)
        return x.with_(shape=[1 if i in axes else next(dims) for i in range(rank)])


class Squeeze(Op, name="squeeze"):
    """Removes dimensions of size one: the listed ones, or when ``axis`` is absent all that the type says are 1."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integers(default=None)}
    cost = op_costs.FREE
    image = image_rules.LINES
    narrow = Narrow.FOLLOWS
    ties = dim_ties.SQUEEZED

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        if attrs["axis"] is None:
            require_known(x, "operand")
        axes = [i for i, d in enumerate(x.shape) if d == 1] if attrs["axis"] is None else normalize_axes(attrs["axis"], x.rank)
        for axis in axes:
            require_same(x.shape[axis], 1, f"expected a dimension of size 1 at axis {axis}, got {shape_text(x.shape)}")
        return x.with_(shape=[d for i, d in enumerate(x.shape) if i not in axes])


class Concat(Op, name="concat"):
    """Two tensors one after the other along an axis. More are a chain, which lowering takes as one."""

    lhs: Operand[Tensor]
    rhs: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=0)}
    cost = op_costs.MOVES
    image = image_rules.AXIS
    narrow = Narrow.FOLLOWS
    ties = dim_ties.JOINED

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        lhs, rhs = operands
        require_same_dtype(lhs, rhs)
        axis = normalize_axis(attrs["axis"], lhs.rank)
        left, right = ([d for i, d in enumerate(info.shape) if i != axis] for info in (lhs, rhs))
        message = f"expected shapes equal but for axis {axis}, got {shape_text(lhs.shape)} and {shape_text(rhs.shape)}"
        if lhs.rank != rhs.rank:
            raise RelaxError(message)
        require_same_shape(left, right, message)
        a, b = lhs.shape[axis], rhs.shape[axis]
        shape = [known_first(d, e) for d, e in zip(lhs.shape, rhs.shape, strict=True)]
        shape[axis] = None if a is None or b is None else a + b
        return lhs.with_(shape=shape)


class Split(Op, name="split"):
    """Equal parts along an axis, as many as there are results."""

    x: Operand[Tensor]
    parts: Sequence[Result[Tensor]]
    attrs = {"sections": attributes.integer(), "axis": attributes.integer(default=0)}
    cost = op_costs.FREE
    image = image_rules.AXIS
    narrow = Narrow.FOLLOWS
    ties = dim_ties.BESIDE_AXIS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> list[TensorInfo]:
        (x,) = operands
        axis, sections = normalize_axis(attrs["axis"], x.rank), attrs["sections"]
        size = x.shape[axis]
        message = f"expected a dimension that divides into {sections} equal parts, got {shape_text(x.shape)}"
        if sections < 1:
            raise RelaxError(message)
        if sections > _MOST_SECTIONS:
            raise RelaxError(f"expected at most {_MOST_SECTIONS} sections, got {sections}")
        require_multiple(size, sections, message)
        part = None if size is None else size // sections
        return [x.with_(shape=[part if i == axis else d for i, d in enumerate(x.shape)])] * sections


class Flip(Op, name="flip"):
    """Reverses the order along an axis."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer()}
    cost = op_costs.MOVES
    image = image_rules.AXIS
    narrow = Narrow.FOLLOWS
    ties = dim_ties.BESIDE_AXIS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        normalize_axis(attrs["axis"], operands[0].rank)
        return operands[0]


class Repeat(Op, name="repeat"):
    """Each element ``repeats`` times in a row along an axis; never, which leaves nothing, for 0."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"repeats": attributes.integer(), "axis": attributes.integer()}
    cost = op_costs.MOVES
    image = image_rules.AXIS
    narrow = Narrow.FOLLOWS
    ties = dim_ties.REPEATED

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        axis, repeats = normalize_axis(attrs["axis"], x.rank), attrs["repeats"]
        if repeats < 0:
            raise RelaxError(f"expected a count of repeats that is not negative, got {repeats}")
        return x.with_(shape=[_times(d, repeats) if i == axis else d for i, d in enumerate(x.shape)])


class Tile(Op, name="tile"):
    """The whole tensor repeated along each dimension, ``repeats[i]`` times; 0 leaves nothing."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"repeats": attributes.integers()}
    cost = op_costs.MOVES
    narrow = Narrow.FOLLOWS
    ties = dim_ties.TILED

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        repeats = attrs["repeats"]
        if len(repeats) != x.rank or any(r < 0 for r in repeats):
            raise RelaxError(f"expected {x.rank} counts of repeats that are not negative, got {repeats}")
        return x.with_(shape=[_times(d, r) for d, r in zip(x.shape, repeats, strict=True)])


def _times(dim: Dim, factor: int) -> Dim:
    return None if dim is None else dim * factor
