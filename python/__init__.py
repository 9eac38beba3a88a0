"""relaxir compiles a model once, prepares its weights once, streamed, and runs on weights already in the kernels' layout.

Names are imported when first used: ``import relaxir`` and running a compiled artifact import neither MLIR nor torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .dialect.errors import DiagnosticError, RelaxError, RelaxWarning

if TYPE_CHECKING:
    from . import transformers
    from .building.builder import Builder
    from .building.layers import Layer, Parameter
    from .calibration import calibrate
    from .compiler import compile
    from .evaluation import evaluate
    from .frontend import Extern, from_onnx, from_torch, register_torch_op, save_program, save_weights, torch_graphs
    from .mesh import Mesh
    from .module import Module
    from .runtime.executable import Executable
    from .runtime.loading import load

__all__ = [
    "Builder",
    "DiagnosticError",
    "Executable",
    "Extern",
    "Layer",
    "Mesh",
    "Module",
    "Parameter",
    "RelaxError",
    "RelaxWarning",
    "calibrate",
    "compile",
    "evaluate",
    "from_onnx",
    "from_torch",
    "load",
    "register_torch_op",
    "save_program",
    "save_weights",
    "torch_graphs",
    "transformers",
]

__version__ = "0.1.0"

#: Where each name that is imported on demand lives; never in a file of the same name, which would take its place here.
_HOMES = {
    "Builder": "building.builder",
    "calibrate": "calibration",
    "Executable": "runtime.executable",
    "Extern": "frontend",
    "Layer": "building.layers",
    "Mesh": "mesh",
    "Module": "module",
    "Parameter": "building.layers",
    "compile": "compiler",
    "evaluate": "evaluation",
    "from_onnx": "frontend",
    "from_torch": "frontend",
    "load": "runtime.loading",
    "register_torch_op": "frontend",
    "save_program": "frontend",
    "save_weights": "frontend",
    "torch_graphs": "frontend",
}


def __getattr__(name: str) -> Any:
    if name == "transformers":
        return importlib.import_module(".transformers", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
