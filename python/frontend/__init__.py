"""Importing models of other frameworks as relax modules; each framework is imported only when it is asked for."""

from .compiled_graphs import torch_graphs
from .custom_operators import Extern, register_torch_op
from .onnx.importer import from_onnx
from .saved_program import save_program
from .torch_import import from_torch, save_weights

__all__ = ["Extern", "from_onnx", "from_torch", "register_torch_op", "save_program", "save_weights", "torch_graphs"]
