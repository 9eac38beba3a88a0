"""``relaxir.load``: an artifact's folder as an executable."""

from __future__ import annotations

import os
from logging import getLogger

from ..dialect.checks import expect_text
from ..weights.files import path_text
from .artifact import read_artifact
from .executable import Executable
from .externs import ExternPaths

__all__ = ["load"]

_LOG = getLogger("relaxir.load")


def load(path: str | os.PathLike[str], device: str | None = None, *, externs: ExternPaths | None = None) -> Executable:
    """Loads an artifact; neither MLIR nor a compiler is needed. Its code runs with your rights: load only what you trust.

    Args:
        path: the directory.
        device: where it runs: ``"cpu"``; of code for GPUs ``"cuda:0"`` (the default), another number, or ``"emulated"``, which
            runs the kernels on the CPU, slowly, and checks what they do.
        externs: libraries of functions that the code calls (``relax.call_extern``), by the functions' names, where they are not
            those that it was compiled for: ``{"acme_scale": "libacme.so"}``.

    Raises:
        RelaxError: its code runs on no such device, it is no artifact, a file is missing or damaged, or its version or
            processor is another one, or a function of another library that it calls is not there.
    """
    expect_text(device, "a device as text", optional=True)
    artifact = read_artifact(path_text(path), device)
    _LOG.info("loaded %s, code for %s", path, artifact.manifest.target.cpu or artifact.manifest.target.triple)
    return Executable(
        artifact.manifest,
        artifact.library,
        object_code=None if artifact.is_linked else artifact.code,
        shared_code=artifact.code if artifact.is_linked else None,
        module_text=artifact.module_text,
        header=artifact.header,
        device=device,
        externs=externs,
        trusted=True,
    )
