"""Where NVIDIA's tools and files are on this machine: in pip's packages, beside Triton, or in a toolkit's folder.

pip's ``nvidia-cuda-nvcc-cu12`` (40 MB; the extra ``relaxir[cuda]``) has both the assembler and the device library; the
``nvidia-cuda-nvcc`` and ``nvidia-nvvm`` of CUDA 13 have one each, and PyTorch's Triton brings its own.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

__all__ = ["libdevice", "tool"]

_LIBDEVICE = "nvvm/libdevice/libdevice.10.bc"
# Folders under the packages' common one, `nvidia`: that of CUDA 12's packages, and of CUDA 13's.
_PACKAGES = ("cuda_nvcc", "cuda_nvdisasm", "cu13")
# Where a toolkit is: what its users set (on Windows, too), or else around a program of it on PATH, where NVIDIA asks for its
# programs to be: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/, "Environment Setup".
_HOMES = ("CUDA_HOME", "CUDA_PATH")
_PROGRAMS = ("nvcc", "ptxas")


@functools.cache
def tool(name: str) -> Path | None:
    """A program such as ``ptxas`` or ``nvdisasm``; None where there is none. pip's comes before the machine's own."""
    installed = next(_existing(*(root / "bin" / name for root in _roots()), _beside_triton("bin", name)), None)
    if installed is not None:
        return installed
    found = shutil.which(name)
    return Path(found) if found else next(_existing(*(home / "bin" / name for home in _homes())), None)


@functools.cache
def libdevice() -> Path | None:
    """NVIDIA's library of functions of f32 and f64, as LLVM bitcode; None where there is none."""
    installed = (*(root / _LIBDEVICE for root in _roots()), _beside_triton("lib", "libdevice.10.bc"))
    return next(_existing(*installed, *(home / _LIBDEVICE for home in _homes())), None)


def _roots() -> list[Path]:
    return [folder / package for folder in _locations("nvidia") for package in _PACKAGES]


def _homes() -> list[Path]:
    """Folders of toolkits, those that are named first. Links are followed: distributions have the programs elsewhere, too."""
    named = [Path(home) for home in map(os.environ.get, _HOMES) if home]
    return named + [Path(found).resolve().parent.parent for found in map(shutil.which, _PROGRAMS) if found]


def _beside_triton(kind: str, name: str) -> Path | None:
    return next((folder / "backends" / "nvidia" / kind / name for folder in _locations("triton")), None)


def _locations(package: str) -> list[Path]:
    """The folders of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    return [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]


def _existing(*paths: Path | None) -> Iterator[Path]:
    return (path for path in paths if path is not None and os.path.isfile(path))
