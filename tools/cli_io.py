"""Files of the command line: ``.npy`` in, ``.npz`` out, without unpickling."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from ..dialect.errors import RelaxError
from ..weights.files import open_regular, os_errors, replacing

__all__ = ["read_npy", "write_npz"]

_MAGIC = b"\x93NUMPY"


def read_npy(path: str, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array from a file; bf16 and other types that NumPy saves as raw bytes become ``dtype`` again.

    Raises:
        RelaxError: the file is missing, no array, or one of Python objects.
    """
    with open_regular(path) as file, os_errors("read", path):
        head = file.read(len(_MAGIC))
        if head != _MAGIC:
            raise RelaxError(f"'{path}': expected an array in .npy form, got a file that begins with {head!r}")
        file.seek(0)
        array = _read_array(file, path)
    is_raw = array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == dtype.itemsize
    return array.view(dtype) if is_raw else array


def _read_array(file: BinaryIO, path: str) -> np.ndarray[Any, Any]:
    try:
        return np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError, SyntaxError, MemoryError) as error:
        raise RelaxError(f"'{path}': expected an array in .npy form, got {error}") from None


def write_npz(path: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Writes arrays under their names; the file appears when it is complete. Raises RelaxError when it cannot."""
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
