"""Code that torch-mlir made of an operator: what is proven, what is checked when it is called, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from relaxir import Module, RelaxError, compile
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.frontend.outline_checks import make_safe
from support.guard_pages import guarded_copy, in_child

MAPS = """
#id = affine_map<(i) -> (i)>
#id2 = affine_map<(i, j) -> (i, j)>
#window = affine_map<(i, j) -> (i * 2 + j)>
#first = affine_map<(i, j) -> (i)>
#second = affine_map<(i, j) -> (j)>
"""


def function(body: str, signature: str) -> str:
    return f"{MAPS}func.func private @f{signature} {{\n{body}\n}}"


def elementwise(body: str, size: str = "4") -> str:
    """A loop over ``%x``, whose body yields ``%r``."""
    tensor = f"tensor<{size}xf32>"
    return function(
        f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}}
      ins(%n : tensor<4xindex>) outs(%e : tensor<4xf32>) {{
  ^bb0(%a: index, %b: f32):
    %i = linalg.index 0 : index
    {body}
    linalg.yield %r : f32
  }} -> tensor<4xf32>
  return %0 : tensor<4xf32>""",
        f"(%x: {tensor}, %n: tensor<4xindex>) -> tensor<4xf32>",
    )


def made_safe(text: str) -> str:
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        make_safe(module, "aten.example")
        module.operation.verify()
        return str(module)


@pytest.mark.parametrize(
    "body",
    [
        "%r = tensor.extract %x[%i] : tensor<4xf32>",
        "%p = arith.subi %c3, %i : index  %r = tensor.extract %x[%p] : tensor<4xf32>",
        "%p = affine.apply affine_map<(d) -> (d floordiv 2 + 2)>(%i)  %r = tensor.extract %x[%p] : tensor<4xf32>",
        "%p = arith.addi %i, %c4 : index  %q = arith.minsi %p, %c3 : index  %r = tensor.extract %x[%q] : tensor<4xf32>",
    ],
)
def test_elements_inside_of_a_tensor_are_proven(body):
    assert "cf.assert" not in made_safe(elementwise(body))


@pytest.mark.parametrize(
    "body",
    [
        "%p = arith.addi %i, %c1 : index  %r = tensor.extract %x[%p] : tensor<4xf32>",
        "%p = arith.subi %i, %c1 : index  %r = tensor.extract %x[%p] : tensor<4xf32>",
        "%r = tensor.extract %x[%a] : tensor<4xf32>",
        "%p = arith.remsi %a, %c4 : index  %r = tensor.extract %x[%p] : tensor<4xf32>",
        "%p = arith.muli %i, %i : index  %r = tensor.extract %x[%p] : tensor<4xf32>",
    ],
)
def test_elements_that_may_lie_outside_are_refused(body):
    with pytest.raises(RelaxError, match="reads elements at computed places, which may lie outside of the tensor"):
        made_safe(elementwise(body))


def test_elements_of_a_tensor_of_unknown_size_are_refused():
    with pytest.raises(RelaxError, match="computed places"):
        made_safe(elementwise("%r = tensor.extract %x[%i] : tensor<?xf32>", "?"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%q = arith.divsi %c4, %a : index  %r = arith.constant 0.0 : f32", "divides integers by a number that may be zero"),
        ("%q = arith.remui %c4, %c0 : index  %r = arith.constant 0.0 : f32", "divides integers by a number that may be zero"),
        ('%q = arith.cmpi slt, %a, %c4 : index  cf.assert %q, "x"  %r = arith.constant 0.0 : f32', "checks the contents"),
        ('%r = "tensor.generate"() ({}) : () -> f32', None),
    ],
)
def test_what_the_contents_decide_is_refused(body, message):
    with pytest.raises((RelaxError, ir.MLIRError), match=message):
        made_safe(elementwise(body))


def test_an_operation_that_is_not_known_to_be_safe_is_refused():
    body = "%0 = bufferization.to_buffer %x : tensor<4xf32> to memref<4xf32>\n return"
    with pytest.raises(RelaxError, match=r"a lowering with bufferization\.to_buffer, which is not known to be safe"):
        made_safe(function(body, "(%x: tensor<4xf32>)"))


def test_what_is_certain_to_go_wrong_is_refused():
    body = """
  %c5 = arith.constant 5 : index
  %0 = tensor.extract_slice %x[1] [%c5] [1] : tensor<?xf32> to tensor<?xf32>
  %1 = tensor.cast %0 : tensor<?xf32> to tensor<4xf32>
  return %1 : tensor<4xf32>"""
    with pytest.raises(RelaxError, match="reads or writes outside of a tensor"):
        made_safe(function(body, "(%x: tensor<?xf32>) -> tensor<4xf32>"))


WINDOWS = function(
    """
  %e = tensor.empty(%n) : tensor<?xf32>
  %w = tensor.empty() : tensor<3xf32>
  %z = arith.constant 0.0 : f32
  %s = linalg.fill ins(%z : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#window, #second, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<?xf32>, tensor<3xf32>) outs(%s : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %c : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>""",
    "(%x: tensor<?xf32>, %n: index) -> tensor<?xf32>",
)

#: ``%y`` says how many windows there are.
CALL = """
  func.func @main(%x: tensor<?xf32, {sym = ["n"]}>, %y: tensor<?xf32, {sym = ["m"]}>) -> tensor<?xf32, {sym = ["m"]}> {
    %p = tensor.cast %x : tensor<?xf32, {sym = ["n"]}> to tensor<?xf32>
    %q = tensor.cast %y : tensor<?xf32, {sym = ["m"]}> to tensor<?xf32>
    %c0 = arith.constant 0 : index
    %m = tensor.dim %q, %c0 : tensor<?xf32>
    %0 = func.call @f(%p, %m) : (tensor<?xf32>, index) -> tensor<?xf32>
    %1 = "relax.match_cast"(%0) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["m"]}>
    return %1 : tensor<?xf32, {sym = ["m"]}>
  }
"""


def test_windows_are_checked_when_sizes_are_known():
    text = made_safe(WINDOWS)
    assert 1 <= text.count("cf.assert") <= 3
    head, _, rest = text.partition("module {")
    executable = compile(Module.parse(f"{head}module {{{CALL}{rest}"), cache=False)

    def called(size: int, count: int) -> np.ndarray:
        return executable(guarded_copy(np.ones(size, np.float32)), guarded_copy(np.zeros(count, np.float32)))

    np.testing.assert_array_equal(in_child(lambda: called(7, 3)), [3, 3, 3])
    for size, count in ((7, 4), (6, 3), (2, 1), (8, 10**6)):
        with pytest.raises(RelaxError, match=r"expected sizes that aten\.example takes"):
            in_child(lambda size=size, count=count: called(size, count))


EXPANDED = """
func.func private @f(%x: tensor<?xf32>, %n: index) -> tensor<?x4xf32> {
  %0 = tensor.expand_shape %x [[0, 1]] output_shape [%n, 4] : tensor<?xf32> into tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}"""


def test_a_dimension_that_is_taken_apart_is_checked():
    assert made_safe(EXPANDED).count("cf.assert") == 1
