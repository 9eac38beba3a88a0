"""Tensors of any library as NumPy arrays and back, without a copy; imports no other library itself."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..dialect.array_spec import ALIGNMENT, ArraySpec, dtype_text
from ..dialect.checks import expect_no_mask
from ..dialect.errors import RelaxError

__all__ = [
    "ALIGNMENT",
    "TORCH_BITS",
    "Array",
    "ArraySpec",
    "address",
    "aligned_block",
    "aligned_empty",
    "array_at",
    "as_reals",
    "dtype_text",
    "is_complex",
    "is_torch",
    "reals_spec",
    "to_numpy",
    "to_torch",
]

Array = NDArray[Any]

# Each look-up of a name in a module takes as long as what the name does.
_addressof, _from_buffer, _empty, _BYTES = ctypes.addressof, ctypes.c_char.from_buffer, np.empty, np.dtype(np.uint8)

#: NumPy has no dtype of these torch dtypes; the bits travel as an integer of the same width.
TORCH_BITS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


#: DLPack device types of host memory: kDLCPU, kDLCUDAHost, kDLROCMHost.
_HOST_DEVICES = (1, 3, 11)


def address(array: Array) -> int:
    """Where an array's first element lies."""
    try:
        # A third of the time of the interface, which makes a dictionary.
        return _addressof(_from_buffer(cast(Any, array)))
    except (TypeError, ValueError, BufferError):  # read-only, empty, or of a dtype that buffers do not know
        return array.__array_interface__["data"][0]


def aligned_empty(dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
    """An uninitialised contiguous array at a multiple of :data:`ALIGNMENT` bytes.

    Raises:
        RelaxError: there is not that much memory.
    """
    return aligned_block(dtype, tuple(shape), math.prod(shape) * dtype.itemsize)[0]


def aligned_block(dtype: np.dtype[Any], shape: tuple[int, ...], nbytes: int) -> tuple[Array, int]:
    """:func:`aligned_empty` of so many bytes, and where it lies: asking for it again would take as long as all of this."""
    try:
        block = _empty(nbytes + ALIGNMENT, _BYTES)
        start = _addressof(_from_buffer(cast(Any, block)))
        offset = -start % ALIGNMENT
        return np.ndarray(shape, dtype, block, offset), start + offset
    except (MemoryError, ValueError, OverflowError):
        raise RelaxError(
            f"expected memory for {dtype_text(dtype)}{list(shape)}, got none: {nbytes} bytes cannot be had"
        ) from None


def array_at(start: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """A contiguous array over memory at an address, which somebody else keeps alive."""
    nbytes = math.prod(shape) * dtype.itemsize
    if not nbytes:
        return _empty(shape, dtype)
    return np.ndarray(shape, dtype, cast(Any, (ctypes.c_char * nbytes).from_address(start)))


def is_complex(dtype: np.dtype[Any]) -> bool:
    """Whether numbers have an imaginary part."""
    return dtype.kind == "c"


def reals_spec(spec: ArraySpec) -> ArraySpec:
    """Of complex numbers as code takes them: real and imaginary parts, along a last dimension of two; else as it is."""
    if not is_complex(spec.dtype):
        return spec
    return ArraySpec(np.dtype(f"f{spec.dtype.itemsize // 2}"), (*spec.shape, 2))


def as_reals(array: Array) -> Array:
    """An array as :func:`reals_spec` says: the same memory, where that is contiguous."""
    if not is_complex(array.dtype):
        return array
    spec = reals_spec(ArraySpec.of(array))
    return array.reshape(-1).view(spec.dtype).reshape(spec.shape)


def to_numpy(value: object, what: str) -> Array:
    """A tensor as an array that shares its memory.

    Args:
        value: a NumPy array or scalar, a torch tensor, or anything with ``__dlpack__`` or ``__array_interface__``.
        what: how errors name it, e.g. ``input 'x'``.

    Raises:
        RelaxError: it is none of these, lies on another device, or has a layout or dtype that NumPy cannot see.
    """
    expect_no_mask(value, what)
    if isinstance(value, np.ndarray):
        return cast("Array", value)
    if isinstance(value, np.generic):
        return np.asarray(cast("np.generic[Any]", value))
    if is_torch(value):
        return _from_torch(value, what)
    try:
        found = _foreign(value, what)
    except RelaxError:
        raise
    except Exception as error:  # the protocols run code of the value's own
        raise RelaxError(f"{what}: expected a tensor that NumPy can see, got {type(value).__name__}: {error}") from error
    if found is not None:
        return found
    raise RelaxError(f"{what}: expected an array (numpy, torch, DLPack or __array_interface__), got {type(value).__name__}")


def _foreign(value: object, what: str) -> Array | None:
    """An array of a library that speaks one of the protocols; None when it does not."""
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, what)
    return np.asarray(value) if hasattr(value, "__array_interface__") else None


def is_torch(value: object) -> bool:
    """Whether this is a torch tensor; false when torch was never imported, for then nobody can hold one."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _from_torch(tensor: Any, what: str) -> Array:
    torch = sys.modules["torch"]
    if tensor.device.type != "cpu":
        raise RelaxError(f"{what}: expected a tensor in host memory, got one on '{tensor.device}'")
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        nested = "nested, " if tensor.is_nested else ""
        raise RelaxError(f"{what}: expected a dense tensor, got {nested}layout {tensor.layout} and dtype {tensor.dtype}")
    plain = _with_memory(tensor.detach().resolve_neg(), what)
    name = str(plain.dtype).removeprefix("torch.")
    try:
        if name not in TORCH_BITS:
            return plain.numpy()
        return plain.view(getattr(torch, TORCH_BITS[name])).numpy().view(_ml_dtype(name))
    except (TypeError, RuntimeError) as error:
        raise RelaxError(f"{what}: expected a tensor that NumPy can see, got {tensor.dtype}: {error}") from None


def _with_memory(tensor: Any, what: str) -> Any:
    """The tensor, of zeros where there are none in memory. One may have let go of its storage, which NumPy does not see."""
    torch = sys.modules["torch"]
    if not tensor.numel():
        return tensor
    if torch._is_zerotensor(tensor):
        return torch.zeros_like(tensor, memory_format=torch.contiguous_format)
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    needed = (tensor.storage_offset() + last + 1) * tensor.element_size()
    try:
        held = tensor.untyped_storage().nbytes() if tensor.data_ptr() else 0
    except RuntimeError:  # within transformations of functions
        return tensor
    if held < needed:
        raise RelaxError(f"{what}: expected a tensor with {needed} bytes of memory, got one that has {held}")
    return tensor


def to_torch(array: Array, what: str) -> Any:
    """An array as a torch tensor of the same memory, for callers that hold torch. Raises RelaxError when it lacks the dtype."""
    torch = sys.modules["torch"]
    name = array.dtype.name
    try:
        if name not in TORCH_BITS:
            return torch.from_numpy(array)
        return torch.from_numpy(array.view(TORCH_BITS[name])).view(getattr(torch, name))
    except TypeError:
        raise RelaxError(f"{what}: expected a dtype that torch has, got {dtype_text(array.dtype)}") from None


def _ml_dtype(name: str) -> np.dtype[Any]:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))


def _from_dlpack(value: Any, what: str) -> Array:
    kind, number = value.__dlpack_device__()
    if int(kind) not in _HOST_DEVICES:
        raise RelaxError(f"{what}: expected a tensor in host memory, got one on DLPack device ({int(kind)}, {int(number)})")
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        if hasattr(value, "__array_interface__"):
            return np.asarray(value)
        raise RelaxError(f"{what}: expected a tensor that NumPy can see, got {type(value).__name__}: {error}") from None
