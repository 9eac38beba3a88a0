"""Images that are padded alike take turns in one buffer."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.context import new_context
from relaxir.dialect.parser import parse_module
from relaxir.lowering.cpu.share_frames import share_frames
from support.stages import executable_of, llvm_text, lowered

FRAMES = """
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %z: tensor<2x2xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x5xf32>
  %frame = linalg.fill ins(%zero : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  %a = tensor.insert_slice %x into %frame[1, 1] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x5xf32>
  %b = tensor.insert_slice %y into %frame[1, 1] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x5xf32>
  %c = tensor.insert_slice %y into %frame[0, 1] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x5xf32>
  %d = tensor.insert_slice %z into %frame[1, 1] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<4x5xf32>
  %f = tensor.insert_slice %x into %frame[1, 1] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x5xf32>
  return %d, %f : tensor<4x5xf32>, tensor<4x5xf32>
}
"""


def test_only_what_covers_the_same_elements_follows():
    module = parse_module(FRAMES, context=new_context())
    share_frames(module.operation)
    lines = [line.split() for line in str(module).splitlines() if "insert_slice" in line]
    names, into = [line[0] for line in lines], [line[5].partition("[")[0] for line in lines]
    frame = into[0]
    assert into == [frame, names[0], frame, frame, names[1]]


def _model(size):
    """Four convolutions that pad alike; the first two read the same image, one of them after the third's is made."""
    builder = rx.Builder()
    weights = {f"w{i}": np.random.default_rng(i).standard_normal((3, 3, 4, 4)).astype(np.float32) for i in range(4)}
    with builder.function("main"):
        x = builder.input("x", (1, size, 7, 4), "f32")
        w = [builder.weight(name, (3, 3, 4, 4), "f32") for name in weights]

        def conv(value, weight):
            return builder.conv2d(value, weight, padding=(1, 1, 1, 1), data_layout="NHWC", kernel_layout="HWIO")

        y = conv(x, w[0])
        z = conv(builder.relu(y), w[1])
        builder.output(a=builder.add(conv(z, w[2]), conv(x, w[3])))
    return builder.build(), weights


@pytest.mark.parametrize("size", [6, "h"])
def test_convolutions(size):
    module, weights = _model(size)
    x = np.random.default_rng(9).standard_normal((1, 6, 7, 4)).astype(np.float32)
    (want,) = rx.evaluate(module, "main", x, weights=weights)
    counts = []
    for left_out in (["relax-share-frames"], []):
        made = lowered(module, change=lambda steps, left_out=left_out: [s for s in steps if s not in left_out])
        executable = executable_of(made)
        executable.bind(executable.prepare(weights))
        for _ in range(2):
            np.testing.assert_allclose(np.asarray(executable(x)), want, rtol=1e-4, atol=1e-3)
        counts.append(llvm_text(made).count("call void @copy_"))
    assert counts[1] < counts[0]
