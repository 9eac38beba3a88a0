"""Calling compiled code: arguments, dynamic shapes, run-time checks, scratch memory, threads."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import as_strided

from relaxir import RelaxError
from relaxir.runtime.calls import as_argument
from relaxir.runtime.executable import Executable
from relaxir.runtime.library import Library
from relaxir.runtime.scratch import ScratchPool
from relaxir.weights.arrays import address
from support.hand_compiled import entry, executable_of, manifest, object_code, scaled_executable, scaled_manifest, tensor

RAW = {"w": np.array([1, 2, 3, 4], np.float32), "bias": np.zeros(3, np.int8)}
SCALE = np.array([2, 4, 6, 8], np.float32)


@pytest.fixture(scope="module")
def scaled() -> Executable:
    executable = scaled_executable()
    return executable.bind(executable.prepare(RAW))


def copying(dtype: str) -> Executable:
    """An executable that returns its 16-bit input."""
    main = entry("main", "relaxir_copy", inputs=[tensor("x", [], dtype)], outputs=[tensor("y", [], dtype)])
    return executable_of(manifest(entries=[main]))


def rows(n: int) -> np.ndarray:
    return np.arange(4 * n, dtype=np.float32).reshape(n, 4)


def test_numpy_in_numpy_out_at_several_sizes(scaled: Executable) -> None:
    for n in (1, 7, 2, 512, 7):
        got = scaled(rows(n))
        assert isinstance(got, np.ndarray)
        assert np.array_equal(got, rows(n) * SCALE)
        assert address(got) % 64 == 0


def test_torch_in_torch_out(scaled: Executable) -> None:
    got = scaled(torch.ones(3, 4, requires_grad=True))
    assert isinstance(got, torch.Tensor)
    assert got.tolist() == [SCALE.tolist()] * 3


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x,
        torch.nn.Parameter,
        lambda x: x.t().contiguous().t(),
        lambda x: torch._neg_view(-x),
        lambda x: torch.frombuffer(bytearray(b"\0" + x.numpy().tobytes()), dtype=torch.float32, offset=1).reshape(x.shape),
        lambda x: x.expand(1, *x.shape)[0],
        lambda x: torch.cat([x, x])[len(x) :],
    ],
    ids=["plain", "parameter", "transposed", "negative", "misaligned", "expanded", "part"],
)
def test_tensors_of_all_kinds(scaled: Executable, make: Any) -> None:
    x = torch.from_numpy(rows(5))
    got = scaled(make(x))
    assert isinstance(got, torch.Tensor)
    assert np.array_equal(got, rows(5) * SCALE)
    assert scaled(make(x), out=got) is got
    assert np.array_equal(got, rows(5) * SCALE)


def test_tensors_that_have_no_memory(scaled: Executable) -> None:
    with pytest.raises(RelaxError, match="input 'x': expected a tensor in host memory, got one on 'meta'"):
        scaled(torch.empty(2, 4, device="meta"))
    with pytest.raises(RelaxError, match=r"input 'x': expected a dense tensor, got layout torch\.sparse_coo"):
        scaled(torch.ones(2, 4).to_sparse())
    with pytest.raises(RelaxError, match="input 'x': expected a tensor that NumPy can see"):
        torch.vmap(scaled)(torch.ones(3, 2, 4))


@pytest.mark.parametrize("tensor_of", [torch.from_dlpack, np.from_dlpack])
def test_named_inputs(scaled: Executable, tensor_of: Any) -> None:
    assert scaled(x=tensor_of(rows(2))).tolist() == (rows(2) * SCALE).tolist()


def test_bf16_keeps_its_bits() -> None:
    executable = copying("bf16")
    got = executable(torch.tensor(-1.5, dtype=torch.bfloat16))
    assert (got.dtype, got.item()) == (torch.bfloat16, -1.5)
    array = executable(np.array(2.5, ml_dtypes.bfloat16))
    assert (array.dtype, float(array)) == (np.dtype(ml_dtypes.bfloat16), 2.5)


def test_non_contiguous_and_misaligned_inputs_are_copied(scaled: Executable) -> None:
    wide = np.arange(48, dtype=np.float32).reshape(4, 12)
    for view in (wide[:, ::3], wide[:, :4], np.asfortranarray(wide[:, :4]), wide[::-1, :4]):
        assert np.array_equal(scaled(view), view * SCALE)
    odd = np.frombuffer(b"\0" + rows(3).tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 4)
    assert not odd.flags.aligned
    assert np.array_equal(scaled(odd), rows(3) * SCALE)


def test_views_that_claim_more_than_there_is(scaled: Executable) -> None:
    one = np.ones(1, np.float32)
    for rows in (2**38, 2**58):
        with pytest.raises(RelaxError, match=rf"input 'x': expected 'n' \(dimension 0\) from 1 to 512, got {rows}"):
            scaled(as_strided(one, (rows, 4), (0, 0)))
    (main,) = scaled_manifest()["entries"]
    unlimited = scaled_executable(entries=[main | {"symbols": [{"name": "n", "min": None, "max": None}]}])
    unlimited.bind(unlimited.prepare(RAW))
    for make in (lambda n: as_strided(one, (n, 4), (0, 0)), lambda n: torch.ones(1).expand(n, 4)):
        with pytest.raises(RelaxError, match=r"input 'x': expected memory for a contiguous copy of f32\[\d+, 4\], got none"):
            unlimited(make(2**38))


class Interface:
    """Speaks a protocol as it likes."""

    def __init__(self, interface: object):
        self._interface = interface

    @property
    def __array_interface__(self) -> object:
        if isinstance(self._interface, Exception):
            raise self._interface
        return self._interface


class Capsule:
    def __init__(self, device: object, capsule: object):
        self._device, self._capsule = device, capsule

    def __dlpack_device__(self) -> object:
        return self._device

    def __dlpack__(self, **options: object) -> object:
        return self._capsule


@pytest.mark.parametrize(
    "value",
    [
        Interface(3), Interface({}), Interface(ValueError("no")), Interface({"shape": (2, 4), "typestr": "<f4", "data": 5}),
        Capsule("x", None), Capsule((1, 0), 3), Capsule((None, None), 3),
    ],
)  # fmt: skip
def test_protocols_that_are_spoken_badly(scaled: Executable, value: object) -> None:
    with pytest.raises(RelaxError, match=r"input 'x': expected a tensor that NumPy can see, got (Interface|Capsule): "):
        scaled(value)


def test_a_contiguous_input_is_passed_as_it_is(scaled: Executable) -> None:
    read_only = rows(2)
    read_only.flags.writeable = False
    assert np.array_equal(scaled(read_only), rows(2) * SCALE)


def test_outputs_are_new_each_time(scaled: Executable) -> None:
    first = scaled(rows(2))
    second = scaled(rows(2) * 2)
    assert np.array_equal(first * 2, second)


def test_small_outputs_do_not_overlap(scaled: Executable) -> None:
    """They come out of larger pieces of memory."""
    sizes = [1, 3, 40, 64, 65, 200]
    kept = [(n, i, scaled(np.full((n, 4), i, np.float32))) for i in range(50) for n in sizes if n != 13]
    assert all(address(got) % 64 == 0 and np.array_equal(got, i * np.tile(SCALE, (n, 1))) for n, i, got in kept)
    for _, _, got in kept:
        got[:] = -1
    assert np.array_equal(scaled(rows(2)), rows(2) * SCALE)


@pytest.mark.parametrize(
    ("inputs", "named", "message"),
    [
        ((), {}, r"entry 'main': expected 1 input \(x\), got none for 'x'"),
        ((rows(1), rows(1)), {}, r"entry 'main': expected 1 input \(x\), got 2"),
        ((), {"y": rows(1)}, r"entry 'main': expected 1 input \(x\), got one named 'y'"),
        ((rows(1),), {"x": rows(1)}, "entry 'main': expected input 'x' once, got it by position and by name"),
        ((rows(1).astype(np.float64),), {}, "input 'x': expected dtype f32, got f64"),
        ((rows(1).astype(">f4"),), {}, "input 'x': expected dtype f32, got >f4"),
        ((torch.ones(1, 4, dtype=torch.int32),), {}, "input 'x': expected dtype f32, got i32"),
        (([[1.0] * 4],), {}, "input 'x': expected an array"),
        ((rows(1)[:, :3],), {}, r"input 'x': expected shape \[n, 4\] = \[1, 4\] \(n = 1 from input 'x'\), got \[1, 3\]"),
        ((rows(1)[0],), {}, r"input 'x': expected shape \[n, 4\], got \[4\]"),
        ((rows(600),), {}, r"input 'x': expected 'n' \(dimension 0\) from 1 to 512, got 600"),
        ((rows(0),), {}, r"input 'x': expected 'n' \(dimension 0\) from 1 to 512, got 0"),
        ((rows(13),), {}, r"entry 'main': run-time check failed: expected n other than 13 \(n = 13\)"),
    ],
)
def test_wrong_inputs(scaled: Executable, inputs: tuple[object, ...], named: dict[str, object], message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        scaled(*inputs, **named)


LAST_OF_THREE = """define i64 @f(ptr %t, ptr %s, ptr %a, i64 %n) {
  %p = getelementptr ptr, ptr %t, i64 2
  %x = load ptr, ptr %p
  %v = load i16, ptr %x
  %q = getelementptr ptr, ptr %t, i64 3
  %y = load ptr, ptr %q
  store i16 %v, ptr %y
  ret i64 0
}"""


def test_mixed_positional_and_named() -> None:
    main = entry("main", "f", inputs=[tensor(n, [], "i16") for n in "abc"], outputs=[tensor("y", [], "i16")])
    executable = executable_of(manifest(entries=[main]), LAST_OF_THREE)
    one, two = np.array(1, np.int16), np.array(2, np.int16)
    assert executable(one, c=two, b=one).tolist() == 2
    assert executable(c=one, b=two, a=two).tolist() == 1
    assert executable(two, two, one).tolist() == 1
    with pytest.raises(RelaxError, match=r"expected 3 inputs \(a, b, c\), got none for 'b'"):
        executable(one, c=two)


def test_unbound_call_and_unknown_entry() -> None:
    executable = scaled_executable()
    assert not executable.is_bound
    with pytest.raises(RelaxError, match=r"entry 'main': expected bound weights \(1\), got none: call prepare, then bind"):
        executable(rows(1))
    with pytest.raises(RelaxError, match="expected an entry out of main, got 'other'"):
        executable(rows(1), entry="other")


def test_choosing_entries() -> None:
    one = {"inputs": [tensor("x", [], "i16")], "outputs": [tensor("y", [], "i16")]}
    two = [entry("prefill", "relaxir_copy", **one), entry("decode", "relaxir_copy", **one)]
    executable = executable_of(manifest(entries=two))
    assert executable.is_bound
    assert executable(np.array(5, np.int16), entry="decode").tolist() == 5
    with pytest.raises(RelaxError, match="expected entry= to name one of prefill, decode, got none"):
        executable(np.array(5, np.int16))


def test_no_inputs_and_several_outputs() -> None:
    text = """define i64 @f(ptr %t, ptr %s, ptr %a, i64 %n) {
      %p = load ptr, ptr %t
      store i8 1, ptr %p
      %q = getelementptr ptr, ptr %t, i64 1
      %r = load ptr, ptr %q
      store i8 0, ptr %r
      ret i64 0
    }
    define i64 @nothing(ptr %t, ptr %s, ptr %a, i64 %n) {
      ret i64 0
    }"""
    two = [tensor("a", [1], "i1"), tensor("b", [], "i1")]
    entries = [entry("main", "f", outputs=two), entry("nothing", "nothing")]
    executable = executable_of(manifest(entries=entries), text)
    got = executable()
    assert isinstance(got, tuple)
    assert [g.tolist() for g in got] == [[True], False]
    assert executable(entry="nothing") == ()


def test_an_output_of_no_bytes() -> None:
    text = "define i64 @f(ptr %t, ptr %s, ptr %a, i64 %n) {\n ret i64 0\n}"
    main = entry("main", "f", outputs=[tensor("a", [0, 4]), tensor("b", [512]), tensor("c", [0])])
    executable = executable_of(manifest(entries=[main]), text)
    for _ in range(5):
        assert [(r.shape, r.dtype) for r in executable()] == [((0, 4), np.float32), ((512,), np.float32), ((0,), np.float32)]


def test_an_entry_that_never_has_enough_scratch() -> None:
    executable = executable_of(manifest(entries=[entry("main", "relaxir_greedy")]))
    with pytest.raises(
        RelaxError, match="entry 'main': expected an arena of 64 bytes to be enough, got a request for 128 bytes"
    ):
        executable()


def test_scratch_that_cannot_be_had() -> None:
    text = "define i64 @f(ptr %t, ptr %s, ptr %a, i64 %n) {\n ret i64 1152921504606846976\n}"
    executable = executable_of(manifest(entries=[entry("main", "f")]), text)
    with pytest.raises(RelaxError, match="expected 1152921504606846976 bytes of scratch memory, got none"):
        executable()


def test_check_without_text() -> None:
    text = "define i64 @f(ptr %t, ptr %s, ptr %a, i64 %n) {\n ret i64 -3\n}"
    executable = executable_of(manifest(entries=[entry("main", "f")]), text)
    with pytest.raises(RelaxError, match="entry 'main': run-time check failed: check 2"):
        executable()


def test_concurrent_calls(scaled: Executable) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        for i in range(100):
            x = rows((seed * 37 + i * 11) % 300 + 14) + seed
            if not np.array_equal(scaled(x), x * SCALE):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_rebinding_while_calls_run(scaled: Executable) -> None:
    executable = scaled_executable()
    sets = [executable.prepare(RAW), executable.prepare({**RAW, "w": RAW["w"] * 3})]
    executable.bind(sets[0])
    got: set[float] = set()
    stop = threading.Event()

    def call() -> None:
        while not stop.is_set():
            got.update(np.unique(executable(np.ones((4, 4), np.float32)) / SCALE).tolist())

    thread = threading.Thread(target=call)
    thread.start()
    for i in range(200):
        executable.bind(sets[i % 2])
    stop.set()
    thread.join()
    assert got <= {1.0, 3.0}


def test_code_lives_as_long_as_a_function_of_it() -> None:
    library = Library.from_object(object_code(), ["relaxir_greedy"])
    gone = weakref.ref(library)
    function = library.function("relaxir_greedy")
    del library
    gc.collect()
    assert function(None, None, None, 0) == 64
    del function
    gc.collect()
    assert gone() is None


def test_broken_code() -> None:
    with pytest.raises(RelaxError, match="object code: expected the symbol 'f', got code without it"):
        Library.from_object(object_code(), []).function("f")
    with pytest.raises(RelaxError, match=r"cannot link the object code: .*\bf\b"):
        Library.from_object(object_code(), ["f"])
    with pytest.raises(RelaxError, match="cannot link the object code"):
        Library.from_object(b"garbage", ["f"])
    with pytest.raises(RelaxError, match="expected a library or object code for an executable, got neither"):
        Executable(manifest())


def test_unresolved_reference() -> None:
    text = """declare i64 @nowhere_at_all()
    define i64 @f(ptr %t, ptr %s, ptr %a, i64 %n) {
      %r = call i64 @nowhere_at_all()
      ret i64 %r
    }"""
    with pytest.raises(RelaxError, match=r"cannot link the object code: .*\bf\b"):
        Library.from_object(object_code(text), ["f"])


def test_scratch_is_reused_but_never_shared() -> None:
    pool = ScratchPool()
    first, second = pool.take(), pool.take()
    assert first is not second
    first.grow(100)
    start = first.address
    first.grow(50)
    assert (first.address, first.size) == (start, 100)
    first.grow(101)
    assert first.size == 150
    pool.give(first)
    assert pool.take() is first
    assert pool.take() not in (first, second)
    assert start is not None
    assert start % 64 == 0


def test_arguments_are_aligned() -> None:
    """x86 forgives a misaligned scalar, so only the pointer can tell."""
    odd = np.frombuffer(bytes(17), np.uint8)[1:].view(np.float32)
    assert odd.ctypes.data % 4
    assert as_argument(odd, "input").ctypes.data % 4 == 0
    scalar = np.array(1.0)
    assert as_argument(scalar, "input") is scalar
    assert as_argument(np.zeros((2, 3)).T, "input").flags.c_contiguous
