"""Runs PTX without a GPU, and checks it as a sanitizer does: README.md.

>>> machine = Machine("sm_90a", Options())
>>> program = machine.load(ptx)
>>> machine.run(program, "kernel", grid=[4], block=[128], args=[machine.upload(array), 512])
"""

from __future__ import annotations

from .core import Options
from .driver import Library
from .findings import KINDS, Finding, PtxError
from .machine import Machine
from .tensor_map import TensorMap

__all__ = ["KINDS", "Finding", "Library", "Machine", "Options", "PtxError", "TensorMap", "library"]


def library(arch: str = "sm_90a", checks: bool | Options = True, memory: int = 2 << 30) -> Library:
    """A libcuda whose only device is emulated: see :class:`Library`. Raises PtxError for an unknown ``arch``."""
    return Library(arch, checks, memory)
