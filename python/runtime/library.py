"""Machine code as Python callables: a shared library loaded by the system, or object code linked in memory by LLVM's ORC.

Every function has the entry ABI: ``int64_t f(void *const *tensors, const int64_t *symbols, void *arena, int64_t arena_bytes)``.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import os
import tempfile
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, cast

from ..dialect.errors import RelaxError
from ..lowering.archive import MAGIC, members
from ..lowering.manifest_digest import BYTES, SYMBOL, digest_of
from ..weights.files import os_errors
from .collectives import Collectives, RankFunction, find_communicator
from .threads import Team, load_runtime

__all__ = ["EntryFunction", "Library", "TimedLaunch", "llvm_binding"]


class EntryFunction(Protocol):
    """Takes tensors and symbols (ctypes arrays or pointers), the arena's address and bytes; returns the status.

    Attributes:
        library: where it is from.
    """

    library: Library

    def __call__(self, tensors: Any, symbols: Any, arena: Any, arena_bytes: Any, /) -> int: ...


@dataclass(frozen=True)
class TimedLaunch:
    """One launch of a kernel on a device.

    Attributes:
        kernel: its name.
        begin: seconds after the first launch that was timed with it.
        seconds: that it took.
    """

    kernel: str
    begin: float
    seconds: float


@contextmanager
def _by_kernel(launches: AbstractContextManager[list[TimedLaunch]]) -> Generator[dict[str, float]]:
    found = dict[str, float]()
    with launches as timed:
        yield found
    for launch in timed:
        found[launch.kernel] = found.get(launch.kernel, 0.0) + launch.seconds


_ENTRY = (ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_PROTOTYPE = ctypes.CFUNCTYPE(*_ENTRY)
_WITH_EXTERNS = ctypes.CFUNCTYPE(*_ENTRY, ctypes.c_void_p)


class _ExternFunction:
    """A function that calls those of other libraries, called as one that does not.

    Attributes:
        library: where it is from.
    """

    def __init__(self, address: int, library: Library, table: Any):
        self.library = library
        self._function, self._table = _WITH_EXTERNS(address), table

    def __call__(self, tensors: Any, symbols: Any, arena: Any, arena_bytes: Any, /) -> int:
        return self._function(tensors, symbols, arena, arena_bytes, self._table)


class Library:
    """The compiled functions of an executable.

    The code stays loaded as long as the library or any of its functions lives.

    Attributes:
        name: how errors name it.
        team: the threads that run it.
        accesses: the places of accesses in checked code, by number.
        checks: texts of the run-time checks.
        ranks: how many processes run the entries together.
        externs: the functions of other libraries that it calls, a C array of addresses; None where it calls none.
    """

    def __init__(self, addresses: Mapping[str, int], keep_alive: object, name: str, team: Team):
        """Takes addresses by symbol; ``keep_alive`` owns the code, ``team`` runs it."""
        self.name, self.team = name, team
        self.accesses: tuple[str, ...] = ()
        self.checks: tuple[str, ...] = ()
        self.ranks = 1
        self.externs: Any = None
        self._collectives: Collectives | None = None
        self._addresses = dict(addresses)
        self._keep_alive = keep_alive

    @property
    def stream(self) -> int | None:
        """The stream that calls run on, of code that has such."""
        return None

    @stream.setter
    def stream(self, stream: int | None) -> None:
        if stream is not None:
            raise RelaxError(f"expected no stream for code of a CPU, got {stream!r}")

    def wait(self) -> None:
        """Waits for calls that only began, of code that has such."""

    @property
    def device(self) -> str:
        """What it runs on, for readers."""
        return "cpu"

    def launches(self) -> AbstractContextManager[list[TimedLaunch]]:
        """What is launched meanwhile, when the block is left. Raises RelaxError for code that launches nothing."""
        raise RelaxError("expected code for GPUs, whose launches are timed, got code of a CPU")

    def speed(self) -> Any:
        """What the device can do, a :class:`.cuda.device_speed.DeviceSpeed`. Raises RelaxError for code of a CPU."""
        raise RelaxError("expected code for GPUs, which run alone, got code of a CPU")

    def kernel_times(self) -> AbstractContextManager[dict[str, float]]:
        """Seconds by kernel, as :meth:`launches`."""
        return _by_kernel(self.launches())

    @property
    def addresses(self) -> Mapping[str, int]:
        """Where each symbol is."""
        return self._addresses

    def function(self, symbol: str) -> EntryFunction:
        """The function of that C symbol; it releases Python's lock while it runs. Raises RelaxError when there is none."""
        if self.externs is not None:
            return _ExternFunction(self._address(symbol), self, self.externs)
        function = _PROTOTYPE(self._address(symbol))
        function.library = self  # type: ignore[attr-defined]
        return cast("EntryFunction", function)

    def entry_function(self, symbol: str) -> EntryFunction:
        """The same of an entry, which several ranks may run together."""
        return self.function(symbol) if self.ranks == 1 else RankFunction(self._address(symbol), self)

    @property
    def collectives(self) -> Collectives:
        """The connection with the other ranks, found when it is first needed. Raises RelaxError where there are none."""
        if self._collectives is None:
            self._collectives = Collectives(find_communicator(self.ranks))
        return self._collectives

    def constant(self, symbol: str, count: int) -> bytes:
        """The ``count`` bytes at a C symbol. Raises RelaxError when there is none."""
        return ctypes.string_at(self._address(symbol), count)

    def check(self, manifest: Mapping[str, Any]) -> None:
        """Raises RelaxError when the code was compiled with another manifest: it would read and write beyond its tensors."""
        expected, got = self.constant(SYMBOL, BYTES), digest_of(manifest)
        if expected != got:
            raise RelaxError(
                f"{self.name}: expected the manifest it was compiled with, sha256 {expected.hex()[:16]}..., "
                f"got {got.hex()[:16]}...: it was edited, or belongs to other code"
            )

    def _address(self, symbol: str) -> int:
        address = self._addresses.get(symbol)
        if address is None:
            raise RelaxError(f"{self.name}: expected the symbol '{symbol}', got code without it")
        return address

    @staticmethod
    def open(path: str, symbols: Iterable[str], openmp: bool = False) -> Library:
        """Loads a shared library, which may need OpenMP. Raises RelaxError when that fails or a symbol is missing."""
        team = Team(load_runtime() if openmp else None)
        handle = _dlopen(path)
        addresses: dict[str, int] = {}
        for symbol in symbols:
            try:
                addresses[symbol] = ctypes.cast(getattr(handle, symbol), ctypes.c_void_p).value or 0
            except AttributeError:
                raise RelaxError(f"'{path}': expected the symbol '{symbol}', got a library without it") from None
        return Library(addresses, handle, f"'{path}'", team)

    @staticmethod
    def from_object(code: bytes, symbols: Iterable[str], openmp: bool = False) -> Library:
        """Links an archive of object code, which may need OpenMP, or one object file; needs no C compiler.

        Raises:
            RelaxError: it is no object code of this machine, needs a function that this process lacks, or lacks a symbol.
        """
        team = Team(load_runtime() if openmp else None)
        wanted = list(symbols)
        addresses, tracker = _orc_link(code, wanted)
        return Library(addresses, tracker, "object code", team)


def _dlopen(path: str) -> ctypes.CDLL:
    """Loads under a name of its own: dlopen returns what it loaded before for an equal path, even if the file was replaced."""
    path = os.path.abspath(path)
    with os_errors("load", path), tempfile.TemporaryDirectory(prefix="relaxir-") as folder:
        name = os.path.join(folder, f"{os.path.basename(folder)}.so")
        os.symlink(path, name)
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            raise RelaxError(f"cannot load '{path}': {str(error).replace(name, path)}") from None


def llvm_binding() -> Any:
    """llvmlite, which has no type stubs; imported when first needed."""
    return importlib.import_module("llvmlite.binding")


_orc_lock = threading.Lock()
_orc_names = itertools.count()
_orc: list[Any] = []


def _orc_link(code: bytes, symbols: list[str]) -> tuple[dict[str, int], object]:
    """Addresses of the symbols and what keeps them alive. One ORC serves the process; its libraries have names of their own."""
    llvm = llvm_binding()
    with _orc_lock:
        if not _orc:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            # JITLink maps all sections of an object together. RuntimeDyld maps each alone, and in a process of many GB their
            # distance can exceed the 2 GB that 32-bit relocations reach, which aborts (seen with a Llama of 1.5 GB).
            _orc.append(llvm.create_lljit_compiler(use_jit_link=True))
        builder = llvm.JITLibraryBuilder()
        for member in members(code).values() if code.startswith(MAGIC) else [code]:
            builder.add_object_img(member)
        builder.add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        try:
            tracker = builder.link(_orc[0], f"relaxir.{next(_orc_names)}")
        except RuntimeError as error:
            raise RelaxError(f"cannot link the object code: {str(error).strip()}") from None
    return {symbol: tracker[symbol] for symbol in symbols}, (_orc[0], tracker)
