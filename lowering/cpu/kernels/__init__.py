"""Kernel templates: linalg operations on buffers become loops over vectors."""

from .lower import lower_kernels

__all__ = ["lower_kernels"]
