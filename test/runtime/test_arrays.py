"""Tensors of other libraries as arrays: the same memory, or an error that names the argument."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from relaxir import RelaxError
from relaxir.weights.arrays import ArraySpec, address, aligned_empty, to_numpy, to_torch

TORCH = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.bool,
         torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64]  # fmt: skip


class Interface:
    """Only ``__array_interface__``."""

    def __init__(self, array: np.ndarray):
        self.__array_interface__ = array.__array_interface__
        self._array = array


class Dlpack:
    """Only DLPack."""

    def __init__(self, array: np.ndarray):
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class OnGpu(Dlpack):
    """DLPack memory that NumPy cannot see."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


@pytest.mark.parametrize("dtype", TORCH)
def test_torch_there_and_back_shares_memory(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[0, 1], [2, 3]]).to(dtype)
    array = to_numpy(tensor, "x")
    assert address(array) == tensor.data_ptr()
    assert array.astype(np.float64).tolist() == tensor.to(torch.float64).tolist()
    back = to_torch(array, "y")
    assert back.dtype == dtype
    assert back.data_ptr() == tensor.data_ptr()


def test_torch_views_and_parameters() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    assert to_numpy(tensor.T, "x").strides == (4, 12)
    assert to_numpy(tensor.to(torch.bfloat16).T, "x").tolist() == tensor.T.tolist()
    assert to_numpy(torch.nn.Parameter(tensor), "x").tolist() == tensor.tolist()
    assert to_numpy(torch.tensor(2.0), "x").shape == ()


@pytest.mark.parametrize("kind", [Interface, Dlpack])
def test_protocols_share_memory(kind: type) -> None:
    array = np.arange(6.0).reshape(2, 3)
    got = to_numpy(kind(array), "x")
    assert (got.tolist(), address(got)) == (array.tolist(), address(array))


def test_numpy_scalars() -> None:
    assert ArraySpec.of(to_numpy(np.float32(3), "x")) == ArraySpec(np.dtype(np.float32), ())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.5, r"x: expected an array \(numpy, torch, DLPack or __array_interface__\), got float"),
        ([1.0], "got list"),
        (None, "got NoneType"),
        (torch.zeros(1, device="meta"), "x: expected a tensor in host memory, got one on 'meta'"),
        (torch.eye(2).to_sparse(), "x: expected a dense tensor, got layout torch.sparse_coo"),
        (torch.ones(1, dtype=torch.complex64).conj(), "x: expected a tensor that NumPy can see, got torch.complex64"),
        (np.ma.masked_array([1.0], [True]), "x: expected an array without mask, got a MaskedArray"),
        (OnGpu(np.zeros(1)), r"x: expected a tensor in host memory, got one on DLPack device \(2, 0\)"),
    ],
)
def test_refused(value: object, message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        to_numpy(value, "x")


def test_no_torch_dtype() -> None:
    with pytest.raises(RelaxError, match="y: expected a dtype that torch has, got i4"):
        to_torch(np.zeros(2, ml_dtypes.int4), "y")


def test_aligned_memory() -> None:
    for shape in ((), (0, 3), (5,), (100, 1000)):
        array = aligned_empty(np.dtype(np.float32), shape)
        assert array.shape == shape
        assert address(array) % 64 == 0
        assert array.flags.c_contiguous
    for shape in ((1 << 60,), (1 << 40, 1 << 40)):
        with pytest.raises(RelaxError, match=r"expected memory for f32\[\d+.*\], got none: \d+ bytes cannot be had"):
            aligned_empty(np.dtype(np.float32), shape)
