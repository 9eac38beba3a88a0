"""What is computed where it is read: repeated producers, elementwise ops on concatenations, results that are inserted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import relaxir as rx
from relaxir.building.value import Value
from relaxir.dialect.bindings import ir, passmanager
from relaxir.lowering.fusion import repeat_producers
from relaxir.lowering.fusion.outline_kernels import outline_kernels
from relaxir.lowering.fusion.repeat_producers import prepare_fusion
from relaxir.lowering.linalg.to_linalg import relax_to_linalg
from support.naive import assert_close

Make = Callable[[rx.Builder], tuple[Value, ...]]


def module(make: Make) -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(*make(b))
    return b.build()


def kernels(made: rx.Module) -> int:
    """How many kernels @main calls."""
    operation = made.ir.operation.clone()
    with operation.context, ir.Location.unknown():
        relax_to_linalg(operation, tile=16)
        prepare_fusion(operation)
        passes = "builtin.module(func.func(linalg-fuse-elementwise-ops),canonicalize,cse)"
        passmanager.PassManager.parse(passes).run(operation)
        outline_kernels(operation)
        assert operation.verify()
    text = str(operation)
    main = text[text.index("func.func @main") :]
    main = main[: main.index("return")]
    return main.count("call @") + main.count("insert_slice")


def check(made: rx.Module, *shapes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    want = rx.evaluate(made, "main", *inputs)
    got = rx.compile(made)(*inputs)
    for found, expected in zip(got if isinstance(got, tuple) else [got], want, strict=True):
        assert_close(np.asarray(found), expected)


def rope(b: rx.Builder, x: Value, cos: Value, sin: Value, width: int) -> Value:
    low = b.strided_slice(x, axes=[3], begin=[0], end=[width // 2])
    high = b.strided_slice(x, axes=[3], begin=[width // 2], end=[width])
    turned = b.concat([b.negative(high), low], axis=3)
    return b.add(b.multiply(x, cos), b.multiply(turned, sin))


def rotated(rows: int | str, heads: int, width: int) -> rx.Module:
    def make(b: rx.Builder) -> tuple[Value, ...]:
        x = b.input("x", (2, rows, heads * width))
        cos, sin = (b.input(name, (1, 1, rows, width)) for name in ("cos", "sin"))
        split = b.permute_dims(b.reshape(x, shape=(2, rows, heads, width)), axes=[0, 2, 1, 3])
        return (rope(b, split, cos, sin, width),)

    return module(make)


@pytest.mark.parametrize(("rows", "heads", "width"), [(5, 3, 32), (1, 1, 64), (7, 2, 34), (4, 2, 8)])
def test_rotary_embeddings(rows: int, heads: int, width: int) -> None:
    shapes = (2, rows, heads * width), (1, 1, rows, width), (1, 1, rows, width)
    check(rotated(rows, heads, width), *shapes)
    check(rotated("n", heads, width), *shapes)


def test_each_half_of_a_rotary_embedding_is_a_kernel() -> None:
    assert kernels(rotated(5, 3, 32)) == 2
    assert kernels(rotated(5, 3, 8)) == 3  # halves shorter than vectors are put together first


def parts(axis: int, *sizes: int, others: int = 24) -> rx.Module:
    """``exp`` and a product of a concatenation, each element read from another tensor too."""

    def make(b: rx.Builder) -> tuple[Value, ...]:
        shape = [others, others]
        shape[axis] = sum(sizes)
        values = []
        for i, size in enumerate(sizes):
            given = list(shape)
            given[axis] = size
            values.append(b.tanh(b.input(f"x{i}", tuple(given))))
        whole, row = b.input("y", tuple(shape)), b.input("z", (shape[1],))
        return (b.multiply(b.add(b.concat(values, axis=axis), row), whole),)

    return module(make)


@pytest.mark.parametrize(
    ("axis", "sizes", "count"),
    [(0, (1, 3), 2), (0, (5, 7, 11), 3), (1, (16, 17), 2), (1, (31, 33, 64), 3), (1, (3, 30), 3), (0, (9,) * 5, 5)],
)
def test_elementwise_ops_on_concatenations(axis: int, sizes: tuple[int, ...], count: int) -> None:
    made = parts(axis, *sizes)
    assert kernels(made) == count
    total = [24, 24]
    total[axis] = sum(sizes)
    given = [tuple(size if i == axis else 24 for i in range(2)) for size in sizes]
    check(made, *given, tuple(total), (total[1],))


def test_a_concatenation_that_is_read_twice_stays() -> None:
    def make(b: rx.Builder) -> tuple[Value, ...]:
        x, y = b.input("x", (8, 24)), b.input("y", (8, 40))
        both = b.concat([b.exp(x), b.exp(y)], axis=1)
        return b.tanh(both), b.sum(both, axis=[1])

    made = module(make)
    assert kernels(made) == 4
    check(made, (8, 24), (8, 40))


def test_two_concatenations_of_the_same_parts() -> None:
    def make(b: rx.Builder) -> tuple[Value, ...]:
        given = [b.input(name, (n, 5)) for name, n in zip("xyzw", (3, 4, 3, 4), strict=True)]
        other = b.input("v", (2, 5)), b.input("u", (5, 5))
        first, second = b.concat(given[:2]), b.concat(given[2:])
        return (b.add(b.multiply(first, second), b.concat(list(other))),)

    check(module(make), (3, 5), (4, 5), (3, 5), (4, 5), (2, 5), (5, 5))


def reads(count: int, make_producer: Callable[[rx.Builder, Value], Value], shape: tuple[int, ...]) -> rx.Module:
    """A producer read by ``count`` ops that nothing else has in common."""

    def make(b: rx.Builder) -> tuple[Value, ...]:
        made = make_producer(b, b.input("x", shape))
        return tuple(b.exp(b.multiply(made, b.input(f"y{i}", (1,)))) for i in range(count))

    return module(make)


@pytest.mark.parametrize("count", [2, 5])
def test_what_several_read_is_repeated_where_it_moves_fewer_bytes(count: int) -> None:
    def turned(b: rx.Builder, x: Value) -> Value:
        return b.permute_dims(x, axes=[1, 0, 2])

    def transposed(b: rx.Builder, x: Value) -> Value:
        return b.permute_dims(x, axes=[0, 2, 1])

    def scaled(b: rx.Builder, x: Value) -> Value:
        return b.multiply(x, x)

    def heavy(b: rx.Builder, x: Value) -> Value:
        return b.tanh(x)

    shape = (3, 5, 17)
    for producer, alone in ((turned, 0), (transposed, 1), (scaled, 0), (heavy, 1)):
        made = reads(count, producer, shape)
        assert kernels(made) == count + alone, producer.__name__
        check(made, shape, *[(1,)] * count)


def test_a_sum_of_two_is_repeated_in_two_readers_only() -> None:
    def of(count: int) -> rx.Module:
        def make(b: rx.Builder) -> tuple[Value, ...]:
            total = b.add(b.input("x", (9, 20)), b.input("y", (9, 20)))
            return tuple(b.exp(b.multiply(total, b.input(f"y{i}", (1,)))) for i in range(count))

        return module(make)

    assert kernels(of(2)) == 2
    assert kernels(of(3)) == 4
    check(of(2), (9, 20), (9, 20), (1,), (1,))


def test_what_can_be_an_epilogue_is_not_repeated() -> None:
    def make(b: rx.Builder) -> tuple[Value, ...]:
        product = b.matmul(b.input("x", (6, 8)), b.input("w", (8, 16)))
        scaled = b.multiply(product, b.input("s", (1,)))
        return b.exp(scaled), b.tanh(scaled)

    assert kernels(module(make)) == 4  # packing, the product with its scale, two readers


def test_of_many_readers_it_does_not_count_how_many() -> None:
    """So layers that share it are lowered in one way, however many of them there are."""

    def turned(b: rx.Builder, x: Value) -> Value:
        return b.permute_dims(x, axes=[1, 0, 2])

    def squared(b: rx.Builder, x: Value) -> Value:
        """Two values are read for one that is written."""
        return b.multiply(x, b.input("y", (3, 5, 17)))

    few = repeat_producers.FEW_READERS
    for count in (few, few + 1, 20):
        assert kernels(reads(count, turned, (3, 5, 17))) == count
    assert kernels(reads(few, squared, (3, 5, 17))) == few
    assert kernels(reads(few + 1, squared, (3, 5, 17))) == few + 2
    assert kernels(reads(20, squared, (3, 5, 17))) == 21
