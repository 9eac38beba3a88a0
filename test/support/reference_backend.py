"""A backend whose code is the module itself, and whose kernels are the ops' NumPy semantics: slow, exact, and an example.

``BACKEND`` is its table entry, as a package of its own would name it under the entry-point group ``relaxir.backends``. What is
around a call is the product's: manifest, preparation in steps, bound weights, state, artifacts. Executables of this backend and
of ``cpu`` differ in kernels, bufferization and code generation, and in nothing else.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relaxir.dialect.bindings import ir
from relaxir.dialect.symbolic import evaluate as evaluate_dim
from relaxir.lowering.backend import Backend
from relaxir.lowering.compiler import Compiler, Listener
from relaxir.lowering.entries import Entry, entries_of
from relaxir.lowering.manifest import Manifest
from relaxir.lowering.manifest_digest import digest_of
from relaxir.lowering.manifest_specs import TargetSpec
from relaxir.runtime.backend import Runtime
from relaxir.runtime.calls import RefusedError
from relaxir.runtime.library import Library
from relaxir.runtime.threads import Team
from relaxir.weights.files import write_file

__all__ = ["BACKEND"]

BACKEND = Backend("reference", f"{__name__}:ReferenceCompiler", f"{__name__}:ReferenceRuntime")

_FILE = "module.reference.mlir"


class ReferenceCompiler(Compiler):
    """Stops where relax ends: what functions are to their callers is written down, and what prepares weights is split."""

    def __init__(self, target: str, here: Mapping[str, Any]):
        self._target = target

    @property
    def key(self) -> str:
        return self._target

    @property
    def spec(self) -> TargetSpec:
        return TargetSpec("any", "numpy", "", backend="reference")

    def pipeline(self, checked: bool) -> str:
        return "relax-check-entries,relax-partition-transforms,relax-describe-entries"

    def manifest_part(self, module: ir.Operation) -> dict[str, Any]:
        return {"functions": [entry.spec.name for _, entry in entries_of(module)]}

    def code(self, module: ir.Operation, manifest: Mapping[str, Any], listener: Listener | None) -> bytes:
        return f"// {digest_of(manifest).hex()}\n{module.get_asm(enable_debug_info=True)}".encode()


class ReferenceRuntime(Runtime):
    """Runs a module by the reference interpreter."""

    @property
    def files(self) -> Mapping[str, bool]:
        return {_FILE: False}

    def check(self, manifest: Manifest, what: str) -> None:
        pass  # runs anywhere

    def link(self, code: bytes, manifest: Manifest) -> Library:
        return ReferenceLibrary(code)

    def write(self, folder: str, code: bytes, is_linked: bool) -> str:
        write_file(folder, _FILE, code)
        return _FILE

    def load(self, path: str, code: bytes, manifest: Manifest) -> Library:
        assert os.path.basename(path) == _FILE
        return self.link(code, manifest)


class ReferenceLibrary(Library):
    """The functions of a module's text."""

    def __init__(self, code: bytes):
        from relaxir.dialect.context import new_context
        from relaxir.dialect.parser import parse_module

        first, _, text = code.partition(b"\n")
        super().__init__({}, None, "reference code", Team())
        self._digest = bytes.fromhex(first.decode().removeprefix("// "))
        self._module = parse_module(text, "-", new_context())
        self._entries = {entry.spec.symbol: entry for _, entry in entries_of(self._module.operation)}
        self._lock = threading.Lock()  # a context is for one thread at a time

    def constant(self, symbol: str, count: int) -> bytes:
        return self._digest

    def function(self, symbol: str) -> Any:
        entry = self._entries[symbol]

        def call(tensors: Any, symbols: Any, arena: Any, arena_bytes: Any) -> int:
            with self._lock:
                _run(self._module.operation, entry, _addresses(tensors), _numbers(symbols, len(entry.spec.symbols)))
            return 0

        call.library = self
        return call


def _run(module: ir.Operation, entry: Entry, address: Callable[[int], int], numbers: list[int]) -> None:
    """One call: arrays over the tensors' memory, the reference semantics on them, and results into that memory."""
    from relaxir.dialect.errors import RelaxError
    from relaxir.dialect.reference.interpreter import evaluate

    spec = entry.spec
    values = {s.name: n for s, n in zip(spec.symbols, numbers, strict=True)}
    dtypes: list[Any] = [None] * (len(spec.inputs) + len(spec.state))
    for position, tensor in zip(spec.input_positions, spec.inputs, strict=True):
        dtypes[position] = tensor.dtype
    for state in spec.state:
        dtypes[state.argument] = state.array.dtype
    dtypes += [w.array.dtype for w in spec.weights] + [o.dtype for o in spec.outputs]
    shapes = [tuple(d if isinstance(d, int) else evaluate_dim(d, values) for d in shape) for shape in spec.shapes]
    arrays = [_array(address(i), d, s) for i, (d, s) in enumerate(zip(dtypes, shapes, strict=True))]
    taken = len(spec.inputs) + len(spec.state)
    weights = {w.name: a for w, a in zip(spec.weights, arrays[taken:], strict=False)}
    try:
        results = evaluate(module, spec.name, arrays[:taken], weights)
    except RelaxError as error:  # nothing has been written
        raise RefusedError(error.args[0], error.location) from None
    outputs = iter(arrays[taken + len(weights) :])
    for position, result in enumerate(results):
        into = arrays[entry.updates[position]] if position in entry.updates else next(outputs)
        np.copyto(into, result)


def _array(place: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if not count:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * count).from_address(place)
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)


def _addresses(tensors: Any) -> Callable[[int], int]:
    places = ctypes.cast(tensors, ctypes.POINTER(ctypes.c_void_p))
    return lambda i: places[i] or 0


def _numbers(symbols: Any, count: int) -> list[int]:
    return [ctypes.cast(symbols, ctypes.POINTER(ctypes.c_int64))[i] for i in range(count)]
