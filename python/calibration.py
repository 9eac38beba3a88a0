"""``relaxir.calibrate``: a float module and samples of its inputs in, a module that computes in eight bits out.

Before::

    %y = "relax.conv2d"(%x, %w)

after::

    %q = "relax.quantize"(%x, 0.031, 115) {dtype = ui8}             // by the least and the largest element of any sample
    %v = "relax.dequantize"(%q, 0.031, 115)                         // what all that read %x read now, but the caller
    %r = "relax.quantize"(%w, %s, 0) {axis = 0 : i64, dtype = i8}   // max |w| / 127 of each output: weight math
    %u = "relax.dequantize"(%r, %s, 0) {axis = 0 : i64}
    %y = "relax.conv2d"(%v, %u)

Compiling makes integers' convolutions and products of these. Scales are affine for activations and symmetric per channel for
weights, ranges the extremes or percentiles of samples. Source: Wu et al., Integer quantization for deep learning inference:
principles and empirical evaluation, 2020 (arXiv:2004.09602), sections 3 and 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .compiler import compile
from .dialect.analysis.weight_flow import FlowRules
from .dialect.bindings import func, ir
from .dialect.checks import expect, expect_no_mask, expect_text
from .dialect.errors import RelaxError
from .dialect.functions import argument_names, body_of, find_function, num_input, set_names, terminator, update_type
from .dialect.ops import Abs, Conv2D, Dequantize, Full, MatMul, Max, Maximum, Multiply, Quantize
from .dialect.struct_info import TensorInfo
from .dialect.traversal import nested_operations
from .module import Module
from .weights.arrays import is_torch

__all__ = ["calibrate"]

# The least scale of a weight's channel: one of zeros has it.
_LEAST = 1e-30


@dataclass(frozen=True)
class _Range:
    """What the elements of a value were between."""

    low: float
    high: float

    def joined(self, other: _Range) -> _Range:
        return _Range(min(self.low, other.low), max(self.high, other.high))

    def parameters(self) -> tuple[float, int]:
        """Scale and zero point of unsigned bytes; 0 is one of the numbers that they stand for."""
        low, high = min(self.low, 0.0), max(self.high, 0.0)
        scale = float(np.float32((high - low) / 255)) or 1.0
        return scale, int(np.clip(np.rint(-low / scale), 0, 255))


def calibrate(
    module: Module,
    samples: Iterable[Mapping[str, ArrayLike]],
    weights: object = None,
    *,
    function: str = "main",
    percentile: float = 100.0,
) -> Module:
    """A module in which convolutions and products with weights read bytes, by what samples have where these are computed.

    Args:
        module: the module; it is not changed. Its activations are f32.
        samples: inputs by name, for each call; a few hundred of what the model will see are usual.
        weights: what :meth:`Executable.prepare` takes; the calibrated module reads the same, and quantizes them when they are
            prepared.
        function: name of the function, without ``@``.
        percentile: of each sample's elements, how many percent are inside of the range; what is beyond is its end. The range
            of a value is the largest of any sample.

    Returns:
        The module, to compile as any other.

    Raises:
        RelaxError: there is no such function, no sample, nothing to quantize, or a percentile not in (50, 100]; a sample has
            other inputs, or makes a value that is not finite; all of them make one without elements; or as
            :meth:`Executable.prepare` does.
    """
    expect(module, Module, "a relaxir.Module")
    expect(samples, Iterable, "samples that can be gone through, each a mapping from names of inputs to arrays")
    expect_text(function, "the name of a function")
    expect(percentile, Real, "a number as percentile")
    if not 50 < percentile <= 100:
        raise RelaxError(f"expected a percentile in (50, 100], got {percentile}")
    counts = list[int]()

    def observe(op: ir.Operation) -> None:
        counts.append(_observe(find_function(op, function), FlowRules.of(op)))

    observed = module.rewritten(observe)
    if not counts[0]:
        raise RelaxError(f"expected convolutions or products of f32 with weights in @{function}, got none")
    ranges = _ranges(observed, samples, weights, function, percentile)
    return module.rewritten(lambda op: _quantize(find_function(op, function), FlowRules.of(op), ranges))


def _products(function: func.FuncOp, rules: FlowRules) -> list[Conv2D | MatMul]:
    """What is quantized: convolutions and products, of f32 with static weights, outside of branches and loops."""
    block, found = body_of(function), list[Conv2D | MatMul]()
    if block is None or num_input(function) is None:
        return found
    flow = rules.flow(function)
    for op in nested_operations(function.operation):
        view = op.opview
        if not isinstance(view, Conv2D | MatMul) or op.block != block:
            continue
        x, weight = op.operands
        infos = [TensorInfo.of(v) for v in (x, weight, op.results[0])]
        fits = all(str(i.dtype) == "f32" for i in infos) and all(isinstance(d, int) and d for d in infos[1].shape)
        fits = fits and (isinstance(view, Conv2D) or infos[1].rank == 2) and not flow.is_known(x)
        if fits and flow.once_from_weights(weight) and not isinstance(weight.owner, Dequantize):
            found.append(view)
    return found


def _images(products: Sequence[Conv2D | MatMul]) -> list[ir.Value]:
    """What products read, each once, in their order."""
    return list(dict.fromkeys(op.operands[0] for op in products))


def _observe(function: func.FuncOp, rules: FlowRules) -> int:
    """Makes a function return what its products read; how many values that are."""
    found = _images(_products(function, rules))
    block = body_of(function)
    assert block is not None
    end = terminator(block)
    with ir.InsertionPoint(end), end.location:
        func.ReturnOp(found)
    end.erase()
    set_names(function, argument_names(function), [f"value{i}" for i in range(len(found))])
    update_type(function)
    return len(found)


def _ranges(
    observed: Module, samples: Iterable[Mapping[str, ArrayLike]], weights: object, function: str, percentile: float
) -> list[_Range]:
    """The range of each value, over all samples."""
    executable = compile(observed)
    if executable.manifest.raw_weights:
        executable.bind(executable.prepare(weights))
    spec, found = executable.entries[function], list[_Range | None]()
    names = [each.name for each in spec.inputs]
    for sample in samples:
        expect(sample, Mapping, "samples that are mappings from names of inputs to arrays")
        if set(sample) != set(names):
            raise RelaxError(f"expected a sample with {', '.join(names)}, got {', '.join(map(str, sample)) or 'none'}")
        for name in names:
            expect_no_mask(sample[name], f"sample '{name}'")
        inputs, named = spec.call_of([sample[n] if is_torch(sample[n]) else np.asarray(sample[n]) for n in names])
        results: Any = executable(*inputs, entry=function, **named)
        values = results if isinstance(results, tuple) else (results,)
        seen = [_range(value, percentile) for value in values]
        found = [_joined(a, b) for a, b in zip(found, seen, strict=True)] if found else seen
    if not found:
        raise RelaxError("expected at least one sample, got none")
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        raise RelaxError("expected samples of which all that is computed has elements, got empty ones alone")
    return known


def _joined(a: _Range | None, b: _Range | None) -> _Range | None:
    return b if a is None else a if b is None else a.joined(b)


def _range(value: np.ndarray[Any, Any], percentile: float) -> _Range | None:
    """None of a value without elements, which says nothing."""
    if not value.size:
        return None
    low, high = np.percentile(value, [100 - percentile, percentile]) if percentile < 100 else (value.min(), value.max())
    if not np.isfinite([low, high]).all():
        raise RelaxError(f"expected samples of which all that is computed is finite, got values from {low} to {high}")
    return _Range(float(low), float(high))


def _quantize(function: func.FuncOp, rules: FlowRules, ranges: Sequence[_Range]) -> None:
    products, block = _products(function, rules), body_of(function)
    assert block is not None
    end = terminator(block)
    for op in products:
        with ir.InsertionPoint(op), op.location:
            op.operation.operands[1] = _through_bytes(op)
    for value, range_ in zip(_images(products), ranges, strict=True):
        owner = value.owner
        is_argument = isinstance(owner, ir.Block)
        where = ir.InsertionPoint.at_block_begin(owner) if is_argument else ir.InsertionPoint.after(owner)
        with where, value.location if is_argument else owner.location:
            scale, zero = range_.parameters()
            step, byte = _full(scale, ir.F32Type.get()), ir.IntegerType.get_unsigned(8)
            parameters = step, _full(zero, byte)
            stored = Quantize.create(value, *parameters, dtype=byte)
            wide = Dequantize.create(stored.result, *parameters).result
        value.replace_all_uses_except(wide, [stored.operation, end])


def _through_bytes(op: Conv2D | MatMul) -> ir.Value:
    """The weight of a product as what signed bytes with a scale per output stand for."""
    weight = op.operands[1]
    outputs = op.kernel_layout.index("O") if isinstance(op, Conv2D) else 1
    others = [i for i in range(TensorInfo.of(weight).rank) if i != outputs]
    f32, byte = ir.F32Type.get(), ir.IntegerType.get_signless(8)
    largest = Max.create(Abs.create(weight).result, axis=others).result
    scale = Multiply.create(Maximum.create(largest, _full(_LEAST, f32)).result, _full(1 / 127, f32)).result
    zero = _full(0, byte)
    stored = Quantize.create(weight, scale, zero, axis=outputs, dtype=byte).result
    return Dequantize.create(stored, scale, zero, axis=outputs).result


def _full(number: float, dtype: ir.Type) -> ir.Value:
    return Full.create(value=number, result_types=[ir.RankedTensorType.get([], dtype)]).result
