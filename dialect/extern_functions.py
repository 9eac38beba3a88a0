"""Functions of other libraries, as compiled code and the reference semantics call them. Imports no MLIR.

Such a function is C::

    int f(const DLTensor *inputs, int32_t n_inputs, DLTensor *outputs, int32_t n_outputs, ...);

``DLTensor`` is DLPack's; all tensors are contiguous, row-major and in the memory of the host, ``strides`` are NULL. The outputs
are allocated, of the sizes that they have, and overlap nothing. What follows are the arguments of the op that are no tensors:
``int64_t`` for integers and truth values, ``double``, ``const char *``. It returns 0, or another number for an error.

It is trusted: nothing checks that it stays inside of its buffers, writes to no input, and keeps no pointer. So a module alone
calls none: a program has to name it (:func:`allow_extern`), as it does where it builds such a call, registers it for torch, or
says where the library is. Text that comes from elsewhere loads nothing.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .dtypes import dtype_name
from .errors import RelaxError

__all__ = ["SYMBOL", "ExternArgument", "allow_extern", "call_extern", "dl_type", "find_extern", "library_text"]

#: What names a C function.
SYMBOL = re.compile(r"[A-Za-z_]\w*", re.ASCII)

#: What follows the tensors; of a call that is not made yet, ``...`` for what a tensor without dimensions says.
ExternArgument = Any

Array = np.ndarray[Any, Any]

# DLPack's DLDataTypeCode, and bits.
_CODES: Mapping[str, tuple[int, int]] = {
    **{f"i{n}": (0, n) for n in (8, 16, 32, 64)},
    **{f"ui{n}": (1, n) for n in (8, 16, 32, 64)},
    **{f"f{n}": (2, n) for n in (16, 32, 64)},
    "bf16": (4, 16), "i1": (6, 8), "f8E4M3FN": (10, 8), "f8E5M2": (12, 8), "f8E8M0FNU": (14, 8),
}  # fmt: skip


class _Tensor(ctypes.Structure):
    """``DLTensor`` of DLPack 1."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


def dl_type(dtype: object) -> tuple[int, int]:
    """DLPack's code and bits of an element type or its name. Raises RelaxError for one that is no whole bytes."""
    found = _CODES.get(str(dtype))
    if found is None:
        raise RelaxError(f"expected elements of whole bytes for a function of another library, got {dtype}")
    return found


def library_text(library: str) -> str:
    """What errors call a library."""
    return f"'{library}'" if library else "this process"


@functools.cache
def _loaded(library: str) -> ctypes.CDLL:
    """A library, which stays loaded; the process itself without a name."""
    try:
        return ctypes.CDLL(library or None, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise RelaxError(f"expected the library '{library}', which cannot be loaded: {error}") from None


#: What this program has named: libraries and their functions.
_allowed: set[tuple[str, str]] = set()


def allow_extern(library: str, symbol: str) -> None:
    """Lets modules call a function of a library in this process."""
    _allowed.add((library, symbol))


def find_extern(library: str, symbol: str) -> int:
    """The address of a function.

    Raises:
        RelaxError: this program has not named it; the library cannot be loaded, or has no such function.
    """
    if (library, symbol) not in _allowed:
        raise RelaxError(
            f"expected a function that this program names, got '{symbol}' of {library_text(library)}, which the module alone "
            f"does: relaxir.Extern(library={library!r}, symbol={symbol!r}) says that it may be called"
        )
    try:
        return ctypes.cast(getattr(_loaded(library), symbol), ctypes.c_void_p).value or 0
    except AttributeError:
        raise RelaxError(f"expected the function '{symbol}' in {library_text(library)}, got none of that name") from None


def call_extern(address: int, inputs: Sequence[Array], outputs: Sequence[Array], arguments: Sequence[ExternArgument]) -> int:
    """Calls a function and gives what it returns.

    Args:
        address: where it is.
        inputs, outputs: arrays, contiguous and row-major.
        arguments: what follows.
    """
    given = [_argument(a) for a in arguments]
    types = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, *map(type, given)]
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(address)
    shapes: list[Any] = []
    read, written = _tensors(inputs, shapes), _tensors(outputs, shapes)
    return function(read, len(inputs), written, len(outputs), *given)


def _tensors(arrays: Sequence[Array], shapes: list[Any]) -> Any:
    """An array of DLTensors; ``shapes`` keeps what they point to."""
    found = (_Tensor * max(len(arrays), 1))()
    for tensor, array in zip(found, arrays, strict=False):
        shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        shapes.append(shape)
        code, bits = dl_type(dtype_name(array.dtype))
        place = ctypes.addressof(shape)
        tensor.data, tensor.device_type, tensor.device_id = array.ctypes.data, 1, 0
        tensor.ndim, tensor.code, tensor.bits, tensor.lanes = array.ndim, code, bits, 1
        tensor.shape, tensor.strides, tensor.byte_offset = place, None, 0
    return found


def _argument(value: ExternArgument) -> Any:
    if isinstance(value, str):
        return ctypes.c_char_p(value.encode())
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(int(value))
