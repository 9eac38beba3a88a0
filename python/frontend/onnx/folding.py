"""Nodes whose operands are all known at import: numbers by ONNX's reference evaluator, and arithmetic on symbolic sizes."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean, is_float, normalize_axis
from ...dialect.symbolic import Expr
from ..ranges import larger, quotient_to_zero, remainder_to_zero, smaller
from .node import Node
from .size_expressions import Equality, SizeFraction, is_expression
from .tensors import element_dtype
from .values import Array, GraphValue, array_dtype, expression_value, known_value, numbers_array, relax_dtype

__all__ = ["folded"]

#: The most elements that a folded node may have, of operands and results.
_MOST = 4096

#: Operators that are converted even where all is known: random ones, large ones, those that weights' kernels know, and those
#: with graphs inside.
_CONVERTED = {
    "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "QuantizeLinear",
    "DequantizeLinear", "DynamicQuantizeLinear", "Dropout", "If", "Loop", "Scan", "SequenceMap", "ConstantOfShape", "Constant",
    "Shape", "Size", "Identity", "Conv", "MatMul", "Gemm", "ImageDecoder", "SequenceConstruct", "SequenceEmpty", "Optional",
}  # fmt: skip


def folded(node: Node, proto: onnx.NodeProto) -> list[Any] | None:
    """The results as numbers; None where the node has to be converted."""
    if proto.domain not in ("", "ai.onnx") or node.key in _CONVERTED or not node.operands:
        return None
    arrays: list[Array | None] = []
    for operand in node.operands:
        if operand is not None and (not isinstance(operand, GraphValue) or operand.coded or operand.folds is None):
            return None
        arrays.append(operand.folds if isinstance(operand, GraphValue) else None)
    present = [a for a in arrays if a is not None]
    if not present or sum(a.size for a in present) > _MOST:
        return None
    if any(a.dtype == object for a in present):
        fold = _SYMBOLIC.get(node.key)
        return None if fold is None else _symbolic(node, fold, present)
    return _evaluated(node, proto, arrays)


def _symbolic(node: Node, fold: Callable[[Node, list[Array]], Array], arrays: list[Array]) -> list[Any] | None:
    try:
        result = fold(node, arrays)
    except (TypeError, ZeroDivisionError):
        return None
    result = np.asarray(result, object)  # of one element, indexing gives the element itself
    dtype, items = _result_dtype(node), result.reshape(-1).tolist()
    if is_float(dtype) or any(map(is_expression, items)):
        return [expression_value(node.name, result, dtype)]
    plain = not any(isinstance(n, Expr) for n in items)
    return [known_value(node.name, result.astype(array_dtype(dtype)) if plain else result, dtype)]


def _result_dtype(node: Node) -> ir.Type:
    if node.key in ("Equal", "Not"):
        return boolean()
    if node.key == "Cast":
        return element_dtype(node.attribute("to"))
    known = [o for o in node.operands if isinstance(o, GraphValue) and o.folds is not None]
    return next(o.dtype for o in known if o.folds is not None and o.folds.dtype == object)


def _evaluated(node: Node, proto: onnx.NodeProto, arrays: Sequence[Array | None]) -> list[Any] | None:
    """What ONNX's reference evaluator gives for this one node; it takes 11 MiB, which few large models want."""
    from onnx.reference import ReferenceEvaluator

    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    copy.domain = ""
    names = [f"i{k}" if a is not None else "" for k, a in enumerate(arrays)]
    copy.input[:] = names
    copy.output[:] = [f"o{k}" for k in range(len(proto.output))]
    graph = onnx.helper.make_graph(
        [copy],
        "folded",
        [onnx.ValueInfoProto(name=n) for n in names if n],
        [onnx.ValueInfoProto(name=n) for n in copy.output],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", node.version)], ir_version=10)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            session = ReferenceEvaluator(model)
            found: Any = session.run(None, {n: a for n, a in zip(names, arrays, strict=True) if a is not None})
    except Exception:  # whatever goes wrong in a foreign evaluator, the node can still be converted
        return None
    if any(not isinstance(f, np.ndarray | np.generic) or np.asarray(f).size > _MOST for f in found):
        return None
    results = [np.asarray(f) for f in found]
    try:
        for result in results:
            relax_dtype(result.dtype)
    except RelaxError:
        return None
    return results


def _elementwise(function: Callable[..., Any]) -> Callable[[Node, list[Array]], Array]:
    def fold(node: Node, arrays: list[Array]) -> Array:
        broadcast = np.broadcast_arrays(*arrays)
        items = [_compute(function, *row) for row in zip(*(b.reshape(-1).tolist() for b in broadcast), strict=True)]
        return numbers_array(items, broadcast[0].shape)

    return fold


def _compute(function: Callable[..., Any], *operands: Any) -> Any:
    found = function(*operands)
    if not isinstance(found, int | Expr) and not is_expression(found):
        raise TypeError
    return found


def _quotient(a: Any, b: Any) -> Any:
    """Integers are divided towards zero."""
    if is_expression(a) or is_expression(b):
        return a / b
    return quotient_to_zero(a, b, {})


def _chain(choose: Callable[..., Any]) -> Callable[..., Any]:
    """The smallest, or the largest, of any number of sizes."""

    def chosen(a: Any, b: Any) -> Any:
        if is_expression(a) or is_expression(b):
            a, b = (a, b) if is_expression(a) else (b, a)
            return a.smaller(b) if choose is smaller else a.larger(b)
        return choose(a, b, {})

    return lambda *sizes: functools.reduce(chosen, sizes)


def _fold_mod(node: Node, arrays: list[Array]) -> Array:
    """Remainders have the sign of the divisor, or with ``fmod`` that of the dividend."""
    return _REMAINDERS[bool(node.attribute("fmod", 0))](node, arrays)


def _same(a: Any, b: Any) -> Any:
    """Whether sizes are equal."""
    if isinstance(a, int) and isinstance(b, int):
        return int(a == b)
    if not isinstance(a, int | Expr) or not isinstance(b, int | Expr):
        raise TypeError
    if isinstance(a - b, int):
        return int(a - b == 0)
    if (isinstance(a, int) and a < 0) or (isinstance(b, int) and b < 0):
        return 0
    return Equality(a, b)


def _negated(a: Any) -> Any:
    if not isinstance(a, Equality):
        raise TypeError
    return ~a


def _chosen(c: Any, a: Any, b: Any) -> Any:
    if not isinstance(c, int | bool):
        raise TypeError
    return a if c else b


def _one_operand(function: Callable[[Array], Array]) -> Callable[[Node, list[Array]], Array]:
    return lambda node, arrays: function(arrays[0])


def _gather(node: Node, arrays: list[Array]) -> Array:
    return np.take(arrays[0], arrays[1].astype(np.int64), axis=node.axis(0, arrays[0].ndim))


def _slice(node: Node, arrays: list[Array]) -> Array:
    x = arrays[0]
    begins, ends = node.listed("starts", 1), node.listed("ends", 2)
    axes, steps = node.listed("axes", 3), node.listed("steps", 4)
    assert begins is not None
    assert ends is not None
    picks: list[slice] = [slice(None)] * x.ndim
    for i, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if isinstance(begin, Expr) or isinstance(end, Expr):
            raise TypeError
        axis = normalize_axis(axes[i], x.ndim) if axes else i
        step = steps[i] if steps else 1
        stop = None if step < 0 and end < -x.shape[axis] else end
        picks[axis] = slice(begin, stop, step)
    return x[tuple(picks)]


def _concat(node: Node, arrays: list[Array]) -> Array:
    return np.concatenate([a.astype(object) for a in arrays], axis=node.axis(0, arrays[0].ndim))


def _unsqueeze(node: Node, arrays: list[Array]) -> Array:
    axes = node.listed("axes", 1) or []
    return np.expand_dims(arrays[0], tuple(axes))


def _squeeze(node: Node, arrays: list[Array]) -> Array:
    axes = node.listed("axes", 1)
    return np.squeeze(arrays[0], None if axes is None else tuple(axes))


def _reshape(node: Node, arrays: list[Array]) -> Array:
    shape = [s if s else arrays[0].shape[i] for i, s in enumerate(arrays[1].tolist())]
    return arrays[0].reshape(shape)


def _product(node: Node, arrays: list[Array]) -> Array:
    x = arrays[0]
    if x.ndim != 1:
        raise TypeError
    total: Any = 1
    for item in x.tolist():
        total = total * item
    return numbers_array([total], [1] if node.attribute("keepdims", 1) else [])


def _cast(node: Node, arrays: list[Array]) -> Array:
    to = node.attribute("to")
    if to not in (TensorProto.INT64, TensorProto.INT32, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.BOOL):
        raise TypeError
    cast = np.frompyfunc(functools.partial(_cast_to, to), 1, 1)
    return np.asarray(cast(arrays[0]), object)


def _cast_to(to: int, item: Any) -> Any:
    if isinstance(item, Equality) and to == TensorProto.BOOL:
        return item
    if to == TensorProto.BOOL or isinstance(item, Equality):
        raise TypeError
    if to in (TensorProto.FLOAT, TensorProto.DOUBLE):
        return item if is_expression(item) else SizeFraction(item)
    return item.to_integer() if isinstance(item, SizeFraction) else int(item) if isinstance(item, float) else item


def _fraction(function: Callable[[SizeFraction], Any]) -> Callable[[Node, list[Array]], Array]:
    def rounded(item: Any) -> Any:
        if isinstance(item, float):
            item = SizeFraction(0) + item
        if not isinstance(item, SizeFraction):
            raise TypeError
        return function(item)

    return _elementwise(rounded)


def _transpose(node: Node, arrays: list[Array]) -> Array:
    return np.transpose(arrays[0], node.attribute("perm"))


def _expand(node: Node, arrays: list[Array]) -> Array:
    shape = [int(s) for s in arrays[1].tolist()]
    return np.broadcast_to(arrays[0], np.broadcast_shapes(arrays[0].shape, tuple(shape)))


_REMAINDERS = (_elementwise(operator.mod), _elementwise(lambda a, b: remainder_to_zero(a, b, {})))

_SYMBOLIC: dict[str, Callable[[Node, list[Array]], Array]] = {
    "Add": _elementwise(operator.add),
    "Sub": _elementwise(operator.sub),
    "Mul": _elementwise(operator.mul),
    "Div": _elementwise(_quotient),
    "Mod": _fold_mod,
    "Neg": _elementwise(operator.neg),
    "Floor": _fraction(SizeFraction.floor),
    "Ceil": _fraction(SizeFraction.ceil),
    "Not": _elementwise(_negated),
    "Transpose": _transpose,
    "Min": _elementwise(_chain(smaller)),
    "Max": _elementwise(_chain(larger)),
    "Equal": _elementwise(_same),
    "Where": _elementwise(_chosen),
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "ReduceProd": _product,
    "Cast": _cast,
    "Expand": _expand,
    "Identity": _one_operand(lambda x: x),
}
