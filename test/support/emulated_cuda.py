"""Modules compiled for a GPU and run on the emulator, which checks every access: numbers, plans, and machine code."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.reports.kernels import KernelSection
from relaxir.runtime.executable import Executable
from support.device_kernels import DeviceKernel, device_kernels
from support.naive import assert_close

__all__ = ["TARGET", "agrees", "kernels", "plans", "random"]

TARGET = "cuda:sm_80"


def random(shape: tuple[int, ...], dtype: str = "f32", seed: int = 0) -> np.ndarray:
    """Normal numbers, or small integers."""
    rng = np.random.default_rng(seed)
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if "f" in dtype:
        return rng.standard_normal(shape).astype(numpy_dtype(dtype))
    return rng.integers(0 if dtype.startswith("u") else -9, 9, shape).astype(numpy_dtype(dtype))


def agrees(module: rx.Module, *inputs: np.ndarray, target: str = TARGET) -> Executable:
    """Asserts that code on the emulator gives what the reference semantics give, and is found nothing wrong with."""
    executable = rx.compile(module, target=target, device="emulated")
    got, want = executable(*inputs), rx.evaluate(module, "main", *inputs)
    for found, expected in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
        assert_close(np.asarray(found), expected)
    return executable


def plans(executable: Executable) -> list[str]:
    """How each kernel is computed, as the report says it."""
    sections = [s for s in executable.report.sections if isinstance(s, KernelSection)]
    return [kernel.plan or "" for section in sections for kernel in section.kernels]


def kernels(module: rx.Module, folder: Path, target: str = TARGET) -> dict[str, DeviceKernel]:
    """The kernels of a module as NVIDIA's assembler makes them."""
    rx.compile(module, target=target, device="emulated", dump=folder)
    (ptx,) = folder.glob("*.ptx")
    return device_kernels(ptx.read_text(), target)
