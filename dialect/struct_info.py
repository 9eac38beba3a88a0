"""What Relax calls struct info, on builtin tensor types: shape with symbolic dimensions, dtype and virtual device.

The extras live in a dictionary encoding, present only when needed::

    tensor<?x64xf16, {sym = ["n"], vdevice = "cuda:0"}>     # one expression per `?`, in order
    tensor<4x4xf32>                                         # nothing to add: no encoding
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from . import symbolic
from .bindings import ir
from .context_table import ContextTable
from .errors import RelaxError
from .symbolic import Dim, Expr

__all__ = [
    "TensorInfo",
    "check_type",
    "element_bytes",
    "is_tensor",
    "same_info",
    "tensor_type",
    "vdevice_of",
    "with_vdevice",
    "without_encoding",
]

DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class TensorInfo:
    """A tensor type taken apart.

    Attributes:
        shape: one dimension each: an int, a symbolic expression, or None when unknown.
        dtype: the MLIR element type.
        vdevice: the virtual device, e.g. ``"cuda:0"``, or None when not placed.
    """

    shape: tuple[Dim, ...]
    dtype: ir.Type
    vdevice: str | None = None

    @staticmethod
    def of(value: ir.Value | ir.Type) -> TensorInfo:
        """Reads a ranked tensor type, or the type of a value. Raises RelaxError for anything else or a broken encoding."""
        return _info_of(value if isinstance(value, ir.Type) else value.type)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def type(self) -> ir.RankedTensorType:
        """The MLIR type, with an encoding only when there is something to say. Raises RelaxError for a size it cannot hold."""
        for dim in self.shape:
            if isinstance(dim, int) and not 0 <= dim < 2**63:
                raise RelaxError(f"expected dimensions from 0 to 2**63 - 1, got {dim}")
            if isinstance(dim, Expr):
                symbolic.require_bounded(dim)
        sizes = [d if isinstance(d, int) else DYNAMIC for d in self.shape]
        symbols = [d for d in self.shape if not isinstance(d, int)]
        entries: dict[str, ir.Attribute] = {}
        if any(d is not None for d in symbols):
            entries["sym"] = ir.ArrayAttr.get([ir.StringAttr.get(symbolic.dim_text(d)) for d in symbols])
        if self.vdevice is not None:
            entries["vdevice"] = ir.StringAttr.get(self.vdevice)
        return ir.RankedTensorType.get(sizes, self.dtype, ir.DictAttr.get(entries) if entries else None)

    def with_(self, *, shape: Sequence[Dim] | None = None, dtype: ir.Type | None = None) -> TensorInfo:
        """A copy with another shape or dtype."""
        return replace(self, shape=self.shape if shape is None else tuple(shape), dtype=dtype or self.dtype)

    def __str__(self) -> str:
        return f"{'x'.join([symbolic.dim_text(d) for d in self.shape] + [str(self.dtype)])}"


def tensor_type(shape: Sequence[Dim | str], dtype: ir.Type, vdevice: str | None = None) -> ir.RankedTensorType:
    """Builds a tensor type; a string dimension is parsed (``"n * 2"``)."""
    dims = tuple(symbolic.parse(d) if isinstance(d, str) else d for d in shape)
    return TensorInfo(dims, dtype, vdevice).type


def is_tensor(value: ir.Value | ir.Type) -> bool:
    """Whether the value, or the type, is a ranked tensor."""
    return isinstance(value if isinstance(value, ir.Type) else value.type, ir.RankedTensorType)


def same_info(left: TensorInfo, right: TensorInfo) -> bool:
    """Whether two tensors agree in rank, dtype and every dimension known on both sides; devices are not compared."""
    return (
        left.dtype == right.dtype
        and left.rank == right.rank
        and all(symbolic.same(a, b) for a, b in zip(left.shape, right.shape, strict=True))
    )


def vdevice_of(value: ir.Value | ir.Type) -> str | None:
    """The virtual device of a tensor, or None when it has none or is no tensor."""
    type_ = value if isinstance(value, ir.Type) else value.type
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is None:
        return None
    return TensorInfo.of(type_).vdevice


def with_vdevice(type_: ir.RankedTensorType, vdevice: str | None) -> ir.RankedTensorType:
    """The same tensor type on another virtual device (None: not placed)."""
    return replace(TensorInfo.of(type_), vdevice=vdevice).type


def without_encoding(type_: ir.Type) -> ir.Type:
    """The plain builtin tensor type that linalg and bufferization expect; other types unchanged."""
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is None:
        return type_
    return ir.RankedTensorType.get(list(type_.shape), type_.element_type)


def _info_of(type_: ir.Type) -> TensorInfo:
    info = object.__new__(TensorInfo)  # a frozen class sets fields in a way that takes twice as long as all else here
    fields = info.__dict__
    fields["shape"], fields["vdevice"] = _KNOWN.of(type_)
    fields["dtype"] = type_.element_type  # pyright: ignore[reportAttributeAccessIssue]
    return info


def _read(type_: ir.Type | ir.Attribute) -> tuple[tuple[Dim, ...], str | None]:
    """Shape and virtual device."""
    if not isinstance(type_, ir.RankedTensorType):
        raise RelaxError(f"expected a ranked tensor, got {type_}")
    _check_bytes(type_)
    sizes = list(type_.shape)
    if type_.encoding is None:
        return tuple(None if s == DYNAMIC else s for s in sizes), None
    symbols, vdevice = _read_encoding(type_, sizes.count(DYNAMIC))
    exprs = iter(symbols)
    return tuple(next(exprs) if s == DYNAMIC else s for s in sizes), vdevice


# Reading a type takes 10 to 40 us, and verifying an op reads several each time; from here 0.5. Element types are asked for
# again, as they would keep their context alive.
_KNOWN = ContextTable(_read)


def element_bytes(dtype: ir.Type) -> int:
    """Bytes that an element takes: whole ones, eight for what is no number."""
    width = dtype.width if isinstance(dtype, ir.IntegerType | ir.FloatType) else 64
    return -(-width // 8)


def check_type(type_: ir.Type) -> None:
    """Raises RelaxError when a tensor type carries an encoding that is not ours or does not fit its shape, or is too large."""
    if not isinstance(type_, ir.RankedTensorType):
        return
    _check_bytes(type_)
    if type_.encoding is not None:
        _read_encoding(type_, list(type_.shape).count(DYNAMIC))


def _check_bytes(type_: ir.RankedTensorType) -> None:
    """Code computes offsets, and strides of what is empty, with 64 bits and a sign."""
    sizes = [s for s in type_.shape if s not in (DYNAMIC, 0)]
    if math.prod(sizes) * element_bytes(type_.element_type) >= 2**63:
        raise RelaxError(f"expected a tensor of less than 2**63 bytes, got {type_}")


def _read_encoding(type_: ir.RankedTensorType, dynamic: int) -> tuple[list[Dim], str | None]:
    if not isinstance(type_.encoding, ir.DictAttr):
        raise RelaxError(f"expected a dictionary encoding with 'sym' or 'vdevice', got {type_.encoding}")
    entries = {item.name: item.attr for item in type_.encoding}
    unknown = sorted(set(entries) - {"sym", "vdevice"})
    if unknown:
        raise RelaxError(f"expected only 'sym' and 'vdevice' in a tensor encoding, got '{unknown[0]}'")
    vdevice = entries.get("vdevice")
    if vdevice is not None and not isinstance(vdevice, ir.StringAttr):
        raise RelaxError(f"expected a string for 'vdevice', got {vdevice}")
    return _read_symbols(entries.get("sym"), dynamic), None if vdevice is None else vdevice.value


def _read_symbols(sym: ir.Attribute | None, dynamic: int) -> list[Dim]:
    if sym is None:
        return [None] * dynamic
    if not isinstance(sym, ir.ArrayAttr) or not all(isinstance(s, ir.StringAttr) for s in sym):
        raise RelaxError(f"expected an array of strings for 'sym', got {sym}")
    if len(sym) != dynamic:
        raise RelaxError(f"expected one 'sym' expression for each of {dynamic} dynamic dimensions, got {len(sym)}")
    dims = [symbolic.parse(s.value) for s in sym]
    for text, dim in zip(sym, dims, strict=True):
        if not (dim is None or isinstance(dim, Expr)):
            raise RelaxError(f"expected a symbolic expression in 'sym', got the constant {text}")
    return dims
