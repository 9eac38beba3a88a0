"""Who is compared: each peer is a module here with ``load(case, folder, threads)``, imported only in a process of its own."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..cases import Case

__all__ = ["FORMS", "OURS", "OWN", "PEERS", "Loaded", "NotApplicableError", "Peer", "formats_of", "inputs_of"]

OURS = "relaxir"
#: Ours in other forms: what it has in each, and where, as tables say it.
FORMS = {
    "relaxir-int8": ("int8 activations", "where weights are int8 or int4, as peers have them"),
    "relaxir-direct": ("direct convolutions", "where there are others"),
    "relaxir-state": ("a cache of f16 as state", "where a step is behind a cache, as llama.cpp has it"),
}
#: Ours in all its forms: they are in our interpreter, and none is the best peer.
OWN = (OURS, *FORMS)


class NotApplicableError(Exception):
    """The peer has nothing of its own for this case; the text says why."""


@dataclass(frozen=True)
class Loaded:
    """A case, ready to run.

    Attributes:
        call: runs it once; what is timed.
        arrays: a call's result as arrays, as many of the reference's outputs, in order, as the peer gives.
        note: what is special about how the peer runs it.
    """

    call: Callable[[], Any]
    arrays: Callable[[Any], list[np.ndarray]]
    note: str = ""


@dataclass(frozen=True)
class Peer:
    """One who is compared.

    Attributes:
        name: what ``--peers`` selects by.
        module: where its ``load`` is.
        needs: packages that must be importable.
        version_of: the distribution whose version is told.
        formats: files of the reference that it reads; ``"file"``: cases that are one.
        copies: how many times it holds the weights, about.
    """

    name: str
    module: str
    needs: tuple[str, ...]
    version_of: str
    formats: tuple[str, ...] = ()
    copies: float = 2.0

    def missing(self) -> list[str]:
        """The packages that are not there."""
        return [name for name in self.needs if not _is_there(name)]

    def version(self) -> str:
        return importlib.metadata.version(self.version_of)

    def load(self, case: Case, folder: Path, threads: int) -> Loaded:
        """Builds the case. Raises NotApplicableError, or whatever goes wrong."""
        if case.file and "file" not in self.formats:
            raise NotApplicableError("the case is an ONNX file of its own")
        for name in self.formats:
            error = folder / f"{name}.error"
            if error.exists() and name != "nbits":
                raise RuntimeError(error.read_text())
        return importlib.import_module(f"{__name__}.{self.module}").load(case, folder, threads)


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in [
        Peer(OURS, "relaxir", ("relaxir", "torch"), "relaxir", ("file",), copies=1),
        Peer("torch", "torch_eager", ("torch",), "torch", copies=1),
        Peer("torch-compile", "torch_compiled", ("torch",), "torch", copies=2),
        Peer("onednn", "onednn", ("torch",), "torch", copies=1),
        Peer("onnxruntime", "onnx_runtime", ("onnxruntime",), "onnxruntime", ("onnx", "nbits", "file")),
        Peer("openvino", "openvino_cpu", ("openvino",), "openvino", ("onnx", "nbits", "file")),
        Peer("iree", "iree_cpu", ("iree.compiler", "iree.runtime", "onnx"), "iree-base-runtime", ("onnx",)),
        Peer("tvm", "tvm_cpu", ("tvm", "onnx"), "apache-tvm", ("onnx",)),
        Peer("llama.cpp", "llama_cpp_python", ("llama_cpp", "gguf"), "llama-cpp-python", ("gguf",), copies=1),
        Peer("ik_llama.cpp", "ik_llama", ("ik_llama_cpp", "gguf"), "ik-llama-cpp-python", ("gguf",), copies=1),
        Peer("zentorch", "zentorch_compiled", ("torch", "zentorch"), "zentorch", copies=2),
        Peer("relaxir-int8", "relaxir_int8", ("relaxir", "torch"), "relaxir", copies=1),
        Peer("relaxir-direct", "relaxir_direct", ("relaxir", "torch"), "relaxir", copies=1),
        Peer("relaxir-state", "relaxir_state", ("relaxir", "torch", "transformers"), "relaxir", copies=2),
    ]
}


def inputs_of(folder: Path) -> dict[str, np.ndarray]:
    """The case's inputs by name."""
    with np.load(folder / "inputs.npz") as file:
        return dict(file)


def formats_of(case: Case, peers: Iterable[Peer]) -> list[str]:
    """The files that these peers read of a case."""
    wanted = {f for p in peers for f in p.formats}
    if case.file:
        return sorted(wanted & {"file"})
    unfit = {"file"} if case.gguf else {"file", "gguf"}
    return sorted(wanted - unfit - (set() if case.weights in ("int8", "int4") else {"nbits"}))
