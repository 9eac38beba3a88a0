"""An executable on disk: a directory with manifest.json, module.mlir, module.h, and module.so (module.o without C compiler)."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from ..dialect.errors import RelaxError
from ..lowering.manifest import Manifest, TargetSpec
from ..weights.files import inside, os_errors, read_bytes, sync_folder
from ..weights.json_text import parse_json
from .library import Library, llvm_binding

__all__ = ["Artifact", "check_target", "read_artifact", "read_manifest", "write_artifact"]

MANIFEST = "manifest.json"
MODULE = "module.mlir"
HEADER = "module.h"
SHARED = "module.so"
OBJECT = "module.o"

# A manifest of 10,000 weights has 3 MB; a larger file is refused before it is read as JSON.
_MAX_MANIFEST_BYTES = 256 << 20

_LINK_SECONDS = 300

# Of Linux: paths are relative to the current folder; renameat2 exchanges.
_HERE, _EXCHANGE = -100, 2


@dataclass(frozen=True)
class Artifact:
    """What an artifact directory holds.

    Attributes:
        manifest: the JSON object, checked by :class:`Manifest`.
        library: the loaded code.
        module_text: MLIR text of the module.
        header: C header.
        code: the content of the code file.
        is_shared: whether that is a shared library rather than object code.
    """

    manifest: Mapping[str, Any]
    library: Library
    module_text: str
    header: str
    code: bytes
    is_shared: bool


def write_artifact(
    path: str, manifest: Mapping[str, Any], module_text: str, header: str, code: bytes, is_shared: bool
) -> None:  # fmt: skip
    """Writes an artifact under its name at once; an artifact that exists there is replaced.

    Args:
        path: the directory.
        manifest: its ``code`` entry is made here.
        module_text: MLIR text of the module that the code was compiled from.
        header: C header.
        code: object code, which a C compiler (``cc``, ``gcc``, ``clang``) links to a shared library when there is one.
        is_shared: the code is a shared library already.

    Raises:
        RelaxError: something else than an artifact lies there, the linker fails, or the disk is full.
    """
    path = os.path.abspath(path)
    _check_replaceable(path)
    with (
        os_errors("write", path),
        tempfile.TemporaryDirectory(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path)) as temporary,
    ):
        folder = os.path.join(temporary, "new")  # made by mkdir, so that it has the user's usual permissions
        os.mkdir(folder)
        name = _write_code(folder, code, is_shared)
        _write(folder, MODULE, module_text.encode())
        _write(folder, HEADER, header.encode())
        digest = _digest(_read(folder, name))
        data = {**manifest, "code": {"file": name, "sha256": digest}}
        _write(folder, MANIFEST, (json.dumps(data, indent=1) + "\n").encode())
        _exchange(folder, path, os.path.join(temporary, "old"))
        sync_folder(os.path.dirname(path))


def read_artifact(path: str) -> Artifact:
    """Reads and loads an artifact. Its code runs with the rights of this process: load only what you trust.

    Raises:
        RelaxError: it is no artifact, a file is missing or damaged, or its code is for another processor.
    """
    manifest = read_manifest(path)
    check_target(manifest.target, f"'{path}'")
    name, code = _checked_code(path, manifest.data)
    is_shared = name == SHARED
    symbols, openmp = manifest.symbols, manifest.target.openmp
    if is_shared:
        library = Library.open(os.path.join(path, name), symbols, openmp)
    else:
        library = Library.from_object(code, symbols, openmp)
    texts = [_decoded(_read(path, f), os.path.join(path, f)) for f in (MODULE, HEADER)]
    return Artifact(manifest.data, library, texts[0], texts[1], code, is_shared)


def read_manifest(path: str) -> Manifest:
    """The manifest of an artifact, also of one for another processor: no code is loaded.

    Raises:
        RelaxError: it is no artifact, or its manifest is malformed.
    """
    if not os.path.isdir(path):
        got = "a file" if os.path.exists(path) else "nothing"
        raise RelaxError(f"'{path}': expected an artifact directory, got {got}")
    if not os.path.exists(os.path.join(path, MANIFEST)):
        raise RelaxError(f"'{path}': expected {MANIFEST} in an artifact directory, got none")
    data = _read_manifest(inside(path, MANIFEST, f"'{path}'"))
    return Manifest.of(data, f"'{path}': manifest")


def check_target(target: TargetSpec, what: str) -> None:
    """Compares with the processor this runs on. Raises RelaxError when its code cannot run here."""
    llvm = llvm_binding()
    here = cast("str", llvm.get_process_triple())
    if _platform(target.triple) != _platform(here):
        raise RelaxError(f"{what}: expected code for {here}, got code for {target.triple}: compile it again on this machine")
    has: Mapping[str, bool] = dict(llvm.get_host_cpu_features())
    missing = sorted(f[1:] for f in target.features.split(",") if f.startswith("+") and not has.get(f[1:]))
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


def _check_replaceable(path: str) -> None:
    if not os.path.isdir(os.path.dirname(path)):
        raise RelaxError(f"cannot write '{path}': expected an existing folder, got '{os.path.dirname(path)}'")
    if not os.path.lexists(path):
        return
    is_artifact = os.path.isdir(path) and not os.path.islink(path) and os.path.exists(os.path.join(path, MANIFEST))
    if not is_artifact and not (os.path.isdir(path) and not os.listdir(path)):
        raise RelaxError(f"cannot write '{path}': expected nothing or an artifact there, got something else")


def _exchange(new: str, path: str, old: str) -> None:
    """Puts a folder where another one may be: at once where the system can, else the other one comes back if that fails."""
    if not os.path.isdir(path):
        return os.rename(new, path)
    if _swapped(new, path):
        return
    os.rename(path, old)
    try:
        os.rename(new, path)
    except OSError:
        if not os.path.lexists(path):
            os.rename(old, path)
        raise


def _swapped(one: str, other: str) -> bool:
    """Exchanges two names, so that each is there at any moment. False where Linux, or the file system, lacks that."""
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    return swap is not None and swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0


def _write(folder: str, name: str, data: bytes) -> None:
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _write_code(folder: str, code: bytes, is_shared: bool) -> str:
    """Puts the code into the folder, linked when possible, and returns its file name."""
    if is_shared:
        _write(folder, SHARED, code)
        return SHARED
    _write(folder, OBJECT, code)
    compiler = _c_compiler()
    if compiler is None:
        return OBJECT
    _link(compiler, folder)
    os.unlink(os.path.join(folder, OBJECT))
    return SHARED


def _c_compiler() -> str | None:
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def _link(compiler: str, folder: str) -> None:
    command = [compiler, "-shared", "-o", SHARED, OBJECT, "-lm"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=_LINK_SECONDS)
    except subprocess.CalledProcessError as error:
        raise RelaxError(f"cannot link with '{' '.join(command)}': {error.stderr.strip()[-2000:]}") from None
    except subprocess.TimeoutExpired:
        raise RelaxError(f"cannot link with '{' '.join(command)}': expected an end after {_LINK_SECONDS} s, got none") from None


def _read_manifest(path: str) -> object:
    text = read_bytes(path, _MAX_MANIFEST_BYTES, "a manifest")
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise RelaxError(f"'{path}': expected a manifest in JSON, got {type(error).__name__}: {error}") from None


def _checked_code(path: str, data: Mapping[str, Any]) -> tuple[str, bytes]:
    """Name and content of the code file; the content must be what the manifest says."""
    entry = data.get("code")
    code = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    name = code.get("file")
    if name not in (SHARED, OBJECT):
        raise RelaxError(f"'{path}': manifest.code.file: expected {SHARED} or {OBJECT}, got {name!r}")
    name = cast("str", name)
    content = _read(path, name)
    digest = _digest(content)
    if digest != code.get("sha256"):
        raise RelaxError(f"'{path}': {name}: expected sha256 {code.get('sha256')}, got {digest}: the artifact is damaged")
    return name, content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read(folder: str, name: str) -> bytes:
    return read_bytes(inside(folder, name, f"'{folder}'"))


def _decoded(text: bytes, path: str) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise RelaxError(f"'{path}': expected UTF-8 text, got other bytes") from None
