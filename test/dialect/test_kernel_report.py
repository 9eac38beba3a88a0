"""The report's section on kernels: what they are made of, what they read and write, why results are in memory."""

from __future__ import annotations

import json

import relaxir as rx
from relaxir.dialect.reports.kernels import Kernel, KernelSection
from relaxir.dialect.reports.report import Report


def section(module: rx.Module, function: str = "main") -> KernelSection:
    found = [s for s in rx.compile(module).report.sections if isinstance(s, KernelSection)]
    return next(s for s in found if s.function == function)


def block() -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", (4, 64))
        product = b.matmul(x, b.weight("w", (64, 64)))
        hidden = b.gelu(b.add(product, b.weight("c", (64,))))
        b.output(b.softmax(b.add(hidden, x)), b.permute_dims(hidden))
    return b.build()


def test_what_is_in_a_kernel_and_what_it_moves() -> None:
    product, rows, moved = section(block()).kernels
    assert (product.kind, product.calls, product.ops) == ("contraction", 1, ("relax.packed_matmul", "relax.add", "relax.gelu"))
    assert (product.bytes_read, product.bytes_written) == (4 * (4 * 64 + 64 * 64 + 64), 4 * 4 * 64)
    assert (rows.kind, rows.ops, rows.kept) == ("rows", ("relax.add", "relax.softmax"), "")
    assert (rows.bytes_read, rows.bytes_written) == (2 * 4 * 4 * 64, 4 * 4 * 64)
    assert (moved.kind, moved.ops, moved.kept) == ("movement", ("relax.permute_dims",), "it is a result")
    assert "test_kernel_report.py" in product.where


def test_calls_of_one_kernel_are_counted() -> None:
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", 32))
        for _ in range(3):
            x = b.softmax(b.matmul(x, b.weight(f"w{_}", (32, 32))))
        b.output(x)
    found = section(b.build())
    assert [(k.kind, k.calls) for k in found.kernels] == [("contraction", 3), ("rows", 3)]
    assert found.kernels[0].bytes_read is None
    counts, plan = found.summary()
    assert counts == "@main: 6 kernel calls (3 contraction, 3 rows), 2 kernels"
    assert plan == f"  3 x {found.kernels[0].plan}"


def test_why_results_are_in_memory() -> None:
    b = rx.Builder()
    with b.function("main"):
        x, y = b.input("x", (8, 24)), b.input("y", (3, 24))
        twice = b.tanh(x)
        table = b.exp(y)
        b.output(b.sin(twice), b.cos(twice), b.take(table, b.input("i", (5,), "i64"), axis=0))
    kept = {k.ops[0]: k.kept for k in section(b.build()).kernels if k.kind == "elementwise"}
    assert kept["relax.tanh"] == "2 ops read it"
    assert kept["relax.exp"] == "an elementwise kernel reads it in another order or more than once"
    assert kept["relax.sin"] == "it is a result"


def test_parts_of_a_concatenation_are_results_like_all_of_it() -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.concat([b.exp(b.input("x", (3, 8))), b.tanh(b.input("y", (5, 8)))]))
    first, second = section(b.build()).kernels
    assert (first.ops, first.bytes_read, first.bytes_written) == (("relax.exp",), 96, 96)
    assert (second.ops, second.bytes_read, second.bytes_written) == (("relax.tanh",), 160, 160)
    assert first.kept == second.kept == "it is a result"


def test_the_preparation_of_weights_is_not_listed() -> None:
    report = rx.compile(block()).report
    assert [s.function for s in report.sections if isinstance(s, KernelSection)] == ["main"]


def test_a_section_comes_back_from_json() -> None:
    written = section(block())
    report = Report([written, KernelSection("other", (Kernel("k", "loop", 2, (), "", None, 8, ""),))])
    read = Report.of_json(json.loads(json.dumps(report.as_json())))
    assert read.sections == report.sections
    assert str(read) == str(report)
    assert "packed_matmul add gelu" in str(read)
    assert "? -> 8 B" in str(read)
