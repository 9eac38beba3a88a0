"""ONNX's recurrent layers: rounds over the sequence, each a product with what was carried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.symbolic import Expr
from ...emit import cast, emit, full, info_of, integer, permute, slice_axis, squeeze, unsqueeze
from ..node import Node, handles
from ..rounds import repeat
from ..values import GraphValue, tensor_value

_Activation = Callable[[ir.Value], ir.Value]

#: Activations with one number, and those with two.
_WITH_BETA = ("affine", "hardsigmoid", "scaledtanh")
_WITH_ALPHA = (*_WITH_BETA, "elu", "leakyrelu", "thresholdedrelu")


def _activation(name: str, alpha: float | None, beta: float | None) -> _Activation:
    """Source: https://onnx.ai/onnx/operators/onnx__LSTM.html."""

    def number(x: ir.Value, value: float) -> ir.Value:
        return full(value, info_of(x).dtype)

    def hard_sigmoid(x: ir.Value) -> ir.Value:
        scaled = emit(ops.Multiply, x, number(x, 0.2 if alpha is None else alpha))
        return emit(ops.Clip, emit(ops.Add, scaled, number(x, 0.5 if beta is None else beta)), min=0.0, max=1.0)

    def affine(x: ir.Value) -> ir.Value:
        scaled = emit(ops.Multiply, x, number(x, 1.0 if alpha is None else alpha))
        return emit(ops.Add, scaled, number(x, 0.0 if beta is None else beta))

    def scaled_tanh(x: ir.Value) -> ir.Value:
        inner = emit(ops.Multiply, x, number(x, 1.0 if beta is None else beta))
        return emit(ops.Multiply, emit(ops.Tanh, inner), number(x, 1.0 if alpha is None else alpha))

    def elu(x: ir.Value) -> ir.Value:
        below = emit(ops.Multiply, emit(ops.Expm1, x), number(x, 1.0 if alpha is None else alpha))
        return emit(ops.Where, emit(ops.Less, x, number(x, 0.0)), below, x)

    def thresholded(x: ir.Value) -> ir.Value:
        return emit(ops.Where, emit(ops.Greater, x, number(x, 1.0 if alpha is None else alpha)), x, number(x, 0.0))

    found: dict[str, _Activation] = {
        "relu": lambda x: emit(ops.Relu, x),
        "tanh": lambda x: emit(ops.Tanh, x),
        "sigmoid": lambda x: emit(ops.Sigmoid, x),
        "hardsigmoid": hard_sigmoid,
        "affine": affine,
        "leakyrelu": lambda x: emit(ops.LeakyRelu, x, alpha=0.01 if alpha is None else alpha),
        "elu": elu,
        "thresholdedrelu": thresholded,
        "scaledtanh": scaled_tanh,
        "softplus": lambda x: emit(ops.Softplus, x),
        "softsign": lambda x: emit(ops.Divide, x, emit(ops.Add, emit(ops.Abs, x), number(x, 1.0))),
    }
    if name.lower() not in found:
        raise RelaxError(f"expected a known activation, got '{name}'")
    return found[name.lower()]


class _Layer:
    """What the three kinds of layers share: operands by direction, activations, clipping."""

    def __init__(self, node: Node, gates: int, defaults: list[str]):
        self.node, self.gates = node, gates
        self.hidden: int = node.attribute("hidden_size") or node.known_size(2, -1)
        self.direction = node.attribute("direction", "forward")
        self.directions = 2 if self.direction == "bidirectional" else 1
        names = node.attribute("activations") or defaults * self.directions
        alphas, betas = (iter(node.attribute(k, [])) for k in ("activation_alpha", "activation_beta"))
        self.activations: list[_Activation] = []
        for name in names:  # numbers are for those that take some, in their order
            alpha = next(alphas, None) if name.lower() in _WITH_ALPHA else None
            beta = next(betas, None) if name.lower() in _WITH_BETA else None
            self.activations.append(_activation(name, alpha, beta))
        self.each = len(defaults)
        self.batch_first = bool(node.attribute("layout", 0))
        x = node.tensor(0)
        self.x = permute(x, [1, 0, 2]) if self.batch_first else x
        length, batch = info_of(self.x).shape[:2]
        if length is None or batch is None:
            raise RelaxError("expected sequences whose length and number are known or symbolic")
        self.length: int | Expr = length
        self.batch: int | Expr = batch

    def functions(self, direction: int) -> list[_Activation]:
        return self.activations[direction * self.each : (direction + 1) * self.each]

    def part(self, index: int, direction: int) -> ir.Value | None:
        """An operand of one direction."""
        if not self.node.has(index):
            return None
        return squeeze(slice_axis(self.node.tensor(index), 0, direction, direction + 1), 0)

    def start(self, index: int, direction: int) -> ir.Value:
        """What is carried into the first round."""
        dtype = self.node.dtype()
        if not self.node.has(index):
            return full(0, dtype, (self.batch, self.hidden))
        given = self.node.tensor(index)
        given = permute(given, [1, 0, 2]) if self.batch_first else given
        return squeeze(slice_axis(given, 0, direction, direction + 1), 0)

    def clipped(self, x: ir.Value) -> ir.Value:
        limit = self.node.attribute("clip")
        return x if limit is None else emit(ops.Clip, x, min=-float(limit), max=float(limit))

    def split(self, x: ir.Value, count: int | None = None) -> list[ir.Value]:
        """The gates of a tensor, side by side in its last dimension."""
        last = info_of(x).rank - 1
        return [slice_axis(x, last, i * self.hidden, (i + 1) * self.hidden) for i in range(count or self.gates)]

    def inputs(self, direction: int, bias: ir.Value | None) -> ir.Value:
        """``x @ w.T + bias`` of all rounds at once, from the last round for the other direction."""
        weight = self.part(1, direction)
        assert weight is not None
        result = emit(ops.MatMul, self.reversed(self.x, direction), permute(weight, [1, 0]))
        return result if bias is None else emit(ops.Add, result, bias)

    def reversed(self, x: ir.Value, direction: int) -> ir.Value:
        """From the end, within each sequence's own length."""
        if self.direction == "forward" or (self.direction == "bidirectional" and direction == 0):
            return x
        return emit(ops.Flip, x, axis=0)

    def run(self, direction: int, carried: list[ir.Value], step: Callable[[ir.Value, list[ir.Value]], list[ir.Value]]) -> Any:
        """Outputs of all rounds, and what is carried in the end."""
        inputs = self.current
        lengths = cast(self.node.tensor(4), integer()) if self.node.has(4) else None

        def body(number: GraphValue, values: list[Any]) -> tuple[list[Any], list[Any]]:
            i = number
            at = squeeze(slice_axis(inputs, 0, int(i.known), int(i.known) + 1), 0) if i.known is not None else emit(
                ops.Take, inputs, i.value, axis=0)  # fmt: skip
            before = [v.value for v in values]
            after = step(at, before)
            output = after[0]
            if lengths is not None:
                going = unsqueeze(self.is_inside(i.value, lengths, direction), 1)
                after = [emit(ops.Where, going, a, b) for a, b in zip(after, before, strict=True)]
                output = emit(ops.Where, going, after[0], full(0, info_of(output).dtype))
            return [tensor_value("carried", a) for a in after], [tensor_value("output", output)]

        last, (outputs,) = repeat(self.length, [tensor_value("start", c) for c in carried], body)
        return self.reversed(outputs, direction), [v.value for v in last]

    def is_inside(self, number: ir.Value, lengths: ir.Value, direction: int) -> ir.Value:
        """Which sequences have an element in this round; from the end, the padding comes first."""
        i64 = integer()
        if self.direction == "forward" or (self.direction == "bidirectional" and direction == 0):
            return emit(ops.Less, number, lengths)
        place = emit(ops.Subtract, full(self.length - 1, i64), number)
        return emit(ops.Less, place, lengths)

    def results(self, rounds: list[ir.Value], last: list[list[ir.Value]]) -> list[ir.Value]:
        """All rounds, ``[length, directions, batch, hidden]``, and what each direction carries in the end."""
        stacked = _stack([unsqueeze(r, 1) for r in rounds], 1)
        ends = [_stack([unsqueeze(v, 0) for v in column], 0) for column in zip(*last, strict=True)]
        if self.batch_first:
            return [permute(stacked, [2, 0, 1, 3]), *(permute(e, [1, 0, 2]) for e in ends)]
        return [stacked, *ends]

    def over_directions(self, carried: list[int], prepare: Callable[[int], Any]) -> list[ir.Value]:
        rounds: list[ir.Value] = []
        last: list[list[ir.Value]] = []
        for direction in range(self.directions):
            bias, step = prepare(direction)
            self.current = self.inputs(direction, bias)
            outputs, ends = self.run(direction, [self.start(i, direction) for i in carried], step)
            rounds.append(outputs)
            last.append(ends)
        return self.results(rounds, last)


def _stack(parts: list[ir.Value], axis: int) -> ir.Value:
    total = parts[0]
    for part in parts[1:]:
        total = emit(ops.Concat, total, part, axis=axis)
    return total


def _sum_of_biases(layer: _Layer, bias: ir.Value | None) -> ir.Value | None:
    if bias is None:
        return None
    count = layer.gates * layer.hidden
    return emit(ops.Add, slice_axis(bias, 0, 0, count), slice_axis(bias, 0, count, 2 * count))


@handles("RNN")
def _rnn(node: Node) -> list[ir.Value]:
    layer = _Layer(node, 1, ["Tanh"])

    def prepare(direction: int) -> Any:
        (f,) = layer.functions(direction)
        recurrent = permute(_present(layer.part(2, direction)), [1, 0])

        def step(x: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            return [f(layer.clipped(emit(ops.Add, x, emit(ops.MatMul, carried[0], recurrent))))]

        return _sum_of_biases(layer, layer.part(3, direction)), step

    return layer.over_directions([5], prepare)


@handles("LSTM")
def _lstm(node: Node) -> list[ir.Value]:
    """Gates input, output, forget, cell. Source: https://onnx.ai/onnx/operators/onnx__LSTM.html."""
    layer = _Layer(node, 4, ["Sigmoid", "Tanh", "Tanh"])
    couple = bool(node.attribute("input_forget", 0))

    def prepare(direction: int) -> Any:
        f, g, h = layer.functions(direction)
        recurrent = permute(_present(layer.part(2, direction)), [1, 0])
        peep = layer.part(7, direction)
        looks = None if peep is None else layer.split(peep, 3)

        def step(x: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            hidden, cell = carried
            i, o, forget, c = layer.split(emit(ops.Add, x, emit(ops.MatMul, hidden, recurrent)))
            if looks is not None:
                i = emit(ops.Add, i, emit(ops.Multiply, looks[0], cell))
                forget = emit(ops.Add, forget, emit(ops.Multiply, looks[2], cell))
            i = f(layer.clipped(i))
            forget = emit(ops.Subtract, full(1, info_of(i).dtype), i) if couple else f(layer.clipped(forget))
            new = emit(ops.Add, emit(ops.Multiply, forget, cell), emit(ops.Multiply, i, g(layer.clipped(c))))
            if looks is not None:
                o = emit(ops.Add, o, emit(ops.Multiply, looks[1], new))
            return [emit(ops.Multiply, f(layer.clipped(o)), h(new)), new]

        return _sum_of_biases(layer, layer.part(3, direction)), step

    return layer.over_directions([5, 6], prepare)


@handles("GRU")
def _gru(node: Node) -> list[ir.Value]:
    """Gates update, reset, hidden. Source: https://onnx.ai/onnx/operators/onnx__GRU.html."""
    layer = _Layer(node, 3, ["Sigmoid", "Tanh"])
    after_product = bool(node.attribute("linear_before_reset", 0))

    def prepare(direction: int) -> Any:
        f, g = layer.functions(direction)
        recurrent = permute(_present(layer.part(2, direction)), [1, 0])
        bias = layer.part(3, direction)
        count = 3 * layer.hidden
        of_x = None if bias is None else slice_axis(bias, 0, 0, count)
        of_hidden = None if bias is None else slice_axis(bias, 0, count, 2 * count)

        def step(x: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            (hidden,) = carried
            update, reset, new = layer.split(x)
            both, last = _columns(recurrent, layer.hidden)
            gates = emit(ops.MatMul, hidden, both)
            shift = None if of_hidden is None else layer.split(of_hidden)
            if shift is not None:
                gates = emit(ops.Add, gates, slice_axis(_present(of_hidden), 0, 0, 2 * layer.hidden))
            z, r = layer.split(gates, 2)
            z, r = (f(layer.clipped(emit(ops.Add, a, b))) for a, b in ((update, z), (reset, r)))
            if after_product:
                inner = emit(ops.MatMul, hidden, last)
                inner = inner if shift is None else emit(ops.Add, inner, shift[2])
                inner = emit(ops.Multiply, r, inner)
            else:
                inner = emit(ops.MatMul, emit(ops.Multiply, r, hidden), last)
                inner = inner if shift is None else emit(ops.Add, inner, shift[2])
            candidate = g(layer.clipped(emit(ops.Add, new, inner)))
            rest = emit(ops.Subtract, full(1, info_of(z).dtype), z)
            return [emit(ops.Add, emit(ops.Multiply, rest, candidate), emit(ops.Multiply, z, hidden))]

        return of_x, step

    return layer.over_directions([5], prepare)


def _columns(recurrent: ir.Value, hidden: int) -> tuple[ir.Value, ir.Value]:
    return slice_axis(recurrent, 1, 0, 2 * hidden), slice_axis(recurrent, 1, 2 * hidden, 3 * hidden)


def _present(value: ir.Value | None) -> ir.Value:
    if value is None:
        raise RelaxError("expected the weights of a recurrent layer")
    return value
