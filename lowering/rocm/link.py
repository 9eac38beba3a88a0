"""An object of kernels for AMD GPUs to the shared object that ROCm loads (an "hsaco"), by a linker that is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from ...dialect.errors import RelaxError

__all__ = ["find_linker", "link_code_object"]


def find_linker() -> list[str] | None:
    """The command of LLVM's linker: ``ld.lld``, or that of PyPI's ``ziglang``; None without one."""
    found = shutil.which("ld.lld")
    if found is not None:
        return [found]
    return [sys.executable, "-m", "ziglang", "ld.lld"] if find_spec("ziglang") is not None else None


def link_code_object(code: bytes) -> bytes:
    """What ``hipModuleLoadData`` takes, of an object of :func:`~.code_object.code_object`.

    Raises:
        RelaxError: no linker is installed, or it refuses the object.
    """
    linker = find_linker()
    if linker is None:
        raise RelaxError("expected a linker for AMD's code objects: ld.lld, or the package ziglang, got neither")
    with tempfile.TemporaryDirectory() as name:
        source, made = Path(name, "kernels.o"), Path(name, "kernels.hsaco")
        source.write_bytes(code)
        command = [*linker, "-shared", "--no-undefined", str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RelaxError(f"expected code objects that {linker[-1]} links, got: {done.stderr.strip()}")
        return made.read_bytes()
