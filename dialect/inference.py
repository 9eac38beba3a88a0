"""Shape and dtype rules that several op families share. Each raises RelaxError with the text of the diagnostic."""

from __future__ import annotations

from collections.abc import Sequence

from .bindings import ir
from .errors import RelaxError
from .size_relations import known_first, require_same, shape_text
from .struct_info import TensorInfo
from .symbolic import Dim

__all__ = [
    "boolean",
    "broadcast_shapes",
    "is_float",
    "is_integer",
    "normalize_axes",
    "normalize_axis",
    "require_float",
    "require_held",
    "require_integer",
    "require_known",
    "require_number",
    "require_rank",
    "require_same_dtype",
    "shape_text",
]


def boolean() -> ir.Type:
    """The dtype of truth values, ``i1``."""
    return ir.IntegerType.get_signless(1)


def is_float(dtype: ir.Type) -> bool:
    """Whether a dtype is floating point (any width)."""
    return isinstance(dtype, ir.FloatType)


def is_integer(dtype: ir.Type) -> bool:
    """Whether a dtype is an integer or boolean."""
    return isinstance(dtype, ir.IntegerType)


def require_float(info: TensorInfo, what: str = "operand") -> None:
    """Refuses what is not floating point."""
    if not is_float(info.dtype):
        raise RelaxError(f"expected a floating-point {what}, got {info.dtype}")


def require_integer(info: TensorInfo, what: str = "operand") -> None:
    """Refuses what is neither an integer nor a truth value."""
    if not is_integer(info.dtype):
        raise RelaxError(f"expected an integer {what}, got {info.dtype}")


def require_index(info: TensorInfo) -> None:
    """Refuses indices that are no integers, truth values among them: a mask names other elements than its numbers do."""
    if not is_integer(info.dtype) or info.dtype == boolean():
        raise RelaxError(f"expected an integer index tensor, got {info.dtype}")


def require_number(info: TensorInfo, what: str = "operand") -> None:
    """Refuses truth values: arithmetic on ``i1`` means different things in NumPy, PyTorch and MLIR."""
    if info.dtype == boolean() or not (is_float(info.dtype) or is_integer(info.dtype)):
        raise RelaxError(f"expected a number as {what}, got {info.dtype}")


def require_held(value: float, dtype: ir.Type, what: str = "value") -> None:
    """Refuses a number that an integer dtype cannot hold exactly; floats hold any, rounded."""
    if not isinstance(dtype, ir.IntegerType):
        return
    low, high = integer_range(dtype)
    if not (low <= value <= high and value == int(value)):
        raise RelaxError(f"expected a {what} that {dtype} can hold, got {value}")


def integer_range(dtype: ir.IntegerType) -> tuple[int, int]:
    """The smallest and the largest integer of a dtype; a truth value is 0 or 1."""
    if dtype.width == 1 or dtype.is_unsigned:
        return 0, 2**dtype.width - 1
    return -(2 ** (dtype.width - 1)), 2 ** (dtype.width - 1) - 1


def require_known(info: TensorInfo, what: str = "result") -> None:
    """Refuses dimensions of which nothing is known, where they are what the op is told."""
    if None in info.shape:
        raise RelaxError(f"expected {what} of known dimensions, got tensor<{info}>")


def require_same_dtype(*infos: TensorInfo) -> None:
    """Refuses a second dtype."""
    for info in infos[1:]:
        if info.dtype != infos[0].dtype:
            raise RelaxError(f"expected operands of one dtype, got {infos[0].dtype} and {info.dtype}")


def require_rank(info: TensorInfo, rank: int, what: str = "operand") -> None:
    """Refuses another rank."""
    if info.rank != rank:
        raise RelaxError(f"expected {what} of rank {rank}, got {info.rank}")


def normalize_axis(axis: int, rank: int, name: str = "axis") -> int:
    """A negative axis counts from the end."""
    if not -rank <= axis < rank:
        raise RelaxError(f"expected {name} in [{-rank}, {rank}), got {axis}")
    return axis % rank


def normalize_axes(axes: Sequence[int] | None, rank: int, name: str = "axis") -> list[int]:
    """Sorted distinct axes; None is all of them."""
    if axes is None:
        return list(range(rank))
    normal = [normalize_axis(a, rank, name) for a in axes]
    if len(set(normal)) != len(normal):
        raise RelaxError(f"expected distinct {name}, got {list(axes)}")
    return sorted(normal)


def broadcast_shapes(*shapes: Sequence[Dim]) -> list[Dim]:
    """NumPy broadcasting. Two different symbols are an error; an unknown dimension is as large as what is not 1 beside it.

    Source: https://numpy.org/doc/stable/user/basics.broadcasting.html
    """
    rank = max((len(s) for s in shapes), default=0)
    padded = [[1] * (rank - len(s)) + list(s) for s in shapes]
    result: list[Dim] = []
    for column in zip(*padded, strict=True):
        result.append(_broadcast_dim(column, shapes))
    return result


def _broadcast_dim(column: Sequence[Dim], shapes: Sequence[Sequence[Dim]]) -> Dim:
    long = [d for d in column if d != 1]
    if not long:
        return 1
    size = known_first(*long)
    for dim in long:
        if dim is not size:
            require_same(dim, size, f"expected broadcastable shapes, got {' and '.join(shape_text(s) for s in shapes)}")
    return size
