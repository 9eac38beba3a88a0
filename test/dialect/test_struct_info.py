"""Tensor types taken apart and built: encodings, symbols and devices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaxir.dialect import struct_info
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.struct_info import (
    TensorInfo,
    check_type,
    same_info,
    tensor_type,
    vdevice_of,
    with_vdevice,
    without_encoding,
)
from relaxir.dialect.symbolic import parse, symbol

CONTEXT = new_context()


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with CONTEXT, ir.Location.unknown():
        yield


def info(text: str) -> TensorInfo:
    return TensorInfo.of(ir.Type.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "tensor<f32>",
        "tensor<4x5xbf16>",
        "tensor<?xf32>",
        'tensor<?x4xf16, {sym = ["n"]}>',
        'tensor<?x?xf16, {sym = ["n", "m * 2 + 1"]}>',
        'tensor<?x?xf16, {sym = ["?", "m"]}>',
        'tensor<4xi8, {vdevice = "cuda:0"}>',
        'tensor<?xi1, {sym = ["n // 2"], vdevice = "cpu:0"}>',
    ],
)
def test_types_round_trip(text: str) -> None:
    type_ = ir.Type.parse(text)
    assert TensorInfo.of(type_).type == type_
    assert str(TensorInfo.of(type_).type) == text


def test_what_is_read() -> None:
    got = info('tensor<?x4x?xf16, {sym = ["n + n", "?"], vdevice = "cuda:1"}>')
    assert got.shape == (parse("n * 2"), 4, None)
    assert got.dtype == ir.F16Type.get()
    assert got.vdevice == "cuda:1"
    assert got.rank == 3
    assert str(got) == "n * 2x4x?xf16"


def test_an_encoding_says_only_what_there_is_to_say() -> None:
    assert info("tensor<?xf32, {}>").type.encoding is None
    assert info('tensor<?xf32, {sym = ["?"]}>').type.encoding is None
    assert info("tensor<4xf32, {sym = []}>").type.encoding is None


@settings(max_examples=50)
@given(st.lists(st.sampled_from([0, 1, 7, None, "n", "n * 2", "m // 3"]), max_size=4), st.sampled_from([None, "cpu:0"]))
def test_building_and_reading_agree(dims: list[int | str | None], vdevice: str | None) -> None:
    with CONTEXT:
        type_ = tensor_type(dims, ir.F32Type.get(), vdevice)
        got = TensorInfo.of(type_)
        assert got.shape == tuple(parse(d) if isinstance(d, str) else d for d in dims)
        assert got.vdevice == vdevice
        check_type(type_)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f32", "expected a ranked tensor, got f32"),
        ("tensor<*xf32>", r"expected a ranked tensor, got tensor<\*xf32>"),
        ('tensor<4xf32, "cpu">', "expected a dictionary encoding with 'sym' or 'vdevice', got \"cpu\""),
        ("tensor<4xf32, {layout = 1 : i64}>", "expected only 'sym' and 'vdevice' in a tensor encoding, got 'layout'"),
        ("tensor<4xf32, {vdevice = 1 : i64}>", "expected a string for 'vdevice', got 1 : i64"),
        ('tensor<?xf32, {sym = "n"}>', "expected an array of strings for 'sym', got \"n\""),
        ("tensor<?xf32, {sym = [1]}>", r"expected an array of strings for 'sym', got \[1\]"),
        ("tensor<?xf32, {sym = []}>", "expected one 'sym' expression for each of 1 dynamic dimensions, got 0"),
        ('tensor<?xf32, {sym = ["4"]}>', "expected a symbolic expression in 'sym', got the constant \"4\""),
        ('tensor<?xf32, {sym = ["n!"]}>', r"expected a symbolic dimension such as 'n \* 2 \+ 1', got 'n!'"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(RelaxError, match=f"^{message}$"):
        info(text)


def test_check_type_looks_at_tensors_only() -> None:
    check_type(ir.F32Type.get())
    check_type(ir.Type.parse("tensor<*xf32>"))
    with pytest.raises(RelaxError, match="expected one 'sym' expression"):
        check_type(ir.Type.parse('tensor<4xf32, {sym = ["n"]}>'))


@pytest.mark.parametrize("size", [2**63, -1])
def test_sizes_that_no_type_holds(size: int) -> None:
    with pytest.raises(RelaxError, match=rf"expected dimensions from 0 to 2\*\*63 - 1, got {size}"):
        _ = TensorInfo((size,), ir.F32Type.get()).type


def test_same_info() -> None:
    assert same_info(info("tensor<?x4xf32>"), info('tensor<?x4xf32, {sym = ["n"]}>'))
    assert same_info(info("tensor<?xf32>"), info("tensor<4xf32>"))
    assert same_info(info('tensor<4xf32, {vdevice = "a"}>'), info('tensor<4xf32, {vdevice = "b"}>'))
    assert not same_info(info('tensor<?xf32, {sym = ["n"]}>'), info("tensor<4xf32>"))
    assert not same_info(info("tensor<4xf32>"), info("tensor<4xf16>"))
    assert not same_info(info("tensor<4xf32>"), info("tensor<4x1xf32>"))


def test_with() -> None:
    start = info('tensor<4xf32, {vdevice = "cpu:0"}>')
    assert str(start.with_(shape=[symbol("n"), 2]).type) == 'tensor<?x2xf32, {sym = ["n"], vdevice = "cpu:0"}>'
    assert str(start.with_(dtype=ir.F16Type.get()).type) == 'tensor<4xf16, {vdevice = "cpu:0"}>'
    assert start.with_(shape=()).rank == 0


def test_devices() -> None:
    plain = ir.Type.parse("tensor<4xf32>")
    placed = with_vdevice(plain, "cuda:0")
    assert str(placed) == 'tensor<4xf32, {vdevice = "cuda:0"}>'
    assert vdevice_of(placed) == "cuda:0"
    assert vdevice_of(plain) is None
    assert vdevice_of(ir.F32Type.get()) is None
    assert with_vdevice(placed, None) == plain


def test_without_encoding() -> None:
    assert str(without_encoding(ir.Type.parse('tensor<?x4xf32, {sym = ["n"]}>'))) == "tensor<?x4xf32>"
    for text in ("tensor<4xf32>", "f32", "tensor<*xf32>"):
        assert without_encoding(ir.Type.parse(text)) == ir.Type.parse(text)


def test_values_are_read_like_their_types() -> None:
    module = ir.Module.parse('func.func @f(%x: tensor<?xf32, {sym = ["n"]}>, %i: index) { return }')
    x, i = module.body.operations[0].regions[0].blocks[0].arguments
    assert TensorInfo.of(x).shape == (symbol("n"),)
    assert struct_info.is_tensor(x)
    assert not struct_info.is_tensor(i)


def test_a_size_that_no_type_can_hold() -> None:
    with CONTEXT, pytest.raises(RelaxError, match=r"expected dimensions from 0 to 2\*\*63 - 1, got 9223372036854775808"):
        _ = TensorInfo((2**63,), ir.F32Type.get()).type
