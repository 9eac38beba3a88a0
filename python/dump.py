"""The stages of a compilation as files: the module after each pass, LLVM IR and assembly, numbered in their order.

::

    00-start.mlir  01-expand-tuple-arguments.mlir  02-inline-private-functions.mlir ... 71-code.ll  72-code.s  passes.txt

``passes.txt`` has one pass a line, ``NN  pass{options}``: ``relax-opt 30-outline-kernels.mlir`` with the passes of the lines
behind ``30`` gives the last module again.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from .dialect.bindings import ir
from .weights.files import os_errors, path_text

__all__ = ["Dump"]


class Dump:
    """Writes what it is told of to a folder, which it makes."""

    def __init__(self, folder: str | os.PathLike[str]):
        """Takes the folder's path; what other dumps left there goes. Raises RelaxError when it cannot be written."""
        self._folder, self._count, self._passes = Path(path_text(folder, "write")), 0, list[str]()
        with os_errors("write", str(self._folder)):
            self._folder.mkdir(parents=True, exist_ok=True)
            for path in self._folder.iterdir():
                if re.fullmatch(r"\d+-[\w.-]+\.(mlir|ll|s)|passes\.txt", path.name):
                    path.unlink()

    def start(self, module: ir.Operation) -> None:
        """The module before all passes."""
        self._write("start.mlir", _text(module))

    def after(self, element: str, module: ir.Operation) -> None:
        """The module after a pass, which a pipeline says as ``element``."""
        self._passes.append(f"{self._count:02}  {element}")
        self._write(f"{_name(element)}.mlir", _text(module))
        with os_errors("write", str(self._folder)):
            (self._folder / "passes.txt").write_text("\n".join([*self._passes, ""]))

    def code(self, suffix: str, text: str) -> None:
        """What code is made of, ``ll`` or ``s``."""
        self._write(f"code.{suffix}", text)

    def _write(self, name: str, text: str) -> None:
        with os_errors("write", str(self._folder)):
            (self._folder / f"{self._count:02}-{name}").write_text(text)
        self._count += 1


def _name(element: str) -> str:
    """A pass without its options, those of a nested list joined: ``func.func-canonicalize-cse``."""
    plain = re.sub(r"\{[^{}]*\}", "", element)
    return "-".join(re.findall(r"[\w.-]+", plain)).removeprefix("relax-")


def _text(module: ir.Operation) -> str:
    return module.get_asm(assume_verified=True).rstrip("\n") + "\n"
