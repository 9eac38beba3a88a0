"""The run time's part of the ``cuda`` backend: code that has kernels, weights and state on a device, calls that launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...lowering.manifest import Manifest
from ...lowering.manifest_specs import EntrySpec, StateSpec
from ...weights.arrays import Array
from ..backend import CallableEntry, Runtime
from ..calls import as_argument
from ..cpu import CpuRuntime
from ..library import Library
from ..scratch import ScratchPool
from ..state import State
from .code import CUDA_SYMBOLS, CudaLibrary, CudaSpec
from .device import Device, device_number, emulated_device, gpu
from .entry import DeviceEntry, HeldWeight
from .memory import uploaded
from .state import DeviceState

__all__ = ["CudaRuntime"]

_EMULATED = "emulated"


class CudaRuntime(Runtime):
    """Host code as on the CPU, and kernels on a device, which is asked for when something is to be put there.

    So code compiles, prepares weights and is saved where there is no GPU.
    """

    def __init__(self, device: str | None = None):
        self._name = "cuda:0" if device is None else device
        if self._name != _EMULATED:
            device_number(self._name)
        self._host = CpuRuntime()

    @property
    def files(self) -> Mapping[str, bool]:
        return self._host.files

    def here(self) -> Mapping[str, Any]:
        """As on the CPU; the emulator runs the kernels' text, and has no use for machine code."""
        return {**self._host.here(), "cubin": self._name != _EMULATED}

    def check(self, manifest: Manifest, what: str) -> None:
        self._host.check(manifest, what)

    def link(self, code: bytes, manifest: Manifest) -> Library:
        return self._with_kernels(Library.from_object(code, _symbols(manifest), manifest.target.openmp), manifest)

    def write(self, folder: str, code: bytes, is_linked: bool) -> str:
        return self._host.write(folder, code, is_linked)

    def load(self, path: str, code: bytes, manifest: Manifest) -> Library:
        return self._with_kernels(self._host.opened(path, code, _symbols(manifest), manifest), manifest)

    def target_text(self, manifest: Manifest) -> str:
        return f"{_spec(manifest).target} with a host of {super().target_text(manifest)}"

    def described(self, manifest: Manifest) -> list[str]:
        spec = _spec(manifest)
        lines = [f"kernels for '{spec.target}': {len(spec.kernels)}"]
        lines += (f"  {k.name}: blocks of {'x'.join(map(str, k.threads))} threads{k.memory_text}" for k in spec.kernels)
        return lines

    def held(self, library: Library, arrays: Mapping[str, Array]) -> Mapping[str, Any]:
        assert isinstance(library, CudaLibrary)
        here, there = ({n: a for n, a in arrays.items() if n in names} for names in library.placed)
        on_device = uploaded(library.loaded.device, there) if there else {}
        on_host = {n: as_argument(a, f"weight '{n}'") for n, a in here.items()}
        return {n: HeldWeight(on_device.get(n), on_host.get(n)) for n in arrays}

    def entry(self, spec: EntrySpec, library: Library, weights: Sequence[Any], scratch: ScratchPool) -> CallableEntry:
        del scratch
        assert isinstance(library, CudaLibrary)
        return DeviceEntry(spec, library, weights)

    def state(self, library: Library, specs: Mapping[str, StateSpec], arrays: Mapping[str, object] | None = None) -> State:
        assert isinstance(library, CudaLibrary)
        return DeviceState(lambda: library.loaded.device, specs, arrays, library.host_state)

    def _with_kernels(self, host: Library, manifest: Manifest) -> CudaLibrary:
        return CudaLibrary(host, _spec(manifest), manifest.entries.values(), self._device)

    def _device(self, architecture: str) -> Device:
        return emulated_device(architecture) if self._name == _EMULATED else gpu(device_number(self._name))


def _spec(manifest: Manifest) -> CudaSpec:
    return CudaSpec(manifest.data.get("cuda"))


def _symbols(manifest: Manifest) -> list[str]:
    """The C symbols of entries, kernels' text and constants."""
    return [*manifest.symbols, *CUDA_SYMBOLS, *(symbol for symbol, _ in _spec(manifest).constants)]
