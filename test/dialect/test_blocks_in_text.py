"""Regions with several blocks in MLIR text: refused where the op has one, before MLIR's parser frees what it still uses."""

from __future__ import annotations

import time

import pytest

from relaxir import Module, RelaxError

UNDEFINED = """func.func @first() {
  scf.execute_region {
    %p = arith.addf %u, %u : f32
    scf.yield
  }
  return
}
"""
GENERIC = """linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"],
      relax.contraction}
      ins(%%a : memref<16xf32>) outs(%%c : memref<16xf32>) {
  ^bb0(%%u: f32, %%v: f32):
    linalg.yield %%u : f32
  %s
  }
"""


def generic(more: str = "") -> str:
    return GENERIC % more


def function(body: str, name: str = "second") -> str:
    head = f"func.func @{name}(%a: memref<16xf32>, %c: memref<16xf32>, %f: i1)\n attributes {{a.b,\n  relax.c = 1}}"
    return f"{head} {{\n{body}\n}}\n"


@pytest.mark.parametrize(
    "more", ["^bb1:\n !", "^bb0(%u: f32, %v: f32):\n linalg.yield %u : f32", "^bb1:\n %u = arith.constant 1.0 : f32"]
)
@pytest.mark.parametrize("around", ["%s", "module {\n%s}", "func.func @around() {\n module {\n%s }\n return\n}"])
def test_a_second_block_in_a_region_of_one_block_is_refused(more: str, around: str) -> None:
    text = around % (UNDEFINED + function(generic(more) + " return"))
    for _ in range(5):  # memory that was freed is found by what comes after
        with pytest.raises(RelaxError, match=r"'linalg\.generic' op expected one block in its region, got another one"):
            Module.parse(text)


BRANCHES = f"""  cf.cond_br %f, ^bb1, ^bb2
^bb1:
  {generic()}
  cf.br ^bb3
^bb2:
  {generic()}
  {generic()}
  cf.br ^bb3
^bb3:
  return"""


@pytest.mark.parametrize(
    "text",
    [
        function(BRANCHES),
        f"module {{ {function(BRANCHES)} }}",
        function(BRANCHES, "first") + function(BRANCHES),
        function("  %r = scf.execute_region -> i1 {\n    cf.br ^bb1\n  ^bb1:\n    scf.yield %f : i1\n  }\n  return"),
        '"func.func"() <{function_type = () -> (), sym_name = "g"}> ({\n  "cf.br"() [^bb1] : () -> ()\n'
        '^bb1:\n  "func.return"() : () -> ()\n}) : () -> ()',
        function(f"{generic()}\n" * 50 + "  return"),
    ],
)
def test_functions_may_have_several_blocks(text: str) -> None:
    Module.parse(text)


def test_many_blocks_take_no_longer_than_parsing_them() -> None:
    blocks = "".join(f"^b{i}:\n  cf.br ^b{i + 1}\n" for i in range(20_000))
    many = "".join(f"  %r{i} = scf.execute_region -> i1 {{ cf.br ^x\n  ^x:\n  scf.yield %f : i1\n  }}\n" for i in range(5_000))
    text = function(f"  cf.br ^b0\n{blocks}^b20000:\n  return", "long") + function(many + "  return")
    began = time.process_time()
    Module.parse(text)
    assert time.process_time() - began < 20  # a step for each pair of them would take minutes
