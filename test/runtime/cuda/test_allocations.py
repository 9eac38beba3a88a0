"""Memory of sizes that data decides is given back, also by a call that fails after it took some."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx

# Sums of as many numbers as the branch has, which then are indices: the check of these follows the allocation of those.
SUMS_AS_INDICES = """
func.func @main(%c: tensor<i1>, %x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<f32> {
  %if = tensor.extract %c[] : tensor<i1>
  %r = scf.if %if -> tensor<?xf32> {
    scf.yield %x : tensor<?xf32>
  } else {
    scf.yield %y : tensor<?xf32>
  }
  %s = "relax.cumsum"(%r) {axis = 0 : i64} : (tensor<?xf32>) -> tensor<?xf32>
  %i = "relax.astype"(%s) {dtype = i64} : (tensor<?xf32>) -> tensor<?xi64>
  %t = "relax.take"(%r, %i) {axis = 0 : i64} : (tensor<?xf32>, tensor<?xi64>) -> tensor<?xf32>
  %sum = "relax.sum"(%t) : (tensor<?xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
"""


def test_calls_that_fail_leave_no_memory_behind() -> None:
    executable = rx.compile(rx.Module.parse(SUMS_AS_INDICES), "cuda:sm_80", device="emulated")
    x, kept = np.ones(20, np.float32), list[int]()
    for _ in range(3):
        with pytest.raises(rx.RelaxError, match="expected indices in"):
            executable(np.array(True), x, x[:4])
        device = executable._library.loaded.device
        device.wait()
        kept.append(len(device.driver.library.machine.memory.buffers))
    assert kept == kept[:1] * 3
    assert executable(np.array(False), x, 0 * x[:4] + 0.25) == 1
