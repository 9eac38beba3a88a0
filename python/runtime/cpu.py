"""The run time's part of the ``cpu`` backend: object code or a shared library, called on tensors in memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ..dialect.errors import RelaxError
from ..lowering.archive import MAGIC, members
from ..lowering.manifest import Manifest
from ..lowering.manifest_specs import TargetSpec
from ..lowering.tile_permission import TILE_FEATURES, may_use_tiles
from ..weights.files import write_file
from . import threads
from .backend import Runtime
from .cpu_features import here_by_kernel, lacking
from .library import Library, llvm_binding

__all__ = ["CpuRuntime", "check_target"]

SHARED = "module.so"
ARCHIVE = "module.a"
#: What versions before 2026-11-23 wrote without a C compiler.
OBJECT = "module.o"

_LINK_SECONDS = 300
_TILES = "tiles.c"
# A program that loads the library is given tile registers as Python is (`lowering/tile_permission.py`).
_ASKS_FOR_TILES = """\
#include <unistd.h>
#include <sys/syscall.h>
__attribute__((constructor)) static void ask_for_tiles(void) { syscall(SYS_arch_prctl, 0x1023, 18L); }
"""


class CpuRuntime(Runtime):
    """Machine code of this processor, linked in memory, or by a C compiler when it is saved."""

    @property
    def files(self) -> Mapping[str, bool]:
        return {SHARED: True, ARCHIVE: False, OBJECT: False}

    def here(self) -> Mapping[str, Any]:
        return {"openmp": threads.find_runtime() is not None}

    def check(self, manifest: Manifest, what: str) -> None:
        check_target(manifest.target, what)

    def link(self, code: bytes, manifest: Manifest) -> Library:
        return Library.from_object(code, manifest.symbols, manifest.target.openmp)

    def write(self, folder: str, code: bytes, is_linked: bool) -> str:
        if is_linked:
            write_file(folder, SHARED, code)
            return SHARED
        compiler = _c_compiler()
        if compiler is None:
            name = ARCHIVE if code.startswith(MAGIC) else OBJECT
            write_file(folder, name, code)
            return name
        _link(compiler, folder, members(code) if code.startswith(MAGIC) else {OBJECT: code})
        return SHARED

    def load(self, path: str, code: bytes, manifest: Manifest) -> Library:
        return self.opened(path, code, manifest.symbols, manifest)

    def opened(self, path: str, code: bytes, symbols: Iterable[str], manifest: Manifest) -> Library:
        """As :meth:`load`, with the symbols that are wanted."""
        if os.path.basename(path) == SHARED:
            return Library.open(path, symbols, manifest.target.openmp)
        return Library.from_object(code, symbols, manifest.target.openmp)


def check_target(target: TargetSpec, what: str) -> None:
    """Compares with the processor this runs on. Raises RelaxError when its code cannot run here."""
    needed = [f[1:] for f in target.features.split(",") if f.startswith("+")]
    if not TILE_FEATURES.isdisjoint(needed) and not may_use_tiles():
        raise RelaxError(
            f"{what}: expected a processor and a system that give this process tile registers (AMX), got code for {target.cpu} "
            "that may use them: compile it again on this machine"
        )
    if _platform(target.triple) == _platform(here_by_kernel()) and not lacking(needed):
        return  # what runs an artifact needs no LLVM
    llvm = llvm_binding()
    here = cast("str", llvm.get_process_triple())
    if _platform(target.triple) != _platform(here):
        raise RelaxError(f"{what}: expected code for {here}, got code for {target.triple}: compile it again on this machine")
    has: Mapping[str, bool] = dict(llvm.get_host_cpu_features())
    missing = sorted(f for f in needed if not has.get(f))
    if missing:
        raise RelaxError(
            f"{what}: expected code for this processor ({llvm.get_host_cpu_name()}), got code for {target.cpu}, "
            f"which needs {', '.join(missing)}: compile it again on this machine"
        )


def _platform(triple: str) -> tuple[str, str]:
    """Architecture and system; vendor and environment differ between spellings of the same machine."""
    parts = [*triple.split("-"), "", "", ""]
    architecture = {"amd64": "x86_64", "arm64": "aarch64"}.get(parts[0], parts[0])
    system = next((s for s in ("linux", "darwin", "macos", "windows") if any(p.startswith(s) for p in parts[1:])), parts[2])
    return architecture, "darwin" if system == "macos" else system


def _c_compiler() -> str | None:
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def _link(compiler: str, folder: str, objects: Mapping[str, bytes]) -> None:
    sources = {_TILES: _ASKS_FOR_TILES.encode()} if may_use_tiles() else {}
    command = [compiler, "-shared", "-fPIC", "-o", os.path.join(os.path.abspath(folder), SHARED), *objects, *sources, "-lm"]
    try:
        with tempfile.TemporaryDirectory(prefix="relaxir-") as place:
            for name, content in {**objects, **sources}.items():
                write_file(place, name, content)
            subprocess.run(command, cwd=place, check=True, capture_output=True, text=True, timeout=_LINK_SECONDS)
    except subprocess.CalledProcessError as error:
        raise RelaxError(f"cannot link with '{compiler} -shared': {error.stderr.strip()[-2000:]}") from None
    except subprocess.TimeoutExpired:
        raise RelaxError(f"cannot link with '{compiler} -shared': expected an end after {_LINK_SECONDS} s, got none") from None
