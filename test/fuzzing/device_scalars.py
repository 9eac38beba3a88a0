"""Random functions of scalars, compiled for this CPU and to PTX that the emulator runs: equal numbers."""

from __future__ import annotations

import ctypes
import random

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np

from relaxir.dialect.bindings import ir, passmanager
from relaxir.lowering.cuda.cuda_target import CudaTarget
from relaxir.lowering.cuda.emulator import Machine, Options
from relaxir.lowering.cuda.ptx import device_code
from relaxir.lowering.kernels.expand.expand_fma import expand_fma
from relaxir.lowering.kernels.expand.expand_math import expand_math
from relaxir.lowering.kernels.expand.expand_narrow_floats import expand_narrow_floats
from relaxir.lowering.llvm_text import llvm_ir
from relaxir.lowering.target import Target
from support.kernel_harness import NUMPY, TO_LLVM
from support.scalar_functions import ScalarFunction

__all__ = ["check", "device_text", "differences", "host_results", "host_text", "random_data", "results_of"]

_THREADS = 64
# Of results of a library's function: units in the last place that CUDA's and C's are off by at most, and some.
_UNITS = 8
# Where conversions of bf16 are expanded, which an instruction of newer processors takes subnormal numbers as zero in.
_HOST = "cpu:x86-64-v3"
_TO_LLVM = TO_LLVM.replace("convert-func-to-llvm", "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1}")
# For the same reason such numbers are in memory as their bits: LLVM would convert them to f32 and back.
_MEMORY = {"f16": "i16", "bf16": "i16"}


def check(seed: int) -> None:
    """Raises AssertionError for a number that differs."""
    function = ScalarFunction(seed)
    data, results = random_data(seed), results_of(function)
    host = host_results(function, data)
    with np.errstate(all="ignore"):
        for arch in random.Random(seed).sample(("sm_80", "sm_90a"), 1):
            device = _on_device(device_text(function), arch, data, host)
            found = [line for name, kind in results for line in differences(name, kind, host[name], device[name])]
            assert not found, f"{arch}: {found[:5]}\n" + "\n".join(function.lines)


def host_results(function: ScalarFunction, data: dict[str, np.ndarray], target: str = _HOST) -> dict[str, np.ndarray]:
    """What a loop of scalars gives: by :func:`results_of`, an element for each of the first half of the data."""
    found = {name: np.zeros(_THREADS, NUMPY[kind]) for name, kind in results_of(function)}
    with np.errstate(all="ignore"):
        _on_host(host_text(function), [*data.values(), *found.values()], target)
    return found


def host_text(function: ScalarFunction) -> str:
    """A function of arrays that computes it for each index."""
    arguments = ", ".join(f"{name}: memref<{count}x{_MEMORY.get(kind, kind)}>" for name, kind, count in _arguments(function))
    return f"""func.func @f({arguments}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %count = arith.constant {_THREADS} : index
  scf.for %i = %zero to %count step %one {{
{_body(function)}
  }}
  return
}}"""


def device_text(function: ScalarFunction) -> str:
    """A kernel of pointers whose threads compute it, one index each."""
    pointers = [(name, _MEMORY.get(kind, kind), count) for name, kind, count in _arguments(function)]
    arguments = ", ".join(f"{name}_p: memref<1x{kind}>" for name, kind, _ in pointers)
    views = "\n".join(
        f"  {name} = memref.reinterpret_cast {name}_p to offset: [0], sizes: [{count}], strides: [1]"
        f" : memref<1x{kind}> to memref<{count}x{kind}>"
        for name, kind, count in pointers
    )
    return f"""gpu.module @device {{ gpu.func @f({arguments}) kernel {{
  %count = arith.constant {_THREADS} : index
  %i = gpu.thread_id x
{views}
{_body(function)}
  gpu.return
}} }}"""


def results_of(function: ScalarFunction) -> list[tuple[str, str]]:
    """Name and type of what it gives, in the order of its values."""
    exact = [(f"out_{kind}_{i}", kind) for kind, values in function.outputs.items() for i in range(len(values))]
    return exact + [(f"near_{kind}_{i}", kind) for kind, values in function.inexact.items() for i in range(len(values))]


def _arguments(function: ScalarFunction) -> list[tuple[str, str, int]]:
    inputs = [(f"%in_{kind}", kind, 2 * _THREADS) for kind in ScalarFunction.types()]
    return inputs + [(f"%{name}", kind, _THREADS) for name, kind in results_of(function)]


def _body(function: ScalarFunction) -> str:
    lines = ["%second = arith.addi %i, %count : index"]
    for kind in ScalarFunction.types():
        for j, index in enumerate(("%i", "%second")):
            lines += _load(f"%{kind}_{j}", kind, f"%in_{kind}[{index}]")
    lines += function.lines
    values = [v for group in (function.outputs, function.inexact) for part in group.values() for v in part]
    for (name, kind), value in zip(results_of(function), values, strict=True):
        lines += _store(value, kind, name)
    return "\n".join(f"  {line}" for line in lines)


def _load(name: str, kind: str, place: str) -> list[str]:
    if kind not in _MEMORY:
        return [f"{name} = memref.load {place} : memref<{2 * _THREADS}x{kind}>"]
    bits = f"{name}_bits = memref.load {place} : memref<{2 * _THREADS}x{_MEMORY[kind]}>"
    return [bits, f"{name} = arith.bitcast {name}_bits : {_MEMORY[kind]} to {kind}"]


def _store(value: str, kind: str, name: str) -> list[str]:
    if kind not in _MEMORY:
        return [f"memref.store {value}, %{name}[%i] : memref<{_THREADS}x{kind}>"]
    bits = f"%{name}_bits = arith.bitcast {value} : {kind} to {_MEMORY[kind]}"
    return [bits, f"memref.store %{name}_bits, %{name}[%i] : memref<{_THREADS}x{_MEMORY[kind]}>"]


def random_data(seed: int) -> dict[str, np.ndarray]:
    """By type, the first values of all threads, then the second ones."""
    rng = np.random.default_rng(seed)
    return {kind: _numbers(rng, np.dtype(NUMPY[kind])) for kind in ScalarFunction.types()}


def _numbers(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "i":
        limits = np.iinfo(dtype)
        values = rng.integers(limits.min, limits.max, 2 * _THREADS, dtype, endpoint=True)
        values[:6] = [0, 1, -1, limits.min, limits.max, 7]
        return rng.permutation(values)
    largest = 3 if dtype == np.float16 else 8
    values = rng.standard_normal(2 * _THREADS) * 10.0 ** rng.integers(-6, largest, 2 * _THREADS)
    tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    values[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, tiny, -1.0]
    return rng.permutation(values.astype(dtype))


def _on_host(text: str, arrays: list[np.ndarray], name: str) -> None:
    """By the compiler's own LLVM: that of the bindings takes ``uitofp(fptosi x)`` for ``x`` without its fraction."""
    target = Target.parse(name)
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        for expand in (expand_math, expand_fma, expand_narrow_floats):
            expand(module.operation, target)
        passmanager.PassManager.parse(_TO_LLVM).run(module.operation)
        code = llvm.parse_assembly(llvm_ir(module.operation))
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(cpu=target.cpu, features=target.features, opt=1)
    engine = llvm.create_mcjit_compiler(code, machine)
    engine.finalize_object()
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))(engine.get_function_address("f"))(*pointers)


def _on_device(text: str, arch: str, data: dict[str, np.ndarray], like: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        code = device_code(module.body.operations[0].operation, CudaTarget.parse(f"cuda:{arch}"))
    machine = Machine(arch, Options(), memory=1 << 22)
    inputs = [machine.upload(array.view(np.uint8)) for array in data.values()]
    outputs = {name: machine.upload(np.zeros(array.nbytes, np.uint8)) for name, array in like.items()}
    machine.run(machine.load(code), "f", [1], [_THREADS], [*inputs, *outputs.values()])
    return {name: machine.download(outputs[name], array.nbytes, np.uint8).view(array.dtype) for name, array in like.items()}


def differences(name: str, kind: str, host: np.ndarray, device: np.ndarray) -> list[str]:
    """Lines that tell of some numbers that differ; those of libraries (``near...``) by more than some units."""
    if host.dtype.kind == "i":
        same = host == device
    else:
        bits = np.dtype(f"i{host.dtype.itemsize}")
        same = (host.view(bits) == device.view(bits)) | ((host != host) & (device != device))
        if name.startswith("near"):
            wide, other = host.astype(np.float64), device.astype(np.float64)
            epsilon, tiny = float(ml_dtypes.finfo(host.dtype).eps), float(ml_dtypes.finfo(host.dtype).smallest_subnormal)
            same |= np.abs(wide - other) <= _UNITS * (epsilon * np.abs(wide) + tiny)
    return [f"%{name}[{i}]: {kind} {host[i]!r} of scalars, {device[i]!r} otherwise" for i in np.flatnonzero(~same)[:2]]
