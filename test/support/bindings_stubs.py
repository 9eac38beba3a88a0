"""Writes type stubs beside the bindings' extension modules, whose wheel leaves them out; pyright then knows MLIR's classes.

Run by ``make types``. nanobind makes them from the signatures that the extension carries; what it gets wrong is mended here.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

from relaxir.dialect.bindings import DISTRIBUTION

EXTENSION = f"{DISTRIBUTION}._mlir_libs._mlir"

# What the generated text uses and lacks: the type variable of values (any type, when left out), and the class that the
# bindings define in Python.
_TYPES = """
from collections.abc import Mapping
from typing import Any, Self
from typing_extensions import TypeVar

_T = TypeVar("_T", default=Any, covariant=True)

class Context:
    current: Context
    allow_unregistered_dialects: bool
    emit_error_diagnostics: bool
    dialects: Any
    d: Any
    def __init__(self, load_on_create_dialects: Sequence[str] | None = None) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def append_dialect_registry(self, registry: Any) -> None: ...
    def attach_diagnostic_handler(self, callback: Callable[[Diagnostic], bool]) -> DiagnosticHandler: ...
    def enable_multithreading(self, enable: bool) -> None: ...
    def get_dialect_descriptor(self, name: str) -> Any: ...
    def is_dialect_loaded(self, name: str) -> bool: ...
    def is_registered_operation(self, name: str) -> bool: ...
    def load_all_available_dialects(self) -> None: ...

"""


# The concrete class is what the bindings return, and the signature does not say which: its attributes are then any. NumPy's
# arrays are buffers to a type checker from Python 3.12 on only, and dictionaries of one kind of attribute are fine, too.
_ANY_ATTRIBUTE = "\n    def __getattr__(self, name: str) -> Any: ...\n"
_BETTER = (
    ("\nclass Attribute:\n", f"\nclass Attribute:{_ANY_ATTRIBUTE}"),
    ("\nclass Type:\n", f"\nclass Type:{_ANY_ATTRIBUTE}"),
    ("\nclass AffineExpr:\n", f"\nclass AffineExpr:{_ANY_ATTRIBUTE}"),
    ("def owner(self) -> OpView | Block:", "def owner(self) -> Any:"),
    ("def shape(self) -> list | None:", "def shape(self) -> list[int]:"),
    ("array: Buffer", "array: Any"),
    ("dict[str, Attribute]", "Mapping[str, Attribute]"),
    # Sequence declares it, with types.
    ('    def __getitem__(self, key, /):\n        """Return self[key]."""\n', ""),
)


def main() -> None:
    """Generates the stubs in the environment that runs this."""
    spec = importlib.util.find_spec(EXTENSION)
    if spec is None or spec.origin is None:
        raise SystemExit(f"expected the bindings' extension module {EXTENSION}, got none")
    folder = Path(spec.origin).parent
    command = [
        sys.executable,
        "-m",
        "nanobind.stubgen",
        "--quiet",
        "--module",
        EXTENSION,
        "--recursive",
        "--output-dir",
        folder,
    ]
    subprocess.run(command, check=True)
    for stub in (folder / "_mlir").glob("*.pyi"):
        stub.write_text(_mended(stub.read_text(), stub.stem))


def _mended(text: str, module: str) -> str:
    """The text with names of its own package that resolve, and with what it lacks."""
    text = text.replace("import _mlir.ir\n", f"from {EXTENSION} import ir\n" if module != "ir" else "")
    text = re.sub(r"(?<![\w.])_mlir\.ir\.", "" if module == "ir" else "ir.", text)
    if module != "ir":
        return text
    text = text.replace(f"from {DISTRIBUTION}._mlir_libs import Context as Context\n", "")
    for signature, better in _BETTER:
        if signature not in text:
            raise SystemExit(f"expected '{signature}' in the generated stub, got none")
        text = text.replace(signature, better)
    first = text.index("\nclass ")
    return text[:first] + _TYPES + text[first:]


if __name__ == "__main__":
    main()
