"""The functions of libcuda that the emulator has, with their arguments, attributes of devices, and results."""

from __future__ import annotations

import ctypes
from typing import Any

from .findings import KINDS

__all__ = ["ARGUMENTS", "NAMES", "OF_KIND", "Result"]

_INT, _UINT, _SIZE, _U64, _P, _FLOAT = (
    ctypes.c_int,
    ctypes.c_uint,
    ctypes.c_size_t,
    ctypes.c_uint64,
    ctypes.c_void_p,
    ctypes.c_float,
)
_DEVICE, _STREAM, _POINTER = _INT, _P, _U64

#: By name, the types of the arguments; all return CUresult.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "cuInit": (_UINT,),
    "cuDriverGetVersion": (_P,),
    "cuDeviceGetCount": (_P,),
    "cuDeviceGet": (_P, _INT),
    "cuDeviceGetName": (_P, _INT, _DEVICE),
    "cuDeviceGetAttribute": (_P, _INT, _DEVICE),
    "cuDeviceTotalMem_v2": (_P, _DEVICE),
    "cuDevicePrimaryCtxRetain": (_P, _DEVICE),
    "cuDevicePrimaryCtxRelease_v2": (_DEVICE,),
    "cuCtxSetCurrent": (_P,),
    "cuCtxGetCurrent": (_P,),
    "cuCtxSynchronize": (),
    "cuModuleLoadData": (_P, _P),
    "cuModuleUnload": (_P,),
    "cuModuleGetFunction": (_P, _P, ctypes.c_char_p),
    "cuFuncSetAttribute": (_P, _INT, _INT),
    "cuFuncGetAttribute": (_P, _INT, _P),
    "cuLaunchKernel": (_P, _UINT, _UINT, _UINT, _UINT, _UINT, _UINT, _UINT, _STREAM, _P, _P),
    "cuMemAlloc_v2": (_P, _SIZE),
    "cuMemFree_v2": (_POINTER,),
    "cuMemGetInfo_v2": (_P, _P),
    "cuMemAllocAsync": (_P, _SIZE, _STREAM),
    "cuMemFreeAsync": (_POINTER, _STREAM),
    "cuMemAllocHost_v2": (_P, _SIZE),
    "cuMemFreeHost": (_P,),
    "cuMemcpyHtoD_v2": (_POINTER, _P, _SIZE),
    "cuMemcpyDtoH_v2": (_P, _POINTER, _SIZE),
    "cuMemcpyHtoDAsync_v2": (_POINTER, _P, _SIZE, _STREAM),
    "cuMemcpyDtoHAsync_v2": (_P, _POINTER, _SIZE, _STREAM),
    "cuMemcpyDtoDAsync_v2": (_POINTER, _POINTER, _SIZE, _STREAM),
    "cuMemsetD8Async": (_POINTER, ctypes.c_ubyte, _SIZE, _STREAM),
    "cuStreamCreate": (_P, _UINT),
    "cuStreamDestroy_v2": (_STREAM,),
    "cuStreamSynchronize": (_STREAM,),
    "cuStreamWaitEvent": (_STREAM, _P, _UINT),
    "cuStreamIsCapturing": (_STREAM, _P),
    "cuEventCreate": (_P, _UINT),
    "cuEventRecord": (_P, _STREAM),
    "cuEventSynchronize": (_P,),
    "cuEventElapsedTime": (_P, _P, _P),
    "cuEventDestroy_v2": (_P,),
    "cuStreamBeginCapture_v2": (_STREAM, _INT),
    "cuStreamEndCapture": (_STREAM, _P),
    "cuGraphInstantiateWithFlags": (_P, _P, ctypes.c_ulonglong),
    "cuGraphLaunch": (_P, _STREAM),
    "cuGraphExecDestroy": (_P,),
    "cuGraphDestroy": (_P,),
    "cuTensorMapEncodeTiled": (_P, _INT, _UINT, _U64, _P, _P, _P, _P, _INT, _INT, _INT, _INT),
    "cuGetErrorName": (_INT, _P),
    "cuGetErrorString": (_INT, _P),
    "cuPointerGetAttribute": (_P, _INT, _POINTER),
}


class Result:
    """Values of CUresult."""

    SUCCESS = 0
    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    INVALID_DEVICE = 101
    NO_BINARY_FOR_GPU = 209
    INVALID_PTX = 218
    INVALID_HANDLE = 400
    NOT_FOUND = 500
    ILLEGAL_ADDRESS = 700
    LAUNCH_TIMEOUT = 702
    ILLEGAL_INSTRUCTION = 715
    MISALIGNED_ADDRESS = 716
    LAUNCH_FAILED = 719
    NOT_SUPPORTED = 801
    STREAM_CAPTURE_UNSUPPORTED = 900
    STREAM_CAPTURE_INVALIDATED = 901
    UNKNOWN = 999


#: By value, name and meaning.
NAMES: dict[int, tuple[bytes, bytes]] = {
    0: (b"CUDA_SUCCESS", b"no error"),
    1: (b"CUDA_ERROR_INVALID_VALUE", b"invalid argument"),
    2: (b"CUDA_ERROR_OUT_OF_MEMORY", b"out of memory"),
    101: (b"CUDA_ERROR_INVALID_DEVICE", b"invalid device ordinal"),
    209: (b"CUDA_ERROR_NO_BINARY_FOR_GPU", b"no kernel image is available for execution on the device"),
    218: (b"CUDA_ERROR_INVALID_PTX", b"a PTX JIT compilation failed"),
    400: (b"CUDA_ERROR_INVALID_HANDLE", b"invalid resource handle"),
    500: (b"CUDA_ERROR_NOT_FOUND", b"named symbol not found"),
    700: (b"CUDA_ERROR_ILLEGAL_ADDRESS", b"an illegal memory access was encountered"),
    702: (b"CUDA_ERROR_LAUNCH_TIMEOUT", b"the launch timed out and was terminated"),
    715: (b"CUDA_ERROR_ILLEGAL_INSTRUCTION", b"an illegal instruction was encountered"),
    716: (b"CUDA_ERROR_MISALIGNED_ADDRESS", b"misaligned address"),
    719: (b"CUDA_ERROR_LAUNCH_FAILED", b"unspecified launch failure"),
    801: (b"CUDA_ERROR_NOT_SUPPORTED", b"operation not supported"),
    900: (b"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", b"operation not permitted when stream is capturing"),
    901: (b"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", b"operation failed due to a previous error during capture"),
    999: (b"CUDA_ERROR_UNKNOWN", b"unknown error"),
}

#: What a finding is for those who see only the result.
OF_KIND = dict.fromkeys(KINDS, Result.LAUNCH_FAILED) | {
    "bounds": Result.ILLEGAL_ADDRESS,
    "alignment": Result.MISALIGNED_ADDRESS,
    "deadlock": Result.LAUNCH_TIMEOUT,
    "timeout": Result.LAUNCH_TIMEOUT,
    "launch": Result.INVALID_VALUE,
    "tensor map": Result.INVALID_VALUE,
}
