"""``relaxir.compile``: a module in, an executable out."""

from __future__ import annotations

import functools
import hashlib
import json
import warnings
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from . import dialect, lowering
from .dialect.bindings import DISTRIBUTION
from .dialect.checks import expect_flag, expect_text
from .dialect.errors import RelaxError, RelaxWarning
from .dialect.op import verifying_once
from .dialect.passes.manager import verifying_at_end
from .dialect.plugins import sources
from .dialect.reports.cache import CacheSection
from .dialect.reports.report import collecting
from .module import Module
from .object_cache import EXPECTED, Entry, ObjectCache, key_of
from .runtime.environment import cache_bytes, cache_directory

if TYPE_CHECKING:
    from .lowering.target import Target
    from .runtime.executable import Executable

__all__ = ["compile", "default_pipeline"]

# Products of integers are made before words of eight are: those are for products of floats. How weights are packed for the
# target is in the module (``relax.weight_layouts``).
_PIPELINE = (
    "relax-expand-tuple-arguments{{public=true}},relax-inline-private-functions,relax-canonicalize,relax-fold-dequantize,"
    "relax-fold-batch-norm,{weights}relax-convert-layout{{gainful=true}},relax-canonicalize,relax-pack-weights,"
    "relax-sink-growth,relax-share-packed-weights,{activations}relax-pack-nibbles,relax-group-packed-rows,"
    "relax-lift-transform-params,relax-canonicalize,cse,symbol-dce"
)
# What makes the weights of products narrow, by the dtype that they are stored in. A scale per 32 elements is what four bits
# need to be of use (llama.cpp's Q4_0 and ONNX Runtime's default have it, too).
_WEIGHTS = {
    None: "",
    "bf16": "relax-to-mixed-precision{dtype=bf16},",
    "int8": "relax-quantize-weights{bits=8},",
    "int4": "relax-quantize-weights{bits=4 group=32},",
}


def compile(
    module: Module,
    target: str = "cpu",
    pipeline: str | None = None,
    cache: bool = True,
    *,
    weights: str | None = None,
    activations: str | None = None,
    checked: bool = False,
) -> Executable:
    """Compiles a module: lifts the weight math out of its functions, and generates code for them and for the preparation.

    Args:
        module: relax functions; not changed.
        target: ``"cpu"``, the machine this runs on, or one it can run, such as ``"cpu:x86-64-v3"``.
        pipeline: the relax passes to run first instead of :func:`default_pipeline`; without ``relax-lift-transform-params``
            nothing is prepared, and the executable computes on the weights as they are.
        cache: whether to take compiled code from the cache on disk and keep it there (:mod:`.runtime.environment` says where).
            With a pipeline of your own neither happens: its passes may be anything.
        weights: what weights of products are stored in, with less memory to read and less exact: ``"bf16"`` (what they are
            multiplied with is rounded, too), ``"int8"`` (a scale per output) or ``"int4"`` (a scale per output and 32 inputs).
            Checkpoints stay as they are: ``prepare`` converts, and ``report`` says what became narrow, and how exact it is.
            None: what the module says.
        activations: ``"int8"``: rows that products with int8 and int4 weights read are quantized when they are computed, with
            a scale for each row, or for each group that a scale of the weight has; sums of products are exact then, and an
            activation is off by at most 1/254 of the largest of its group. The report says which products are. None: floats.
        checked: whether every access of the code is checked against its buffer: one beyond it ends the call with a RelaxError
            that names the op and the access, and touches nothing. Calls take several times as long, and so does compiling.

    Raises:
        RelaxError: weights or activations are none of these, or a pipeline is there, too; the target or a pass is unknown, a
            pass fails, or an op cannot be lowered; with the op's location.
    """
    from .lowering.linalg.io import refuse_lazy_io
    from .lowering.target import Target
    from .runtime.threads import find_runtime

    if not isinstance(module, Module):
        raise RelaxError(f"expected a relaxir.Module, got {type(module).__name__}")
    expect_text(target, "a target as text")
    expect_text(pipeline, "a pipeline as text", optional=True)
    expect_flag(cache, "cache")
    expect_flag(checked, "checked")
    chosen = Target.parse(target, openmp=find_runtime() is not None)
    refuse_lazy_io(module.ir.operation)  # before passes that fail on it for reasons of their own
    if weights is not None and (not isinstance(weights, str) or weights not in _WEIGHTS):
        raise RelaxError(f"expected weights as {', '.join(filter(None, _WEIGHTS))} or None, got {weights!r}")
    if weights is not None and pipeline is not None:
        raise RelaxError("expected weights or a pipeline, which may have relax-quantize-weights, got both")
    if activations is not None and (not isinstance(activations, str) or activations != "int8"):
        raise RelaxError(f"expected activations as int8 or None, got {activations!r}")
    if activations is not None and pipeline is not None:
        raise RelaxError("expected activations or a pipeline, which may have relax-quantize-activations, got both")
    text = default_pipeline(weights, activations) if pipeline is None else pipeline
    directory = cache_directory() if cache and pipeline is None else None
    # Passes of the caller's choice may be anything, passes that crash on what another one broke among them.
    with verifying_once(), verifying_at_end() if pipeline is None else nullcontext():
        if directory is None:
            return _executable(_compiled(module, chosen, text, checked))
        return _executable(_cached(module, chosen, text, checked, ObjectCache(directory, cache_bytes())))


def default_pipeline(weights: str | None = None, activations: str | None = None) -> str:
    """What happens to a module before it is lowered, as the text of a pipeline; the options are those of :func:`compile`."""
    integers = "" if activations is None else "relax-quantize-activations,"
    return _PIPELINE.format(weights=_WEIGHTS[weights], activations=integers)


def _executable(entry: Entry) -> Executable:
    from .runtime.executable import Executable

    return Executable(entry.manifest, object_code=entry.object_code, module_text=entry.module_text)


def _compiled(module: Module, target: Target, pipeline: str, checked: bool) -> Entry:
    from .lowering.compile import compile_module

    prepared = module.with_weight_layouts(target.weight_layouts).run(pipeline)
    text = str(prepared)
    with collecting() as told:
        compiled = compile_module(prepared.ir.operation, target, checked)
    manifest = compiled.manifest | {"report": prepared.report.extended(told).as_json()}
    return Entry(manifest, text, compiled.object_code)


def _cached(module: Module, target: Target, pipeline: str, checked: bool, cache: ObjectCache) -> Entry:
    """Out of the cache, or compiled and kept there; one that others can write to is not used."""
    reason = cache.untrusted()
    if reason is not None:
        reason = f"{EXPECTED}, got {reason}"
        warnings.warn(f"compiled code is not kept in '{cache.directory}': {reason}", RelaxWarning, stacklevel=3)
        return _not_kept(_compiled(module, target, pipeline, checked), cache, reason)
    # Locations belong to the key: reports name them.
    text = module.ir.operation.get_asm(enable_debug_info=True, assume_verified=True)
    key = key_of(_compiler(), repr(target), pipeline, str(checked), json.dumps(module.report.as_json()), text)
    entry = cache.get(key)
    if entry is not None:
        return entry
    entry = _compiled(module, target, pipeline, checked)
    try:
        cache.put(key, entry)
    except OSError as error:
        return _not_kept(entry, cache, error.strerror or str(error))
    return entry


def _not_kept(entry: Entry, cache: ObjectCache, reason: str) -> Entry:
    """The entry with a report that says why it is not in the cache."""
    report = entry.manifest["report"]
    report = report | {"sections": [*report["sections"], CacheSection(str(cache.directory), reason).as_json()]}
    return Entry(entry.manifest | {"report": report}, entry.module_text, entry.object_code)


@functools.cache
def _compiler() -> str:
    """What compiles: versions, and the sources of the passes and of the code generator, which change between versions, too."""
    digest = hashlib.sha256()
    ours = [path for package in (dialect, lowering) for path in sorted(Path(*package.__path__).rglob("*.py"))]
    for path in (*ours, *sources()):
        digest.update(path.read_bytes())
    names = ("relaxir", DISTRIBUTION, "llvmlite")
    return " ".join([*(f"{name} {version(name)}" for name in names), digest.hexdigest()])
