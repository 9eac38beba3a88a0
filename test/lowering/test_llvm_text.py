"""LLVM IR of the bindings, as llvmlite's LLVM reads it."""

import pytest
from llvmlite import binding as llvm

from relaxir.lowering.llvm_text import older_syntax


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("float f0x3DCCCCCD", "float 0x3FB99999A0000000"),
        ("float 1.000000e-01", "float 0x3FB99999A0000000"),
        ("float +inf", "float 0x7FF0000000000000"),
        ("float -inf", "float 0xFFF0000000000000"),
        ("double f0x3FB999999999999A", "double 0x3FB999999999999A"),
        ("double +qnan", "double 0x7FF8000000000000"),
        ("half 1.000980e+00", "half 0xH3C01"),
        ("half +inf", "half 0xH7C00"),
        ("bfloat 1.000000e+00", "bfloat 0xR3F80"),
        ("bfloat f0x7FC0", "bfloat 0xR7FC0"),
        ("float +nan(0x1)", "float 0x7FF8000020000000"),
        ("float -snan(0x1)", "float 0xFFF0000020000000"),
        ("half +nan(0x1)", "half 0xH7E01"),
        ("bfloat -nan(0x1)", "bfloat 0xRFFC1"),
        ("double +snan(0x5)", "double 0x7FF0000000000005"),
    ],
)
def test_literals_of_floats(newer: str, older: str):
    kind = newer.split()[0]
    text = f"define {kind} @f(i1 %c) {{\n  %r = select i1 %c, {newer}, {newer}\n  ret {kind} %r\n}}\n"
    rewritten = older_syntax(text)
    assert rewritten.count(older) == 2
    llvm.parse_assembly(rewritten).verify()


def test_literals_whose_type_is_the_instructions():
    text = "define float @f(float %x) {\n  %r = fmul float %x, f0x3DCCCCCD\n  ret float %r\n}\n"
    rewritten = older_syntax(text)
    assert "fmul float %x, 0x3FB99999A0000000" in rewritten
    llvm.parse_assembly(rewritten).verify()
