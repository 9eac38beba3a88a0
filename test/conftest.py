"""Tests compile for themselves: what they leave in a cache, or find there, would be of another state of the sources.

Each kernel goes through LLVM once, in this run or in one before (:mod:`support.kept_kernels`).
"""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ["RELAXIR_CACHE_DIR"] = "off"
# How long an example takes says how busy the machine is.
settings.register_profile("relaxir", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("relaxir")
# Tests run side by side: threads of one would wait for those of another at the end of every loop.
for threads in ("RELAXIR_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

if os.environ.get("RELAXIR_CHECKED"):
    from support.checked import check_all_code

    check_all_code()

if os.environ.get("RELAXIR_HOST"):
    from support.other_host import pretend_host

    pretend_host(os.environ["RELAXIR_HOST"])

# What LLVM made of a kernel's text stays for the next run; `make clean` deletes it.
_ALWAYS = Path(__file__).parents[1] / "build" / "test-kernels"
_KERNELS = "RELAXIR_TEST_KERNELS"
_IS_FIRST = _KERNELS not in os.environ
if _IS_FIRST:  # the processes that it starts find it there
    os.environ[_KERNELS] = tempfile.mkdtemp(prefix="relaxir-kernels-")


def pytest_configure() -> None:
    from support.erasures import guard_erasures
    from support.kept_kernels import keep_kernels

    guard_erasures()
    keep_kernels(_ALWAYS, Path(os.environ[_KERNELS]))


def pytest_unconfigure() -> None:
    from support.kept_kernels import forget_kernels

    if _IS_FIRST:
        shutil.rmtree(os.environ[_KERNELS], ignore_errors=True)
        forget_kernels(_ALWAYS)


def pytest_collection_finish() -> None:
    """What imports made stays: the collector need not look through it in every round, nor a fork copy it.

    With torch and transformers these are 200,000 objects, and a tenth of the time of tests that compile. What tests import and
    keep comes to as many again: with thresholds of 10,000, 20 and 20 rounds through it took 9 % of the time of tests of models.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(autouse=True)
def subnormals() -> Iterator[None]:
    """A test that has this thread round subnormals to 0 from then on fails, not those behind it whose numbers are wrong.

    A library that GCC has linked with ``-ffast-math`` does so as it is loaded.
    """
    before = _keeps_subnormals()
    yield
    assert before == _keeps_subnormals(), "the test left arithmetic otherwise than it found it"


def _keeps_subnormals(least: float = 5e-324) -> bool:
    return least * 1.0 != 0.0


@pytest.fixture
def driver_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions of CUDA's driver that are called from Python, as they are called."""
    from relaxir.runtime.cuda.driver import Driver

    seen: list[str] = []
    call = Driver.call

    def noted(self: Driver, name: str, *arguments: object) -> None:
        seen.append(name)
        call(self, name, *arguments)

    monkeypatch.setattr(Driver, "call", noted)
    return seen


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The streams of an emulated device that its host waits for, by Python or by compiled code, as it begins to wait."""
    from relaxir.lowering.cuda.emulator.driver import Library

    seen: list[object] = []
    wait = Library._cuStreamSynchronize

    def noted(self: Library, handle: int | None) -> None:
        seen.append(handle)
        wait(self, handle)

    monkeypatch.setattr(Library, "_cuStreamSynchronize", noted)
    return seen
