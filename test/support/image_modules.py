"""Random modules on images: convolutions, norms, pools and what is between them in convolutional models."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["image_module"]

Shape = tuple[int | str, ...]


@dataclass
class _Writer:
    """The body of the function in the making; images are ``[n, c, h, w]``."""

    rng: random.Random
    dtype: str
    lines: list[str] = field(default_factory=list)
    weights: list[tuple[str, Shape]] = field(default_factory=list)
    count: int = 0

    def type(self, shape: Shape) -> str:
        symbols = ', {sym = ["n"]}' if "n" in shape else ""
        return f"tensor<{''.join('?x' if d == 'n' else f'{d}x' for d in shape)}{self.dtype}{symbols}>"

    def weight(self, *shape: int | str) -> tuple[str, Shape]:
        self.weights.append((f"%w{len(self.weights)}", shape))
        return self.weights[-1]

    def emit(self, op: str, operands: list[tuple[str, Shape]], result: Shape, attributes: str = "") -> tuple[str, Shape]:
        self.count += 1
        types = ", ".join(self.type(s) for _, s in operands)
        names = ", ".join(n for n, _ in operands)
        self.lines.append(f'%v{self.count} = "relax.{op}"({names}) {{{attributes}}} : ({types}) -> {self.type(result)}')
        return f"%v{self.count}", result

    def conv(self, x: tuple[str, Shape]) -> tuple[str, Shape]:
        n, c, h, w = x[1]
        groups = self.rng.choice([1, 1, 2, c])
        groups = groups if c % groups == 0 else 1
        out, k, p = groups * self.rng.randrange(1, 4), self.rng.choice([1, 3]), self.rng.choice([0, 1])
        if min(h, w) + 2 * p < k:
            return x
        s = self.rng.choice([1, 2])
        weight = self.weight(out, c // groups, k, k)
        attributes = f"groups = {groups} : i64, padding = array<i64: {p}, {p}, {p}, {p}>, strides = array<i64: {s}, {s}>"
        return self.emit("conv2d", [x, weight], (n, out, *((d + 2 * p - k) // s + 1 for d in (h, w))), attributes)

    def norm(self, x: tuple[str, Shape]) -> tuple[str, Shape]:
        parameters = [self.weight(x[1][1]) for _ in range(4)]
        return self.emit("batch_norm", [x, *parameters], x[1], "axis = 1 : i64")

    def unary(self, x: tuple[str, Shape]) -> tuple[str, Shape]:
        return self.emit(self.rng.choice(["relu", "sigmoid", "tanh", "negative"]), [x], x[1])

    def add_weight(self, x: tuple[str, Shape]) -> tuple[str, Shape]:
        _, c, h, w = x[1]
        shape = self.rng.choice([(c, 1, 1), (c, 1, 1), (1, c, 1, 1), (w,), (h, 1), (1,), (), (c, h, w), (h, w)])
        operands = [x, self.weight(*shape)]
        self.rng.shuffle(operands)
        return self.emit(self.rng.choice(["add", "add", "multiply", "maximum"]), operands, x[1])

    def pool(self, x: tuple[str, Shape]) -> tuple[str, Shape]:
        n, c, h, w = x[1]
        if min(h, w) < 2:
            return x
        if self.rng.random() < 0.3:
            return self.emit("adaptive_avg_pool2d", [x], (n, c, 2, 1), "output_size = array<i64: 2, 1>")
        attributes = "pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>"
        return self.emit(self.rng.choice(["max_pool2d", "avg_pool2d"]), [x], (n, c, h // 2, w // 2), attributes)

    def flat(self, x: tuple[str, Shape]) -> tuple[str, Shape]:
        """Elementwise ops on an image whose lines are one after another; put together in one of three ways, or left so."""
        n, c, h, w = x[1]
        flat = self.emit("reshape", [x], (n, c, h * w))
        if h == 1 and self.rng.random() < 0.5:
            flat = self.emit("squeeze", [x], (n, c, w), "axis = array<i64: 2>")
        operands = [self.unary(flat), self.weight(*self.rng.choice([(c, 1), (h * w,), (1, c, 1)]))]
        biased = self.emit("add", operands, flat[1])
        if h == 1:
            return self.emit("expand_dims", [biased], x[1], "axis = array<i64: 2>")
        if self.rng.random() < 0.5:
            return self.emit("reshape", [biased], x[1])
        return self.emit("multiply", [x, self.emit("reshape", [biased], x[1])], x[1])

    def along(self, x: tuple[str, Shape]) -> tuple[str, Shape]:
        axis = self.rng.randrange(4)
        kind = self.rng.choice(["softmax", "flip", "mean", "pad", "slice", "concat", "permute"])
        shape = list(x[1])
        if kind in ("softmax", "flip"):
            return self.emit(kind, [x], x[1], f"axis = {axis - 4 * self.rng.randrange(2)} : i64")
        if kind == "mean":
            shape[axis or 1] = 1
            return self.emit("mean", [x], tuple(shape), f"axis = array<i64: {axis or 1}>, keepdims = true")
        if kind == "permute":
            moved = self.emit("permute_dims", [x], tuple(shape[i] for i in (0, 2, 3, 1)), "axes = array<i64: 0, 2, 3, 1>")
            return self.emit("permute_dims", [self.emit("exp", [moved], moved[1])], x[1], "axes = array<i64: 0, 3, 1, 2>")
        axis = axis or 1
        if kind == "pad":
            shape[axis] += 1
            before = ", ".join(str(int(i == axis)) for i in range(4))
            return self.emit("pad", [x], tuple(shape), f"before = array<i64: {before}>, after = array<i64: 0, 0, 0, 0>")
        if kind == "concat":
            shape[axis] *= 2
            return self.emit("concat", [x, self.unary(x)], tuple(shape), f"axis = {axis} : i64")
        shape[axis] -= shape[axis] > 1
        end = f"begin = [0], end = [{shape[axis]}]"
        return self.emit("strided_slice", [x], tuple(shape), f"axes = array<i64: {axis}>, {end}")

    def residual(self, x: tuple[str, Shape], images: list[tuple[str, Shape]]) -> tuple[str, Shape]:
        return self.emit("add", [x, self.rng.choice([i for i in images if i[1] == x[1]])], x[1])


def image_module(seed: int, dtype: str = "f64") -> str:
    """The text of a module with one function; equal seeds give equal modules."""
    rng = random.Random(seed)
    writer = _Writer(rng, dtype)
    images: list[tuple[str, Shape]] = [("%x", ("n", rng.choice([1, 2, 4]), 6, 5))]
    kinds = (
        [writer.conv] * 3
        + [writer.norm] * 3
        + [writer.unary, writer.add_weight, writer.add_weight, writer.pool, writer.flat]
        + [writer.along] * 3
    )
    for _ in range(rng.randrange(3, 14)):
        x = images[-1] if rng.random() < 0.8 else rng.choice(images)
        images.append(writer.residual(x, images) if rng.random() < 0.15 else rng.choice(kinds)(x))
    results = [images[-1]] + ([rng.choice(images)] if rng.random() < 0.4 else [])
    if rng.random() < 0.4:
        name, shape = images[-1]
        results.append(writer.emit("max", [(name, shape)], shape[:2], "axis = array<i64: 2, 3>"))
    arguments = [f"%x: {writer.type(images[0][1])}"]
    arguments += [f'{name}: {writer.type(shape)} {{relax.name = "{name[1:]}"}}' for name, shape in writer.weights]
    types = ", ".join(writer.type(s) for _, s in results)
    head = f"func.func @main({', '.join(arguments)}) -> ({types}) attributes {{relax.num_input = 1 : i64}} {{"
    return "\n".join([head, *writer.lines, f"return {', '.join(n for n, _ in results)} : {types}", "}"])
