"""Memory of sizes that data decides, which host code allocates and frees itself; what a call leaves that fails is given back.

Host code leaves at the first check that fails, and then frees nothing. So it allocates and frees by two functions of ours,
which call the driver's and note what there is. Only entries with such sizes call them.
"""

from __future__ import annotations

import contextlib
import ctypes

from ...dialect.errors import RelaxError
from .device import Device

__all__ = ["Allocations"]

_ALLOCATE, _FREE = "cuMemAllocAsync", "cuMemFreeAsync"
_Allocate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_Free = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p)


class Allocations:
    """What one executable's code has allocated and not freed; its calls take turns.

    Attributes:
        functions: where ours are, by the names of the driver's.
    """

    def __init__(self, device: Device):
        driver = device.driver
        self._allocate, self._free = _Allocate(driver.address(_ALLOCATE)), _Free(driver.address(_FREE))
        self._held: dict[int, int | None] = {}
        self._ours = _Allocate(self._allocated), _Free(self._freed)
        first, second = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in self._ours)
        self.functions = {_ALLOCATE: first, _FREE: second}

    def _allocated(self, place: int, nbytes: int, stream: int | None) -> int:
        result = int(self._allocate(place, nbytes, stream))
        if not result:
            self._held[ctypes.c_uint64.from_address(place).value] = stream
        return result

    def _freed(self, address: int, stream: int | None) -> int:
        self._held.pop(address, None)
        return int(self._free(address, stream))

    def give_back(self) -> None:
        """Frees what is left, behind what the streams have to do by now."""
        for address, stream in self._held.items():
            with contextlib.suppress(RelaxError):
                self._free(address, stream)
        self._held.clear()
