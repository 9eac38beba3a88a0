"""Symbolic dimensions as code compute what the expression says."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

import relaxir as rx
from relaxir.dialect import symbolic
from relaxir.dialect.bindings import ir, passmanager
from relaxir.dialect.context import new_context
from relaxir.dialect.symbolic_arith import emit_index
from relaxir.lowering.cpu.codegen import object_code
from relaxir.lowering.llvm_text import llvm_ir
from relaxir.lowering.symbolic_llvm import llvm_text
from relaxir.lowering.target import Target

EXPRESSIONS = [
    "n",
    "7",
    "n * 2 + m",
    "n - m",
    "-m + n * 3",
    "(n + 31) // 32",
    "n % 4 + n // 4",
    "(n - m) % 4 + (n - 40) // 3",
    "n * m * 5 - 3",
    "-(n * m) + 100",
]
VALUES = [(1, 1), (5, 3), (64, 7), (33, 32)]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_emitted_ops_fold_to_the_value(text: str) -> None:
    dim = symbolic.parse(text)
    assert dim is not None
    for n, m in VALUES:
        with new_context(), ir.Location.unknown():
            module = ir.Module.parse(f"""
              func.func @f() -> index {{
                %n = arith.constant {n} : index
                %m = arith.constant {m} : index
                return %n : index
              }}""")
            block = module.body.operations[0].regions[0].blocks[0]
            first, second, returned = [o.operation for o in block.operations]
            with ir.InsertionPoint(returned):
                returned.operands[0] = emit_index(dim, {"n": first.results[0], "m": second.results[0]})
            passmanager.PassManager.parse("builtin.module(canonicalize)").run(module.operation)
            (constant, _) = list(block.operations)
            assert ir.IntegerAttr(constant.attributes["value"]).value == symbolic.evaluate(dim, {"n": n, "m": m})


def test_a_number_that_no_index_holds_is_refused() -> None:
    dim = symbolic.parse("n - 9223372036854775807")
    assert isinstance(dim, symbolic.Expr)
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            index = ir.IndexType.get()
            n = ir.Operation.create("arith.constant", [index], attributes={"value": ir.IntegerAttr.get(index, 1)})
            message = "expected sizes whose computation fits 64 bits, got 9223372036854775812 in it"
            with pytest.raises(rx.RelaxError, match=message):
                emit_index(dim - 5, {"n": n.result})


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_llvm_text_assembles(text: str) -> None:
    dim = symbolic.parse(text)
    assert dim is not None
    lines: list[str] = []
    result = llvm_text(dim, {"n": "%n", "m": "%m"}, lines, "v")
    body = "\n".join([*lines, f"  ret i64 {result}"])
    llvm.parse_assembly(f"define i64 @f(i64 %n, i64 %m) {{\n{body}\n}}").verify()


def test_float_literals_of_every_type_are_readable() -> None:
    """The bindings' LLVM prints floats in a syntax that llvmlite's LLVM does not read."""
    values = {
        "f32": ["0x7F800000", "0xFF800000", "0x7FC00000", "0.1", "1.0e-30"],
        "f16": ["0x7C00", "0.1"],
        "bf16": ["0xFF80", "0.1"],
        "f64": ["0x7FF0000000000000", "0.1"],
    }
    functions = []
    for type_, literals in values.items():
        for literal in literals:
            for whole, constant in ((type_, literal), (f"vector<4x{type_}>", f"dense<{literal}>")):
                functions.append(f"""
                  llvm.func @f{len(functions)}(%x: {whole}) -> {whole} {{
                    %c = llvm.mlir.constant({constant} : {whole}) : {whole}
                    %y = llvm.fadd %x, %c : {whole}
                    llvm.return %y : {whole}
                  }}""")
    with new_context(), ir.Location.unknown():
        text = llvm_ir(ir.Module.parse("\n".join(functions)).operation)
    assert len(object_code(text, Target.host()).archive()) > 0
