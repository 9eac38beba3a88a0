"""Importing models of other frameworks as relax modules; each framework is imported only when it is asked for."""

from .torch_import import from_torch, save_weights

__all__ = ["from_torch", "save_weights"]
