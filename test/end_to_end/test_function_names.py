"""Functions may have any name: of kernels, of what code calls, of what an image has for itself, in any script."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir.profiling.profiler import profile

_TEXT = """
func.func @"{name}"(%x: tensor<?x4xf32, {{sym = ["n"]}}>, %i: tensor<2xi64>, %v: tensor<2x4xf32>) -> tensor<2x4xf32> {{
  %0 = "relax.exp"(%x) : (tensor<?x4xf32, {{sym = ["n"]}}>) -> tensor<?x4xf32, {{sym = ["n"]}}>
  %1 = "relax.softmax"(%0) : (tensor<?x4xf32, {{sym = ["n"]}}>) -> tensor<?x4xf32, {{sym = ["n"]}}>
  %2 = "relax.index_copy"(%1, %i, %v) : (tensor<?x4xf32, {{sym = ["n"]}}>, tensor<2xi64>, tensor<2x4xf32>)
      -> tensor<?x4xf32, {{sym = ["n"]}}>
  %3 = "relax.take"(%2, %i) : (tensor<?x4xf32, {{sym = ["n"]}}>, tensor<2xi64>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}}
"""
_OF_PASSES = ["kernel", "kernel_0", "kernel_0.entry", "index_copy", "index_copy_0", "softmax_0", "copy_0", "relax_check"]
_OF_CODE = ["relaxir_fault", "relaxir_cuda_launch", "relaxir_collective", "malloc", "memcpy", "expf", "extern_0", "main_body"]
_OF_IMAGES = ["manifest_sha256", "cuda_ptx", "cuda_cubin_bytes", "time", "clock", "clocks"]
_OF_PEOPLE = ["ß", "入口", "a b", "main.1", 'a\\"b', "if"]


def _given() -> list[Any]:
    return [np.zeros((5, 4), np.float32), np.array([4, 1]), np.arange(8, dtype=np.float32).reshape(2, 4)]


@pytest.mark.parametrize("name", [*_OF_PASSES, *_OF_CODE, *_OF_IMAGES, *_OF_PEOPLE])
@pytest.mark.parametrize("how", [{}, {"checked": True}, {"target": "cuda:sm_80", "device": "emulated"}])
def test_a_function_of_any_name(name: str, how: dict[str, Any]) -> None:
    module = rx.Module.parse(_TEXT.format(name=name) + _TEXT.format(name="main"))
    found, given = rx.compile(module, **how), _given()
    for entry in (name.replace("\\", ""), "main"):
        np.testing.assert_array_equal(found(*given, entry=entry), given[2])
        with pytest.raises(rx.RelaxError, match=r"expected indices in \[-size, size\)"):
            found(given[0], np.array([0, 9]), given[2], entry=entry)


@pytest.mark.parametrize("name", ["kernel_0", "time", "clock", "clocks", "main_body"])
def test_a_profile_of_a_function_of_any_name(name: str) -> None:
    module = rx.Module.parse(_TEXT.format(name=name) + _TEXT.format(name="main"))
    given = dict(zip(("input0", "input1", "input2"), _given(), strict=True))
    found = profile(rx.compile(module), given, entry=name, seconds=0.05)
    assert [k for k in found.kernels if "relax.index_copy" in k.ops]
