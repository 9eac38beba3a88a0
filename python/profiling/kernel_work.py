"""Bytes and operations of kernels, where sizes are constant, or become so when symbols have values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.functions import functions, name_of
from ..dialect.passes.manager import observing
from ..dialect.reports.kernels import KernelSection
from ..dialect.reports.report import collecting
from ..dialect.symbolic import Expr, evaluate, parse
from ..dialect.traversal import nested_operations
from ..lowering.compiler import Compiler
from ..lowering.fusion.linalg_queries import index_maps
from ..lowering.lower import lower
from ..lowering.marks import CONTRACTION, KERNEL
from ..module import Module

__all__ = ["CountedKernel", "kernel_works"]

_LAST = "relax-report-kernels"
_TYPE = re.compile(r"tensor<([\dx?]*\?[\dx?]*x)([a-z]\w*), \{([^{}]*)\}>")
_SYM = re.compile(r"sym = \[([^]]*)\](?:, )?")
_LIST = re.compile(r'= \[[^]"]*"[^]]*\]')
_TEXT = re.compile(r'"([^"]*)"')
_RANGES = re.compile(r", relax\.symbol_ranges = \{[^{}]*\}|relax\.symbol_ranges = \{[^{}]*\},? ?")
#: Operations of a body that are none of arithmetic: choices, and conversions.
_FREE = frozenset(f"arith.{name}" for name in (
    "constant", "select", "index_cast", "bitcast", "extf", "truncf", "extsi", "extui", "trunci",
    "sitofp", "uitofp", "fptosi", "fptoui",
))  # fmt: skip


_MULTIPLY_ADD = 2


@dataclass(frozen=True)
class CountedKernel:
    """What one call of a kernel takes.

    Attributes:
        kind, ops: as in the report's :class:`~relaxir.dialect.reports.kernels.Kernel`.
        bytes: read and written, each operand once; None where that is not known.
        flops: arithmetic operations; None likewise, as for loops.
    """

    kind: str
    ops: tuple[str, ...]
    bytes: int | None
    flops: int | None


def kernel_works(text: str, compiler: Compiler, sizes: Mapping[str, int]) -> dict[str, list[CountedKernel]]:
    """The kernels of each entry, in order of their first calls; none where the module cannot be lowered for these sizes.

    Args:
        text: relax, after its own passes.
        compiler: what lowers it.
        sizes: of symbols.
    """
    flops: dict[str, int | None] = {}

    def observe(element: str, op: ir.Operation) -> None:
        if element == _LAST:
            flops.update({name_of(f): _flops(f.operation) for f in functions(op) if KERNEL in f.attributes})

    pipeline = compiler.pipeline(False)
    try:
        module = Module.parse(_with_sizes(text, sizes))
        with collecting() as told, observing(observe):
            lower(module.ir.operation, pipeline[: pipeline.index(_LAST) + len(_LAST)])
    except RelaxError:
        return {}
    found: dict[str, list[CountedKernel]] = {}
    for section in told.sections:
        if isinstance(section, KernelSection):
            for k in section.kernels:
                known = k.bytes_read is not None and k.bytes_written is not None
                size = (k.bytes_read or 0) + (k.bytes_written or 0) if known else None
                found.setdefault(section.function, []).append(CountedKernel(k.kind, k.ops, size, flops.get(k.name)))
    return found


def _with_sizes(text: str, sizes: Mapping[str, int]) -> str:
    """A module with sizes in the place of symbols that have one."""
    if not sizes:
        return text
    text = _RANGES.sub("", _TYPE.sub(lambda found: _static(found, sizes), text))
    return _LIST.sub(lambda found: _TEXT.sub(lambda name: _size_text(name, sizes), found[0]), text)


def _static(found: re.Match[str], sizes: Mapping[str, int]) -> str:
    listed = _SYM.search(found[3])
    values = iter([_value(t, sizes) for t in _TEXT.findall(listed[1])] if listed is not None else [])
    dims = [next(values, None) if d == "?" else d for d in found[1].split("x")[:-1]]
    if any(d is None for d in dims):
        return found[0]
    rest = _SYM.sub("", found[3]).rstrip(", ")
    return f"tensor<{''.join(f'{d}x' for d in dims)}{found[2]}{f', {{{rest}}}' if rest else ''}>"


def _size_text(found: re.Match[str], sizes: Mapping[str, int]) -> str:
    value = _value(found[1], sizes)
    return found[0] if value is None else str(value)


def _value(text: str, sizes: Mapping[str, int]) -> int | None:
    try:
        expr = parse(text)
    except RelaxError:
        return None
    return evaluate(expr, sizes) if isinstance(expr, Expr) and expr.names <= sizes.keys() else None


def _flops(kernel: ir.Operation) -> int | None:
    """Operations of the kernel's linalg ops; None where loops are around them, or sizes are unknown.

    A product of narrow numbers counts as one of wide ones: what its body does to each factor, kernels do once for many steps.
    """
    total = 0
    for op in nested_operations(kernel):
        if op.name.startswith("scf."):
            return None
        if op.name == "linalg.generic":
            rounds = _rounds(op)
            if rounds is None:
                return None
            total += rounds * (_MULTIPLY_ADD if CONTRACTION in op.attributes else _arithmetic(op))
    return total


def _arithmetic(op: ir.Operation) -> int:
    names = [o.operation.name for o in op.regions[0].blocks[0].operations]
    return sum(n.startswith(("arith.", "math.")) and n not in _FREE for n in names)


def _rounds(op: ir.Operation) -> int | None:
    """How often a body runs."""
    sizes: dict[int, int] = {}
    for operand, map_ in zip(op.operands, index_maps(op), strict=True):
        type_ = operand.type
        if not isinstance(type_, ir.RankedTensorType):
            continue
        if not type_.has_static_shape:
            return None
        for size, index in zip(type_.shape, map_.results, strict=True):
            if isinstance(index, ir.AffineDimExpr):
                sizes[index.position] = size
    return prod(sizes.values())
