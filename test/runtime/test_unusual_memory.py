"""Tensors whose memory is not what it seems: none at all, a copy of it, let go of, or the state that a call updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import relaxir as rx

_SHAPE = (4, 8)


def _module() -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", _SHAPE, "f32"), b.weight("w", _SHAPE, "f32")
        b.output(b.add(x, w))
    with b.function("one"):
        b.output(b.sum(b.input("x", _SHAPE, "f32")))
    return b.build()


@pytest.fixture(scope="module")
def doubled() -> Any:
    executable = rx.compile(_module())
    return executable.bind(executable.prepare({"w": _ones().numpy()}))


def _ones() -> torch.Tensor:
    return torch.ones(_SHAPE)


def _without_storage() -> torch.Tensor:
    x = _ones()
    x.untyped_storage().resize_(0)
    return x


def _with_less() -> torch.Tensor:
    x = torch.ones(5, 8)[1:]
    x.untyped_storage().resize_(64)
    return x[:, :8]


class _Copies:
    """Shows another copy each time."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        self.shown = np.ones(_SHAPE, np.float32)
        return self.shown.__array_interface__


class _Negative:
    """A view of memory through DLPack."""

    def __init__(self) -> None:
        self.memory = np.zeros(_SHAPE, np.float32)

    def __dlpack__(self, **options: Any) -> Any:
        return self.memory.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.memory.__dlpack_device__()


def test_zeros_that_have_no_memory(doubled: Any) -> None:
    zeros = torch._efficientzerotensor(_SHAPE)
    np.testing.assert_array_equal(doubled(zeros, entry="main"), _ones())
    executable = rx.compile(_module())
    bound = executable.bind(executable.prepare({"w": zeros}))
    np.testing.assert_array_equal(bound(_ones(), entry="main"), _ones())
    with pytest.raises(rx.RelaxError, match="output 'output0': expected an array or a tensor that shows its own memory"):
        doubled(_ones(), entry="main", out=zeros)


@pytest.mark.parametrize("made", [_without_storage, _with_less])
def test_a_tensor_whose_storage_is_gone(doubled: Any, made: Any) -> None:
    executable = rx.compile(_module())
    with pytest.raises(rx.RelaxError, match=r"weight 'w': expected a tensor with 1[26][08] bytes of memory, got one that has "):
        executable.prepare({"w": made()})
    if made is _without_storage:  # torch itself reads behind a storage that has become smaller
        with pytest.raises(rx.RelaxError, match="input 'x': expected a tensor with 128 bytes of memory, got one that has 0"):
            doubled(made(), entry="main")
        with pytest.raises(rx.RelaxError, match="output 'output0': expected a tensor with 128 bytes of memory"):
            doubled(_ones(), entry="main", out=made())


def test_within_transformations_of_functions(doubled: Any) -> None:
    with pytest.raises(rx.RelaxError, match="input 'x': expected"):
        torch.func.functionalize(lambda x: doubled(x, entry="main"))(_ones())


def test_a_nested_tensor(doubled: Any) -> None:
    nested = torch.nested.nested_tensor([torch.ones(8), torch.ones(8)])
    with pytest.raises(rx.RelaxError, match="input 'x': expected a dense tensor, got nested"):
        doubled(nested, entry="main")


@pytest.mark.parametrize("made", [lambda: torch._neg_view(_ones()), _Copies])
def test_results_are_not_written_into_copies(doubled: Any, made: Any) -> None:
    np.testing.assert_array_equal(np.abs(np.asarray(doubled(made(), entry="main")) - 1), _ones())
    with pytest.raises(rx.RelaxError, match="output 'output0': expected an array or a tensor that shows its own memory"):
        doubled(_ones(), entry="main", out=made())


def test_a_scalar_is_no_place_for_a_result(doubled: Any) -> None:
    with pytest.raises(rx.RelaxError, match="output 'output0': expected an array or a tensor that shows its own memory"):
        doubled(_ones(), entry="one", out=np.float32(0))
    there = np.array(0, np.float32)
    assert doubled(_ones(), entry="one", out=there) is there
    assert there == 32


def test_results_are_written_into_memory_that_another_library_shows(doubled: Any) -> None:
    there = _Negative()
    doubled(_ones(), entry="main", out=there)
    np.testing.assert_array_equal(there.memory, 2 * _ones())


def _accumulating() -> rx.Module:
    """``k`` with another first row, and the product of all that with ``x``."""
    t = "tensor<4x4xf32>"
    return rx.Module.parse(f"""
      func.func @main(%x: {t} {{relax.name = "x"}}, %k: {t} {{relax.name = "k"}}) -> ({t}, {t} {{relax.name = "k"}})
          attributes {{relax.num_input = 2 : i64, relax.state = {{k = dense<1.0> : {t}}}}} {{
        %i = "relax.constant"() {{value = dense<0> : tensor<1xi64>}} : () -> tensor<1xi64>
        %v = "relax.full"() {{value = 5.0 : f64}} : () -> tensor<1x4xf32>
        %0 = "relax.index_copy"(%k, %i, %v) : ({t}, tensor<1xi64>, tensor<1x4xf32>) -> {t}
        %1 = "relax.matmul"(%0, %x) : ({t}, {t}) -> {t}
        %2 = "relax.add"(%1, %x) : ({t}, {t}) -> {t}
        return %2, %0 : {t}, {t}
      }}""")


@pytest.mark.parametrize("shown", [lambda a: a, torch.from_numpy, lambda a: memoryview(a) and a[:]])
def test_an_input_that_is_the_state(shown: Any) -> None:
    """The call reads what there was before it."""
    executable = rx.compile(_accumulating())
    expected = executable(np.ones((4, 4), np.float32))
    for _ in range(2):
        executable.reset_state()
        np.testing.assert_array_equal(executable(shown(executable.state["k"])), expected)
    mine = {"k": np.ones((4, 4), np.float32)}
    state = executable.new_state(mine)
    np.testing.assert_array_equal(executable(shown(mine["k"]), state=state), expected)
    assert mine["k"][0, 0] == 5


def test_state_that_shares_memory_or_is_a_copy() -> None:
    t = "tensor<4xf32>"
    executable = rx.compile(
        rx.Module.parse(f"""
      func.func @main(%k: {t} {{relax.name = "k"}}, %v: {t} {{relax.name = "v"}})
          -> ({t} {{relax.name = "k"}}, {t} {{relax.name = "v"}})
          attributes {{relax.num_input = 2 : i64, relax.state = {{k = dense<1.0> : {t}, v = dense<1.0> : {t}}}}} {{
        %0 = "relax.add"(%k, %v) : ({t}, {t}) -> {t}
        %1 = "relax.subtract"(%k, %v) : ({t}, {t}) -> {t}
        return %0, %1 : {t}, {t}
      }}""")
    )
    shared = np.ones(7, np.float32)
    with pytest.raises(rx.RelaxError, match="state 'v': expected memory of its own, got some that state 'k' has"):
        executable.new_state({"k": shared[:4], "v": shared[3:]})
    with pytest.raises(rx.RelaxError, match="state 'k': expected an array or a tensor that shows its own memory"):
        executable.new_state({"k": torch._neg_view(torch.ones(4))})


@pytest.mark.parametrize("offset", [0, 4, 16, 64])
def test_weights_stay_where_they_are_wherever_that_is(offset: int) -> None:
    """``share`` promises that calls read what is written later; where memory begins is no reason to copy."""
    raw = np.zeros(32 * 4 + 128, np.uint8)
    begin = -raw.ctypes.data % 64 + offset
    w = raw[begin : begin + 32 * 4].view(np.float32).reshape(_SHAPE)
    executable = rx.compile(_module())
    executable.bind(executable.prepare({"w": w}, share=True))
    w[:] = 3
    np.testing.assert_array_equal(executable(np.ones(_SHAPE, np.float32), entry="main"), np.full(_SHAPE, 4, np.float32))
