"""Affine quantization per tensor, per channel or per block, ``real = (stored - zero_point) * scale``, and tables of values.

A scale or zero point is a scalar, a vector with one element per index of ``axis``, or a tensor of the operand's rank whose
dimensions divide the operand's: one element per block. For ``[k, n]`` in groups of 32 along k it is ``[k / 32, n]``.

Four-bit integers have a byte each, except where ``pack_nibbles`` put several of them in a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .. import attributes, dim_ties, image_rules, op_costs
from ..bindings import ir
from ..errors import RelaxError
from ..inference import is_float, normalize_axis, require_float, require_integer, require_number, require_rank
from ..layouts import DATA_LAYOUTS, KERNEL_LAYOUTS, reordered
from ..op import Attrs, Op, Operand, Result, Tensor
from ..packed_layout import NIBBLES, PLANES, PackedLayout, Word
from ..packed_weights import require_columns, require_elements, require_panels
from ..size_relations import require_multiple, require_same, require_same_shape, shape_text
from ..struct_info import TensorInfo
from ..symbolic import Dim
from .linear_algebra import columns_of_group
from .nn import _convolved

__all__ = [
    "Dequantize",
    "LookUp",
    "PackNibbles",
    "PackedQuantizedConv2D",
    "Quantize",
    "QuantizedConv2D",
    "QuantizedGroupedMatMul",
    "QuantizedMatMul",
    "UnpackNibbles",
    "UnpackPlanes",
]

#: The most products that are summed in 32 bits: 2**31 / (128 * 255) = 65793, where an element is an i8 and a weight at most 255
#: from its zero point. Sums in between may wrap.
LONGEST_GROUP = 1 << 16


def _check_parameters(x: TensorInfo, scale: TensorInfo, zero_point: TensorInfo, axis: int) -> None:
    require_float(scale, "scale")
    require_number(zero_point, "zero point")
    channels = [x.shape[normalize_axis(axis, x.rank)]] if x.rank else []
    for info, what in ((scale, "scale"), (zero_point, "zero point")):
        wanted = " or ".join(dict.fromkeys(["[]", shape_text(channels), f"blocks of {shape_text(x.shape)}"]))
        _check_parameter(info, x, channels, f"expected a {what} of shape {wanted}, got {shape_text(info.shape)}")


def _check_parameter(parameter: TensorInfo, x: TensorInfo, channels: list[Dim], message: str) -> None:
    """Refuses what is neither a scalar, nor one per channel, nor one per block of elements."""
    if not parameter.rank:
        return
    if parameter.rank != x.rank:
        require_same_shape(parameter.shape, channels, message)
        return
    for blocks, size in zip(parameter.shape, x.shape, strict=True):
        _check_blocks(blocks, size, message)


def _check_blocks(blocks: Dim, size: Dim, message: str) -> None:
    """Refuses a dimension that does not fall into that many equal blocks; where either is unknown, into blocks of one."""
    if blocks == 1 or blocks == size:
        return
    if not isinstance(blocks, int) or not isinstance(size, int):
        require_same(blocks, size, message)
        return
    if not blocks:
        raise RelaxError(message)
    require_multiple(size, blocks, message)


class Quantize(Op, name="quantize"):
    """``clip(round(x / scale) + zero_point)`` to the range of ``dtype``; halves round to even.

    Computed in f32, in f64 when an operand is f64; a NaN has no defined result.
    """

    x: Operand[Tensor]
    scale: Operand[Tensor]
    zero_point: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=-1), "dtype": attributes.dtype()}
    image = image_rules.AXIS
    ties = dim_ties.QUANTIZED

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, scale, zero_point = operands
        require_float(x)
        require_integer(zero_point, "zero point")
        _check_parameters(x, scale, zero_point, attrs["axis"])
        result = x.with_(dtype=attrs["dtype"])
        require_integer(result, "dtype")
        require_number(result, "dtype")
        return result


class Dequantize(Op, name="dequantize"):
    """``(x - zero_point) * scale`` of integers, in ``out_dtype``, by default the scale's.

    The difference is exact, the product is in f32 (f64 for an f64 scale) and rounded once.

    A floating-point zero point is subtracted behind the scale, as GGUF does with the minimum of a block:
    ``x * scale - zero_point``, of integers or floats, with the product and the difference in f32 (f64), each rounded.
    """

    x: Operand[Tensor]
    scale: Operand[Tensor]
    zero_point: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=-1), "out_dtype": attributes.dtype(default=None)}
    grows = "x"
    image = image_rules.AXIS
    ties = dim_ties.QUANTIZED

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, scale, zero_point = operands
        if not is_float(zero_point.dtype):
            require_integer(x)
        require_number(x)
        _check_parameters(x, scale, zero_point, attrs["axis"])
        result = x.with_(dtype=attrs["out_dtype"] or scale.dtype)
        require_float(result, "out_dtype")
        return result


class LookUp(Op, name="look_up"):
    """``table[codes]``: codes are unsigned integers, and the table has an entry for each that there can be."""

    codes: Operand[Tensor]
    table: Operand[Tensor]
    result: Result[Tensor]
    grows = "codes"
    ties = dim_ties.BESIDE_TABLE

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        codes, table = operands
        dtype = codes.dtype
        if not isinstance(dtype, ir.IntegerType) or not dtype.is_unsigned or dtype.width not in (4, 8):
            raise RelaxError(f"expected codes of ui4 or ui8, got {dtype}")
        require_float(table, "table")
        wanted = [1 << dtype.width]
        require_same_shape(
            table.shape, wanted, f"expected a table of shape {shape_text(wanted)}, got {shape_text(table.shape)}"
        )
        return codes.with_(dtype=table.dtype)


class PackNibbles(Op, name="pack_nibbles"):
    """Four-bit integers in words of unsigned ``dtype``: of those in a word, the first along ``axis`` has the lowest bits.

    What the last word has room for beyond the last element is 0. With a ``layout`` the operand is a weight in such panels, the
    axis its rows, and the layout says where a row is in its word; of words of one or two bits the others are not kept.
    """

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "axis": attributes.integer(default=-1),
        "dtype": attributes.dtype(),
        "layout": attributes.packed_layout(default=None),
    }
    cost = op_costs.MOVES
    ties = dim_ties.WORDED

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        if not _is_four_bits(x.dtype):
            raise RelaxError(f"expected a four-bit integer operand, got {x.dtype}")
        axis, word = _axis(x, attrs["axis"]), _word(attrs["dtype"], "dtype", attrs["layout"])
        _check_layout(attrs["layout"], word, x, axis)
        shape = [_words(d, word.count) if i == axis else d for i, d in enumerate(x.shape)]
        return x.with_(shape=shape, dtype=attrs["dtype"])


class UnpackNibbles(Op, name="unpack_nibbles"):
    """The inverse of :class:`PackNibbles`: words to ``size`` integers of ``dtype`` along ``axis``."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "axis": attributes.integer(default=-1),
        "dtype": attributes.dtype(),
        "size": attributes.integer(),
        "layout": attributes.packed_layout(default=None),
    }
    cost = op_costs.MOVES
    packed = "x"
    ties = dim_ties.WORDED

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, dtype, size = operands[0], attrs["dtype"], attrs["size"]
        word = _word(x.dtype, "operand", attrs["layout"])
        if not _is_four_bits(dtype):
            raise RelaxError(f"expected dtype i4 or ui4, got {dtype}")
        axis = _axis(x, attrs["axis"])
        _check_layout(attrs["layout"], word, x, axis)
        shape = shape_text(x.shape)
        message = f"expected a size with {word.count} elements in each word of axis {axis}, got {size} for {shape}"
        if size < 0:
            raise RelaxError(message)
        require_same(x.shape[axis], _words(size, word.count), message)
        return x.with_(shape=[size if i == axis else d for i, d in enumerate(x.shape)], dtype=dtype)


class UnpackPlanes(Op, name="unpack_planes"):
    """Bytes of a packed weight whose four lowest bits and whose others are in words of their own: ``low + 16 * high``.

    ``low`` is what :class:`PackNibbles` makes with a layout ``tile 16, u4x8``, and ``high`` with ``layout``, as ``tile 16,
    rows 8, u2x16``, of as many rows: the result has ``size``.
    """

    low: Operand[Tensor]
    high: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"layout": attributes.packed_layout(), "size": attributes.integer()}
    cost = op_costs.MOVES
    packed = "high"

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        low, high = operands
        layout, size = attrs["layout"], attrs["size"]
        if layout.high_bits is None:
            raise RelaxError(f"expected a layout such as 'tile 16, rows {NIBBLES.count}, {PLANES[2]}', got '{layout}'")
        for info, what, word in ((low, "low", NIBBLES), (high, "high", layout.high_bits)):
            if str(info.dtype) != f"ui{word.width}":
                raise RelaxError(f"expected {what} of ui{word.width}, got {info.dtype}")
            require_rank(info, layout.rank, what)
            _check_shape(info, [low.shape[0], _words(size, word.count), layout.tile], what)
        return low.with_(shape=[low.shape[0], size, layout.tile], dtype=ir.IntegerType.get_unsigned(8))


def _is_four_bits(dtype: ir.Type) -> bool:
    return isinstance(dtype, ir.IntegerType) and dtype.width == NIBBLES.bits


def _word(dtype: ir.Type, what: str, layout: PackedLayout | None = None) -> Word:
    """Four-bit integers in a word of a dtype, or those of a layout of high bits."""
    if not isinstance(dtype, ir.IntegerType) or not dtype.is_unsigned or dtype.width not in (8, 16, 32, 64):
        raise RelaxError(f"expected ui8, ui16, ui32 or ui64 as {what}, got {dtype}")
    high = None if layout is None else layout.high_bits
    if high is not None and high.width == dtype.width:
        return high
    return Word(NIBBLES.bits, dtype.width // NIBBLES.bits)


def _check_layout(layout: PackedLayout | None, word: Word, x: TensorInfo, axis: int) -> None:
    """Raises RelaxError where a layout is not that of the tensor, of its rows in words."""
    if layout is None:
        return
    if layout.word != word:
        raise RelaxError(f"expected a layout of words {word}, got '{layout}'")
    if x.rank != layout.rank or axis != 1 or x.shape[-1] != layout.tile:
        raise RelaxError(f"expected rows, axis 1, of a weight packed as '{layout}', got axis {axis} of {shape_text(x.shape)}")


def _axis(x: TensorInfo, axis: int) -> int:
    if not x.rank:
        raise RelaxError("expected an operand of rank 1 or more, got a scalar")
    return normalize_axis(axis, x.rank)


def _words(size: Dim, per_word: int) -> Dim:
    return None if size is None else (size + per_word - 1) // per_word


class QuantizedMatMul(Op, name="quantized_matmul"):
    """A product of integers whose sums of a group of rows are scaled: ``x[..., m, k]`` times ``n`` columns, ``[..., m, n]``.

    With ``k / groups`` rows in each group ``g``::

        y[m, n] = sum over g: x_scale[m, g] * scale[g, n] * (sum over k in g: x[m, k] * weight[k, n] - x_sum[m, g] * zero[g, n])

    The inner sums are exact, up to ``LONGEST_GROUP`` rows; the outer one is in f32, rounded once to ``out_dtype``. ``x`` is i8,
    ``x_scale`` f32 and ``x_sum`` i32, the sums of its groups: ``[..., m, groups]``. A single scale, ``[..., m, 1]``, is that of
    all groups of a row.

    With ``parts``, what is of rows has one more dimension in front, of parts of the rows, whose products are added: ``x`` is
    ``[parts, ..., m, k]``, and the result ``[..., m, n]``.

    The weight is of i8 or ui8, or ``ui32`` in a layout of words, with 2 or 4 rows side by side; see
    :class:`~relaxir.dialect.packed_layout.PackedLayout`. ``scale`` is f32, f16 or bf16 ``[panels, groups, tile]``, ``zero`` a
    scalar or of that shape, at least 8 bits wide. An offset of the layout is in the weight and in ``zero`` alike.
    """

    x: Operand[Tensor]
    x_scale: Operand[Tensor]
    x_sum: Operand[Tensor]
    weight: Operand[Tensor]
    scale: Operand[Tensor]
    zero: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "layout": attributes.packed_layout(),
        "n": attributes.integer(),
        "out_dtype": attributes.dtype(default=None),
        "parts": attributes.boolean(default=False),
    }
    packed = "weight"
    cost = op_costs.PRODUCT

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, x_scale, x_sum, weight, scale, zero = operands
        parts = int(attrs["parts"])
        if x.rank <= parts:
            raise RelaxError(f"expected x of at least {parts + 1} dimensions, got {x.rank}")
        require_rank(scale, 3, "scale")
        for info, what, wanted in (
            (x, "x", "i8"),
            (x_scale, "x_scale", "f32"),
            (x_sum, "x_sum", "i32"),
        ):
            if str(info.dtype) != wanted:
                raise RelaxError(f"expected {what} of {wanted}, got {info.dtype}")
        if str(scale.dtype) not in ("f32", "f16", "bf16"):
            raise RelaxError(f"expected scale of f32, f16 or bf16, got {scale.dtype}")
        require_integer(zero, "zero")
        require_number(zero, "zero")
        layout, groups = attrs["layout"], scale.shape[1]
        k = x.shape[-1] if x.rank else None
        if not isinstance(k, int) or not isinstance(groups, int) or not 0 < k <= LONGEST_GROUP * groups or k % groups:
            raise RelaxError(
                f"expected groups of at most {LONGEST_GROUP} of k, got {shape_text([groups])} for {shape_text(x.shape)}"
            )
        is_of_row = x_scale.rank > 0 and x_scale.shape[-1] == 1
        _check_shape(x_scale, [*x.shape[:-1], 1 if is_of_row else groups], "x_scale")
        _check_shape(x_sum, [*x.shape[:-1], groups], "x_sum")
        _check_integers(weight, layout, k // groups)
        _check_shape(scale, [scale.shape[0], groups, layout.tile], "scale")
        require_columns(scale.shape[0], layout, attrs["n"])
        _check_shape(weight, layout.shape(k, attrs["n"]), "weight")
        if zero.rank:
            _check_shape(zero, scale.shape, "zero")
        out_dtype = attrs["out_dtype"] or x_scale.dtype
        result = x_scale.with_(shape=[*x.shape[parts:-1], attrs["n"]], dtype=out_dtype)
        require_float(result, "out_dtype")
        return result


class QuantizedGroupedMatMul(Op, name="quantized_grouped_matmul"):
    """:class:`QuantizedMatMul` of rows ``x[m, k]`` in groups, each with ``n / groups`` columns of its own: ``[m, n / groups]``.

    The rows of a group end in front of row ``ends[group]``, as those of :class:`~.linear_algebra.GroupedMatMul` do.
    """

    x: Operand[Tensor]
    x_scale: Operand[Tensor]
    x_sum: Operand[Tensor]
    weight: Operand[Tensor]
    scale: Operand[Tensor]
    zero: Operand[Tensor]
    ends: Operand[Tensor]
    result: Result[Tensor]
    attrs = QuantizedMatMul.attrs
    packed = "weight"
    cost = op_costs.PRODUCT

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        *factors, ends = operands
        require_rank(factors[0], 2 + int(attrs["parts"]))
        result = QuantizedMatMul.infer(factors, attrs)
        return result.with_(shape=[result.shape[0], columns_of_group(attrs["n"], ends)])


def _check_shape(info: TensorInfo, shape: Sequence[Dim], what: str) -> None:
    require_same_shape(info.shape, shape, f"expected {what} of shape {shape_text(shape)}, got {shape_text(info.shape)}")


def _check_integers(weight: TensorInfo, layout: PackedLayout, every: int) -> None:
    """Raises RelaxError for a weight of other elements, or groups that are no whole number of vectors of rows."""
    wanted = ("ui32",) if layout.word is not None else ("i8", "ui8")
    if str(weight.dtype) not in wanted:
        raise RelaxError(f"expected a weight of {' or '.join(wanted)} for layout '{layout}', got {weight.dtype}")
    if layout.rows not in (2, 4):
        raise RelaxError(f"expected a layout of 2 or 4 rows, got '{layout}'")
    if every % layout.step:
        raise RelaxError(f"expected groups of a multiple of {layout.step} rows, got {every}")


class QuantizedConv2D(Op, name="quantized_conv2d"):
    """:class:`Conv2D` of integers: the sums of products of ``x[n, c, h, w]`` and ``weight[o, c / groups, kh, kw]``, in i32.

    Both are of eight bits, with or without a sign. What is beyond the image is ``zero``, a scalar of its dtype: the zero point
    of ``x``, so that what that adds to a sum is the same everywhere, that many times the sum of a filter. Sums are exact, up
    to ``LONGEST_GROUP`` products.
    """

    x: Operand[Tensor]
    weight: Operand[Tensor]
    zero: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "strides": attributes.integers(default=(1, 1), length=2),
        "padding": attributes.integers(default=(0, 0, 0, 0), length=4),
        "dilation": attributes.integers(default=(1, 1), length=2),
        "groups": attributes.integer(default=1),
        "data_layout": attributes.enum(DATA_LAYOUTS, default="NCHW"),
        "kernel_layout": attributes.enum(KERNEL_LAYOUTS, default="OIHW"),
    }
    cost = op_costs.CONVOLUTION
    image = image_rules.CONVOLUTION

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, weight, zero = operands
        for info, what in ((x, "x"), (weight, "a weight")):
            if str(info.dtype) not in ("i8", "ui8"):
                raise RelaxError(f"expected {what} of i8 or ui8, got {info.dtype}")
        if zero.rank or zero.dtype != x.dtype:
            raise RelaxError(f"expected a scalar {x.dtype} as zero, got {zero}")
        result = _convolved(x, weight, attrs)
        _, *window = reordered(weight.shape, attrs["kernel_layout"], "OIHW")
        if None not in window and prod(d for d in window if isinstance(d, int)) > LONGEST_GROUP:
            raise RelaxError(f"expected filters of at most {LONGEST_GROUP} elements, got {shape_text(window)}")
        return result.with_(dtype=ir.IntegerType.get_signless(32))


class PackedQuantizedConv2D(Op, name="packed_quantized_conv2d"):
    """:class:`QuantizedConv2D` of ``x[n, h, w, c]`` with filters that :class:`PackWeight` packed: ``[n, h', w', channels]``.

    Packed is the matrix of filters ``[kh * kw * c / groups, channels]``, of the layout HWIO with the first three dimensions
    as one, ``rows`` channels of which are side by side: channels of a group are a multiple of these. An image in one group may
    have fewer, and ``zero`` in their place. Panels do not span groups.
    """

    x: Operand[Tensor]
    weight: Operand[Tensor]
    zero: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "layout": attributes.packed_layout(),
        "channels": attributes.integer(),
        "kernel_size": attributes.integers(length=2),
        **{name: attr for name, attr in QuantizedConv2D.attrs.items() if not name.endswith("layout")},
    }
    cost = op_costs.PACKED_CONVOLUTION
    packed = "weight"

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, weight, zero = operands
        channels, (kh, kw), groups = attrs["channels"], attrs["kernel_size"], attrs["groups"]
        layout = require_elements(attrs["layout"])
        require_panels(weight, layout, channels, "channels")
        taps = weight.shape[1]
        if min(kh, kw) < 1 or not isinstance(taps, int) or taps % (kh * kw):
            raise RelaxError(f"expected filters of {kh} by {kw} elements, got {shape_text(weight.shape)}")
        if groups > 1 and channels // groups % layout.tile:
            raise RelaxError(
                f"expected groups of whole panels, got {channels} channels in {groups} groups, panels of {layout.tile}"
            )
        require_rank(x, 4)
        inside, most = x.shape[-1], groups * (taps // (kh * kw)) * layout.rows
        message = f"expected at most {layout.rows - 1} channels less than the {most} of the filters, got {shape_text(x.shape)}"
        if groups > 1:
            require_same(inside, most, message)
        elif not isinstance(inside, int) or not most - layout.rows < inside <= most:
            raise RelaxError(message)
        filters = weight.with_(shape=[kh, kw, most // max(1, groups), channels])
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        return QuantizedConv2D.infer([x.with_(shape=[*x.shape[:-1], most]), filters, zero], {**attrs, **layouts})
