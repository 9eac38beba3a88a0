"""Types of the torch dialect as ours: value tensors as tensor infos, affine shape expressions as symbolic dimensions."""

from __future__ import annotations

import re

from ..dialect.analysis.affine import affine_dim
from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.struct_info import TensorInfo
from ..dialect.symbolic import Dim

__all__ = ["affine_dims", "common_dtype", "is_number", "is_tensor_list", "tensor_info", "tensor_shape"]

_VTENSOR = re.compile(r"^!torch\.vtensor<\[([^]]*)\],([^,>]+(?:<[^>]*>)?)>$")
_NUMBERS = ("!torch.int", "!torch.float", "!torch.bool", "!torch.number", "!torch.none", "!torch.str", "!torch.Device",
            "!torch.Generator", "!torch.list<int>", "!torch.list<float>", "!torch.list<bool>", "!torch.list<str>",
            "!torch.list<optional<int>>")  # fmt: skip


def tensor_info(type_: ir.Type) -> TensorInfo | None:
    """The shape and dtype of a ``!torch.vtensor``, dynamic dimensions unknown; None for another type.

    Raises:
        RelaxError: the element type is one that relax does not compute with, such as complex numbers.
    """
    shape = tensor_shape(type_)
    return None if shape is None else TensorInfo(shape, _dtype(_VTENSOR.sub(r"\2", str(type_))))


def tensor_shape(type_: ir.Type) -> tuple[int | None, ...] | None:
    """The shape of a ``!torch.vtensor`` of any elements; None for another type."""
    found = _VTENSOR.match(str(type_))
    return None if found is None else tuple(None if d.strip() == "?" else int(d) for d in found[1].split(",") if d.strip())


def is_number(type_: ir.Type) -> bool:
    """Whether the type is of a Python number, string, None, or a list of them: known when importing, never a relax value."""
    return str(type_) in _NUMBERS


def is_tensor_list(type_: ir.Type) -> bool:
    """Whether the type is a list of tensors, some perhaps absent."""
    return str(type_).startswith("!torch.list<") and not is_number(type_)


def affine_dims(map_: ir.AffineMap, symbols: list[Dim]) -> list[Dim]:
    """The results of an affine map over symbols."""
    return [affine_dim(e, (), symbols) for e in map_.results]


def common_dtype(operands: list[tuple[ir.Type, int | None]]) -> ir.Type:
    """The dtype in which torch compares or combines operands, each a dtype and a rank (None: a Python number).

    Tensors with dimensions decide, unless one without, or a number, is of a higher kind (bool < integer < float).
    Source: https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
    """
    ranks = (lambda rank: rank, lambda rank: rank == 0, lambda rank: rank is None)
    groups = [[dtype for dtype, rank in operands if wanted(rank)] for wanted in ranks]
    promoted = [_promoted(group) for group in groups if group]
    if not promoted:
        raise RelaxError("expected an operand")
    result = promoted[0]
    for found in promoted[1:]:
        if _kind(found) > _kind(result):
            result = _promoted([result, found])
    return result


def _promoted(dtypes: list[ir.Type]) -> ir.Type:
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = _promoted_pair(result, dtype)
    return result


def _promoted_pair(a: ir.Type, b: ir.Type) -> ir.Type:
    if a == b:
        return a
    low, high = sorted((a, b), key=lambda t: (_kind(t), t.width))
    if _kind(low) != _kind(high):
        return high
    if low.width == high.width and _kind(low) == 2:
        return ir.F32Type.get()  # f16 with bf16
    unsigned = [t for t in (low, high) if isinstance(t, ir.IntegerType) and t.is_unsigned]
    if len(unsigned) == 1 and unsigned[0].width >= high.width:
        return ir.IntegerType.get_signless(min(2 * high.width, 64))
    return high


def _kind(dtype: ir.Type) -> int:
    if isinstance(dtype, ir.FloatType):
        return 2
    return 0 if isinstance(dtype, ir.IntegerType) and dtype.width == 1 else 1


def _dtype(text: str) -> ir.Type:
    if text.startswith("si"):
        return ir.IntegerType.get_signless(int(text[2:]))
    if text.startswith("complex") or text.startswith("!"):
        raise RelaxError(f"expected tensors of real numbers, got {text}")
    return ir.Type.parse(text)
