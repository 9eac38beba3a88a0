"""``relaxir.compile``: a module in, an executable out."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib.metadata import version
from logging import DEBUG, getLogger
from pathlib import Path
from typing import TYPE_CHECKING

from . import dialect, lowering
from .checkpoint import reading
from .collector import collector_paused
from .dialect.bindings import DISTRIBUTION, ir
from .dialect.checks import expect_flag, expect_text
from .dialect.errors import RelaxError, RelaxWarning, interruptible
from .dialect.fixed_weights import fixed_weights
from .dialect.op import verifying_once
from .dialect.passes.manager import observing, verifying_at_end
from .dialect.plugins import sources
from .dialect.reports import report
from .dialect.reports.cache import CacheSection
from .dialect.reports.fixed import FixedSection, FixedWeight
from .dialect.reports.report import collecting
from .dump import Dump
from .lowering.c_names import set_prefix
from .lowering.relax_pipeline import CONVOLUTIONS, NARROW, WEIGHTS, completed_pipeline, default_pipeline
from .mesh import Mesh
from .module import Module
from .object_cache import EXPECTED, CompiledModule, ObjectCache, key_of
from .runtime.environment import cache_bytes, cache_directory, dump_directory, plan_table_directory
from .runtime.names import Rename
from .weights.files import path_text

if TYPE_CHECKING:
    from .lowering.compiler import Compiler
    from .runtime.executable import Executable
    from .runtime.externs import ExternPaths

_LOG = getLogger("relaxir.compile")

__all__ = ["check_options", "compile", "compile_once", "compiler_for", "default_pipeline"]


def compile(
    module: Module | str | os.PathLike[str],
    target: str = "cpu",
    pipeline: str | None = None,
    cache: bool = True,
    *,
    weights: str | None = None,
    activations: str | None = None,
    convolutions: str | None = None,
    checked: bool = False,
    c_prefix: str | None = None,
    dump: str | os.PathLike[str] | None = None,
    device: str | None = None,
    plan_table: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    rename: Rename = None,
    mesh: Mesh | None = None,
    externs: ExternPaths | None = None,
) -> Executable:
    """Compiles a module: lifts the weight math out of its functions, and generates code for them and for the preparation.

    Args:
        module: relax functions; not changed. Or where they are: a .mlir file, a .pt2 file (``torch.export.save``), which
            :func:`relaxir.from_torch` imports, or an .onnx file, which :func:`relaxir.from_onnx` imports.
        target: ``"cpu"``, the machine this runs on, or one it can run, such as ``"cpu:x86-64-v3"``.
        pipeline: the relax passes to run first instead of :func:`default_pipeline`; without ``relax-lift-transform-params``
            nothing is prepared, and the executable computes on the weights as they are. ``relax-check-scalars`` and
            ``relax-keep-checks`` run in front of it, so that no pass drops what a call may fail in, and behind it
            ``relax-expand-tuple-arguments``: code has no tuples.
        cache: whether to take compiled code from the cache on disk and keep it there (:mod:`.runtime.environment` says where).
            With a pipeline of your own neither happens: its passes may be anything.
        weights: what weights of products are stored in, with less memory to read and less exact: ``"bf16"`` (what they are
            multiplied with is rounded, too), ``"int8"`` (a scale per output) or ``"int4"`` (a scale in bf16 per output and 32
            inputs); ``"q8_0"`` and ``"q4_0"`` are what llama.cpp calls so (a scale in f16 per output and 32 inputs).
            Checkpoints stay as they are: ``prepare`` converts, and ``report`` says what became narrow, and how exact it is.
            None: what the module says.
        activations: ``"int8"``: rows that products with int8 and int4 weights read are quantized when they are computed, with
            a scale for each row, or for each group that a scale of the weight has; sums of products are exact then, and an
            activation is off by at most 1/254 of the largest of its group. The report says which products are. None: floats.
        convolutions: ``"direct"``: all sum the products of their windows. None: on CPUs, those of 3x3 filters in f32 with
            strides of 1 take 4/9 of the products (Winograd's filtering), and so about half of the time, where images are large
            enough; their filters take 16/9 of the memory. Rounding is as small as that of direct ones.
        checked: whether every access of the code is checked against its buffer: one beyond it ends the call with a RelaxError
            that names the op and the access, and touches nothing. Calls take several times as long, and so does compiling.
        c_prefix: how the C names of entries begin, ``relaxir`` by default. A program that links several artifacts wants another
            one for each: ``c_prefix="encoder"`` gives ``encoder_main`` and ``ENCODER_FINGERPRINT``.
        dump: a folder for the stages of the compilation, one file each (:mod:`.dump`), which then comes out of no cache;
            ``RELAXIR_DUMP`` by default.
        device: where the executable runs, as for :func:`relaxir.load`.
        plan_table: a folder with plans of kernels for GPUs that were measured (``relaxir tune``), which products get instead of
            those of the cost model; ``RELAXIR_PLAN_TABLE`` by default.
        checkpoint: a quantized checkpoint that the weights will be prepared from: products read its integers as the file has
            them, as narrow, where there is a kernel for that; the report says which, and why not the others, which ``prepare``
            decodes. Without it ``prepare`` decodes all. ``weights`` says what becomes of matrices that are not quantized there.
            What is prepared later has to be encoded alike.
        rename: how the checkpoint calls the weights, as for :meth:`Executable.prepare`, which wants the same.
        mesh: the processes that run the model together (``relaxir.Mesh(tp=2)``), each with a part of the weights and of the
            state, under ``mpiexec -n 2``; the report says which. Inputs and results are whole in each. A pipeline of yours has
            ``relax-shard`` instead.
        externs: libraries of C functions that the module calls (``relax.call_extern``), by the functions' names, where they are
            not those that it says; and permission to call them, which a module from elsewhere has not.

    Raises:
        RelaxError: weights, activations or convolutions are none of these, or a pipeline is there, too, or they are for other
            targets; the prefix is none of a C name; the target or a pass is unknown, its code runs on no such device, a pass
            fails, or an op cannot be lowered;
            with the op's location.
    """
    from .lowering.compile import refuse_lowered
    from .lowering.linalg.io import refuse_lazy_io

    module = _module_of(module)
    expect_text(pipeline, "a pipeline as text", optional=True)
    expect_flag(cache, "cache")
    expect_flag(checked, "checked")
    if plan_table is not None and target.partition(":")[0] != "cuda":
        raise RelaxError(f"expected code for GPUs with a table of measured plans, got target '{target}'")
    compiler = compiler_for(target, device, plan_table)
    refuse_lowered(module.ir.operation)
    refuse_lazy_io(module.ir.operation)  # before passes that fail on it for reasons of their own
    if checkpoint is not None and weights == "bf16":
        raise RelaxError("expected weights as int8, int4 or None for what a quantized checkpoint has wide, got 'bf16'")
    if checkpoint is not None:
        module = reading(module, checkpoint, rename)
    elif rename is not None:
        raise RelaxError("expected a checkpoint whose tensors to rename, got none")
    if c_prefix is not None:
        module = module.rewritten(lambda op: set_prefix(op, c_prefix))
    _check_choices(weights, activations, convolutions)
    if weights is not None and pipeline is not None:
        raise RelaxError("expected weights or a pipeline, which may have relax-quantize-weights, got both")
    if activations is not None and pipeline is not None:
        raise RelaxError("expected activations or a pipeline, which may have relax-quantize-activations, got both")
    if convolutions is not None and pipeline is not None:
        raise RelaxError("expected convolutions or a pipeline, which says how they are computed, got both")
    text = compiler.relax_pipeline(weights, activations, convolutions) if pipeline is None else completed_pipeline(pipeline)
    if mesh is not None:
        text = _passes_of(mesh, target, pipeline) + text
    folder = dump_directory() if dump is None else dump
    directory = cache_directory() if cache and pipeline is None and folder is None else None
    # Passes of the caller's choice may be anything, passes that crash on what another one broke among them.
    with collector_paused(), verifying_once(), verifying_at_end() if pipeline is None else nullcontext():
        if directory is None:
            made = _compiled(module, compiler, text, checked, None if folder is None else Dump(folder))
        else:
            made = _cached(module, compiler, text, checked, ObjectCache(directory, cache_bytes()))
        return _executable(made, device, externs)


def compile_once(
    key: Sequence[str],
    make: Callable[[], Module],
    target: str = "cpu",
    *,
    weights: str | None = None,
    activations: str | None = None,
    convolutions: str | None = None,
    device: str | None = None,
) -> Executable:
    """:func:`compile` of a module that need not be made where the code for its key is in the cache on disk already.

    Args:
        key: texts that determine the module.
        make: makes it.
        target, weights, activations, convolutions, device: as for :func:`compile`.

    Raises:
        RelaxError: as :func:`compile`.
    """
    _check_choices(weights, activations, convolutions)
    compiler = compiler_for(target, device)
    directory = cache_directory() if dump_directory() is None else None
    cache = None if directory is None else ObjectCache(directory, cache_bytes())
    if cache is None or cache.untrusted() is not None:  # which compile tells
        return compile(
            make(), target, weights=weights, activations=activations, convolutions=convolutions, device=device
        )  # fmt: skip
    text = compiler.relax_pipeline(weights, activations, convolutions)
    digest = key_of(_compiler(), compiler.key, text, "of what makes the module", *key)
    entry = cache.get(digest)
    if entry is not None:
        return _executable(entry, device)
    with collector_paused():
        module = make()
        with verifying_once(), verifying_at_end():
            entry = _compiled(module, compiler, text, False)
    return _executable(_kept(digest, entry, cache), device)


def check_options(
    target: str = "cpu",
    *,
    weights: str | None = None,
    activations: str | None = None,
    convolutions: str | None = None,
    device: str | None = None,
) -> None:
    """Raises RelaxError for a value of an option that :func:`compile` does not know, or not for this target."""
    _check_choices(weights, activations, convolutions)
    compiler_for(target, device).relax_pipeline(weights, activations, convolutions)


def _module_of(given: Module | str | os.PathLike[str]) -> Module:
    if isinstance(given, Module):
        return given
    if not isinstance(given, str | os.PathLike):
        raise RelaxError(f"expected a relaxir.Module or the path of one, got {type(given).__name__}{_hint(given)}")
    name = path_text(given)
    if name.endswith(".mlir"):
        return Module.load(name)
    if name.endswith(".pt2"):
        from .frontend import from_torch

        return from_torch(name)
    if name.endswith(".onnx"):
        from .frontend import from_onnx

        return from_onnx(name)
    raise RelaxError(f"expected a .mlir, .onnx or .pt2 file (torch.export.save), got '{name}'")


def _hint(given: object) -> str:
    """How something of another library becomes a module."""
    bases = {f"{cls.__module__}.{cls.__name__}" for cls in type(given).__mro__}
    if "torch.export.exported_program.ExportedProgram" in bases:
        return ": relaxir.from_torch imports it"
    if "torch.nn.modules.module.Module" in bases:
        return ": relaxir.from_torch imports what torch.export.export(model, inputs) makes of it"
    return ": relaxir.from_onnx imports it" if any(name.endswith(".ModelProto") for name in bases) else ""


def _check_choices(weights: object, activations: object, convolutions: object) -> None:
    """Raises RelaxError for weights, activations or convolutions that :func:`compile` does not know."""
    if weights is not None and (not isinstance(weights, str) or weights not in WEIGHTS):
        raise RelaxError(f"expected weights as {', '.join(NARROW)} or None, got {weights!r}")
    if activations is not None and (not isinstance(activations, str) or activations != "int8"):
        raise RelaxError(f"expected activations as int8 or None, got {activations!r}")
    if convolutions is not None and (not isinstance(convolutions, str) or convolutions not in CONVOLUTIONS):
        raise RelaxError(f"expected convolutions as direct or None, got {convolutions!r}")


def compiler_for(target: str, device: str | None, plan_table: str | os.PathLike[str] | None = None) -> Compiler:
    """What compiles for a target, where what it compiles can run."""
    from .lowering.backend import backend_of

    expect_text(target, "a target as text")
    expect_text(device, "a device as text", optional=True)
    backend = backend_of(target)
    measured = target.partition(":")[0] == "cuda"
    folder = (plan_table_directory() if measured else None) if plan_table is None else os.fspath(plan_table)
    return backend.compiler_for(target, {**backend.make_runtime(device).here(), "plan_table": folder})


def _passes_of(mesh: Mesh, target: str, pipeline: str | None) -> str:
    """The passes for a mesh. Raises RelaxError where there are none."""
    if not isinstance(mesh, Mesh):
        raise RelaxError(f"expected a relaxir.Mesh, got {type(mesh).__name__}")
    if mesh.tp > 1 and pipeline is not None:
        raise RelaxError("expected a mesh or a pipeline, which may have relax-shard, got both")
    if mesh.tp > 1 and target.partition(":")[0] != "cpu":
        raise RelaxError(f"expected code for CPUs with a mesh of {mesh.tp} processes, got '{target}'")
    return mesh.passes


def _executable(entry: CompiledModule, device: str | None, externs: ExternPaths | None = None) -> Executable:
    from .runtime.executable import Executable

    return Executable(
        entry.manifest, object_code=entry.object_code, module_text=entry.module_text, device=device, externs=externs
    )


def _logging(element: str, op: ir.Operation) -> None:
    """A line for each pass that is through."""
    _LOG.debug("pass %s", element)


def _tell_fixed(module: ir.Operation) -> None:
    """Reports the weights that the module has as numbers, which preparation compares with what it finds."""
    fixed = fixed_weights(module)
    if fixed:
        report.add(FixedSection(tuple(FixedWeight(name, digest) for name, digest in fixed.items())))


@interruptible()
def _compiled(module: Module, compiler: Compiler, pipeline: str, checked: bool, dump: Dump | None = None) -> CompiledModule:
    from .lowering.compile import compile_module

    _LOG.info("compiling for %s", compiler.spec.cpu or compiler.spec.triple)
    watching = observing(dump.after) if dump is not None else observing(_logging) if _LOG.isEnabledFor(DEBUG) else nullcontext()
    with watching:
        laid_out = module.with_weight_layouts(compiler.weight_layouts)
        if dump is not None:
            dump.start(laid_out.ir.operation)
        prepared = laid_out.run(pipeline)
        # The passes have verified it; doing that again is most of what printing takes: 6.8 of 8 ms, for two layers of Llama.
        text = prepared.ir.operation.get_asm(assume_verified=True)
        with collecting() as told:
            _tell_fixed(prepared.ir.operation)
            compiled = compile_module(prepared.ir.operation, compiler, checked, None if dump is None else dump.code)
    manifest = compiled.manifest | {"report": prepared.report.extended(told).as_json()}
    return CompiledModule(manifest, text, compiled.code)


def _cached(module: Module, compiler: Compiler, pipeline: str, checked: bool, cache: ObjectCache) -> CompiledModule:
    """Out of the cache, or compiled and kept there; one that others can write to is not used."""
    reason = cache.untrusted()
    if reason is not None:
        reason = f"{EXPECTED}, got {reason}"
        warnings.warn(f"compiled code is not kept in '{cache.directory}': {reason}", RelaxWarning, stacklevel=3)
        return _not_kept(_compiled(module, compiler, pipeline, checked), cache, reason)
    # Locations belong to the key: reports name them.
    text = module.ir.operation.get_asm(enable_debug_info=True, assume_verified=True)
    key = key_of(_compiler(), compiler.key, pipeline, str(checked), json.dumps(module.report.as_json()), text)
    entry = cache.get(key)
    if entry is not None:
        _LOG.info("compiled code found in %s", cache.directory)
        return entry
    compiler.kernels = cache.kernels(_compiler())
    return _kept(key, _compiled(module, compiler, pipeline, checked), cache)


def _kept(key: str, entry: CompiledModule, cache: ObjectCache) -> CompiledModule:
    """The entry, which is in the cache from now on, or says why it is not."""
    try:
        cache.put(key, entry)
    except OSError as error:
        return _not_kept(entry, cache, error.strerror or str(error))
    return entry


def _not_kept(entry: CompiledModule, cache: ObjectCache, reason: str) -> CompiledModule:
    """The entry with a report that says why it is not in the cache."""
    report = entry.manifest["report"]
    report = report | {"sections": [*report["sections"], CacheSection(str(cache.directory), reason).as_json()]}
    return CompiledModule(entry.manifest | {"report": report}, entry.module_text, entry.object_code)


@functools.cache
def _compiler() -> str:
    """What compiles: versions, and the sources of the passes and of the code generator, which change between versions, too."""
    digest = hashlib.sha256()
    ours = [path for package in (dialect, lowering) for path in sorted(Path(*package.__path__).rglob("*.py"))]
    for path in (*ours, *sources()):
        digest.update(path.read_bytes())
    names = ("relaxir", DISTRIBUTION, "llvmlite")
    return " ".join([*(f"{name} {version(name)}" for name in names), digest.hexdigest()])
