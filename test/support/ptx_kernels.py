"""Kernels as LLVM writes them (``lowering/cuda/emulator/kernels``), with what runs each one and says how far off it is.

gemm_*: a producer with TMA and two consumers with wgmma, persistent blocks, clusters of two with multicast in gemm_c2,
results through shared memory and bulk stores. mma_bf16: cp.async, ldmatrix and mma.sync. The others work on rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from relaxir.lowering.cuda.emulator import Machine, Options, TensorMap
from relaxir.lowering.cuda.emulator.floats import narrow, widen

__all__ = ["KERNELS", "text_of"]

_FOLDER = Path(__file__).parents[1] / "lowering/cuda/emulator/kernels"
_BF16 = 9


def text_of(name: str) -> str:
    return (_FOLDER / f"{name}.ptx").read_text()


def _machine(options: Options | None) -> Machine:
    return Machine("sm_90a", options or Options(steps=300_000), memory=1 << 24)


def _bf16(rng: np.random.Generator, *shape: int) -> Any:
    return narrow(rng.standard_normal(shape).astype(np.float32))


def _error(got: Any, wanted: Any) -> float:
    return float(np.abs(got - wanted).max() / np.abs(wanted).max())


def _softmax(text: str, options: Options | None) -> float:
    machine, rows, columns = _machine(options), 3, 2048
    x = _bf16(np.random.default_rng(1), rows, columns)
    x[0, 700] = narrow(np.array([120], np.float32))[0]  # without this as the maximum exp overflows
    out = machine.memory.allocate(x.nbytes)
    machine.run(machine.load(text), "softmax", [rows], [256], [machine.upload(x), out])
    e = np.exp(widen(x) - widen(x).max(1, keepdims=True))
    return _error(widen(machine.download(out, x.shape, np.uint16)), e / e.sum(1, keepdims=True))


def _rmsnorm(text: str, options: Options | None) -> float:
    machine, rows, columns = _machine(options), 3, 2048
    rng = np.random.default_rng(2)
    x, weight = _bf16(rng, rows, columns), _bf16(rng, columns)
    out = machine.memory.allocate(x.nbytes)
    machine.run(machine.load(text), "rmsnorm", [rows], [256], [machine.upload(x), machine.upload(weight), out])
    wanted = widen(x) / np.sqrt((widen(x) ** 2).mean(1, keepdims=True) + 1e-6) * widen(weight)
    return _error(widen(machine.download(out, x.shape, np.uint16)), wanted)


def _silu(text: str, options: Options | None) -> float:
    machine, n = _machine(options), 1000
    rng = np.random.default_rng(3)
    x, y = _bf16(rng, n), _bf16(rng, n)
    out = machine.memory.allocate(2 * n)
    machine.run(machine.load(text), "silu_mul", [8], [128], [machine.upload(x), machine.upload(y), out, n])
    return _error(widen(machine.download(out, n, np.uint16)), widen(x) / (1 + np.exp(-widen(x))) * widen(y))


def _mma(text: str, options: Options | None) -> float:
    machine, m, n, k = _machine(options), 100, 128, 192
    rng = np.random.default_rng(4)
    a, b = _bf16(rng, m, k), _bf16(rng, n, k)
    out = machine.memory.allocate(4 * m * n)
    machine.run(machine.load(text), "mma_gemm", [2, 2], [128], [machine.upload(a), machine.upload(b), out, m, n, k])
    return _error(machine.download(out, (m, n), np.float32), widen(a) @ widen(b).T)


def _hopper(name: str, width: int, stages: int, cluster: int, m: int, n: int, k: int, grid: int) -> Callable[..., float]:
    def run(text: str, options: Options | None) -> float:
        machine, rng = _machine(options), np.random.default_rng(5)
        a, b = _bf16(rng, m, k), _bf16(rng, n, k)
        out = machine.memory.allocate(2 * m * n)

        def tensor(address: int, rows: int, columns: int, box: tuple[int, int]) -> bytes:
            return TensorMap(_BF16, address, (columns, rows), (2 * columns,), box).packed()

        maps = [
            tensor(machine.upload(a), m, k, (64, 128)),
            tensor(machine.upload(b), n, k, (64, width // cluster)),
            tensor(out, m, n, (64, 64)),
        ]
        tiles = [-(-m // (128 * cluster)), -(-n // width), -(-k // 64)]
        shared = stages * (128 * 128 + width * 128) + 2 * 16384 + 16 * stages
        machine.run(machine.load(text), name, [grid], [384], [*maps, *tiles], shared)
        return _error(widen(machine.download(out, (m, n), np.uint16)), widen(a) @ widen(b).T)

    return run


#: By name, what runs a text of that kernel (with options) and gives its largest error, of the largest number.
KERNELS: dict[str, Callable[..., float]] = {
    "softmax_2048": _softmax,
    "rmsnorm_2048": _rmsnorm,
    "silu_mul": _silu,
    "mma_bf16": _mma,
    "gemm_n128": _hopper("gemm_n128", 128, 6, 1, 264, 256, 456, 1),
    "gemm_c2": _hopper("gemm_c2", 256, 4, 2, 512, 264, 328, 2),
}
