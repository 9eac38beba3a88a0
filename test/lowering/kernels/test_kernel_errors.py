"""What kernels refuse, each with its message and the place in the file."""

import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cpu.kernels import lower_kernels
from relaxir.lowering.target import Target


def refused(text, message, line):
    with ir.Context():
        module = ir.Operation.parse(f"module {{ {text} }}", source_name="kernel.mlir")
        with pytest.raises(RelaxError) as error:
            lower_kernels(module, Target.host())
    assert message in str(error.value)
    assert f"kernel.mlir:{line}:" in str(error.value)


GENERIC = """func.func @f(%a: {type}, %b: {type}) {{
  linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
    ins(%a : {type}) outs(%b : {type}) {{
  ^bb0(%x: {element}, %y: {element}):
    {body}
    linalg.yield %z : {element}
  }}
  return
}}"""


def test_booleans_in_memory():
    text = GENERIC.format(type="memref<4xi1>", element="i1", body="%z = arith.andi %x, %x : i1")
    refused(text, "expected booleans in memory as i8, got a memref of i1", 2)


def test_an_operation_without_a_vector_form():
    body = "%c = arith.constant 0 : index\n    %d = memref.dim %a, %c : memref<4xf32>\n    %z = arith.addf %x, %x : f32"
    text = GENERIC.format(type="memref<4xf32>", element="f32", body=body)
    refused(text, "'memref.dim' op cannot be vectorized inside linalg.generic", 6)


def test_tensors():
    text = """func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
      %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%a : tensor<4xf32>) outs(%b : tensor<4xf32>) {
      ^bb0(%x: f32, %y: f32):
        linalg.yield %x : f32
      } -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    refused(text, "expected linalg.generic on buffers, got tensors", 2)


def test_a_named_operation_without_a_template():
    text = """func.func @f(%a: memref<4x5xf32>, %b: memref<4x5xf32>) {
      linalg.softmax dimension(1) ins(%a : memref<4x5xf32>) outs(%b : memref<4x5xf32>)
      return
    }"""
    refused(text, "'linalg.softmax' op has no kernel template", 2)


def test_a_layout_that_is_not_strided():
    text = """func.func @f(%a: memref<8xf32, affine_map<(i) -> (i floordiv 2)>>, %b: memref<8xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%a : memref<8xf32, affine_map<(i) -> (i floordiv 2)>>) outs(%b : memref<8xf32>) {
      ^bb0(%x: f32, %y: f32):
        linalg.yield %x : f32
      }
      return
    }"""
    refused(text, "expected a strided memref", 2)


def test_a_loop_that_indexes_nothing_directly():
    text = """func.func @f(%a: memref<8xf32>, %b: memref<4xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i, j) -> (i * 2 + j)>, affine_map<(i, j) -> (i)>],
                      iterator_types = ["parallel", "reduction"]} ins(%a : memref<8xf32>) outs(%b : memref<4xf32>) {
      ^bb0(%x: f32, %y: f32):
        %z = arith.addf %x, %y : f32
        linalg.yield %z : f32
      }
      return
    }"""
    with ir.Context():
        try:
            module = ir.Operation.parse(f"module {{ {text} }}", source_name="kernel.mlir")
        except ir.MLIRError:
            return  # MLIR's own verifier may refuse it first
        with pytest.raises(RelaxError, match="expected loop d1 to index some operand directly"):
            lower_kernels(module, Target.host())
