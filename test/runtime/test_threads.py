"""Loops that threads share: the same results for every number of threads, and how that number is chosen."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import relaxir as rx
from relaxir.compiler import default_pipeline
from relaxir.runtime import threads

D = 96  # with 700 rows every kernel below has enough work for a team of threads
ROWS = 700


@pytest.fixture(scope="module")
def executable() -> rx.Executable:
    """A matrix product with epilogue, rows, reductions along and across the vector, a transposition, an embedding."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", D), "f32")
        w = b.weight("w", (D, 3 * D), "f32")
        h = b.relu(b.matmul(x, w))
        rows = b.softmax(h)
        turned = b.permute_dims(rows, axes=[1, 0])
        exponential = b.multiply(b.exp(b.negative(h)), rows)
        b.output(exponential, turned, b.sum(h, axis=[0], keepdims=False), b.matmul(turned, x))
    made = rx.compile(b.build())
    weight = np.random.default_rng(0).standard_normal((D, 3 * D), dtype=np.float32)
    return made.bind(made.prepare({"w": weight}))


@pytest.fixture
def inputs() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((ROWS, D), dtype=np.float32)


def test_code_is_for_threads(executable):
    assert executable.manifest.target.openmp
    assert b"__kmpc_fork_call" in executable._object_code


@pytest.mark.parametrize("rows", [1, 5, ROWS])
def test_results_do_not_depend_on_the_number_of_threads(executable, inputs, rows):
    executable.threads = 1
    wanted = executable(inputs[:rows])
    for count in (2, 3, 7, None):
        executable.threads = count
        for got, want in zip(executable(inputs[:rows]), wanted, strict=True):
            np.testing.assert_array_equal(got, want)


def test_calls_from_several_threads_at_once(executable, inputs):
    executable.threads = 2
    wanted = executable(inputs)
    failures: list[BaseException] = []

    def call() -> None:
        try:
            for _ in range(5):
                for got, want in zip(executable(inputs), wanted, strict=True):
                    np.testing.assert_array_equal(got, want)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=call) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


@pytest.mark.parametrize("columns", [3 * D, 3 * D + 5])
def test_panels_that_are_widened_on_the_stack_are_each_thread_s_own(inputs, columns):
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", D), "f32")
        w = b.weight("w", (D, columns), "i8")
        scale, zero = b.weight("s", (D // 32, columns), "f32"), b.weight("z", (D // 32, columns), "i8")
        b.output(b.matmul(x, b.dequantize(w, scale, zero, axis=0)))
    narrow = default_pipeline().replace("lift-transform-params", "lift-transform-params{growth-slack=1}")
    made = rx.compile(b.build(), pipeline=narrow)
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.integers(-8, 8, (D, columns), np.int8),
        "s": rng.random((D // 32, columns), np.float32),
        "z": rng.integers(-3, 3, (D // 32, columns), np.int8),
    }
    made.bind(made.prepare(weights))
    made.threads = 1
    want = made(inputs)
    for _ in range(20):
        made.threads = 3
        np.testing.assert_array_equal(made(inputs), want)


@pytest.mark.parametrize("count", [0, -1, "2", 1.5])
def test_a_wrong_number_is_refused(executable, count):
    with pytest.raises(rx.RelaxError, match="expected a number of threads from 1 on"):
        executable.threads = count


def test_the_environment_gives_the_number(monkeypatch):
    monkeypatch.setenv("RELAXIR_NUM_THREADS", "3")
    assert threads.Team(object()).count == 3
    monkeypatch.delenv("RELAXIR_NUM_THREADS")
    assert threads.Team(object()).count is None
    monkeypatch.setenv("RELAXIR_NUM_THREADS", "many")
    with pytest.raises(rx.RelaxError, match="expected a number of threads from 1 on in RELAXIR_NUM_THREADS, got 'many'"):
        threads.Team(object())


def test_openmp_s_own_variable_counts(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5,2")
    assert threads.default_threads() == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "x")
    assert threads.default_threads() >= 1


def test_without_a_runtime_code_is_sequential(monkeypatch, inputs):
    monkeypatch.setattr(threads, "find_runtime", lambda: None)
    b = rx.Builder()
    with b.function("main"):
        b.output(b.relu(b.input("x", ("n", D), "f32")))
    made = rx.compile(b.build())
    assert not made.manifest.target.openmp
    assert "sequential" in str(made.report)
    np.testing.assert_array_equal(made(inputs), np.maximum(inputs, 0))


def test_code_for_threads_needs_a_runtime(monkeypatch, executable, tmp_path):
    executable.save(tmp_path / "model")
    monkeypatch.setattr(threads, "find_runtime", lambda: None)
    threads.load_runtime.cache_clear()
    try:
        with pytest.raises(rx.RelaxError, match="expected an OpenMP runtime for code with threads"):
            rx.load(tmp_path / "model")
    finally:
        threads.load_runtime.cache_clear()


@pytest.mark.parametrize("content", [b"no library", None], ids=["another file", "another library"])
def test_a_runtime_that_is_none_is_refused_by_its_path(monkeypatch, tmp_path, content):
    path = tmp_path / "libomp.so"
    path.write_bytes(content or b"")
    monkeypatch.setattr(threads, "find_runtime", lambda: str(path) if content else "libm.so.6")
    threads.load_runtime.cache_clear()
    try:
        with pytest.raises(rx.RelaxError, match=r"^cannot load the OpenMP runtime '(.*libomp\.so|libm\.so\.6)': "):
            threads.load_runtime()
    finally:
        threads.load_runtime.cache_clear()


def test_a_saved_executable_uses_threads(executable, inputs, tmp_path):
    executable.save(tmp_path / "model")
    loaded = rx.load(tmp_path / "model")
    weight = np.random.default_rng(0).standard_normal((D, 3 * D), dtype=np.float32)
    loaded.bind(loaded.prepare({"w": weight}, jobs=2))
    loaded.threads = 2
    for got, want in zip(loaded(inputs), executable(inputs), strict=True):
        np.testing.assert_array_equal(got, want)
