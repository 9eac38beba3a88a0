"""What a layer adds to the code of a model: calls of functions that its first layers have already, and no function."""

from __future__ import annotations

import re

from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.parser import parse_module
from relaxir.lowering.cpu.llvm_worker import HOISTED
from relaxir.lowering.cpu.share_copies import share_copies
from relaxir.tools.llama import LlamaConfig, build_llama
from support.stages import llvm_text, lowered

COPIES = """
func.func @main(%a: memref<4x8xf32>, %b: memref<4x8xf32>, %c: memref<4x8xi8>, %d: memref<4x8xi8>,
                %s: memref<f32>, %t: memref<f32>) {
  memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32>
  memref.copy %c, %d : memref<4x8xi8> to memref<4x8xi8>
  memref.copy %b, %a : memref<4x8xf32> to memref<4x8xf32>
  memref.copy %s, %t : memref<f32> to memref<f32>
  return
}
func.func private @copy_0()
"""


def text_of(layers: int) -> str:
    """The LLVM IR of a model."""
    return llvm_text(lowered(build_llama(LlamaConfig(64, 32, layers, 2, 1, 48))))


def test_a_layer_adds_no_function():
    few, many = (len(re.findall(r"^define ", text_of(layers), re.M)) for layers in (2, 4))
    assert few == many


def test_kernels_are_not_inlined():
    text = text_of(1)
    kinds = set(re.findall(r"^define internal void @kernel_\d+\(.*\) (#\d+) {$", text, re.M))
    assert kinds
    for attributes in kinds:
        assert re.search(rf'^attributes {attributes} = {{ noinline( "{HOISTED}")? }}$', text, re.M)


def test_copies_of_one_type_share_a_kernel():
    module = parse_module(COPIES, "-", new_context())
    with module.context, ir.Location.unknown():
        share_copies(module.operation)
        assert module.operation.verify()
        text = str(module)
    main = text[: text.index("func.func private")]
    assert re.findall(r"call @(\w+)\(", main) == ["copy_1", "copy_2", "copy_1"]
    assert main.count("memref.copy") == 1  # rank 0: cheaper than a call
    assert len(re.findall(r"func.func private @copy_[12]\(.*relax.kernel", text)) == 2
