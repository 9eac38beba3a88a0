"""Code uses what its artifact says it needs: of a processor LLVM knows more than is listed, which another one may lack."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from relaxir.lowering.cpu.codegen import assembly
from relaxir.lowering.target import Target

# By LLVM's name of the processor these were `insertq`, SVE's `mul` and `eor3`.
INSERT = """define <16 x i8> @f(<16 x i8> %a, <16 x i8> %b) {
  %t = shufflevector <16 x i8> %a, <16 x i8> %b, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 16, i32 6, i32 7,
    i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  ret <16 x i8> %t
}
"""
MULTIPLY = """define <2 x i64> @f(<2 x i64> %a, <2 x i64> %b) #0 {
  %r = mul <2 x i64> %a, %b
  ret <2 x i64> %r
}
attributes #0 = { nounwind }
"""
XOR = """define <4 x i32> @f(<4 x i32> %a, <4 x i32> %b, <4 x i32> %c) local_unnamed_addr {
  %s = xor <4 x i32> %a, %b
  %r = xor <4 x i32> %s, %c
  ret <4 x i32> %r
}
"""


@pytest.mark.parametrize(
    ("name", "text", "instruction"),
    [
        *((n, INSERT, "insertq") for n in ("znver3", "znver4", "znver5")),
        ("neoverse-v1", MULTIPLY, r"mul\s+z"),
        *((n, XOR, "eor3") for n in ("neoverse-v1", "apple-m1")),
    ],
)
def test_none_that_is_not_listed(name: str, text: str, instruction: str) -> None:
    code = assembly(text, Target.parse(f"cpu:{name}"))
    assert not re.search(instruction, code)


def test_it_is_tuned_for_its_processor() -> None:
    """Haswell takes two instructions for an address of three terms, Zen one."""
    address = """define ptr @f(ptr %a, i64 %b) {
  %p = getelementptr i8, ptr %a, i64 %b
  %q = getelementptr i8, ptr %p, i64 9
  ret ptr %q
}
"""
    target = Target.parse("cpu:x86-64-v3")
    added = {cpu: "addq" in assembly(address, replace(target, cpu=cpu)) for cpu in ("haswell", "znver3")}
    assert added == {"haswell": True, "znver3": False}
