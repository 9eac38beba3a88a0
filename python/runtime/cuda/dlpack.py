"""DLPack's capsules, read and made by ctypes: memory of a device travels between libraries without a copy.

The protocol: a capsule named ``dltensor`` holds a ``DLManagedTensor``; who takes it renames it ``used_dltensor`` and calls the
deleter when done. Source: https://dmlc.github.io/dlpack, version 0.8, ABI of ``DLManagedTensor``.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["DLPACK_CUDA", "DLPACK_EMULATED", "exported", "imported"]

#: kDLCUDA, and kDLExtDev for memory of an emulated device, which no other library may touch.
DLPACK_CUDA, DLPACK_EMULATED = 2, 12

# kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLBool.
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_BFLOAT = 4
_KINDS = {code: kind for kind, code in _CODES.items()}

_FRESH, _USED = b"dltensor", b"used_dltensor"


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("dtype", _DataType), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


_python = ctypes.pythonapi
_get = _python.PyCapsule_GetPointer
_get.restype, _get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_rename = _python.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_new = _python.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

# What is lent to others, by the address of what describes it: alive until they call the deleter.
_lent: dict[int, tuple[_Managed, Any, object]] = {}


class _Owner:
    """Calls the deleter of what was taken when nobody needs it any more."""

    def __init__(self, managed: _Managed, address: int):
        self._managed, self._address = managed, address

    def __del__(self) -> None:
        if self._managed.deleter:
            self._managed.deleter(self._address)


def imported(capsule: Any) -> tuple[int, np.dtype[Any], tuple[int, ...], object]:
    """Address, dtype and shape of what a capsule holds, and what keeps it alive.

    Raises:
        ValueError: the capsule was taken before, or its elements are not contiguous.
        TypeError: NumPy has no such dtype.
    """
    place = _get(capsule, _FRESH)
    managed = _Managed.from_address(place)
    _rename(capsule, _USED)
    owner, tensor = _Owner(managed, place), managed.tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides and not _is_contiguous(shape, [tensor.strides[i] for i in range(tensor.ndim)]):
        raise ValueError("its elements have gaps between them")
    return (tensor.data or 0) + tensor.byte_offset, _dtype(tensor.dtype), shape, owner


def exported(address: int, dtype: np.dtype[Any], shape: tuple[int, ...], device: tuple[int, int], owner: object) -> Any:
    """A capsule of memory that ``owner`` keeps alive. Raises BufferError when DLPack has no such dtype."""
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    tensor = _Tensor(address, *device, len(shape), _data_type(dtype), sizes, None, 0)
    managed = _Managed(tensor, None, _delete)
    place = ctypes.addressof(managed)
    _lent[place] = managed, sizes, owner
    return _new(place, _FRESH, ctypes.cast(_unclaimed, ctypes.c_void_p))


@_Deleter
def _delete(place: int) -> None:
    _lent.pop(place, None)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _unclaimed(capsule: int) -> None:
    """Frees what a capsule holds that nobody took."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))
    valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
    if valid(capsule, _FRESH):
        _lent.pop(get(capsule, _FRESH) or 0, None)


def _is_contiguous(shape: tuple[int, ...], strides: list[int]) -> bool:
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return 0 in shape
        expected *= size
    return True


def _data_type(dtype: np.dtype[Any]) -> _DataType:
    if dtype == ml_dtypes.bfloat16:
        return _DataType(_BFLOAT, 16, 1)
    if dtype.kind not in _CODES or dtype.isbuiltin != 1:
        raise BufferError(f"DLPack has no dtype for {dtype}")
    return _DataType(_CODES[dtype.kind], 8 * dtype.itemsize, 1)


def _dtype(found: _DataType) -> np.dtype[Any]:
    if (found.code, found.bits) == (_BFLOAT, 16):
        return np.dtype(ml_dtypes.bfloat16)
    if found.code not in _KINDS or found.lanes != 1 or found.bits % 8:
        raise TypeError(f"NumPy has no dtype for DLPack's ({found.code}, {found.bits}, {found.lanes})")
    return np.dtype(f"{_KINDS[found.code]}{found.bits // 8}")
