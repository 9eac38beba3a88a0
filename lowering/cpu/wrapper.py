"""The C entry point of a compiled function, as LLVM IR text: pointers in, memref descriptors passed on.

``int64_t <symbol>(void *const *tensors, const int64_t *symbols, void *arena, int64_t arena_bytes)`` loads each tensor's
address, computes its dimensions from the symbols, and calls the function that MLIR lowered, whose memref arguments are
expanded to (allocated, aligned, offset, sizes, strides). It returns the arena bytes needed, before anything is done, when
the arena given is too small.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.symbolic import Expr
from ..arena import Arena
from ..manifest_specs import EntrySpec
from ..symbolic_llvm import llvm_text, saturating_text

__all__ = ["body_name", "entry_point"]


def body_name(spec: EntrySpec) -> str:
    """The name that the lowered function has beside its entry point; no C function has a dot."""
    return spec.symbol + ".body"


def entry_point(spec: EntrySpec, arena: Arena, more: Sequence[str] = ()) -> str:
    """The text of the entry point's definition; ``more`` are names of pointers that it takes, and its function gets last:
    the driver of a GPU, the tables of :mod:`..collective_call` and :mod:`.call_externs`."""
    pointers = [f"ptr %{name}" for name in more]
    lines: list[str] = []
    symbols = {s.name: _load("i64", "%symbols", i, lines) for i, s in enumerate(spec.symbols)}
    need = saturating_text(arena.size, symbols, lines, "need")
    lines += [f"  %enough = icmp sge i64 %arena_bytes, {need}", "  br i1 %enough, label %run, label %grow"]
    lines += ["grow:", f"  ret i64 {need}", "run:"]
    arguments: list[str] = []
    for i, shape in enumerate(spec.shapes):
        arguments += _descriptor(_load("ptr", "%tensors", i, lines), shape, symbols, lines, f"t{i}_")
    arguments += ["ptr %arena", "ptr %arena", "i64 0", "i64 %arena_bytes", "i64 1"]
    arguments += [f"i64 {value}" for value in symbols.values()]
    arguments += pointers
    lines.append(f"  %status = call i64 @{body_name(spec)}({', '.join(arguments)})")
    lines.append("  ret i64 %status")
    parameters = ["ptr %tensors", "ptr %symbols", "ptr %arena", "i64 %arena_bytes", *pointers]
    head = f"define i64 @{spec.symbol}({', '.join(parameters)}) {{"
    return "\n".join([head, *lines, "}", ""])


def _load(type_: str, base: str, position: int, lines: list[str]) -> str:
    address, value = f"%address{len(lines)}", f"%value{len(lines)}"
    lines.append(f"  {address} = getelementptr {type_}, ptr {base}, i64 {position}")
    lines.append(f"  {value} = load {type_}, ptr {address}")
    return value


def _descriptor(
    pointer: str, shape: Sequence[int | Expr], symbols: dict[str, str], lines: list[str], prefix: str
) -> list[str]:  # fmt: skip
    sizes = [llvm_text(d, symbols, lines, prefix) for d in shape]
    stride: int | Expr = 1
    strides: list[str] = []
    for dim in reversed(shape):
        strides.append(llvm_text(stride, symbols, lines, prefix))
        stride = stride * dim
    return [f"ptr {pointer}", f"ptr {pointer}", "i64 0", *(f"i64 {v}" for v in [*sizes, *reversed(strides)])]
