"""``relaxir info``: the manifest of an executable, or what a module has, as lines of text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..dialect.extern_functions import library_text
from ..dialect.reports.report import bytes_text, plural
from ..lowering.manifest import Manifest
from ..lowering.manifest_specs import EntrySpec, total_bytes
from ..runtime.backend import runtime_of
from .summary import lifted_groups, symbol_text

if TYPE_CHECKING:
    from ..module import Module, Signature, SignatureTensor

__all__ = ["info_data", "info_lines", "module_data", "module_lines", "signature_data"]

#: Names of weights shown for each group.
_EXAMPLES = 2
#: Kinds of operations shown for each function.
_KINDS = 6


def info_lines(manifest: Manifest) -> Iterator[str]:
    """Entries, symbols with ranges, weights before and after, what is lifted and what not, memory that preparation needs."""
    for entry in manifest.entries.values():
        yield from _entry(entry)
    raw, prepared = manifest.raw_weights, manifest.prepared_weights
    yield f"raw weights: {len(raw)}, {bytes_text(total_bytes(raw))}"
    yield f"prepared weights: {len(prepared)}, {bytes_text(total_bytes(prepared))}"
    for group in lifted_groups(manifest):
        examples = ", ".join(group.prepared[:_EXAMPLES]) + (", ..." if len(group.prepared) > _EXAMPLES else "")
        sizes = f"{bytes_text(group.raw_bytes)} -> {bytes_text(group.prepared_bytes)}"
        yield f"  {group.title}: {len(group.raw)} -> {len(group.prepared)}, {sizes} ({examples})"
    yield from manifest.report.summary()
    computed = sum(step.symbol is not None for step in manifest.steps)
    steps = plural(len(manifest.steps), "step")
    yield f"preparation: {steps}, {computed} computed, predicted peak {bytes_text(manifest.peak_bytes)}"
    if manifest.ranks > 1:
        yield f"runs on {manifest.ranks} ranks (mpiexec -n {manifest.ranks}): weights and bytes are those of each"
    yield from (f"calls {e.symbol} of {library_text(e.library)}" for e in manifest.externs)
    if manifest.accesses is not None:
        yield f"checked: {plural(len(manifest.accesses), 'place')} of accesses"
    runtime = runtime_of(manifest)
    yield from runtime.described(manifest)
    yield f"target: {runtime.target_text(manifest)}"
    yield f"fingerprint: {manifest.fingerprint}"


def info_data(manifest: Manifest) -> dict[str, Any]:
    """The same for programs."""
    raw, prepared = manifest.raw_weights, manifest.prepared_weights
    return {
        "entries": {name: _entry_data(entry) for name, entry in manifest.entries.items()},
        "raw_weights": {"count": len(raw), "bytes": total_bytes(raw)},
        "prepared_weights": {"count": len(prepared), "bytes": total_bytes(prepared)},
        "groups": [
            {"ops": g.ops, "layout": g.layout, "raw": g.raw, "prepared": g.prepared, "raw_bytes": g.raw_bytes}
            | {"prepared_bytes": g.prepared_bytes}
            for g in lifted_groups(manifest)
        ],
        "report": manifest.report.as_json(),
        "steps": len(manifest.steps),
        "peak_bytes": manifest.peak_bytes,
        "ranks": manifest.ranks,
        "externs": {e.symbol: e.library for e in manifest.externs},
        "target": runtime_of(manifest).target_text(manifest),
        "fingerprint": manifest.fingerprint,
    }


def _entry_data(entry: EntrySpec) -> dict[str, Any]:
    return {
        "inputs": {s.name: str(s) for s in entry.inputs},
        "outputs": {s.name: str(s) for s in entry.outputs},
        "state": [s.name for s in entry.state],
        "symbols": {s.name: [s.min, s.max] for s in entry.symbols},
        "weights": len(entry.weights),
        "checks": [str(check) for check in entry.checks],
    }


def module_data(module: Module) -> dict[str, Any]:
    """What :func:`module_lines` tells, for programs."""
    from ..dialect.functions import functions

    pairs = zip(functions(module.ir.operation), module.functions.values(), strict=True)
    return {"functions": [signature_data(f) | {"operations": dict(_operations(op.operation))} for op, f in pairs]}


def signature_data(function: Signature) -> dict[str, Any]:
    """A function's signature; bytes of its weights where their sizes are known."""
    return {
        "name": function.name,
        "private": function.private,
        "transform_for": function.transform_for,
        "inputs": {s.name: str(s) for s in function.inputs},
        "outputs": {s.name: str(s) for s in function.outputs},
        "weights": {s.name: str(s) for s in function.weights},
        "weight_bytes": sum(_bytes(s) or 0 for s in function.weights),
    }


def _operations(function: Any) -> Counter[str]:
    """How many there are of each kind."""
    from ..dialect.traversal import nested_operations

    counts = Counter(op.name.removeprefix("relax.") for op in nested_operations(function))
    counts.pop("func.return", None)
    return counts


def module_lines(module: Module) -> Iterator[str]:
    """Functions with what they take and give, how many operations of which kind each has, and bytes of weights."""
    from ..dialect.functions import functions

    for operation, function in zip(functions(module.ir.operation), module.functions.values(), strict=True):
        prepares = f", prepares @{function.transform_for}" if function.transform_for else ""
        yield f"{'private ' if function.private else ''}function {replace(function, weights=())}{prepares}"
        sizes = [_bytes(weight) for weight in function.weights]
        unknown = sizes.count(None)
        more = f", and {unknown} of unknown size" if unknown else ""
        yield f"  weights: {len(sizes)}, {bytes_text(sum(size or 0 for size in sizes))}{more}"
        counts = _operations(operation.operation)
        kinds = [f"{count} {name}" for name, count in counts.most_common(_KINDS)]
        kinds += ["..."] if len(counts) > _KINDS else []
        yield f"  operations: {counts.total()}" + (f" ({', '.join(kinds)})" if kinds else "")


def _bytes(tensor: SignatureTensor) -> int | None:
    """What a tensor takes; None where a size is not known, or it is of no kind that has bytes."""
    from ..dialect.dtypes import numpy_dtype
    from ..dialect.errors import RelaxError

    if tensor.shape is None or not all(isinstance(size, int) for size in tensor.shape):
        return None
    try:
        dtype = numpy_dtype(tensor.dtype)
    except RelaxError:
        return None
    count = math.prod(int(size) for size in tensor.shape)
    return (count + 1) // 2 if tensor.dtype in ("i4", "ui4") else count * dtype.itemsize


def _entry(entry: EntrySpec) -> Iterator[str]:
    yield f"entry {entry}"
    if entry.symbols:
        yield f"  symbols: {', '.join(symbol_text(s.name, s.min, s.max) for s in entry.symbols)}"
    yield f"  weights: {len(entry.weights)}"
    for check in entry.checks:
        yield f"  checks: {check}"
