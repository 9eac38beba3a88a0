"""Which entry a call without a name is for, and what is wrong with one that cannot be called."""

from __future__ import annotations

from collections.abc import Mapping

from ..dialect.errors import RelaxError
from ..lowering.manifest_specs import EntrySpec

__all__ = ["default_entry", "unbound_entry"]


def default_entry(entries: Mapping[str, EntrySpec]) -> str:
    """The only entry, or the one named ``main``. Raises RelaxError where there is neither."""
    names = list(entries)
    if len(names) == 1:
        return names[0]
    if "main" not in names:
        raise RelaxError(f"expected entry= to name one of {', '.join(names)}, got none")
    return "main"


def unbound_entry(entries: Mapping[str, EntrySpec], name: object) -> RelaxError:
    """The error of a call of an entry that is not there, or has no weights yet."""
    entry = entries.get(name) if isinstance(name, str) else None
    if entry is None:
        return RelaxError(f"expected an entry out of {', '.join(entries)}, got {name!r}")
    return RelaxError(f"entry '{name}': expected bound weights ({len(entry.weights)}), got none: call prepare, then bind")
