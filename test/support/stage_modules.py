"""Small modules that together need every step to LLVM: state, weights to prepare, integers, loops, sizes of callers."""

from __future__ import annotations

from end_to_end.test_quantized import model
from end_to_end.test_state import STEP

import relaxir as rx

__all__ = ["MODULES"]

LOOP = """
func.func @main(%x: tensor<?xf32, {sym = ["n"]}>, %k: tensor<i64>) -> tensor<?xf32> {
  %r, %j = scf.while (%a = %x, %i = %k) : (tensor<?xf32, {sym = ["n"]}>, tensor<i64>)
      -> (tensor<?xf32, {sym = ["n"]}>, tensor<i64>) {
    %n = "relax.full"() {value = 9 : i64} : () -> tensor<i64>
    %more = "relax.less"(%i, %n) : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %c = tensor.extract %more[] : tensor<i1>
    scf.condition(%c) %a, %i : tensor<?xf32, {sym = ["n"]}>, tensor<i64>
  } do {
  ^bb0(%a: tensor<?xf32, {sym = ["n"]}>, %i: tensor<i64>):
    %one = "relax.full"() {value = 1 : i64} : () -> tensor<i64>
    %b = "relax.add"(%i, %one) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %e = "relax.exp"(%a) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}>
    scf.yield %e, %b : tensor<?xf32, {sym = ["n"]}>, tensor<i64>
  }
  %t = "relax.tanh"(%r) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}>
  %u = tensor.cast %t : tensor<?xf32, {sym = ["n"]}> to tensor<?xf32>
  return %u : tensor<?xf32>
}
"""


def dynamic() -> rx.Module:
    """A convolution, attention and a softmax, of sizes that callers choose."""
    b = rx.Builder()
    with b.function("main"):
        image, x = b.input("i", (1, "h", 7, 4), "f32"), b.input("x", (2, 4, "n", 16), "bf16")
        weight = b.weight("w", (3, 3, 4, 8), "f32")
        attended = b.attention(x, x, x, causal=True)
        convolved = b.conv2d(image, weight, padding=(1, 1, 1, 1), data_layout="NHWC", kernel_layout="HWIO")
        b.output(b.softmax(b.relu(convolved)), b.isnan(attended))
    return b.build()


MODULES = {
    "state": lambda: rx.Module.parse(STEP.format(name="prefill", first=1) + STEP.format(name="decode", first=1)),
    "quantized": lambda: rx.Module.parse(model("None", 96, "n")),
    "loop": lambda: rx.Module.parse(LOOP),
    "dynamic": dynamic,
}
