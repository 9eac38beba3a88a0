"""An executable on disk: a directory with manifest.json, module.mlir, module.h, and module.so (module.a without C compiler)."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ..dialect.errors import RelaxError
from ..lowering.manifest import Manifest
from ..weights.files import inside, os_errors, path_text, read_bytes, sync_folder, write_file
from ..weights.json_text import parse_json
from .backend import runtime_of
from .library import Library

__all__ = ["Artifact", "read_artifact", "read_manifest", "write_artifact"]

MANIFEST = "manifest.json"
MODULE = "module.mlir"
HEADER = "module.h"

# A manifest of 10,000 weights has 3 MB; a larger file is refused before it is read as JSON.
_MAX_MANIFEST_BYTES = 256 << 20

# Of Linux: paths are relative to the current folder; renameat2 exchanges.
_HERE, _EXCHANGE = -100, 2


@dataclass(frozen=True)
class Artifact:
    """What an artifact directory holds.

    Attributes:
        manifest: what its JSON object says.
        library: the loaded code.
        module_text: MLIR text of the module; empty where it has been removed: running needs none.
        header: C header; None where it has been removed.
        code: the content of the code file.
        is_linked: whether that is what a run time has written rather than what the compiler made.
    """

    manifest: Manifest
    library: Library
    module_text: str
    header: str | None
    code: bytes
    is_linked: bool


def write_artifact(
    path: str, manifest: Manifest, module_text: str, header: str, code: bytes, is_linked: bool
) -> None:  # fmt: skip
    """Writes an artifact under its name at once; an artifact that exists there is replaced.

    Args:
        path: the directory.
        manifest: its ``code`` entry is made here.
        module_text: MLIR text of the module that the code was compiled from; empty: none is written.
        header: C header.
        code: what the compiler made; of a CPU, a C compiler (``cc``, ``gcc``, ``clang``) links it when there is one.
        is_linked: the code is out of an artifact, and may be a shared library already.

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
        name = runtime_of(manifest).write(folder, code, is_linked)
        if module_text:
            write_file(folder, MODULE, module_text.encode())
        write_file(folder, HEADER, header.encode())
        digest = _digest(_read(folder, name))
        data = {**manifest.data, "code": {"file": name, "sha256": digest}}
        write_file(folder, MANIFEST, (json.dumps(data, indent=1) + "\n").encode())
        _exchange(folder, path, os.path.join(temporary, "old"))
        sync_folder(os.path.dirname(path))


def read_artifact(path: str, device: str | None = None) -> Artifact:
    """Reads and loads an artifact. Its code runs with the rights of this process: load only what you trust.

    Args:
        path: the directory.
        device: where it is to run.

    Raises:
        RelaxError: it is no artifact, a file is missing or damaged, or its code is for another processor.
    """
    manifest = read_manifest(path)
    runtime = runtime_of(manifest, device)
    runtime.check(manifest, f"'{path}'")
    name, code = _checked_code(path, manifest.data, runtime.files)
    library = runtime.load(os.path.join(path, name), code, manifest)
    return Artifact(manifest, library, _text(path, MODULE) or "", _text(path, HEADER), code, runtime.files[name])


def read_manifest(path: str) -> Manifest:
    """The manifest of an artifact, also of one for another processor: no code is loaded.

    Raises:
        RelaxError: it is no artifact, or its manifest is malformed.
    """
    path = path_text(path)
    if not os.path.isdir(path):
        got = "a file" if os.path.exists(path) else "nothing"
        raise RelaxError(f"'{path}': expected an artifact directory, got {got}")
    if not os.path.exists(os.path.join(path, MANIFEST)):
        raise RelaxError(f"'{path}': expected {MANIFEST} in an artifact directory, got none")
    data = _read_manifest(inside(path, MANIFEST, f"'{path}'"))
    return Manifest.of(data, f"'{path}': manifest")


def _check_replaceable(path: str) -> None:
    if not os.path.isdir(os.path.dirname(path)):
        raise RelaxError(f"cannot write '{path}': expected an existing folder, got '{os.path.dirname(path)}'")
    if not os.path.lexists(path):
        return
    if os.path.islink(path):
        raise RelaxError(f"cannot write '{path}': expected nothing or an artifact there, got a symbolic link")
    is_artifact = os.path.isdir(path) and os.path.exists(os.path.join(path, MANIFEST))
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


def _read_manifest(path: str) -> object:
    text = read_bytes(path, _MAX_MANIFEST_BYTES, "a manifest")
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise RelaxError(f"'{path}': expected a manifest in JSON, got {type(error).__name__}: {error}") from None


def _checked_code(path: str, data: Mapping[str, Any], names: Collection[str]) -> tuple[str, bytes]:
    """Name and content of the code file, one of these names; the content must be what the manifest says."""
    entry = data.get("code")
    code = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    name = code.get("file")
    if not isinstance(name, str) or name not in names:
        raise RelaxError(f"'{path}': manifest.code.file: expected {' or '.join(names)}, got {name!r}")
    content = _read(path, name)
    digest = _digest(content)
    if digest != code.get("sha256"):
        raise RelaxError(f"'{path}': {name}: expected sha256 {code.get('sha256')}, got {digest}: the artifact is damaged")
    return name, content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read(folder: str, name: str) -> bytes:
    return read_bytes(inside(folder, name, f"'{folder}'"))


def _text(folder: str, name: str) -> str | None:
    """The content of a file that running does not need; None where there is none."""
    if not os.path.lexists(os.path.join(folder, name)):
        return None
    try:
        return _read(folder, name).decode()
    except UnicodeDecodeError:
        raise RelaxError(f"'{os.path.join(folder, name)}': expected UTF-8 text, got other bytes") from None
