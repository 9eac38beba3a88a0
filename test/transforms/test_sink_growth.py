"""Growth sinks behind random chains of movement without changing an element, and what was packed is narrow."""

from __future__ import annotations

import math
import random

import pytest

from relaxir.dialect.context import new_context
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from support.contracts import check_contracts

PIPELINES = [
    "relax-sink-growth",
    "relax-pack-weights{tile=8},relax-sink-growth,relax-canonicalize,cse",
    "relax-sink-growth,relax-pack-weights{tile=8},relax-sink-growth,relax-lift-transform-params",
]


def type_of(shape: list[int], dtype: str) -> str:
    return f"tensor<{''.join(f'{d}x' for d in shape)}{dtype}>"


class Chain:
    """A function on weights in the making: values that grow, and are moved, concatenated and split."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.weights: list[str] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def weight(self, shape: list[int], dtype: str) -> str:
        self.weights.append(type_of(shape, dtype))
        return f"%w{len(self.weights) - 1}"

    def op(self, op: str, operands: list[tuple[str, str]], result: str, attributes: str = "") -> str:
        name = self.name()
        values, types = ", ".join(v for v, _ in operands), ", ".join(t for _, t in operands)
        self.lines.append(f'{name} = "relax.{op}"({values}) {attributes} : ({types}) -> {result}')
        return name

    def parameter(self, shape: list[int], dtype: str) -> tuple[str, str]:
        """A scale or zero point of a scalar, of some axis (given by its rank), or of blocks."""
        blocks = [self.rng.choice([d for d in range(1, n + 1) if n % d == 0]) for n in shape]
        chosen = self.rng.choice([[], [shape[-1]], blocks, blocks])
        return self.weight(chosen, dtype), type_of(chosen, dtype)

    def grown(self, shape: list[int]) -> str:
        kind, result = self.rng.choice(["cast", "dequantize", "dequantize", "broadcast"]), type_of(shape, "f32")
        if kind == "cast":
            dtype = self.rng.choice(["bf16", "f16", "i8"])
            return self.op("astype", [(self.weight(shape, dtype), type_of(shape, dtype))], result, "{dtype = f32}")
        if kind == "dequantize":
            dtype = self.rng.choice(["i8", "i4"])
            x = self.weight(shape, dtype), type_of(shape, dtype)
            return self.op("dequantize", [x, self.parameter(shape, "f32"), self.parameter(shape, "i8")], result)
        small = [self.rng.choice([1, d]) for d in shape][self.rng.randrange(len(shape)) :]
        return self.op("broadcast_to", [(self.weight(small, "f32"), type_of(small, "f32"))], result)

    def moved(self, value: str, shape: list[int]) -> tuple[str, list[int]]:
        kinds = [
            self.permute,
            self.reshape,
            self.reshape,
            self.slice,
            self.split,
            self.concat,
            self.take,
            self.expand,
            self.flip,
        ]
        return self.rng.choice(kinds)(value, shape)

    def one(self, op: str, value: str, shape: list[int], after: list[int], attributes: str) -> tuple[str, list[int]]:
        return self.op(op, [(value, type_of(shape, "f32"))], type_of(after, "f32"), attributes), after

    def permute(self, value: str, shape: list[int]) -> tuple[str, list[int]]:
        axes = self.rng.sample(range(len(shape)), len(shape))
        return self.one("permute_dims", value, shape, [shape[a] for a in axes], f"{{axes = array<i64: {str(axes)[1:-1]}>}}")

    def reshape(self, value: str, shape: list[int]) -> tuple[str, list[int]]:
        rest, after = math.prod(shape), list[int]()
        while rest > 1 and len(after) < 3:
            after.append(self.rng.choice([d for d in range(1, rest + 1) if rest % d == 0]))
            rest //= after[-1]
        return self.one("reshape", value, shape, [*after, rest], "")

    def slice(self, value: str, shape: list[int]) -> tuple[str, list[int]]:
        axis = self.rng.randrange(len(shape))
        begin = self.rng.randrange(shape[axis])
        end = self.rng.randrange(begin + 1, shape[axis] + 1)
        step = self.rng.choice([1, 1, 2])
        after = [-(-(end - begin) // step) if i == axis else d for i, d in enumerate(shape)]
        bounds = f'axes = array<i64: {axis}>, begin = ["{begin}"], end = ["{end}"], strides = array<i64: {step}>'
        return self.one("strided_slice", value, shape, after, f"{{{bounds}}}")

    def split(self, value: str, shape: list[int]) -> tuple[str, list[int]]:
        axis = self.rng.randrange(len(shape))
        if shape[axis] % 2:
            return value, shape
        after = [d // 2 if i == axis else d for i, d in enumerate(shape)]
        name, part = self.name(), type_of(after, "f32")
        attributes = f"{{axis = {axis} : i64, sections = 2 : i64}}"
        self.lines.append(f'{name}:2 = "relax.split"({value}) {attributes} : ({type_of(shape, "f32")}) -> ({part}, {part})')
        return f"{name}#{self.rng.randrange(2)}", after

    def concat(self, value: str, shape: list[int]) -> tuple[str, list[int]]:
        axis = self.rng.randrange(len(shape))
        other = self.rng.choice([value, self.grown(shape)])
        after = [2 * d if i == axis else d for i, d in enumerate(shape)]
        operands = [(value, type_of(shape, "f32")), (other, type_of(shape, "f32"))]
        return self.op("concat", operands, type_of(after, "f32"), f"{{axis = {axis} : i64}}"), after

    def take(self, value: str, shape: list[int]) -> tuple[str, list[int]]:
        axis = self.rng.randrange(len(shape))
        if shape[axis] < 4:  # the random indices are -3 to 3
            return value, shape
        after = [*shape[:axis], 2, 3, *shape[axis + 1 :]]
        operands = [(value, type_of(shape, "f32")), ("%ids", "tensor<2x3xi64>")]
        return self.op("take", operands, type_of(after, "f32"), f"{{axis = {axis} : i64}}"), after

    def expand(self, value: str, shape: list[int]) -> tuple[str, list[int]]:
        axis = self.rng.randrange(len(shape) + 1)
        after = [*shape[:axis], 1, *shape[axis:]]
        value, _ = self.one("expand_dims", value, shape, after, f"{{axis = array<i64: {axis}>}}")
        return self.one("squeeze", value, after, shape, f"{{axis = array<i64: {axis}>}}") if axis % 2 else (value, after)

    def flip(self, value: str, shape: list[int]) -> tuple[str, list[int]]:
        return self.one("flip", value, shape, shape, f"{{axis = {self.rng.randrange(len(shape))} : i64}}")

    def packed(self, value: str, shape: list[int]) -> tuple[str, list[int]]:
        if self.rng.random() < 0.5:
            after = [-(-shape[1] // 8), shape[0], 8]
            return self.one("pack_weight", value, shape, after, '{layout = "tile 8"}')
        x, y = [2, shape[0]], [2, shape[1]]
        ones = self.op("full", [], type_of(x, "f32"), "{value = 1.0 : f64}")
        return self.op("matmul", [(ones, type_of(x, "f32")), (value, type_of(shape, "f32"))], type_of(y, "f32")), y

    def text(self) -> str:
        shape = [self.rng.choice([1, 2, 4, 6, 8, 12]) for _ in range(self.rng.randrange(1, 4))]
        value = self.grown(shape)
        for _ in range(self.rng.randrange(1, 5)):
            value, shape = self.moved(value, shape)
        if len(shape) == 2:
            value, shape = self.packed(value, shape)
        arguments = "".join(f', %w{i}: {t} {{relax.name = "w{i}"}}' for i, t in enumerate(self.weights))
        result, body = type_of(shape, "f32"), "\n  ".join(self.lines)
        return f"""func.func @main(%ids: tensor<2x3xi64> {{relax.name = "ids"}}{arguments}) -> {result}
    attributes {{relax.num_input = 1 : i64}} {{
  {body}
  return {value} : {result}
}}"""


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_random_chains_keep_every_element(start: int) -> None:
    context, compared = new_context(), 0
    for seed in range(start, start + 50):
        text = Chain(seed).text()
        try:
            for pipeline in PIPELINES:
                manager.run(parse_module(text, "-", context), pipeline)  # refuses none
            compared += check_contracts(text, context, PIPELINES)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}\n{text}") from error
    assert compared > 100


@pytest.mark.parametrize("scale", ["", "16x", "4x1x", "2x16x", "1x1x"])
@pytest.mark.parametrize("pipeline", PIPELINES[1:])
def test_the_packed_weight_is_narrow_in_any_order(scale: str, pipeline: str) -> None:
    text = f"""func.func @main(%x: tensor<3x4xf32>, %q: tensor<4x16xi8> {{relax.name = "q"}}, %s: tensor<{scale}f32> {{relax.name = "s"}}) -> tensor<3x16xf32>
    attributes {{relax.num_input = 1 : i64}} {{
  %z = "relax.full"() {{value = 3 : i64}} : () -> tensor<i8>
  %w = "relax.dequantize"(%q, %s, %z) : (tensor<4x16xi8>, tensor<{scale}f32>, tensor<i8>) -> tensor<4x16xf32>
  %y = "relax.matmul"(%x, %w) : (tensor<3x4xf32>, tensor<4x16xf32>) -> tensor<3x16xf32>
  return %y : tensor<3x16xf32>
}}"""  # noqa: E501
    after = str(manager.run(parse_module(text, "-", new_context()), pipeline))
    assert "tensor<2x4x8xi8>" in after
    assert '"relax.pack_weight"' in after
    assert "(tensor<4x16xf32>) -> tensor<2x4x8xf32>" not in after
