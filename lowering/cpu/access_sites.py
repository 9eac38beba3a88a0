"""What accesses checked code may name when one is outside of its buffer: a text each, by number."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...dialect.bindings import ir

__all__ = ["AccessSites"]


@dataclass
class AccessSites:
    """Numbers of texts; ``what`` computes what follows."""

    numbers: dict[str, int] = field(default_factory=dict)
    what: str = ""

    def access(self, op: ir.Operation, memory: ir.Value) -> int:
        name = ir.StringAttr(op.attributes["intrin"]).value if op.name == "llvm.call_intrinsic" else op.name
        return self.number(f"{_place(op.location)}{self.what}: {name} of {memory.type}")

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def _place(location: ir.Location) -> str:
    """The user's line."""
    if isinstance(location, ir.NameLoc):
        return _place(location.child_loc)
    if isinstance(location, ir.FileLineColLoc):
        return f"{location.filename}:{location.start_line}:{location.start_col}: "
    if isinstance(location, ir.FusedLoc):
        return next(
            (text for inner in location.locations if isinstance(inner, ir.Location) for text in [_place(inner)] if text), ""
        )
    if isinstance(location, ir.CallSiteLoc):
        return _place(location.callee)
    return ""
