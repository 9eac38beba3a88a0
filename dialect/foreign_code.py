"""What packages of others write for their ops: what it gives and raises, as errors of the op in place of tracebacks of ours."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .errors import RelaxError

__all__ = ["check_ops", "error_text", "is_foreign", "missing_in"]

_PACKAGE = __name__.partition(".")[0]


def is_foreign(code: Any) -> bool:
    """Whether a class or function is another package's. What ours raises is a bug, and stays a traceback."""
    return code.__module__.partition(".")[0] != _PACKAGE


def error_text(error: Exception) -> str:
    """An exception in a message."""
    return f"{type(error).__name__}: {error}"


def missing_in(name: str, part: str) -> str:
    """Where a package that defines an op should say more of it, for the end of a message; empty for an op of ours."""
    from .context import operations  # here: it loads the packages

    found = next((cls for cls in operations() if name == cls.OPERATION_NAME), None)
    return f", which {found.__module__.rpartition('.')[0]}.{part} is to give" if found is not None and is_foreign(found) else ""


def check_ops(found: Mapping[str, Any], part: str, prefix: str = "") -> None:
    """Raises RelaxError where a package says something (``part``) of an op that does not exist."""
    from .context import operations

    foreign = {name: function for name, function in found.items() if is_foreign(function)}
    known: Collection[str] = {cls.OPERATION_NAME for cls in operations()} if foreign else ()
    for name, function in foreign.items():
        if f"{prefix}{name}" not in known:
            raise RelaxError(f"expected the {part} of an op, got that of '{prefix}{name}' in {function.__module__}")
