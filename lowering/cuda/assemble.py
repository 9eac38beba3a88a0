"""PTX to a cubin by NVIDIA's assembler, where it is installed, and what each kernel takes of a multiprocessor.

A cubin spares the driver its own translation when code is loaded. Without the assembler the PTX is all that an artifact has.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...dialect.errors import RelaxError
from .cuda_target import CudaTarget
from .toolkit import tool

__all__ = ["Assembled", "Resources", "assemble", "assembler"]

_SECONDS = 600


@dataclass(frozen=True)
class Resources:
    """What a kernel takes.

    Attributes:
        registers: of 32 bits, per thread.
        stack: bytes of local memory per thread.
        spill_stores, spill_loads: bytes of registers that did not fit, which instructions write to local memory and read.
        shared: bytes of static shared memory per block.
        barriers: named barriers per block.
        warnings: of performance, as the assembler words them: ``(C7510) Potential Performance Loss: ...``.
    """

    registers: int
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0
    barriers: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def spills(self) -> bool:
        """Whether registers did not fit."""
        return bool(self.spill_stores or self.spill_loads)


@dataclass(frozen=True)
class Assembled:
    """Machine code.

    Attributes:
        cubin: an ELF image for one architecture.
        kernels: what each of its kernels takes, by name.
    """

    cubin: bytes
    kernels: Mapping[str, Resources]


@functools.cache
def assembler() -> str | None:
    """Name and version of the assembler that is installed, ``"ptxas V12.9.86"``: other versions give other code. None: none."""
    program = tool("ptxas")
    if program is None:
        return None
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=False).stdout
    version = re.search(r"V[\d.]+", said)
    return f"ptxas {version[0] if version else 'of unknown version'}"


@functools.lru_cache(maxsize=256)
def assemble(ptx: str, target: CudaTarget) -> Assembled:
    """Machine code of a PTX text; equal texts are assembled once.

    Raises:
        RelaxError: no assembler is installed; it refuses the text.
    """
    program = tool("ptxas")
    if program is None:
        raise RelaxError("expected NVIDIA's assembler, ptxas (pip install relaxir[cuda]), got none")
    image, said = _translated(program, ptx, target.architecture.name)
    return Assembled(image, _kernels(said))


def _translated(program: Path, ptx: str, name: str) -> tuple[bytes, str]:
    """A cubin for an architecture, and what the assembler says of it. Raises RelaxError when it refuses the text."""
    with tempfile.TemporaryDirectory(prefix="relaxir-ptxas-") as folder:
        source, image = Path(folder, "device.ptx"), Path(folder, "device.cubin")
        source.write_text(ptx)
        command = [program, "--verbose", f"--gpu-name={name}", "--output-file", image, source]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        said = (done.stdout + done.stderr).replace(str(source), source.name)
        if done.returncode != 0:
            raise RelaxError(f"ptxas cannot assemble code for {name}: {_complaint(said)}")
        return image.read_bytes(), said


def _complaint(said: str) -> str:
    lines = [line for line in said.splitlines() if re.search(r"\b(error|fatal)\b", line)]
    return "; ".join(lines[:3]) or said.strip()[-500:]


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:, used (\d+) barriers)?")
_SHARED = re.compile(r", (\d+)(?:\+\d+)? bytes smem")
_WARNING = re.compile(r"\(C7\d+\) .*")


def _kernels(said: str) -> dict[str, Resources]:
    """What the assembler says of each entry, a few lines behind its name; warnings name it where they are in front."""
    warnings = _WARNING.findall(said)
    _, *parts = _ENTRY.split(said)
    found: dict[str, Resources] = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        frame, used, shared = _FRAME.search(text), _USED.search(text), _SHARED.search(text)
        if frame is None or used is None:
            raise RelaxError(f"expected ptxas to say what kernel '@{name}' takes, got {text.strip()[:200]!r}")
        stack, stores, loads = map(int, frame.groups())
        named = tuple(w for w in warnings if f"'{name}'" in w)
        static, barriers = int(shared[1]) if shared else 0, int(used[2] or 0)
        found[name] = Resources(int(used[1]), stack, stores, loads, static, barriers, named)
    return found
