"""The compiled model as users hold it: prepare weights once, bind them, call; saved, it loads where no MLIR is installed."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, overload

from ..dialect.checks import expect, expect_count, expect_flag
from ..dialect.errors import RelaxError
from ..dialect.reports.report import Report
from ..lowering.manifest import Manifest
from ..lowering.manifest_specs import EntrySpec
from ..weights.files import path_text
from .artifact import write_artifact
from .backend import runtime_of
from .binding import prepared_arrays
from .c_header import c_header
from .copied import Copied
from .entry_names import default_entry, unbound_entry
from .executable_report import ExecutableReport
from .export import export_to_file
from .externs import ExternPaths, extern_table
from .library import Library
from .names import Rename
from .own_part import own_manifest, own_path
from .part import prepare_again, updated_arrays
from .prepare import PrepareOptions, PrepareReport, checked_source, prepare_in_memory, prepare_to_file
from .prepare_shards import prepare_to_shards
from .scratch import ScratchPool
from .shards import check_rank
from .sources import PreparedWeights
from .state import State
from .step_stream import ProgressHook
from .verify import verify_prepared
from .weight_cache import cached_weights, weights_folder

__all__ = ["Executable", "PreparedWeights", "State"]


class Executable(Copied):
    """Compiled entries, the preparation of their weights, and the weights bound to them.

    Calls are thread-safe. :meth:`bind` may replace the weights while calls run: each call uses one set of them. What an entry
    updates, such as a cache, is in a :class:`State`; of calls with the same one, each waits for the last. Several sequences
    that share the weights take a state each, from :meth:`new_state`.

    Attributes:
        manifest: what the executable consists of (:class:`Manifest`).
        module_text: MLIR text of the module it was compiled from.
        header: C header of its code.
        externs: libraries of functions that the code calls in the place of those that the manifest names; None for these.
    """

    def __init__(
        self,
        manifest: Mapping[str, Any] | Manifest,
        library: Library | None = None,
        *,
        object_code: bytes | None = None,
        shared_code: bytes | None = None,
        module_text: str = "",
        header: str | None = None,
        device: str | None = None,
        externs: ExternPaths | None = None,
        trusted: bool = False,
    ):
        """Makes an executable from compiled code.

        Args:
            manifest: JSON object, version 1, or what was read of one.
            library: the code; linked in memory from ``object_code`` when not given.
            object_code: kept for :meth:`save`.
            shared_code: content of a shared library, kept for :meth:`save` where there is no object code.
            module_text: MLIR text, for :meth:`save`.
            header: C header; made from the manifest when not given.
            device: where it runs: ``"cpu"``; of code for GPUs ``"cuda:0"``, another number, or ``"emulated"``.
            externs: libraries of functions that the code calls, by the functions' names, in the place of those that the
                manifest names.
            trusted: whether functions of other libraries that the manifest names may be called though this program does not.

        Raises:
            RelaxError: the manifest is malformed, its code runs on no such device, the code lacks one of its symbols or
                was compiled with another manifest, or a function of another library is not there.
        """
        self.manifest = manifest if isinstance(manifest, Manifest) else Manifest.of(manifest)
        self._runtime = runtime_of(self.manifest, device)
        if library is None:
            if object_code is None:
                raise RelaxError("expected a library or object code for an executable, got neither")
            expect(object_code, bytes, "object code as bytes")
            self._runtime.check(self.manifest, "executable")
            library = self._runtime.link(object_code, self.manifest)
        expect(library, Library, "a library of compiled code")
        library.check(self.manifest.data)
        library.accesses, library.ranks = self.manifest.accesses or (), self.manifest.ranks
        library.checks = next((e.checks for e in self.manifest.entries.values()), ())
        self.externs = externs
        library.externs = extern_table(self.manifest.externs, externs, library.name, trusted)
        self._library = library
        self._object_code, self._shared_code = object_code, shared_code
        self._scratch = ScratchPool()
        self._default_entry: str | None = None
        self._state = self._runtime.state(library, self.manifest.state)
        self._held: Mapping[str, Any] = {}
        self._binding = threading.Lock()
        self._bound = {
            name: self._runtime.entry(e, library, (), self._scratch)
            for name, e in self.manifest.entries.items()
            if not e.weights
        }
        self.module_text = module_text
        self.header = c_header(self.manifest) if header is None else header

    @cached_property
    def report(self) -> Report:
        """What the manifest says and what compilation decided; ``str()`` of it is readable."""
        return ExecutableReport(self.manifest.report.sections, self.manifest)

    @property
    def entries(self) -> Mapping[str, EntrySpec]:
        """The functions that can be called, by name: inputs, weights, outputs, symbols."""
        return self.manifest.entries

    @property
    def threads(self) -> int | None:
        """How many threads a call uses; None leaves it to ``RELAXIR_NUM_THREADS`` or OpenMP. Results do not depend on it."""
        return self._library.team.count

    @threads.setter
    def threads(self, count: int | None) -> None:
        self._library.team.count = None if count is None else expect_count(count, "a number of threads from 1 on")

    @property
    def stream(self) -> int | None:
        """Of code for GPUs: the CUDA stream that calls run on, as a number; None for torch's current one, or one of its own.

        Calls whose inputs and results are on the device only begin there, behind what the stream has to do already.
        """
        return self._library.stream

    @stream.setter
    def stream(self, stream: int | None) -> None:
        self._library.stream = stream

    def wait(self) -> None:
        """Waits for calls that only began on a device; of code for a CPU, calls are done when they return.

        Raises RelaxError where a check of values failed in one of them; once for each.
        """
        self._library.wait()

    @property
    def device(self) -> str:
        """What it runs on, for readers: ``cpu``, or a GPU's name and compute capability. Raises RelaxError without that GPU."""
        return self._library.device

    def kernel_times(self) -> AbstractContextManager[dict[str, float]]:
        """Of code for GPUs: gives a mapping that has the seconds of each kernel when the ``with`` block is left.

        All launches of a kernel count together, by events around each; they are no graphs then. The emulator counts
        instructions, 1 ps each. Raises RelaxError where the code is a CPU's (:mod:`relaxir.profiling`), or there is no device.
        """
        return self._library.kernel_times()

    @property
    def library(self) -> Library:
        """The code that is called."""
        return self._library

    @property
    def fingerprint(self) -> str:
        """Ties prepared weights to this executable."""
        return self.manifest.fingerprint

    @property
    def rank(self) -> int:
        """Which of the processes this is that run the executable together, from 0 on; 0 for one that runs alone.

        Raises RelaxError where it is for several, and this process is none of so many.
        """
        return 0 if self.manifest.ranks == 1 else self._library.collectives.communicator.rank

    @property
    def weights(self) -> PreparedWeights:
        """Those that are bound, on their device: nothing is copied. Empty where none are."""
        return PreparedWeights(self._held, own_manifest(self.manifest, self._library).fingerprint)

    @property
    def is_bound(self) -> bool:
        """Whether every entry can be called."""
        return len(self._bound) == len(self.manifest.entries)

    @overload
    def prepare(
        self,
        src: object,
        dst: None = None,
        jobs: int = 1,
        progress: ProgressHook | None = None,
        *,
        rename: Rename = None,
        cast: bool = False,
        share: bool = False,
    ) -> PreparedWeights: ...
    @overload
    def prepare(
        self,
        src: object,
        dst: str | os.PathLike[str],
        jobs: int = 1,
        progress: ProgressHook | None = None,
        *,
        rename: Rename = None,
        cast: bool = False,
        only: Collection[str] | None = None,
        rank: int = 0,
        world: int = 1,
        shard_size: int | None = None,
        memory_limit: int | None = None,
        format: str | None = None,
    ) -> PrepareReport: ...
    def prepare(
        self,
        src: object,
        dst: str | os.PathLike[str] | None = None,
        jobs: int = 1,
        progress: ProgressHook | None = None,
        *,
        rename: Rename = None,
        cast: bool = False,
        only: Collection[str] | None = None,
        rank: int = 0,
        world: int = 1,
        shard_size: int | None = None,
        memory_limit: int | None = None,
        share: bool = False,
        format: str | None = None,
    ) -> PrepareReport | PreparedWeights:
        """Makes prepared weights from raw ones, as a stream.

        Memory for weights stays at the largest step (its raw weights, its results and its scratch; ``report`` gives the bytes)
        times ``jobs``, whatever the size of the checkpoint. Interrupted (even killed), it continues where it was when called
        again with the same files; after another change of the source or of the model it starts afresh.

        Args:
            src: raw weights: a safetensors file, Hugging Face directory or index, a Checkpoint, a mapping to arrays, or a file
                of another kind (``.npz``; ``.bin``, ``.pt``, ``.pth``, of which torch reads tensors alone; GGUF).
            dst: the safetensors file to write; None keeps the result in memory, for small models.
            jobs: steps that run at once; memory grows with each. Of one alone all threads share the blocks, where it has some.
            progress: called after each step with a :class:`PrepareProgress`, from any of the threads, one at a time.
            rename: how the model calls what ``src`` calls otherwise: ``{"^": "model."}``, regular expressions and what takes
                their place, in order; or texts ``"regex=replacement"``.
            cast: whether floats may be rounded to the model's dtype, and integers narrowed where all of them fit. Without it
                they are converted only where that changes no number, such as bf16 to f32.
            only: names of raw weights that have changed since ``dst`` was written: what depends on them is prepared again, and
                the new file takes the place of the old one at once. ``src`` needs to have only what these steps read.
            world: how many processes prepare these weights together.
            rank: which of these this is, from 0 on. Of an executable for several ranks: whose part of the weights, by default
                this process's, into ``x.rank0of2.safetensors``, which ``bind("x.safetensors")`` finds. Of others each writes
                files of its own beside ``dst`` (``x-00002-of-00004.safetensors``), and needs to know nothing of the others:
                all make the same plan. Whoever writes the last file adds the index ``x.safetensors.index.json``. One that
                died is run again.
            shard_size: the most bytes of weights in a file; with it, or several ranks, ``dst`` is a checkpoint of several.
            memory_limit: bytes for weights, results and scratch memory at once: fewer threads run where ``jobs`` would take
                more, and a step that would alone runs on one piece of its weights after another, where its ops work on parts
                of them and files can be read so. Python and the libraries are not counted.
            format: ``"safetensors"`` or ``"gguf"``: ``dst`` is for other programs, with what is stored narrow as narrow
                (:mod:`.export`). None: prepared weights, for this executable.
            share: whether weights that inference reads as they are stay where ``src``, a mapping, has them, without a copy:
                what is written there is then what calls read.

        Returns:
            What was done, with names of weights that only ``src`` has; or the weights themselves where ``dst`` is None. Those
            that the module knows (:func:`relaxir.from_torch`) are not read from ``src``; of tied ones (config) one will do.

        Raises:
            RelaxError: raw weights are missing or have another shape or dtype (all are listed), the file is malformed or
                already prepared, ``dst`` cannot be written, a weight that is quantized has a NaN or an infinity, one step
                alone takes more than ``memory_limit``, even in pieces (it says how much).
        """
        rank, world = check_rank(rank, world)
        manifest = own_manifest(self.manifest, self._library, rank, world)
        dst = own_path(manifest, dst)
        if manifest.ranks > 1:
            rank, world = 0, 1
        options = PrepareOptions(jobs, progress, rename, cast, rank, world, shard_size, memory_limit, share)
        expect_flag(share, "share")
        if share and (dst is not None or not isinstance(src, Mapping)):
            raise RelaxError("expected a mapping to prepare in memory with share=, got a file")
        is_sharded = (rank, world) != (0, 1) or shard_size is not None
        if is_sharded and (dst is None or only is not None):
            got = "no dst" if dst is None else "only="
            raise RelaxError(f"expected files to write whole for rank=, world= and shard_size=, got {got}")
        if format is not None:
            return export_to_file(manifest, format, src, dst, options, is_sharded or only is not None)
        if dst is None and memory_limit is not None:
            raise RelaxError("expected a file to write with memory_limit=, got no dst: in memory all results are kept")
        if only is not None:
            if dst is None:
                raise RelaxError("expected a prepared file as dst with only=, got none: update() is for bound weights")
            return prepare_again(manifest, self._library.function, src, dst, only, options)
        if dst is None:
            return prepare_in_memory(manifest, self._library.function, src, options)
        write = prepare_to_shards if is_sharded else prepare_to_file
        return write(manifest, self._library.function, src, dst, options)

    def bind(self, weights: object, verify: bool = False) -> Executable:
        """Gives the entries their prepared weights.

        Args:
            weights: what :meth:`prepare` returned: the file that it wrote, or the mapping. A file is mapped: binding reads
                little, processes share its memory, and it must not change while in use.
            verify: whether to read a file whole (7 GB/s from memory) and compare each weight with its checksum. Without it the
                first and last 4096 bytes of up to 256 weights are compared; in between damage is not found.

        Returns:
            The executable itself.

        Raises:
            RelaxError: the weights are raw, prepared for another executable, damaged, or not exactly the expected tensors.
        """
        expect_flag(verify, "verify")
        manifest = own_manifest(self.manifest, self._library)
        arrays = prepared_arrays(manifest, own_path(manifest, weights), verify)
        with self._binding:
            self._hold(self._runtime.held(self._library, arrays))
        return self

    def _hold(self, arrays: Mapping[str, Any]) -> None:
        """Makes entries of these weights, and then puts all in place at once; needs the lock."""
        bound = dict(self._bound)
        for name, entry in self.manifest.entries.items():
            if entry.weights:
                mine = [arrays[w.name] for w in entry.weights]
                bound[name] = self._runtime.entry(entry, self._library, mine, self._scratch)
        self._held, self._bound = arrays, bound

    def load_weights(
        self,
        src: object,
        jobs: int = 1,
        progress: ProgressHook | None = None,
        *,
        rename: Rename = None,
        cast: bool = False,
    ) -> Executable:
        """Prepares raw weights, unless that was done before, and binds them.

        Prepared weights of files are kept in the cache (``~/.cache/relaxir/weights``, :mod:`.environment`), by the fingerprint
        and what the files are (path, inode, size, times, header, ends of tensors). Where the files have changed, the new
        weights take the place of the old ones; beyond ``RELAXIR_WEIGHTS_BYTES`` (256 GiB) what was not used for longest is
        deleted. With no cache, and of a mapping, they are prepared in memory.

        All arguments are those of :meth:`prepare`.

        Raises:
            RelaxError: as :meth:`prepare`.
        """
        options = PrepareOptions(jobs, progress, rename, cast)
        manifest, folder = own_manifest(self.manifest, self._library), weights_folder()
        raw = checked_source(manifest, src, options)
        identity = raw.identity
        if folder is None or identity is None:
            return self.bind(prepare_in_memory(manifest, self._library.function, src, options))
        place = "\n".join(sorted(raw.files)) or raw.description
        with cached_weights(folder, manifest.fingerprint, place, identity) as path:
            if path.exists():
                try:
                    return self.bind(path)
                except RelaxError:  # damaged: it is made again
                    path.unlink(missing_ok=True)
            return self.bind(prepare_to_file(manifest, self._library.function, src, path, options))

    def update(self, weights: Mapping[str, object]) -> Executable:
        """Replaces some raw weights: only what depends on them is prepared again.

        Calls that run finish with the weights that they began with; the next ones have the new weights, all of them at once.

        Args:
            weights: raw weights by name, those with which they are prepared together among them (queries, keys and values may
                become one matrix); the shapes and dtypes are as for :meth:`prepare`.

        Returns:
            The executable itself.

        Raises:
            RelaxError: there is no such raw weight, it lacks one that is prepared together with it, it looks different, or no
                weights are bound yet.
        """
        expect(weights, Mapping, "weights as a mapping from names to arrays")
        arrays = updated_arrays(own_manifest(self.manifest, self._library), self._library.function, weights)
        with self._binding:
            if not self.is_bound:
                raise RelaxError("expected bound weights to update, got none: call prepare, then bind")
            self._hold({**self._held, **self._runtime.held(self._library, arrays)})
        return self

    def verify(
        self,
        prepared: object,
        against: object | None = None,
        jobs: int = 1,
        progress: ProgressHook | None = None,
        *,
        rename: Rename = None,
        cast: bool = False,
    ) -> int:
        """Compares a file of prepared weights with its checksums, every byte, and with what raw weights give.

        Args:
            prepared: the file that :meth:`prepare` wrote.
            against: raw weights to prepare again, in the memory that :meth:`prepare` takes; None compares checksums alone.

        The others are as for :meth:`prepare`.

        Returns:
            How many weights were compared.

        Raises:
            RelaxError: they are not of this executable, or differ (all are listed); or as :meth:`prepare`.
        """
        options = PrepareOptions(jobs, progress, rename, cast)
        manifest = own_manifest(self.manifest, self._library)
        return verify_prepared(manifest, self._library.function, own_path(manifest, prepared), against, options)

    @property
    def state(self) -> State:
        """What calls update that are given no other state; empty where no entry updates anything."""
        return self._state

    def new_state(self, arrays: Mapping[str, object] | None = None) -> State:
        """Another state, for another sequence.

        Args:
            arrays: memory to use for it, by name: NumPy, torch or DLPack; calls update it in place.

        Raises:
            RelaxError: an array has no such name, shape or dtype, or cannot be written in place.
        """
        return self._runtime.state(self._library, self._state.specs, arrays)

    def reset_state(self) -> None:
        """Gives :attr:`state` its first values again."""
        self._state.reset()

    def __call__(
        self, /, *inputs: object, entry: str | None = None, state: State | None = None, out: object = None, **named: object
    ) -> Any:
        """Calls an entry.

        Args:
            inputs: NumPy arrays, torch tensors, or anything with ``__dlpack__`` or ``__array_interface__``, in order.
                Contiguous ones are passed as they are, others are copied.
            entry: which one; not needed when there is only one, or one named ``main``.
            state: what it updates; by default :attr:`state`.
            out: where to put results: an array or tensor, several in order, or some by name; None makes a new one. They must
                be contiguous and share no memory with what the call reads. After a call that failed they hold anything.
            named: inputs by name (one that is itself named ``entry``, ``state`` or ``out`` goes by position).

        Returns:
            The output, or a tuple when there is not exactly one: torch tensors when an input is one, else NumPy arrays; of
            ``out``, what was given.

        Raises:
            RelaxError: there is no such entry, it has no weights yet, an input or output is wrong, a run-time check fails, or a
                call that failed before left the state half updated.
        """
        if state is None:
            state = self._state
        elif not isinstance(state, State):
            raise RelaxError(f"expected a state that new_state made, got {type(state).__name__}")
        if entry is None:
            entry = self._default_entry = self._default_entry or default_entry(self.manifest.entries)
        try:
            bound = self._bound.get(entry)
        except TypeError:  # a list, say
            bound = None
        if bound is None:
            raise unbound_entry(self.manifest.entries, entry)
        return bound.call(inputs, named, state, out)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the artifact directory that :func:`load` reads; one that exists there is replaced.

        Raises:
            RelaxError: something else lies there, the linker fails, or the disk is full.
        """
        code = self._object_code or self._shared_code
        if code is None:
            raise RelaxError("cannot save the executable: expected its object code or shared library, got neither")
        is_linked = self._object_code is None
        write_artifact(path_text(path, "write"), self.manifest, self.module_text, self.header, code, is_linked)

    def __repr__(self) -> str:
        entries = "; ".join(map(str, self.entries.values()))
        return f"<relaxir.Executable: {entries}; {'bound' if self.is_bound else 'not bound'}>"
