"""What no template takes becomes plain loops; what has no loops is refused, with the place in the file."""

import numpy as np
import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.target import Target
from support.kernel_harness import Compiled, lower_to_vectors


def refused(text, message, line):
    with ir.Context():
        module = ir.Operation.parse(f"module {{ {text} }}", source_name="kernel.mlir")
        with pytest.raises(RelaxError) as error:
            lower_to_vectors(module, Target.host())
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
    text = GENERIC.format(type="memref<4xi1>", element="i1", body="%t = arith.constant true\n    %z = arith.xori %x, %t : i1")
    given, made = np.array([True, False, True, True]), np.empty(4, bool)
    Compiled(text)(given, made)
    np.testing.assert_array_equal(made, ~given)


def test_an_operation_without_a_vector_form():
    body = """%c = arith.constant 0 : index
    %n = memref.dim %a, %c : memref<?xf32>
    %m = arith.index_cast %n : index to i32
    %f = arith.sitofp %m : i32 to f32
    %z = arith.addf %x, %f : f32"""
    given, made = np.arange(5, dtype="f4"), np.empty(5, "f4")
    Compiled(GENERIC.format(type="memref<?xf32>", element="f32", body=body))(given, made)
    np.testing.assert_array_equal(made, given + 5)


def test_control_flow_in_a_body():
    body = """%c = arith.constant 2.0 : f32
    %p = arith.cmpf olt, %x, %c : f32
    %z = scf.if %p -> f32 {
      scf.yield %x : f32
    } else {
      %s = arith.mulf %x, %x : f32
      scf.yield %s : f32
    }"""
    given, made = np.arange(5, dtype="f4"), np.empty(5, "f4")
    Compiled(GENERIC.format(type="memref<5xf32>", element="f32", body=body))(given, made)
    np.testing.assert_array_equal(made, [0, 1, 4, 9, 16])


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
            lower_to_vectors(module, Target.host())
